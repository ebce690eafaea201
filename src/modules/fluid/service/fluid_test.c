/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_test.c - the fluid module in a tree of brokers that the test simulates
 *
 * Each rank runs the module on an inline transport; all share one reactor. The test routes messages: a request with the
 * UPSTREAM flag to the parent's module, and responses back along the route. It can send a client's request to any rank.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "libidtree/transport.h"
#include "libutil/clock.h"
#include "libutil/queue/fifo.h"
#include "libutil/clock.h"
#include "test/tap.h"
#include "test/faulty_disk.h"
#include "modules/fluid/service/horizon_store.h"
#include "modules/fluid/service/wire.h"

#define NRANKS 7 /* parent of r: (r - 1) / 2 */
#define CLIENT "cccccccc-cccc-4ccc-8ccc-cccccccccccc"

struct rank {
    struct tree *tree;
    uint32_t rank;
    char rank_text[12];
    char uuid[IDT_MSG_UUID_LEN + 1];
    idt_t *h;
    void *ctx;
    struct fifo out; /* messages that the module sent */
    const struct idt_overlay_ops *ops;
    void *ops_arg;
    bool cut; /* disconnected from its parent */
    char log[512];
    int logged;
};

struct tree {
    idt_reactor_t *r;
    struct rank rank[NRANKS];
    char dir[64];
    const char *options[16]; /* name, value, ... */
    uint32_t incarnations;
    struct fifo answers; /* to the test's clients */
    bool old;            /* a version without fluid.trace */
    unsigned refused;    /* how many fluid.trace requests it refused */
};

/* --- the broker's side of a module ------------------------------------------------------------------------ */

static int inline_send (void *impl, const idt_msg_t *msg)
{
    struct rank *k = impl;

    return fifo_push (&k->out, idt_msg_ref (msg));
}

static const char *inline_attr_get (void *impl, const char *name)
{
    struct rank *k = impl;

    if (strcmp (name, "rank") == 0)
        return k->rank_text;
    if (strcmp (name, "broker.uuid") == 0)
        return k->uuid;
    if (strcmp (name, "statedir") == 0 && k->rank == 0)
        return k->tree->dir;
    for (const char **o = k->tree->options; *o; o += 2)
        if (strcmp (*o, name) == 0)
            return o[1];
    errno = ENOENT;
    return NULL;
}

static const char *inline_attr_define (void *impl, const char *name, const char *value)
{
    const char *given = inline_attr_get (impl, name);

    return given ? given : value;
}

static int inline_attach (void *impl, const struct idt_overlay_ops *ops, void *arg)
{
    struct rank *k = impl;

    k->ops = ops;
    k->ops_arg = arg;
    return 0;
}

/* Decides as a broker does: by the route of the request. A sender that is not a rank of the tree may name any rank. */
static bool inline_covers (void *impl, const idt_msg_t *request, uint32_t rank)
{
    struct tree *t = ((struct rank *)impl)->tree;
    const char *from = idt_msg_route_newest (request);

    for (uint32_t i = 0; from && i < NRANKS; i++)
        if (strcmp (t->rank[i].uuid, from) == 0) {
            while (rank > i)
                rank = (rank - 1) / 2;
            return rank == i;
        }
    return true;
}

static void inline_log (void *impl, int level, const char *name, const char *text)
{
    struct rank *k = impl;

    if (level > LOG_ERR)
        return;
    k->logged++;
    snprintf (k->log, sizeof (k->log), "%s", text);
}

static void inline_destroy (void *impl)
{
}

static const struct idt_transport hosted = {
    .send = inline_send,
    .attr_get = inline_attr_get,
    .attr_define = inline_attr_define,
    .overlay_attach = inline_attach,
    .overlay_covers = inline_covers,
    .log = inline_log,
    .destroy = inline_destroy,
};

/* --- routing ------------------------------------------------------------------------------------------------ */

static struct rank *parent_of (struct rank *k)
{
    return &k->tree->rank[(k->rank - 1) / 2];
}

static void fail_up (struct rank *k, const idt_msg_t *msg, int errnum)
{
    idt_msg_t *response = idt_msg_respond (msg, errnum);

    idt_handle_dispatch (k->h, response);
    idt_msg_unref (response);
}

/* Pass a module's request to the module of its parent, marked as received over the overlay. */
static void route_request (struct rank *k, const idt_msg_t *msg)
{
    if (k->rank == 0 || k->cut || !parent_of (k)->h) {
        fail_up (k, msg, EHOSTUNREACH);
        return;
    }
    if (k->tree->old && strcmp (idt_msg_topic (msg), "fluid.trace") == 0) {
        k->tree->refused++;
        fail_up (k, msg, ENOSYS);
        return;
    }
    idt_msg_t *copy = idt_msg_copy (msg, true);

    idt_msg_route_clear (copy);
    idt_msg_route_push (copy, k->uuid);
    idt_msg_set_cred (copy, (struct idt_cred){ .userid = 0, .rolemask = IDT_ROLE_OWNER | IDT_ROLE_BROKER });
    idt_handle_dispatch (parent_of (k)->h, copy);
    idt_msg_unref (copy);
}

static void route_response (struct tree *t, const idt_msg_t *msg)
{
    const char *to = idt_msg_route_newest (msg);

    for (int i = 0; i < NRANKS; i++)
        if (to && strcmp (t->rank[i].uuid, to) == 0) {
            if (t->rank[i].h && !t->rank[i].cut)
                idt_handle_dispatch (t->rank[i].h, msg);
            return;
        }
    fifo_push (&t->answers, idt_msg_ref (msg));
}

static bool route_some (struct tree *t)
{
    const idt_msg_t *msg;
    bool any = false;

    for (int i = 0; i < NRANKS; i++)
        while ((msg = fifo_pop (&t->rank[i].out))) {
            any = true;
            if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
                route_response (t, msg);
            else
                route_request (&t->rank[i], msg);
            idt_msg_unref (msg);
        }
    return any;
}

static void turn (struct tree *t)
{
    while (route_some (t))
        ;
    idt_reactor_run (t->r, IDT_REACTOR_NOWAIT);
    while (route_some (t))
        ;
}

/* --- the tree ------------------------------------------------------------------------------------------------ */

static uint64_t now_us (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Simulate the overlay's heartbeat: give the rank a sample of its parent's clock. */
static void heartbeat (struct rank *k)
{
    struct idt_clock_sample s = { .sent_us = now_us () };

    if (k->rank == 0 || k->cut || !k->h || !parent_of (k)->h
        || !parent_of (k)->ops->read_clock (parent_of (k)->ops_arg, &s.peer_received_us, &s.peer_bound_us))
        return;
    s.peer_sent_us = s.peer_received_us;
    s.received_us = now_us ();
    k->ops->sample (k->ops_arg, &s);
}

static int start_rank (struct tree *t, uint32_t rank, idt_error_t *errp)
{
    struct rank *k = &t->rank[rank];

    *k = (struct rank){ .tree = t, .rank = rank };
    snprintf (k->rank_text, sizeof (k->rank_text), "%u", (unsigned)rank);
    snprintf (k->uuid, sizeof (k->uuid), "%08x-0000-4000-8000-%012x", (unsigned)rank, (unsigned)++t->incarnations);
    k->h = idt_handle_create (&hosted, k);
    if (!k->h || idt_set_reactor (k->h, t->r) < 0 || idt_handle_set_module (k->h, "fluid") < 0)
        bail_out ("idt_handle_create");
    if (idt_module.init (k->h, 0, NULL, &k->ctx, errp) < 0) {
        int saved = errno;
        idt_close (k->h);
        k->h = NULL;
        errno = saved;
        return -1;
    }
    heartbeat (k);
    if (rank > 0)
        k->ops->parent (k->ops_arg, true);
    turn (t);
    return 0;
}

static void drop (struct fifo *fifo)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (fifo)))
        idt_msg_unref (msg);
}

/* Stop the module cleanly: its last messages are still routed. */
static void stop_rank (struct tree *t, uint32_t rank)
{
    struct rank *k = &t->rank[rank];

    idt_module.fini (k->h, k->ctx);
    while (route_some (t))
        ;
    idt_close (k->h);
    k->h = NULL;
    drop (&k->out);
    fifo_fini (&k->out);
}

/* Simulate kill -9: the messages that the module sends at its end are dropped. Not for rank 0. */
static void kill_rank (struct tree *t, uint32_t rank)
{
    struct rank *k = &t->rank[rank];

    k->cut = true;
    stop_rank (t, rank);
}

static void cut (struct tree *t, uint32_t rank, bool cut)
{
    struct rank *k = &t->rank[rank];

    k->cut = cut;
    k->ops->parent (k->ops_arg, !cut);
    turn (t);
}

/* Options: name, value, ..., NULL. */
static void tree_init (struct tree *t, ...)
{
    va_list ap;
    const char *s;
    int n = 0;

    *t = (struct tree){ .r = idt_reactor_create () };
    strcpy (t->dir, "/tmp/idtree-fluid-XXXXXX");
    if (!t->r || !mkdtemp (t->dir))
        bail_out ("mkdtemp");
    va_start (ap, t);
    while ((s = va_arg (ap, const char *)))
        t->options[n++] = s;
    va_end (ap);
}

static void tree_start (struct tree *t)
{
    idt_error_t err;

    for (uint32_t i = 0; i < NRANKS; i++)
        if (start_rank (t, i, &err) < 0)
            bail_out (err.text);
}

static void tree_stop (struct tree *t)
{
    for (uint32_t i = NRANKS; i > 0; i--)
        if (t->rank[i - 1].h)
            stop_rank (t, i - 1);
}

static void tree_fini (struct tree *t)
{
    char path[128];

    tree_stop (t);
    drop (&t->answers);
    fifo_fini (&t->answers);
    snprintf (path, sizeof (path), "%s/fluid.sqlite", t->dir);
    unlink (path);
    rmdir (t->dir);
    idt_reactor_destroy (t->r);
}

/* --- a client -------------------------------------------------------------------------------------------------- */

static void send_request (struct tree *t, uint32_t rank, idt_msg_t *msg, uint32_t tag, uint32_t roles)
{
    idt_msg_set_matchtag (msg, tag);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1000, .rolemask = roles });
    idt_msg_route_push (msg, CLIENT);
    idt_handle_dispatch (t->rank[rank].h, msg);
    idt_msg_unref (msg);
}

static void ask_block (struct tree *t, uint32_t rank, uint32_t count, fluid_t after, uint32_t tag)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    uint8_t buf[BLOCK_REQUEST_SIZE];

    block_put_request (buf, count, after);
    idt_msg_set_topic (msg, "fluid.block");
    idt_msg_set_payload (msg, buf, sizeof (buf));
    send_request (t, rank, msg, tag, IDT_ROLE_OWNER | IDT_ROLE_LOCAL);
}

static void ask_json (struct tree *t, uint32_t rank, const char *topic, const char *payload, uint32_t roles)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, topic);
    idt_msg_set_string (msg, payload);
    send_request (t, rank, msg, 1, roles);
}

/* Wait for the next answer. The caller releases it with idt_msg_unref (). */
static const idt_msg_t *answer (struct tree *t)
{
    const idt_msg_t *msg;

    wait_until ((msg = fifo_pop (&t->answers))) turn (t);
    return msg;
}

/* Request ids from a rank and wait. Returns the first id, or 0 if the answer is not 'count' increasing ids above
 * 'after'.
 */
static fluid_t get_ids (struct tree *t, uint32_t rank, uint32_t count, fluid_t after, fluid_t *last)
{
    const void *data;
    size_t size, n = 0;
    uint64_t sum = 0;
    fluid_t first = 0;

    ask_block (t, rank, count, after, 1);
    const idt_msg_t *msg = answer (t);
    struct id_run *run = idt_msg_errnum (msg) == 0 && idt_msg_payload (msg, &data, &size) == 0
                             ? wire_get_runs (data, size, NULL, 0, &n)
                             : NULL;
    for (size_t i = 0; i < n; i++) {
        if (run[i].first <= after)
            sum = UINT64_MAX / 2;
        after = run[i].first + run[i].n - 1;
        sum += run[i].n;
    }
    if (sum == count) {
        first = run[0].first;
        *last = after;
    }
    free (run);
    idt_msg_unref (msg);
    return first;
}

/* The errno and text of the next answer. */
static int error_of (struct tree *t, char *text, size_t size)
{
    const idt_msg_t *msg = answer (t);
    const char *s = idt_msg_string (msg);
    int errnum = (int)idt_msg_errnum (msg);

    snprintf (text, size, "%s", s ? s : "");
    idt_msg_unref (msg);
    return errnum;
}

static json_t *info (struct tree *t, uint32_t rank)
{
    ask_json (t, rank, "fluid.info", NULL, IDT_ROLE_USER | IDT_ROLE_LOCAL);
    const idt_msg_t *msg = answer (t);
    json_t *o = idt_msg_json (msg, NULL);

    idt_msg_unref (msg);
    return o;
}

static bool state_is (struct tree *t, uint32_t rank, const char *state, int served_by)
{
    json_t *o = info (t, rank);
    bool good = o && strcmp (json_string_value (json_object_get (o, "state")), state) == 0
                && json_integer_value (json_object_get (o, "served_by")) == served_by;

    json_decref (o);
    return good;
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void test_tree (void)
{
    struct tree t;
    fluid_t last[NRANKS] = { 0 };
    int made_by[NRANKS], bad = 0;

    tree_init (&t, "fluid.max-generators", "2", NULL);
    tree_start (&t);
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < NRANKS; i++) {
            fluid_t id = get_ids (&t, i, 1500, last[i], &last[i]);

            made_by[i] = id ? (int)fluid_split (id).generator : -1;
            bad += id == 0;
        }
    ok (bad == 0, "each rank answers requests for ids, and the ids increase");
    wait_until (state_is (&t, 1, "active", 1));
    for (uint32_t i = 0; i < NRANKS; i++)
        made_by[i] = (int)fluid_split (get_ids (&t, i, 1, last[i], &last[i])).generator;
    ok (made_by[0] == 0 && made_by[1] == 1 && made_by[3] == 1 && made_by[4] == 1 && made_by[2] == 0 && made_by[5] == 0
            && made_by[6] == 0,
        "ranks above the number of generators are served by the nearest ancestor that has a generator");
    ok (state_is (&t, 0, "active", 0) && state_is (&t, 3, "idle", 1) && state_is (&t, 6, "idle", 0),
        "fluid.info names the rank that serves a rank without a generator");

    json_t *o = info (&t, 0);
    int64_t rank, generator, max;
    const char *timestamp, *epoch, *lo, *hi;
    double skew;
    ok (json_unpack (o, "{s:I s:I s:s s:s s:[s,s] s:F s:I}", "rank", &rank, "generator", &generator, "timestamp_ms",
                     &timestamp, "epoch", &epoch, "lease", &lo, &hi, "skew_bound_ms", &skew, "max_generators", &max)
                == 0
            && rank == 0 && generator == 0 && max == 2 && strlen (epoch) == 24 && strcmp (lo, "0") == 0 && skew <= 1.0,
        "fluid.info has all its members");
    json_decref (o);
    o = info (&t, 6);
    ok (json_is_null (json_object_get (o, "generator")) && json_is_string (json_object_get (o, "epoch")),
        "an idle rank gets the epoch from its ancestor");
    json_decref (o);

    ask_json (&t, 3, "fluid.generate", "{\"count\":3}", IDT_ROLE_USER | IDT_ROLE_LOCAL);
    const idt_msg_t *msg = answer (&t);
    const char *text;
    int n;
    fluid_t id = 0;
    ok (idt_msg_unpack (msg, &o, NULL, "{s:[[s,i]]}", "runs", &text, &n) == 0 && n == 3
            && fluid_parse (text, strlen (text), &id, NULL) == 0 && text[0] == 'f' && fluid_split (id).generator == 1,
        "fluid.generate returns runs with ids in F58");
    json_decref (o);
    idt_msg_unref (msg);
    tree_fini (&t);
}

static void test_errors (void)
{
    struct tree t;
    char text[256];
    static const struct {
        const char *topic, *payload;
        uint32_t roles;
        int errnum;
        const char *say;
    } cases[] = {
        { "fluid.generate", "{\"count\":0}", IDT_ROLE_USER, EINVAL, "65536" },
        { "fluid.generate", "{\"count\":65537}", IDT_ROLE_OWNER, EINVAL, "65536" },
        { "fluid.generate", "{\"count\":8193}", IDT_ROLE_USER, EPERM, "access.guest-block" },
        { "fluid.generate", "{\"count\":8193}", IDT_ROLE_USER | IDT_ROLE_GROUP, 0, "runs" },
        { "fluid.generate", "{\"count\":-1}", IDT_ROLE_USER, EINVAL, "65536" },
        { "fluid.generate", "{\"count\":\"x\"}", IDT_ROLE_USER, EINVAL, "65536" },
        { "fluid.generate", "[]", IDT_ROLE_USER, EPROTO, "" },
        { "fluid.block", "abc", IDT_ROLE_USER, EPROTO, "12 bytes" },
        { "fluid.block", NULL, IDT_ROLE_USER, EPROTO, "payload" },
        { "fluid.lease", "{\"want\":1}", IDT_ROLE_OWNER | IDT_ROLE_BROKER, EPROTO, "want" },
        { "fluid.stats-clear", NULL, IDT_ROLE_USER, EPERM, "" },
        { "fluid.nosuch", NULL, IDT_ROLE_USER, ENOSYS, "fluid.nosuch" },
        { "fluid.stats-get", NULL, IDT_ROLE_USER, 0, "\"renewals\":" },
        { "fluid.stats-clear", NULL, IDT_ROLE_OWNER, 0, "" },
        { "fluid.ping", "{\"seq\":1}", IDT_ROLE_USER, 0, "\"seq\":1" },
    };

    tree_init (&t, NULL);
    tree_start (&t);
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        ask_json (&t, 1, cases[i].topic, cases[i].payload, cases[i].roles);
        int errnum = error_of (&t, text, sizeof (text));
        ok (errnum == cases[i].errnum && strstr (text, cases[i].say), "a request gets this error or none: %s %s: %s %s",
            cases[i].topic, cases[i].payload ? cases[i].payload : "-", errnum ? strerror (errnum) : "success", text);
    }
    ask_block (&t, 1, 1, UINT64_MAX, 1);
    ok (error_of (&t, text, sizeof (text)) == EAGAIN, "a request with an 'after' too far ahead is refused: %s", text);
    tree_fini (&t);
}

/* Request nearly all ids of a guest's rate limit, many times. Returns whether each request is refused with 'say' in the
 * text.
 */
static bool all_refused (struct tree *t, uint32_t rank, const char *topic, const char *payload, const char *say)
{
    bool good = true;
    char text[256];

    for (int i = 0; i < 20; i++) {
        ask_json (t, rank, topic, payload, IDT_ROLE_USER);
        good = error_of (t, text, sizeof (text)) == EAGAIN && strstr (text, say) && good;
    }
    return good;
}

/* A refused request uses nothing of access.guest-rate. */
static void test_refused_costs_nothing (void)
{
    static const char far[] = "{\"count\":1000,\"after\":\"18446744073709551615\"}";
    char text[256];
    struct tree t;

    /* Rank 6 has no generator and no part of one, so a request waits there while the parent is away. */
    tree_init (&t, "access.guest-rate", "1000", "fluid.max-generators", "1", "fluid.share", "off", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 0, "active", 0)) turn (&t);
    ok (all_refused (&t, 0, "fluid.trace", far, "above one that is"),
        "traced requests for ids above an id far ahead are refused");
    ask_json (&t, 0, "fluid.generate", "{\"count\":1000}", IDT_ROLE_USER);
    ok (error_of (&t, text, sizeof (text)) == 0, "refused requests use nothing of the guest's rate limit: %s", text);
    t.rank[6].cut = true;
    for (int i = 0; i < 4; i++)
        ask_json (&t, 6, "fluid.trace", "{\"count\":1}", IDT_ROLE_USER);
    ok (all_refused (&t, 6, "fluid.trace", "{\"count\":900}", "traces"), /* the four are charged */
        "more traced requests than a guest may have are refused");
    ask_json (&t, 6, "fluid.generate", "{\"count\":1000}", IDT_ROLE_USER);
    turn (&t);
    ok (t.answers.count == 0, "a request that is not traced waits, even if the quota of traces is used up");
    for (int i = 0; i < 5; i++) {
        t.rank[6].cut = false;
        ok (error_of (&t, text, sizeof (text)) == 0, "all requests that waited are answered: %s", text);
    }
    tree_fini (&t);
}

/* Requests between brokers are refused from clients with any role: the broker removes IDT_ROLE_BROKER from what a
 * client sends.
 */
static void test_between_brokers (void)
{
    static const char *const topics[] = { "fluid.lease", "fluid.position", "fluid.cancel", "fluid.time" };
    static const uint32_t roles[] = { IDT_ROLE_OWNER, IDT_ROLE_OWNER | IDT_ROLE_LOCAL, IDT_ROLE_USER, IDT_ROLE_ALL,
                                      IDT_ROLE_NONE };
    static const char *const ends[] = { "{\"end_ms\":-1}", "{\"end_ms\":-9223372036854775808}", "{\"end_ms\":\"5\"}",
                                        "[]" };
    char text[256];
    struct tree t;

    tree_init (&t, "fluid.epoch", "2026-01-01T00:00:00Z", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 0, "active", 0)) turn (&t);
    for (size_t i = 0; i < sizeof (topics) / sizeof (topics[0]); i++) {
        bool refused = true;

        for (size_t k = 0; k < sizeof (roles) / sizeof (roles[0]); k++) {
            ask_json (&t, 0, topics[i], "{\"epoch\":\"2025-05-05T00:00:00Z\"}", roles[k]);
            refused = refused && error_of (&t, text, sizeof (text)) == EPERM && strstr (text, topics[i]);
        }
        ok (refused, "a client cannot send %s: %s", topics[i], text);
    }
    ask_json (&t, 0, "fluid.time", "{}", IDT_ROLE_OWNER | IDT_ROLE_BROKER);
    ok (error_of (&t, text, sizeof (text)) == EPERM && strstr (text, "one broker"),
        "a module of another broker cannot send such a request: %s", text);
    for (size_t i = 0; i < sizeof (ends) / sizeof (ends[0]); i++) {
        ask_json (&t, 0, "fluid.time", ends[i], IDT_ROLE_OWNER | IDT_ROLE_BROKER | IDT_ROLE_LOCAL);
        ok (error_of (&t, text, sizeof (text)) == EPROTO, "a module cannot return time with %s: %s", ends[i], text);
    }
    wait_until (state_is (&t, 0, "active", 0)); /* until the first horizon is stored */
    ok (t.rank[0].logged == 0, "refused requests change nothing, and are not logged");
    tree_fini (&t);
}

/* The parts that a rank granted, as "parts per_ms ranks"; "" if there are none. */
static const char *granted_by (struct tree *t, uint32_t rank)
{
    static char text[64];
    json_t *o = info (t, rank);
    json_int_t parts, per_ms;
    const char *ranks;

    text[0] = '\0';
    if (json_unpack (o, "{s:{s:I s:I s:s}}", "granted", "parts", &parts, "per_ms", &per_ms, "ranks", &ranks) == 0)
        snprintf (text, sizeof (text), "%d %d %s", (int)parts, (int)per_ms, ranks);
    json_decref (o);
    return text;
}

/* Ranks 0 and 1 own generators, and all others want a part of 48. */
static void test_part (void)
{
    json_int_t generator = -1, per_ms = -1;
    fluid_t last = 0;
    struct tree t;

    tree_init (&t, "fluid.max-generators", "2", "fluid.share", "48", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 3, "sharing", 3) && state_is (&t, 6, "sharing", 6)) turn (&t);
    ok (get_ids (&t, 3, 48, 0, &last) && fluid_split (last).generator == 1,
        "a rank with a part makes ids of the generator of its parent");
    json_t *o = info (&t, 3);
    ok (json_unpack (o, "{s:n s:n s:{s:I s:I}}", "generator", "lease", "part", "generator", &generator, "per_ms",
                     &per_ms)
                == 0
            && generator == 1 && per_ms == 48,
        "fluid.info contains the part of a rank");
    json_decref (o);
    wait_until (strcmp (granted_by (&t, 1), "2 96 3-4") == 0) turn (&t);
    ok (strcmp (granted_by (&t, 1), "2 96 3-4") == 0, "fluid.info contains what a rank granted: %s",
        granted_by (&t, 1));
    stop_rank (&t, 3);
    wait_until (strcmp (granted_by (&t, 1), "1 48 4") == 0) turn (&t);
    ok (strcmp (granted_by (&t, 1), "1 48 4") == 0, "a rank that stops returns its part: %s", granted_by (&t, 1));
    tree_fini (&t);
}

/* Rank 1 sends a request to rank 0 in the name of 'rank'. Returns the errno of the answer. */
static int lie (struct tree *t, const char *topic, const char *form, uint32_t rank)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    const idt_msg_t *answer;
    char payload[256];
    int errnum = -1;

    snprintf (payload, sizeof (payload), form, (unsigned)rank, t->rank[rank].uuid);
    if (idt_msg_set_topic (msg, topic) < 0 || idt_msg_set_string (msg, payload) < 0)
        bail_out ("cannot make a request");
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_cred (msg, (struct idt_cred){ 0, IDT_ROLE_OWNER | IDT_ROLE_BROKER });
    idt_msg_route_clear (msg);
    idt_msg_route_push (msg, t->rank[1].uuid);
    idt_handle_dispatch (t->rank[0].h, msg);
    idt_msg_unref (msg);
    while ((answer = fifo_pop (&t->rank[0].out))) {
        if (idt_msg_type (answer) == IDT_MSGTYPE_RESPONSE)
            errnum = idt_msg_errnum (answer);
        idt_msg_unref (answer);
    }
    return errnum;
}

static void test_liar (void)
{
    static const struct {
        const char *topic, *form, *what;
    } lies[] = {
        { "fluid.lease", "{\"want\":[[%u,\"%s\",1,\"0\"]]}", "requests leases" },
        { "fluid.lease", "{\"want\":[[%u,\"%s\",99,\"5\",0,0]]}", "returns leases" },
        { "fluid.lease", "{\"part\":[%u,\"%s\",98,\"0\",16,0,\"0\"]}", "requests parts" },
        { "fluid.lease", "{\"part\":[%u,\"%s\",99,\"0\",0,0,\"0\"]}", "returns parts" },
        { "fluid.position",
          "{\"rank\":%u,\"from\":\"%s\",\"holders\":[0,\"0\"],\"low_ms\":\"9\",\"part_low_ms\":\"99999999\"}",
          "reports positions" },
    };
    struct tree t;

    tree_init (&t, "fluid.share", "16", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 0, "active", 0)) turn (&t);
    for (size_t i = 0; i < sizeof (lies) / sizeof (lies[0]); i++) {
        int bad = 0;

        for (uint32_t rank = 0; rank < NRANKS; rank++) {
            bool is_below = rank == 1 || rank == 3 || rank == 4;

            bad += lie (&t, lies[i].topic, lies[i].form, rank) != (is_below ? 0 : EPERM);
        }
        ok (bad == 0, "%s: a child %s only in the name of its subtree", lies[i].topic, lies[i].what);
    }
    tree_fini (&t);
}

static void test_trouble (void)
{
    struct tree t;
    char text[256];
    fluid_t last = 0, before;

    tree_init (&t, "fluid.max-generators", "2", "fluid.forward-timeout", "50ms", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 1, "active", 1));
    get_ids (&t, 1, 10, 0, &last);
    cut (&t, 1, true);
    ok (get_ids (&t, 3, 10, last, &last) && fluid_split (last).generator == 1,
        "a broker that lost its parent makes ids until its lease ends");
    cut (&t, 6, true);
    ask_block (&t, 6, 1, 0, 1);
    ok (error_of (&t, text, sizeof (text)) == EHOSTUNREACH,
        "without a lease and a parent, requests fail after "
        "fluid.forward-timeout: %s",
        text);
    ask_block (&t, 6, 5, 0, 1);
    turn (&t);
    cut (&t, 6, false);
    const idt_msg_t *msg = answer (&t);
    ok (idt_msg_errnum (msg) == 0,
        "without a lease requests are answered if the parent is connected before fluid.forward-timeout");
    idt_msg_unref (msg);
    cut (&t, 1, false);

    before = last;
    kill_rank (&t, 1);
    for (uint32_t i = 3; i < 5; i++)
        t.rank[i].ops->parent (t.rank[i].ops_arg, false);
    ask_block (&t, 3, 1, last, 1);
    ok (error_of (&t, text, sizeof (text)) == EHOSTUNREACH,
        "a request to an idle rank whose parent has ended fails with EHOSTUNREACH");
    start_rank (&t, 1, NULL);
    for (uint32_t i = 3; i < 5; i++)
        t.rank[i].ops->parent (t.rank[i].ops_arg, true);
    ok (get_ids (&t, 3, 10, before, &last) != 0, "when the parent has returned, ids are above the earlier ones");

    cut (&t, 6, true);
    ask_block (&t, 6, 1, 0, 1);
    ask_json (&t, 6, "fluid.disconnect", NULL, IDT_ROLE_USER);
    drop (&t.answers);
    cut (&t, 6, false);
    get_ids (&t, 6, 1, 0, &last);
    ok (fifo_pop (&t.answers) == NULL, "the request of a client that has disconnected is not answered");

    ask_block (&t, 0, 65536, 0, 1);
    stop_rank (&t, 0);
    turn (&t);
    ok (error_of (&t, text, sizeof (text)) == EHOSTUNREACH,
        "a module that is unloaded answers the requests that wait in it: %s", text);
    tree_fini (&t);
}

static uint64_t number_of (struct tree *t, const char *key)
{
    json_t *o = info (t, 0);
    const char *s = json_string_value (json_object_get (o, key));
    uint64_t n = s ? strtoull (s, NULL, 10) : 0;

    json_decref (o);
    return n;
}

static void test_restart (void)
{
    struct tree t;
    idt_error_t err;
    fluid_t last = 0;
    struct rank thief = { 0 };

    tree_init (&t, "fluid.epoch", "2026-01-01T00:00:00Z", NULL);
    if (start_rank (&t, 0, &err) < 0)
        bail_out (err.text);
    get_ids (&t, 0, 3000, 0, &last);
    stop_rank (&t, 0);
    start_rank (&t, 0, &err);
    ok (get_ids (&t, 0, 10, last, &last) != 0, "after a clean stop rank 0 makes ids above all ids before");
    json_t *o = info (&t, 0);
    ok (json_real_value (json_object_get (o, "ahead_ms")) < 1000,
        "after a clean stop the time of rank 0 is not ahead of the clock");
    ok (strcmp (json_string_value (json_object_get (o, "epoch")), "2026-01-01T00:00:00.000Z") == 0,
        "after a clean stop the epoch of rank 0 is unchanged");
    json_decref (o);

    thief = t.rank[0]; /* start_rank () resets it */
    ok (start_rank (&t, 0, &err) < 0 && errno == EBUSY && strstr (err.text, "in use by broker 00000000"),
        "a second rank 0 on the same statedir does not start: %s", err.text);
    t.rank[0] = thief;
    stop_rank (&t, 0);
    tree_fini (&t);

    tree_init (&t, NULL);
    start_rank (&t, 0, &err);
    get_ids (&t, 0, 1, 0, &last);
    ok (number_of (&t, "horizon_ms") >= 120000, "the stored horizon is two leases ahead");
    stop_rank (&t, 0);
    t.options[0] = "fluid.epoch";
    t.options[1] = "2026-01-01T00:00:00Z";
    ok (start_rank (&t, 0, &err) < 0 && strstr (err.text, "must remain"),
        "a fluid.epoch that differs from the stored epoch is refused: %s", err.text);
    t.options[0] = NULL;
    ok (start_rank (&t, 0, &err) == 0, "without fluid.epoch rank 0 starts with the stored epoch");
    tree_fini (&t);
}

/* The watermark as rank 'rank' reports it; 0: an error. */
static uint64_t watermark (struct tree *t, uint32_t rank)
{
    const char *s = NULL;
    json_t *o = NULL;

    ask_json (t, rank, "fluid.watermark", "{}", IDT_ROLE_USER | IDT_ROLE_LOCAL);
    const idt_msg_t *msg = answer (t);
    uint64_t ms = idt_msg_unpack (msg, &o, NULL, "{s:s}", "timestamp_ms", &s) == 0 ? strtoull (s, NULL, 10) : 0;
    json_decref (o);
    idt_msg_unref (msg);
    return ms;
}

static void test_watermark (void)
{
    struct tree t;
    char text[256];
    fluid_t last = 0, at = 0;
    uint64_t ms = 0;

    tree_init (&t, "fluid.max-generators", "4", "fluid.lease", "1s", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 3, "active", 3));
    get_ids (&t, 3, 10, 0, &at);
    wait_until (watermark (&t, 6) > fluid_split (at).timestamp_ms);
    ok (watermark (&t, 3) > fluid_split (at).timestamp_ms,
        "the watermark rises above the ids that were made, on every rank");
    ms = watermark (&t, 0);
    for (uint32_t i = 0; i < NRANKS; i++)
        if (!get_ids (&t, i, 100, 0, &last) || fluid_split (last).timestamp_ms < ms)
            ms = UINT64_MAX;
    ok (ms != UINT64_MAX && ms > 0, "no rank makes an id below a watermark that was published");
    uint64_t number = watermark (&t, 0);
    ask_json (&t, 0, "fluid.watermark", "{}", IDT_ROLE_USER);
    const idt_msg_t *msg = answer (&t);
    const char *id, *date;
    int64_t behind;
    fluid_t lowest = 0;
    json_t *o = NULL;
    ok (idt_msg_unpack (msg, &o, NULL, "{s:s s:s s:I}", "id", &id, "date", &date, "behind_ms", &behind) == 0
            && fluid_parse (id, strlen (id), &lowest, NULL) == 0 && fluid_split (lowest).timestamp_ms >= number
            && fluid_split (lowest).sequence == 0 && fluid_split (lowest).generator == 0 && strlen (date) == 24
            && behind < 2000,
        "fluid.watermark returns the lowest id that may still be made, its date, and how far it is behind");
    json_decref (o);
    idt_msg_unref (msg);

    cut (&t, 3, true);
    number = watermark (&t, 0);
    wait_until (fluid_split (last).timestamp_ms >= number + 500) get_ids (&t, 0, 1, last, &last);
    ok (watermark (&t, 0) < number + 400, "a broker that is cut off holds the watermark back");
    wait_until (watermark (&t, 0) >= number + 500) turn (&t);
    ok (state_is (&t, 3, "fenced", 0), "a broker that is cut off holds the watermark back until its lease ends");

    ask_json (&t, 1, "fluid.position", "{}", IDT_ROLE_OWNER | IDT_ROLE_BROKER);
    ok (error_of (&t, text, sizeof (text)) == EPROTO, "a report with a malformed position is refused: %s", text);
    for (int i = 0; i < 3; i++)
        ask_json (&t, 6, "fluid.watermark", "{}", IDT_ROLE_USER);
    ok (error_of (&t, text, sizeof (text)) == 0 && error_of (&t, text, sizeof (text)) == 0
            && error_of (&t, text, sizeof (text)) == 0,
        "all clients that request the watermark at the same time are answered");
    cut (&t, 6, true);
    ask_json (&t, 6, "fluid.watermark", "{}", IDT_ROLE_USER);
    ok (error_of (&t, text, sizeof (text)) == EHOSTUNREACH,
        "clients that request the watermark get EHOSTUNREACH without a parent");
    tree_fini (&t);
}

static uint64_t still_ms (struct tree *t)
{
    const idt_msg_t *msg;
    json_t *o = NULL;
    json_int_t ms;

    ask_json (t, 0, "fluid.watermark", "{}", IDT_ROLE_USER);
    msg = answer (t);
    if (idt_msg_unpack (msg, &o, NULL, "{s:I}", "still_ms", &ms) < 0)
        bail_out ("still_ms");
    json_decref (o);
    idt_msg_unref (msg);
    return (uint64_t)ms;
}

static void test_still (void)
{
    struct tree t;
    uint64_t number, before_ms, at_ms, still;

    tree_init (&t, "fluid.max-generators", "4", "fluid.lease", "6s", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 3, "active", 3));
    before_ms = clock_ms (CLOCK_MONOTONIC);
    number = watermark (&t, 0);
    wait_until (watermark (&t, 0) > number) turn (&t);
    at_ms = clock_ms (CLOCK_MONOTONIC);
    wait_until (clock_ms (CLOCK_MONOTONIC) > at_ms + 2000) turn (&t);
    cut (&t, 1, true); /* and with it its subtree */
    wait_until (clock_ms (CLOCK_MONOTONIC) > at_ms + 4000) turn (&t);
    ok (still_ms (&t) > 0,
        "rank 0 knows for how long the watermark has not advanced, even if no client requested the watermark "
        "meanwhile");
    wait_until (still_ms (&t) > 1000) turn (&t);
    still = still_ms (&t);
    ok (still <= clock_ms (CLOCK_MONOTONIC) - before_ms,
        "the time for which the watermark has not advanced is at most the time that has passed");
    cut (&t, 1, false);
    number = watermark (&t, 0);
    wait_until (watermark (&t, 0) > number) turn (&t);
    uint64_t anew = still;
    wait_until ((anew = still_ms (&t)) < still) turn (&t);
    ok (anew < still, "when the watermark advances, the time for which it has not advanced starts at zero again");
    tree_fini (&t);
}

/* --- the disk ---------------------------------------------------------------------------------------------------- */

static bool horizon_store_says (struct tree *t, const char *text)
{
    json_t *o = info (t, 0);
    const char *s = json_string_value (json_object_get (o, "store"));
    bool good = s && strstr (s, text);

    json_decref (o);
    return good;
}

static void test_disk (void)
{
    struct tree t;
    char text[256];
    idt_error_t err;
    fluid_t last = 0;

    tree_init (&t, "fluid.lease", "200ms", "fluid.forward-timeout", "100ms", NULL);
    disk_choose (t.dir);
    start_rank (&t, 0, &err);
    wait_until (get_ids (&t, 0, 1, 0, &last) && horizon_store_says (&t, "good")) turn (&t);
    ok (horizon_store_says (&t, "good"), "fluid.info reports a disk that works as good");
    disk_fail (1, true, DISK_FULL);
    wait_until (horizon_store_says (&t, "failing: ")) turn (&t);
    uint64_t horizon = number_of (&t, "horizon_ms"); /* the write that was under way has ended */
    ok (horizon_store_says (&t, "the disk is full"), "fluid.info reports a full disk");
    ok (strstr (t.rank[0].log, "the disk is full: no leases are granted"), "the log reports a full disk: %s",
        t.rank[0].log);
    int logged = t.rank[0].logged;
    ask_block (&t, 0, 1, 0, 1);
    wait_until (error_of (&t, text, sizeof (text)) != 0) ask_block (&t, 0, 1, 0, 1);
    ok (strstr (text, "rank 0 waits until its horizon can be stored"),
        "with a full disk requests for ids fail when the lease is over: %s", text);
    ok (number_of (&t, "horizon_ms") == horizon && number_of (&t, "timestamp_ms") >= horizon,
        "with a full disk no lease ends after the stored horizon");
    ok (t.rank[0].logged == logged, "the failure of a store is logged once, not at each retry");
    disk_fail (1, true, DISK_BROKEN);
    wait_until (horizon_store_says (&t, "I/O error")) turn (&t);
    ok (t.rank[0].logged == logged + 1, "a failure of a store with another reason is logged once");
    disk_fail (0, false, DISK_FULL);
    wait_until (horizon_store_says (&t, "good")) turn (&t);
    ok (get_ids (&t, 0, 10, last, &last) && number_of (&t, "horizon_ms") > horizon,
        "when the disk works again, rank 0 makes ids without a restart");

    disk_hang (true);
    wait_until (horizon_store_says (&t, "slow")) turn (&t);
    horizon = number_of (&t, "horizon_ms");
    ask_block (&t, 0, 1, 0, 1);
    wait_until (error_of (&t, text, sizeof (text)) != 0) ask_block (&t, 0, 1, 0, 1);
    ok (number_of (&t, "horizon_ms") == horizon, "a disk that hangs is reported as slow, and delays no other requests");
    disk_hang (false);
    wait_until (horizon_store_says (&t, "good")) turn (&t);
    ok (get_ids (&t, 0, 10, last, &last) != 0, "when the disk no longer hangs, rank 0 makes ids");
    tree_fini (&t);
}

static void write_file (const struct tree *t, const char *name, const char *text)
{
    char path[128];

    snprintf (path, sizeof (path), "%s/%s", t->dir, name);
    FILE *f = fopen (path, "w");
    if (!f || fputs (text, f) < 0 || fclose (f) != 0)
        bail_out (path);
}

static void test_recover (void)
{
    struct tree t;
    idt_error_t err;
    fluid_t id = 0;
    char path[128];

    tree_init (&t, "fluid.epoch", "2026-01-01T00:00:00Z", "fluid.recover-horizon", "2026-01-02T00:00:00Z", NULL);
    write_file (&t, "fluid.sqlite", "junk");
    t.options[2] = NULL;
    ok (start_rank (&t, 0, &err) < 0 && errno == EBADMSG && strstr (err.text, "--recover-horizon"),
        "a damaged file of the horizon is refused: %s", err.text);
    t.options[2] = "fluid.recover-horizon";
    t.options[0] = "fluid.lease";
    t.options[1] = "60s";
    ok (start_rank (&t, 0, &err) < 0 && strstr (err.text, "fluid.epoch"),
        "a recovery of the horizon without fluid.epoch is refused: %s", err.text);
    t.options[0] = "fluid.epoch";
    t.options[1] = "2026-01-01T00:00:00Z";
    t.options[3] = "soon";
    ok (start_rank (&t, 0, &err) < 0 && strstr (err.text, "must be a date such as"),
        "a malformed fluid.recover-horizon is refused: %s", err.text);
    t.options[3] = "2059-01-01T00:00:00Z";
    ok (start_rank (&t, 0, &err) < 0 && strstr (err.text, "2059-01-01") && strstr (err.text, "fluid.max-jump"),
        "a recovered horizon far ahead of the clock is refused: %s", err.text);
    t.options[3] = "2026-01-02T00:00:00Z";
    ok (start_rank (&t, 0, &err) == 0 && number_of (&t, "horizon_ms") >= 86400000,
        "with a recovered horizon and an epoch rank 0 starts");
    ok (get_ids (&t, 0, 1, 0, &id) && fluid_split (id).timestamp_ms >= 86400000,
        "rank 0 makes ids above the recovered horizon");
    snprintf (path, sizeof (path), "%s/fluid.sqlite.damaged-1", t.dir);
    ok (unlink (path) == 0, "the damaged file is kept after a recovery");
    stop_rank (&t, 0);

    char text[FLUID_TEXT_MAX];
    fluid_t above = id + (UINT64_C (3600000) << 24);
    fluid_format (above, FLUID_F58, text, sizeof (text));
    t.options[3] = text;
    ok (start_rank (&t, 0, &err) == 0 && get_ids (&t, 0, 1, 0, &id) && id > above,
        "the recovered horizon may be given as an id, and raises the horizon of a valid file");
    ok (number_of (&t, "horizon_ms") > fluid_split (above).timestamp_ms,
        "the recovered horizon is stored before the first id is made");
    stop_rank (&t, 0);
    ok (start_rank (&t, 0, &err) == 0 && get_ids (&t, 0, 1, id, &id),
        "a start with the same recovered horizon changes nothing");
    tree_fini (&t);
}

/* Rank 0 has crashed so often that it must wait for the clock. */
static void test_crashed (void)
{
    const int64_t epoch_ms = INT64_C (1767225600000), ahead_ms = 100000;
    struct horizon_store_content content;
    struct horizon_store *st;
    struct tree t;
    idt_error_t err;
    fluid_t id = 0;

    tree_init (&t, "fluid.lease", "1s", NULL);
    uint64_t horizon_ms = (uint64_t)((int64_t)clock_us (CLOCK_REALTIME) / 1000 - epoch_ms + ahead_ms);
    if (!(st = horizon_store_open (&(struct module_place){ .dir = t.dir }, "a test", &content, &err))
        || horizon_store_init (st, epoch_ms, &(struct lease_record){ horizon_ms, 0, 0, ahead_ms, 0 }, &err) < 0
        || horizon_store_close (st, NULL, &err) < 0)
        bail_out (err.text);
    ok (start_rank (&t, 0, &err) == 0, "a rank 0 that must wait for the clock to reach its horizon starts");
    json_t *o = info (&t, 0);
    ok (json_real_value (json_object_get (o, "ahead_ms")) > 90000.,
        "a rank 0 that waits for the clock reports how far ahead its time is");
    json_decref (o);
    ok (get_ids (&t, 0, 1, 0, &id) && fluid_split (id).timestamp_ms >= horizon_ms,
        "when the wait for the clock is over, rank 0 makes ids above its horizon");
    tree_fini (&t);
}

static void test_foreign_lease (void)
{
    static const char request[] = "{\"want\":[[3,\"aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa\",1,\"%s\"]],\"epoch\":\"%s\"}";
    static const struct {
        const char *have, *epoch, *say;
    } cases[] = { { "1", "2025-05-05T00:00:00Z",
                    "has the epoch 2026-01-01T00:00:00.000Z, and brokers hold leases of an "
                    "instance with 2025-05-05T00:00:00.000Z" },
                  { "99999999999", "2026-01-01T00:00:00Z", "and brokers hold leases until 2029-03-03T09:46:39.999Z" } };
    char text[256];
    struct tree t;
    idt_error_t err;

    for (size_t i = 0; i < 2; i++) {
        tree_init (&t, "fluid.epoch", "2026-01-01T00:00:00Z", NULL);
        start_rank (&t, 0, &err);
        snprintf (text, sizeof (text), request, cases[i].have, cases[i].epoch);
        ask_json (&t, 0, "fluid.lease", text, IDT_ROLE_OWNER | IDT_ROLE_BROKER);
        ok (error_of (&t, text, sizeof (text)) == 0 && strstr (text, "\"lease\":[]"),
            "a broker that holds a lease of another root is granted nothing");
        ok (horizon_store_says (&t, cases[i].say) && horizon_store_says (&t, t.dir),
            "if a broker holds a lease of another root, fluid.info names the statedir");
        ok (strstr (t.rank[0].log, cases[i].say) && strstr (t.rank[0].log, t.dir),
            "if a broker holds a lease of another root, the log names the statedir: %s", t.rank[0].log);
        tree_fini (&t);
    }
}

static void test_options (void)
{
    static const char *const bad[][2] = {
        { "fluid.max-generators", "0" },
        { "fluid.max-generators", "16385" },
        { "fluid.max-generators", "5x" },
        { "fluid.lease", "0" },
        { "fluid.lease", "2h" },
        { "fluid.lease", "long" },
        { "fluid.max-backlog", "-1" },
        { "fluid.max-waiting", "0" },
        { "fluid.forward-timeout", "1ms" },
        { "fluid.epoch", "yesterday" },
        { "fluid.epoch", "2999-01-01T00:00:00Z" },
        { "fluid.max-jump", "much" },
        { "fluid.share", "17" },
        { "fluid.share", "1024" },
        { "fluid.share-keep", "1025" },
    };
    struct tree t;
    idt_error_t err;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        tree_init (&t, bad[i][0], bad[i][1], NULL);
        ok (start_rank (&t, 0, &err) < 0 && errno == EINVAL
                && (strstr (err.text, "must be") || strstr (err.text, "the clock says")),
            "an invalid option or clock is refused: %s", err.text);
        tree_fini (&t);
    }
    tree_init (&t, "fluid.epoch", "2000-01-01T00:00:00Z", "fluid.lease", "1s", "fluid.max-backlog", "0", NULL);
    ok (start_rank (&t, 0, &err) == 0, "a new instance may have an epoch that is long ago");
    tree_fini (&t);
}

static void test_load (void)
{
    struct tree t;
    idt_error_t err;
    int failed = 0;

    tree_init (&t, NULL);
    for (int i = 0; i < 100; i++) {
        failed += start_rank (&t, 0, &err) < 0;
        stop_rank (&t, 0);
    }
    ok (failed == 0, "the module is loaded and unloaded 100 times without a leak");
    tree_fini (&t);
}

/* The ranks of the hops in an answer to fluid.trace, as "6 2 0"; "" for an error. */
static void trace (struct tree *t, uint32_t rank, char text[64], json_int_t *from_above)
{
    size_t i, n = 0;
    json_t *hop;

    ask_json (t, rank, "fluid.trace", "{\"count\":3}", IDT_ROLE_USER | IDT_ROLE_LOCAL);
    const idt_msg_t *msg = answer (t);
    json_t *o = idt_msg_errnum (msg) == 0 ? idt_msg_json (msg, NULL) : NULL, *hops = json_object_get (o, "trace");

    text[0] = '\0';
    json_array_foreach (hops, i, hop)
        n += (size_t)snprintf (text + n, 64 - n, "%s%d", i > 0 ? " " : "",
                               (int)json_integer_value (json_object_get (hop, "rank")));
    *from_above = json_integer_value (json_object_get (json_array_get (hops, 0), "ids_from_above"));
    json_decref (o);
    idt_msg_unref (msg);
}

static void test_traced (void)
{
    json_int_t above;
    struct tree t;
    char text[64];

    tree_init (&t, "fluid.max-generators", "1", "fluid.share", "off", NULL);
    tree_start (&t);
    wait_until (state_is (&t, 0, "active", 0));
    trace (&t, 6, text, &above);
    ok (strcmp (text, "6 2 0") == 0 && above == 3, "a traced request reports the ranks that served it: %s", text);

    t.old = true;
    trace (&t, 6, text, &above);
    ok (strcmp (text, "6") == 0 && above == 3 && t.refused == 1,
        "a parent of an earlier version returns ids without hops: %s, %d ids from it, %u fluid.trace requests to it",
        text, (int)above, t.refused);
    trace (&t, 6, text, &above);
    ok (strcmp (text, "6") == 0 && above == 3 && t.refused == 1,
        "a parent of an earlier version gets no second fluid.trace request");
    t.old = false;
    t.rank[6].ops->parent (t.rank[6].ops_arg, true);
    trace (&t, 6, text, &above);
    ok (strcmp (text, "6 2 0") == 0, "a parent that reconnects gets a fluid.trace request again: %s", text);

    cut (&t, 6, true);
    ask_json (&t, 6, "fluid.trace", "{}", IDT_ROLE_USER | IDT_ROLE_LOCAL);
    turn (&t);
    ask_json (&t, 6, "fluid.disconnect", NULL, IDT_ROLE_USER);
    drop (&t.answers);
    cut (&t, 6, false);
    trace (&t, 6, text, &above);
    ok (strcmp (text, "6 2 0") == 0, "a traced request whose client has disconnected is forgotten: %s", text);
    tree_fini (&t);
}

int main (void)
{
    if (disk_install () < 0)
        bail_out ("SQLite cannot be loaded");
    test_tree ();
    test_errors ();
    test_refused_costs_nothing ();
    test_between_brokers ();
    test_part ();
    test_liar ();
    test_trouble ();
    test_restart ();
    test_watermark ();
    test_still ();
    test_disk ();
    test_recover ();
    test_crashed ();
    test_foreign_lease ();
    test_options ();
    test_load ();
    test_traced ();
    return done_testing ();
}
