/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_lease.c - brokers that lie about leases, to a root and to an inner node with real state
 *
 * Each line is an action. For the root: a request for leases or for a part (w), a report of positions (r), an honest
 * request for a generator (h and two digits: generator, incarnation) or for a part (p and two digits: size,
 * incarnation), a request for ids (k and an id as JSON). For the inner node: the same actions as capital letters,
 * except H, and an answer (A) to its last lease request, or runs of ids (F, binary) for its forward. '+' and '*'
 * advance the time. '=' delivers the answers between the two.
 *
 * For every input, nothing may be granted to two incarnations, unless the first has returned it. The root may make no
 * id of a part that it granted. The watermark may never decrease.
 */
#include <stdio.h>

#include <jansson.h>

#include "fuzz.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/service/wire.h"

#define TABLE_MAX 4096
#define LEASE_MS 1200
#define GENERATORS 8
#define UUID(C) C C C C C C C C "-0000-4000-8000-000000000000"

/* What was granted, and not returned. */
struct table {
    struct grant grant[TABLE_MAX];
    size_t n;
};

struct world {
    struct authority *authority;
    struct node *root, *inner;
    uint64_t now_us;
    struct table granted, parts[2]; /* whole generators; what the root and the inner node granted of theirs */
    fluid_t last[2];                /* greatest id that each node made */
    uint64_t watermark_ms;
    uint64_t number;
    uint32_t lease_tag, forward_tag;
    struct lease_record store;
    bool storing;
};

struct side {
    struct world *w;
    int which; /* 0: the root; 1: the inner node */
};

/* --- what must hold -------------------------------------------------------------------------- */

static bool overlap (const struct box *a, const struct box *b)
{
    return a->generator == b->generator && (a->granules & b->granules) != 0 && a->range.lo_ms < b->range.hi_ms
           && b->range.lo_ms < a->range.hi_ms;
}

static void note_grant (struct table *t, const struct grant *g)
{
    must (g->box.range.lo_ms < g->box.range.hi_ms && g->box.generator < GENERATORS && g->box.granules != 0);
    for (size_t i = 0; i < t->n; i++) {
        const struct grant *o = &t->grant[i];
        bool same = o->rank == g->rank && strcmp (o->incarnation, g->incarnation) == 0;

        must (same || !overlap (&o->box, &g->box));
    }
    if (t->n < TABLE_MAX)
        t->grant[t->n++] = *g;
}

/* Split a grant: what is kept stays, the rest ends at 'end_ms'. Without room all of it stays granted. */
static void cut (struct table *t, struct grant *g, uint64_t end_ms, uint64_t kept)
{
    kept &= g->box.granules;
    if (g->box.range.hi_ms <= end_ms || kept == g->box.granules)
        return;
    if (kept != 0) {
        if (t->n == TABLE_MAX)
            return;
        t->grant[t->n] = *g;
        t->grant[t->n++].box.granules = kept;
        g->box.granules &= ~kept;
    }
    g->box.range.hi_ms = end_ms;
}

/* From 'end_ms' on the sender uses only what it keeps of what it was granted for requests with lower numbers. */
static void note_want (struct table *t, const struct want *want)
{
    size_t n = t->n;

    for (size_t i = 0; want->end_ms > 0 && i < n; i++) {
        struct grant *o = &t->grant[i];

        if (o->rank == want->rank && strcmp (o->incarnation, want->incarnation) == 0 && o->number < want->number)
            cut (t, o, want->end_ms, want->kept);
    }
}

static void check_id (const struct table *t, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);
    const struct box box = { f.generator,
                             UINT64_C (1) << f.sequence / FLUID_GRANULE,
                             { f.timestamp_ms, f.timestamp_ms + 1 } };

    for (size_t i = 0; i < t->n; i++)
        must (!overlap (&t->grant[i].box, &box));
}

static void check_watermark (struct world *w)
{
    uint64_t ms;

    if (!authority_watermark (w->authority, w->now_us, &ms))
        return;
    must (ms >= w->watermark_ms);
    w->watermark_ms = ms;
}

/* --- what the nodes want ------------------------------------------------------------------------ */

static void reply_cb (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct side *s = arg;

    must (nruns > 0);
    for (size_t i = 0; i < nruns; i++)
        must (run[i].n > 0 && (i == 0 || run[i].first > run[i - 1].first));
    if (s->which != 0)
        return;
    must (run[0].first > s->w->last[0]);
    s->w->last[0] = run[nruns - 1].first;
    for (size_t i = 0; i < nruns; i++)
        for (uint32_t k = 0; k < run[i].n; k += FLUID_GRANULE)
            check_id (&s->w->parts[0], run[i].first + k);
}

static void fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    must (errnum > 0);
}

static int forward_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct side *s = arg;

    must (count > 0);
    s->w->forward_tag = tag;
    return 0;
}

static void cancel_cb (void *arg)
{
}

static int lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct side *s = arg;

    must (s->which == 1);
    if (tag)
        s->w->lease_tag = tag;
    return 0;
}

/* A request for a part has its sender as cookie. */
static void lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct side *s = arg;

    for (size_t i = 0; cookie != s->w && i < answer->ngrant; i++)
        note_grant (&s->w->parts[s->which], &answer->grant[i]);
}

static void store_cb (void *arg, const struct lease_record *record)
{
    struct side *s = arg;

    must (!s->w->storing && record->horizon_ms >= s->w->store.horizon_ms
          && record->watermark_ms >= s->w->store.watermark_ms);
    s->w->store = *record;
    s->w->storing = true;
}

static void report_up_cb (void *arg, const struct report *report)
{
}

static void log_cb (void *arg, int level, const char *text)
{
    must (text && *text);
}

static const struct node_ops ops = {
    .reply = reply_cb,
    .fail = fail_cb,
    .forward = forward_cb,
    .cancel = cancel_cb,
    .lease_up = lease_up_cb,
    .lease_reply = lease_reply_cb,
    .report_up = report_up_cb,
    .log = log_cb,
};

static void positions_cb (void *arg, uint64_t now_us, struct report *all)
{
    struct side *s = arg;

    node_positions (s->w->root, now_us, all);
}

static const struct authority_ops authority_ops = { store_cb, positions_cb, log_cb };

/* --- what comes ------------------------------------------------------------------------------------ */

static void turn (struct world *w)
{
    if (w->storing) {
        w->storing = false;
        authority_stored (w->authority, w->now_us, w->store.horizon_ms);
    }
    authority_tick (w->authority, w->now_us);
    node_tick (w->root, w->now_us);
    node_tick (w->inner, w->now_us);
    check_watermark (w);
}

static void pass (struct world *w, uint64_t us)
{
    w->now_us += us;
    turn (w);
    authority_wall (w->authority, w->now_us, (int64_t)w->now_us + 1000000000000);
    node_tick (w->root, w->now_us);
}

static void ask_root (struct world *w, const struct lease_request *req)
{
    struct lease_answer answer;

    for (size_t i = 0; i < req->nwant; i++)
        note_want (&w->granted, &req->want[i]);
    authority_answer (w->authority, w->now_us, req, &answer);
    for (size_t i = 0; i < answer.ngrant; i++)
        note_grant (&w->granted, &answer.grant[i]);
    node_tick (w->root, w->now_us);
}

static void ask_part (struct world *w, struct node *n, const struct lease_request *req)
{
    note_want (&w->parts[n == w->root ? 0 : 1], &req->want[0]);
    node_lease_request (n, w->now_us, (void *)req->want, req);
}

static void request (struct world *w, struct node *n, const json_t *o)
{
    struct lease_request req;

    if (!o || wire_get_lease_request (o, &req, NULL) < 0)
        return;
    if (req.is_part)
        ask_part (w, n, &req);
    else if (n == w->root)
        ask_root (w, &req);
    else
        node_lease_request (n, w->now_us, w, &req);
    lease_request_fini (&req);
}

static void honest (struct world *w, const char *digits)
{
    struct want want = { .number = ++w->number, .size = BOX_WHOLE };
    struct lease_request req = { .want = &want, .nwant = 1 };

    want.rank = (uint32_t)(digits[0] & 7);
    memset (want.incarnation, 'a' + (digits[0] ? digits[1] & 3 : 0), IDT_MSG_UUID_LEN);
    ask_root (w, &req);
}

static void honest_part (struct world *w, struct node *n, const char *digits)
{
    struct want want = { .rank = 9, .number = ++w->number, .end_ms = w->now_us / 1000 };
    struct lease_request req = { .want = &want, .nwant = 1, .is_part = true };

    want.size = (digits[0] & 7) < 6 ? BOX_MIN_SIZE << (digits[0] & 7) : 0;
    memset (want.incarnation, 'a' + (digits[0] ? digits[1] & 3 : 0), IDT_MSG_UUID_LEN);
    ask_part (w, n, &req);
}

static void report (struct world *w, struct node *n, const json_t *o)
{
    struct report r;

    if (o && wire_get_report (o, &r, NULL) == 0)
        node_report (n, w->now_us, &r);
}

static void block (struct world *w, struct node *n, const json_t *o)
{
    struct node_request req = { .cookie = w, .count = 1, .from_broker = json_is_true (json_object_get (o, "broker")) };

    req.count = (uint32_t)json_integer_value (json_object_get (o, "count"));
    req.after = (fluid_t)json_integer_value (json_object_get (o, "after"));
    node_block (n, w->now_us, &req);
}

static void answer (struct world *w, const json_t *o)
{
    struct lease_answer a;

    if (!o || wire_get_lease_answer (o, &a, NULL) < 0)
        return;
    node_lease_answered (w->inner, w->now_us, w->lease_tag, &a);
    free ((void *)a.grant);
}

static void forwarded (struct world *w, const void *data, size_t size)
{
    size_t n;
    struct id_run *run = wire_get_runs (data, size, NULL, 0, &n);

    if (run)
        node_forwarded (w->inner, w->now_us, w->forward_tag, run, n);
    else
        node_forward_failed (w->inner, w->now_us, w->forward_tag, 113);
    free (run);
}

static void take (struct world *w, const char *line, size_t len)
{
    json_t *o = len > 1 && line[1] == '{' ? json_loadb (line + 1, len - 1, 0, NULL) : NULL;

    switch (line[0]) {
    case 'w':
        request (w, w->root, o);
        break;
    case 'W':
        request (w, w->inner, o);
        break;
    case 'r':
        report (w, w->root, o);
        break;
    case 'R':
        report (w, w->inner, o);
        break;
    case 'k':
        block (w, w->root, o);
        break;
    case 'K':
        block (w, w->inner, o);
        break;
    case 'h':
        honest (w, line + 1);
        break;
    case 'p':
        honest_part (w, w->root, line + 1);
        break;
    case 'P':
        honest_part (w, w->inner, line + 1);
        break;
    case 'A':
        answer (w, o);
        break;
    case 'F':
        forwarded (w, line + 1, len - 1);
        break;
    case 'U':
        node_parent (w->inner, w->now_us, len > 1);
        break;
    case '+':
        pass (w, 1000 * (len + 1));
        break;
    case '*':
        pass (w, LEASE_MS * 1000 / 2);
        break;
    case '#':
        pass (w, LEASE_MS * 10000);
        break;
    default:
        break;
    }
    json_decref (o);
    turn (w);
}

static struct node *make (uint32_t rank, struct side *side)
{
    struct node_config config = {
        .rank = rank,
        .max_generators = GENERATORS,
        .incarnation = UUID ("0"),
        .lease_ms = LEASE_MS,
        .max_backlog_ms = 2000,
        .forward_timeout_ms = 5000,
        .max_waiting = 8,
        .share = NODE_SHARE_AUTO,
        .share_keep = 64,
    };
    struct node *n;

    config.incarnation[0] = (char)('0' + rank);
    must ((n = node_create (&config, &ops, side)) != NULL);
    return n;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct world world; /* static, because it is large */
    struct world *w = &world;
    struct side root = { w, 0 }, inner = { w, 1 };
    struct input in = { data, size };
    struct authority_config config = { .max_generators = GENERATORS, .lease_ms = LEASE_MS, .epoch_ms = 1000000 };
    struct lease_record none = { 0 };
    size_t len;
    char *line;

    memset (w, 0, sizeof (*w));
    w->now_us = 1000000000;
    struct authority_start start = { .wall_us = (int64_t)w->now_us + 1000000000000, .stored = &none };
    w->root = make (0, &root);
    w->inner = make (3, &inner);
    w->authority = authority_create (&config, &authority_ops, &root, w->now_us, &start);
    must (w->authority != NULL);
    node_start_root (w->root, w->now_us, w->authority);
    node_parent (w->inner, w->now_us, true);
    turn (w);
    while ((line = input_line (&in, &len))) {
        if (len > 0)
            take (w, line, len);
        free (line);
    }
    node_stop (w->inner, w->now_us);
    node_stop (w->root, w->now_us);
    authority_close (w->authority, w->now_us, &none);
    must (none.horizon_ms >= w->watermark_ms);
    node_destroy (w->inner);
    node_destroy (w->root);
    authority_destroy (w->authority);
    return 0;
}
