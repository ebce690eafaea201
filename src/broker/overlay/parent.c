/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* parent.c - the wire to the parent, or to the ancestor that substitutes for it
 *
 * A connection has one identity from connect to loss, which is never used again: nothing is delivered to a broker that
 * has not accepted us.
 *
 *     IDLE --open--> HELLO --accepted--> JOINED --goodbye--> LEAVING
 *       ^------loss, refusal, silence------|
 *
 * There are two connections: the one in use, and a probe.  When the one in use is lost, the ancestors are tried in
 * turn, the parent first.  While it leads to an ancestor other than the parent, the probe tries the nearer ancestors,
 * and replaces the connection in use when one of them accepts.  A broker that has never joined gives its parent time,
 * because the parent may still be starting.  If an ancestor reports that another broker serves our rank, ancestors
 * above it are not tried while it is there: they do not know that broker, and would accept us beside it.
 *
 * An unreachable ancestor is tried several times per second, because it may start soon.  If an ancestor refuses us
 * (another broker has our rank, another certificate, another instance) only the administrator can help: the pause grows
 * to about 10 s.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/errprintf.h"
#include "broker/base/uuid_key.h"
#include "broker/overlay/parent_private.h"
#include "common/libzmqutil/resolver.h"

#define PATIENCE 4       /* unanswered attempts at the parent before a broker that never joined tries others */
#define FAILOVER_MS 400. /* for a hello, if there is another ancestor to try */

int conn_send (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;

    if (c->state != CONN_JOINED && c->state != CONN_LEAVING)
        return errset (EHOSTUNREACH);
    return channel_send (&c->channel, msg);
}

void conn_hang_up (void *arg)
{
    struct conn *c = arg;

    channel_break (&c->channel, "out of memory");
}

int overlay_event_up (struct overlay *ov, const idt_msg_t *msg)
{
    return conn_send (ov->up->used, msg);
}

void parent_retry (struct parent *up)
{
    channel_retry (&up->used->channel);
}

void parent_describe (const struct parent *up, json_t *links)
{
    if (overlay_has_parent (up->ov))
        json_array_append_new (links, link_describe (parent_rank (up), up->used->wire, &up->used->channel));
}

void parent_add_load (const struct parent *up, struct overlay_load *load)
{
    if (overlay_has_parent (up->ov))
        link_add_load (&up->used->channel, load);
}

bool overlay_has_parent (const struct overlay *ov)
{
    return ov->up->used->state == CONN_JOINED;
}

bool overlay_is_leaving (const struct overlay *ov)
{
    return ov->up->used->state == CONN_LEAVING;
}

uint32_t parent_rank (const struct parent *up)
{
    return overlay_has_parent (up->ov) ? conn_target (up->used)->rank : TOPO_NONE;
}

const char *parent_identity (const struct parent *up)
{
    return overlay_has_parent (up->ov) ? up->used->identity : NULL;
}

bool parent_is_inside (const struct parent *up)
{
    return overlay_has_parent (up->ov) && wire_kind (up->used->wire) != WIRE_ZMQ;
}

double parent_jitter (struct parent *up)
{
    return 0.5 + (double)rand_r (&up->seed) / RAND_MAX;
}

void parent_start_timer (idt_watcher_t *w, double ms)
{
    idt_timer_watcher_reset (w, ms, 0.);
    idt_watcher_start (w);
}

/* --- messages --------------------------------------------------------------------------------- */

static void heartbeat_received (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    struct heartbeat hb;

    if (control_decode_down (msg, &hb) < 0)
        return;
    conn_take_time (c, &(struct idt_clock_sample){ hb.sent_us, hb.peer_received_us, hb.peer_sent_us, link_boot_us (),
                                                   hb.peer_bound_us });
    event_newest_low (conf->event, hb.stream, hb.seq);
    if (c->keys_us > 0 && hb.sent_us > c->keys_us) { /* our messages arrive in order, the keys before this heartbeat */
        keyring_arrived (c->up->ov->keys);
        c->keys_us = 0;
    }
    if (c->doubt_us > 0 && hb.sent_us >= c->doubt_us) {
        c->doubt_us = 0;
        channel_release (&c->channel);
    }
}

static void disconnected (struct conn *c, const idt_msg_t *msg)
{
    const struct overlay_conf *conf = &c->up->ov->conf;
    bool wrong_instance = c->state == CONN_JOINED && idt_msg_control_status (msg) == STATE_REFUSED;
    const char *why = idt_msg_string (msg);

    c->refused |= c->state == CONN_HELLO;
    conn_lose (c, c->state == CONN_LEAVING ? NULL : why);
    if (wrong_instance && conf->ops->wrong_instance)
        conf->ops->wrong_instance (conf->arg, why ? why : "");
}

static void control_received (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;
    struct overlay_conf *conf = &c->up->ov->conf;

    link_show (c->up->ov, ROUTER_FROM, &c->peer, msg);
    switch (idt_msg_control_type (msg)) {
    case CONTROL_HEARTBEAT:
        if (c->state == CONN_JOINED)
            heartbeat_received (c, msg);
        break;
    case CONTROL_STOP:
        if (c->state == CONN_JOINED)
            conf->ops->stop (conf->arg);
        break;
    case CONTROL_DISCONNECT:
        disconnected (c, msg);
        break;
    default: /* of a newer version */
        break;
    }
}

static int conn_wire (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;

    int rc = link_send (c->up->ov, c->wire, NULL, &c->channel, msg);

    if (rc == 0)
        link_show (c->up->ov, ROUTER_TO, &c->peer, msg);
    return rc;
}

static void conn_message (void *arg, idt_msg_t *msg)
{
    struct conn *c = arg;

    link_received (c->up->ov, &c->peer, &c->channel, msg);
}

static const struct channel_ops channel_ops = {
    .send = conn_wire,
    .message = conn_message,
    .control = control_received,
};

static void received (void *arg, idt_msg_t *msg, const struct wire_from *from)
{
    struct conn *c = arg;

    if (!msg) {
        conn_lose (c, errno == ENOMEM ? "out of memory" : "it sent a malformed message");
        return;
    }
    parent_doubt (c->up);
    c->heard = link_now ();
    if (c->state == CONN_JOINED || c->state == CONN_LEAVING) {
        channel_received (&c->channel, msg);
        return;
    }
    if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        conn_hello_answered (c, msg);
    else if (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL)
        control_received (c, msg);
    idt_msg_unref (msg);
}

/* --- opening and losing ---------------------------------------------------------------------------- */

static void closed (void *arg, struct wire *w, int line)
{
    struct conn *c = arg;

    c->refused |= c->state == CONN_HELLO && wire_was_reached (w);
    conn_lose (c, c->state == CONN_JOINED ? "the connection was closed" : NULL);
}

static const struct wire_ops wire_ops = { .received = received, .closed = closed };

/* NULL: the endpoint has a numeric address, or is on this host. */
static struct resolver *resolver_of_target (const struct conn *c)
{
    return c->up->ov->addresses ? c->up->ov->addresses[c->target] : NULL;
}

/* NULL: the address of its host is not known yet. */
static const char *endpoint_of (const struct conn *c)
{
    struct resolver *address = resolver_of_target (c);
    const char *endpoint = conn_target (c)->endpoint;

    return address ? resolver_resolve (address, endpoint, NULL) : endpoint;
}

/* The target did not answer at its address.  Returns whether its host has another address to try. */
static bool look_elsewhere (const struct conn *c)
{
    struct resolver *address = resolver_of_target (c);

    return address && resolver_next (address);
}

static int open_connection (struct conn *c)
{
    const struct bizcard *card = conn_target (c);
    struct wire_target to = { .rank = card->rank, .endpoint = endpoint_of (c), .key = card->key };

    if (!to.endpoint || uuid_make (c->identity) < 0
        || !(c->wire = wire_connect (&c->up->ov->wire, &to, c->identity, &wire_ops, c)))
        return -1;
    return 0;
}

void conn_close (struct conn *c, int linger_ms)
{
    channel_close (&c->channel);
    c->doubt_us = 0;
    wire_close (c->wire, linger_ms);
    c->wire = NULL;
}

static void say_hello (struct conn *c, uint32_t target)
{
    idt_msg_t *hello;

    c->target = target;
    c->state = CONN_HELLO;
    c->late = false;
    c->heard = link_now ();
    if (c == c->up->used && target == c->up->served_at)
        c->up->served_at = TOPO_NONE; /* ask it again */
    if (open_connection (c) < 0) {
        conn_lose (c, NULL);
        return;
    }
    hello = conn_make_hello (c);
    c->hello_us = link_boot_us ();
    if (!hello || wire_send (c->wire, NULL, hello, WIRE_PARTS) < 0)
        conn_lose (c, NULL);
    idt_msg_unref (hello);
}

/* Whether to continue with the next ancestor.  A broker that never joined first gives its parent some time. */
static bool may_climb (const struct parent *up)
{
    return up->ov->nancestors > 1 && (up->ov->conf.configured || up->has_joined || up->attempts > PATIENCE);
}

/* The timeout of a hello.  An ancestor that reported another broker of our rank is given up only after tbon.timeout, as
 * a lost peer is.  All addresses of a host share this time.
 */
static double hello_ms (const struct parent *up)
{
    bool hurries = may_climb (up) && up->used->target != up->served_at;
    const struct resolver *address = resolver_of_target (up->used);
    size_t count = address ? resolver_count (address) : 1;
    double ms = up->ov->timeout * 1E3 / (count > 1 ? (double)count : 1);

    return hurries && ms > FAILOVER_MS ? FAILOVER_MS : ms;
}

/* The pause after one of 'ms': twice as long, at most 'max_ms', or REFUSED_MAX_MS after a refusal. */
static double longer (struct conn *c, double ms, double max_ms)
{
    double limit = c->refused ? REFUSED_MAX_MS : max_ms;

    c->refused = false;
    return ms * 2 < limit ? ms * 2 : limit;
}

/* The pause grows once per round through all ancestors. */
static void retry_later (struct parent *up, enum conn_state was, bool elsewhere)
{
    struct conn *c = up->used;

    if (elsewhere) {
        parent_start_timer (up->retry, RETRY_MIN_MS * parent_jitter (up));
        return;
    }
    up->attempts++;
    if (was == CONN_HELLO && may_climb (up) && c->target != up->served_at && c->target + 1 < up->ov->nancestors) {
        c->target++;
        parent_start_timer (up->retry, RETRY_MIN_MS * parent_jitter (up));
        return;
    }
    c->target = 0;
    parent_start_timer (up->retry, up->retry_ms * parent_jitter (up));
    up->retry_ms = longer (c, up->retry_ms, RETRY_MAX_MS);
}

void conn_lose (struct conn *c, const char *why)
{
    struct parent *up = c->up;
    enum conn_state was = c->state;
    bool elsewhere;

    if (was == CONN_IDLE)
        return;
    conn_close (c, 0);
    c->state = CONN_IDLE;
    elsewhere = was == CONN_HELLO && look_elsewhere (c);
    if (c == up->probe)
        return;
    if (why)
        log_printf (up->ov->conf.log, LOG_WARNING, "overlay", "%s (rank %u) is lost: %s",
                    c->target == 0 ? "parent" : "ancestor", conn_target (c)->rank, why);
    if (was == CONN_JOINED || was == CONN_LEAVING) {
        router_peer_remove (up->ov->conf.router, &c->peer);
        idt_watcher_stop (up->probe_timer);
        conn_lose (up->probe, NULL);
        parent_tell (up, false);
    }
    if (!up->stopping)
        retry_later (up, was, elsewhere);
}

void overlay_connect (struct overlay *ov)
{
    struct parent *up = ov->up;

    if (ov->conf.rank == 0 || up->used->state != CONN_IDLE || up->stopping)
        return;
    parent_start_timer (up->retry, hello_ms (up));
    say_hello (up->used, up->used->target);
}

/* The response may have arrived and not been read yet: parent_turn () continues. */
static void hello_late (struct conn *c)
{
    c->late = true;
    wire_look (c->wire);
}

static void retry_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct parent *up = arg;

    if (up->used->state == CONN_HELLO)
        hello_late (up->used);
    else
        overlay_connect (up->ov);
}

/* Try the ancestors nearer than the one in use, in turn.  The current one has not answered and is given up. */
static void probe_next (struct parent *up)
{
    uint32_t next = up->probe->target + 1 < up->used->target ? up->probe->target + 1 : 0;

    conn_lose (up->probe, NULL);
    up->probe_ms = longer (up->probe, up->probe_ms, PROBE_MS);
    parent_start_timer (up->probe_timer, up->probe_ms * parent_jitter (up));
    say_hello (up->probe, next);
}

static void probe_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct parent *up = arg;

    if (up->probe->state != CONN_HELLO) {
        probe_next (up);
        return;
    }
    hello_late (up->probe);
    parent_start_timer (up->probe_timer, up->probe_ms * parent_jitter (up)); /* it may be refused or lost */
}

/* Give up a hello without response, once everything that arrived was read. */
static void judge_hello (struct conn *c)
{
    bool waits = c->late && c->state == CONN_HELLO;

    if (waits && !wire_is_dry (c->wire))
        return;
    c->late = false;
    if (waits && c == c->up->probe)
        probe_next (c->up);
    else if (waits)
        conn_lose (c, NULL);
}

bool parent_turn (struct parent *up)
{
    const char *why = up->used->channel.broken;

    if (why)
        conn_lose (up->used, why);
    judge_hello (up->used);
    judge_hello (up->probe);
    return why != NULL;
}

/* --- heartbeat, end ---------------------------------------------------------------------------- */

/* Only heartbeats send this number: when many brokers join together, one message reports all of them. */
static void send_joined (struct conn *c)
{
    uint32_t joined = overlay_joined (c->up->ov);
    idt_msg_t *msg = joined == c->joined ? NULL : control_encode (CONTROL_JOINED, joined, NULL);

    if (msg && conn_send (c, msg) == 0)
        c->joined = joined;
    idt_msg_unref (msg);
}

static void beat (struct conn *c)
{
    struct overlay *ov = c->up->ov;
    idt_msg_t *msg;

    ov->told = ov->health;
    if ((msg = control_heartbeat_up (ov->told, link_boot_us ())))
        conn_send (c, msg);
    idt_msg_unref (msg);
    send_joined (c);
}

void parent_doubt (struct parent *up)
{
    struct conn *c = up->used;

    if (c->state != CONN_JOINED || c->doubt_us > 0 || link_now () - up->ov->beat <= up->ov->timeout)
        return;
    c->doubt_us = link_boot_us ();
    channel_hold (&c->channel);
    beat (c);
}

void parent_heartbeat (struct parent *up, bool was_asleep)
{
    struct conn *c = up->used;

    if (c->state != CONN_JOINED)
        return;
    if (was_asleep)
        c->heard = link_now ();
    conn_send_keys (c);
    beat (c);
    wire_look (c->wire);
}

bool parent_check_silence (struct parent *up)
{
    struct conn *c = up->used;

    if (c->state != CONN_JOINED)
        return true;
    if (!link_is_silent (up->ov, c->heard, c->wire))
        return wire_is_dry (c->wire);
    conn_lose (c, "it is silent (tbon.timeout)");
    return true;
}

void parent_send_keys (struct parent *up)
{
    if (overlay_has_parent (up->ov))
        conn_send_keys (up->used);
}

void overlay_goodbye (struct overlay *ov)
{
    struct parent *up = ov->up;
    idt_msg_t *msg;

    up->stopping = true;
    idt_watcher_stop (up->retry);
    idt_watcher_stop (up->probe_timer);
    conn_lose (up->probe, NULL);
    if (up->used->state != CONN_JOINED) {
        conn_close (up->used, 0);
        up->used->state = CONN_IDLE;
        return;
    }
    if ((msg = control_encode (CONTROL_GOODBYE, 0, NULL)))
        channel_send_last (&up->used->channel, msg);
    up->used->state = CONN_LEAVING;
}

/* --- life ---------------------------------------------------------------------------------------- */

struct parent *parent_create (struct overlay *ov)
{
    struct parent *up = calloc (1, sizeof (*up));

    if (!up)
        return NULL;
    up->ov = ov;
    up->conn[0].up = up->conn[1].up = up;
    up->used = &up->conn[0];
    up->probe = &up->conn[1];
    up->retry_ms = RETRY_MIN_MS;
    up->probe_ms = PROBE_MS;
    up->served_at = TOPO_NONE;
    up->seed = ov->conf.rank * 2654435761U ^ (unsigned)link_boot_us ();
    if (link_init_channel (ov, &up->conn[0].channel, &channel_ops, &up->conn[0]) < 0
        || link_init_channel (ov, &up->conn[1].channel, &channel_ops, &up->conn[1]) < 0
        || !(up->retry = idt_timer_watcher_create (ov->conf.reactor, 0., 0., retry_cb, up))
        || !(up->probe_timer = idt_timer_watcher_create (ov->conf.reactor, 0., 0., probe_cb, up))) {
        parent_destroy (up);
        return NULL;
    }
    return up;
}

void parent_destroy (struct parent *up)
{
    if (!up)
        return;
    if (up->used->state == CONN_JOINED || up->used->state == CONN_LEAVING)
        router_peer_remove (up->ov->conf.router, &up->used->peer);
    conn_close (up->used, 0);
    conn_close (up->probe, 0);
    channel_fini (&up->conn[0].channel);
    channel_fini (&up->conn[1].channel);
    idt_watcher_destroy (up->retry);
    idt_watcher_destroy (up->probe_timer);
    free (up);
}
