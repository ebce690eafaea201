/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* parent.c - the wire to the parent, or to the ancestor that stands in for it
 *
 * A connection lives from connect to loss under one identity, which is never used again: nothing is delivered to a broker
 * that has not taken us in.
 *
 *     IDLE --open--> HELLO --accepted--> JOINED --goodbye--> LEAVING
 *       ^------loss, refusal, silence------|
 *
 * There are two: the one that is used, and a probe.  When the one in use is lost, the ancestors are tried in turn, the parent
 * first; while it leads to another one than the parent, the probe tries those that are nearer, and takes its place
 * when one of them accepts.  A broker that has never joined gives its parent time: it may just be starting.  A parent that
 * refuses it is there, and has the last word: a second broker of a rank that is served finds no way in further up.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/errprintf.h"
#include "broker/base/uuid_key.h"
#include "broker/overlay/link.h"

#define RETRY_MIN_MS 20.
#define RETRY_MAX_MS 500.
#define PATIENCE 4       /* attempts that the parent leaves unanswered before one that never joined tries others */
#define FAILOVER_MS 400. /* for a hello, when there is another ancestor to try */
#define PROBE_MS 1000.   /* between attempts to return */
#define PART_MS 200      /* for the goodbye to an ancestor that we leave for a nearer one */

enum conn_state { CONN_IDLE, CONN_HELLO, CONN_JOINED, CONN_LEAVING };

struct conn {
    struct parent *up;
    enum conn_state state;
    uint32_t target; /* index in the ancestors */
    struct peer peer;
    struct channel channel;
    struct wire *wire;
    bool late;         /* the answer to its hello is, unless it is there already */
    double heard;      /* link_now () of its last message */
    uint64_t hello_us; /* link_boot_us () when we said hello */
    uint64_t doubt_us; /* ... when it became doubtful that the parent still knows us; 0: it is not */
    uint64_t keys_us;  /* ... when keys were sent last that it has not answered a beat after; 0: none */
};

struct parent {
    struct overlay *ov;
    struct conn conn[2];
    struct conn *used;
    struct conn *probe;
    idt_watcher_t *retry; /* IDLE: time to try again; HELLO: no answer came */
    idt_watcher_t *probe_timer;
    double retry_ms;
    unsigned seed;   /* of the jitter */
    bool has_joined; /* ever */
    int attempts;    /* that failed since a broker answered */
    bool stopping;
};

static void lose (struct conn *c, const char *why);
static void close_connection (struct conn *c, int linger_ms);

static const struct bizcard *target_of (const struct conn *c)
{
    return &c->up->ov->ancestors[c->target];
}

static int conn_send (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;

    if (c->state != CONN_JOINED && c->state != CONN_LEAVING)
        return errset (EHOSTUNREACH);
    return channel_send (&c->channel, msg);
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
    return overlay_has_parent (up->ov) ? target_of (up->used)->rank : TOPO_NONE;
}

static double jitter (struct parent *up)
{
    return 0.5 + (double)rand_r (&up->seed) / RAND_MAX;
}

static void start_timer (idt_watcher_t *w, double ms)
{
    idt_timer_watcher_reset (w, ms, 0.);
    idt_watcher_start (w);
}

/* --- hello ----------------------------------------------------------------------------------- */

static idt_msg_t *make_hello (struct conn *c)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    idt_msg_t *msg;

    c->up->ov->told = c->up->ov->health;
    msg = link_add_json (idt_msg_create (IDT_MSGTYPE_REQUEST),
                         json_pack ("{s:I s:s s:s s:s s:s s:s s:I s:s s:i}", "rank", (json_int_t)conf->rank, "uuid",
                                    conf->uuid, "version", PACKAGE_VERSION, "hostname", conf->host, "topology",
                                    conf->topo->name, "status", health_name (c->up->ov->told), "seq",
                                    (json_int_t)event_seq (conf->event), "stream", event_stream (conf->event), "link",
                                    1));
    if (!msg || idt_msg_set_topic (msg, "overlay.hello") < 0) {
        idt_msg_unref (msg);
        return NULL;
    }
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_nodeid (msg, target_of (c)->rank);
    idt_msg_set_cred (msg, (struct idt_cred){ geteuid (), IDT_ROLE_OWNER });
    idt_msg_route_clear (msg);
    return msg;
}

static void take_time (struct conn *c, const struct idt_clock_sample *sample)
{
    struct overlay *ov = c->up->ov;

    if (ov->clock && sample->peer_received_us > 0)
        ov->clock->sample (ov->clock_arg, sample);
}

static void send_keys (struct conn *c)
{
    idt_msg_t *msg;

    while ((msg = keyring_take_news (c->up->ov->keys))) {
        conn_send (c, msg);
        idt_msg_unref (msg);
        c->keys_us = link_boot_us ();
    }
}

/* Tell everybody inside that the way up is open, or gone. */
static void tell (struct parent *up, bool open)
{
    struct overlay *ov = up->ov;

    if (ov->clock)
        ov->clock->parent (ov->clock_arg, open);
    ov->conf.ops->parent (ov->conf.arg, open);
}

/* Leave the ancestor in use for a nearer one: what waits there fails now, and nothing is sent there any more. */
static void part (struct conn *c)
{
    idt_msg_t *msg = control_encode (CONTROL_GOODBYE, 0, NULL);

    if (msg)
        conn_send (c, msg);
    idt_msg_unref (msg);
    c->state = CONN_IDLE;
    close_connection (c, PART_MS);
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
        lose (up->probe, NULL);
}

static bool become_peer (struct conn *c, const char *uuid)
{
    c->peer = (struct peer){ .kind = PEER_PARENT, .rank = target_of (c)->rank, .send = conn_send, .arg = c };
    memcpy (c->peer.uuid, uuid, sizeof (c->peer.uuid));
    if (router_peer_add (c->up->ov->conf.router, &c->peer) < 0) {
        lose (c, "its name is in use here");
        return false;
    }
    return true;
}

static void joined (struct conn *c, const char *uuid, const struct idt_clock_sample *sample, bool credits)
{
    struct parent *up = c->up;

    if (c == up->probe)
        use_probe (up);
    if (!become_peer (c, uuid))
        return;
    c->state = CONN_JOINED;
    up->retry_ms = RETRY_MIN_MS;
    idt_watcher_stop (up->retry);
    idt_watcher_stop (up->probe_timer);
    if (c->target > 0 || up->has_joined)
        log_printf (up->ov->conf.log, LOG_INFO, "overlay", "attached to rank %u", target_of (c)->rank);
    if (c->target > 0)
        start_timer (up->probe_timer, PROBE_MS * jitter (up));
    up->has_joined = true;
    take_time (c, sample);
    channel_open (&c->channel, credits);
    keyring_join (up->ov->keys, uuid);
    c->keys_us = 0;
    send_keys (c);
}

static void hello_accepted (struct conn *c, const idt_msg_t *msg)
{
    struct overlay_conf *conf = &c->up->ov->conf;
    struct idt_clock_sample sample = { .sent_us = c->hello_us, .received_us = link_boot_us () };
    const char *uuid, *version, *stream;
    json_int_t seq, received = 0, sent = 0, bound = 0;
    int link = 0;
    idt_error_t err;
    json_t *o;

    if (idt_msg_unpack (msg, &o, &err, "{s:s s:s s:s s:I s?[I,I] s?I s?i}", "uuid", &uuid, "version", &version,
                        "stream", &stream, "seq", &seq, "time_us", &received, &sent, "bound_us", &bound, "link", &link)
        < 0) {
        lose (c, err.text);
        return;
    }
    sample.peer_received_us = received;
    sample.peer_sent_us = sent;
    sample.peer_bound_us = bound;
    if (strlen (uuid) != IDT_MSG_UUID_LEN || strlen (stream) > IDT_MSG_UUID_LEN)
        lose (c, "its hello has a malformed uuid");
    else
        joined (c, uuid, &sample, link >= 1);
    if (c->state == CONN_JOINED) {
        event_newest (conf->event, stream, seq);
        tell (c->up, true);
    }
    json_decref (o);
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
    if (c == c->up->used)
        conf->ops->refused (conf->arg, errnum, text ? text : strerror (errnum));
    if (errnum != ESHUTDOWN)
        c->up->attempts = 0;
    lose (c, NULL);
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
    if (c->keys_us > 0 && hb.sent_us > c->keys_us) { /* what we send arrives in order */
        keyring_arrived (c->up->ov->keys);
        c->keys_us = 0;
    }
    if (c->doubt_us > 0 && hb.sent_us >= c->doubt_us) {
        c->doubt_us = 0;
        channel_release (&c->channel);
    }
}

static void control_received (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;
    struct overlay_conf *conf = &c->up->ov->conf;

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
        lose (c, c->state == CONN_LEAVING ? NULL : idt_msg_string (msg));
        break;
    default: /* of a newer version */
        break;
    }
}

static int conn_wire (void *arg, const idt_msg_t *msg)
{
    struct conn *c = arg;

    return link_send (c->up->ov, c->wire, NULL, msg);
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
        lose (c, "it sent a malformed message");
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

/* --- opening and losing ---------------------------------------------------------------------------- */

static void closed (void *arg, struct wire *w, int line)
{
    struct conn *c = arg;

    lose (c, c->state == CONN_JOINED ? "the connection was closed" : NULL);
}

static const struct wire_ops wire_ops = { .received = received, .closed = closed };

static int open_connection (struct conn *c)
{
    const struct bizcard *card = target_of (c);
    struct wire_target to = { .rank = card->rank, .endpoint = card->endpoint, .key = card->key };
    char identity[IDT_MSG_UUID_LEN + 1];

    if (uuid_make (identity) < 0 || !(c->wire = wire_connect (&c->up->ov->wire, &to, identity, &wire_ops, c)))
        return -1;
    return 0;
}

static void close_connection (struct conn *c, int linger_ms)
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
    if (open_connection (c) < 0) {
        lose (c, NULL);
        return;
    }
    hello = make_hello (c);
    c->hello_us = link_boot_us ();
    if (!hello || wire_send (c->wire, NULL, hello) < 0)
        lose (c, NULL);
    idt_msg_unref (hello);
}

/* Whether to go on with the next ancestor: one that never joined gives its parent some time first. */
static bool may_climb (const struct parent *up)
{
    return up->ov->nancestors > 1 && (up->has_joined || up->attempts > PATIENCE);
}

static double hello_ms (const struct parent *up)
{
    return may_climb (up) && up->ov->timeout * 1E3 > FAILOVER_MS ? FAILOVER_MS : up->ov->timeout * 1E3;
}

/* The pause grows once a round through all ancestors. */
static void retry_later (struct parent *up, enum conn_state was)
{
    struct conn *c = up->used;

    up->attempts++;
    if (was == CONN_HELLO && may_climb (up) && c->target + 1 < up->ov->nancestors) {
        c->target++;
        start_timer (up->retry, RETRY_MIN_MS * jitter (up));
        return;
    }
    c->target = 0;
    start_timer (up->retry, up->retry_ms * jitter (up));
    up->retry_ms = up->retry_ms * 2 < RETRY_MAX_MS ? up->retry_ms * 2 : RETRY_MAX_MS;
}

static void lose (struct conn *c, const char *why)
{
    struct parent *up = c->up;
    enum conn_state was = c->state;

    if (was == CONN_IDLE)
        return;
    close_connection (c, 0);
    c->state = CONN_IDLE;
    if (c == up->probe)
        return;
    if (why)
        log_printf (up->ov->conf.log, LOG_WARNING, "overlay", "%s (rank %u) is lost: %s",
                    c->target == 0 ? "parent" : "ancestor", target_of (c)->rank, why);
    if (was == CONN_JOINED || was == CONN_LEAVING) {
        router_peer_remove (up->ov->conf.router, &c->peer);
        idt_watcher_stop (up->probe_timer);
        lose (up->probe, NULL);
        tell (up, false);
    }
    if (!up->stopping)
        retry_later (up, was);
}

void overlay_connect (struct overlay *ov)
{
    struct parent *up = ov->up;

    if (up->used->state != CONN_IDLE)
        return;
    start_timer (up->retry, hello_ms (up));
    say_hello (up->used, up->used->target);
}

/* Its answer may be there, and not be read yet: the turn goes on from here. */
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

/* Try the ancestors that are nearer than the one in use, in turn.  One that has not answered by now does not. */
static void probe_next (struct parent *up)
{
    uint32_t next = up->probe->target + 1 < up->used->target ? up->probe->target + 1 : 0;

    lose (up->probe, NULL);
    start_timer (up->probe_timer, PROBE_MS * jitter (up));
    say_hello (up->probe, next);
}

static void probe_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct parent *up = arg;

    if (up->probe->state == CONN_HELLO)
        hello_late (up->probe);
    else
        probe_next (up);
}

/* Give up one whose answer has not come: all that came was read. */
static void judge_hello (struct conn *c)
{
    bool waits = c->late && c->state == CONN_HELLO;

    if (waits && !wire_is_dry (c->wire))
        return;
    c->late = false;
    if (waits && c == c->up->probe)
        probe_next (c->up);
    else if (waits)
        lose (c, NULL);
}

bool parent_turn (struct parent *up)
{
    const char *why = up->used->channel.broken;

    if (why)
        lose (up->used, why);
    judge_hello (up->used);
    judge_hello (up->probe);
    return why != NULL;
}

/* --- heartbeat, end ---------------------------------------------------------------------------- */

static void beat (struct conn *c)
{
    struct overlay *ov = c->up->ov;
    idt_msg_t *msg;

    ov->told = ov->health;
    if ((msg = control_heartbeat_up (ov->told, link_boot_us ())))
        conn_send (c, msg);
    idt_msg_unref (msg);
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
    lose (c, "it is silent (tbon.timeout)");
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
    lose (up->probe, NULL);
    if (up->used->state != CONN_JOINED) {
        close_connection (up->used, 0);
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
    close_connection (up->used, 0);
    close_connection (up->probe, 0);
    channel_fini (&up->conn[0].channel);
    channel_fini (&up->conn[1].channel);
    idt_watcher_destroy (up->retry);
    idt_watcher_destroy (up->probe_timer);
    free (up);
}
