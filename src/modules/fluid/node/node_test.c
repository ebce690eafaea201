/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node_test.c - one node generates, waits, forwards and deals out answers; a small tree of nodes leases
 *
 * The operations of each node are recorded. The test plays its parent, its children, the disk and the time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/node_world.h"
#include "test/tap.h"
#include "modules/fluid/node/private.h"
#include "modules/fluid/node/node.h"

#define UUID WORLD_UUID
#define CHILD "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define MS UINT64_C (1000)
#define SECOND UINT64_C (1000000)
#define T0 (100 * SECOND) /* CLOCK_BOOTTIME at the start of each test */

static void create (struct world *w, uint32_t rank)
{
    struct node_config config = { .rank = rank,
                                  .max_generators = 10,
                                  .incarnation = UUID,
                                  .lease_ms = 60000,
                                  .max_backlog_ms = 2000,
                                  .forward_timeout_ms = 5000,
                                  .max_waiting = 100 };

    *w = (struct world){ .n = node_create (&config, &world_ops, w) };
}

/* Act like the adapter of rank 0: pass an event to the authority, then call node_tick () of the node beside it. */
static void tick (struct world *w, uint64_t at_us)
{
    authority_tick (w->a, at_us);
    node_tick (w->n, at_us);
}

static void stored (struct world *w, uint64_t at_us, uint64_t horizon_ms)
{
    authority_stored (w->a, at_us, horizon_ms);
    node_tick (w->n, at_us);
}

static void wall (struct world *w, uint64_t at_us, int64_t wall_us)
{
    authority_wall (w->a, at_us, wall_us);
    node_tick (w->n, at_us);
}

static void lost_time (struct world *w, uint64_t at_us, int64_t off_us, int64_t sure_us)
{
    authority_lost_time (w->a, at_us, off_us, sure_us);
    node_tick (w->n, at_us);
}

/* 'past' is the result of node_leave (). */
static void start_root_after (struct world *w, uint64_t at_us, int64_t wall_us, const struct lease_record *record,
                              const void *past, size_t size)
{
    struct authority_config config = { .max_generators = 10, .lease_ms = 60000, .epoch_ms = 100000 };
    struct authority_start start = { .wall_us = wall_us, .stored = record };

    start.past = node_remember (w->n, past, size, &start.past_size);
    w->a = authority_create (&config, &world_root_ops, w, at_us, &start);
    node_start_root (w->n, at_us, w->a);
}

static void start_root (struct world *w, uint64_t at_us, int64_t wall_us, const struct lease_record *record)
{
    start_root_after (w, at_us, wall_us, record, NULL, 0);
}

/* A root at instance time 10 s, with a stored horizon. */
static void create_root (struct world *w)
{
    create (w, 0);
    start_root (w, T0, (int64_t)(110 * SECOND), &(struct lease_record){ 0 });
    stored (w, T0, w->record.horizon_ms);
}

/* The instance's time is exactly 'inst_us' at 'at_us'. */
static void tell_time (struct world *w, uint64_t at_us, uint64_t inst_us)
{
    node_sample (w->n, at_us,
                 &(struct idt_clock_sample){
                     .sent_us = at_us, .peer_received_us = inst_us, .peer_sent_us = inst_us, .received_us = at_us });
}

/* Grant what the last lease request asked for first. */
static void give (struct world *w, uint64_t at_us, uint64_t lo_ms, uint64_t hi_ms)
{
    struct grant g = { .rank = w->want[0].rank, .number = w->want[0].number };
    struct lease_answer answer = { .grant = &g, .ngrant = 1 };

    memcpy (g.incarnation, w->want[0].incarnation, sizeof (g.incarnation));
    g.box = (struct box){ g.rank, UINT64_MAX, { lo_ms, hi_ms } };
    node_lease_answered (w->n, at_us, w->lease_tag, &answer);
}

/* An active node of rank 3 at instance time 10 s. */
static void create_active (struct world *w)
{
    create (w, 3);
    node_parent (w->n, T0, true);
    tell_time (w, T0, 10 * SECOND);
    give (w, T0, 10000, 70000);
}

/* Returns what rank 0 stores at its stop; all 0 for other ranks. */
static struct lease_record stop (struct world *w, uint64_t at_us)
{
    struct lease_record last = { 0 };

    node_stop (w->n, at_us);
    if (w->a)
        authority_close (w->a, at_us, &last);
    return last;
}

static void discard (struct world *w)
{
    node_destroy (w->n);
    authority_destroy (w->a);
}

static void destroy (struct world *w, uint64_t at_us)
{
    stop (w, at_us);
    discard (w);
}

static struct record *request (struct world *w, uint64_t at_us, size_t cookie, uint32_t count, fluid_t after,
                               bool broker)
{
    node_block (w->n, at_us, &(struct node_request){ (void *)cookie, count, after, broker, NULL, false, false });
    return &w->req[cookie];
}

static struct record *request_of (struct world *w, uint64_t at_us, size_t cookie, const char *asker, uint32_t count)
{
    node_block (w->n, at_us, &(struct node_request){ (void *)cookie, count, 0, false, asker, false, false });
    return &w->req[cookie];
}

static uint64_t ms_of (fluid_t id)
{
    return fluid_split (id).timestamp_ms;
}

static enum node_state state (struct world *w, uint64_t at_us)
{
    struct node_status status;

    node_status (w->n, at_us, &status);
    return status.state;
}

static fluid_t make_id (uint64_t ms, uint32_t generator, uint32_t sequence)
{
    fluid_t id = 0;

    fluid_join (&(struct fluid_fields){ ms, generator, sequence }, &id);
    return id;
}

/* --- generating ----------------------------------------------------------------------------------- */

static void test_generate (void)
{
    struct world w;
    struct record *r, *s;

    create_active (&w);
    ok (state (&w, T0) == NODE_ACTIVE && strcmp (node_state_name (NODE_ACTIVE), "active") == 0,
        "a node that knows the time and holds a range that contains now is active");
    r = request (&w, T0, 1, 10, 0, false);
    ok (r->answers == 1 && r->ids == 10 && r->nruns == 1 && r->first == make_id (10000, 3, 0),
        "an active node answers a request immediately, with ids of the time of its arrival");
    r = request (&w, T0, 2, 1014, 0, false);
    ok (r->ids == 1014 && r->first == make_id (10000, 3, 10), "all 1024 ids of a millisecond are made");
    r = request (&w, T0, 3, 1, 0, false);
    ok (r->answers == 0 && node_deadline (w.n) == T0 + MS,
        "the request for the 1025th id of a millisecond waits for the next millisecond");
    s = request (&w, T0 + 10, 4, 1, 0, false);
    ok (s->answers == 0, "a request that arrives while others wait is answered after them");
    node_tick (w.n, T0 + MS);
    ok (r->first == make_id (10001, 3, 0) && s->first == make_id (10001, 3, 1) && node_deadline (w.n) >= T0 + SECOND,
        "waiting requests get their ids in order of arrival");

    r = request (&w, T0 + 2 * MS, 5, 5000, 0, false);
    node_tick (w.n, T0 + 9 * MS);
    ok (r->ids == 5000 && r->sound && r->nruns == 5 && ms_of (r->first) == 10002 && ms_of (r->last) == 10006,
        "after a wait, ids of the milliseconds that passed meanwhile are made, too");
    r = request (&w, T0 + 9 * MS, 6, 1, 0, false);
    ok (ms_of (r->first) == 10009, "a new request gets no id older than itself");
    destroy (&w, T0 + 10 * MS);
}

static void test_limits (void)
{
    struct world w;
    size_t cookie = 10;
    uint64_t at = T0;

    create_active (&w);
    ok (request (&w, T0, 1, 0, 0, false)->errnum == EINVAL && request (&w, T0, 2, 65537, 0, true)->errnum == EINVAL,
        "a request for 0 ids or for more than 65536 is refused");
    while (cookie < 100 && w.req[cookie - 1].errnum == 0)
        request (&w, T0, cookie++, 65536, 0, false);
    ok (w.req[cookie - 1].errnum == EAGAIN && cookie - 10 == 32,
        "a request of a client that would wait longer than fluid.max-backlog is refused with EAGAIN");
    ok (request (&w, T0, 101, 65536, 0, true)->answers == 0,
        "a request of a broker is accepted even if it will wait longer than fluid.max-backlog");
    for (int i = 0; i < 3000 && node_stats (w.n)->ids < 65536 * 32; i++)
        node_tick (w.n, at = node_deadline (w.n));
    ok (w.req[101].ids == 65536 && w.req[101].sound && at - T0 <= 31 * 64 * MS + 64 * MS,
        "all waiting requests are completed in the time that so many ids need, because each millisecond is used");
    ok (node_stats (w.n)->waiting.refused == 1 && node_stats (w.n)->ids == 65536 * 32,
        "the counters of refused requests and of ids are exact");
    destroy (&w, at);

    create_active (&w);
    request (&w, T0, 1, 1024, 0, false);
    for (cookie = 10; cookie < 110; cookie++)
        request (&w, T0, cookie, 1, 0, false);
    ok (request (&w, T0, cookie, 1, 0, false)->errnum == EAGAIN,
        "a request above the limit of waiting requests is refused with EAGAIN");
    stop (&w, T0);
    ok (w.req[10].errnum == EHOSTUNREACH && w.req[109].answers == 1, "a node that stops answers all waiting requests");
    ok (request (&w, T0, 200, 1, 0, false)->errnum == EHOSTUNREACH,
        "a stopped node answers new requests with an error");
    discard (&w);
}

static void test_fence (void)
{
    struct world w;
    struct record *r;

    create_active (&w);
    r = request (&w, T0 + 59 * SECOND, 1, 2048, 0, false);
    ok (r->answers == 0 && w.forwards == 0,
        "a request that arrives in the last millisecond of a lease gets only a part of its ids");
    node_tick (w.n, T0 + 60 * SECOND);
    ok (r->answers == 0 && w.forwards == 1 && w.count == 1024 && w.after == make_id (69000, 3, 1023),
        "a node that was paused until its lease was over makes no further id, and forwards the rest of the request");
    ok (state (&w, T0 + 60 * SECOND) == NODE_FENCED, "a node whose lease is over is fenced");
    node_forwarded (w.n, T0 + 60 * SECOND, w.tag, &(struct id_run){ make_id (70001, 0, 0), 1024 }, 1);
    ok (r->ids == 2048 && r->sound && r->last == make_id (70001, 0, 1023),
        "the ids from the parent complete a request that got a part of its ids before");
    r = request (&w, T0 + 60 * SECOND, 2, 1, 0, false);
    give (&w, T0 + 60 * SECOND + 10, 70000, 130000);
    ok (w.forwards == 2 && r->answers == 1 && r->first == make_id (70001, 3, 0),
        "when a new lease arrives, forwarded requests are served from it, above all ids that were answered");
    node_forwarded (w.n, T0 + 60 * SECOND + 20, w.tag, &(struct id_run){ make_id (70002, 0, 0), 1 }, 1);
    ok (r->answers == 1 && r->ids == 1, "a parent's response to a request that was served from a new lease is ignored");
    destroy (&w, T0 + 61 * SECOND);

    create (&w, 3);
    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    give (&w, T0, 10005, 70000);
    ok (state (&w, T0) == NODE_FENCED && node_deadline (w.n) <= T0 + 5 * MS && state (&w, T0 + 5 * MS) == NODE_ACTIVE,
        "a lease that begins later is not used before its begin, and is used from then on");
    destroy (&w, T0);

    create (&w, 3);
    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    give (&w, T0, 10000, 200000);
    ok (ms_of (request (&w, T0 + 70 * SECOND, 1, 1, 0, false)->first) == 80000, "a range longer than a lease is used");
    node_tick (w.n, T0 + 70 * SECOND);
    give (&w, T0 + 76 * SECOND, 10000, 20000);
    r = request (&w, T0 + 76 * SECOND, 2, 1, 0, false);
    ok (r->answers == 0 && w.forwards == 1,
        "a range whose time of use is over is not used, not even after an answer without a grant");
    destroy (&w, T0 + 77 * SECOND);
}

static void test_order (void)
{
    struct world w;
    struct record *r;
    struct node_status status;

    create_active (&w);
    r = request (&w, T0, 1, 1, make_id (10000, 2, 1023), false);
    ok (r->first == make_id (10000, 3, 0),
        "a request after an id of a lower generator gets ids in the same millisecond");
    r = request (&w, T0, 2, 1, make_id (10000, 4, 0), false);
    ok (r->answers == 0, "a request after an id of a higher generator waits for the next millisecond");
    ok (request (&w, T0, 3, 1, 0, false)->first == make_id (10000, 3, 1),
        "while a request waits for the next millisecond, other requests are served");
    node_tick (w.n, T0 + MS);
    ok (w.req[2].first == make_id (10001, 3, 0),
        "a request after an id of a higher generator is served in the next millisecond");

    r = request (&w, T0 + MS, 4, 1, make_id (10501, 9, 5), false);
    node_status (w.n, T0 + MS, &status);
    ok (r->answers == 0 && status.timestamp_ms == 10001, "a client's 'after' does not move the node's clock");
    ok (request (&w, T0 + MS, 5, 1, 0, false)->first == make_id (10001, 3, 1) && r->answers == 0,
        "a client's 'after' does not delay other requests");
    ok (request (&w, T0 + 2 * MS, 6, 1, make_id (12100, 9, 5), false)->errnum == EAGAIN
            && request (&w, T0 + 2 * MS, 7, 1, UINT64_MAX, false)->errnum == EAGAIN,
        "a client's 'after' that is far ahead is refused");
    node_tick (w.n, T0 + 502 * MS);
    ok (r->first == make_id (10502, 3, 0),
        "a request whose 'after' is slightly ahead is served when that time has come");

    r = request (&w, T0 + 502 * MS, 10, 1, make_id (10502, 9, 5), false);
    request (&w, T0 + 502 * MS, 11, 2000, 0, false);
    node_tick (w.n, T0 + 503 * MS);
    node_tick (w.n, T0 + 504 * MS);
    ok (w.req[11].sound && r->answers == 1 && r->first > w.req[11].last,
        "a request that has got a part of its ids is completed before a waiting request that it overtook");

    r = request (&w, T0 + 505 * MS, 8, 1, make_id (20000, 9, 0), true);
    node_tick (w.n, node_deadline (w.n));
    node_status (w.n, T0 + 507 * MS, &status);
    ok (r->first == make_id (20001, 3, 0) && status.timestamp_ms >= 20000,
        "a broker's 'after' moves the node's clock forward");
    r = request (&w, T0 + 508 * MS, 9, 1, make_id (80000, 9, 0), true);
    ok (r->answers == 0 && w.forwards == 1 && w.after == make_id (80000, 9, 0),
        "if a broker's 'after' is outside of the lease, the request is forwarded");
    destroy (&w, T0 + SECOND);
}

/* --- by turns --------------------------------------------------------------------------------------- */

#define GREEDY "99999999-9999-4999-8999-999999999999"
#define MODEST "11111111-1111-4111-8111-111111111111"

static void test_turns (void)
{
    struct world w;
    uint64_t at = T0;

    create_active (&w);
    for (size_t i = 10; i < 40; i++)
        request_of (&w, T0, i, GREEDY, 65536);
    ok (request_of (&w, T0 + 10, 1, MODEST, 100)->answers == 0,
        "a request waits if another requester has used up the ids of the millisecond");
    node_tick (w.n, T0 + MS);
    node_tick (w.n, T0 + 2 * MS);
    ok (w.req[1].ids == 100, "in later milliseconds each requester gets ids in its turn");
    at = T0 + 2 * MS;
    ok (request_of (&w, at + 10, 2, MODEST, 40)->ids == 40 && request_of (&w, at + 20, 3, CHILD, 24)->ids == 24
            && w.req[2].first > w.req[1].last,
        "a new requester that wants few ids gets them in a millisecond whose other ids are used up");
    ok (request_of (&w, at + 30, 4, MODEST, 1)->answers == 0,
        "when the ids for new requesters are used up, a new requester waits for the next millisecond");
    request_of (&w, at + 40, 5, CHILD, 5000);
    while (w.req[5].answers == 0 && at < T0 + SECOND)
        node_tick (w.n, at = node_deadline (w.n));
    ok (w.req[4].ids == 1 && w.req[5].ids == 5000 && w.req[5].sound && at <= T0 + 13 * MS && w.req[10].answers == 0,
        "beside a greedy requester, a requester that wants more ids than a turn has gets every other millisecond");
    while (w.req[39].answers == 0 && at < T0 + 3 * SECOND)
        node_tick (w.n, at = node_deadline (w.n));
    ok (at <= T0 + 1930 * MS && w.req[39].ids == 65536 && w.req[39].first > w.req[38].last,
        "a greedy requester gets all ids that other requesters leave, in order");
    destroy (&w, at);

    create_active (&w);
    for (size_t i = 10; i < 80; i++)
        request_of (&w, T0, i, GREEDY, 65536);
    ok (w.req[40].errnum == 0 && w.req[41].errnum == EAGAIN, "a single requester may ask for as many ids as "
                                                             "fluid.max-backlog allows");
    ok (request_of (&w, T0, 1, MODEST, 65536)->errnum == 0,
        "a second requester may ask for as many ids as it gets by turns within fluid.max-backlog");
    for (size_t i = 80; i < 110; i++)
        request_of (&w, T0, i, MODEST, 65536);
    ok (w.req[93].errnum == 0 && w.req[94].errnum == EAGAIN,
        "a second requester may ask for half as many ids as fluid.max-backlog allows to a single one");
    destroy (&w, T0);

    create_active (&w);
    request_of (&w, T0, 1, GREEDY, 1024);
    for (size_t i = 10; i < 110; i++)
        request_of (&w, T0, i, GREEDY, 1);
    ok (w.req[59].errnum == 0 && w.req[60].errnum == EAGAIN && request_of (&w, T0, 2, MODEST, 1)->errnum == 0,
        "a requester holds at most as many slots for waiting requests as are free");
    destroy (&w, T0);
}

/* An answer to the last forward: 'count' ids from 'ms' on. */
static void answer_forward (struct world *w, uint64_t at_us, uint64_t ms)
{
    struct id_run run[66];
    uint32_t left = w->count;
    size_t k = 0;

    for (; left > 0; k++, left -= run[k - 1].n)
        run[k] = (struct id_run){ make_id (ms + k, 0, 0), left < 1024 ? left : 1024 };
    node_forwarded (w->n, at_us, w->tag, run, k);
}

static void test_turns_up (void)
{
    struct world w;

    create (&w, 12);
    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    request_of (&w, T0, 10, CHILD, 1);
    request_of (&w, T0, 11, GREEDY, 65536);
    request_of (&w, T0, 12, GREEDY, 65536);
    request_of (&w, T0, 1, MODEST, 20000);
    request_of (&w, T0, 2, MODEST, 5);
    request_of (&w, T0, 3, CHILD, 5);
    answer_forward (&w, T0, 9000);
    ok (w.forwards == 2 && w.count == 16384 + 16384 + 5, "a forward has ids for each waiting requester, by turns");
    answer_forward (&w, T0 + MS, 10000);
    ok (w.req[3].ids == 5 && w.req[1].answers == 0 && w.count == 16384 + 3616 + 5,
        "a requester that wanted more ids than its turn had continues in the next forward");
    answer_forward (&w, T0 + 2 * MS, 10100);
    ok (w.req[1].ids == 20000 && w.req[1].sound && w.req[2].ids == 5 && w.req[2].first > w.req[1].last
            && w.req[11].answers == 0,
        "a requester with a large request completes before a greedy requester");
    request (&w, T0 + 3 * MS, 4, 60000, 0, true);
    answer_forward (&w, T0 + 4 * MS, 10200);
    ok (w.count == 16384, "a child's forward is never split, so it waits until a forward has space for all of its ids");
    answer_forward (&w, T0 + 5 * MS, 10300);
    ok (w.count == 65536, "a child's forward that waited is first in the next forward, beside others");
    answer_forward (&w, T0 + 6 * MS, 10400);
    ok (w.req[4].ids == 60000 && w.req[4].sound, "a child's forward is answered as a whole");
    destroy (&w, T0 + 7 * MS);

    create (&w, 12);
    node_parent (w.n, T0, true);
    ok (request_of (&w, T0, 1, MODEST, 65536)->answers == 0 && w.count == 65536,
        "a single waiting request is forwarded as a whole");
    destroy (&w, T0);
}

/* --- forwarding ----------------------------------------------------------------------------------- */

static void create_idle (struct world *w)
{
    create (w, 12);
    node_parent (w->n, T0, true);
    tell_time (w, T0, 10 * SECOND);
}

static bool is_cookie_cb (void *cookie, void *arg)
{
    return cookie == arg;
}

/* The ids of the forward with this tag, from 'ms' on. */
static void answer_tag (struct world *w, uint64_t at_us, uint32_t tag, uint32_t count, uint64_t ms)
{
    w->tag = tag;
    w->count = count;
    answer_forward (w, at_us, ms);
}

static void test_newcomers_up (void)
{
    struct world w;
    uint32_t tag;

    create_idle (&w);
    request_of (&w, T0, 1, GREEDY, 65536);
    request_of (&w, T0, 2, GREEDY, 1);
    ok (w.forwards == 1 && w.count == 65536, "a forward for many ids is under way");
    tag = w.tag;
    request_of (&w, T0, 3, MODEST, 3);
    ok (w.forwards == 2 && w.count == 3 && w.tag != tag,
        "a request of a new requester is sent in a second forward; a request of a requester in the first forward "
        "waits");
    request_of (&w, T0, 4, MODEST, 2);
    request_of (&w, T0, 5, CHILD, 60);
    request_of (&w, T0, 6, CHILD, 65);
    ok (w.forwards == 2, "while a forward for new requesters is under way, further requests wait");
    answer_tag (&w, T0 + MS, w.tag, 3, 10001);
    ok (w.req[3].ids == 3 && w.req[3].first == make_id (10001, 0, 0) && w.forwards == 3 && w.count == 62
            && w.req[1].answers == 0 && w.after == make_id (10001, 0, 2),
        "when the forward for new requesters was answered, waiting small requests are forwarded together, above all "
        "answered ids");
    answer_tag (&w, T0 + 2 * MS, w.tag, 62, 10002);
    ok (w.req[4].ids == 2 && w.req[5].ids == 60 && w.req[6].answers == 0 && w.forwards == 3,
        "after the second forward for new requesters none of their small requests waits");
    request_of (&w, T0 + 2 * MS, 7, MODEST, 1);
    ok (w.forwards == 4 && w.count == 1 && w.after > w.req[4].last,
        "a later request of a new requester is forwarded alone");
    uint32_t few = w.tag;
    ok (node_position_ms (w.n, T0 + 2 * MS) == 10000,
        "the node's position is not above the ids that the forward for many ids may still bring");
    answer_tag (&w, T0 + 64 * MS, tag, 65536, 9930);
    ok (w.req[1].ids == 65536 && w.forwards == 5 && w.count == 1 + 65 && w.after == make_id (10002, 0, 61),
        "when the forward for many ids was answered, the next one asks for ids above all answered ones, without "
        "requesters whose ids are under way");
    request_of (&w, T0 + 64 * MS, 8, MODEST, 1);
    answer_tag (&w, T0 + 65 * MS, few, 1, 10060);
    ok (w.req[7].ids == 1 && w.req[8].answers == 0 && w.forwards == 5,
        "beside a forward for few ids, new requesters wait");
    destroy (&w, T0 + 66 * MS);
}

/* Clients disconnect while their ids are under way. */
static void test_newcomers_gone (void)
{
    struct world w;

    create_idle (&w);
    request_of (&w, T0, 1, GREEDY, 65536);
    uint32_t tag = w.tag;
    request_of (&w, T0, 2, MODEST, 1);
    request_of (&w, T0, 3, CHILD, 1);
    node_cancel (w.n, T0, is_cookie_cb, (void *)2);
    ok (w.cancels == 0 && w.forwards == 3 && w.count == 1 && w.tag != tag,
        "a new requester that disconnects does not end the other forward");
    answer_tag (&w, T0 + MS, w.tag - 1, 1, 10001);
    ok (w.req[3].answers == 0, "ids of a requester that disconnected are given to no other request");
    node_cancel (w.n, T0, is_cookie_cb, (void *)1);
    ok (w.cancels == 1 && w.forwards == 4 && w.count == 1,
        "if all requests of the forward for many ids are canceled, new requesters are forwarded again");
    node_forward_failed (w.n, T0 + MS, w.tag, EHOSTUNREACH);
    ok (w.req[3].answers == 0 && w.forwards == 4, "a failed forward for new requesters is sent again after a delay");
    node_tick (w.n, T0 + SECOND);
    answer_forward (&w, T0 + SECOND, 11000);
    ok (w.forwards == 5 && w.req[3].ids == 1, "after the delay the requests of new requesters are forwarded again");
    destroy (&w, T0 + SECOND);
}

static void test_combine (void)
{
    struct world w;
    struct id_run run[3] = { { make_id (10000, 1, 1000), 24 },
                             { make_id (10001, 1, 0), 1024 },
                             { make_id (10002, 1, 0), 7 } };

    create_idle (&w);
    ok (state (&w, T0) == NODE_IDLE && w.lease_ups == 0, "a rank without a generator is idle and requests no lease");
    request (&w, T0, 1, 70, make_id (9000, 7, 7), true);
    ok (w.forwards == 1 && w.count == 70 && w.after == make_id (9000, 7, 7),
        "an idle rank forwards a request with the id that the response must be above");
    request (&w, T0 + 1, 2, 20, 0, false);
    request (&w, T0 + 2, 3, 1000, make_id (9999, 2, 0), true);
    request (&w, T0 + 3, 4, 35, 0, false);
    ok (w.forwards == 1, "while a forward of an idle rank is under way, later requests wait");
    node_forwarded (w.n, T0 + MS, w.tag, &(struct id_run){ make_id (10000, 0, 0), 70 }, 1);
    ok (w.req[1].ids == 70 && w.forwards == 2 && w.count == 1055 && w.after == make_id (10000, 0, 69),
        "waiting requests of an idle rank are forwarded as one, above all answered ids and all 'after' of these "
        "requests");
    node_forwarded (w.n, T0 + 2 * MS, w.tag, run, 3);
    ok (w.req[3].first == run[0].first && w.req[3].ids == 1000 && w.req[3].nruns == 2
            && w.req[2].first == run[1].first + 976 && w.req[2].ids == 20 && w.req[4].first == run[1].first + 996
            && w.req[4].ids == 35 && w.req[4].last == run[2].first + 6 && w.req[4].sound,
        "the ids of a response are given out to requesters by turns, and to each requester in order of arrival");
    node_forwarded (w.n, T0 + 3 * MS, w.tag, run, 3);
    ok (w.req[2].answers == 1 && w.req[3].answers == 1 && w.req[4].answers == 1,
        "a second response to the same forward is ignored");

    for (size_t i = 10; i < 14; i++)
        request (&w, T0 + 4 * MS, i, 30000, 0, true);
    node_forward_failed (w.n, T0 + 5 * MS, w.tag, ENOSYS);
    ok (w.forwards == 3 && w.req[10].answers == 0 && node_deadline (w.n) > T0 + 5 * MS,
        "after an error of the parent that may pass, the next forward is delayed");
    node_tick (w.n, node_deadline (w.n));
    ok (w.forwards == 4 && w.count == 60000, "after the delay the requests are forwarded again, for at most 65536 ids");
    node_forward_failed (w.n, T0 + 90 * MS, w.tag, EOVERFLOW);
    ok (w.req[10].errnum == EOVERFLOW && w.req[11].errnum == EOVERFLOW && w.req[12].answers == 0 && w.forwards == 5,
        "a final error of the parent fails the requests of the forward, and other requests are forwarded immediately");
    destroy (&w, T0 + SECOND);
}

static void test_bad_answers (void)
{
    struct world w;
    struct id_run too_few = { make_id (10000, 0, 0), 1 }, below = { make_id (8999, 0, 0), 2 },
                  wide = { make_id (10000, 0, 1023), 2 };
    struct id_run twice[2] = { { make_id (10000, 0, 1), 1 }, { make_id (10000, 0, 1), 1 } };
    const struct {
        const struct id_run *run;
        size_t nruns;
    } bad[] = { { &too_few, 1 }, { &below, 1 }, { &wide, 1 }, { twice, 2 }, { NULL, 0 } };
    int refused = 0;

    create_idle (&w);
    for (size_t i = 0; i < 5; i++) {
        request (&w, T0, i + 1, 2, make_id (9000, 0, 0), true);
        node_forwarded (w.n, T0, w.tag, bad[i].run, bad[i].nruns);
        refused += w.req[i + 1].errnum == EPROTO;
    }
    ok (refused == 5, "a response with other ids than requested fails with EPROTO, and its ids are not used");
    destroy (&w, T0);
}

static void test_trouble (void)
{
    struct world w;

    create_idle (&w);
    request (&w, T0, 1, 5, 0, false);
    node_parent (w.n, T0 + SECOND, false);
    request (&w, T0 + SECOND, 2, 6, 0, false);
    ok (w.req[1].answers == 0 && w.forwards == 1, "without a parent requests for ids wait");
    node_forwarded (w.n, T0 + SECOND, w.tag, &(struct id_run){ make_id (10000, 0, 0), 5 }, 1);
    ok (w.req[1].answers == 0, "the response of a former parent is ignored while no parent is connected");
    node_parent (w.n, T0 + 2 * SECOND, true);
    ok (w.forwards == 2 && w.count == 11, "waiting requests are forwarded again to the new parent");
    node_forwarded (w.n, T0 + 2 * SECOND, w.tag - 1, &(struct id_run){ make_id (10000, 0, 0), 5 }, 1);
    ok (w.req[1].answers == 0, "the response of a former parent is not taken for the response of the new one");
    node_tick (w.n, T0 + 5 * SECOND);
    ok (w.req[1].errnum == EHOSTUNREACH && w.req[2].answers == 0, "a request fails after fluid.forward-timeout");
    node_forwarded (w.n, T0 + 5 * SECOND, w.tag, &(struct id_run){ make_id (15000, 0, 0), 11 }, 1);
    ok (w.req[1].answers == 1 && w.req[2].first == make_id (15000, 0, 5),
        "ids for a request that has failed are skipped when the response arrives");

    request (&w, T0 + 6 * SECOND, 3, 5, 0, false);
    request (&w, T0 + 6 * SECOND, 4, 5, 0, false);
    node_cancel (w.n, T0 + 6 * SECOND, is_cookie_cb, (void *)3);
    node_cancel (w.n, T0 + 6 * SECOND, is_cookie_cb, (void *)4);
    node_forwarded (w.n, T0 + 6 * SECOND, w.tag, &(struct id_run){ make_id (16000, 0, 0), 5 }, 1);
    ok (w.req[3].answers == 0 && w.req[4].answers == 0, "requests of a client that disconnected are not answered");
    ok (w.cancels == 2,
        "if all requesters of a forward have disconnected, the parent is notified that its ids are no longer needed");

    request (&w, T0 + 7 * SECOND, 5, 5, 0, false);
    int before = w.forwards;
    request (&w, T0 + 11 * SECOND, 6, 5, 0, false);
    node_tick (w.n, T0 + 12 * SECOND);
    ok (w.req[5].errnum == EHOSTUNREACH && w.req[6].answers == 0,
        "a forwarded request without a response in time fails");
    ok (w.forwards == before + 1 && w.cancels == 3, "a forward without a response in time does not delay the next one");

    w.forward_result = -1;
    request (&w, T0 + 13 * SECOND, 7, 5, 0, false);
    node_forward_failed (w.n, T0 + 13 * SECOND, w.tag, EHOSTUNREACH);
    w.forward_result = 0;
    node_tick (w.n, T0 + 14 * SECOND);
    ok (w.count == 10, "a request whose forward could not be sent is forwarded later");
    destroy (&w, T0 + 15 * SECOND);
    ok (w.req[7].errnum == EHOSTUNREACH && w.req[7].answers == 1,
        "a request whose forward could not be sent is answered when the node stops");
}

/* The message itself cannot be sent. */
static void test_not_sent (void)
{
    struct world w;

    create_idle (&w);
    w.forward_result = -1;
    request (&w, T0, 1, 5, 0, false);
    ok (w.forwards == 1 && node_deadline (w.n) == T0 + 20 * MS,
        "a forward that cannot be sent is tried again after 20 ms");
    w.forward_result = 0;
    node_tick (w.n, T0 + 20 * MS);
    ok (w.forwards == 2 && w.count == 5, "the forward that is tried again has all waiting requests");
    destroy (&w, T0 + SECOND);

    create (&w, 3);
    w.lease_result = -1;
    node_parent (w.n, T0, true);
    int ups = w.lease_ups;
    ok (ups == 1 && node_deadline (w.n) > T0, "a lease request that cannot be sent is tried again");
    w.lease_result = 0;
    node_tick (w.n, node_deadline (w.n));
    ok (w.lease_ups == ups + 1 && w.want[0].number == 1, "a lease request that is tried again has the same number");
    destroy (&w, T0 + SECOND);
}

/* A final error of the parent is not retried. */
static void test_final_errors (void)
{
    static const int errnums[] = { EOVERFLOW, EPERM, EINVAL, EPROTO };
    struct world w;

    create_idle (&w);
    for (size_t i = 0; i < 4; i++) {
        const struct record *r = request (&w, T0, i + 1, 5, 0, false);
        node_forward_failed (w.n, T0, w.tag, errnums[i]);
        ok (r->errnum == errnums[i] && w.forwards == (int)i + 1, "the parent's error '%s' fails the request",
            strerror (errnums[i]));
        node_forward_failed (w.n, T0, w.tag, errnums[i]);
        ok (r->answers == 1, "a request that failed with an error of the parent is answered once");
    }
    destroy (&w, T0 + SECOND);
}

/* Two newcomers that do not fit into one forward. */
static void test_newcomers_apart (void)
{
    struct world w;

    create_idle (&w);
    request_of (&w, T0, 1, GREEDY, 65536);
    request_of (&w, T0, 2, "x", 1);
    request_of (&w, T0, 3, MODEST, 40);
    request_of (&w, T0, 4, CHILD, 40);
    answer_tag (&w, T0 + MS, w.tag, 1, 10001);
    ok (w.forwards == 3 && w.count == 40, "requests of new requesters are forwarded as one as far as there is space");
    answer_tag (&w, T0 + 2 * MS, w.tag, 40, 10002);
    ok (w.req[3].ids == 40 && w.forwards == 4 && w.count == 40,
        "a request of a new requester without space is first in the next forward");
    destroy (&w, T0 + 3 * MS);
}

static void test_other_root (void)
{
    struct world w;

    create_active (&w);
    node_lease_answered (w.n, T0, w.lease_tag, &(struct lease_answer){ .has_epoch = true, .epoch_ms = 5 });
    int logs = w.logs;
    node_lease_answered (w.n, T0, w.lease_tag, &(struct lease_answer){ .has_epoch = true, .epoch_ms = 6 });
    struct node_status s;
    node_status (w.n, T0, &s);
    ok (s.epoch_ms == 5 && w.logs == logs + 1, "an answer with another epoch than known is ignored, and logged");
    destroy (&w, T0 + SECOND);
}

/* After its stop the node ignores all events. */
static void test_stopped (void)
{
    const struct report report = { .from = CHILD, .low_ms = 5 };
    struct want want = { .rank = 5, .incarnation = CHILD, .number = 1, .size = BOX_WHOLE };
    struct world w, before;

    create_active (&w);
    node_stop (w.n, T0);
    before = w;
    node_parent (w.n, T0 + MS, false);
    node_parent (w.n, T0 + MS, true);
    tell_time (&w, T0 + MS, 20 * SECOND);
    give (&w, T0 + MS, 70000, 90000);
    node_lease_failed (w.n, T0 + MS, w.lease_tag, EHOSTUNREACH);
    node_report (w.n, T0 + MS, &report);
    node_lost_time (w.n, T0 + MS, (int64_t)SECOND);
    node_forward_failed (w.n, T0 + MS, 1, EHOSTUNREACH);
    node_tick (w.n, T0 + SECOND);
    ok (memcmp (&w, &before, sizeof (w)) == 0 && node_deadline (w.n) == UINT64_MAX,
        "a stopped node ignores all events");
    node_lease_request (w.n, T0 + SECOND, (void *)1, &(struct lease_request){ .want = &want, .nwant = 1 });
    ok (w.lease_replies == 1 && w.answer.ngrant == 0 && w.lease_ups == before.lease_ups,
        "a stopped node answers a child's lease request without a grant");
    ok (request (&w, T0 + SECOND, 1, 1, 0, false)->errnum == EHOSTUNREACH,
        "a stopped node answers a request for ids with an error");
    discard (&w);
}

/* --- 'after' of clients ----------------------------------------------------------------------------- */

static void test_far_after (void)
{
    const fluid_t far = make_id (10000 + UINT64_C (946080000000), 9, 0), near = make_id (10500, 9, 0);
    struct world w;

    create (&w, 12);
    node_parent (w.n, T0, true);
    request (&w, T0, 1, 1, far, false);
    request (&w, T0, 2, 1, near, false);
    ok (w.forwards == 0, "a client's request with 'after' is not forwarded before the time is known");
    request (&w, T0, 3, 7, 0, false);
    ok (w.forwards == 1 && w.count == 7 && w.after == 0,
        "before the time is known, requests without 'after' are forwarded");
    tell_time (&w, T0 + SECOND, 10 * SECOND);
    ok (w.req[1].errnum == EAGAIN, "when the time becomes known, a request whose 'after' is far ahead is refused");
    node_forwarded (w.n, T0 + SECOND, w.tag, &(struct id_run){ make_id (10000, 0, 0), 7 }, 1);
    node_tick (w.n, T0 + 1501 * MS);
    ok (w.forwards == 2 && w.count == 1 && w.after == near,
        "when the time is known, a request whose 'after' is slightly ahead is forwarded when that time has come");
    destroy (&w, T0 + 2 * SECOND);

    create (&w, 12);
    node_parent (w.n, T0, true);
    request (&w, T0, 1, 1, far, false);
    ok (node_deadline (w.n) <= T0 + 5 * SECOND,
        "a request that waits for the time of its 'after' has the same deadline as others");
    node_tick (w.n, T0 + 5 * SECOND);
    ok (w.req[1].errnum == EHOSTUNREACH, "a request that waits for the time of its 'after' fails at its deadline");
    destroy (&w, T0 + 6 * SECOND);

    create_active (&w);
    ok (request (&w, T0, 1, 1, far, true)->errnum == EAGAIN && state (&w, T0) == NODE_ACTIVE,
        "a broker's 'after' further ahead than any id can be is refused");
    for (size_t i = 10; i < 200; i++)
        request (&w, T0, i, 65536, 0, true);
    uint64_t at = T0;
    while (w.req[199].answers == 0 && at < T0 + 60 * SECOND)
        node_tick (w.n, at = node_deadline (w.n));
    ok (w.req[10].ids == 65536 && w.req[199].errnum == EAGAIN && at == T0 + 7 * SECOND,
        "a request that waits while ids are made by this node fails when fluid.max-backlog has passed since its "
        "deadline");
    destroy (&w, at);
}

/* --- the root and its leases ------------------------------------------------------------------------ */

/* A child's request: rank 0's children ask the authority. */
static void ask (struct world *w, uint64_t at_us, const struct lease_request *req)
{
    struct lease_answer answer;

    if (!w->a) {
        node_lease_request (w->n, at_us, (void *)1, req);
        return;
    }
    authority_answer (w->a, at_us, req, &answer);
    world_lease_reply_cb (w, NULL, &answer);
    node_tick (w->n, at_us);
}

static void ask_lease (struct world *w, uint64_t at_us, uint32_t rank, uint64_t number, uint64_t end_ms, int64_t epoch)
{
    struct want want = { .rank = rank, .incarnation = CHILD, .number = number, .size = BOX_WHOLE, .end_ms = end_ms };
    struct lease_request req = { .want = &want, .nwant = 1, .has_epoch = epoch != 0, .epoch_ms = epoch };

    ask (w, at_us, &req);
}

/* The same rank after its broker was started again. */
static void ask_lease_anew (struct world *w, uint64_t at_us, uint32_t rank)
{
    struct want want = { .rank = rank, .incarnation = MODEST, .number = 1, .size = BOX_WHOLE };

    ask (w, at_us, &(struct lease_request){ .want = &want, .nwant = 1 });
}

static void test_root (void)
{
    struct world w;
    struct record *r;
    struct authority_status root;

    create (&w, 0);
    start_root (&w, T0, (int64_t)(110 * SECOND), &(struct lease_record){ 0 });
    ok (w.stores == 1 && w.record.horizon_ms == 130000,
        "the root begins at the time of the wall clock since the epoch, and first stores a horizon two leases ahead");
    r = request (&w, T0, 1, 3, 0, false);
    request (&w, T0, 2, 3, 0, true);
    ask_lease (&w, T0, 5, 1, 0, 0);
    ok (r->answers == 0 && w.lease_replies == 1 && w.answer.ngrant == 0,
        "until its horizon is durable the root grants nothing, and has no lease itself");
    authority_store_failed (w.a, T0 + MS);
    tick (&w, T0 + 100 * MS);
    ok (w.stores == 1, "after a failed store the root waits");
    tick (&w, T0 + 101 * MS);
    ok (w.stores == 2, "after the wait the root stores its horizon again");
    tick (&w, T0 + 5001 * MS);
    ok (r->errnum == EHOSTUNREACH && w.req[2].errnum == EHOSTUNREACH,
        "requests for ids that wait for the root's first lease fail at their deadline");
    r = request (&w, T0 + 5002 * MS, 3, 3, 0, false);
    stored (&w, T0 + 5002 * MS, w.record.horizon_ms);
    ok (r->first == make_id (15002, 0, 0), "when a store succeeds again the root makes ids");
    ask_lease (&w, T0 + 5002 * MS, 5, 2, 0, 100000);
    ok (w.answer.ngrant == 1 && w.grant[0].box.range.lo_ms == 0 && w.grant[0].box.range.hi_ms == 75002
            && w.answer.has_epoch && w.answer.epoch_ms == 100000 && w.answer.has_time && w.answer.sent_us == 15002 * MS,
        "children get ranges, the epoch and the time from the root");
    tick (&w, T0 + 60 * SECOND);
    ok (w.stores == 3 && w.record.horizon_ms == 190000, "the horizon is raised before it is needed");
    ok (state (&w, T0 + 66 * SECOND) == NODE_ACTIVE, "the root renews its own lease");
    tick (&w, T0 + 121 * SECOND);
    ok (state (&w, T0 + 121 * SECOND) == NODE_FENCED,
        "the root does not renew its own lease beyond the durable horizon");
    stored (&w, T0 + 121 * SECOND, 190000);
    authority_status (w.a, T0 + 121 * SECOND, &root);
    ok (state (&w, T0 + 121 * SECOND) == NODE_ACTIVE && root.horizon_ms == 190000 && root.ahead_us == 0,
        "the root is active again when a higher horizon is stored");
    ok (request (&w, T0 + 121 * SECOND, 4, 1, make_id (134000, 1, 1), true)->errnum == EAGAIN,
        "the root does not move its clock to a broker's 'after' that is far ahead, and refuses the request");
    ask_lease (&w, T0 + 121 * SECOND, 5, 3, 999999, 0);
    authority_status (w.a, T0 + 121 * SECOND, &root);
    ok (w.answer.ngrant == 0 && root.fenced_by_foreign,
        "a rank that holds more than the root has granted makes the root stop all grants");
    ok (state (&w, T0 + 121 * SECOND) == NODE_FENCED && request (&w, T0 + 121 * SECOND, 6, 1, 0, false)->answers == 0,
        "a root that has stopped all grants no longer uses its own lease");
    destroy (&w, T0 + 122 * SECOND);

    create_root (&w);
    ask_lease (&w, T0, 5, 1, 0, 4711);
    ok (w.answer.ngrant == 0, "a rank with another epoch makes the root stop all grants");
    destroy (&w, T0);
}

/* A root at instance time 'ms' that has stored 'record' before. */
static void create_root_at (struct world *w, uint64_t ms, struct lease_record record)
{
    create (w, 0);
    start_root (w, T0, (int64_t)((100000 + ms) * MS), &record);
    if (w->stores > 0)
        stored (w, T0, w->record.horizon_ms);
}

static void test_end_of_time (void)
{
    const uint64_t end = UINT64_C (1) << 40;
    uint64_t at = T0 + 90 * SECOND, ms = 0;
    struct world w;

    create_root_at (&w, end - 90000, (struct lease_record){ .horizon_ms = end - 100000 });
    ok (w.record.horizon_ms == end, "the root stores no horizon above the end of time");
    tick (&w, at - 30 * SECOND);
    ok (ms_of (request (&w, at - MS, 1, 1, 0, false)->first) == end - 1,
        "ids are made in the last millisecond of the format");
    request (&w, at - MS, 2, 2000, 0, false);
    ok (w.req[2].answers == 0 && node_deadline (w.n) <= at,
        "a request for more ids than the last millisecond has waits");
    tick (&w, at);
    ok (w.req[2].errnum == EOVERFLOW && request (&w, at, 3, 1, 0, false)->errnum == EOVERFLOW
            && request (&w, at + SECOND, 4, 1, 0, true)->errnum == EOVERFLOW,
        "at the end of time waiting and later requests fail with EOVERFLOW");
    for (uint64_t us = at; us < at + 200 * SECOND; us += SECOND)
        tick (&w, us);
    ok (w.stores == 1, "after the end of time no further horizon is stored");
    ok (authority_watermark (w.a, at + 200 * SECOND, &ms) && ms <= end,
        "the root publishes no watermark above the end of time");
    struct lease_record last = stop (&w, at + 200 * SECOND);
    ok (last.horizon_ms == end && last.watermark_ms <= end,
        "a clean stop stores no horizon or watermark above the end of time");
    discard (&w);

    create_root_at (&w, end + 5000, last);
    ok (request (&w, T0, 1, 1, 0, false)->errnum == EOVERFLOW && w.stores == 0,
        "a root that starts after the end of time makes no ids");
    destroy (&w, T0 + SECOND);
    create_root_at (&w, end - 10000, (struct lease_record){ .horizon_ms = end });
    ok (request (&w, T0, 1, 1, 0, false)->errnum == EOVERFLOW,
        "a root that crashed less than two leases before the end of time makes no ids");
    destroy (&w, T0 + SECOND);
    create_root_at (&w, end - 10000, (struct lease_record){ .horizon_ms = end - 10050 });
    request (&w, T0, 1, 1, 0, false);
    last = stop (&w, T0 + SECOND);
    ok (w.req[1].ids == 1 && last.horizon_ms < end - 9000,
        "a clean stop shortly before the end of time does not lose the time that is left");
    discard (&w);
    create_root_at (&w, end + 5000, last);
    ok (w.stores == 1 && w.record.horizon_ms == end,
        "a root whose clock is above the end of time stores the end of time as its horizon");
    ok (request (&w, T0, 1, 1, 0, false)->errnum == EOVERFLOW,
        "a root whose clock is above the end of time makes no ids");
    destroy (&w, T0 + SECOND);
}

/* Rank 0 was away for 90 s, and comes back with an earlier time than this node has. */
static void test_ahead (void)
{
    const uint64_t at_us = T0 + 100 * SECOND;
    struct world w;

    create_active (&w);
    node_tick (w.n, at_us);
    give (&w, at_us, 70000, 80000);
    ok (w.logs == 0, "a lease that came too late is not logged");
    tell_time (&w, at_us, 20 * SECOND);
    for (unsigned i = 1; i <= 4; i++) {
        node_tick (w.n, at_us + i * SECOND);
        give (&w, at_us + i * SECOND, 20000, 80000);
    }
    ok (state (&w, at_us + 5 * SECOND) == NODE_FENCED && w.logs == 1,
        "a node that is far ahead of rank 0 logs once that it cannot use its leases");
    int asked = w.lease_ups;
    node_tick (w.n, at_us + 5 * SECOND);
    give (&w, at_us + 5 * SECOND, 20000, 80000);
    node_tick (w.n, at_us + 5 * SECOND);
    ok (w.lease_ups == asked + 1, "and pauses between its requests");
    destroy (&w, at_us + 6 * SECOND);
}

/* --- time that was missed ---------------------------------------------------------------------------- */

static void test_pause (void)
{
    struct world w;
    struct record *r;
    uint64_t inst_us, bound_us;

    create_active (&w);
    r = request (&w, T0 + SECOND, 1, 3, 0, false);
    ok (ms_of (r->first) == 11000, "before its clock misses time a node makes ids");
    node_lost_time (w.n, T0 + 2 * SECOND, (int64_t)(9 * SECOND));
    ok (state (&w, T0 + 2 * SECOND) == NODE_FENCED && w.logs > 0
            && !node_clock (w.n, T0 + 2 * SECOND, &inst_us, &bound_us),
        "a node whose clock missed time logs the missed time, makes no ids, and gives no time to children");
    r = request (&w, T0 + 2 * SECOND, 2, 3, 0, false);
    ok (r->answers == 0 && w.forwards == 1 && w.count == 3,
        "while a node does not know the time, it forwards requests");
    tell_time (&w, T0 + 2 * SECOND - 1, 12 * SECOND);
    ok (r->answers == 0, "a node does not accept the time of a request that it sent before its clock missed time");
    tell_time (&w, T0 + 2 * SECOND + 500 * MS, 21 * SECOND);
    ok (r->answers == 1 && ms_of (r->first) >= 21000,
        "when the parent's time has arrived the node continues, and makes no ids of the time that passed meanwhile");
    tell_time (&w, T0 + 3 * SECOND, 30 * SECOND);
    r = request (&w, T0 + 3 * SECOND, 3, 1, 0, false);
    ok (ms_of (r->first) >= 30000 && w.logs > 1,
        "a pause that no clock of the host counted is logged when the parent's time arrives");
    node_lost_time (w.n, T0 + 63 * SECOND, -(int64_t)(59 * SECOND));
    tell_time (&w, T0 + 63 * SECOND, 31 * SECOND);
    r = request (&w, T0 + 63 * SECOND, 4, 1, 0, false);
    ok (r->answers == 1 && ms_of (r->first) == 31000,
        "if the node's clock went too far, the instance's time does not move");
    destroy (&w, T0 + 64 * SECOND);

    create_root (&w);
    lost_time (&w, T0 + SECOND, (int64_t)(9 * SECOND), 0);
    r = request (&w, T0 + SECOND, 1, 1, 0, false);
    ok (ms_of (r->first) == 11000, "rank 0 makes ids after its clock missed time");
    wall (&w, T0 + SECOND, (int64_t)(111 * SECOND));
    r = request (&w, T0 + SECOND, 2, 1, 0, false);
    ok (ms_of (r->first) == 11000, "rank 0 does not step while the wall clock does not show the missed time");
    wall (&w, T0 + 2 * SECOND, (int64_t)(121 * SECOND));
    r = request (&w, T0 + 2 * SECOND, 3, 1, 0, false);
    ok (ms_of (r->first) == 21000, "rank 0 steps by the missed time that the wall clock confirms");
    wall (&w, T0 + 3 * SECOND, (int64_t)(500 * SECOND));
    r = request (&w, T0 + 3 * SECOND, 4, 1, 0, false);
    ok (ms_of (r->first) == 22000, "rank 0 never steps by more than the missed time");
    lost_time (&w, T0 + 3 * SECOND, (int64_t)(9 * SECOND), (int64_t)(4 * SECOND));
    r = request (&w, T0 + 3 * SECOND, 5, 1, 0, false);
    ok (ms_of (r->first) == 26000, "rank 0 steps immediately by the missed time that two clocks agree on");
    wall (&w, T0 + 3 * SECOND, (int64_t)(500 * SECOND));
    r = request (&w, T0 + 3 * SECOND, 6, 1, 0, false);
    ok (ms_of (r->first) == 31000, "rank 0 steps by the rest of the missed time when the wall clock confirms it");
    destroy (&w, T0 + 4 * SECOND);
}

/* --- a reload ---------------------------------------------------------------------------------------- */

/* The handover to the next node on the same broker; '*stored' is what rank 0 has stored. */
static void *leave (struct world *w, uint64_t at_us, struct lease_record *stored, size_t *size)
{
    size_t root_size = 0;
    void *past, *root = NULL;

    *stored = stop (w, at_us);
    if (w->a)
        root = authority_leave (w->a, stored, &root_size);
    past = node_leave (w->n, root, root_size, size);
    free (root);
    discard (w);
    return past;
}

static void test_reload (void)
{
    struct world w;
    struct lease_record last;
    size_t size, more;

    create_active (&w);
    fluid_t id = request (&w, T0 + SECOND, 1, 3, 0, false)->last;
    void *past = leave (&w, T0 + SECOND, &last, &size);
    create (&w, 3);
    node_remember (w.n, past, size, &more);
    node_parent (w.n, T0 + SECOND, true);
    request (&w, T0 + SECOND, 1, 1, 0, false);
    ok (w.forwards == 1 && w.after == id, "a reloaded node requests ids above the last one that it made before");
    destroy (&w, T0 + SECOND);
    create (&w, 3);
    node_remember (w.n, past, size - 1, &more);
    node_remember (w.n, "junk", 4, &more);
    ok (state (&w, T0) == NODE_FENCED, "a node ignores a handover that it cannot read");
    destroy (&w, T0);
    free (past);

    for (int same = 0; same < 2; same++) {
        create_root (&w);
        ask_lease (&w, T0, 5, 1, 0, 0);
        uint64_t given_ms = w.grant[0].box.range.hi_ms;
        past = leave (&w, T0 + SECOND, &last, &size);
        create (&w, 0);
        if (!same)
            last.horizon_ms++; /* another root ran on the statedir */
        start_root_after (&w, T0 + 2 * SECOND, (int64_t)(112 * SECOND), &last, past, size);
        stored (&w, T0 + 2 * SECOND, w.record.horizon_ms);
        struct record *r = request (&w, T0 + 2 * SECOND, 1, 1, 0, false);
        if (same)
            ok (ms_of (r->first) == 12000, "a reloaded rank 0 continues with its time if its store is unchanged");
        else
            ok (ms_of (r->first) >= given_ms,
                "a reloaded rank 0 whose store has changed begins above all ranges that were granted");
        ask_lease (&w, T0 + 2 * SECOND, 5, 2, given_ms, 0);
        ok (w.answer.ngrant == 1 && w.grant[0].box.range.hi_ms > given_ms
                && (same ? w.grant[0].box.range.lo_ms == 0 : w.grant[0].box.range.lo_ms >= given_ms),
            "a reloaded rank 0 extends a range that it granted before only if its store is unchanged");
        given_ms = w.grant[0].box.range.hi_ms;
        ask_lease_anew (&w, T0 + 3 * SECOND, 5);
        ok (w.answer.ngrant == 1 && w.grant[0].box.range.lo_ms == given_ms,
            "a reloaded rank 0 grants no range below the ranges that were granted before");
        destroy (&w, T0 + 3 * SECOND);
        free (past);
    }
}

/* The clocks of other ranks continued during the reload, so rank 0 does not pause for its clock debt. */
static void test_reload_in_debt (void)
{
    uint64_t lease_ms = 60000, inst_us, bound_us, before_us, at = T0 + lease_ms * MS;
    struct lease_record last, crashed = { .horizon_ms = 10000 + 20 * lease_ms, .ahead_ms = 20 * lease_ms };
    struct world w;
    size_t size;

    create (&w, 0);
    start_root (&w, T0, (int64_t)(110 * SECOND), &crashed);
    ok (!node_clock (w.n, T0, &inst_us, &bound_us), "a root whose clock debt is above the limit first gives no time");
    tick (&w, at);
    ok (node_clock (w.n, at, &before_us, &bound_us), "a root whose clock debt is above the limit begins after a wait");
    void *past = leave (&w, at, &last, &size);
    create (&w, 0);
    start_root_after (&w, at + MS, (int64_t)(110 * SECOND) + (int64_t)(lease_ms * MS), &last, past, size);
    ok (node_clock (w.n, at + MS, &inst_us, &bound_us) && inst_us >= before_us + MS - 10 && inst_us <= before_us + MS,
        "a root with clock debt continues immediately after a reload");
    destroy (&w, at + SECOND);
    free (past);
}

/* A node is stopped before it made an id. Time that earlier nodes used remains used. */
static void test_reload_twice (void)
{
    struct world w;
    struct lease_record last;
    size_t size;

    create_root (&w);
    ask_lease (&w, T0, 5, 1, 0, 0); /* the watermark waits for this rank, and nothing is granted below it */
    struct record *r = request (&w, T0 + SECOND, 1, 3, 0, false);
    uint64_t used_ms = ms_of (r->last);
    for (int i = 0; i < 2; i++) {
        void *past = leave (&w, T0 + SECOND, &last, &size);
        create (&w, 0);
        start_root_after (&w, T0 + SECOND, (int64_t)(111 * SECOND), &last, past, size);
        free (past);
    }
    stored (&w, T0 + SECOND + 5 * MS, w.record.horizon_ms);
    struct node_status s;
    node_status (w.n, T0 + SECOND + 5 * MS, &s);
    ok (s.state == NODE_ACTIVE && s.lease.box.range.lo_ms > used_ms,
        "after two reloads rank 0 holds no time that was used before");
    destroy (&w, T0 + 2 * SECOND);
}

/* Rank 0's own lease, and the time that it granted to modules, reach ahead of now: a reload skips neither. */
static void test_reload_ahead (void)
{
    struct world w;
    struct lease_record last;
    struct time_grant before, after;
    size_t size;

    create_root (&w);
    ask_lease (&w, T0, 5, 1, 0, 0);
    tick (&w, T0 + 30 * SECOND); /* it has renewed its lease: the next range begins at the end of the first one */
    stored (&w, T0 + 30 * SECOND, w.record.horizon_ms);
    tick (&w, T0 + 31 * SECOND);
    ok (node_grant_time (w.n, T0 + 31 * SECOND, UUID, &before) == 0, "rank 0 grants time to a module");
    void *past = leave (&w, T0 + 31 * SECOND, &last, &size);
    ok (last.horizon_ms >= before.hi_ms,
        "a stop of rank 0 stores a horizon above the end of the time that it granted to modules");
    create (&w, 0);
    start_root_after (&w, T0 + 32 * SECOND, (int64_t)(142 * SECOND), &last, past, size);
    free (past);
    stored (&w, T0 + 32 * SECOND, w.record.horizon_ms);
    struct record *r = request (&w, T0 + 32 * SECOND, 1, 1, 0, false);
    ok (r->ids == 1 && ms_of (r->first) == 42000,
        "a reloaded rank 0 continues at its time (%llu) even if it has granted later time",
        r->ids == 1 ? (unsigned long long)ms_of (r->first) : 0);
    ok (node_grant_time (w.n, T0 + 32 * SECOND, UUID, &after) < 0 || after.lo_ms >= before.hi_ms,
        "a reloaded rank 0 grants no time that was granted before");
    destroy (&w, T0 + 33 * SECOND);
}

/* A module that was not loaded again asks the next load for time, and returns some. */
static void test_reload_time (void)
{
    struct world w;
    struct lease_record last;
    struct time_grant before, after;
    size_t size;

    create_root (&w);
    for (uint64_t s = 1; s <= 5; s++)
        node_grant_time (w.n, T0 + s * SECOND, UUID, &before);
    void *past = leave (&w, T0 + 6 * SECOND, &last, &size);
    create (&w, 0);
    start_root_after (&w, T0 + 6 * SECOND, (int64_t)(116 * SECOND), &last, past, size);
    free (past);
    stored (&w, T0 + 6 * SECOND, w.record.horizon_ms);
    ok (node_grant_time (w.n, T0 + 7 * SECOND, UUID, &after) == 0 && after.lo_ms == before.hi_ms,
        "a reloaded node grants time to a module that was granted time before");
    node_return_time (w.n, T0 + 7 * SECOND, UUID, after.lo_ms + 500);
    ok (node_grant_time (w.n, T0 + 8 * SECOND, CHILD, &before) == 0 && before.lo_ms == after.lo_ms + 500,
        "a reloaded node takes back time");
    destroy (&w, T0 + 8 * SECOND);
}

static void test_restart (void)
{
    struct world w;

    create (&w, 0);
    start_root (&w, T0, (int64_t)(110 * SECOND), &(struct lease_record){ .horizon_ms = 50000 });
    ok (w.record.horizon_ms == 170000, "a root whose horizon is ahead of the wall clock begins at the horizon");
    stored (&w, T0, w.record.horizon_ms);
    ask_lease (&w, T0, 5, 1, 0, 0);
    ok (w.grant[0].box.range.lo_ms == 50000 && w.grant[0].box.range.hi_ms == 110000,
        "a root that began at its horizon grants nothing below it");
    ok (request (&w, T0, 1, 1, 0, false)->first == make_id (50000, 0, 0),
        "a root that began at its horizon makes ids immediately");
    wall (&w, T0, (int64_t)(110 * SECOND));
    ok (ms_of (request (&w, T0 + 10 * SECOND, 2, 1, 0, false)->first) == 59995,
        "a root that began at its horizon makes ids while its clock is slewed back to the wall clock");
    destroy (&w, T0 + 10 * SECOND);

    create (&w, 0);
    start_root (&w, T0, (int64_t)(90 * SECOND), &(struct lease_record){ 0 });
    ok (w.record.horizon_ms == 120001, "a wall clock before the epoch counts as the epoch");
    destroy (&w, T0);
}

static void test_stop (void)
{
    struct world w;
    struct want back = { .rank = 5, .incarnation = CHILD, .number = 2, .end_ms = 12000 };

    create_root (&w);
    request (&w, T0 + 500 * MS, 1, 1, 0, false);
    ask_lease (&w, T0, 5, 1, 0, 0);
    ask (&w, T0 + SECOND, &(struct lease_request){ .want = &back, .nwant = 1 });
    ok (stop (&w, T0 + SECOND).horizon_ms == 12000, "a clean stop stores the end of all ranges that may be in use");
    ask_lease (&w, T0 + SECOND, 5, 3, 0, 0);
    ok (w.answer.ngrant == 0, "after a clean stop the root grants nothing");
    discard (&w);

    create_root (&w);
    request (&w, T0 + 500 * MS, 1, 1, 0, false);
    ok (stop (&w, T0 + SECOND).horizon_ms == 10501,
        "a clean stop of the root stores the end of the time that it used of its own lease, not of the lease");
    discard (&w);

    create_active (&w);
    request (&w, T0, 1, 1, 0, false);
    int before = w.lease_ups;
    stop (&w, T0 + SECOND);
    ok (w.lease_ups == before + 1 && w.lease_tag == 0 && w.nwant == 1 && w.want[0].size == 0
            && w.want[0].end_ms == 10001 && w.want[0].left_ms == 0,
        "a node that stops returns the unused part of its lease");
    ok (request (&w, T0 + SECOND, 2, 1, 0, false)->ids == 0, "a node that has stopped makes no ids");
    discard (&w);
}

/* --- time for modules ----------------------------------------------------------------------- */

static bool grants (struct world *w, uint64_t at_us, const char *holder, uint64_t lo_ms, uint64_t hi_ms)
{
    struct time_grant time;

    if (node_grant_time (w->n, at_us, holder, &time) < 0)
        return lo_ms == hi_ms;
    if (time.lo_ms != lo_ms || time.hi_ms != hi_ms)
        diag ("[%d, %d)", (int)time.lo_ms, (int)time.hi_ms);
    return time.lo_ms == lo_ms && time.hi_ms == hi_ms;
}

#define NOTHING 0, 0

static void test_time (void)
{
    struct world w;
    struct time_grant time;

    create (&w, 10);
    ok (node_grant_time (w.n, T0, CHILD, &time) < 0 && errno == ENOTSUP,
        "a rank without a generator grants no time to modules");
    destroy (&w, T0);

    create_active (&w);
    ok (node_grant_time (w.n, T0, CHILD, &time) < 0 && errno == EAGAIN,
        "a node grants no time to modules before it knows the epoch");
    node_lease_answered (w.n, T0, 0, &(struct lease_answer){ .has_epoch = true, .epoch_ms = 77 });
    ok (node_grant_time (w.n, T0, CHILD, &time) == 0 && time.lo_ms == 10000 && time.hi_ms == 25000
            && time.clock_us == 10 * SECOND && time.epoch_ms == 77,
        "a node grants a quarter of a lease to a module, with the time and the epoch");
    ok (grants (&w, T0, CHILD, NOTHING) && grants (&w, T0 + SECOND, UUID, 25000, 26000)
            && grants (&w, T0 + 2 * SECOND, CHILD, 26000, 27000),
        "time that is granted begins at the end of what was granted before, for any module");
    node_return_time (w.n, T0 + 2 * SECOND, UUID, 26500);
    ok (grants (&w, T0 + 2 * SECOND, CHILD, NOTHING),
        "a return of time is ignored unless it comes from the module that got time last");
    node_return_time (w.n, T0 + 2 * SECOND, CHILD, 27000);
    ok (grants (&w, T0 + 2 * SECOND, CHILD, NOTHING), "a return at the end of the granted time changes nothing");
    node_return_time (w.n, T0 + 2 * SECOND, CHILD, 26500);
    ok (grants (&w, T0 + 2 * SECOND, UUID, 26500, 27000), "time that a module returned is granted again");
    node_return_time (w.n, T0 + 2 * SECOND, UUID, 25500);
    ok (grants (&w, T0 + 2 * SECOND, UUID, 26500, 27000),
        "a return gives back nothing that another module was granted earlier");
    grants (&w, T0 + 3 * SECOND, UUID, 27000, 28000);
    node_return_time (w.n, T0 + 3 * SECOND, UUID, 26800);
    ok (grants (&w, T0 + 3 * SECOND, CHILD, 26800, 28000),
        "time that one module was granted in a row is returned as one");
    node_return_time (w.n, T0 + 3 * SECOND, CHILD, 27000);
    ok (grants (&w, T0 + 59 * SECOND, UUID, 27000, 70000) && grants (&w, T0 + 59 * SECOND, CHILD, NOTHING),
        "no time is granted to modules beyond the range that the node holds");
    ok (node_grant_time (w.n, T0 + 61 * SECOND, UUID, &time) < 0 && errno == EAGAIN,
        "a fenced node grants no time to modules");
    destroy (&w, T0 + 61 * SECOND);

    create_active (&w);
    node_lease_answered (w.n, T0, 0, &(struct lease_answer){ .has_epoch = true, .epoch_ms = 77 });
    request (&w, T0, 1, 1, 0, false);
    grants (&w, T0, CHILD, 10000, 25000);
    stop (&w, T0 + SECOND);
    ok (w.nwant == 1 && w.want[0].size == 0 && w.want[0].end_ms == 25000 && grants (&w, T0 + SECOND, CHILD, NOTHING),
        "time granted to modules counts as used when the node returns its range");
    discard (&w);

    create_root (&w);
    ok (grants (&w, T0, CHILD, 0, 25000), "the root grants time of its own lease to modules");
    ok (stop (&w, T0 + SECOND).horizon_ms == 25000,
        "time that the root granted to modules counts as used when it stores its last record");
    discard (&w);
}

static void test_relay (void)
{
    struct world w;
    uint64_t due = T0 + 20 * SECOND;

    create_active (&w);
    node_tick (w.n, due - MS);
    ok (w.lease_ups == 1 && w.want[0].rank == 3 && w.want[0].number == 1 && node_deadline (w.n) == due,
        "a node without children requests a renewal after a third of its lease");
    node_tick (w.n, due);
    ok (w.lease_ups == 2 && w.want[0].number == 2 && w.want[0].end_ms == 70000,
        "the request for a renewal has the end of the lease that the node holds");
    give (&w, due, 70000, 90000);
    ask_lease (&w, due + SECOND, 7, 1, 0, 0);
    ok (w.lease_ups == 3 && w.nwant == 1 && w.want[0].rank == 7,
        "a fenced child's request for a lease is relayed immediately");
    give (&w, due + SECOND, 80000, 91000);
    ok (w.lease_replies == 1 && w.answer.ngrant == 1 && w.grant[0].box.generator == 7 && w.answer.sent_us == 31 * SECOND
            && w.answer.received_us == 31 * SECOND,
        "the answer to a child's request is relayed with this node's time");
    ask_lease (&w, due + 17 * SECOND, 7, 2, 91000, 0);
    ok (w.lease_ups == 3, "a child's request for a renewal waits for others");
    node_tick (w.n, due + 20 * SECOND);
    ok (w.lease_ups == 3, "this node's own request for a renewal waits together with a child's request");
    node_tick (w.n, due + 22 * SECOND);
    ok (w.lease_ups == 4 && w.nwant == 2 && w.want[0].rank == 7 && w.want[1].rank == 3,
        "this node's request for a renewal and its child's request are sent in one message");
    node_lease_failed (w.n, due + 23 * SECOND, w.lease_tag, EHOSTUNREACH);
    ok (w.lease_replies == 2 && w.answer.ngrant == 0,
        "if the message with a child's request is lost, the child is answered without a grant");
    destroy (&w, due + 24 * SECOND);
}

/* CLOCK_BOOTTIME jumps by 2 s while a child's request is under way. */
static void test_relay_jump (void)
{
    struct world w;

    create_active (&w);
    ask_lease (&w, T0 + SECOND, 7, 1, 0, 0);
    node_lost_time (w.n, T0 + 3 * SECOND, -(int64_t)(2 * SECOND));
    tell_time (&w, T0 + 3 * SECOND, 11 * SECOND);
    give (&w, T0 + 3 * SECOND, 80000, 91000);
    ok (w.lease_replies == 1 && w.answer.has_time && w.answer.received_us == w.answer.sent_us,
        "a jump of CLOCK_BOOTTIME does not count as time that a child's request waited");
    destroy (&w, T0 + 4 * SECOND);
}

/* A subtree starts: all its ranks are fenced, and their requests arrive one by one. */
static void test_relay_start (void)
{
    struct world w;
    int sleepless = 0;

    create_active (&w);
    int before = w.lease_ups;
    for (uint32_t i = 0; i < 60; i++) {
        uint64_t now_us = T0 + SECOND + i * MS;

        ask_lease (&w, now_us, 100 + i, 1, 0, 0);
        node_tick (w.n, now_us);
        sleepless += node_deadline (w.n) <= now_us;
    }
    ok (w.lease_ups == before + 3, "sixty requests of fenced children within 60 ms are sent in three messages");
    ok (sleepless == 0, "while requests of fenced children wait, the node is not due");
    node_tick (w.n, T0 + SECOND + 60 * MS);
    ok (w.lease_ups == before + 4 && w.want[0].rank == 141,
        "requests of fenced children that are not in the first messages are in the next one");
    destroy (&w, T0 + 2 * SECOND);

    create (&w, 3);
    node_parent (w.n, T0, true);
    node_lease_failed (w.n, T0 + MS, w.lease_tag, EHOSTUNREACH);
    before = w.lease_ups;
    node_parent (w.n, T0 + 2 * MS, false);
    node_parent (w.n, T0 + 3 * MS, true);
    ok (w.lease_ups == before && node_deadline (w.n) == T0 + 20 * MS,
        "after a parent was lost and connected again, the requests of children are not sent again");
    node_tick (w.n, T0 + 20 * MS);
    ok (w.lease_ups == before + 1, "after a parent was lost and connected again, this node's own request is sent");
    destroy (&w, T0 + SECOND);
}

/* --- the watermark ---------------------------------------------------------------------------------- */

static struct report child_report (uint32_t generator, uint64_t low_ms)
{
    struct report r = { .from = CHILD, .low_ms = low_ms };

    holders_add (&r.holders, generator, CHILD);
    return r;
}

static void test_report (void)
{
    struct world w;
    struct report r = child_report (7, 9990);
    struct holders both = { 0, 0 };

    holders_add (&both, 3, UUID);
    create (&w, 3);
    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    ok (w.reports == 0, "a rank that was granted no range sends no report");
    give (&w, T0, 10000, 70000);
    node_tick (w.n, T0 + 500 * MS);
    node_tick (w.n, T0 + 1500 * MS);
    ok (w.reports == 1 && w.report.holders.count == 1 && w.report.holders.sum == both.sum && w.report.low_ms == 11500
            && strcmp (w.report.from, UUID) == 0,
        "a node sends regular reports of the time below which it will make no id");
    request (&w, T0 + 1500 * MS, 1, 1, make_id (13400, 9, 0), false);
    node_tick (w.n, T0 + 3 * SECOND);
    ok (w.reports == 2 && w.report.low_ms == 11500,
        "the report of a node is not above the arrival of a waiting request");
    node_tick (w.n, T0 + 3501 * MS);
    node_report (w.n, T0 + 3501 * MS, &r);
    node_tick (w.n, T0 + 4500 * MS);
    holders_add (&both, 7, CHILD);
    ok (w.reports == 3 && w.report.holders.sum == both.sum && w.report.low_ms == 9990,
        "the report of a node includes the reports of its children");
    node_tick (w.n, T0 + 10501 * MS);
    ok (w.reports == 4 && w.report.holders.count == 1 && w.report.low_ms == 20501,
        "the report of a node includes a child only as long as the child reports");
    node_tick (w.n, T0 + 75 * SECOND);
    ok (w.report.holders.count == 0 && state (&w, T0 + 75 * SECOND) == NODE_FENCED,
        "a node that could not renew its lease for a lease and a quarter leaves itself out of its report");
    int before = w.reports;
    node_tick (w.n, T0 + 80 * SECOND);
    ok (w.reports == before, "a node that leaves itself out of its report sends that report once");
    destroy (&w, T0 + 81 * SECOND);

    create_active (&w);
    node_tick (w.n, T0 + SECOND);
    stop (&w, T0 + SECOND);
    ok (w.report.holders.count == 0, "a node that stops withdraws its report");
    discard (&w);
}

static void test_watermark (void)
{
    struct world w;
    uint64_t ms = 0;
    struct report r = child_report (5, 10900);

    create_root (&w);
    ok (w.record.watermark_ms == 0 && w.record.settle_ms > 75000 && w.record.settle_ms < 80000,
        "with the horizon the root stores the watermark, which is not above the horizon, and the time for which "
        "leases may be in use");
    ok (authority_watermark (w.a, T0, &ms) && ms == 10000,
        "a root without other ranks publishes its own position as the watermark");
    ask_lease (&w, T0, 5, 1, 0, 0);
    ok (w.answer.lease_ms == 60000, "each answer of the root contains the length of a lease");
    ok (authority_watermark (w.a, T0 + SECOND, &ms) && ms == 10000, "the watermark waits for a child that holds a "
                                                                    "lease");
    node_report (w.n, T0 + SECOND, &r);
    ok (authority_watermark (w.a, T0 + SECOND, &ms) && ms == 10900,
        "the watermark is the position that the child with a lease reports");
    ask_lease (&w, T0 + SECOND, 6, 1, 0, 0);
    ok (w.answer.ngrant == 1 && w.grant[0].box.range.lo_ms == 10900,
        "no range that is granted later begins below the watermark");
    struct lease_record last = stop (&w, T0 + SECOND);
    ok (last.watermark_ms == 10900 && last.horizon_ms == 71000,
        "a stop stores the watermark while leases may be in use");
    ok (!authority_watermark (w.a, T0 + SECOND, &ms), "after a stop no watermark is published");
    discard (&w);

    create_root (&w);
    request (&w, T0 + 500 * MS, 1, 1, 0, false);
    last = stop (&w, T0 + SECOND);
    ok (last.watermark_ms == last.horizon_ms, "if no lease is in use at a stop, the stored watermark is the horizon");
    discard (&w);

    create (&w, 0);
    start_root (&w, T0, (int64_t)(110 * SECOND), &(struct lease_record){ 9000, 8000, 500, 0, 0 });
    stored (&w, T0, w.record.horizon_ms);
    ok (authority_watermark (w.a, T0 + 499 * MS, &ms) && ms == 8000,
        "after a crash the watermark waits for ranks that the root does not know");
    ok (authority_watermark (w.a, T0 + 500 * MS, &ms) && ms == 10500,
        "after a crash the watermark rises when the leases of unknown ranks are over");
    ask_lease (&w, T0 + SECOND, 5, 1, 0, 4711);
    ok (!authority_watermark (w.a, T0 + SECOND, &ms),
        "if leases of another root are in use, the root publishes no watermark");
    destroy (&w, T0 + 2 * SECOND);
}

static void test_config (void)
{
    struct node_config config = { .max_generators = 0, .incarnation = UUID, .lease_ms = 60000 };

    ok (!node_create (&config, &world_ops, NULL) && errno == EINVAL, "a node with max_generators of 0 is refused");
    config.max_generators = 16385;
    ok (!node_create (&config, &world_ops, NULL), "a node with more generators than the format has is refused");
    config.max_generators = 1;
    config.lease_ms = 11;
    ok (!node_create (&config, &world_ops, NULL), "a node with a lease that is too short to be renewed is refused");
    const struct node_config good = { .max_generators = 1, .incarnation = UUID, .lease_ms = 12 };
    struct node_config bad[] = { good, good, good, good };
    bad[0].lease_ms = bad[1].max_backlog_ms = bad[2].forward_timeout_ms = UINT64_C (1) << 40;
    bad[3].incarnation[1] = '\0';
    for (size_t i = 0; i < 4; i++)
        ok (!node_create (&bad[i], &world_ops, NULL) && errno == EINVAL,
            "a node with values that are too large, or with an invalid UUID, is refused");
}

/* --- lanes ------------------------------------------------------------------------------------------ */

static void test_lanes (void)
{
    struct node_config config = { .rank = 2,
                                  .max_generators = 10,
                                  .lanes = 3,
                                  .size = 3,
                                  .incarnation = UUID,
                                  .lease_ms = 60000,
                                  .max_backlog_ms = 2000,
                                  .forward_timeout_ms = 5000,
                                  .max_waiting = 100 };
    struct world w = { .n = node_create (&config, &world_ops, &w) };
    struct record *r;

    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    ok (w.want[0].rank == 2 && w.want[0].size == BOX_WHOLE && w.want[0].ranks == 3,
        "three lanes have one lease, for the first generator, and its request names the number of ranks");
    give (&w, T0, 10000, 70000);
    r = request (&w, T0, 1, 2000, 0, false);
    ok (r->answers == 1 && r->nruns == 2 && r->sound && fluid_split (r->first).generator == 2
            && fluid_split (r->last).generator == 5 && ms_of (r->last) == 10000,
        "a rank with three lanes makes two thousand ids in a millisecond");
    r = request (&w, T0, 2, 1072, 0, false);
    ok (r->answers == 1 && r->sound && fluid_split (r->last).generator == 8 && fluid_split (r->last).sequence == 1023,
        "a rank with three lanes makes ids up to the last one of the third generator");
    r = request (&w, T0, 3, 5000, 0, false);
    ok (r->answers == 0, "a request for more ids than the lanes have in the millisecond waits");
    node_tick (w.n, T0 + 2 * MS);
    ok (r->answers == 1 && r->sound && ms_of (r->first) == 10001 && ms_of (r->last) == 10002,
        "a request for more ids than the lanes have in the millisecond is completed in the next milliseconds");
    r = request (&w, T0 + 4 * MS, 4, 1, make_id (10004, 2, 9), false);
    ok (r->answers == 0,
        "a rank with lanes makes no id in the millisecond of 'after' if another rank made that id under its generator");
    node_tick (w.n, T0 + 5 * MS);
    ok (r->answers == 1 && ms_of (r->first) == 10005,
        "the rank with lanes makes the ids in the millisecond after the id of the other rank");
    for (size_t i = 5; i < 5 + 40; i++)
        request (&w, T0 + 5 * MS, i, 65536, 0, false);
    ok (w.req[44].answers == 0, "the backlog of a rank with lanes has as many times more ids as there are lanes");
    destroy (&w, T0 + 6 * MS);

    w = (struct world){ .n = node_create (&config, &world_ops, &w) };
    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    give (&w, T0, 10000, 70000);
    request (&w, T0 + 5 * MS, 1, 1, 0, false);
    r = request (&w, T0 + 3 * MS, 2, 1, 0, false);
    ok (w.req[1].first == make_id (10005, 2, 0) && r->answers == 0,
        "at a time before the last id, a lane that was not used yet makes no id");
    node_tick (w.n, T0 + 6 * MS);
    ok (r->answers == 1 && r->first > w.req[1].first,
        "after a time that went back, the next id of a rank with lanes is above the last one");
    destroy (&w, T0 + 6 * MS);

    w = (struct world){ .n = node_create (&config, &world_ops, &w) };
    node_parent (w.n, T0, true);
    tell_time (&w, T0, 10 * SECOND);
    request (&w, T0, 1, 1, 0, false);
    node_forwarded (w.n, T0, w.tag, &(struct id_run){ make_id (10000, 9, 1), 1 }, 1);
    give (&w, T0, 10000, 70000);
    r = request (&w, T0, 2, 1, 0, false);
    ok (w.req[1].answers == 1 && r->answers == 0, "no lane makes an id below one that came from the parent");
    node_tick (w.n, T0 + MS);
    ok (r->answers == 1 && r->first == make_id (10001, 2, 0),
        "the id after one that came from the parent is above it, in the first lane");
    destroy (&w, T0 + MS);

    config.max_generators = 8;
    ok (!node_create (&config, &world_ops, &w) && errno == EINVAL,
        "a node is refused if the format has no generator for each of its lanes");
    config.max_generators = 9;
    config.rank = 3;
    ok (!node_create (&config, &world_ops, &w) && errno == EINVAL,
        "a node whose rank is not below the size is refused");
}

/* How many requests of a requester are accepted. */
static int take_all (struct world *w, const char *requester, bool others)
{
    const struct node_request req = { .cookie = (void *)1, .count = 1, .asker = requester, .others = others };
    int n = 0;

    while (n < 1000 && node_block (w->n, T0, &req))
        n++;
    return n;
}

/* Of 100 slots, all users except the owner have 50 together, and one of them half of what is left of these. */
static void test_users (void)
{
    struct world w;
    char name[32];
    int all, n;

    create (&w, 3);
    all = take_all (&w, "user 1000", true);
    ok (all == 25, "one user has half of the places of all users except the owner: %d", all);
    for (int i = 1001; (snprintf (name, sizeof (name), "user %d", i), n = take_all (&w, name, true)) > 0; i++)
        all += n;
    ok (all == 50, "all users except the owner together have half of the places: %d", all);
    n = take_all (&w, "a", false);
    ok (n == 25, "a connection of the owner has half of the remaining places: %d", n);
    n = take_all (&w, "b", false);
    ok (n > 0 && take_all (&w, "user 2000", true) == 0,
        "another connection of the owner gets places, and another user gets none: %d", n);
    destroy (&w, T0);
}

int main (void)
{
    test_generate ();
    test_users ();
    test_limits ();
    test_fence ();
    test_order ();
    test_turns ();
    test_combine ();
    test_turns_up ();
    test_newcomers_up ();
    test_newcomers_gone ();
    test_bad_answers ();
    test_trouble ();
    test_not_sent ();
    test_final_errors ();
    test_newcomers_apart ();
    test_other_root ();
    test_ahead ();
    test_stopped ();
    test_far_after ();
    test_root ();
    test_end_of_time ();
    test_pause ();
    test_reload ();
    test_reload_in_debt ();
    test_reload_twice ();
    test_reload_ahead ();
    test_reload_time ();
    test_restart ();
    test_stop ();
    test_time ();
    test_relay ();
    test_relay_jump ();
    test_relay_start ();
    test_lanes ();
    test_report ();
    test_watermark ();
    test_config ();
    return done_testing ();
}
