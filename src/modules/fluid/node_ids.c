/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node_ids.c - a node's requests for ids: taken, served here, given up
 *
 * Ids leave a node in increasing order: each one that is answered is above all that were answered before
 * ('last_id').  Our own generator is advanced over ids that came from above, requests that go up carry
 * 'last_id', and an answer from above is not used once ours has gone on.
 *
 * A request waits in the queue from when it cannot be served at once until it is complete.  While the node cannot
 * generate, what waits goes up (node_forward.c).
 */
#include <errno.h>

#include "modules/fluid/node_private.h"

#define MAX_BROKERS_WAITING 65536 /* requests; each child has one or two here */
#define TIME_UNKNOWN UINT64_MAX   /* as arrival_ms */
#define OVERLOAD "more ids are asked for than can be made in fluid.max-backlog: ask again later, or elsewhere"

/* --- order ----------------------------------------------------------------------------------- */

/* The first millisecond in which all ids of our generator, if we own one, are above 'id'. */
static uint64_t above_ms (const struct node *n, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    return f.timestamp_ms + (n->owner && f.generator >= n->gen.generator);
}

/* Ids made here are above 'last_id' anyhow. */
uint64_t node_ids_floor_ms (const struct node *n, fluid_t after)
{
    return after > n->last_id ? above_ms (n, after) : 0;
}

static void step_to (struct node *n, uint64_t now_us, fluid_t id)
{
    clock_forward (&n->clock, now_us, fluid_split (id).timestamp_ms * 1000);
}

void node_ids_follow (struct node *n, uint64_t now_us, fluid_t last)
{
    uint64_t ms = above_ms (n, last);

    n->last_id = last;
    fluid_gen_advance (&n->gen, ms);
    if (n->cursor_ms < ms)
        n->cursor_ms = ms;
    step_to (n, now_us, last);
}

static uint64_t later_ms (uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Ids that a request waits with count as not made yet; milliseconds that passed while it waited may be filled. */
uint64_t node_position_ms (const struct node *n, uint64_t now_us)
{
    uint64_t ms = later_ms (node_now_ms (n, now_us), n->cursor_ms);

    for (const struct pending *p = n->queue.first; p; p = p->next) {
        uint64_t oldest_ms
            = p->nruns > 0 ? fluid_split (p->run[0].first).timestamp_ms : later_ms (p->arrival_ms, n->cursor_ms);

        if (oldest_ms < ms)
            ms = oldest_ms;
    }
    return ms;
}

/* --- answers --------------------------------------------------------------------------------- */

static void note_wait (struct node *n, uint64_t now_us, const struct pending *p)
{
    uint64_t us = now_us > p->arrival_us ? now_us - p->arrival_us : 0;

    if (n->stats.longest_stall_us < us)
        n->stats.longest_stall_us = us;
}

static void fail (struct node *n, void *cookie, int errnum, const char *text)
{
    if (errnum == EAGAIN)
        n->stats.refused++;
    else if (errnum == EHOSTUNREACH)
        n->stats.unreachable++;
    n->ops->fail (n->arg, cookie, errnum, text);
}

/* The request is answered: forget it, but where its share is still to come from above it keeps its place. */
static void leave (struct node *n, struct pending *p)
{
    p->cookie = NULL;
    if (p->asked == 0)
        queue_remove (&n->queue, p);
}

void node_ids_leave_failed (struct node *n, struct pending *p, int errnum, const char *text)
{
    fail (n, p->cookie, errnum, text);
    leave (n, p);
}

void node_ids_leave_complete (struct node *n, uint64_t now_us, struct pending *p)
{
    note_wait (n, now_us, p);
    n->ops->reply (n->arg, p->cookie, p->run, p->nruns);
    leave (n, p);
}

/* --- generating ------------------------------------------------------------------------------ */

/* Make up to 'want' ids at 't_ms', which node_may_generate () allowed.  Returns how many, 0: none left. */
static uint32_t reserve (struct node *n, uint64_t t_ms, uint32_t want, fluid_t *first)
{
    int got = fluid_gen_reserve (&n->gen, t_ms, want, first);

    if (got <= 0)
        return 0;
    n->cursor_ms = t_ms;
    n->last_id = *first + (uint32_t) got - 1;
    n->stats.ids += (uint64_t) got;
    return (uint32_t) got;
}

/* Whether a request may be served at '*now_ms', as to order.  For a child's sake the clock steps forward; a
 * client's 'after' never moves it (he may ask for any), and the root's clock is moved by nobody.
 */
static bool is_ripe (struct node *n, uint64_t now_us, bool from_broker, fluid_t after, uint64_t *now_ms)
{
    uint64_t ms = node_ids_floor_ms (n, after);

    if (ms <= *now_ms)
        return true;
    if (!from_broker || n->root)
        return false;
    step_to (n, now_us, after);
    return node_may_generate (n, now_us, now_ms) && ms <= *now_ms;
}

/* The first millisecond that a waiting request may use: one that passed while it waited will do. */
static uint64_t first_ms (const struct node *n, const struct pending *p)
{
    uint64_t ms = node_ids_floor_ms (n, p->after);

    if (ms < p->arrival_ms)
        ms = p->arrival_ms;
    if (ms < n->cur.lo_ms)
        ms = n->cur.lo_ms;
    return ms > n->cursor_ms ? ms : n->cursor_ms;
}

/* Give a waiting request what it lacks, as far as the time allows.  Returns whether it is complete. */
static bool generate (struct node *n, struct pending *p, uint64_t now_ms)
{
    for (uint64_t t = first_ms (n, p); t <= now_ms && p->got < p->count; t++) {
        fluid_t first;
        uint32_t got = reserve (n, t, p->count - p->got, &first);

        if (got > 0 && queue_add_run (&n->queue, p, first, got) < 0)
            return false;
    }
    return p->got == p->count;
}

/* A request that has some of its ids goes first from now on: those that it passed were not ripe, and their ids will
 * be above.  There is one such at most.
 */
static void begun (struct node *n, struct pending *p)
{
    if (p->got > 0 && n->queue.first != p)
        queue_to_front (&n->queue, p);
}

static void generate_waiting (struct node *n, uint64_t now_us, uint64_t now_ms)
{
    struct pending *next;

    for (struct pending *p = n->queue.first; p; p = next) {
        next = p->next;
        bool ripe = is_ripe (n, now_us, p->from_broker, p->after, &now_ms);

        if (!node_may_generate (n, now_us, &now_ms))
            return;
        if (!ripe)
            continue;
        if (!generate (n, p, now_ms)) { /* this millisecond is used up */
            begun (n, p);
            break;
        }
        node_ids_leave_complete (n, now_us, p);
    }
    if (n->queue.first)
        node_wake_ms (n, now_us, now_ms + 1);
}

/* --- far ahead ------------------------------------------------------------------------------- */

/* Whether a request names an id so far ahead of the time here that it is not waited for.  A client may name what he
 * likes; a broker has seen the id, and none lies more than two leases ahead of the root's time, which a crash may add.
 */
static bool is_far (const struct node *n, uint64_t now_us, bool from_broker, fluid_t after)
{
    uint64_t reach_ms = n->config.max_backlog_ms + (from_broker && !n->root ? 2 * n->root_lease_ms : 0);

    return n->clock.known && node_ids_floor_ms (n, after) > node_now_ms (n, now_us) + reach_ms;
}

#define FAR_AHEAD "the id that these must be above lies more than fluid.max-backlog ahead of the time here"

/* Requests that came before the time was known: now they can be judged. */
static void judge (struct node *n, uint64_t now_us)
{
    struct pending *next;

    n->unjudged = false;
    for (struct pending *p = n->queue.first; p; p = next) {
        next = p->next;
        if (p->arrival_ms != TIME_UNKNOWN)
            continue;
        p->arrival_ms = node_now_ms (n, now_us);
        if (p->cookie && is_far (n, now_us, p->from_broker, p->after))
            node_ids_leave_failed (n, p, EAGAIN, FAR_AHEAD);
    }
}

/* --- deadlines ------------------------------------------------------------------------------- */

static const char *unreachable (const struct node *n)
{
    if (!n->root)
        return n->parent_up ? "no ancestor answered within fluid.forward-timeout"
                            : "no lease, and no parent broker within fluid.forward-timeout";
    if (lease_is_distrusted (n->table))
        return "rank 0 gives no leases: brokers hold some of another statedir; start it with the right one";
    return "rank 0 waits until its horizon can be stored; see its log";
}

/* Fail those that waited long enough: for somebody who serves, or where ids are made for their turn, too.  The queue is in
 * order of arrival, so of deadlines, but for one that was begun.
 */
static void expire (struct node *n, uint64_t now_us, bool active)
{
    uint64_t timeout_us = (n->config.forward_timeout_ms + (active ? n->config.max_backlog_ms : 0)) * 1000;
    struct pending *next;

    for (struct pending *p = n->queue.first; p; p = next) {
        next = p->next;
        bool expired = p->arrival_us + timeout_us <= now_us;

        if (p->cookie && !expired)
            node_wake (n, p->arrival_us + timeout_us);
        if (p->cookie && !expired && p->got == 0)
            break;
        if (p->cookie && expired && active)
            node_ids_leave_failed (n, p, EAGAIN, OVERLOAD);
        else if (p->cookie && expired)
            node_ids_leave_failed (n, p, EHOSTUNREACH, unreachable (n));
    }
    node_forward_review (n);
}

/* The 40 bits of time are used up: only the root's clock may say so. */
static bool is_over (const struct node *n, uint64_t now_us)
{
    return n->root && node_now_ms (n, now_us) > FLUID_TIMESTAMP_MAX;
}

static void fail_all (struct node *n, int errnum, const char *text)
{
    n->forward.busy = false;
    while (n->queue.first) {
        struct pending *p = n->queue.first;

        p->asked = 0;
        if (p->cookie)
            node_ids_leave_failed (n, p, errnum, text);
        else
            queue_remove (&n->queue, p);
    }
}

void node_ids_stop (struct node *n)
{
    fail_all (n, EHOSTUNREACH, "the fluid service of this broker is stopping");
}

void node_ids_work (struct node *n, uint64_t now_us)
{
    uint64_t now_ms;

    if (!n->queue.first)
        return;
    if (n->unjudged && n->clock.known)
        judge (n, now_us);
    if (node_may_generate (n, now_us, &now_ms)) {
        node_forward_abandon (n);
        generate_waiting (n, now_us, now_ms);
    }
    bool active = node_may_generate (n, now_us, &now_ms);
    expire (n, now_us, active);
    if (active)
        return;
    if (is_over (n, now_us))
        fail_all (n, EOVERFLOW, "the 40 bits of time since the instance's epoch are used up");
    else if (!n->root)
        node_forward_waiting (n, now_us); /* B_FORWARD: whoever cannot generate, whyever */
}

/* --- requests -------------------------------------------------------------------------------- */

/* Serve a request at once, wholly or in part.  Returns how many ids it got. */
static uint32_t serve_now (struct node *n, uint64_t now_us, const struct node_request *req, fluid_t *first)
{
    uint64_t now_ms;

    if (n->queue.first || !node_may_generate (n, now_us, &now_ms)
        || !is_ripe (n, now_us, req->from_broker, req->after, &now_ms))
        return 0;
    return reserve (n, now_ms, req->count, first);
}

/* Why a request may not wait; NULL: it may. */
static const char *overload (const struct node *n, uint64_t now_us, const struct node_request *req)
{
    uint64_t max_ms = n->config.max_backlog_ms;

    if (is_far (n, now_us, req->from_broker, req->after))
        return FAR_AHEAD;
    if (req->from_broker)
        return n->queue.length < MAX_BROKERS_WAITING ? NULL : "too many brokers' requests wait";
    if (n->queue.missing + req->count > (max_ms + 1) * FLUID_PER_MS)
        return OVERLOAD;
    if (n->queue.length >= n->config.max_waiting)
        return "fluid.max-waiting requests wait already: ask again later, or for more ids at a time";
    return NULL;
}

static void enqueue (struct node *n, uint64_t now_us, const struct node_request *req, fluid_t first, uint32_t got)
{
    struct pending *p = queue_add (&n->queue, req->count);

    if (!p) {
        fail (n, req->cookie, ENOMEM, NULL);
        return;
    }
    p->cookie = req->cookie;
    p->from_broker = req->from_broker;
    p->after = req->after;
    p->arrival_us = now_us;
    p->arrival_ms = n->clock.known ? node_now_ms (n, now_us) : TIME_UNKNOWN;
    n->unjudged = n->unjudged || !n->clock.known;
    n->stats.stalls++;
    if (got > 0 && queue_add_run (&n->queue, p, first, got) < 0)
        node_ids_leave_failed (n, p, ENOMEM, NULL);
    node_tick (n, now_us);
}

void node_block (struct node *n, uint64_t now_us, const struct node_request *req)
{
    fluid_t first = 0;
    const char *why;

    n->stats.requests++;
    if (req->count < 1 || req->count > NODE_MAX_COUNT) {
        fail (n, req->cookie, EINVAL, "count must be 1 to 65536");
        return;
    }
    if (n->stopped) {
        fail (n, req->cookie, EHOSTUNREACH, "the fluid service of this broker is stopping");
        return;
    }
    if ((why = overload (n, now_us, req))) {
        fail (n, req->cookie, EAGAIN, why);
        return;
    }
    uint32_t got = serve_now (n, now_us, req, &first);
    if (got == req->count)
        n->ops->reply (n->arg, req->cookie, &(struct run){first, got}, 1);
    else
        enqueue (n, now_us, req, first, got);
}

void node_cancel (struct node *n, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg)
{
    struct pending *next;

    for (struct pending *p = n->queue.first; p; p = next) {
        next = p->next;
        if (p->cookie && gone (p->cookie, arg))
            leave (n, p);
    }
    node_tick (n, now_us);
}
