/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* counts_ids.c - generators and text forms */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idtree/flax.h"
#include "idtree/fluid.h"
#include "idtree/sno.h"
#include "idtree/uid.h"
#include "libutil/base64.h"

#include "counts.h"

#define N COUNTS_TIMES
#define BYTES 4096 /* bytes of base64 data */
#define MS INT64_C (1700000000000)

static uint64_t random_bits (uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* --- generators: the caller passes in the time, which advances --- */

struct makers {
    struct fluid_gen fluid;
    struct sno_gen *sno;
    struct uid_gen *uid;
    struct flax_gen *flax;
    uint64_t x;
};

static uint64_t next_bits (void *arg)
{
    return random_bits (arg);
}

static void begin (void *arg, int unused)
{
    struct makers *m = arg;

    fluid_gen_init (&m->fluid, &(struct fluid_gen_config){ .generator = 1, .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
    sno_gen_destroy (m->sno);
    uid_gen_destroy (m->uid);
    flax_gen_destroy (m->flax);
    m->sno = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 1 } });
    m->uid = uid_gen_create (&(struct uid_gen_config){ .node = { .fingerprint = 7 } });
    m->x = UINT64_C (0x9e3779b97f4a7c15);
    m->flax = flax_gen_create (&(struct flax_gen_config){ .bits = { .random = next_bits, .arg = &m->x } });
    counts_must (m->sno && m->uid && m->flax, "creating generators");
}

static void fluid_one (void *arg, int i)
{
    struct makers *m = arg;
    fluid_t id;

    counts_must (fluid_gen_reserve (&m->fluid, (uint64_t)i, 1, &id) == 1, "a FLUID");
}

static void fluid_granules (void *arg, int i)
{
    struct makers *m = arg;
    fluid_t id;

    counts_must (fluid_gen_reserve_in (&m->fluid, (uint64_t)i, UINT64_MAX, 1, &id) == 1, "a FLUID of a granule");
}

static void sno_one (void *arg, int i)
{
    struct makers *m = arg;
    sno_t id;

    counts_must (sno_gen_reserve (m->sno, 7, (MS + i) * 1000000, 1, &id, NULL) == 1, "a sno");
}

static void uid_one (void *arg, int i)
{
    struct makers *m = arg;
    struct uid id;

    counts_must (uid_gen_reserve (m->uid, UID_GLOBAL, (MS + i) * 1000, 1, &id, NULL) == 1, "a uid");
}

static void flax_one (void *arg, int i)
{
    struct makers *m = arg;
    flax_t id;

    counts_must (flax_gen_reserve (m->flax, MS + i, 1, &id) == 1, "a flax");
}

void count_generators (void)
{
    static const struct count counts[] = {
        { "generator: fluid", fluid_one, begin, 0 }, { "generator: fluid, granules", fluid_granules, begin, 0 },
        { "generator: sno", sno_one, begin, 0 },     { "generator: uid", uid_one, begin, 0 },
        { "generator: flax", flax_one, begin, 0 },
    };
    struct makers m = { 0 };

    counts_run (counts, sizeof (counts) / sizeof (counts[0]), &m);
    sno_gen_destroy (m.sno);
    uid_gen_destroy (m.uid);
    flax_gen_destroy (m.flax);
}

/* --- text forms --- */

struct texts {
    enum fluid_form form;
    fluid_t fluid[N];
    flax_t flax[N];
    sno_t sno[N];
    struct uid uid[N];
    char text[N][FLUID_TEXT_MAX];
    char lines[N * FLUID_TEXT_MAX];
    size_t lines_len;
    uint8_t data[BYTES];
    char base64[BASE64_ENCODED_SIZE (BYTES) + 1];
};

static void fluid_write (void *arg, int i)
{
    struct texts *t = arg;

    counts_must (fluid_format (t->fluid[i], t->form, t->text[i], FLUID_TEXT_MAX) > 0, "writing a FLUID");
}

static void fluid_read (void *arg, int i)
{
    struct texts *t = arg;
    fluid_t id;

    counts_must (fluid_parse (t->text[i], strlen (t->text[i]), &id, NULL) == 0 && id == t->fluid[i], "reading a FLUID");
}

/* Process all ids COUNTS_TIMES times. */
static void fluid_write_lines (void *arg, int i)
{
    struct texts *t = arg;
    size_t n = N;

    counts_must (fluid_format_lines (t->fluid, &n, t->form, t->lines, sizeof (t->lines), &t->lines_len) == 0 && n == N,
                 "writing lines");
}

static void fluid_read_lines (void *arg, int i)
{
    struct texts *t = arg;
    size_t n = N;

    counts_must (fluid_parse_lines (t->lines, t->lines_len, t->fluid, &n, NULL) == 0 && n == N, "reading lines");
}

static void flax_write (void *arg, int i)
{
    struct texts *t = arg;

    flax_format (&t->flax[i], t->text[i], FLUID_TEXT_MAX);
}

static void flax_read (void *arg, int i)
{
    struct texts *t = arg;

    counts_must (flax_parse (t->text[i], FLAX_TEXT_LEN, &t->flax[i], NULL) == 0, "reading a flax");
}

static void sno_write (void *arg, int i)
{
    struct texts *t = arg;

    sno_format (&t->sno[i], t->text[i], FLUID_TEXT_MAX);
}

static void sno_read (void *arg, int i)
{
    struct texts *t = arg;

    counts_must (sno_parse (t->text[i], SNO_TEXT_LEN, &t->sno[i], NULL) == 0, "reading a sno");
}

static void uid_write (void *arg, int i)
{
    struct texts *t = arg;

    counts_must (uid_format (&t->uid[i], NULL, t->text[i], FLUID_TEXT_MAX) > 0, "writing a uid");
}

static void uid_read (void *arg, int i)
{
    struct texts *t = arg;

    counts_must (uid_parse (t->text[i], UID_GLOBAL_TEXT_LEN, NULL, &t->uid[i], NULL) == 0, "reading a uid");
}

static void base64_write (void *arg, int i)
{
    struct texts *t = arg;

    base64_encode (t->data, BYTES, t->base64);
}

static void base64_read (void *arg, int i)
{
    struct texts *t = arg;

    counts_must (base64_decode (t->base64, sizeof (t->base64) - 1, t->data, BYTES) == BYTES, "reading base64");
}

static void write_all (void *arg, int form)
{
    struct texts *t = arg;

    t->form = form;
    for (int i = 0; i < N; i++)
        fluid_write (t, i);
    fluid_write_lines (t, 0);
}

static void write_flaxes (void *arg, int unused)
{
    for (int i = 0; i < N; i++)
        flax_write (arg, i);
}

static void write_snos (void *arg, int unused)
{
    for (int i = 0; i < N; i++)
        sno_write (arg, i);
}

static void write_uids (void *arg, int unused)
{
    for (int i = 0; i < N; i++)
        uid_write (arg, i);
}

static void write_base64 (void *arg, int unused)
{
    base64_write (arg, 0);
}

static struct texts *texts_create (void)
{
    struct texts *t = calloc (1, sizeof (*t));
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15);

    counts_must (t != NULL, "memory");
    for (int i = 0; i < N; i++) {
        uint64_t bits[2] = { random_bits (&x), random_bits (&x) };
        t->fluid[i] = random_bits (&x) >> 11;
        memcpy (&t->flax[i], bits, FLAX_SIZE);
        memcpy (&t->sno[i], bits, SNO_SIZE);
        uid_from_bytes (bits, UID_GLOBAL_SIZE, NULL, &t->uid[i]);
        t->uid[i].b %= UID_B_MAX + 1;
        t->uid[i].c %= UID_C_MAX + 1;
    }
    for (int i = 0; i < BYTES; i++)
        t->data[i] = random_bits (&x) & 0xff;
    return t;
}

static void count_forms (struct texts *t)
{
    static const struct count ways[] = {
        { "write", fluid_write, write_all, 0 },
        { "read", fluid_read, write_all, 0 },
        { "write lines", fluid_write_lines, write_all, 0 },
        { "read lines", fluid_read_lines, write_all, 0 },
    };
    char name[64];

    for (int form = 0; form < FLUID_FORM_COUNT; form++)
        for (size_t i = 0; i < sizeof (ways) / sizeof (ways[0]); i++) {
            struct count count = ways[i];

            snprintf (name, sizeof (name), "codec: %s %s", fluid_form_name (form), ways[i].name);
            count.name = name;
            count.arg = form;
            counts_run (&count, 1, t);
        }
}

void count_codecs (void)
{
    static const struct count counts[] = {
        { "codec: flax write", flax_write, NULL, 0 },     { "codec: flax read", flax_read, write_flaxes, 0 },
        { "codec: sno write", sno_write, NULL, 0 },       { "codec: sno read", sno_read, write_snos, 0 },
        { "codec: uid write", uid_write, NULL, 0 },       { "codec: uid read", uid_read, write_uids, 0 },
        { "codec: base64 write", base64_write, NULL, 0 }, { "codec: base64 read", base64_read, write_base64, 0 },
    };
    struct texts *t = texts_create ();

    count_forms (t);
    counts_run (counts, sizeof (counts) / sizeof (counts[0]), t);
    free (t);
}
