/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - one broker: owns the parts and connects them
 *
 * All messages enter through message (), and the router passes them on. turn () does the work that callbacks leave
 * behind (messages of inline modules, ZeroMQ sockets to re-check, output of clients). It runs before the reactor
 * sleeps.
 */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/base/uuid_key.h"
#include "broker/private.h"
#include "libmsg/access.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define MAX_MODULE_LIST 1024
#define REFUSED_S 10.      /* from the first report of a refused broker to the second; doubled each time */
#define REFUSED_MAX_S 600. /* longest time between two such reports */

/* --- messages ----------------------------------------------------------------------------------------- */

/* Publish an event (steals the reference) if its sender may do so. Rank 0 numbers the event; other ranks send it to the
 * parent.
 */
static void publish_new (struct broker *b, idt_msg_t *msg)
{
    if (!idt_msg_topic (msg) || !access_may_publish (idt_msg_cred (msg), idt_msg_topic (msg))) {
        idt_msg_unref (msg);
        return;
    }
    if (b->rank == 0) {
        if (event_publish_new (b->event, msg) == 0)
            log_printf (b->log, LOG_WARNING, "event", "an event is dropped: %s", strerror (errno));
        return;
    }
    if (overlay_event_up (b->overlay, msg) < 0)
        log_printf (b->log, LOG_WARNING, "event", "event %.64s could not be sent to rank 0 and is dropped: %s",
                    idt_msg_topic (msg), strerror (errno));
    idt_msg_unref (msg);
}

/* Events from the parent are numbered and in sequence; events from any other peer are new and not yet published. */
static void event_new (struct broker *b, struct peer *from, idt_msg_t *msg)
{
    router_show (b->router, ROUTER_FROM, from, msg);
    if (from->kind != PEER_PARENT) {
        publish_new (b, msg);
        return;
    }
    if (idt_msg_topic (msg))
        event_receive (b->event, msg);
    idt_msg_unref (msg);
}

/* All messages enter here. */
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
        event_new (b, from, msg);
        break;
    default:
        idt_msg_unref (msg);
    }
}

static void gone (void *arg, struct peer *p)
{
    struct broker *b = arg;

    event_forget (b->event, p);
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

/* --- events ----------------------------------------------------------------------------------------- */

static void event_forward (void *arg, const idt_msg_t *msg)
{
    struct broker *b = arg;

    overlay_event_down (b->overlay);
}

static void fetched (idt_future_t *f, void *arg)
{
    struct broker *b = arg;
    const void *buf = NULL;
    size_t size = 0;

    if (idt_rpc_get_raw (f, &buf, &size) < 0)
        buf = NULL;
    event_replay (b->event, buf, size);
    idt_future_destroy (f);
}

static void event_fetch (void *arg, const char *stream, uint64_t from)
{
    struct broker *b = arg;
    idt_future_t *f = idt_rpc_pack (b->h, "event.replay", 0, 0, "{s:s s:I}", "stream", stream, "from",
                                    (json_int_t)from);

    log_printf (b->log, LOG_INFO, "event", "events from number %ju on are missing: asking rank 0", (uintmax_t)from);
    if (!f || idt_future_then (f, -1., fetched, b) < 0) {
        idt_future_destroy (f);
        event_replay (b->event, NULL, 0);
    }
}

static void event_announce (void *arg)
{
    struct broker *b = arg;

    overlay_event_position (b->overlay);
}

static void event_given (void *arg, const struct peer *p, const idt_msg_t *msg)
{
    struct broker *b = arg;

    router_show (b->router, ROUTER_TO, p, msg);
}

static const struct event_ops event_ops = {
    .forward = event_forward,
    .given = event_given,
    .fetch = event_fetch,
    .announce = event_announce,
};

/* --- modules ---------------------------------------------------------------------------------------- */

/* A starting module may define any attribute: attribute names need not begin with the name of the module. */
static bool is_for_later (const char *attribute, void *arg)
{
    struct broker *b = arg;

    return modules_starting (b->modules) || modules_may_want (b->modules, attribute);
}

static int unknown_attribute (const char *name, const char *origin, idt_error_t *errp)
{
    return errsetf (
        errp, EINVAL,
        "%s%sunknown attribute '%s': idtree lsattr lists the attributes of a running broker, idtree-broker(1) "
        "describes them",
        origin ? origin : "", origin ? ": " : "", name);
}

/* Find an attribute of the command line that no module can define any longer: its name was misspelt. Modules that are
 * starting may define attributes of any name, so the check waits until all have started.
 */
static int check_attributes (struct broker *b, idt_error_t *errp)
{
    const char *unclaimed = modules_starting (b->modules) ? NULL : attr_unclaimed (b->attrs, is_for_later, b);

    if (!unclaimed)
        return 0;
    return unknown_attribute (unclaimed, attr_origin (b->attrs, unclaimed), errp);
}

int broker_check_known (struct broker *b, const char *name, const char *origin, idt_error_t *errp)
{
    return attr_is_known (b->attrs, name) || is_for_later (name, b) ? 0 : unknown_attribute (name, origin, errp);
}

/* Report why a module does not start, with the place where the attribute in its message was set. */
static int module_fault (struct broker *b, const char *name, int errnum, const char *text, idt_error_t *errp)
{
    const char *origin = attr_blamed (b->attrs, text);

    return errsetf (errp, errnum, "%s%smodule %s: %s", origin, *origin ? ": " : "", name, text);
}

/* A module in a thread has started, or failed to start. A failure that prevents the start of the broker is stored here.
 * broker_check_start () handles it later, because modules may be stopped there.
 */
static void started (void *arg, const char *name, int errnum, const char *text)
{
    struct broker *b = arg;

    if (errnum == 0)
        b->start_errnum = check_attributes (b, &b->start_error) < 0 ? errno : b->start_errnum;
    else if (b->state == STATE_JOIN) {
        b->start_errnum = errnum;
        module_fault (b, name, errnum, text, &b->start_error);
    }
    else
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

    b->joined = up;
    if (up)
        b->refusal_pause = 0.;
    else
        broker_input (b, STATE_LEFT);
}

/* A refused broker tries again without end, several times a second, at one ancestor or several. The time between two
 * log lines about this doubles, up to REFUSED_MAX_S.
 */
static void log_refused (struct broker *b)
{
    double now = clock_s (CLOCK_MONOTONIC), longer = b->refusal_pause * 2;

    if (b->refusal_pause > 0. && now < b->refusal_due)
        return;
    b->refusal_pause = longer < REFUSED_S ? REFUSED_S : longer < REFUSED_MAX_S ? longer : REFUSED_MAX_S;
    b->refusal_due = now + b->refusal_pause;
    if (b->state == STATE_JOIN)
        log_printf (b->log, LOG_NOTICE, "overlay", "the parent does not accept this broker yet: %s", b->refusal);
    else
        log_printf (b->log, LOG_WARNING, "overlay", "the parent does not accept this broker: %s", b->refusal);
}

/* EADDRINUSE (another broker serves this rank) and ESHUTDOWN end soon, so the broker keeps trying. Any other reason is
 * permanent: a broker that is joining gives up.
 */
static void refused (void *arg, int errnum, const char *text)
{
    struct broker *b = arg;

    snprintf (b->refusal, sizeof (b->refusal), "%s", text);
    if (b->state == STATE_JOIN && errnum != EADDRINUSE && errnum != ESHUTDOWN)
        broker_join_failed (b, errnum == STATE_REFUSED ? errnum : ETIMEDOUT);
    else
        log_refused (b);
}

static void intruder (void *arg, const char *text)
{
    struct broker *b = arg;

    if (b->state > STATE_RUN)
        return;
    log_printf (b->log, LOG_CRIT, "overlay", "a tree of another instance is connecting to this rank 0: %s", text);
    b->wrong_instance = boot_knows_all (b->boot);
    broker_give_up (b, STATE_REFUSED, text);
}

static void child (void *arg, uint32_t rank, bool up)
{
    broker_check_alone (arg);
}

static bool heard (void *arg)
{
    const struct broker *b = arg;

    return !modules_pending (b->modules);
}

static void stop (void *arg)
{
    broker_begin_stop (arg, "the parent");
}

/* The leases of this broker, and all it knows of its instance, are invalid: it drops them. It is then made again and
 * waits for the right rank 0, like a host that was started before rank 0.
 */
static void wrong_instance (void *arg, const char *text)
{
    struct broker *b = arg;

    if (b->state > STATE_RUN)
        return;
    log_printf (b->log, LOG_WARNING, "overlay", "starts again and waits for rank 0: %s", text);
    b->wrong_instance = true;
    if (b->conf.ops->restart)
        b->conf.ops->restart (b->conf.arg);
    broker_begin_stop (b, "a parent of the wrong instance");
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

/* Send a line that rank 0 must log to it, as request log.append. */
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
    broker_check_start (b);
    broker_check_complete (b);
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

static void wake (void *arg)
{
    member_wake (arg);
}

/* --- life -------------------------------------------------------------------------------------------- */

/* Make the UUID, and find the topology, the statedir and the rundir. */
static int identify (struct broker *b, idt_error_t *errp)
{
    struct authz admit;

    if (uuid_make (b->uuid) < 0)
        return errprintf (errp, "cannot read random bytes: %s", strerror (errno));
    if (attr_define (b->attrs, "tbon.topo", TOPO_DEFAULT, 0, errp) < 0
        || attr_define (b->attrs, "statedir", NULL, 0, errp) < 0
        || attr_define (b->attrs, "statedir.allow-network", "false", 0, errp) < 0
        || authz_init (&admit, b->attrs, errp) < 0
        || rundir_init (&b->rundir, attr_get (b->attrs, "rundir", NULL), b->conf.tmpdir, authz_folder_mode (&admit),
                        errp)
               < 0
        || attr_update (b->attrs, "rundir", b->rundir.path, errp) < 0)
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
        || !(b->router = router_create (b->rank, b->topo, max_pending)) || !(b->shutdown_streams = msglist_create ()))
        return errprintf (errp, "cannot start: %s", strerror (errno));
    zpoll_set_wake (b->zpoll, wake, b->member);
    log_set_forward (b->log, b->rank > 0 ? forward_line : NULL, b);
    log_set_readers (b->log, boot_knows_all (b->boot));
    return 0;
}

/* This comes before all other files in rundir: if another broker serves this socket, the folder belongs to that broker.
 */
static int listen_for_clients (struct broker *b, idt_error_t *errp)
{
    char path[PATH_MAX + 32];

    snprintf (path, sizeof (path), "%s/local-%u", b->rundir.path, b->rank);
    b->local = usock_create (process_usocks (b->conf.process), member_reactor (b->member), path, b->rank, b->attrs,
                             b->router, b->log, &usock_ops, b, errp);
    return b->local ? 0 : -1;
}

/* Rank 0 finds the instance in its statedir; other ranks read what they recorded of it. */
static int find_instance (struct broker *b, idt_error_t *errp)
{
    const char *dir = attr_get (b->attrs, "statedir", NULL);

    if (b->rank == 0 && boot_knows_all (b->boot) && (!dir || !*dir))
        return errsetf (errp, EINVAL,
                        "statedir is not set: rank 0 of a configured instance keeps its state there; create it once "
                        "with idtree init");
    if (b->rank == 0)
        return instance_find (&b->instance, b->attrs, b->rundir.path, b->log, errp);
    instance_recall (&b->instance, b->attrs, b->rank, b->log);
    return 0;
}

static int make_event (struct broker *b, idt_error_t *errp)
{
    uint32_t replay;

    if (attr_u32 (b->attrs, "event.replay", "131072", 1, 10000000, &replay, errp) < 0)
        return -1;
    if (b->rank > 0)
        replay = topo_child_count (b->topo, b->rank) > 0 ? EVENT_RING_COUNT : 0;
    if (!(b->event = event_create (b->rank == 0, b->uuid, replay, &event_ops, b)))
        return errprintf (errp, "out of memory");
    return 0;
}

static int bind_overlay (struct broker *b, idt_error_t *errp)
{
    char endpoint[256];

    if (broker_choose_endpoint (b, endpoint, sizeof (endpoint), errp) < 0)
        return -1;
    if (topo_child_count (b->topo, b->rank) > 0
        && overlay_bind (b->overlay, endpoint, boot_is_known (b->boot, b->rank), errp) < 0)
        return -1;
    return boot_tell (b->boot, b->rank, broker_announced_endpoint (b), b->public_key, errp);
}

static int make_overlay (struct broker *b, idt_error_t *errp)
{
    struct overlay_conf conf = {
        .zpoll = b->zpoll,
        .reactor = member_reactor (b->member),
        .zctx = process_zctx (b->conf.process),
        .inside = process_inside (b->conf.process),
        .attrs = b->attrs,
        .instance = &b->instance,
        .router = b->router,
        .event = b->event,
        .log = b->log,
        .topo = b->topo,
        .rank = b->rank,
        .uuid = b->uuid,
        .host = b->boot->host,
        .public_key = b->public_key,
        .secret_key = b->secret_key,
        .configured = boot_knows_all (b->boot),
        .quorum = b->rank == 0 ? &b->quorum : NULL,
        .ops = &overlay_ops,
        .arg = b,
    };

    if (boot_keys (b->boot, b->rank, b->public_key, b->secret_key, errp) < 0
        || !(b->overlay = overlay_create (&conf, errp)))
        return -1;
    return bind_overlay (b, errp);
}

/* Allow the keys of all descendants: each may connect here, even if its parent has never been up. */
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

static int make_services (struct broker *b, idt_error_t *errp)
{
    struct modules_conf conf = {
        .reactor = member_reactor (b->member),
        .attrs = b->attrs,
        .router = b->router,
        .event = b->event,
        .overlay = b->overlay,
        .log = b->log,
        .shared = process_shared (b->conf.process),
        .rank = b->rank,
        .ops = &modules_ops,
        .arg = b,
    };

    if (!(b->modules = modules_create (&conf, errp)))
        return -1;
    snprintf (b->peer.uuid, sizeof (b->peer.uuid), "%s", b->uuid);
    if (!(b->h = modules_host_builtin (b->modules, &b->peer)) || router_peer_add (b->router, &b->peer) < 0
        || broker_serve (b) < 0)
        return errprintf (errp, "cannot register the broker's services: %s", strerror (errno));
    return 0;
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
    b->size = b->boot->size;
    b->topo = b->boot->topo;
    b->attrs = conf->attrs;
    b->state_since = clock_s (CLOCK_MONOTONIC);
    if (identify (b, errp) == 0 && make_base (b, errp) == 0 && listen_for_clients (b, errp) == 0
        && find_instance (b, errp) == 0 && make_event (b, errp) == 0 && make_overlay (b, errp) == 0)
        return b;
    b->attrs = NULL; /* still owned by the caller */
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
    command_destroy (b->command);
    if (b->modules)
        modules_stop (b->modules); /* modules read attributes until they end */
    usock_destroy (b->local);
    overlay_destroy (b->overlay);
    metrics_service_destroy (b->metrics_service);
    trace_destroy (b->trace);
    modules_destroy (b->modules);
    event_destroy (b->event);
    idt_watcher_destroy (b->timer);
    idt_watcher_destroy (b->quorum_timer);
    router_destroy (b->router);
    msglist_destroy (b->shutdown_streams);
    zpoll_destroy (b->zpoll);
    member_destroy (b->member);
    log_destroy (b->log);
    if (b->wrong_instance && b->rank > 0)
        instance_forget (&b->instance, b->attrs, b->rank);
    else if (b->state == STATE_EXIT)
        instance_leave (&b->instance);
    rundir_fini (&b->rundir);
    attrs_destroy (b->attrs);
    explicit_bzero (b->secret_key, sizeof (b->secret_key));
    free (b);
    errno = saved_errno;
}

int broker_start (struct broker *b, idt_error_t *errp)
{
    if (meet_family (b, errp) < 0 || broker_define_attributes (b, errp) < 0 || make_services (b, errp) < 0
        || load_modules (b, errp) < 0 || check_attributes (b, errp) < 0)
        return -1;
    b->timer = idt_timer_watcher_create (member_reactor (b->member), broker_patience (b) * 1E3, 0., broker_timer_cb, b);
    b->quorum_timer = idt_timer_watcher_create (member_reactor (b->member), b->quorum.warn_s * 1E3,
                                                b->quorum.warn_s * 1E3, broker_quorum_timer_cb, b);
    return b->timer && b->quorum_timer ? 0 : errprintf (errp, "out of memory");
}

void broker_join (struct broker *b)
{
    if (b->state != STATE_JOIN)
        return;
    member_wake (b->member);
    idt_watcher_start (b->timer);
    if (b->rank == 0) {
        b->joined = true;
        broker_check_start (b);
    }
    else
        overlay_connect (b->overlay);
}

void broker_pause (struct broker *b, bool paused)
{
    member_pause (b->member, paused);
}

void broker_status (const struct broker *b, struct broker_status *status)
{
    *status = (struct broker_status){
        .state = b->state,
        .rank = b->rank,
        .size = b->size,
        .has_parent = b->joined,
        .full = overlay_is_full (b->overlay),
        .ready = b->state == STATE_RUN && (b->rank > 0 || !b->quorum.is_given || b->quorum.is_reached),
        .joined = overlay_joined (b->overlay),
        .quorum = b->quorum.need,
    };
}

enum broker_exit broker_exit_of (int errnum)
{
    switch (errnum) {
    case EINVAL:
    case ENAMETOOLONG:
        return BROKER_EXIT_USAGE;
    case ENOTRECOVERABLE:
        return BROKER_EXIT_STATE;
    default:
        return BROKER_EXIT_FAILED;
    }
}

int broker_exit_code (const struct broker *b)
{
    return b->exit_code;
}
