/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* orderer.c - rank 0: the one order of the ranges of a document
 *
 * The compressor tells where each session must go on (idcomp_expected ()), so that there is no second table that could
 * disagree with it.  Its own session never makes an id; it is the lowest that there is, so that it hides no other one
 * when a new cluster is compared with its neighbours.
 *
 * Texts are kept in a queue in order of their numbers; the newest one has the number 'seq'.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/fifo.h"
#include "modules/compressor/orderer.h"

#define OWN_SESSION "00000000-0000-4000-8000-000000000000"

struct orderer {
    const struct orderer_limits *limits;
    struct idcomp *ids;
    int64_t seq;
    int64_t stored_seq;
    struct fifo texts;
};

void orderer_destroy (struct orderer *o)
{
    if (!o)
        return;
    int saved = errno;
    const void *text;
    while ((text = fifo_pop (&o->texts)))
        free ((void *)text);
    fifo_fini (&o->texts);
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
    return o;
}

/* --- what is accepted --- */

static int refuse (idt_error_t *errp, int error, const struct idcomp_range *range, const char *why)
{
    errno = error;
    return errprintf (errp, "range %lld+%lld of session %s: %s", (long long)range->first, (long long)range->count,
                      range->session, why);
}

/* Returns 1 if the range continues its session, 0 if all of it was ordered before, -1 if it is refused. */
static int compare (const struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    int64_t expected = idcomp_expected (o->ids, range->session);

    if (!range->has_ids || range->first < 1 || range->count < 1 || range->count > IDCOMP_ID_MAX)
        return refuse (errp, EINVAL, range, "it has no ids, or impossible ones");
    if (range->first == expected)
        return 1;
    if (range->first > expected)
        return refuse (errp, EINVAL, range, "ids of that session are missing before it");
    if (range->count > expected - range->first)
        return refuse (errp, EINVAL, range, "a part of it was ordered before: ranges must not be cut anew");
    return 0;
}

/* Whatever a range may add: one session, one cluster. */
static int check_room (const struct orderer *o, const struct idcomp_range *range, idt_error_t *errp)
{
    struct idcomp_stats stats = idcomp_stats (o->ids);

    if (stats.clusters >= o->limits->clusters)
        return refuse (errp, EDQUOT, range, "the document has compressor.max-clusters clusters: it is full");
    if (range->first == 1 && stats.sessions > o->limits->sessions) /* one of them is our own */
        return refuse (errp, EDQUOT, range, "the document has compressor.max-sessions sessions: it takes no more");
    return 0;
}

static char *encode (const struct idcomp_range *range, idt_error_t *errp)
{
    size_t size = idcomp_range_encode (range, NULL, 0) + 1;
    char *text = size <= ORDERER_RANGE_MAX ? malloc (size) : NULL;

    if (text)
        idcomp_range_encode (range, text, size);
    else if (size > ORDERER_RANGE_MAX)
        refuse (errp, EINVAL, range, "it is longer than 65535 characters");
    else
        refuse (errp, ENOMEM, range, "out of memory");
    return text;
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
    char *text = check_room (o, range, errp) == 0 ? encode (range, errp) : NULL;
    if (!text)
        return -1;
    if (fifo_push (&o->texts, text) < 0) {
        free (text);
        return refuse (errp, ENOMEM, range, "out of memory");
    }
    if (finalize (o, range, errp) < 0) {
        o->texts.count--;
        free (text);
        return -1;
    }
    o->seq++;
    return 1;
}

/* --- what is known --- */

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
    while (o->texts.count > o->limits->window)
        free ((void *)fifo_pop (&o->texts));
}

const char *orderer_range (const struct orderer *o, int64_t seq)
{
    int64_t first = o->seq - (int64_t)o->texts.count + 1;

    if (seq < first || seq > o->seq)
        return NULL;
    return o->texts.items[(o->texts.head + (size_t)(seq - first)) & (o->texts.size - 1)];
}

const struct idcomp *orderer_ids (const struct orderer *o)
{
    return o->ids;
}

void *orderer_save (const struct orderer *o, size_t *size)
{
    *size = idcomp_save_size (o->ids, IDCOMP_WITHOUT_LOCAL);
    void *form = malloc (*size);

    if (form && idcomp_save (o->ids, IDCOMP_WITHOUT_LOCAL, form, *size) < 0) {
        free (form);
        form = NULL;
    }
    return form;
}
