/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_up.c - requests of one kind that are forwarded to the parent, combined into batches
 *
 * Requests can share a batch if they are in the same queue and have the same meta and drift. Of such batches one is
 * under way, and later requests are collected in the next. A full batch (FLAKE_FEW ids) is sent without waiting.
 * Batches are not larger, so that each hop, where they are combined again, handles them like other requests for few
 * ids.
 *
 * A request that is answered while its batch is under way stays in the batch, without a cookie, until the batch is
 * answered.
 */
#include <errno.h>
#include <stdlib.h>

#include "modules/flake/private.h"

#define RETRY_US 50000 /* pause before batches are sent again after a broken connection */

/* --- batches ----------------------------------------------------------------------------------- */

static bool goes_with (const struct batch *b, const struct scheme_queue *queue, const struct flake_request *req)
{
    return b->queue == queue && b->req.meta == req->meta && b->req.drift == req->drift;
}

static void remove_share (struct flake *f, struct batch *b, struct flake_pending *p)
{
    TAILQ_REMOVE (&b->shares, p, place);
    f->nshares--;
}

/* Free a batch without requests. */
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

/* The batch to which the request can be added, or NULL. A batch in which the request does not fit is marked as full. */
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
    struct flake_pending *p = queue->current;
    struct batch *b;

    if (queue->retry_us > now_us) {
        flake_wake (f, queue->retry_us);
        return false;
    }
    if (f->nshares >= FLAKE_MAX_SHARES || (!(b = find_open (f, queue, &p->req)) && !(b = create (f, queue, &p->req)))) {
        flake_wake (f, now_us + RETRY_US); /* an answer may wake it sooner */
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

void flake_up_forget (struct flake *f, struct flake_pending *p)
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

/* Put the requests of a batch that could not be sent at the head of their queue. */
static void put_again (struct flake *f, uint64_t now_us, struct batch *b)
{
    struct flake_pending *p;

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
    for (const struct flake_pending *p = TAILQ_NEXT (TAILQ_FIRST (&b->shares), place); p; p = TAILQ_NEXT (p, place))
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

/* Answers mostly arrive in the order of the batches, so the search is short. */
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
    struct flake_pending *p;
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
    flake_wake (f, now_us); /* send the next batch */
}

static void fail_all (struct flake *f, struct batch *b, int errnum, const char *text)
{
    struct flake_pending *p;

    TAILQ_FOREACH (p, &b->shares, place)
        if (p->req.cookie)
            flake_fail (f, p, errnum, text);
    while ((p = TAILQ_FIRST (&b->shares))) {
        remove_share (f, b, p);
        free (p);
    }
    end (f, b);
}

/* After EHOSTUNREACH the requests are sent again, because the connection may work again. Other errors are answers of
 * the parent, and are passed on.
 */
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
    struct flake_pending *p;

    while ((b = TAILQ_FIRST (&f->up))) {
        while ((p = TAILQ_FIRST (&b->shares))) {
            remove_share (f, b, p);
            free (p);
        }
        end (f, b);
    }
}
