/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* serve.c - metrics.get: the figures of a subtree, as one report
 *
 * For a request, the modules of this rank and the children of this rank are asked at the same time. When all of these
 * have answered or were given up, the request is answered, at its deadline at the latest.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/base/plan.h"
#include "broker/metrics/reduction.h"
#include "broker/metrics/serve.h"
#include "broker/root/role_pg.h"
#include "libidtree/json.h"
#include "libmetrics/metrics.h"
#include "libmodule/quota.h"
#include "libmodule/module.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define TIMEOUT_MS 10000
#define MAX_NAME 64 /* characters of a module's name */
#define STOPPING "this broker is stopping"

struct metrics_request {
    struct metrics_service *all;
    LIST_ENTRY (metrics_request) link;
    const idt_msg_t *msg;
    json_t *services; /* modules to ask; NULL: all */
    json_t *asked;    /* names of the modules that were asked */
    bool states;
    bool alone;
    bool brief;
    bool is_root; /* this rank is the root of the requested subtree */
    struct reduction *reduction;
    struct upcalls ups;     /* requests to other ranks; the tag is the rank */
    struct upcalls modules; /* requests to modules of this rank; the tag is the index in 'asked' */
};

struct metrics_service {
    struct metrics_service_conf conf;
    LIST_HEAD (, metrics_request) requests;
    struct quota quota; /* limits 'requests' */
    bool stopped;
};

static double now_ms (void)
{
    return (double)clock_us (CLOCK_MONOTONIC) / 1E3;
}

/* --- life of a request -------------------------------------------------------------------------------- */

static void request_destroy (struct metrics_request *r)
{
    if (!r)
        return;
    LIST_REMOVE (r, link);
    quota_give (&r->all->quota, idt_msg_cred (r->msg));
    upcalls_stop (&r->ups, r->all->conf.h, NULL);
    upcalls_stop (&r->modules, r->all->conf.h, NULL);
    reduction_destroy (r->reduction);
    json_decref (r->services);
    json_decref (r->asked);
    idt_msg_unref (r->msg);
    free (r);
}

static struct metrics_request *request_create (struct metrics_service *all, const idt_msg_t *msg)
{
    struct metrics_request *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    r->all = all;
    r->msg = idt_msg_ref (msg);
    LIST_INSERT_HEAD (&all->requests, r, link);
    return r;
}

static void finish_if_over (struct metrics_request *r)
{
    if (!reduction_is_over (r->reduction) || !LIST_EMPTY (&r->modules.calls))
        return;
    if (r->brief)
        metrics_leave_out_zeros (reduction_metrics (r->reduction));
    module_respond_object (r->all->conf.h, r->msg, metrics_report_new (reduction_metrics (r->reduction)));
    request_destroy (r);
}

/* --- children ------------------------------------------------------------------------------------------- */

static void child_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct metrics_request *r = up->owner;
    json_t *report;

    if (idt_rpc_get_unpack (f, "o", &report) == 0)
        reduction_answered (r->reduction, up->tag, report);
    else
        reduction_failed (r->reduction, up->tag, errno);
    upcall_destroy (up);
    reduction_turn (r->reduction, now_ms ());
    finish_if_over (r);
}

/* The root of the subtree itself reports all names. So if this rank is the root, its descendants leave out sums that
 * are 0.
 */
static int ask_child (void *arg, uint32_t rank, double timeout_ms)
{
    struct metrics_request *r = arg;
    idt_future_t *f = idt_rpc_pack (r->all->conf.h, "metrics.get", rank, 0, "{s:I s:I s:O* s:b s:b s:b}", "rank",
                                    (json_int_t)rank, "timeout_ms", (json_int_t)timeout_ms + 1, "services", r->services,
                                    "states", r->states, "alone", r->alone, "brief", r->brief || r->is_root);
    struct upcall *up = upcall_create (&r->ups, f, timeout_ms, child_cb, r);

    if (!up)
        return -1;
    up->tag = rank;
    return 0;
}

static const char *status_of (void *arg, uint32_t rank)
{
    struct metrics_request *r = arg;
    const char *status = overlay_child_status (r->all->conf.overlay, rank);

    return status && strcmp (status, "offline") == 0 ? status : "lost";
}

/* If a rank is a leaf, and no module must be asked there, its whole answer is its status, which it has already reported
 * to its parent.
 */
static const char *known_of (void *arg, uint32_t rank)
{
    const struct metrics_request *r = arg;
    bool asks = !r->services || json_array_size (r->services) > 0 || !r->states;

    return asks || topo_child_count (r->all->conf.topo, rank) > 0 ? NULL
                                                                  : overlay_child_status (r->all->conf.overlay, rank);
}

static const struct reduction_ops reduction_ops = { ask_child, status_of, known_of };

/* --- the figures of this broker ------------------------------------------------------------------------- */

static void put_sum (struct metrics *m, const char *name, uint64_t value)
{
    metrics_put_new (m, METRICS_SUM, name, json_integer ((json_int_t)value));
}

static void put_max (struct metrics *m, const char *name, uint64_t value)
{
    metrics_put_new (m, METRICS_MAX, name, json_integer ((json_int_t)value));
}

static void put_router (const struct metrics_service_conf *conf, struct metrics *m)
{
    struct router_stats s = router_stats (conf->router);

    put_sum (m, "broker_requests", s.requests);
    put_sum (m, "broker_responses", s.responses);
    put_sum (m, "broker_failed", s.failed);
    put_sum (m, "broker_unroutable", s.unroutable);
    put_sum (m, "broker_pending", s.pending);
    put_sum (m, "broker_clients", usock_count (conf->local));
}

static void put_overlay (const struct metrics_service_conf *conf, struct metrics *m)
{
    struct overlay_load load = overlay_load (conf->overlay);

    put_sum (m, "overlay_links", load.links);
    put_sum (m, "overlay_adopted", load.adopted);
    put_sum (m, "overlay_waiting_messages", load.messages);
    put_sum (m, "overlay_waiting_bytes", load.bytes);
    put_max (m, "overlay_longest_queue_bytes", load.longest_bytes);
    put_sum (m, "overlay_refused", load.refused);
    put_sum (m, "overlay_failed", load.failed);
}

static void put_events (const struct metrics_service_conf *conf, struct metrics *m)
{
    struct event_stats s = event_stats (conf->event);

    put_max (m, "event_sequence", event_seq (conf->event));
    put_sum (m, "event_delivered", s.delivered);
    put_sum (m, "event_gaps", s.gaps);
    put_sum (m, "event_recovered", s.recovered);
    put_sum (m, "event_lost", s.lost);
    put_sum (m, "event_subscribers", s.subscribers);
}

/* --- the role of rank 0 ------------------------------------------------------------------------------ */

static void put_role (const struct role_pg *role, struct metrics *m)
{
    int64_t standbys = role_pg_standbys (role);

    put_max (m, "root_term", role_pg_role (role)->row.term);
    put_max (m, "root_takeovers", role_pg_takeovers (role));
    put_max (m, "root_candidates", role_pg_candidates (role));
    if (standbys >= 0)
        put_max (m, "root_standbys", (uint64_t)standbys);
    put_max (m, "root_store_failing", *role_pg_why (role) != '\0');
    metrics_put_ms (m, METRICS_MAX, "root_store_silent_seconds", (double)role_pg_silent_ms (role));
    if (strlen (role_pg_host (role)) <= METRICS_MAX_NAME)
        metrics_put_rank (m, "root_host", role_pg_host (role), 0);
}

/* --- the figures of the process --------------------------------------------------------------------- */

/* The resident memory of the process; 0: it cannot be read. */
static uint64_t resident_bytes (void)
{
    FILE *f = fopen ("/proc/self/statm", "re");
    unsigned long pages = 0;

    if (!f)
        return 0;
    if (fscanf (f, "%*u %lu", &pages) != 1)
        pages = 0;
    fclose (f);
    return (uint64_t)pages * (uint64_t)sysconf (_SC_PAGESIZE);
}

static double cpu_seconds (void)
{
    struct rusage ru;

    if (getrusage (RUSAGE_SELF, &ru) < 0)
        return 0;
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec)
           + (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1e-6;
}

static void put_process (struct metrics *m)
{
    uint64_t bytes = resident_bytes (), fds = plan_files_open (0);
    struct rlimit limit = { 0, 0 };

    put_sum (m, "processes", 1);
    put_sum (m, "process_resident_memory_bytes", bytes);
    put_max (m, "process_largest_memory_bytes", bytes);
    put_sum (m, "process_open_fds", fds);
    metrics_put_new (m, METRICS_SUM, "process_cpu_seconds", json_real (cpu_seconds ()));
    if (getrlimit (RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0 && limit.rlim_cur != RLIM_INFINITY)
        metrics_put_new (m, METRICS_MAX, "process_fds_used_ratio",
                         json_real ((double)(fds * 10000 / limit.rlim_cur) / 1E4));
}

static void put_own (const struct metrics_service_conf *conf, struct metrics *m)
{
    put_router (conf, m);
    put_overlay (conf, m);
    put_events (conf, m);
    if (conf->role)
        put_role (conf->role, m);
    if (conf->for_process)
        put_process (m);
}

/* --- this rank ------------------------------------------------------------------------------------------ */

/* A module has answered. A malformed report is ignored. A module without figures is not asked again, or not before it
 * gets a message, because most ranks have unused modules, and asking a module in a thread takes most of the time.
 */
static void module_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct metrics_request *r = up->owner;
    struct metrics *m = reduction_metrics (r->reduction);
    const char *name = json_string_value (json_array_get (r->asked, up->tag));
    json_t *report;

    if (idt_rpc_get_unpack (f, "o", &report) == 0) {
        (void)metrics_merge (m, report);
        modules_told (r->all->conf.modules, name,
                      json_object_size (report) == 0                     ? MODULES_NOTHING
                      : json_is_true (json_object_get (report, "quiet")) ? MODULES_QUIET
                                                                         : MODULES_SOMETHING);
    }
    else if (errno == ETIMEDOUT)
        metrics_put_rank (m, "silent_modules", name, r->all->conf.rank);
    upcall_destroy (up);
    finish_if_over (r);
}

static void ask_module (const char *name, void *arg)
{
    struct metrics_request *r = arg;
    char topic[MAX_NAME + sizeof (".metrics")];

    if (json_array_append_new (r->asked, json_string (name)) < 0)
        return;
    snprintf (topic, sizeof (topic), "%.*s.metrics", MAX_NAME, name);
    struct upcall *up = upcall_create (&r->modules,
                                       idt_rpc_pack (r->all->conf.h, topic, r->all->conf.rank, 0, "{s:b s:b}", "states",
                                                     r->states, "brief", r->brief),
                                       reduction_left_ms (r->reduction, now_ms ()), module_cb, r);
    if (up)
        up->tag = (uint32_t)json_array_size (r->asked) - 1;
}

static void ask_this_rank (struct metrics_request *r)
{
    const struct metrics_service_conf *conf = &r->all->conf;
    const json_t *name;
    size_t i;

    metrics_put_rank (reduction_metrics (r->reduction), REDUCTION_STATUS, overlay_status (conf->overlay), conf->rank);
    if (!r->states)
        put_own (conf, reduction_metrics (r->reduction));
    if (!r->services)
        modules_each_telling (conf->modules, r->brief, ask_module, r);
    json_array_foreach (r->services, i, name)
        ask_module (json_string_value (name), r);
}

/* --- metrics.get ---------------------------------------------------------------------------------------- */

struct wants {
    json_int_t rank, timeout_ms;
    json_t *services;
    int states, alone, brief;
};

static bool are_services (const json_t *services)
{
    const json_t *name;
    size_t i;

    if (!json_is_array (services) || json_array_size (services) > REDUCTION_MAX_SERVICES)
        return false;
    json_array_foreach ((json_t *)services, i, name) {
        const char *s = json_string_value (name);

        if (!s || !*s || strlen (s) > MAX_NAME || strchr (s, '.'))
            return false;
    }
    return true;
}

/* Returns 0, or -1 with errno set and 'errp' filled. */
static int check (const struct metrics_service *all, const idt_msg_t *msg, const struct wants *w, idt_error_t *errp)
{
    const struct topo *topo = all->conf.topo;

    if (w->rank < 0 || w->rank >= topo->size)
        return errsetf (errp, EINVAL, "rank %jd: must be 0 to %u", (intmax_t)w->rank, topo->size - 1);
    if (w->timeout_ms < 1 || w->timeout_ms > REDUCTION_MAX_MS)
        return errsetf (errp, EPROTO, "timeout_ms %jd: must be 1 to %d", (intmax_t)w->timeout_ms, REDUCTION_MAX_MS);
    if (w->services && !are_services (w->services))
        return errsetf (errp, EPROTO, "services must be an array of names of modules, %d at most",
                        REDUCTION_MAX_SERVICES);
    if (all->stopped)
        return errsetf (errp, EHOSTUNREACH, STOPPING);
    return 0;
}

/* Serve a request. The caller has taken its place in the quota. */
static void begin (struct metrics_service *all, const idt_msg_t *msg, const struct wants *w)
{
    struct metrics_request *r = request_create (all, msg);

    if (!r || !(r->asked = json_array ()))
        goto error;
    r->services = json_incref (w->services);
    r->states = w->states;
    r->alone = w->alone;
    r->brief = w->brief;
    r->is_root = w->rank == all->conf.rank;
    const struct reduction_conf conf = {
        .topo = all->conf.topo,
        .own = all->conf.rank,
        .root = (uint32_t)w->rank,
        .alone = w->alone,
        .ops = &reduction_ops,
        .arg = r,
    };
    if (!(r->reduction = reduction_create (&conf, now_ms (), (double)w->timeout_ms)))
        goto error;
    if (r->is_root)
        ask_this_rank (r);
    reduction_turn (r->reduction, now_ms ());
    finish_if_over (r);
    return;
error:
    module_respond_error (all->conf.h, msg, ENOMEM, NULL);
    if (!r)
        quota_give (&all->quota, idt_msg_cred (msg));
    request_destroy (r);
}

static void get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct metrics_service *all = arg;
    struct wants w = { .rank = all->conf.rank, .timeout_ms = TIMEOUT_MS };
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s?I s?I s?o s?b s?b s?b}", "rank", &w.rank, "timeout_ms", &w.timeout_ms,
                        "services", &w.services, "states", &w.states, "alone", &w.alone, "brief", &w.brief)
        < 0) {
        module_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (check (all, msg, &w, &err) < 0 || quota_take (&all->quota, idt_msg_cred (msg), &err) < 0)
        module_respond_error (h, msg, errno, err.text);
    else
        begin (all, msg, &w);
    json_decref (o);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "metrics.get", get_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- life ------------------------------------------------------------------------------------------------- */

struct metrics_service *metrics_service_create (const struct metrics_service_conf *conf)
{
    struct metrics_service *all = calloc (1, sizeof (*all));

    if (!all)
        return NULL;
    all->conf = *conf;
    quota_init (&all->quota, QUOTA_SURVEYS);
    LIST_INIT (&all->requests);
    if (idt_handlers_add (conf->h, handlers, all) < 0) {
        free (all);
        return NULL;
    }
    return all;
}

void metrics_service_stop (struct metrics_service *all)
{
    struct metrics_request *r;

    if (!all)
        return;
    all->stopped = true;
    while ((r = LIST_FIRST (&all->requests))) {
        module_respond_error (all->conf.h, r->msg, EHOSTUNREACH, STOPPING);
        request_destroy (r);
    }
}

/* Called when requests can no longer be answered. */
void metrics_service_destroy (struct metrics_service *all)
{
    struct metrics_request *r;

    if (!all)
        return;
    while ((r = LIST_FIRST (&all->requests)))
        request_destroy (r);
    quota_fini (&all->quota);
    free (all);
}
