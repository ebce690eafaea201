/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* local.c - ids that idtree id new makes itself */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cmd/id/new.h"
#include "cmd/id/text.h"
#include "libutil/clock.h"

#define NAMED_MAX (UINT32_C (1) << 28) /* fingerprints of names are lower, also the legacy ones */

struct new_maker {
    int (*make) (struct new_maker *m, struct ident *id);
    struct flax_gen *flax;
    struct sno_gen *sno;
    uint8_t meta;
    struct uid_gen *uid;
    enum uid_kind kind;
    struct uid_codec codec;
};

static uint32_t number (const struct new_options *o, const char *what, const char *s, uint32_t otherwise, uint32_t max)
{
    return s ? cmd_number (o->cmd, what, s, 0, max) : otherwise;
}

/* 64 random bits, which tell processes apart on any hosts. */
static uint64_t random_bits (const struct new_options *o)
{
    uint64_t bits;

    while (getrandom (&bits, sizeof (bits), 0) != sizeof (bits))
        if (errno != EINTR)
            cmd_die (o->cmd, "cannot draw random bits: %s", strerror (errno));
    return bits;
}

/* --- flax ----------------------------------------------------------------------------------- */

static int make_flax (struct new_maker *m, struct ident *id)
{
    id->size = FLAX_SIZE;
    return flax_gen_make (m->flax, &id->flax);
}

static int open_flax (struct new_maker *m, const struct new_options *o)
{
    m->make = make_flax;
    return (m->flax = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING })) ? 0 : -1;
}

/* --- sno ------------------------------------------------------------------------------------ */

static int make_sno (struct new_maker *m, struct ident *id)
{
    id->size = SNO_SIZE;
    return sno_gen_make (m->sno, m->meta, -1, &id->sno);
}

static int open_sno (struct new_maker *m, const struct new_options *o)
{
    struct sno_snapshot start = { 0 };
    uint64_t unit;

    m->make = make_sno;
    m->meta = number (o, "meta", o->meta, 0, SNO_META_MAX);
    if (sno_unit_at ((int64_t)clock_ns (CLOCK_REALTIME), &unit) < 0)
        return -1;
    /* The default partition is random: two makers at the same time have the same one with a probability of 1 in 65,536.
     */
    start.partition = number (o, "partition", o->partition, (uint32_t)random_bits (o) & SNO_PARTITION_MAX,
                              SNO_PARTITION_MAX);
    if (sno_snapshot_raise (&start, unit + 1) < 0)
        return -1;
    return (m->sno = sno_gen_create (&(struct sno_gen_config){ .start = start })) ? 0 : -1;
}

/* --- uid ------------------------------------------------------------------------------------ */

static int make_uid (struct new_maker *m, struct ident *id)
{
    struct uid uid;
    int size;

    if (uid_gen_make (m->uid, m->kind, -1, &uid) < 0
        || (size = uid_to_bytes (&uid, &m->codec, id->bytes, sizeof (id->bytes))) < 0)
        return -1;
    id->size = size;
    return 0;
}

/* Whether a fingerprint belongs neither to a name nor to the number of a rank (uid_fingerprint (), uid_node_numbered
 * ()).
 */
static bool is_free (uint32_t fingerprint)
{
    uint32_t first = uid_node_numbered (0).fingerprint;

    return fingerprint > NAMED_MAX && (fingerprint < first || fingerprint > first + UID_NUMBER_MAX);
}

/* Draw a random fingerprint.  A process id and a host name would not do: they are the same in many containers. */
static uint32_t draw_fingerprint (const struct new_options *o)
{
    uint32_t fingerprint;

    do
        fingerprint = (uint32_t)random_bits (o);
    while (!is_free (fingerprint));
    return fingerprint;
}

static struct uid_node find_node (const struct new_options *o)
{
    if (o->node && o->fingerprint)
        cmd_usage (o->cmd, "--node and --fingerprint exclude each other");
    if (o->fingerprint)
        return (struct uid_node){ .fingerprint = number (o, "fingerprint", o->fingerprint, 0, UINT32_MAX) };
    if (o->node)
        return uid_node_named (o->node);
    return (struct uid_node){ .fingerprint = draw_fingerprint (o) };
}

static int open_uid (struct new_maker *m, const struct new_options *o)
{
    const struct uid_gen_config config = { .node = find_node (o),
                                           .after_us = (int64_t)clock_ns (CLOCK_REALTIME) / 1000 };

    m->make = make_uid;
    m->kind = idtext_kind (o->cmd, o->kind);
    m->codec.drift = idtext_drift (o->cmd, o->drift);
    return (m->uid = uid_gen_create (&config)) ? 0 : -1;
}

/* --- all ------------------------------------------------------------------------------------ */

static void die (const struct new_options *o)
{
    if (errno == EOVERFLOW)
        cmd_die (o->cmd, "the dates of %s go from %s to %s: set the clock", o->scheme->name, o->scheme->from,
                 o->scheme->until);
    cmd_die (o->cmd, "cannot make ids: %s", strerror (errno));
}

struct new_maker *new_maker_create (const struct new_options *o)
{
    static const struct {
        const char *scheme;
        int (*open) (struct new_maker *m, const struct new_options *o);
    } kinds[] = { { "flax", open_flax }, { "sno", open_sno }, { "uid", open_uid } };
    struct new_maker *m = calloc (1, sizeof (*m));

    if (!m)
        die (o);
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (!strcmp (kinds[i].scheme, o->scheme->name) && kinds[i].open (m, o) < 0)
            die (o);
    return m;
}

void new_maker_destroy (struct new_maker *m)
{
    if (!m)
        return;
    flax_gen_destroy (m->flax);
    sno_gen_destroy (m->sno);
    uid_gen_destroy (m->uid);
    free (m);
}

void new_make (struct new_maker *m, const struct new_options *o, struct ident *id)
{
    if (m->make (m, id) < 0)
        die (o);
}
