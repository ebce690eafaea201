/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* services.c - the broker's own services: attr, config, root, service, state-machine, shutdown, and broker.stats-get */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "broker/base/hostlist.h"
#include "broker/base/msglist.h"
#include "broker/boot/boot.h"
#include "broker/root/role_pg.h"
#include "broker/services.h"
#include "libmodule/module.h"
#include "libidtree/json.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define MAX_SERVICES 64 /* largest number of services that one client or module may add */

struct services {
    struct services_conf conf;
    struct msglist *shutdown_streams; /* streaming requests shutdown.start, which wait for the end of the broker */
    struct upcalls ups;               /* requests that this broker sends to rank 0 for clients */
};

/* --- attributes that describe the broker ---------------------------------------------------------------- */

__attribute__ ((format (printf, 4, 5))) static int define (struct attrs *attrs, idt_error_t *errp, const char *name,
                                                           const char *fmt, ...)
{
    char value[PATH_MAX + 32];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (value, sizeof (value), fmt, ap);
    va_end (ap);
    return attr_define (attrs, name, value, ATTR_IMMUTABLE, errp);
}

/* Define the attributes, except the value of hostlist: get_hostlist () makes the list when it is requested. */
static int define_facts (const struct services_conf *conf, idt_error_t *errp)
{
    const struct boot *boot = conf->broker->boot;
    struct attrs *attrs = conf->broker->attrs;
    uint32_t rank = conf->broker->rank;
    char local_uri[PATH_MAX + 32];
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    usock_uri (conf->local, local_uri, sizeof (local_uri));
    if (define (attrs, errp, "hostname", "%s", boot->host) < 0 || define (attrs, errp, "hostlist", "%s", "") < 0
        || define (attrs, errp, "instance-level", "0") < 0 || define (attrs, errp, "local-uri", "%s", local_uri) < 0
        || define (attrs, errp, "broker.uuid", "%s", conf->uuid) < 0
        || define (attrs, errp, "broker.starttime", "%jd.%03ld", (intmax_t)ts.tv_sec, ts.tv_nsec / 1000000) < 0
        || define (attrs, errp, "broker.boot-method", "%s", boot_method_name (boot)) < 0
        || define (attrs, errp, "rank", "%u", rank) < 0 || define (attrs, errp, "size", "%u", boot->size) < 0
        || define (attrs, errp, "security.owner", "%u", geteuid ()) < 0
        || define (attrs, errp, "broker.pid", "%d", getpid ()) < 0
        || define (attrs, errp, "tbon.level", "%u", topo_level (boot->topo, rank)) < 0
        || define (attrs, errp, "tbon.maxlevel", "%u", topo_maxlevel (boot->topo)) < 0)
        return -1;
    return 0;
}

/* --- attr ------------------------------------------------------------------------------------------- */

static void respond_value (idt_t *h, const idt_msg_t *msg, const char *value, int flags)
{
    idt_respond_pack (h, msg, "{s:s s:i}", "value", value, "flags", flags & ATTR_IMMUTABLE);
}

static void hostlist_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct services *s = up->owner;
    const char *value;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &value) < 0)
        idt_respond_error (s->conf.h, up->msg, errno, idt_future_error (f));
    else
        respond_value (s->conf.h, up->msg, value, ATTR_IMMUTABLE);
    upcall_destroy (up);
}

/* The list of hosts is long and is seldom requested. So it is made only when it is requested, or fetched from rank 0 if
 * this rank does not have it.
 */
static void get_hostlist (struct services *s, const idt_msg_t *msg)
{
    char *text = s->conf.broker->boot->hosts ? hostlist_text (s->conf.broker->boot->hosts) : NULL;
    struct upcall *up = NULL;

    if (text)
        respond_value (s->conf.h, msg, text, ATTR_IMMUTABLE);
    else if (s->conf.broker->boot->hosts)
        idt_respond_error (s->conf.h, msg, ENOMEM, NULL);
    else if ((up = upcall_create (&s->ups, idt_rpc_pack (s->conf.h, "attr.get", 0, 0, "{s:s}", "name", "hostlist"), -1,
                                  hostlist_cb, s)))
        up->msg = idt_msg_ref (msg);
    else
        idt_respond_error (s->conf.h, msg, errno, "cannot ask rank 0 for the list of hosts");
    free (text);
}

static void attr_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    const struct peer *p = router_local_sender (s->conf.router, msg);
    const char *name, *value;
    idt_error_t err;
    int flags;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "name", &name) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (strcmp (name, "hostlist") == 0)
        get_hostlist (s, msg);
    else if ((value = p && p->kind == PEER_MODULE ? attr_get (s->conf.broker->attrs, name, &flags)
                                                  : attr_look (s->conf.broker->attrs, name, &flags)))
        respond_value (h, msg, value, flags);
    else
        idt_respond_error (h, msg, ENOENT, NULL);
    json_decref (o);
}

static void attr_set_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    const char *name, *value;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s}", "name", &name, "value", &value) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (attr_set (s->conf.broker->attrs, name, value, &err) < 0)
        idt_respond_error (h, msg, errno, err.text);
    else
        idt_respond (h, msg, NULL);
    json_decref (o);
}

/* A module defines an attribute of its own (idt_attr_define ()). */
static void attr_define_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    struct peer *p = router_local_sender (s->conf.router, msg);
    const char *name, *value, *kept;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s}", "name", &name, "value", &value) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    if (!p || p->kind != PEER_MODULE)
        idt_respond_error (h, msg, EPERM, "only modules of this broker define attributes");
    else if (!(kept = attr_default (s->conf.broker->attrs, name, value, &err)))
        idt_respond_error (h, msg, errno, err.text);
    else
        idt_respond_pack (h, msg, "{s:s s:i}", "value", kept, "flags", 0);
    json_decref (o);
}

static void append_name (const char *name, const char *value, void *arg)
{
    json_add_new (arg, json_string (name));
}

static void attr_list_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    json_t *names = json_array ();

    attr_foreach (s->conf.broker->attrs, append_name, &names);
    idt_respond_pack (h, msg, "{s:o}", "names", names);
}

/* --- config ----------------------------------------------------------------------------------------- */

/* Answer {}. Services without statistics answer so to stats-get, like modules without a handler of their own. The
 * answer to config.get is {}, too. Clients of Flux read the configuration for optional behaviour (flux shutdown:
 * whether to clean up a content store, which idtree does not have), and fail without an answer. idtree is configured
 * only by attributes.
 */
static void empty_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_respond (h, msg, "{}");
}

static void config_reload_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    idt_error_t err = { "" };
    json_t *report = s->conf.broker->ops->reload ? s->conf.broker->ops->reload (s->conf.broker->arg, &err)
                                                 : errset_null (ENOSYS);

    if (report)
        idt_respond_pack (h, msg, "o", report);
    else
        idt_respond_error (h, msg, errno, err.text[0] ? err.text : NULL);
}

/* --- service ---------------------------------------------------------------------------------------- */

static const char *why_no_change (int errnum)
{
    switch (errnum) {
    case ENOSPC:
        return "a client may add at most 64 services";
    case EEXIST:
        return "the name is already in use on this rank: choose another, or wait until its owner removes it";
    case EINVAL:
        return "the name of a service must have 1 to 64 characters and no dot";
    case ENOENT:
        return "no service of this name was added over this connection: only the connection that added a service can "
               "remove it";
    default:
        return NULL;
    }
}

static void service_change (struct services *s, const idt_msg_t *msg,
                            int (*change) (struct router *r, const char *name, struct peer *p))
{
    struct peer *p = router_local_sender (s->conf.router, msg);
    const char *name;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s}", "service", &name) < 0) {
        idt_respond_error (s->conf.h, msg, EPROTO, err.text);
        return;
    }
    if (!p)
        idt_respond_error (s->conf.h, msg, EPROTO,
                           "a service can be added only at the broker of the connection, not at "
                           "another rank");
    else if (change (s->conf.router, name, p) < 0)
        idt_respond_error (s->conf.h, msg, errno, why_no_change (errno));
    else
        idt_respond (s->conf.h, msg, NULL);
    json_decref (o);
}

static void count_cb (const char *name, void *arg)
{
    (*(int *)arg)++;
}

static int add_service (struct router *r, const char *name, struct peer *p)
{
    int count = 0;

    router_service_foreach (r, p, count_cb, &count);
    if (count >= MAX_SERVICES)
        return errset (ENOSPC);
    return router_service_add (r, name, p);
}

static void service_add_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    service_change (arg, msg, add_service);
}

static void service_remove_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    service_change (arg, msg, router_service_remove);
}

/* --- state-machine, shutdown, broker --------------------------------------------------------------------- */

static void state_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;

    idt_respond_pack (h, msg, "{s:s s:f}", "state", state_name (s->conf.life->state), "duration",
                      clock_s (CLOCK_MONOTONIC) - s->conf.life->since);
}

/* Stop the broker. A streaming request is answered when the broker ends, any other request immediately. */
static void shutdown_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    idt_error_t err;

    if (!idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING))
        idt_respond (h, msg, NULL);
    else if (msglist_add (s->shutdown_streams, msg, &err) < 0) {
        idt_respond_error (h, msg, errno, err.text);
        return;
    }
    lifecycle_shut_down (s->conf.life, "a request");
}

static void shutdown_disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;

    msglist_disconnect (s->shutdown_streams, msg);
}

static void broker_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    struct router_stats stats = router_stats (s->conf.router);

    idt_respond_pack (h, msg, "{s:I s:I s:I s:I s:I s:I}", "requests", (json_int_t)stats.requests, "responses",
                      (json_int_t)stats.responses, "failed", (json_int_t)stats.failed, "unroutable",
                      (json_int_t)stats.unroutable, "pending", (json_int_t)stats.pending, "clients",
                      (json_int_t)usock_count (s->conf.local));
}

/* --- root ------------------------------------------------------------------------------------------- */

#define NO_ROLE "rank 0 keeps its state in a folder, so no other host can take over (root.store is not set)"

static void root_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;
    json_t *report = s->conf.broker->role ? role_pg_report_new (s->conf.broker->role) : NULL;

    if (report)
        idt_respond_pack (h, msg, "o", report);
    else
        idt_respond_error (h, msg, ENOTSUP, NO_ROLE);
}

/* Stop this broker only, and give the role back. */
static void root_release_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct services *s = arg;

    if (!s->conf.broker->role) {
        idt_respond_error (h, msg, ENOTSUP, NO_ROLE);
        return;
    }
    idt_respond (h, msg, NULL);
    lifecycle_leave (s->conf.life, BROKER_EXIT_ROLE, "gives the role of rank 0 back: a request");
}

static void horizon_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct services *s = up->owner;
    const char *time_ms, *horizon_ms;

    if (idt_rpc_get_unpack (f, "{s:s s:s}", "timestamp_ms", &time_ms, "horizon_ms", &horizon_ms) == 0)
        role_pg_tell_horizon (s->conf.broker->role, strtoull (time_ms, NULL, 10) >= strtoull (horizon_ms, NULL, 10));
    upcall_destroy (up);
}

/* The store does not answer: find out whether this root has time left to grant. */
static void ask_horizon (void *arg)
{
    struct services *s = arg;

    upcall_create (&s->ups, idt_rpc (s->conf.h, "fluid.info", "{}", 0, 0), -1, horizon_cb, s);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "attr.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "config.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "service.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "state-machine.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "shutdown.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "metrics.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "module.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.define", attr_define_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.get", attr_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.list", attr_list_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "attr.set", attr_set_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "config.get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "config.reload", config_reload_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "root.get", root_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "root.release", root_release_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "root.stats-get", empty_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "service.add", service_add_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "service.remove", service_remove_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "state-machine.get", state_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "shutdown.start", shutdown_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "shutdown.disconnect", shutdown_disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "broker.stats-get", broker_stats_cb, 0 },
    IDT_HANDLERS_END,
};

struct services *services_create (const struct services_conf *conf, idt_error_t *errp)
{
    struct services *s = calloc (1, sizeof (*s));

    if (!s) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    s->conf = *conf;
    if (define_facts (conf, errp) == 0) {
        if ((s->shutdown_streams = msglist_create ()) && idt_handlers_add (conf->h, handlers, s) == 0) {
            if (conf->broker->role)
                role_pg_ask_horizon (conf->broker->role, ask_horizon, s);
            return s;
        }
        errprintf (errp, "cannot register the broker's services: %s", strerror (errno));
    }
    services_destroy (s);
    return NULL;
}

void services_stop (struct services *s)
{
    if (!s)
        return;
    if (s->conf.broker->role)
        role_pg_ask_horizon (s->conf.broker->role, NULL, NULL);
    upcalls_stop (&s->ups, s->conf.h, "this broker is stopping");
    msglist_end (s->shutdown_streams, s->conf.h, ENODATA);
}

void services_destroy (struct services *s)
{
    if (!s)
        return;
    if (s->conf.broker->role)
        role_pg_ask_horizon (s->conf.broker->role, NULL, NULL);
    msglist_destroy (s->shutdown_streams);
    free (s);
}
