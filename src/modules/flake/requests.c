/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* requests.c - the requests that a node has not answered: queues, and batches that are forwarded to the parent */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "libutil/minmax.h"
#include "modules/flake/requests.h"

#define QUANTUM 4096     /* ids that a requester gets in one turn; each request counts as FLAKE_REQUEST_COST ids more */
#define EXPIRE_US 100000 /* interval at which a request that may wait longer is checked again */
#define RETRY_US 50000   /* pause before batches are sent again after a broken connection */

/* Requests that are forwarded together. */
struct batch {
    TAILQ_ENTRY (batch) link;
    struct scheme_queue *queue; /* the queue of all its requests */
    struct pendings shares;     /* its requests; the parent's ids are split among them in this order */
    struct flake_request req;   /* the request to the parent; without cookie and requester */
    uint32_t tag;               /* 0: not sent yet */
    bool full;                  /* no request can be added */
};

static void wake (struct requests *r, uint64_t at_us)
{
    r->wake_us = min_u64 (r->wake_us, at_us);
}

/* --- batches ----------------------------------------------------------------------------------- */

static bool goes_with (const struct batch *b, const struct scheme_queue *queue, const struct flake_request *req)
{
    return b->queue == queue && b->req.meta == req->meta && b->req.drift == req->drift;
}

static void remove_share (struct requests *r, struct batch *b, struct flake_pending *p)
{
    assert (r->nshares > 0);
    TAILQ_REMOVE (&b->shares, p, place);
    r->nshares--;
}

/* Free a batch without requests. */
static void end (struct requests *r, struct batch *b)
{
    assert (TAILQ_EMPTY (&b->shares) && r->nup > 0);
    TAILQ_REMOVE (&r->up, b, link);
    r->nup--;
    free (b);
}

/* Free a batch and its requests, which were answered. */
static void end_all (struct requests *r, struct batch *b)
{
    struct flake_pending *p;

    while ((p = TAILQ_FIRST (&b->shares))) {
        remove_share (r, b, p);
        free (p);
    }
    end (r, b);
}

static struct batch *create (struct requests *r, struct scheme_queue *queue, const struct flake_request *req)
{
    struct batch *b = r->nup < FLAKE_MAX_UP ? calloc (1, sizeof (*b)) : NULL;

    if (!b)
        return NULL;
    b->queue = queue;
    b->req = (struct flake_request){ .kind = req->kind, .meta = req->meta, .drift = req->drift };
    TAILQ_INIT (&b->shares);
    TAILQ_INSERT_TAIL (&r->up, b, link);
    r->nup++;
    return b;
}

/* The batch to which the request can be added, or NULL. A batch in which the request does not fit is marked as full. */
static struct batch *find_open (struct requests *r, const struct scheme_queue *queue, const struct flake_request *req)
{
    struct batch *b;

    TAILQ_FOREACH (b, &r->up, link) {
        if (b->full || b->tag != 0 || !goes_with (b, queue, req))
            continue;
        if (b->req.count + req->count <= FLAKE_FEW)
            return b;
        b->full = true;
    }
    return NULL;
}

bool requests_forward (struct requests *r, uint64_t now_us, struct scheme_queue *queue)
{
    struct flake_pending *p = queue->current;
    struct batch *b;

    assert (p && p->state == CURRENT && p->queue == queue);
    if (queue->retry_us > now_us) {
        wake (r, queue->retry_us);
        return false;
    }
    if (r->nshares >= FLAKE_MAX_SHARES || (!(b = find_open (r, queue, &p->req)) && !(b = create (r, queue, &p->req)))) {
        wake (r, now_us + RETRY_US); /* an answer of the parent may wake the owner sooner */
        return false;
    }
    p->got = 0;
    p->batch = b;
    p->state = UP;
    queue->current = NULL;
    TAILQ_INSERT_TAIL (&b->shares, p, place);
    r->nshares++;
    b->req.count += p->req.count;
    b->full = b->req.count >= FLAKE_FEW;
    return true;
}

/* A request was answered: remove it from its batch. If the batch is under way, the request stays in the batch until the
 * batch is answered.
 */
static void forget_share (struct requests *r, struct flake_pending *p)
{
    struct batch *b = p->batch;

    if (b->tag != 0)
        return;
    b->req.count -= p->req.count;
    remove_share (r, b, p);
    free (p);
    if (TAILQ_EMPTY (&b->shares))
        end (r, b);
}

/* --- requests ----------------------------------------------------------------------------------- */

void requests_forget (struct requests *r, struct flake_pending *p)
{
    assert (p->req.cookie);
    TAILQ_REMOVE (&r->all, p, link);
    p->req.cookie = NULL;
    switch (p->state) {
    case WAITS: /* the request is freed in its turn */
        return;
    case UP:
        forget_share (r, p);
        return;
    case CURRENT:
        p->queue->current = NULL;
        break;
    case AGAIN:
        TAILQ_REMOVE (&p->queue->again, p, place);
    }
    free (p);
}

void requests_fail (struct requests *r, struct flake_pending *p, int errnum, const char *text)
{
    r->ops->fail (r->arg, p->req.cookie, errnum, text);
    requests_forget (r, p);
}

/* Whether the request waits for its turn in a queue whose ids are made here. Such a request may wait longer than
 * others.
 */
static bool waits_for_turn (const struct flake_pending *p)
{
    return p->queue->makes && p->state != UP;
}

static void expire_one (struct requests *r, uint64_t now_us, struct flake_pending *p)
{
    uint64_t longer_us = (FLAKE_PATIENCE - 1) * r->timeout_us;

    if (!waits_for_turn (p))
        requests_fail (r, p, EHOSTUNREACH, "no broker that can make these ids was reached in time");
    else if (p->deadline_us + longer_us <= now_us) {
        r->stats->refused++;
        requests_fail (r, p, EAGAIN, "too many ids are requested to make them in time: try again later");
    }
    else /* check it again soon, because its ids may no longer be made here then */
        r->expire_us = min_u64 (r->expire_us, now_us + EXPIRE_US);
}

void requests_expire (struct requests *r, uint64_t now_us)
{
    struct flake_pending *p, *next;

    if (r->expire_us <= now_us) {
        r->expire_us = UINT64_MAX;
        for (p = TAILQ_FIRST (&r->all); p && p->deadline_us <= now_us; p = next) {
            next = TAILQ_NEXT (p, link);
            expire_one (r, now_us, p);
        }
        if (p)
            r->expire_us = min_u64 (r->expire_us, p->deadline_us);
    }
    wake (r, r->expire_us);
}

/* The queue for a request. A request for few ids goes into the queue for many ids if an earlier request of the same
 * requester is in that queue.
 */
static struct scheme_queue *queue_for (struct requests *r, const struct flake_request *req)
{
    struct scheme_queue *many = &r->many[req->kind];
    bool behind = drr_queue_flow_count (many->waiting, req->asker) > 0
                  || (many->current && many->current->req.asker == req->asker);

    return req->count > FLAKE_FEW || behind ? many : &r->few[req->kind];
}

int requests_put (struct requests *r, uint64_t now_us, const struct flake_request *req)
{
    struct flake_pending *p = calloc (1, sizeof (*p));

    assert (req->cookie && req->count >= 1);
    if (!p)
        return -1;
    p->req = *req;
    p->queue = queue_for (r, req);
    p->deadline_us = now_us + r->timeout_us;
    if (drr_queue_put_of (p->queue->waiting, req->user, req->asker, p, req->count + FLAKE_REQUEST_COST) < 0) {
        free (p);
        return -1;
    }
    TAILQ_INSERT_TAIL (&r->all, p, link);
    r->expire_us = min_u64 (r->expire_us, p->deadline_us);
    return 0;
}

struct flake_pending *requests_current (struct scheme_queue *queue)
{
    struct flake_pending *p = queue->current;

    if (p)
        return p;
    if ((p = TAILQ_FIRST (&queue->again)))
        TAILQ_REMOVE (&queue->again, p, place);
    while (!p && (p = drr_queue_next (queue->waiting)) && !p->req.cookie) {
        free (p);
        p = NULL;
    }
    if (p)
        p->state = CURRENT;
    return queue->current = p;
}

bool requests_queue_is_empty (const struct scheme_queue *queue)
{
    return !queue->current && TAILQ_EMPTY (&queue->again) && drr_queue_count (queue->waiting) == 0;
}

/* --- sending ------------------------------------------------------------------------------------- */

/* Put the requests of a batch that could not be sent, or got no answer, at the head of their queue. */
static void put_again (struct requests *r, uint64_t now_us, struct batch *b)
{
    struct flake_pending *p;

    while ((p = TAILQ_FIRST (&b->shares))) {
        remove_share (r, b, p);
        if (p->req.cookie) {
            p->state = AGAIN;
            TAILQ_INSERT_TAIL (&b->queue->again, p, place);
        }
        else
            free (p);
    }
    b->queue->retry_us = now_us + RETRY_US;
    wake (r, b->queue->retry_us);
    end (r, b);
}

static bool is_under_way (const struct requests *r, const struct batch *like)
{
    const struct batch *b;

    TAILQ_FOREACH (b, &r->up, link)
        if (b->tag != 0 && goes_with (b, like->queue, &like->req))
            return true;
    return false;
}

static void send (struct requests *r, uint64_t now_us, struct batch *b)
{
    assert (!TAILQ_EMPTY (&b->shares));
    if (++r->tag == 0)
        r->tag++;
    b->tag = r->tag;
    if (r->ops->forward (r->arg, b->tag, &b->req) < 0) {
        put_again (r, now_us, b);
        return;
    }
    r->stats->forwards++;
    for (const struct flake_pending *p = TAILQ_NEXT (TAILQ_FIRST (&b->shares), place); p; p = TAILQ_NEXT (p, place))
        r->stats->combined++;
}

void requests_send (struct requests *r, uint64_t now_us, struct scheme_queue *queue)
{
    struct batch *b, *next;

    for (b = TAILQ_FIRST (&r->up); b; b = next) {
        next = TAILQ_NEXT (b, link);
        if (b->queue == queue && b->tag == 0 && (b->full || !is_under_way (r, b)))
            send (r, now_us, b);
    }
}

/* --- answers of the parent ------------------------------------------------------------------------- */

/* Answers mostly arrive in the order of the batches, so the search is short. */
static struct batch *find (const struct requests *r, uint32_t tag)
{
    struct batch *b;

    TAILQ_FOREACH (b, &r->up, link)
        if (b->tag == tag && tag != 0)
            return b;
    return NULL;
}

uint32_t requests_forward_count (const struct requests *r, uint32_t tag)
{
    const struct batch *b = find (r, tag);

    return b ? b->req.count : 0;
}

void requests_forwarded (struct requests *r, uint64_t now_us, uint32_t tag)
{
    struct batch *b = find (r, tag);
    struct flake_pending *p;
    uint32_t first = 0;

    if (!b)
        return;
    TAILQ_FOREACH (p, &b->shares, place) {
        if (p->req.cookie) {
            r->ops->pass (r->arg, p->req.cookie, first, p->req.count);
            TAILQ_REMOVE (&r->all, p, link);
        }
        first += p->req.count;
    }
    assert (first == b->req.count);
    end_all (r, b);
    wake (r, now_us); /* send the next batch */
}

void requests_forward_failed (struct requests *r, uint64_t now_us, uint32_t tag, int errnum, const char *text)
{
    struct batch *b = find (r, tag);
    struct flake_pending *p;

    if (!b)
        return;
    if (errnum == EHOSTUNREACH) {
        put_again (r, now_us, b);
        return;
    }
    TAILQ_FOREACH (p, &b->shares, place)
        if (p->req.cookie)
            requests_fail (r, p, errnum, text);
    end_all (r, b);
}

/* --- begin and end ----------------------------------------------------------------------------------- */

static int queue_init (struct scheme_queue *queue, uint32_t max_waiting)
{
    TAILQ_INIT (&queue->again);
    queue->waiting = drr_queue_create (QUANTUM, max_waiting, 0);
    return queue->waiting ? 0 : -1;
}

static void free_cb (void *item, void *arg)
{
    free (item);
}

static void queue_fini (struct scheme_queue *queue)
{
    if (queue->waiting)
        drr_queue_drain (queue->waiting, free_cb, NULL);
    drr_queue_destroy (queue->waiting);
}

int requests_init (struct requests *r, const struct flake_config *config, const struct flake_ops *ops, void *arg,
                   struct flake_stats *stats)
{
    int rc = 0;

    *r = (struct requests){ .ops = ops,
                            .arg = arg,
                            .stats = stats,
                            .timeout_us = config->timeout_us,
                            .expire_us = UINT64_MAX,
                            .wake_us = UINT64_MAX };
    TAILQ_INIT (&r->all);
    TAILQ_INIT (&r->up);
    for (int i = 0; i < SERIES_KINDS; i++)
        if (queue_init (&r->few[i], config->max_waiting) < 0 || queue_init (&r->many[i], config->max_waiting) < 0)
            rc = -1;
    return rc;
}

void requests_fini (struct requests *r)
{
    struct batch *b;

    assert (TAILQ_EMPTY (&r->all));
    while ((b = TAILQ_FIRST (&r->up)))
        end_all (r, b);
    assert (r->nup == 0 && r->nshares == 0);
    for (int i = 0; i < SERIES_KINDS; i++) {
        queue_fini (&r->few[i]);
        queue_fini (&r->many[i]);
    }
}
