/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake.c - the flake service: the adapter of the core in node.h
 *
 * The module runs inline, on the broker's reactor: it never blocks. The module passes each event to the node together
 * with the time, and then sets the timer to the node's deadline. The node acts through flake_ops.
 *
 * Each request that the node holds has a 'struct flake_question' here, which is the node's cookie for the request. A
 * request of this module to another service is an upcall until its future is fulfilled.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <syslog.h>

#include <idtree/idtree.h>
#include <jansson.h>

#include "libmetrics/metrics.h"
#include "libmodule/module.h"
#include "libmodule/quota.h"
#include "libmsg/access.h"
#include "libutil/clock.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "modules/flake/answer.h"
#include "modules/flake/node.h"

#define HOUR_MS UINT64_C (3600000)
#define MAX_REQUEST 1024 /* the most bytes of a request's payload, because many may wait */

/* The attributes of the module, which idtree-broker(1) describes. */
struct flake_options {
    struct flake_config node; /* its member 'node' points to 'name' */
    char name[CLAIM_NAME_MAX + 1];
};

struct flake_question {
    const idt_msg_t *msg;
    enum series_kind kind;
    uint32_t count;
    struct answer answer; /* the ids made so far */
};

struct flake_module {
    idt_t *h;
    struct flake_options options;
    struct flake *flake;
    struct rate_limit *ration; /* limits of guests */
    struct flax_gen *flax;
    bool told_why;            /* it was logged that rank 0 does not grant our name */
    struct answer_ids coming; /* the parent's answer that is being split */
    idt_watcher_t *timer;
    struct upcalls ups;
};

static uint64_t now_us (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

/* Must be called after each call into the node. */
static void set_timer (struct flake_module *m)
{
    uint64_t at_us = flake_deadline (m->flake), now = now_us ();

    idt_watcher_stop (m->timer);
    if (at_us == UINT64_MAX)
        return;
    idt_timer_watcher_reset (m->timer, at_us > now ? (double)(at_us - now) / 1000 : 0., 0.);
    idt_watcher_start (m->timer);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct flake_module *m = arg;

    flake_tick (m->flake, now_us ());
    set_timer (m);
}

/* --- answers --------------------------------------------------------------------------------------- */

static void request_destroy (struct flake_question *q)
{
    idt_msg_unref (q->msg);
    answer_clear (&q->answer);
    free (q);
}

static int give_cb (void *arg, void *cookie, const struct flake_run *run, uint32_t got)
{
    struct flake_module *m = arg;
    struct flake_question *q = cookie;

    if (got == 0 && answer_begin (&q->answer, q->count) < 0)
        return -1;
    switch (q->kind) {
    case SERIES_SNO:
        answer_add_snos (&q->answer, run);
        break;
    case SERIES_UID:
        answer_add_uids (&q->answer, run, flake_drift (m->flake));
        break;
    default:
        return answer_add_flaxes (&q->answer, m->flax, (int64_t)(clock_us (CLOCK_REALTIME) / 1000), run->n);
    }
    return 0;
}

static void reply_cb (void *arg, void *cookie)
{
    struct flake_module *m = arg;
    struct flake_question *q = cookie;

    module_respond (m->h, q->msg, answer_end (&q->answer));
    request_destroy (q);
}

static void fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    struct flake_module *m = arg;
    struct flake_question *q = cookie;

    module_respond_error (m->h, q->msg, errnum, text);
    request_destroy (q);
}

/* --- responses to this module ---------------------------------------------------------------------- */

/* Split the parent's answer among the requests that were forwarded. */
static void take_answer (struct flake_module *m, uint32_t tag, const char *s)
{
    uint32_t count = flake_forward_count (m->flake, tag);

    if (count == 0)
        return;
    if (answer_read (&m->coming, s, count))
        flake_forwarded (m->flake, now_us (), tag);
    else
        flake_forward_failed (m->flake, now_us (), tag, EPROTO, "invalid answer of the parent broker");
}

static void pass_cb (void *arg, void *cookie, uint32_t first, uint32_t n)
{
    struct flake_module *m = arg;
    struct flake_question *q = cookie;
    bool whole = n == m->coming.count;
    char *text = whole ? NULL : answer_take (&m->coming, first, n);

    if (whole || text)
        module_respond (m->h, q->msg, whole ? m->coming.text : text);
    else
        module_respond_error (m->h, q->msg, ENOMEM, NULL);
    free (text);
    request_destroy (q);
}

static void forward_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct flake_module *m = up->owner;
    const char *s;

    if (idt_rpc_get (f, &s) < 0)
        flake_forward_failed (m->flake, now_us (), up->tag, idt_future_errnum (f) ? idt_future_errnum (f) : errno,
                              idt_future_error (f));
    else
        take_answer (m, up->tag, s);
    upcall_destroy (up);
    set_timer (m);
}

static int forward_up_cb (void *arg, uint32_t tag, const struct flake_request *req)
{
    struct flake_module *m = arg;
    bool sno = req->kind == SERIES_SNO;
    char payload[64] = "";
    size_t len = (size_t)snprintf (payload, sizeof (payload), "{\"count\":%u", (unsigned)req->count);

    if (sno)
        len += (size_t)snprintf (payload + len, sizeof (payload) - len, ",\"meta\":%u", (unsigned)req->meta);
    else if (req->drift)
        len += (size_t)snprintf (payload + len, sizeof (payload) - len, ",\"drift\":%d", req->drift);
    snprintf (payload + len, sizeof (payload) - len, "}");
    idt_future_t *f = idt_rpc (m->h, sno ? "sno.generate" : "uid.generate", payload, IDT_NODEID_UPSTREAM, 0);
    struct upcall *up = upcall_create (&m->ups, f, -1, forward_cb, m);

    if (!up)
        return -1;
    up->tag = tag;
    return 0;
}

#define END_MS (INT64_C (1) << 40)   /* end of the instance's time (RFC 19) */
#define EPOCH_MAX_MS (END_MS * 1024) /* beyond any date, and does not overflow int64_t in microseconds */

static bool is_range (json_int_t lo_ms, json_int_t hi_ms)
{
    return lo_ms >= 0 && lo_ms <= hi_ms && hi_ms <= END_MS;
}

static void time_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct flake_module *m = up->owner;
    json_int_t lo, hi, boot, inst, epoch;

    if (idt_rpc_get_unpack (f, "{s:[I,I] s:[I,I] s:I}", "range_ms", &lo, &hi, "clock_us", &boot, &inst, "epoch_ms",
                            &epoch)
            < 0
        || !is_range (lo, hi) || boot < 0 || inst < 0 || inst > END_MS * 1000 || epoch < -EPOCH_MAX_MS
        || epoch > EPOCH_MAX_MS)
        flake_time_refused (m->flake, now_us (), errno != EAGAIN);
    else {
        const struct time_answer time = { (uint64_t)lo, (uint64_t)hi, (uint64_t)boot, (uint64_t)inst, epoch };

        flake_time_granted (m->flake, now_us (), &time);
    }
    upcall_destroy (up);
    set_timer (m);
}

static int ask_time_cb (void *arg)
{
    struct flake_module *m = arg;

    return upcall_create (&m->ups, idt_rpc (m->h, "fluid.time", "{}", m->options.node.rank, 0), -1, time_cb, m) ? 0
                                                                                                                : -1;
}

static void return_time_cb (void *arg, uint64_t end_ms)
{
    struct flake_module *m = arg;

    idt_future_destroy (idt_rpc_pack (m->h, "fluid.time", m->options.node.rank, IDT_RPC_NORESPONSE, "{s:I}", "end_ms",
                                      (json_int_t)end_ms));
}

static void claimed_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct flake_module *m = up->owner;
    json_int_t fingerprint, lo, hi;
    const char *why = NULL;
    int drift;

    if (idt_rpc_get_unpack (f, "{s:I s:[I,I] s:i s?s}", "fingerprint", &fingerprint, "range_ms", &lo, &hi, "drift",
                            &drift, "why", &why)
            < 0
        || fingerprint < 0 || fingerprint > UINT32_MAX || !is_range (lo, hi) || drift < UID_DRIFT_MIN
        || drift > UID_DRIFT_MAX)
        flake_claim_failed (m->flake, now_us ());
    else {
        const struct naming_grant grant = { (uint32_t)fingerprint, { (uint64_t)lo, (uint64_t)hi }, drift };

        if (why && !m->told_why)
            idt_log (m->h, LOG_WARNING, "uids contain this rank's number instead of its name: %s", why);
        m->told_why = why != NULL;
        flake_claimed (m->flake, now_us (), &grant);
    }
    upcall_destroy (up);
    set_timer (m);
}

static int claim_cb (void *arg, const struct claim *claim)
{
    struct flake_module *m = arg;
    idt_future_t *f = idt_rpc_pack (m->h, "flake.claim", 0, 0, "{s:I s:s s:I}", "fingerprint",
                                    (json_int_t)claim->fingerprint, "node", claim->node, "rank",
                                    (json_int_t)claim->rank);

    return upcall_create (&m->ups, f, -1, claimed_cb, m) ? 0 : -1;
}

static const struct flake_ops flake_ops = {
    .give = give_cb,
    .reply = reply_cb,
    .fail = fail_cb,
    .forward = forward_up_cb,
    .pass = pass_cb,
    .ask_time = ask_time_cb,
    .return_time = return_time_cb,
    .claim = claim_cb,
};

/* --- requests -------------------------------------------------------------------------------------- */

/* Read an optional number from 'min' to 'max'. If it is missing, '*value' is unchanged. Returns 0, or -1 with errno set
 * and the reason in 'errp'.
 */
static int get_number (const json_t *o, const char *name, int min, int max, int *value, idt_error_t *errp)
{
    json_t *v = json_object_get (o, name);

    if (!v)
        return 0;
    if (!json_is_integer (v) || json_integer_value (v) < min || json_integer_value (v) > max)
        return errsetf (errp, EINVAL, "%s must be a number from %d to %d", name, min, max);
    *value = (int)json_integer_value (v);
    return 0;
}

/* Read a request. The value of a missing member is unchanged. Returns 0, or -1 with errno set and the reason in 'errp'.
 */
static int read_request (const idt_msg_t *msg, int *count, int *meta, int *drift, idt_error_t *errp)
{
    size_t size = 0;
    int rc = -1;

    idt_msg_payload (msg, NULL, &size);
    if (size > MAX_REQUEST)
        return errsetf (errp, EMSGSIZE, "a request of %zu bytes: the limit is %d", size, MAX_REQUEST);
    json_t *o = idt_msg_json (msg, errp);
    if (o && get_number (o, "count", 1, FLAKE_MAX_COUNT, count, errp) == 0
        && get_number (o, "meta", 0, SNO_META_MAX, meta, errp) == 0
        && get_number (o, "drift", UID_DRIFT_MIN, UID_DRIFT_MAX, drift, errp) == 0)
        rc = 0;
    int saved = errno;
    json_decref (o);
    errno = saved;
    return rc;
}

/* Identifies the requester: a hash (FNV-1a) of the UUID of the request's sender. */
static uint64_t asker_of (const idt_msg_t *msg)
{
    const char *s = idt_msg_route_oldest (msg);
    uint64_t hash = UINT64_C (0xcbf29ce484222325);

    for (; s && *s; s++)
        hash = (hash ^ (unsigned char)*s) * UINT64_C (0x100000001b3);
    return hash;
}

static void generate (struct flake_module *m, const idt_msg_t *msg, enum series_kind kind)
{
    struct idt_cred user = idt_msg_cred (msg);
    int count = 1, meta = 0, drift = 0;
    uint64_t at_us = now_us ();
    struct flake_question *q;
    idt_error_t err;

    if (read_request (msg, &count, &meta, &drift, &err) < 0
        || rate_limit_take (m->ration, user, (uint32_t)count, at_us, &err) < 0)
        module_respond_error (m->h, msg, errno, err.text);
    else if (!(q = malloc (sizeof (*q)))) {
        rate_limit_give (m->ration, user, (uint32_t)count, at_us);
        module_respond_error (m->h, msg, ENOMEM, NULL);
    }
    else {
        *q = (struct flake_question){ idt_msg_ref (msg), kind, (uint32_t)count, { 0 } };
        const struct flake_request req = { .cookie = q,
                                           .kind = kind,
                                           .count = (uint32_t)count,
                                           .meta = (uint8_t)meta,
                                           .drift = drift,
                                           .asker = asker_of (msg),
                                           .user = access_share (user) };
        if (!flake_generate (m->flake, at_us, &req)) /* a refused request does not count against the limits */
            rate_limit_give (m->ration, user, (uint32_t)count, at_us);
        set_timer (m);
    }
}

static void sno_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    generate (arg, msg, SERIES_SNO);
}

static void uid_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    generate (arg, msg, SERIES_UID);
}

static void flax_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    generate (arg, msg, SERIES_FLAX);
}

/* Handle the claim of a rank. */
static void claim_request_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct flake_module *m = arg;
    json_int_t fingerprint, rank;
    struct claim claim = { 0 };
    struct naming_grant grant;
    idt_error_t err = { "" };
    json_t *o = NULL;

    if (idt_msg_unpack (msg, &o, &err, "{s:I s:s s:I}", "fingerprint", &fingerprint, "node", &claim.node, "rank", &rank)
            < 0
        || fingerprint < 0 || fingerprint > UINT32_MAX || rank < 0 || rank > UINT32_MAX) {
        module_respond_error (m->h, msg, EPROTO, err.text[0] ? err.text : "a number is out of range");
        goto done;
    }
    claim.fingerprint = (uint32_t)fingerprint;
    claim.rank = (uint32_t)rank;
    if (!idt_overlay_covers (h, msg, claim.rank))
        module_respond_error (m->h, msg, EPERM,
                              "rank: must be the rank of the requesting broker, or of a broker below it");
    else if (flake_claim_request (m->flake, now_us (), &claim, &grant, &err) < 0)
        module_respond_error (m->h, msg, errno, err.text[0] ? err.text : NULL);
    else
        module_respond_object (m->h, msg,
                               json_pack ("{s:I s:[I,I] s:i s:s*}", "fingerprint", (json_int_t)grant.fingerprint,
                                          "range_ms", (json_int_t)grant.range.lo_ms, (json_int_t)grant.range.hi_ms,
                                          "drift", grant.drift, "why", err.text[0] ? err.text : NULL));
    set_timer (m);
done:
    json_decref (o);
}

static bool gone_cb (void *cookie, void *arg)
{
    struct flake_question *q = cookie;

    if (!module_same_client (q->msg, arg))
        return false;
    request_destroy (q);
    return true;
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct flake_module *m = arg;

    flake_cancel (m->flake, now_us (), gone_cb, (void *)msg);
    set_timer (m);
}

/* --- counters ------------------------------------------------------------------------------------------ */

static json_t *stats_new (const struct flake_module *m)
{
    struct flake *f = m->flake;
    const struct flake_config *c = &m->options.node;
    const struct flake_stats *s = flake_stats (f);

    return json_pack ("{s:s s:I s:i s:I s:I s:I s:I s:I s:I s:I s:I}", "node", c->node, "fingerprint",
                      (json_int_t)c->fingerprint, "drift", flake_drift (f), "requests", (json_int_t)s->requests, "ids",
                      (json_int_t)(s->made[SERIES_SNO] + s->made[SERIES_UID]), "flax", (json_int_t)s->made[SERIES_FLAX],
                      "forwarded", (json_int_t)s->forwards, "combined", (json_int_t)s->combined, "refused",
                      (json_int_t)s->refused, "times", (json_int_t)s->times, "claims", (json_int_t)s->claims);
}

/* For module_report (). */
static void report_stats (void *flake, bool states, struct metrics *m)
{
    struct flake *f = flake;
    const struct flake_stats *s = flake_stats (f);

    if (states)
        return;
    metrics_put_count (m, "flake_requests", s->requests);
    metrics_put_count (m, "flake_flaxes", s->made[SERIES_FLAX]);
    metrics_put_count (m, "flake_snos", s->made[SERIES_SNO]);
    metrics_put_count (m, "flake_uids", s->made[SERIES_UID]);
    metrics_put_count (m, "flake_forwarded", s->forwards);
    metrics_put_count (m, "flake_combined", s->combined);
    metrics_put_count (m, "flake_refused", s->refused);
    metrics_put_count (m, "flake_waiting", flake_waiting (f));
}

static void stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const struct flake_module *m = arg;

    module_respond_object (m->h, msg, stats_new (m));
}

static void stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct flake_module *m = arg;

    *flake_stats (m->flake) = (struct flake_stats){ 0 };
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        module_respond (m->h, msg, NULL);
}

static void metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const struct flake_module *m = arg;

    module_report (m->h, msg, m->options.node.rank, report_stats, m->flake);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "flax.generate", flax_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "sno.generate", sno_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "uid.generate", uid_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "flake.claim", claim_request_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "flax.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "sno.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "uid.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "flake.metrics", metrics_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "flake.stats-get", stats_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "flake.stats-clear", stats_clear_cb, 0 },
    { IDT_MSGTYPE_EVENT, "flake.stats-clear", stats_clear_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- start and end ------------------------------------------------------------------------------------ */

static const char fingerprints[] =
    "a number from 0 to 4294967295, except 2147483648 to 2214592511, which belong to ranks";

/* Read the node of the uids. It is the rank's own number, unless uid.node or uid.fingerprint is set. Rank 0 shows the
 * name in messages.
 */
static int get_node (idt_t *h, struct flake_options *o, idt_error_t *errp)
{
    const char *name = idt_attr_get (h, "uid.node"), *host = idt_attr_get (h, "hostname"),
               *given = idt_attr_get (h, "uid.fingerprint");
    int n = name ? snprintf (o->name, sizeof (o->name), "%s", name)
                 : snprintf (o->name, sizeof (o->name), "idtree-%u@%s", o->node.rank, host ? host : "localhost");

    if (n < 1 || n > CLAIM_NAME_MAX)
        return module_option_bad ("uid.node", o->name, "a name of 1 to 255 bytes", errp);
    o->node.node = o->name;
    o->node.fingerprint = name ? uid_fingerprint (name, strlen (name)) : naming_own (o->node.rank);
    if (given) {
        uint64_t fingerprint;

        if (parse_number (given, 0, UINT32_MAX, &fingerprint) < 0 || naming_is_own (fingerprint))
            return module_option_bad ("uid.fingerprint", given, fingerprints, errp);
        o->node.fingerprint = (uint32_t)fingerprint;
    }
    return 0;
}

/* Read and check all attributes. Returns 0, or -1 with errno set and the reason in 'errp'. */
static int read_options (idt_t *h, struct flake_options *o, idt_error_t *errp)
{
    struct flake_config *c = &o->node;
    uint32_t drift = UID_DRIFT_DEFAULT;
    uint64_t ms;

    if (idt_get_rank (h, &c->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if (module_option_duration (h, "flake.forward-timeout", module_option_root_timeout (h), 10, HOUR_MS,
                                "10ms to 1h, such as 5s", &ms, errp)
            < 0
        || module_option_number (h, "flake.max-partitions", "65536", 1, FLAKE_PARTITIONS, &c->max_partitions, errp) < 0
        || module_option_number (h, "flake.max-waiting", "8192", 1, 1000000, &c->max_waiting, errp) < 0
        || module_option_number (h, "uid.drift", c->rank == 0 ? "8" : NULL, UID_DRIFT_MIN, UID_DRIFT_MAX, &drift, errp)
               < 0)
        return -1;
    c->timeout_us = ms * 1000;
    c->drift = (int)drift;
    return get_node (h, o, errp);
}

static void service_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct flake_module *m = up->owner;

    if (idt_rpc_get (f, NULL) < 0)
        idt_log (m->h, LOG_ERR, "cannot register a service: %s", idt_future_error (f));
    upcall_destroy (up);
}

static int register_services (struct flake_module *m)
{
    static const char *const names[] = { "flax", "sno", "uid" };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (!upcall_create (&m->ups, idt_service_add (m->h, names[i]), -1, service_cb, m))
            return -1;
    return 0;
}

static void flake_module_destroy (struct flake_module *m)
{
    int saved = errno;

    idt_handlers_remove (m->h, handlers);
    if (m->flake)
        flake_stop (m->flake, now_us ());
    upcalls_stop (&m->ups, m->h, NULL); /* all upcalls belong to the node, which has answered all requests */
    idt_watcher_destroy (m->timer);
    flake_destroy (m->flake);
    rate_limit_destroy (m->ration);
    flax_gen_destroy (m->flax);
    free (m);
    errno = saved;
}

static void flake_fini (idt_t *h, void *ctx)
{
    flake_module_destroy (ctx);
}

static int flake_init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct flake_module *m;

    if (module_option_none (argc, argv, errp) < 0)
        return -1;
    if (!(m = calloc (1, sizeof (*m))))
        return errprintf (errp, "out of memory");
    m->h = h;
    if (read_options (h, &m->options, errp) < 0 || !(m->ration = rate_limit_configure (h, errp)))
        goto error;
    if (!(m->flake = flake_create (&m->options.node, &flake_ops, m))
        || !(m->flax = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING }))
        || !(m->timer = idt_timer_watcher_create (idt_get_reactor (h), 0., 0., timer_cb, m))
        || idt_handlers_add (h, handlers, m) < 0 || register_services (m) < 0) {
        errprintf (errp, "cannot start: %s", strerror (errno));
        goto error;
    }
    set_timer (m);
    *ctx = m;
    return 0;
error:
    flake_module_destroy (m);
    return -1;
}

IDT_MODULE ("flake", flake_init, flake_fini)
