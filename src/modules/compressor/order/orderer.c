/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* orderer.c - rank 0: orders the ranges of a document
 *
 * The compressor itself reports where each session must continue (idcomp_expected ()), so there is no second table that
 * could contradict the compressor. The compressor's own session makes no ids. That session has the lowest UUID, so that
 * it does not hide another session when a new cluster is compared with its neighbours.
 *
 * Kept ranges are in a queue in order of number; the newest one has the number 'seq'.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libcompressor/compressor.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"
#include "modules/compressor/order/orderer.h"

#define OWN_SESSION "00000000-0000-4000-8000-000000000000"

/* A range that is kept. */
struct order_entry {
    uint64_t digest; /* digest of the final space before this range */
    struct rewind_step step;
    char text[];
};

struct orderer {
    const struct orderer_limits *limits;
    struct idcomp *ids;
    int64_t seq;
    int64_t stored_seq;
    struct idcomp_stats stored_stats;
    struct fifo entries;
};

void orderer_destroy (struct orderer *o)
{
    if (!o)
        return;
    int saved = errno;
    const void *entry;
    while ((entry = fifo_pop (&o->entries)))
        free ((void *)entry);
    fifo_fini (&o->entries);
    idcomp_destroy (o->ids);
    free (o);
    errno = saved;
}

struct orderer *orderer_create (const struct orderer_limits *limits, const void *form, size_t size, int64_t seq)
{
    struct orderer *o = calloc (1, sizeof (*o));

    if (!o)
        return NULL;
    o->limits = limits;
    o->seq = o->stored_seq = seq;
    o->ids = form ? idcomp_load (form, size, OWN_SESSION, IDCOMP_ORDERER) : idcomp_create (OWN_SESSION, IDCOMP_ORDERER);
    if (!o->ids) {
        orderer_destroy (o);
        return NULL;
    }
    o->stored_stats = idcomp_stats (o->ids);
    return o;
}

/* --- checks --- */

static int refuse (idt_error_t *errp, int error, const struct idcomp_range *range, const char *why)
{
    return errsetf (errp, error, "range %lld+%lld of session %s: %s", (long long)range->first, (long long)range->count,
                    range->session, why);
}

/* Returns 1 if the range continues its session, 0 if all of it was ordered before, or -1 if it is refused. */
static int compare (const struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    int64_t expected = idcomp_expected (o->ids, range->session);

    if (!range->has_ids || range->first < 1 || range->count < 1 || range->count > IDCOMP_ID_MAX)
        return refuse (errp, EINVAL, range, "it has no ids, or its numbers are out of range");
    if (range->first == expected)
        return 1;
    if (range->first > expected)
        return refuse (errp, EINVAL, range, "ids of that session are missing before it");
    if (range->count > expected - range->first)
        return refuse (errp, EINVAL, range, "a part of it was ordered before: send a range again with the same bounds");
    return 0;
}

/* Check the limits. A range adds at most one session and one cluster, so the check assumes that it adds both. */
static int check_room (const struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    struct idcomp_stats stats = idcomp_stats (o->ids);

    if (stats.clusters >= o->limits->clusters)
        return refuse (errp, EDQUOT, range, "the document has compressor.max-clusters clusters: it is full");
    if (range->first == 1 && stats.sessions > o->limits->sessions) /* one session is the orderer's own */
        return refuse (errp, EDQUOT, range, "the document already has compressor.max-sessions sessions");
    return 0;
}

static struct order_entry *entry_create (const struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    size_t size = idcomp_range_format_size (range);
    struct order_entry *entry = size <= ORDERER_RANGE_MAX ? malloc (sizeof (*entry) + size) : NULL;

    if (entry) {
        entry->digest = compressor_digest (o->ids);
        entry->step.first = range->first;
        strcpy (entry->step.session, range->session);
        idcomp_range_format (range, entry->text, size);
    }
    else if (size > ORDERER_RANGE_MAX)
        refuse (errp, EINVAL, range, "it is longer than 65535 characters");
    else
        refuse (errp, ENOMEM, range, "out of memory");
    return entry;
}

static int finalize (struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    if (idcomp_finalize (o->ids, range) == 0)
        return 0;
    if (errno == ENOMEM)
        return refuse (errp, ENOMEM, range, "out of memory");
    return refuse (errp, EINVAL, range, idcomp_strerror (errno));
}

int orderer_add (struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    int rc = compare (o, range, errp);

    if (rc <= 0)
        return rc;
    struct order_entry *entry = check_room (o, range, errp) == 0 ? entry_create (o, range, errp) : NULL;
    if (!entry)
        return -1;
    if (fifo_push (&o->entries, entry) < 0) {
        free (entry);
        return refuse (errp, ENOMEM, range, "out of memory");
    }
    if (finalize (o, range, errp) < 0) {
        o->entries.count--;
        free (entry);
        return -1;
    }
    o->seq++;
    return 1;
}

/* --- reading --- */

int64_t orderer_seq (const struct orderer *o)
{
    return o->seq;
}

int64_t orderer_stored_seq (const struct orderer *o)
{
    return o->stored_seq;
}

void orderer_stored (struct orderer *o)
{
    o->stored_seq = o->seq;
    o->stored_stats = idcomp_stats (o->ids);
    while (o->entries.count > o->limits->window)
        free ((void *)fifo_pop (&o->entries));
}

struct idcomp_stats orderer_stored_stats (const struct orderer *o)
{
    return o->stored_stats;
}

static const struct order_entry *find (const struct orderer *o, int64_t seq)
{
    int64_t first = o->seq - (int64_t)o->entries.count + 1;

    if (seq < first || seq > o->seq)
        return NULL;
    return o->entries.items[(o->entries.head + (size_t)(seq - first)) & (o->entries.size - 1)];
}

const char *orderer_range (const struct orderer *o, int64_t seq)
{
    const struct order_entry *entry = find (o, seq);

    return entry ? entry->text : NULL;
}

int orderer_digest (const struct orderer *o, int64_t seq, uint64_t *digest)
{
    const struct order_entry *next = seq < o->seq ? find (o, seq + 1) : NULL;

    if (!next && seq != o->seq)
        return -1;
    *digest = next ? next->digest : compressor_digest (o->ids);
    return 0;
}

const struct idcomp *orderer_ids (const struct orderer *o)
{
    return o->ids;
}

void *orderer_save (const struct orderer *o, size_t *size)
{
    struct idcomp_stats now = idcomp_stats (o->ids);

    return compressor_save_then (o->ids, &now, NULL, NULL, 0, size);
}

static const struct rewind_step *unstored_step (const void *arg, size_t i)
{
    const struct orderer *o = arg;
    const struct order_entry *entry = find (o, o->stored_seq + 1 + (int64_t)i);

    assert (entry); /* a range is kept at least until it is stored */
    return &entry->step;
}

void *orderer_save_stored (const struct orderer *o, size_t *size)
{
    return compressor_save_then (o->ids, &o->stored_stats, unstored_step, o, (size_t)(o->seq - o->stored_seq), size);
}
