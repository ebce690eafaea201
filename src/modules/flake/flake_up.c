/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_up.c - what goes up: requests for ids of one kind, combined to batches
 *
 * Of those that can be answered together (one queue, the same meta and drift) one batch is on its way; others gather in
 * the next.  A batch that is full does not wait.  It is not larger, for it must stay one of few ids at each hop, where
 * it is combined again.
 *
 * A share that is answered while its batch is on its way keeps its place in it, without a cookie.
 */
#include <errno.h>
#include <stdlib.h>

#include "modules/flake/private.h"

#define RETRY_US 50000 /* before requests whose way up was broken are sent again */

/* --- batches ----------------------------------------------------------------------------------- */

static bool goes_with (const struct batch *b, const struct scheme_queue *queue, const struct flake_request *req)
{
    return b->queue == queue && b->req.meta == req->meta && b->req.drift == req->drift;
}

static void remove_share (struct flake *f, struct batch *b, struct pending *p)
{
    TAILQ_REMOVE (&b->shares, p, place);
    f->nshares--;
}

/* Nothing is left in it. */
static void end (struct flake *f, struct batch *b)
{
    TAILQ_REMOVE (&f->up, b, link);
    f->nup--;
    free (b);
}

static struct batch *create (struct flake *f, struct scheme_queue *queue, const struct flake_request *req)
{
    struct batch *b = f->nup < FLAKE_MAX_UP ? calloc (1, sizeof (*b)) : NULL;

    if (!b)
        return NULL;
    b->queue = queue;
    b->req = (struct flake_request){ .kind = req->kind, .meta = req->meta, .drift = req->drift };
    TAILQ_INIT (&b->shares);
    TAILQ_INSERT_TAIL (&f->up, b, link);
    f->nup++;
    return b;
}

/* Where a request may be added: others with which it does not fit are full. */
static struct batch *find_open (struct flake *f, const struct scheme_queue *queue, const struct flake_request *req)
{
    struct batch *b;

    TAILQ_FOREACH (b, &f->up, link) {
        if (b->full || b->tag != 0 || !goes_with (b, queue, req))
            continue;
        if (b->req.count + req->count <= FLAKE_FEW)
            return b;
        b->full = true;
    }
    return NULL;
}

bool flake_up_add (struct flake *f, uint64_t now_us, struct scheme_queue *queue)
{
    struct pending *p = queue->current;
    struct batch *b;

    if (queue->retry_us > now_us) {
        flake_wake (f, queue->retry_us);
        return false;
    }
    if (f->nshares >= FLAKE_MAX_SHARES || (!(b = find_open (f, queue, &p->req)) && !(b = create (f, queue, &p->req)))) {
        flake_wake (f, now_us + RETRY_US); /* or when an answer comes */
        return false;
    }
    p->got = 0;
    p->batch = b;
    scheme_queue_went_up (queue);
    TAILQ_INSERT_TAIL (&b->shares, p, place);
    f->nshares++;
    b->req.count += p->req.count;
    b->full = b->req.count >= FLAKE_FEW;
    return true;
}

void flake_up_forget (struct flake *f, struct pending *p)
{
    struct batch *b = p->batch;

    p->req.cookie = NULL;
    if (b->tag != 0)
        return;
    b->req.count -= p->req.count;
    remove_share (f, b, p);
    free (p);
    if (TAILQ_EMPTY (&b->shares))
        end (f, b);
}

/* --- sending ------------------------------------------------------------------------------------- */

/* All its requests are next again. */
static void put_again (struct flake *f, uint64_t now_us, struct batch *b)
{
    struct pending *p;

    while ((p = TAILQ_FIRST (&b->shares))) {
        remove_share (f, b, p);
        if (p->req.cookie)
            scheme_queue_put_again (p->queue, p);
        else
            free (p);
    }
    b->queue->retry_us = now_us + RETRY_US;
    flake_wake (f, b->queue->retry_us);
    end (f, b);
}

static bool is_under_way (const struct flake *f, const struct batch *like)
{
    const struct batch *b;

    TAILQ_FOREACH (b, &f->up, link)
        if (b->tag != 0 && goes_with (b, like->queue, &like->req))
            return true;
    return false;
}

static void send (struct flake *f, uint64_t now_us, struct batch *b)
{
    if (++f->tag == 0)
        f->tag++;
    b->tag = f->tag;
    if (f->ops->forward (f->arg, b->tag, &b->req) < 0) {
        put_again (f, now_us, b);
        return;
    }
    f->stats.forwards++;
    for (const struct pending *p = TAILQ_NEXT (TAILQ_FIRST (&b->shares), place); p; p = TAILQ_NEXT (p, place))
        f->stats.combined++;
}

void flake_up_send (struct flake *f, uint64_t now_us, struct scheme_queue *queue)
{
    struct batch *b, *next;

    for (b = TAILQ_FIRST (&f->up); b; b = next) {
        next = TAILQ_NEXT (b, link);
        if (b->queue == queue && b->tag == 0 && (b->full || !is_under_way (f, b)))
            send (f, now_us, b);
    }
}

/* --- answers --------------------------------------------------------------------------------------- */

/* Answers come mostly in the order of the batches. */
static struct batch *find (const struct flake *f, uint32_t tag)
{
    struct batch *b;

    TAILQ_FOREACH (b, &f->up, link)
        if (b->tag == tag && tag != 0)
            return b;
    return NULL;
}

uint32_t flake_forward_count (const struct flake *f, uint32_t tag)
{
    const struct batch *b = find (f, tag);

    return b ? b->req.count : 0;
}

void flake_forwarded (struct flake *f, uint64_t now_us, uint32_t tag)
{
    struct batch *b = find (f, tag);
    struct pending *p;
    uint32_t first = 0;

    if (!b)
        return;
    while ((p = TAILQ_FIRST (&b->shares))) {
        remove_share (f, b, p);
        if (p->req.cookie) {
            f->ops->pass (f->arg, p->req.cookie, first, p->req.count);
            TAILQ_REMOVE (&f->all, p, link);
        }
        first += p->req.count;
        free (p);
    }
    end (f, b);
    flake_wake (f, now_us); /* what came meanwhile can go */
}

static void fail_all (struct flake *f, struct batch *b, int errnum, const char *text)
{
    struct pending *p;

    TAILQ_FOREACH (p, &b->shares, place)
        if (p->req.cookie)
            flake_fail (f, p, errnum, text);
    while ((p = TAILQ_FIRST (&b->shares))) {
        remove_share (f, b, p);
        free (p);
    }
    end (f, b);
}

/* A way that was broken may be whole again; what the parent says is the answer. */
void flake_forward_failed (struct flake *f, uint64_t now_us, uint32_t tag, int errnum, const char *text)
{
    struct batch *b = find (f, tag);

    if (!b)
        return;
    if (errnum == EHOSTUNREACH)
        put_again (f, now_us, b);
    else
        fail_all (f, b, errnum, text);
    flake_tick (f, now_us);
}

void flake_up_fini (struct flake *f)
{
    struct batch *b;
    struct pending *p;

    while ((b = TAILQ_FIRST (&f->up))) {
        while ((p = TAILQ_FIRST (&b->shares))) {
            remove_share (f, b, p);
            free (p);
        }
        end (f, b);
    }
}
