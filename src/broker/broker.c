/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - one broker: owns its parts and connects them
 *
 * All requests, responses and events enter through message (), and the router passes them on. turn () does the work
 * that callbacks leave behind: messages of inline modules, checking ZeroMQ sockets again, output for clients. turn ()
 * runs before the reactor sleeps.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/base/instance.h"
#include "broker/base/log.h"
#include "broker/base/topology.h"
#include "broker/base/uuid_key.h"
#include "broker/boot/boot.h"
#include "broker/boot/cluster.h"
#include "broker/broker.h"
#include "broker/conffile.h"
#include "broker/events.h"
#include "broker/metrics/serve.h"
#include "broker/module/module.h"
#include "broker/overlay/overlay.h"
#include "broker/place.h"
#include "broker/root/root_conf.h"
#include "broker/route/router.h"
#include "broker/route/usock.h"
#include "broker/services.h"
#include "broker/trace.h"
#include "common/libzmqutil/zwatcher.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define MAX_MODULE_LIST 1024

struct broker {
    struct broker_conf conf;
    uint32_t rank;
    char uuid[IDT_MSG_UUID_LEN + 1];

    struct attrs *attrs;
    struct boot *boot;       /* borrowed from the owner */
    const struct topo *topo; /* owned by 'boot' */
    char public_key[BOOT_KEY_TEXT];
    char secret_key[BOOT_KEY_TEXT];
    struct place place;
    struct instance instance;
    char announced[256]; /* where children connect; "": the broker has no such address */
    struct log *log;
    struct router *router;
    struct overlay *overlay;
    struct broker_events events;
    struct modules *modules;
    struct services *services;
    struct metrics_service *metrics_service; /* requests for figures of the subtree */
    struct trace *trace;                     /* clients that trace messages */
    struct usock *local;
    struct member *member;
    struct zpoll *zpoll;
    struct peer peer; /* peer of the broker's own services */
    idt_t *h;         /* handle of the broker's own services */
    struct lifecycle life;
};

/* --- messages ----------------------------------------------------------------------------------------- */

/* Requests, responses and events of all peers enter here. */
static void message (void *arg, struct peer *from, idt_msg_t *msg)
{
    struct broker *b = arg;

    switch (idt_msg_type (msg)) {
    case IDT_MSGTYPE_REQUEST:
        router_request_new (b->router, from, msg);
        break;
    case IDT_MSGTYPE_RESPONSE:
        router_response_new (b->router, from, msg);
        break;
    case IDT_MSGTYPE_EVENT:
        events_take_new (&b->events, from, msg);
        break;
    default:
        idt_msg_unref (msg);
    }
}

static void gone (void *arg, struct peer *p)
{
    struct broker *b = arg;

    event_forget (b->events.core, p);
}

static void ready (void *arg, struct peer *p, bool ready)
{
    struct broker *b = arg;

    modules_requester_ready (b->modules, p->uuid, ready);
}

static void woke (void *arg)
{
    struct broker *b = arg;

    member_wake (b->member);
}

static const struct usock_ops usock_ops = {
    .message = message,
    .gone = gone,
    .ready = ready,
    .woke = woke,
};

/* --- modules ---------------------------------------------------------------------------------------- */

static int unknown_attribute (const char *name, const char *origin, idt_error_t *errp)
{
    return errsetf (
        errp, EINVAL,
        "%s%sunknown attribute '%s': idtree lsattr lists the attributes of a running broker, idtree-broker(1) "
        "describes them",
        origin ? origin : "", origin ? ": " : "", name);
}

/* Check for an attribute of the command line that no code has read and no module can define any longer. Its name was
 * misspelt.
 */
static int check_attributes (struct broker *b, idt_error_t *errp)
{
    const char *unclaimed = attr_unclaimed (b->attrs, modules_may_define, b->modules);

    if (!unclaimed)
        return 0;
    return unknown_attribute (unclaimed, attr_origin (b->attrs, unclaimed), errp);
}

/* Report why a module does not start. If 'text' begins with an attribute from a file, the report names the line. */
static int module_fault (struct broker *b, const char *name, int errnum, const char *text, idt_error_t *errp)
{
    const char *origin = attr_blamed (b->attrs, text);

    return errsetf (errp, errnum, "%s%smodule %s: %s", origin, *origin ? ": " : "", name, text);
}

/* A module in a thread has started, or has failed to start. If the broker cannot start because of this, the next turn
 * handles it, because modules may be stopped there, but not here.
 */
static void started (void *arg, const char *name, int errnum, const char *text)
{
    struct broker *b = arg;
    idt_error_t err;

    if (errnum == 0 && check_attributes (b, &err) < 0)
        lifecycle_fail (&b->life, errno, err.text);
    else if (errnum != 0 && b->life.state == STATE_JOIN) {
        module_fault (b, name, errnum, text, &err);
        lifecycle_fail (&b->life, errnum, err.text);
    }
    else if (errnum != 0)
        log_printf (b->log, LOG_ERR, "module", "%s does not start: %s", name, text);
}

static const struct modules_ops modules_ops = {
    .message = message,
    .started = started,
    .woke = woke,
};

/* Load the modules that the attribute broker.modules lists, separated by commas. */
static int load_modules (struct broker *b, idt_error_t *errp)
{
    const char *value = attr_get (b->attrs, "broker.modules", NULL);
    char list[MAX_MODULE_LIST], *save = NULL;
    idt_error_t err = { "" };

    if (!value)
        return 0;
    snprintf (list, sizeof (list), "%s", value);
    for (char *name = strtok_r (list, ",", &save); name; name = strtok_r (NULL, ",", &save)) {
        if (!modules_has_file (b->modules, name))
            return errsetf (errp, EINVAL, "broker.modules: there is no module %s (module.path: %s)", name,
                            attr_get (b->attrs, "module.path", NULL));
        if (modules_load (b->modules, NULL, name, NULL, 0, NULL, &err) < 0)
            return module_fault (b, name, errno == EBADMSG ? STATE_REFUSED : errno,
                                 err.text[0] ? err.text : strerror (errno), errp);
    }
    return 0;
}

/* --- the overlay -------------------------------------------------------------------------------------- */

static void parent (void *arg, bool up)
{
    struct broker *b = arg;

    lifecycle_parent (&b->life, up);
}

static void refused (void *arg, int errnum, const char *text)
{
    struct broker *b = arg;

    lifecycle_refused (&b->life, errnum, text);
}

static void intruder (void *arg, const char *text)
{
    struct broker *b = arg;

    lifecycle_intruder (&b->life, text);
}

static void child (void *arg, uint32_t rank, bool up)
{
    struct broker *b = arg;

    lifecycle_child (&b->life);
}

static bool heard (void *arg)
{
    const struct broker *b = arg;

    return !modules_pending (b->modules);
}

static void stop (void *arg)
{
    struct broker *b = arg;

    lifecycle_begin_stop (&b->life, "the parent");
}

static void wrong_instance (void *arg, const char *text)
{
    struct broker *b = arg;

    lifecycle_wrong_instance (&b->life, text);
}

static void unfollowed (void *arg, const idt_msg_t *disconnect)
{
    struct broker *b = arg;

    trace_disconnect (b->trace, disconnect);
}

static const struct overlay_ops overlay_ops = {
    .unfollowed = unfollowed,
    .message = message,
    .parent = parent,
    .refused = refused,
    .intruder = intruder,
    .child = child,
    .heard = heard,
    .stop = stop,
    .wrong_instance = wrong_instance,
};

/* --- log -------------------------------------------------------------------------------------------- */

/* Send a line to rank 0, which logs it: request log.append. Returns whether the line was sent. */
static bool forward_line (const char *line, void *arg)
{
    struct broker *b = arg;
    idt_future_t *f;

    if (!b->h || !overlay_has_parent (b->overlay))
        return false;
    f = idt_rpc_raw (b->h, "log.append", line, strlen (line), 0, IDT_RPC_NORESPONSE);
    idt_future_destroy (f);
    return f != NULL;
}

/* --- as a member of the process ---------------------------------------------------------------------- */

static bool turn (void *arg)
{
    struct broker *b = arg;

    usock_turn (b->local);
    modules_turn (b->modules);
    zpoll_turn (b->zpoll);
    bool busy = overlay_turn (b->overlay);
    lifecycle_turn (&b->life);
    log_tell_left_out (b->log, clock_s (CLOCK_MONOTONIC_COARSE));
    usock_flush (b->local);
    if (b->trace && !modules_pending (b->modules))
        trace_turn (b->trace);
    return busy || zpoll_pending (b->zpoll) || modules_pending (b->modules) || usock_pending (b->local);
}

static bool admit (void *arg, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size)
{
    const struct broker *b = arg;

    return overlay_admit (b->overlay, key, user, size);
}

static void ended (void *arg)
{
    struct broker *b = arg;

    b->conf.ops->ended (b->conf.arg);
}

static const struct member_ops member_ops = { turn, admit, ended };

/* --- life -------------------------------------------------------------------------------------------- */

/* Make the UUID, and find the rundir. Defines the attributes for the topology and the statedir. */
static int identify (struct broker *b, idt_error_t *errp)
{
    struct authz authz;

    if (uuid_make (b->uuid) < 0)
        return errprintf (errp, "cannot read random bytes: %s", strerror (errno));
    if (attr_define (b->attrs, "tbon.topo", TOPO_DEFAULT, 0, errp) < 0
        || attr_define (b->attrs, "statedir", NULL, 0, errp) < 0
        || attr_define (b->attrs, "statedir.allow-network", "false", 0, errp) < 0
        || root_conf_define (b->attrs, errp) < 0 || authz_init (&authz, b->attrs, errp) < 0
        || place_init (&b->place, attr_get (b->attrs, "rundir", NULL), b->conf.tmpdir, authz_folder_mode (&authz), errp)
               < 0
        || attr_update (b->attrs, "rundir", b->place.rundir, errp) < 0)
        return -1;
    return 0;
}

static int make_base (struct broker *b, idt_error_t *errp)
{
    char name[OVERLAY_DOMAIN_SIZE];
    uint32_t max_pending;

    if (!(b->log = log_create (b->attrs, b->rank, errp))
        || attr_u32 (b->attrs, "router.max-pending", "1048576", 1, UINT32_MAX, &max_pending, errp) < 0)
        return -1;
    if (!(b->member = member_create (b->conf.process, overlay_domain (b->rank, name), &member_ops, b))
        || !(b->zpoll = zpoll_create (member_reactor (b->member)))
        || !(b->router = router_create (b->rank, b->topo, max_pending)))
        return errprintf (errp, "cannot start: %s", strerror (errno));
    b->events = (struct broker_events){ .rank = b->rank, .router = b->router, .log = b->log };
    zpoll_set_wake (b->zpoll, woke, b);
    log_set_forward (b->log, b->rank > 0 ? forward_line : NULL, b);
    log_set_readers (b->log, boot_knows_all (b->boot));
    return 0;
}

/* Called before any other file is made in rundir. If another broker serves this socket, the folder belongs to that
 * broker, and this one fails here.
 */
static int listen_for_clients (struct broker *b, idt_error_t *errp)
{
    char path[PATH_MAX + 32];

    snprintf (path, sizeof (path), "%s/local-%u", b->place.rundir, b->rank);
    b->local = usock_create (process_parts (b->conf.process)->usocks, member_reactor (b->member), path, b->rank,
                             b->attrs, b->router, b->log, &usock_ops, b, errp);
    return b->local ? 0 : -1;
}

/* Rank 0 reads the instance from its state; other ranks read what an earlier life recorded of it. */
static int find_instance (struct broker *b, idt_error_t *errp)
{
    const char *dir = attr_get (b->attrs, "statedir", NULL);

    if (b->rank == 0 && boot_knows_all (b->boot) && (!dir || !*dir) && !b->conf.role)
        return errsetf (errp, EINVAL,
                        "statedir is not set: rank 0 of a configured instance keeps its state there; create it once "
                        "with idtree init");
    if (b->rank == 0)
        return instance_find (&b->instance, b->attrs, b->place.rundir, b->log, errp);
    instance_recall (&b->instance, b->attrs, b->rank, b->log);
    return 0;
}

static int bind_overlay (struct broker *b, idt_error_t *errp)
{
    char endpoint[256];

    if (place_choose (&b->place, b->boot, b->rank, b->attrs, endpoint, sizeof (endpoint), errp) < 0)
        return -1;
    if (topo_child_count (b->topo, b->rank) > 0
        && overlay_bind (b->overlay, endpoint, boot_is_known (b->boot, b->rank), errp) < 0)
        return -1;
    if (overlay_endpoint (b->overlay))
        place_announce (b->boot, overlay_endpoint (b->overlay), b->announced, sizeof (b->announced));
    return boot_tell (b->boot, b->rank, b->announced[0] ? b->announced : NULL, b->public_key, errp);
}

static int make_overlay (struct broker *b, idt_error_t *errp)
{
    struct overlay_conf conf = {
        .zpoll = b->zpoll,
        .reactor = member_reactor (b->member),
        .zctx = process_parts (b->conf.process)->zctx,
        .inside = process_parts (b->conf.process)->inside,
        .attrs = b->attrs,
        .instance = &b->instance,
        .router = b->router,
        .event = b->events.core,
        .log = b->log,
        .topo = b->topo,
        .rank = b->rank,
        .uuid = b->uuid,
        .host = b->boot->host,
        .public_key = b->public_key,
        .secret_key = b->secret_key,
        .configured = boot_knows_all (b->boot),
        .quorum = b->rank == 0 ? &b->life.quorum : NULL,
        .ops = &overlay_ops,
        .arg = b,
    };

    if (boot_keys (b->boot, b->rank, b->public_key, b->secret_key, errp) < 0
        || !(b->overlay = overlay_create (&conf, errp)))
        return -1;
    return bind_overlay (b, errp);
}

/* Allow the keys of all descendants, because each of them may connect here, even if its parent has never been up. */
static int meet_descendants (struct broker *b, uint32_t rank, idt_error_t *errp)
{
    struct bizcard card;

    for (uint32_t i = 0; i < topo_child_count (b->topo, rank); i++) {
        uint32_t child = topo_child (b->topo, rank, i);

        if (boot_card (b->boot, child, &card, errp) < 0)
            return -1;
        overlay_set_key (b->overlay, child, card.key);
        if (meet_descendants (b, child, errp) < 0)
            return -1;
    }
    return 0;
}

static int meet_family (struct broker *b, idt_error_t *errp)
{
    const struct bizcard *ancestors = boot_ancestors (b->boot, b->rank, errp);
    struct bizcard *children = ancestors ? boot_children (b->boot, b->rank, errp) : NULL;

    if (!children)
        return -1;
    overlay_set_bizcards (b->overlay, ancestors, topo_level (b->topo, b->rank), children);
    free (children);
    return boot_knows_all (b->boot) ? meet_descendants (b, b->rank, errp) : 0;
}

/* --- attributes -------------------------------------------------------------------------------------- */

static int define_endpoints (struct broker *b, idt_error_t *errp)
{
    const struct bizcard *ancestors = boot_ancestors (b->boot, b->rank, errp);
    int flags = boot_knows_all (b->boot) ? 0 : ATTR_IMMUTABLE; /* in a configured instance the parent may move */

    if (b->rank > 0 && attr_define (b->attrs, "tbon.parent-endpoint", ancestors->endpoint, flags, errp) < 0)
        return -1;
    return b->announced[0] ? attr_update (b->attrs, "tbon.endpoint", b->announced, errp) : 0;
}

static int define_attributes (struct broker *b, idt_error_t *errp)
{
    if (define_endpoints (b, errp) < 0 || attr_define (b->attrs, "version", PACKAGE_VERSION, 0, errp) < 0
        || attr_define (b->attrs, "broker.boot", "auto", 0, errp) < 0
        || attr_define (b->attrs, "broker.modules", BROKER_MODULES, 0, errp) < 0
        || attr_define (b->attrs, "module.path", b->conf.module_path, 0, errp) < 0
        || cluster_define (b->attrs, errp) < 0)
        return -1;
    return 0;
}

static int is_known (const char *name, const char *origin, void *arg, idt_error_t *errp)
{
    struct broker *b = arg;

    return attr_is_known (b->attrs, name) || modules_may_define (name, b->modules)
               ? 0
               : unknown_attribute (name, origin, errp);
}

int broker_check_reload (struct broker *b, struct attrs *fresh, idt_error_t *errp)
{
    return quorum_check (fresh, b->boot->size, errp) < 0 ? -1 : conffile_check (b->attrs, fresh, is_known, b, errp);
}

void broker_reload (struct broker *b, struct attrs *fresh, struct conffile_report *report)
{
    const struct bizcard *ancestors = boot_ancestors (b->boot, b->rank, NULL);

    conffile_take_over (b->attrs, fresh, b->log, report);
    if (b->rank > 0 && ancestors)
        attr_update (b->attrs, "tbon.parent-endpoint", ancestors->endpoint, NULL);
    overlay_connect (b->overlay); /* if the parent refused this broker, the pause before the next attempt may be long */
}

/* --- life -------------------------------------------------------------------------------------------- */

static int make_modules (struct broker *b, idt_error_t *errp)
{
    struct modules_conf conf = {
        .reactor = member_reactor (b->member),
        .attrs = b->attrs,
        .router = b->router,
        .event = b->events.core,
        .overlay = b->overlay,
        .log = b->log,
        .shared = process_parts (b->conf.process)->shared,
        .rank = b->rank,
        .ops = &modules_ops,
        .arg = b,
    };

    snprintf (b->peer.uuid, sizeof (b->peer.uuid), "%s", b->uuid);
    if (!(b->modules = modules_create (&conf, errp)))
        return -1;
    if ((b->h = modules_host_builtin (b->modules, &b->peer)) && router_peer_add (b->router, &b->peer) == 0)
        return 0;
    return errprintf (errp, "cannot register the broker's services: %s", strerror (errno));
}

static int make_services (struct broker *b, idt_error_t *errp)
{
    static const char *const names[] = { "broker",   "attr", "config",  "event",  "service", "state-machine",
                                         "shutdown", "log",  "metrics", "module", "overlay" };
    const struct services_conf services = {
        .broker = &b->conf,
        .h = b->h,
        .uuid = b->uuid,
        .router = b->router,
        .local = b->local,
        .life = &b->life,
    };
    const struct metrics_service_conf metrics_service = {
        .h = b->h,
        .topo = b->topo,
        .rank = b->rank,
        .for_process = boot_rank (b->boot, 0) == b->rank,
        .overlay = b->overlay,
        .modules = b->modules,
        .router = b->router,
        .event = b->events.core,
        .local = b->local,
        .role = b->conf.role,
    };
    int rc = 0;

    if (!(b->services = services_create (&services, errp)))
        return -1;
    for (size_t i = 0; rc == 0 && i < sizeof (names) / sizeof (names[0]); i++)
        rc = router_service_add (b->router, names[i], &b->peer);
    if (rc == 0 && b->rank == 0)
        rc = router_service_add (b->router, "root", &b->peer);
    if (rc == 0 && events_serve (&b->events, b->overlay, b->h) == 0 && log_serve (b->log, b->h) == 0
        && overlay_serve (b->overlay, b->h) == 0 && modules_serve (b->modules, b->h) == 0
        && (b->metrics_service = metrics_service_create (&metrics_service))
        && (b->trace = trace_create (b->h, b->router)))
        return 0;
    return errprintf (errp, "cannot register the broker's services: %s", strerror (errno));
}

static void ending (void *arg)
{
    struct broker *b = arg;

    services_stop (b->services);
    metrics_service_stop (b->metrics_service);
}

static int make_lifecycle (struct broker *b, idt_error_t *errp)
{
    const struct lifecycle_conf conf = {
        .broker = &b->conf,
        .reactor = member_reactor (b->member),
        .log = b->log,
        .overlay = b->overlay,
        .modules = b->modules,
        .local = b->local,
        .ending = ending,
        .arg = b,
    };

    return lifecycle_init (&b->life, &conf, errp);
}

struct broker *broker_create (const struct broker_conf *conf, idt_error_t *errp)
{
    struct broker *b = calloc (1, sizeof (*b));

    if (!b) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    b->conf = *conf;
    b->rank = conf->rank;
    b->boot = conf->boot;

    b->topo = b->boot->topo;
    b->attrs = conf->attrs;
    b->life.since = clock_s (CLOCK_MONOTONIC);
    if (identify (b, errp) == 0 && make_base (b, errp) == 0 && listen_for_clients (b, errp) == 0
        && find_instance (b, errp) == 0 && events_init (&b->events, b->uuid, b->attrs, b->topo, errp) == 0
        && make_overlay (b, errp) == 0)
        return b;
    b->attrs = NULL; /* the attributes still belong to the caller */
    broker_destroy (b);
    return NULL;
}

void broker_destroy (struct broker *b)
{
    int saved_errno = errno;

    if (!b)
        return;
    if (b->log)
        log_set_forward (b->log, NULL, NULL);
    lifecycle_fini (&b->life);
    if (b->modules)
        modules_stop (b->modules); /* modules read attributes until they end */
    usock_destroy (b->local);
    overlay_destroy (b->overlay);
    metrics_service_destroy (b->metrics_service);
    trace_destroy (b->trace);
    modules_destroy (b->modules);
    services_destroy (b->services);
    events_fini (&b->events);
    router_destroy (b->router);
    zpoll_destroy (b->zpoll);
    member_destroy (b->member);
    log_destroy (b->log);
    if (b->life.wrong_instance && b->rank > 0)
        instance_forget (&b->instance, b->attrs, b->rank);
    else if (b->life.state == STATE_EXIT)
        instance_leave (&b->instance);
    place_fini (&b->place);
    attrs_destroy (b->attrs);
    explicit_bzero (b->secret_key, sizeof (b->secret_key));
    free (b);
    errno = saved_errno;
}

int broker_start (struct broker *b, idt_error_t *errp)
{
    if (meet_family (b, errp) < 0 || define_attributes (b, errp) < 0 || make_modules (b, errp) < 0
        || make_services (b, errp) < 0 || make_lifecycle (b, errp) < 0 || load_modules (b, errp) < 0)
        return -1;
    return check_attributes (b, errp);
}

void broker_join (struct broker *b)
{
    member_wake (b->member);
    lifecycle_join (&b->life);
}

void broker_pause (struct broker *b, bool paused)
{
    member_pause (b->member, paused);
}

void broker_status (const struct broker *b, struct broker_status *status)
{
    *status = (struct broker_status){
        .state = b->life.state,
        .rank = b->rank,
        .size = b->boot->size,
        .has_parent = b->life.joined,
        .full = overlay_is_full (b->overlay),
        .ready = b->life.state == STATE_RUN && (b->rank > 0 || !b->life.quorum.is_given || b->life.quorum.is_reached),
        .joined = overlay_joined (b->overlay),
        .quorum = b->life.quorum.need,
    };
}

void broker_stop (struct broker *b, const char *why)
{
    member_wake (b->member);
    lifecycle_stop (&b->life, why);
}

void broker_leave (struct broker *b, enum broker_exit exit, const char *why)
{
    member_wake (b->member);
    lifecycle_leave (&b->life, exit, why);
}

bool broker_was_shut_down (const struct broker *b)
{
    return b->life.shut_down;
}

int broker_exit_code (const struct broker *b)
{
    return b->life.exit_code;
}
