/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease_relay.c - lease requests combined on the way up, and answers split
 *
 * Requests are in one list in order of arrival. Sent requests carry the tag of their combined request, and are
 * adjacent. They leave the list only in answer_item (), which answers them.
 */
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/lease/lease_relay.h"

#define PACE_US 20000 /* so short that a request passes a few hops before a rank without a lease asks again (held.c) */

struct lease_relay_item {
    TAILQ_ENTRY (lease_relay_item) link;
    void *cookie;
    uint64_t received_us;
    uint32_t tag; /* 0: waits */
    size_t nwant;
    struct want want[];
};

void lease_relay_init (struct lease_relay *r, uint64_t lease_ms, lease_relay_reply_f reply, void *arg)
{
    *r = (struct lease_relay){ .lease_ms = lease_ms, .reply = reply, .arg = arg, .due_us = UINT64_MAX };
    TAILQ_INIT (&r->items);
}

void lease_relay_fini (struct lease_relay *r)
{
    struct lease_relay_item *item;

    while ((item = TAILQ_FIRST (&r->items))) {
        TAILQ_REMOVE (&r->items, item, link);
        free (item);
    }
    free (r->back);
    lease_request_fini (&r->out);
}

uint64_t lease_relay_pace_us (const struct lease_relay *r)
{
    return min_u64 (PACE_US, r->lease_ms * 1000 / 240);
}

/* Whether one of the senders cannot wait, because it holds nothing, or holds its lease not much longer. */
static bool urgent (const struct lease_relay *r, uint64_t now_ms, const struct lease_request *req)
{
    for (size_t i = 0; i < req->nwant; i++)
        if (req->want[i].size > 0 && req->want[i].end_ms < now_ms + r->lease_ms / 3)
            return true;
    return false;
}

int lease_relay_add_return (struct lease_relay *r, const struct want *back)
{
    struct want *all = realloc (r->back, (r->nback + 1) * sizeof (*all));

    if (!all)
        return -1;
    r->back = all;
    r->back[r->nback++] = *back;
    return 0;
}

static int add_returns (struct lease_relay *r, const struct lease_request *req)
{
    for (size_t i = 0; i < req->nwant; i++)
        if (req->want[i].size == 0 && lease_relay_add_return (r, &req->want[i]) < 0)
            return -1;
    return 0;
}

static struct lease_relay_item *make_item (void *cookie, uint64_t now_us, const struct lease_request *req)
{
    struct lease_relay_item *item = calloc (1, sizeof (*item) + req->nwant * sizeof (item->want[0]));

    if (!item)
        return NULL;
    *item = (struct lease_relay_item){ .cookie = cookie, .received_us = now_us };
    for (size_t i = 0; i < req->nwant; i++)
        if (req->want[i].size > 0)
            item->want[item->nwant++] = req->want[i];
    return item;
}

int lease_relay_add (struct lease_relay *r, uint64_t now_us, uint64_t now_ms, void *cookie,
                     const struct lease_request *req)
{
    if (r->nwants + req->nwant > LEASE_RELAY_MAX_WANTS || r->nback + req->nwant > LEASE_RELAY_MAX_WANTS)
        return errset (ENOBUFS);
    struct lease_relay_item *item = make_item (cookie, now_us, req);
    if (!item || add_returns (r, req) < 0) {
        free (item);
        return errset (ENOMEM);
    }
    TAILQ_INSERT_TAIL (&r->items, item, link);
    if (!r->waiting)
        r->waiting = item;
    r->nwaiting += item->nwant;
    r->nwants += item->nwant;
    if (req->has_epoch) {
        r->odd_epoch = true;
        r->epoch_ms = req->epoch_ms;
    }
    uint64_t due_us = urgent (r, now_ms, req) ? now_us : now_us + r->lease_ms * 1000 / 12;
    r->due_us = min_u64 (r->due_us, max_u64 (due_us, r->open_us));
    return 0;
}

/* Move the requests that wait into 'want', and mark them as sent. */
static void take_waiting (struct lease_relay *r, uint32_t tag, struct want *want)
{
    for (struct lease_relay_item *item = r->waiting; item; item = TAILQ_NEXT (item, link)) {
        item->tag = tag;
        if (item->nwant > 0)
            memcpy (want, item->want, item->nwant * sizeof (*want));
        want += item->nwant;
    }
    r->waiting = NULL;
    r->nwaiting = 0;
}

uint32_t lease_relay_flush (struct lease_relay *r, uint64_t now_us, const struct want *own, struct lease_request *req)
{
    size_t nwant = r->nback + r->nwaiting + (own != NULL);

    lease_request_fini (&r->out);
    if (nwant == 0 && r->due_us == UINT64_MAX)
        return 0;
    struct want *want = malloc ((nwant + 1) * sizeof (*want));
    if (!want) {
        r->due_us = now_us + r->lease_ms * 1000 / 12;
        return 0;
    }
    r->last_tag = r->last_tag < LEASE_RELAY_LAST_TAG ? r->last_tag + 1 : 1;
    if (r->nback > 0)
        memcpy (want, r->back, r->nback * sizeof (*want));
    take_waiting (r, r->last_tag, want + r->nback);
    if (own)
        want[nwant - 1] = *own;
    r->out.want = want;
    r->out.nwant = nwant;
    r->out.has_epoch = r->odd_epoch;
    r->out.epoch_ms = r->epoch_ms;
    free (r->back);
    r->back = NULL;
    r->nback = 0;
    r->odd_epoch = false;
    r->due_us = UINT64_MAX;
    r->open_us = now_us + lease_relay_pace_us (r);
    *req = r->out;
    return r->last_tag;
}

/* Order by rank, then incarnation. */
static int compare_grants (const void *a, const void *b)
{
    const struct grant *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp (x->incarnation, y->incarnation);
}

/* The grant in sorted 'grant' that answers 'want'. NULL: nothing was granted. Two brokers may claim one rank, so the
 * incarnation must match (rule OWN_ANSWER).
 */
static const struct grant *find (const struct want *want, const struct grant *grant, size_t n)
{
    struct grant key = { .rank = want->rank };

    memcpy (key.incarnation, want->incarnation, sizeof (key.incarnation));
    return n > 0 ? bsearch (&key, grant, n, sizeof (key), compare_grants) : NULL;
}

/* Remove an item and answer it with its part of 'grant' (sorted). */
static void answer_item (struct lease_relay *r, uint64_t now_us, struct lease_relay_item *item,
                         const struct grant *grant, size_t ngrant)
{
    struct grant *share = ngrant > 0 ? malloc ((item->nwant + 1) * sizeof (*share)) : NULL;
    size_t n = 0;

    if (item->tag == 0)
        r->nwaiting -= item->nwant;
    if (item == r->waiting)
        r->waiting = TAILQ_NEXT (item, link);
    TAILQ_REMOVE (&r->items, item, link);
    r->nwants -= item->nwant;
    for (size_t i = 0; share && i < item->nwant; i++) {
        const struct grant *g = find (&item->want[i], grant, ngrant);
        if (g)
            share[n++] = *g;
    }
    r->reply (r->arg, now_us, item->cookie, item->received_us, share, n);
    free (share);
    free (item);
}

void lease_relay_answered (struct lease_relay *r, uint64_t now_us, uint32_t tag, const struct grant *grant,
                           size_t ngrant)
{
    struct grant *sorted = ngrant > 0 ? malloc (ngrant * sizeof (*sorted)) : NULL;
    struct lease_relay_item *item, *next;

    if (sorted) {
        memcpy (sorted, grant, ngrant * sizeof (*sorted));
        qsort (sorted, ngrant, sizeof (*sorted), compare_grants);
    }
    for (item = TAILQ_FIRST (&r->items); item && item->tag != tag; item = TAILQ_NEXT (item, link))
        ;
    for (; item && tag != 0 && item->tag == tag; item = next) { /* sent together, so adjacent */
        next = TAILQ_NEXT (item, link);
        answer_item (r, now_us, item, sorted, sorted ? ngrant : 0);
    }
    free (sorted);
}

void lease_relay_drop_old (struct lease_relay *r, uint64_t now_us, uint64_t before_us)
{
    while (lease_relay_oldest (r) < before_us)
        answer_item (r, now_us, TAILQ_FIRST (&r->items), NULL, 0);
    if (TAILQ_EMPTY (&r->items) && r->nback == 0)
        r->due_us = UINT64_MAX;
}

void lease_relay_jumped (struct lease_relay *r, uint64_t now_us, uint64_t us)
{
    struct lease_relay_item *item;

    TAILQ_FOREACH (item, &r->items, link)
        item->received_us = min_u64 (item->received_us + us, now_us);
}

uint64_t lease_relay_oldest (const struct lease_relay *r)
{
    const struct lease_relay_item *item = TAILQ_FIRST (&r->items);

    return item ? item->received_us : UINT64_MAX;
}
