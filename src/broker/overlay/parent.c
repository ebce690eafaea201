/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* parent.c - the wire to the parent, or to the ancestor that substitutes for it
 *
 * A connection has one identity from connect to loss, which is never used again.  So a broker that has not accepted us
 * gets no messages that were meant for another.
 *
 *     IDLE --open--> HELLO --accepted--> JOINED --goodbye--> LEAVING
 *       ^------loss, refusal, silence------|
 *
 * There are two connections: the one in use, and a probe.  When the connection in use is lost, the ancestors are tried
 * in turn, the parent first.  While the connection in use leads to an ancestor other than the parent, the probe tries
 * the nearer ancestors.  When one of these accepts, the probe becomes the connection in use.  A broker that has never
 * joined tries its parent for some time before it tries others, because the parent may still be starting.  If an
 * ancestor reports that another broker serves our rank, the ancestors above it are not tried while that ancestor is
 * there: they do not know the broker that serves our rank, and would accept us as a second one.
 *
 * An unreachable ancestor is tried about twice per second, because it may start soon.  If an ancestor refuses us
 * (another broker has our rank, another certificate, another instance), only the administrator can help.  So the pause
 * grows to about 10 s.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "broker/base/uuid_key.h"
#include "broker/overlay/link.h"
#include "common/libzmqutil/resolver.h"

#define PART_MS 200      /* ms to send the goodbye to an ancestor that we leave */
#define FAILOVER_MS 400. /* ms until a hello times out, if there is another ancestor to try */
#define PATIENCE 4 /* failed attempts at its parent, above which a broker that never joined tries other ancestors */

static const struct bizcard *conn_target (const struct conn *c)
{
    return &c->up->ov->ancestors[c->target];
}

static int conn_send (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;

    assert (!c->channel.open || c->state == CONN_JOINED || c->state == CONN_LEAVING);
    return channel_send (&c->channel, msg);
}

static void conn_hang_up (void *arg)
{
    struct conn *c = arg;

    channel_break (&c->channel, "out of memory");
}

int overlay_event_up (struct overlay *ov, const idt_msg_t *msg)
{
    return conn_send (ov->up->used, msg);
}

bool overlay_has_parent (const struct overlay *ov)
{
    return ov->up->used->state == CONN_JOINED;
}

bool overlay_is_leaving (const struct overlay *ov)
{
    return ov->up->used->state == CONN_LEAVING;
}

/* --- losing --------------------------------------------------------------------------------------- */

/* Close a connection, without handling its loss. */
static void conn_close (struct conn *c, int linger_ms)
{
    channel_close (&c->channel);
    c->doubt_us = 0;
    wire_close (c->wire, linger_ms);
    c->wire = NULL;
}

/* The resolver of the ancestor's name.  NULL if the endpoint has a numeric address, or is on this host. */
static struct resolver *resolver_of_target (const struct conn *c)
{
    return c->up->ov->addresses ? c->up->ov->addresses[c->target] : NULL;
}

/* Whether to try the next ancestor.  A broker that never joined tries its parent for some time before it tries others,
 * except in a configured instance.
 */
static bool may_climb (const struct parent *up)
{
    return up->ov->nancestors > 1 && (up->ov->conf.configured || up->has_joined || up->attempts > PATIENCE);
}

/* Start a timer for about 'ms': a random time from half of it to one and a half of it. */
static void pause_about (struct parent *up, idt_watcher_t *timer, double ms)
{
    link_start_timer (timer, ms * (0.5 + (double)rand_r (&up->seed) / RAND_MAX));
}

/* Report to the module of the clock, and to the broker, whether there is a parent. */
static void tell (struct parent *up, bool open)
{
    struct overlay *ov = up->ov;

    if (ov->clock)
        ov->clock->parent (ov->clock_arg, open);
    ov->conf.ops->parent (ov->conf.arg, open);
}

/* The pause that follows a pause of 'ms': twice as long, but at most 'max_ms', or after a refusal at most
 * REFUSED_MAX_MS.
 */
static double longer (struct conn *c, double ms, double max_ms)
{
    double limit = c->refused ? REFUSED_MAX_MS : max_ms;

    c->refused = false;
    return ms * 2 < limit ? ms * 2 : limit;
}

/* Try again soon, at the host's next address ('elsewhere') or at the next ancestor.  After one round through all
 * ancestors the pause gets longer.
 */
static void retry_later (struct parent *up, enum conn_state was, bool elsewhere)
{
    struct conn *c = up->used;
    bool climbs = false;

    if (!elsewhere) {
        up->attempts++;
        climbs = was == CONN_HELLO && may_climb (up) && c->target != up->served_at
                 && c->target + 1 < up->ov->nancestors;
        c->target = climbs ? c->target + 1 : 0;
    }
    pause_about (up, up->retry, elsewhere || climbs ? RETRY_MIN_MS : up->retry_ms);
    if (!elsewhere && !climbs)
        up->retry_ms = longer (c, up->retry_ms, RETRY_MAX_MS);
}

/* Close a connection and handle its loss.  'why' is logged; NULL: nothing is logged. */
static void conn_lose (struct conn *c, const char *why)
{
    struct parent *up = c->up;
    enum conn_state was = c->state;
    struct resolver *address;
    bool elsewhere;

    if (was == CONN_IDLE)
        return;
    conn_close (c, 0);
    c->state = CONN_IDLE;
    address = resolver_of_target (c);
    elsewhere = was == CONN_HELLO && address && resolver_next (address);
    if (c == up->probe)
        return;
    if (why)
        log_printf (up->ov->conf.log, LOG_WARNING, "overlay", "%s (rank %u) is lost: %s",
                    c->target == 0 ? "parent" : "ancestor", conn_target (c)->rank, why);
    if (was == CONN_JOINED || was == CONN_LEAVING) {
        router_peer_remove (up->ov->conf.router, &c->peer);
        idt_watcher_stop (up->probe_timer);
        conn_lose (up->probe, NULL);
        tell (up, false);
    }
    if (!up->stopping)
        retry_later (up, was, elsewhere);
}

/* --- joining --------------------------------------------------------------------------------------- */

static void take_time (struct conn *c, const struct idt_clock_sample *sample)
{
    struct overlay *ov = c->up->ov;

    if (ov->clock && sample->peer_received_us > 0)
        ov->clock->sample (ov->clock_arg, sample);
}

static void send_keys (struct conn *c)
{
    struct keyring *keys = c->up->ov->keys;
    bool sent = true;
    idt_msg_t *msg;

    while (sent && (msg = keyring_take_news (keys))) {
        sent = conn_send (c, msg) == 0;
        idt_msg_unref (msg);
        c->keys_us = link_boot_us ();
    }
    if (!sent)
        keyring_again (keys); /* the next heartbeat sends the keys */
}

/* Leave the ancestor in use, because a nearer one has accepted us.  Requests that wait for an answer from the old
 * ancestor fail now. After the goodbye nothing more is sent to the old ancestor.
 */
static void part (struct conn *c)
{
    idt_msg_t *msg = control_encode (CONTROL_GOODBYE, 0, NULL);

    if (msg)
        conn_send (c, msg);
    idt_msg_unref (msg);
    c->state = CONN_IDLE;
    conn_close (c, PART_MS);
    router_peer_remove (c->up->ov->conf.router, &c->peer);
    tell (c->up, false);
}

static void use_probe (struct parent *up)
{
    struct conn *c = up->probe;

    up->probe = up->used;
    up->used = c;
    if (up->probe->state == CONN_JOINED)
        part (up->probe);
    else
        conn_lose (up->probe, NULL);
}

static bool become_peer (struct conn *c, const char *uuid)
{
    c->peer = (struct peer){
        .kind = PEER_PARENT, .rank = conn_target (c)->rank, .send = conn_send, .hang_up = conn_hang_up, .arg = c
    };
    memcpy (c->peer.uuid, uuid, sizeof (c->peer.uuid));
    if (router_peer_add (c->up->ov->conf.router, &c->peer) < 0) {
        conn_lose (c, "its UUID is in use on this broker");
        return false;
    }
    return true;
}

static void joined (struct conn *c, const struct welcome *w)
{
    struct parent *up = c->up;

    assert (c->state == CONN_HELLO);
    if (c == up->probe)
        use_probe (up);
    if (!become_peer (c, w->uuid))
        return;
    c->state = CONN_JOINED;
    up->retry_ms = RETRY_MIN_MS;
    up->probe_ms = PROBE_MS;
    c->refused = false;
    idt_watcher_stop (up->retry);
    idt_watcher_stop (up->probe_timer);
    if (c->target > 0 || up->has_joined)
        log_printf (up->ov->conf.log, LOG_INFO, "overlay", "attached to rank %u", conn_target (c)->rank);
    if (c->target > 0)
        pause_about (up, up->probe_timer, PROBE_MS);
    up->has_joined = true;
    take_time (c, &w->sample);
    channel_open (&c->channel, w->link);
    keyring_join (up->ov->keys, w->uuid);
    c->keys_us = 0;
    send_keys (c);
}

static void hello_accepted (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    uint64_t now_us = link_boot_us ();
    struct welcome w;
    idt_error_t err;

    if (hello_welcome (msg, &w, &err) < 0)
        conn_lose (c, err.text);
    else if (w.instance && conf->instance
             && instance_learn (conf->instance, conf->attrs, w.instance, w.name, &err) < 0) {
        c->refused = true;
        conn_lose (c, err.text);
    }
    else {
        w.sample.sent_us = c->hello_us;
        w.sample.received_us = now_us;
        joined (c, &w);
    }
    if (c->state == CONN_JOINED) {
        event_newest (conf->event, w.stream, w.seq);
        tell (c->up, true);
    }
    json_decref (w.o);
}

static void hello_answered (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    uint32_t errnum = idt_msg_errnum (msg);
    const char *text = idt_msg_string (msg);

    if (errnum == 0) {
        hello_accepted (c, msg);
        return;
    }
    if (errnum == EADDRINUSE)
        c->up->served_at = c->target;
    if (c == c->up->used)
        conf->ops->refused (conf->arg, errnum, text ? text : strerror (errnum));
    if (errnum != ESHUTDOWN) {
        c->up->attempts = 0;
        c->refused = true;
    }
    if (c == c->up->probe && errnum == EADDRINUSE) /* at a nearer ancestor, another broker serves our rank */
        conn_lose (c->up->used, "a nearer ancestor has another broker of this rank");
    conn_lose (c, NULL);
}

/* --- heartbeats -------------------------------------------------------------------------------------- */

/* Send the number of joined brokers, if it has changed.  Only heartbeats do this, so if many brokers join at the same
 * time, one message reports all of them.
 */
static void send_joined (struct conn *c)
{
    uint32_t joined = c->up->ov->joined;
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

/* --- messages --------------------------------------------------------------------------------- */

static void heartbeat_received (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    struct heartbeat hb;

    if (control_decode_down (msg, &hb) < 0)
        return;
    take_time (c, &(struct idt_clock_sample){ hb.sent_us, hb.peer_received_us, hb.peer_sent_us, link_boot_us (),
                                              hb.peer_bound_us });
    event_newest_low (conf->event, hb.stream, hb.seq);
    if (c->keys_us > 0 && hb.sent_us > c->keys_us) { /* messages arrive in order, so the keys arrived, too */
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

    router_show (conf->router, ROUTER_FROM, &c->peer, msg);
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
    default: /* a type that only a newer version has */
        break;
    }
}

static int conn_wire (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;

    return link_send (c->up->ov, c->wire, NULL, &c->channel, &c->peer, msg);
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
        hello_answered (c, msg);
    else if (idt_msg_type (msg) == IDT_MSGTYPE_CONTROL)
        control_received (c, msg);
    idt_msg_unref (msg);
}

static void closed (void *arg, struct wire *w, int line)
{
    struct conn *c = arg;

    c->refused |= c->state == CONN_HELLO && wire_was_reached (w);
    conn_lose (c, c->state == CONN_JOINED ? "the connection was closed" : NULL);
}

static const struct wire_ops wire_ops = { .received = received, .closed = closed };

/* --- connecting --------------------------------------------------------------------------------------- */

static void say_hello (struct conn *c, uint32_t target)
{
    struct overlay *ov = c->up->ov;
    const struct bizcard *card = &ov->ancestors[target];
    struct resolver *address;
    struct wire_target to = { .rank = card->rank, .endpoint = card->endpoint, .key = card->key };
    idt_msg_t *hello;

    assert (c->state == CONN_IDLE && !c->wire && target < ov->nancestors);
    c->target = target;
    c->state = CONN_HELLO;
    c->late = false;
    c->heard = link_now ();
    if (c == c->up->used && target == c->up->served_at)
        c->up->served_at = TOPO_NONE; /* ask this ancestor again */
    if ((address = resolver_of_target (c)))
        to.endpoint = resolver_resolve (address, card->endpoint, NULL); /* NULL: the address is not known yet */
    if (!to.endpoint || uuid_make (c->identity) < 0
        || !(c->wire = wire_connect (&ov->wire, &to, c->identity, &wire_ops, c))) {
        conn_lose (c, NULL);
        return;
    }
    ov->told = ov->health;
    c->joined = ov->joined;
    hello = hello_request (ov, card->rank);
    c->hello_us = link_boot_us ();
    if (!hello || wire_send (c->wire, NULL, hello, WIRE_PARTS) < 0)
        conn_lose (c, NULL);
    idt_msg_unref (hello);
}

/* The timeout of a hello.  If an ancestor has reported that another broker serves our rank, that ancestor is given up
 * only after tbon.timeout, like a lost peer.  All addresses of a host share this time.
 */
static double hello_ms (const struct parent *up)
{
    bool hurries = may_climb (up) && up->used->target != up->served_at;
    const struct resolver *address = resolver_of_target (up->used);
    size_t count = address ? resolver_count (address) : 1;
    double ms = up->ov->timeout * 1E3 / (count > 1 ? (double)count : 1);

    return hurries && ms > FAILOVER_MS ? FAILOVER_MS : ms;
}

void overlay_connect (struct overlay *ov)
{
    struct parent *up = ov->up;

    if (ov->conf.rank == 0 || up->used->state != CONN_IDLE || up->stopping)
        return;
    link_start_timer (up->retry, hello_ms (up));
    say_hello (up->used, up->used->target);
}

/* The time for the answer to a hello is over, but the answer may have arrived and not been read yet.  parent_turn ()
 * continues.
 */
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

/* Try the next ancestor that is nearer than the one in use.  The ancestor that the probe tried before has not answered,
 * and is given up.
 */
static void probe_next (struct parent *up)
{
    uint32_t next = up->probe->target + 1 < up->used->target ? up->probe->target + 1 : 0;

    conn_lose (up->probe, NULL);
    up->probe_ms = longer (up->probe, up->probe_ms, PROBE_MS);
    pause_about (up, up->probe_timer, up->probe_ms);
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
    pause_about (up, up->probe_timer, up->probe_ms); /* the probe may be refused or lost */
}

/* Give up a hello that was not answered in time, when all messages that have arrived were read. */
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

void parent_heartbeat (struct parent *up, bool was_asleep)
{
    struct conn *c = up->used;

    if (c->state != CONN_JOINED)
        return;
    if (was_asleep)
        c->heard = link_now ();
    send_keys (c);
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
        send_keys (up->used);
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
