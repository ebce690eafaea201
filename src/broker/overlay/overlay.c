/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.c - the broker's place in the tree: connects parent and children, sends heartbeats, reports the health */
#include "config.h"

#include <czmq.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/base/msglist.h"
#include "broker/overlay/link.h"
#include "common/libzmqutil/resolver.h"
#include "libidtree/json.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define HOP_SHOWN 8  /* characters of a UUID that are shown, like those in the route that the answer to a ping has */
#define HEARTBEAT 1. /* most seconds between heartbeats, the time within which a broker notices that it was stopped */
#define RESOLVER_WAIT_MS 1000 /* for resolving the names of ancestors at the start */
#define HEARTBEAT_INSIDE 2. /* most seconds between heartbeats to a parent in this process, which has the same clocks */

/* --- heartbeat ------------------------------------------------------------------------------------- */

static double period (const struct overlay *ov)
{
    bool inside = overlay_has_parent (ov) && wire_kind (ov->up->used->wire) != WIRE_ZMQ;

    return inside ? ov->period_inside : ov->period;
}

/* A heartbeat is sent at one of MOMENTS points of a period.  All brokers of a process that use the same point wake the
 * process once.
 */
#define MOMENTS 16

static void start_heart (struct overlay *ov)
{
    uint64_t period_us = (uint64_t)(period (ov) * 1E6), phase_us = ov->conf.rank % MOMENTS * period_us / MOMENTS;
    uint64_t after_us = period_us - (clock_us (CLOCK_MONOTONIC) - phase_us) % period_us;

    if (after_us < period_us / 2)
        after_us += period_us;
    link_start_timer (ov->heart, after_us * 1E-3);
}

/* A heartbeat is due; overlay_turn () continues, so that waiting messages are read before silence is checked. */
static void heart_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct overlay *ov = arg;

    ov->due = true;
    start_heart (ov);
}

/* A heartbeat that is much too late means that this broker was stopped or busy.  Other brokers then do not count as
 * silent.
 */
static void beat (struct overlay *ov)
{
    double now = link_now ();
    bool was_asleep = now - ov->beat > 2 * ov->beat_period;

    parent_doubt (ov->up);
    ov->beat = now;
    ov->beat_period = period (ov);
    ov->due = false;
    ov->judging = true;
    children_heartbeat (ov->down, was_asleep);
    parent_heartbeat (ov->up, was_asleep);
}

static void judge (struct overlay *ov)
{
    bool known = children_check_silence (ov->down);

    ov->judging = !parent_check_silence (ov->up) || !known;
}

static void retry_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct overlay *ov = arg;

    ov->retrying = ov->blocked = false;
    children_retry (ov->down);
    channel_retry (&ov->up->used->channel);
}

/* Try full wires again after a time, because there is no event when the other end has room again. */
static void retry_later (struct overlay *ov)
{
    ov->retrying = true;
    link_start_timer (ov->retry, LINK_RETRY_MS);
}

static json_t *describe_health (struct overlay *ov)
{
    const struct quorum *q = ov->conf.quorum;
    bool some = q && q->need < q->size; /* without a quorum, the same members as Flux's answer */

    return json_pack ("{s:I s:s s:f s:o* s:o* s:o}", "rank", (json_int_t)ov->conf.rank, "status",
                      health_name (ov->health), "duration", link_now () - ov->since, "joined",
                      some ? json_integer (overlay_joined (ov)) : NULL, "quorum", some ? json_integer (q->need) : NULL,
                      "children", children_describe (ov->down));
}

static void notify_followers (struct overlay *ov)
{
    json_t *o = describe_health (ov);
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;

    ov->said = ov->health;
    if (ov->h && s)
        msglist_respond (ov->followers, ov->h, s);
    else if (ov->h)
        msglist_end (ov->followers, ov->h, ENOMEM);
    free (s);
    json_decref (o);
}

/* If the health of the subtree has changed, the parent and the followers are notified immediately. */
bool overlay_turn (struct overlay *ov)
{
    bool busy = ov->due;

    if (ov->due)
        beat (ov);
    else if (ov->judging)
        judge (ov);
    busy = children_turn (ov->down) || busy;
    busy = parent_turn (ov->up) || busy;
    parent_send_keys (ov->up);
    if (overlay_has_parent (ov) && ov->health != ov->told) {
        parent_heartbeat (ov->up, false);
        busy = true;
    }
    if (ov->blocked && !ov->retrying)
        retry_later (ov);
    if (ov->health != ov->said) {
        notify_followers (ov);
        busy = true;
    }
    return busy;
}

bool overlay_is_full (const struct overlay *ov)
{
    return ov->health == HEALTH_FULL;
}

struct overlay_load overlay_load (const struct overlay *ov)
{
    struct overlay_load load = { 0 };

    children_add_load (ov->down, &load);
    if (overlay_has_parent (ov))
        link_add_load (&ov->up->used->channel, &load);
    return load;
}

const char *overlay_status (const struct overlay *ov)
{
    return health_name (ov->health);
}

uint32_t overlay_joined (const struct overlay *ov)
{
    return ov->joined;
}

/* --- life ------------------------------------------------------------------------------------------ */

const char *overlay_domain (uint32_t rank, char buf[OVERLAY_DOMAIN_SIZE])
{
    snprintf (buf, OVERLAY_DOMAIN_SIZE, "idtree-%u", rank);
    return buf;
}

bool overlay_admit (const struct overlay *ov, const uint8_t key[ZAP_KEY_SIZE], char *user, size_t size)
{
    uint32_t rank = keyring_find (ov->keys, key);

    if (rank == TOPO_NONE) {
        log_refusal (ov->conf.log, LOG_REFUSED_KEY, "a connection is refused: no rank below this one has its key");
        return false;
    }
    snprintf (user, size, "%u", rank);
    return true;
}

static int get_attributes (struct overlay *ov, idt_error_t *errp)
{
    struct attrs *attrs = ov->conf.attrs;
    const char *transport = attr_default (attrs, "tbon.transport", wire_kind_name (WIRE_MEMORY), errp);

    if (!transport)
        return -1;
    if (wire_kind_decode (transport, &ov->wire.kind) < 0)
        return errsetf (errp, EINVAL, "tbon.transport %s: must be memory, inproc or zmq", transport);
    if (attr_seconds (attrs, "tbon.timeout", "5s", 0.1, 86400., &ov->timeout, errp) < 0
        || attr_switch (attrs, "access.allow-root-owner", "false", &ov->root_owner, errp) < 0
        || attr_u32 (attrs, "tbon.hwm", "10000", 10, 100000000, &ov->hwm, errp) < 0
        || attr_size (attrs, "tbon.max-queue", "64M", 1 << 20, (uint64_t)1 << 40, &ov->max_queue, errp) < 0)
        return -1;
    ov->period = ov->timeout / 4 < HEARTBEAT ? ov->timeout / 4 : HEARTBEAT;
    ov->period_inside = ov->timeout * 0.4 < HEARTBEAT_INSIDE ? ov->timeout * 0.4 : HEARTBEAT_INSIDE;
    ov->beat_period = ov->period;
    return 0;
}

static void set_wire (struct overlay *ov)
{
    struct overlay_conf *conf = &ov->conf;

    ov->wire = (struct wire_conf){
        .zpoll = conf->zpoll,
        .zctx = conf->zctx,
        .inside = conf->inside,
        .kind = ov->wire.kind,
        .rank = conf->rank,
        .public_key = conf->public_key,
        .secret_key = conf->secret_key,
        .domain = overlay_domain (conf->rank, ov->domain),
        .hwm = ov->hwm,
        .max_queue = ov->max_queue,
        .max_message = CHANNEL_MAX_MESSAGE,
        .max_frame = LINK_MAX_FRAME,
        .timeout_ms = (int)(ov->timeout * 1E3),
    };
}

struct overlay *overlay_create (const struct overlay_conf *conf, idt_error_t *errp)
{
    struct overlay *ov = calloc (1, sizeof (*ov));

    if (!ov)
        return NULL;
    ov->conf = *conf;
    ov->since = link_now ();
    ov->beat = link_now ();
    ov->owner = geteuid ();
    ov->joined = 1;
    if (get_attributes (ov, errp) < 0)
        goto error;
    set_wire (ov);
    if (!(ov->keys = keyring_create ()) || !(ov->followers = msglist_create ()) || !(ov->down = children_create (ov))
        || !(ov->up = parent_create (ov))
        || !(ov->retry = idt_timer_watcher_create (conf->reactor, 0., 0., retry_cb, ov))
        || !(ov->heart = idt_timer_watcher_create (conf->reactor, 0., 0., heart_cb, ov))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    ov->said = ov->health;
    start_heart (ov);
    return ov;
error:
    overlay_destroy (ov);
    return NULL;
}

static void drop_addresses (struct resolver **addresses, uint32_t count)
{
    for (uint32_t i = 0; addresses && i < count; i++)
        resolver_destroy (addresses[i]);
    free (addresses);
}

void overlay_destroy (struct overlay *ov)
{
    int saved_errno = errno;

    if (!ov)
        return;
    idt_watcher_destroy (ov->heart);
    idt_watcher_destroy (ov->retry);
    parent_destroy (ov->up);
    children_destroy (ov->down);
    keyring_destroy (ov->keys);
    drop_addresses (ov->addresses, ov->nancestors);
    msglist_destroy (ov->followers);
    free (ov);
    errno = saved_errno;
}

/* Begin to resolve all names at the same time, and wait up to RESOLVER_WAIT_MS, so that the addresses are known at the
 * first attempt.  If there is no memory for the resolvers, ZeroMQ resolves the names.
 */
static void find_ancestors (struct overlay *ov)
{
    struct resolver **addresses = calloc (ov->nancestors + 1, sizeof (addresses[0]));

    for (uint32_t i = 0; addresses && i < ov->nancestors; i++) {
        if (!(addresses[i] = resolver_create ())) {
            drop_addresses (addresses, i);
            return;
        }
        resolver_resolve (addresses[i], ov->ancestors[i].endpoint, NULL);
    }
    if (addresses)
        resolver_wait (addresses, ov->nancestors, RESOLVER_WAIT_MS);
    ov->addresses = addresses;
}

const char *overlay_no_address (const struct overlay *ov, idt_error_t *errp)
{
    if (ov->nancestors == 0 || !ov->addresses || resolver_resolve (ov->addresses[0], ov->ancestors[0].endpoint, errp))
        return NULL;
    return errp->text;
}

static bool put_key (struct overlay *ov, uint32_t rank, const uint8_t key[ZAP_KEY_SIZE])
{
    struct control_key k = { .rank = rank };

    memcpy (k.key, key, sizeof (k.key));
    return keyring_put (ov->keys, &k);
}

bool overlay_set_key (struct overlay *ov, uint32_t rank, const uint8_t key[ZAP_KEY_SIZE])
{
    bool news = put_key (ov, rank, key);

    keyring_known (ov->keys);
    return news;
}

void overlay_set_bizcards (struct overlay *ov, const struct bizcard *ancestors, uint32_t count,
                           const struct bizcard *children)
{
    ov->ancestors = ancestors;
    ov->nancestors = count;
    if (ov->conf.configured)
        find_ancestors (ov);
    for (uint32_t i = 0; i < topo_child_count (ov->conf.topo, ov->conf.rank); i++)
        put_key (ov, children[i].rank, children[i].key);
}

int overlay_attach (struct overlay *ov, const struct idt_overlay_ops *ops, void *arg)
{
    if (ops && ov->clock)
        return errset (EEXIST);
    ov->clock = ops;
    ov->clock_arg = arg;
    if (ops && overlay_has_parent (ov))
        ops->parent (arg, true);
    return 0;
}

/* --- service --------------------------------------------------------------------------------------- */

/* Answer overlay.health.  A streaming request gets one response now, and one for each change of the subtree's health.
 */
static void health_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct overlay *ov = arg;
    idt_error_t err;

    if (idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING) && msglist_add (ov->followers, msg, &err) < 0)
        idt_respond_error (h, msg, errno, err.text);
    else
        idt_respond_pack (h, msg, "o", describe_health (ov));
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct overlay *ov = arg;

    msglist_disconnect (ov->followers, msg);
    if (ov->conf.ops->unfollowed)
        ov->conf.ops->unfollowed (ov->conf.arg, msg);
}

/* Describe the subtree of 'rank'.  Adds the size of the subtree to '*size'. */
static json_t *describe_subtree (const struct topo *topo, uint32_t rank, json_int_t *size)
{
    uint32_t count = topo_child_count (topo, rank);
    json_t *children = json_array ();
    json_int_t own = 1;

    for (uint32_t i = 0; i < count; i++)
        json_add_new (&children, describe_subtree (topo, topo_child (topo, rank, i), &own));
    *size += own;
    return json_pack ("{s:I s:I s:o}", "rank", (json_int_t)rank, "size", own, "children", children);
}

static void topology_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct overlay *ov = arg;
    const struct topo *topo = ov->conf.topo;
    json_int_t rank, size = 0;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:I}", "rank", &rank) < 0) {
        idt_respond_error (h, msg, EPROTO, err.text);
        return;
    }
    json_decref (o);
    if (rank < 0 || rank >= topo->size) {
        errprintf (&err, "rank %jd: must be 0 to %u", (intmax_t)rank, topo->size - 1);
        idt_respond_error (h, msg, EINVAL, err.text);
        return;
    }
    idt_respond_pack (h, msg, "o", describe_subtree (topo, rank, &size));
}

/* Describe the parent: its rank, and the first characters of our UUID in the routes of requests, as a ping shows them.
 */
static json_t *describe_parent (const struct overlay *ov)
{
    const struct conn *c = ov->up->used;

    if (!overlay_has_parent (ov))
        return json_pack ("{s:b s:n s:n s:i}", "parent-connected", 0, "parent-rank", "parent-hop", "keys-pending", 0);
    return json_pack ("{s:b s:I s:s% s:I}", "parent-connected", 1, "parent-rank",
                      (json_int_t)ov->ancestors[c->target].rank, "parent-hop", c->identity, (size_t)HOP_SHOWN,
                      "keys-pending", (json_int_t)keyring_pending (ov->keys));
}

static void stats_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct overlay *ov = arg;
    json_t *links = json_array (), *o = describe_parent (ov);
    const struct conn *c = ov->up->used;

    children_describe_links (ov->down, links);
    if (overlay_has_parent (ov))
        json_array_append_new (links, link_describe (ov->ancestors[c->target].rank, c->wire, &c->channel));
    json_object_update_new (o, json_pack ("{s:i s:i s:I s:I s:I s:o}", "child-count",
                                          (int)topo_child_count (ov->conf.topo, ov->conf.rank), "child-connected",
                                          (int)overlay_children_online (ov), "adopted",
                                          (json_int_t)children_adopted (ov->down), "keys",
                                          (json_int_t)keyring_count (ov->keys), "keys-sent",
                                          (json_int_t)keyring_sent (ov->keys), "links", links));
    idt_respond_pack (h, msg, "o", o);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_STREAM, "overlay.health", health_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "overlay.topology", topology_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "overlay.stats-get", stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "overlay.disconnect", disconnect_cb, 0 },
    IDT_HANDLERS_END,
};

int overlay_serve (struct overlay *ov, idt_t *h)
{
    ov->h = h;
    return idt_handlers_add (h, handlers, ov);
}
