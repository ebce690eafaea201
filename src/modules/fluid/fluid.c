/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - the fluid service: messages, time and disk around a node that thinks
 *
 * Hosted inline, on the broker's reactor: it never blocks.  Whatever comes in is told to the node together with the
 * time, and the timer is set to the node's deadline: a timerfd at absolute CLOCK_BOOTTIME, set anew only when the
 * deadline has changed.  What the node wants is done by node_ops.
 *
 * A request that the node has is a reference to its message (the node's cookie).  One that went up is a 'struct up'
 * until its future is fulfilled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "libutil/errprintf.h"
#include "libutil/fifo.h"
#include "libutil/parse_duration.h"
#include "modules/fluid/node.h"
#include "modules/fluid/options.h"
#include "modules/fluid/store.h"
#include "modules/fluid/wire.h"

#define WALL_PERIOD_MS 1000
#define NEVER UINT64_MAX

struct fluid;

/* A request that we sent up. */
struct up {
    LIST_ENTRY (up) link;
    struct fluid *fluid;
    idt_future_t *f;
    uint32_t tag;            /* forward, lease */
    const idt_msg_t *info;   /* fluid.info: the request to be answered with what we hear */
};

struct fluid {
    idt_t *h;
    struct options options;
    struct node *node;
    struct store *store;
    idt_error_t store_why; /* the last store failed; empty: it did not */
    bool told_stranger;
    int timer_fd;
    uint64_t armed_us; /* what the timer is set to */
    idt_watcher_t *timer;
    idt_watcher_t *store_watcher;
    idt_watcher_t *wall_timer;
    LIST_HEAD (, up) ups;
    struct fifo watermark_waiting; /* requests that the answer to the one under way is for */
    bool asked_watermark;
};

/* --- time ------------------------------------------------------------------------------------------ */

static uint64_t clock_us (clockid_t id)
{
    struct timespec ts;

    clock_gettime (id, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static uint64_t now_us (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

/* Every way into the node ends here. */
static void set_timer (struct fluid *c)
{
    uint64_t at_us = node_deadline (c->node);
    struct itimerspec its = { 0 };

    if (at_us == c->armed_us)
        return;
    c->armed_us = at_us;
    if (at_us != NEVER) { /* all zero: disarmed */
        its.it_value.tv_sec = (time_t)(at_us / 1000000);
        its.it_value.tv_nsec = (long)(at_us % 1000000 * 1000) + 1;
    }
    timerfd_settime (c->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct fluid *c = arg;
    uint64_t count;

    if (read (c->timer_fd, &count, sizeof (count)) < 0)
        return; /* it was set anew meanwhile */
    c->armed_us = NEVER;
    node_tick (c->node, now_us ());
    set_timer (c);
}

static void wall_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct fluid *c = arg;

    node_wall (c->node, now_us (), (int64_t)clock_us (CLOCK_REALTIME));
    set_timer (c);
}

/* --- the overlay ------------------------------------------------------------------------------------ */

static bool read_clock_cb (void *arg, uint64_t *inst_us, uint64_t *bound_us)
{
    struct fluid *c = arg;

    return node_clock (c->node, now_us (), inst_us, bound_us);
}

static void sample_cb (void *arg, const struct idt_clock_sample *sample)
{
    struct fluid *c = arg;

    node_sample (c->node, now_us (), sample);
    set_timer (c);
}

static void parent_cb (void *arg, bool up)
{
    struct fluid *c = arg;

    node_parent (c->node, now_us (), up);
    set_timer (c);
}

static const struct idt_overlay_ops overlay_ops = {
    .read_clock = read_clock_cb,
    .sample = sample_cb,
    .parent = parent_cb,
};

/* --- requests that went up ---------------------------------------------------------------------------- */

static void up_destroy (struct up *up)
{
    if (!up)
        return;
    LIST_REMOVE (up, link);
    idt_future_destroy (up->f);
    idt_msg_unref (up->info);
    free (up);
}

/* Keep 'f' (stolen, may be NULL) until it is fulfilled.  Returns NULL with errno set. */
static struct up *up_create (struct fluid *c, idt_future_t *f, idt_future_f cb)
{
    struct up *up = f ? calloc (1, sizeof (*up)) : NULL;

    if (!up) {
        idt_future_destroy (f);
        return NULL;
    }
    up->fluid = c;
    up->f = f;
    LIST_INSERT_HEAD (&c->ups, up, link);
    if (idt_future_then (f, -1, cb, up) < 0) {
        up_destroy (up);
        return NULL;
    }
    return up;
}

static void forward_cb (idt_future_t *f, void *arg)
{
    struct up *up = arg;
    struct fluid *c = up->fluid;
    const void *data;
    size_t size, n;
    struct run *run = NULL;

    if (idt_rpc_get_raw (f, &data, &size) == 0)
        run = wire_get_runs (data, size, &n);
    if (run)
        node_forwarded (c->node, now_us (), up->tag, run, n);
    else
        node_forward_failed (c->node, now_us (), up->tag, errno);
    free (run);
    up_destroy (up);
    set_timer (c);
}

static void lease_cb (idt_future_t *f, void *arg)
{
    struct up *up = arg;
    struct fluid *c = up->fluid;
    struct lease_answer answer;
    json_t *o = NULL;

    if (idt_rpc_get_unpack (f, "o", &o) == 0 && wire_get_lease_answer (o, &answer, NULL) == 0) {
        node_lease_answered (c->node, now_us (), up->tag, &answer);
        wire_lease_answer_fini (&answer);
    }
    else
        node_lease_failed (c->node, now_us (), up->tag);
    up_destroy (up);
    set_timer (c);
}

/* --- what the node wants -------------------------------------------------------------------------------- */

static bool is_json_request (const idt_msg_t *msg)
{
    return strcmp (idt_msg_topic (msg), "fluid.generate") == 0;
}

static void respond_error (struct fluid *c, const idt_msg_t *msg, int errnum, const char *text)
{
    if (idt_respond_error (c->h, msg, errnum, text) < 0)
        idt_log (c->h, LOG_ERR, "%s: cannot answer: %s", idt_msg_topic (msg), strerror (errno));
}

/* Answer with an object (stolen; NULL: none could be made). */
static void respond_object (struct fluid *c, const idt_msg_t *msg, json_t *o)
{
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;

    if (!s)
        respond_error (c, msg, ENOMEM, NULL);
    else if (idt_respond (c->h, msg, s) < 0)
        idt_log (c->h, LOG_ERR, "%s: cannot answer: %s", idt_msg_topic (msg), strerror (errno));
    free (s);
    json_decref (o);
}

static void respond_runs (struct fluid *c, const idt_msg_t *msg, const struct run *run, size_t nruns)
{
    uint8_t small[8 * WIRE_RUN_SIZE], *buf = small;

    if (nruns > 8 && !(buf = malloc (nruns * WIRE_RUN_SIZE))) {
        respond_error (c, msg, ENOMEM, NULL);
        return;
    }
    for (size_t i = 0; i < nruns; i++)
        wire_put_run (buf + i * WIRE_RUN_SIZE, &run[i]);
    if (idt_respond_raw (c->h, msg, buf, nruns * WIRE_RUN_SIZE) < 0)
        idt_log (c->h, LOG_ERR, "fluid.block: cannot answer: %s", strerror (errno));
    if (buf != small)
        free (buf);
}

static void reply_cb (void *arg, void *cookie, const struct run *run, size_t nruns)
{
    const idt_msg_t *msg = cookie;

    if (is_json_request (msg))
        respond_object (arg, msg, wire_pack_runs (run, nruns));
    else
        respond_runs (arg, msg, run, nruns);
    idt_msg_unref (msg);
}

static void fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    respond_error (arg, cookie, errnum, text);
    idt_msg_unref (cookie);
}

static int forward_up_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct fluid *c = arg;
    uint8_t buf[WIRE_BLOCK_SIZE];

    wire_put_block (buf, count, after);
    struct up *up = up_create (c, idt_rpc_raw (c->h, "fluid.block", buf, sizeof (buf), IDT_NODEID_UPSTREAM, 0),
                               forward_cb);
    if (!up)
        return -1;
    up->tag = tag;
    return 0;
}

static void cancel_up_cb (void *arg)
{
    struct fluid *c = arg;

    idt_future_destroy (idt_rpc (c->h, "fluid.cancel", NULL, IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE));
}

static int lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct fluid *c = arg;
    json_t *o = wire_pack_lease_request (req);
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;
    idt_future_t *f = NULL;
    struct up *up = NULL;

    if (s)
        f = idt_rpc (c->h, "fluid.lease", s, IDT_NODEID_UPSTREAM, tag == 0 ? IDT_RPC_NORESPONSE : 0);
    if (tag == 0)
        idt_future_destroy (f);
    else if ((up = up_create (c, f, lease_cb)))
        up->tag = tag;
    free (s);
    json_decref (o);
    return up || (f && tag == 0) ? 0 : -1;
}

static void lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer)
{
    respond_object (arg, cookie, wire_pack_lease_answer (answer));
    idt_msg_unref (cookie);
}

static void store_cb (void *arg, const struct lease_record *record)
{
    struct fluid *c = arg;

    store_write (c->store, record);
}

static void report_up_cb (void *arg, const struct report *report)
{
    struct fluid *c = arg;
    json_t *o = wire_pack_report (report);
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;

    if (s) /* it may be lost */
        idt_future_destroy (idt_rpc (c->h, "fluid.position", s, IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE));
    free (s);
    json_decref (o);
}

static void log_cb (void *arg, int level, const char *text)
{
    struct fluid *c = arg;

    idt_log (c->h, level, "%s", text);
}

static const struct node_ops node_ops = {
    .reply = reply_cb,
    .fail = fail_cb,
    .forward = forward_up_cb,
    .cancel = cancel_up_cb,
    .lease_up = lease_up_cb,
    .lease_reply = lease_reply_cb,
    .store = store_cb,
    .report_up = report_up_cb,
    .log = log_cb,
};

/* --- the disk --------------------------------------------------------------------------------------------- */

static void store_done_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct fluid *c = arg;
    idt_error_t why = { "" };
    uint64_t horizon_ms;
    bool good;

    if (!store_result (c->store, &good, &horizon_ms, &why))
        return;
    if (!good && strcmp (c->store_why.text, why.text) != 0) /* not at each of its retries */
        idt_log (c->h, LOG_CRIT, "%s: no leases are given beyond the horizon that is stored", why.text);
    c->store_why = why;
    if (good)
        node_stored (c->node, now_us (), horizon_ms);
    else
        node_store_failed (c->node, now_us ());
    set_timer (c);
}

/* --- what to tell of the disk ------------------------------------------------------------------------------- */

/* What keeps the root from giving leases, or may soon; "good": nothing. */
static void describe_store (const struct fluid *c, const struct node_status *s, char *buf, size_t size)
{
    char ours[DATE_SIZE], theirs[DATE_SIZE];

    if (s->distrusted && s->has_their_epoch)
        snprintf (buf, size, "wrong: %s has the epoch %s, and brokers hold leases of an instance with %s",
                  c->options.statedir, format_date (s->epoch_ms, ours), format_date (s->their_epoch_ms, theirs));
    else if (s->distrusted)
        snprintf (buf, size, "wrong: %s knows of leases until %s, and brokers hold some until %s",
                  c->options.statedir, format_date (s->epoch_ms + (int64_t)s->horizon_ms, ours),
                  format_date (s->epoch_ms + (int64_t)s->their_hi_ms, theirs));
    else if (s->store == NODE_STORE_FAILING)
        snprintf (buf, size, "failing: %s", c->store_why.text);
    else if (s->store == NODE_STORE_SLOW)
        snprintf (buf, size, "slow: the horizon is not stored yet");
    else
        snprintf (buf, size, "good");
}

static void tell_stranger (struct fluid *c)
{
    struct node_status s;
    char text[512];

    node_status (c->node, now_us (), &s);
    if (!s.distrusted || c->told_stranger)
        return;
    c->told_stranger = true;
    describe_store (c, &s, text, sizeof (text));
    idt_log (c->h, LOG_CRIT,
             "statedir is %s: no more leases are given; stop this instance, and start it with the statedir that it had before", text);
}

/* --- requests ------------------------------------------------------------------------------------------------ */

/* A child broker's forward comes over the overlay, from the owner, with the flag that says so.  What remote clients
 * ask lacks one of them.
 */
static bool is_broker_request (const idt_msg_t *msg)
{
    uint32_t roles = idt_msg_cred (msg).rolemask;

    return (roles & IDT_ROLE_OWNER) && !(roles & IDT_ROLE_LOCAL) && idt_msg_has_flag (msg, IDT_MSGFLAG_UPSTREAM);
}

static void ask_node (struct fluid *c, const idt_msg_t *msg, uint32_t count, fluid_t after)
{
    const struct node_request req = {
        .cookie = (void *)idt_msg_ref (msg), .count = count, .after = after, .from_broker = is_broker_request (msg)};

    node_block (c->node, now_us (), &req);
    set_timer (c);
}

static void block_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t err = { "malformed request: no payload" };
    const void *data;
    size_t size;
    uint32_t count;
    fluid_t after;

    if (idt_msg_payload (msg, &data, &size) < 0 || wire_get_block (data, size, &count, &after, &err) < 0)
        respond_error (arg, msg, EPROTO, err.text);
    else
        ask_node (arg, msg, count, after);
}

static void generate_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t err;
    uint32_t count;
    json_t *o = idt_msg_json (msg, &err);

    if (!o || wire_get_count (o, &count, &err) < 0)
        respond_error (arg, msg, EPROTO, err.text);
    else
        ask_node (arg, msg, count, 0);
    json_decref (o);
}

static void lease_request_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;
    struct lease_request req;
    idt_error_t err;
    json_t *o;

    if (idt_msg_cred (msg).rolemask & IDT_ROLE_LOCAL) {
        respond_error (c, msg, EPERM, "fluid.lease is between brokers");
        return;
    }
    if (!(o = idt_msg_json (msg, &err)) || wire_get_lease_request (o, &req, &err) < 0)
        respond_error (c, msg, errno, err.text);
    else {
        node_lease_request (c->node, now_us (), (void *)idt_msg_ref (msg), &req);
        wire_lease_request_fini (&req);
        tell_stranger (c);
        set_timer (c);
    }
    json_decref (o);
}

static bool same_client (const idt_msg_t *request, const idt_msg_t *msg)
{
    const char *a = idt_msg_route_oldest (request), *b = idt_msg_route_oldest (msg);

    return a && b && strcmp (a, b) == 0;
}

static bool client_gone_cb (void *cookie, void *arg)
{
    if (!same_client (cookie, arg))
        return false;
    idt_msg_unref (cookie);
    return true;
}

/* A child wants its forward no more.  It is answered all the same, so that nobody on the way remembers it. */
struct canceling {
    struct fluid *fluid;
    const idt_msg_t *msg;
};

static bool canceled_cb (void *cookie, void *arg)
{
    struct canceling *canceling = arg;

    if (!is_broker_request (cookie) || !same_client (cookie, canceling->msg))
        return false;
    respond_error (canceling->fluid, cookie, ECANCELED, NULL);
    idt_msg_unref (cookie);
    return true;
}

static void cancel_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;

    node_cancel (c->node, now_us (), canceled_cb, &(struct canceling){ c, msg });
    set_timer (c);
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;

    node_cancel (c->node, now_us (), client_gone_cb, (void *)msg);
    set_timer (c);
}

/* --- fluid.info ------------------------------------------------------------------------------------------------ */

static json_t *number_string (uint64_t n)
{
    char text[24];

    snprintf (text, sizeof (text), "%llu", (unsigned long long)n);
    return json_string (text);
}

static json_t *date_string (bool known, int64_t unix_ms)
{
    char text[DATE_SIZE];

    return known ? json_string (format_date (unix_ms, text)) : json_null ();
}

static void add_root_info (struct fluid *c, json_t *o, const struct node_status *s)
{
    char store[512];

    describe_store (c, s, store, sizeof (store));
    json_object_set_new (o, "horizon_ms", number_string (s->horizon_ms));
    json_object_set_new (o, "ahead_ms", json_real ((double)s->ahead_us / 1000));
    json_object_set_new (o, "store", json_string (store));
}

/* What is known here; an idle rank learns the rest from above. */
static json_t *make_info (struct fluid *c, struct node_status *s)
{
    json_t *o;

    node_status (c->node, now_us (), s);
    o = json_pack ("{s:I s:s s:I}", "rank", (json_int_t)c->options.node.rank, "state", node_state_name (s->state),
                   "max_generators", (json_int_t)c->options.node.max_generators);
    if (!o)
        return NULL;
    json_object_set_new (o, "generator", s->owns_generator ? json_integer (s->generator) : json_null ());
    json_object_set_new (o, "served_by", s->state == NODE_ACTIVE ? json_integer (c->options.node.rank) : json_null ());
    json_object_set_new (o, "timestamp_ms", s->time_known ? number_string (s->timestamp_ms) : json_null ());
    json_object_set_new (o, "epoch", date_string (s->has_epoch, s->epoch_ms));
    json_object_set_new (o, "lease",
                         s->hi_ms > 0 ? json_pack ("[o,o]", number_string (s->lo_ms), number_string (s->hi_ms))
                                      : json_null ());
    json_object_set_new (o, "skew_bound_ms", s->time_known ? json_real ((double)s->bound_us / 1000) : json_null ());
    if (c->options.node.rank == 0)
        add_root_info (c, o, s);
    return o;
}

/* An ancestor told what it knows: take over what we lack. */
static void info_answer_cb (idt_future_t *f, void *arg)
{
    struct up *up = arg;
    struct node_status s;
    json_t *o = make_info (up->fluid, &s), *above = NULL;

    if (o && s.state != NODE_ACTIVE && idt_rpc_get_unpack (f, "o", &above) == 0) {
        json_object_set (o, "served_by", json_object_get (above, "served_by"));
        if (!s.has_epoch)
            json_object_set (o, "epoch", json_object_get (above, "epoch"));
    }
    respond_object (up->fluid, up->info, o);
    up_destroy (up);
}

static void info_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;
    struct node_status s;
    struct up *up = NULL;
    json_t *o = make_info (c, &s);

    if (s.state != NODE_ACTIVE && s.parent_up)
        up = up_create (c, idt_rpc (h, "fluid.info", NULL, IDT_NODEID_UPSTREAM, 0), info_answer_cb);
    if (up) {
        up->info = idt_msg_ref (msg);
        json_decref (o);
    }
    else
        respond_object (c, msg, o);
}

/* --- loans ----------------------------------------------------------------------------------------------------- */

static void answer_loan (struct fluid *c, const idt_msg_t *msg)
{
    uint64_t boot_us = now_us ();
    struct loan l;

    if (node_lend (c->node, boot_us, idt_msg_route_oldest (msg), &l) < 0)
        respond_error (c, msg, errno, errno == ENOTSUP ? "this rank owns no generator" : "no time is held now");
    else
        respond_object (c, msg,
                        json_pack ("{s:[I,I] s:[I,I] s:I}", "range_ms", (json_int_t)l.lo_ms, (json_int_t)l.hi_ms,
                                   "clock_us", (json_int_t)boot_us, (json_int_t)l.clock_us, "epoch_ms",
                                   (json_int_t)l.epoch_ms));
}

/* Another module wants time, or gives back what it does not need. */
static void lend_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;
    json_int_t back_ms = -1;
    idt_error_t err;
    json_t *o = NULL;

    if (!(idt_msg_cred (msg).rolemask & IDT_ROLE_LOCAL) || !idt_msg_route_oldest (msg))
        respond_error (c, msg, EPERM, "fluid.lend is between the modules of one broker");
    else if (idt_msg_unpack (msg, &o, &err, "{s?I}", "back_ms", &back_ms) < 0)
        respond_error (c, msg, EPROTO, err.text);
    else if (back_ms >= 0) {
        node_lend_back (c->node, idt_msg_route_oldest (msg), (uint64_t)back_ms);
        respond_object (c, msg, json_object ());
    }
    else
        answer_loan (c, msg);
    json_decref (o);
}

/* --- the watermark --------------------------------------------------------------------------------------------- */

static void position_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;
    struct report report;
    idt_error_t err;
    json_t *o = NULL;

    if (idt_msg_cred (msg).rolemask & IDT_ROLE_LOCAL)
        respond_error (c, msg, EPERM, "fluid.position is between brokers");
    else if (!(o = idt_msg_json (msg, &err)) || wire_get_report (o, &report, &err) < 0)
        respond_error (c, msg, errno, err.text);
    else {
        node_report (c->node, now_us (), &report);
        set_timer (c);
        respond_object (c, msg, json_object ());
    }
    json_decref (o);
}

/* The time, and the lowest id that may come yet: all that will ever be below it were made. */
static json_t *make_watermark (struct fluid *c, uint64_t ms)
{
    struct node_status s;
    char id[FLUID_STRING_MAX];

    node_status (c->node, now_us (), &s);
    fluid_encode (ms << 24, FLUID_F58, id, sizeof (id));
    return json_pack ("{s:o s:s s:o s:I}", "timestamp_ms", number_string (ms), "id", id, "date",
                      date_string (true, s.epoch_ms + (int64_t)ms), "behind_ms",
                      (json_int_t)(s.timestamp_ms > ms ? s.timestamp_ms - ms : 0));
}

static void answer_watermark (struct fluid *c, const idt_msg_t *msg)
{
    uint64_t ms;

    if (node_watermark (c->node, now_us (), &ms))
        respond_object (c, msg, make_watermark (c, ms));
    else
        respond_error (c, msg, EAGAIN, "rank 0 cannot tell a watermark: brokers hold leases of another statedir");
}

/* What was heard from above goes to all who asked meanwhile. */
static void answer_waiting (struct fluid *c, const char *payload, int errnum, const char *text)
{
    const idt_msg_t *msg;

    c->asked_watermark = false;
    while ((msg = fifo_pop (&c->watermark_waiting))) {
        if (!payload)
            respond_error (c, msg, errnum, text);
        else if (idt_respond (c->h, msg, payload) < 0)
            idt_log (c->h, LOG_ERR, "fluid.watermark: cannot answer: %s", strerror (errno));
        idt_msg_unref (msg);
    }
}

static void watermark_answer_cb (idt_future_t *f, void *arg)
{
    struct up *up = arg;
    const char *payload = NULL;

    if (idt_rpc_get (f, &payload) < 0)
        answer_waiting (up->fluid, NULL, idt_future_errnum (f), idt_future_error (f));
    else
        answer_waiting (up->fluid, payload ? payload : "{}", 0, NULL);
    up_destroy (up);
}

static void ask_watermark (struct fluid *c)
{
    if (up_create (c, idt_rpc (c->h, "fluid.watermark", "{}", IDT_NODEID_UPSTREAM, 0), watermark_answer_cb))
        c->asked_watermark = true;
    else
        answer_waiting (c, NULL, errno, NULL);
}

/* One request at a time is under way up, whoever waits for its answer. */
static void watermark_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;

    if (c->options.node.rank == 0)
        answer_watermark (c, msg);
    else if (c->watermark_waiting.count >= c->options.node.max_waiting)
        respond_error (c, msg, EAGAIN, "fluid.max-waiting requests wait already: ask again later");
    else if (fifo_push (&c->watermark_waiting, msg) < 0)
        respond_error (c, msg, errno, NULL);
    else {
        idt_msg_ref (msg);
        if (!c->asked_watermark)
            ask_watermark (c);
    }
}

/* --- statistics -------------------------------------------------------------------------------------------------- */

static void stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;
    struct node_stats s = node_stats (c->node);

    respond_object (c, msg,
                    json_pack ("{s:I s:I s:I s:I s:I s:I s:I s:f s:I s:I s:I s:I s:I s:I}", "requests",
                               (json_int_t)s.requests, "ids", (json_int_t)s.ids, "ids_from_above",
                               (json_int_t)s.ids_from_above, "forwarded", (json_int_t)s.forwards, "combined",
                               (json_int_t)s.combined, "forwards_lost", (json_int_t)s.forwards_lost, "stalls",
                               (json_int_t)s.stalls, "longest_stall_ms", (double)s.longest_stall_us / 1000, "refused",
                               (json_int_t)s.refused, "unreachable", (json_int_t)s.unreachable, "renewals",
                               (json_int_t)s.renewals, "lease_messages", (json_int_t)s.lease_messages, "stores",
                               (json_int_t)s.stores, "store_failures", (json_int_t)s.store_failures));
}

static void stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct fluid *c = arg;

    node_stats_clear (c->node);
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && idt_respond (h, msg, NULL) < 0)
        idt_log (h, LOG_ERR, "fluid.stats-clear: cannot answer: %s", strerror (errno));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "fluid.block", block_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "fluid.generate", generate_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "fluid.lease", lease_request_cb, IDT_ROLE_OWNER },
    { IDT_MSGTYPE_REQUEST, "fluid.lend", lend_cb, IDT_ROLE_OWNER },
    { IDT_MSGTYPE_REQUEST, "fluid.position", position_cb, IDT_ROLE_OWNER },
    { IDT_MSGTYPE_REQUEST, "fluid.watermark", watermark_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "fluid.cancel", cancel_cb, IDT_ROLE_OWNER },
    { IDT_MSGTYPE_REQUEST, "fluid.disconnect", disconnect_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "fluid.info", info_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "fluid.stats-get", stats_get_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "fluid.stats-clear", stats_clear_cb, IDT_ROLE_OWNER },
    { IDT_MSGTYPE_EVENT, "fluid.stats-clear", stats_clear_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- life -------------------------------------------------------------------------------------------------------- */

static int start_timer (struct fluid *c, idt_error_t *errp)
{
    c->timer_fd = timerfd_create (CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->timer_fd < 0
        || !(c->timer = idt_fd_watcher_create (idt_get_reactor (c->h), c->timer_fd, IDT_POLLIN, timer_cb, c)))
        return errprintf (errp, "cannot make a timer: %s", strerror (errno));
    idt_watcher_start (c->timer);
    return 0;
}

static struct store *open_store (struct fluid *c, struct store_content *content, idt_error_t *errp)
{
    char host[64] = "?", holder[128], path[PATH_MAX];
    const struct options *o = &c->options;
    struct store *st;

    gethostname (host, sizeof (host) - 1);
    snprintf (holder, sizeof (holder), "broker %.8s, process %d on %s", o->node.incarnation, (int)getpid (), host);
    if ((st = store_open (o->statedir, holder, content, errp)) || errno != EBADMSG || !o->recover)
        return st;
    if (!o->has_epoch) {
        errprintf (errp, "%s: damaged: fluid.recover-horizon needs the instance's fluid.epoch", o->statedir);
        errno = EINVAL;
        return NULL;
    }
    if (store_set_aside (o->statedir, path, sizeof (path), errp) < 0)
        return NULL;
    idt_log (c->h, LOG_WARNING, "fluid.recover-horizon=%s: the damaged file is kept as %s", o->recover, path);
    return store_open (o->statedir, holder, content, errp);
}

static int start_root (struct fluid *c, idt_error_t *errp)
{
    idt_reactor_t *r = idt_get_reactor (c->h);
    struct store_content content;
    struct lease_record record;
    int64_t epoch_ms, wall_us = (int64_t)clock_us (CLOCK_REALTIME);

    if (!(c->store = open_store (c, &content, errp))
        || options_epoch (&c->options, &content, wall_us / 1000, &epoch_ms, errp) < 0
        || options_record (&c->options, &content, wall_us / 1000, epoch_ms, &record, errp) < 0
        || (content.is_new && store_init (c->store, epoch_ms, &record, errp) < 0))
        return -1;
    if (!(c->store_watcher = idt_fd_watcher_create (r, store_fd (c->store), IDT_POLLIN, store_done_cb, c))
        || !(c->wall_timer = idt_timer_watcher_create (r, WALL_PERIOD_MS, WALL_PERIOD_MS, wall_cb, c))
        || node_start_root (c->node, now_us (), wall_us, epoch_ms, &record) < 0)
        return errprintf (errp, "cannot start: %s", strerror (errno));
    idt_watcher_start (c->store_watcher);
    idt_watcher_start (c->wall_timer);
    return 0;
}

/* A module in a thread hears nothing of the overlay: it takes the parent to be there, and the time from leases. */
static int attach (struct fluid *c, idt_error_t *errp)
{
    if (idt_overlay_attach (c->h, &overlay_ops, c) == 0)
        return 0;
    if (errno != ENOTSUP)
        return errprintf (errp, "cannot attach to the overlay: %s", strerror (errno));
    node_parent (c->node, now_us (), true);
    return 0;
}

static void close_store (struct fluid *c, const struct lease_record *last)
{
    idt_error_t err;

    if (c->store && store_close (c->store, last, &err) < 0)
        idt_log (c->h, LOG_ERR, "%s: the next start goes on a little ahead of the clock", err.text);
    c->store = NULL;
}

/* 'started': the root's table is there, so that the horizon after a clean stop is known. */
static void fluid_destroy (struct fluid *c, bool started)
{
    int saved = errno;
    struct up *up;
    struct lease_record last = { 0 };

    idt_handlers_remove (c->h, handlers);
    if (c->node)
        node_stop (c->node, now_us (), &last);
    answer_waiting (c, NULL, EHOSTUNREACH, "the fluid service of this broker is stopping");
    fifo_fini (&c->watermark_waiting);
    while ((up = LIST_FIRST (&c->ups))) {
        if (up->info)
            respond_error (c, up->info, EHOSTUNREACH, "the fluid service of this broker is stopping");
        up_destroy (up);
    }
    idt_watcher_destroy (c->wall_timer);
    idt_watcher_destroy (c->store_watcher);
    idt_watcher_destroy (c->timer);
    close_store (c, started ? &last : NULL);
    if (c->timer_fd >= 0)
        close (c->timer_fd);
    node_destroy (c->node);
    free (c);
    errno = saved;
}

static void fluid_fini (idt_t *h, void *ctx)
{
    fluid_destroy (ctx, true);
}

static int fluid_init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct fluid *c = calloc (1, sizeof (*c));
    bool root_started = false;

    if (!c)
        return errprintf (errp, "out of memory");
    *c = (struct fluid){ .h = h, .timer_fd = -1, .armed_us = NEVER };
    if (options_read (h, &c->options, errp) < 0)
        goto error;
    if (!(c->node = node_create (&c->options.node, &node_ops, c))) {
        errprintf (errp, "cannot start: %s", strerror (errno));
        goto error;
    }
    if (start_timer (c, errp) < 0 || (c->options.node.rank == 0 && start_root (c, errp) < 0))
        goto error;
    root_started = c->options.node.rank == 0;
    if (idt_handlers_add (h, handlers, c) < 0) {
        errprintf (errp, "out of memory");
        goto error;
    }
    if (attach (c, errp) < 0)
        goto error;
    set_timer (c);
    *ctx = c;
    return 0;
error:
    fluid_destroy (c, root_started);
    return -1;
}

IDT_MODULE ("fluid", fluid_init, fluid_fini)
