/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* children.c - the wires of the children: one for brokers of this process, one for brokers of other processes
 *
 * A child is known by the identity of its connection, which it never uses twice.  A message from an identity that has
 * not sent hello is answered with DISCONNECT.  A child is removed in overlay_turn () if its channel is broken, if it is
 * silent, or if it said goodbye.  A child is also removed by overlay_dismiss_children (), when its connection is
 * closed, and when it sends hello again.  While a message is being dispatched, a child is never removed because of an
 * error; only its channel becomes broken.
 *
 * No events are queued for a child.  The child has a position in the events that this broker keeps.  The position
 * advances when an event was sent completely.
 *
 * The records of the children proper are permanent.  There are also adopted children: descendants whose own parent is
 * lost.  The record of an adopted child exists until the child leaves.  An adopted child does not count for the health
 * of this broker, because the loss of its parent already does.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <zmq.h>

#include "broker/overlay/children_private.h"
#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"

#define MISSING_SHOWN 32 /* ranks of each kind in the sentence */
#define LAST_WORDS_S 1.  /* seconds that a child may stay after its goodbye */

/* --- health ------------------------------------------------------------------------------------- */

const char *health_name (enum health health)
{
    static const char *names[] = { "full", "partial", "degraded", "lost", "offline" };

    return names[health];
}

bool child_is_online (const struct child *c)
{
    return c->health < HEALTH_LOST;
}

/* The health of this subtree, which the worst health of the children proper determines. */
static enum health worst (const struct children *down)
{
    enum health health = HEALTH_FULL;

    for (uint32_t i = 0; i < down->count; i++) {
        enum health h = down->children[i]->health;

        if (h == HEALTH_LOST || h == HEALTH_DEGRADED)
            return HEALTH_DEGRADED;
        if (h != HEALTH_FULL)
            health = HEALTH_PARTIAL;
    }
    return health;
}

void child_set_health (struct child *c, enum health health)
{
    struct children *down = c->down;
    enum health all;

    if (c->health == health)
        return;
    c->health = health;
    c->since = link_now ();
    if (!c->adopted && (all = worst (down)) != down->ov->health) {
        down->ov->health = all;
        down->ov->since = c->since;
    }
}

void child_set_joined (struct child *c, uint32_t joined)
{
    struct overlay *ov = c->down->ov;

    assert (ov->below >= c->joined);
    ov->below += (uint64_t)joined - c->joined;
    c->joined = joined;
    ov->joined = ov->below < ov->conf.topo->size ? (uint32_t)ov->below + 1 : ov->conf.topo->size;
}

/* --- sending ------------------------------------------------------------------------------------ */

static int child_send (void *arg, const idt_msg_t *msg)
{
    struct child *c = arg;

    return channel_send (&c->channel, msg);
}

static void child_hang_up (void *arg)
{
    struct child *c = arg;

    channel_break (&c->channel, "out of memory");
}

void children_send_disconnect (struct children *down, struct wire *w, const char *identity, int errnum, const char *why)
{
    idt_msg_t *msg = control_encode (CONTROL_DISCONNECT, errnum, why);

    if (msg)
        link_send (down->ov, w, identity, NULL, NULL, msg);
    idt_msg_unref (msg);
}

void overlay_stop_children (struct overlay *ov)
{
    idt_msg_t *msg = control_encode (CONTROL_STOP, 0, NULL);

    for (uint32_t i = 0; msg && i < ov->down->total; i++)
        if (child_is_online (ov->down->children[i]))
            child_send (ov->down->children[i], msg);
    idt_msg_unref (msg);
}

/* --- loss --------------------------------------------------------------------------------------- */

void child_remove (struct child *c, const char *why)
{
    struct overlay_conf *conf = &c->down->ov->conf;

    if (!child_is_online (c))
        return;
    c->goodbye = 0;
    child_set_health (c, why ? HEALTH_LOST : HEALTH_OFFLINE);
    child_set_joined (c, 0);
    c->wire = NULL;
    if (why)
        log_printf (conf->log, LOG_WARNING, "overlay", "%s (rank %u) is lost: %s",
                    c->adopted ? "adopted child" : "child", c->peer.rank, why);
    channel_close (&c->channel);
    router_peer_remove (conf->router, &c->peer);
    conf->ops->child (conf->arg, c->peer.rank, false);
    if (c->adopted)
        c->down->doomed = true; /* children_turn () frees the record of the child */
    assert (!child_is_online (c) && !c->channel.open);
}

static void child_destroy (struct child *c)
{
    channel_fini (&c->channel);
    hello_clear (&c->hello);
    free (c);
}

/* Free the records of adopted children that have left and have sent no new hello. */
static void drop_adopted (struct children *down)
{
    for (uint32_t i = down->count; i < down->total;) {
        struct child *c = down->children[i];

        if (child_is_online (c) || c->hello.msg)
            i++;
        else {
            down->children[i] = down->children[--down->total];
            child_destroy (c);
        }
    }
}

/* children_turn () frees the records of adopted children. */
void overlay_dismiss_children (struct overlay *ov, int errnum, const char *why)
{
    for (uint32_t i = 0; i < ov->down->total; i++) {
        struct child *c = ov->down->children[i];

        if (!child_is_online (c))
            continue;
        children_send_disconnect (ov->down, c->wire, c->peer.uuid, errnum, why);
        child_remove (c, NULL);
    }
}

static void let_go (struct child *c)
{
    children_send_disconnect (c->down, c->wire, c->peer.uuid, 0, NULL);
    child_remove (c, NULL);
}

/* Remove the children that said goodbye, but only after all messages were handled: the handlers check whether the
 * sender may send a message (router_covers ()), and need the child for that.  If this broker is busy for longer than
 * LAST_WORDS_S, do not wait for the handlers.
 */
static void let_leavers_go (struct children *down)
{
    const struct overlay_conf *conf = &down->ov->conf;
    bool heard = conf->ops->heard (conf->arg);

    down->leaving = false;
    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (c->goodbye > 0 && (heard || link_now () > c->goodbye + LAST_WORDS_S))
            let_go (c);
        down->leaving = down->leaving || c->goodbye > 0;
    }
}

bool children_turn (struct children *down)
{
    bool busy = down->doomed || down->leaving;

    if (down->leaving)
        let_leavers_go (down);
    while (down->doomed) {
        down->doomed = false;
        for (uint32_t i = 0; i < down->total; i++)
            if (down->children[i]->channel.broken)
                child_remove (down->children[i], down->children[i]->channel.broken);
        drop_adopted (down);
    }
    return children_adopt (down) || busy;
}

static void closed (void *arg, struct wire *w, int line)
{
    struct children *down = arg;

    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (child_is_online (c) && c->wire == w && c->line == line)
            child_remove (c, "the connection was closed");
    }
}

void children_heartbeat (struct children *down, bool was_asleep)
{
    for (uint32_t i = 0; was_asleep && i < down->total; i++)
        down->children[i]->heard = link_now ();
    if (down->outside)
        wire_look (down->outside);
    if (down->inside)
        wire_look (down->inside);
}

bool children_check_silence (struct children *down)
{
    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (child_is_online (c) && link_is_silent (down->ov, c->heard, c->wire)) {
            children_send_disconnect (down, c->wire, c->peer.uuid, ETIMEDOUT, "this child was silent (tbon.timeout)");
            child_remove (c, "it is silent (tbon.timeout)");
        }
    }
    return (!down->outside || wire_is_dry (down->outside)) && (!down->inside || wire_is_dry (down->inside));
}

/* --- events ----------------------------------------------------------------------------------------- */

/* Write the position of a child: the number of the last event that was sent to it.  Later events are still to be sent.
 */
static void put_position (const struct child *c, struct heartbeat *hb)
{
    hb->seq = (uint32_t)c->event;
    snprintf (hb->stream, sizeof (hb->stream), "%s", event_stream (c->down->ov->conf.event));
}

/* Send a heartbeat that does not answer one, and therefore has no time. */
static void send_position (struct child *c)
{
    struct heartbeat hb = { 0 };
    idt_msg_t *msg;

    channel_forget_events (&c->channel);
    c->event = event_seq (c->down->ov->conf.event);
    put_position (c, &hb);
    if ((msg = control_heartbeat_down (&hb)))
        child_send (c, msg);
    idt_msg_unref (msg);
}

void overlay_event_position (struct overlay *ov)
{
    for (uint32_t i = 0; i < ov->down->total; i++)
        if (child_is_online (ov->down->children[i]))
            send_position (ov->down->children[i]);
}

void overlay_event_down (struct overlay *ov)
{
    for (uint32_t i = 0; i < ov->down->total; i++)
        channel_pump (&ov->down->children[i]->channel);
}

/* If the next event for a child is no longer kept, the child misses it, and notices the gap with the next event that it
 * gets.
 */
static const idt_msg_t *child_event (void *arg)
{
    struct child *c = arg;
    struct event *event = c->down->ov->conf.event;
    const idt_msg_t *msg = event_after (event, c->event, &c->event_next);

    if (!msg)
        c->event = event_seq (event);
    return msg;
}

static void child_event_sent (void *arg)
{
    struct child *c = arg;

    c->event = c->event_next;
}

/* --- messages --------------------------------------------------------------------------------------- */

static void heartbeat_received (struct child *c, const idt_msg_t *msg)
{
    struct overlay *ov = c->down->ov;
    struct heartbeat hb = { 0 };
    uint64_t bound;
    idt_msg_t *answer;

    link_read_clock (ov, &hb.peer_received_us, &bound);
    if (control_decode_up (msg, &hb.sent_us) < 0)
        return;
    if (idt_msg_control_status (msg) <= HEALTH_DEGRADED)
        child_set_health (c, idt_msg_control_status (msg));
    put_position (c, &hb);
    link_read_clock (ov, &hb.peer_sent_us, &hb.peer_bound_us);
    if ((answer = control_heartbeat_down (&hb)))
        child_send (c, answer);
    idt_msg_unref (answer);
}

/* Take a key that a child reports.  The key must belong to a rank below the child. */
static void key_received (const struct control_key *key, void *arg)
{
    struct child *c = arg;
    struct overlay_conf *conf = &c->down->ov->conf;

    if (key->rank < conf->topo->size && topo_child_toward (conf->topo, c->peer.rank, key->rank) != TOPO_NONE)
        keyring_put (c->down->ov->keys, key);
}

static void control_received (void *arg, const idt_msg_t *msg)
{
    struct child *c = arg;

    router_show (c->down->ov->conf.router, ROUTER_FROM, &c->peer, msg);
    switch (idt_msg_control_type (msg)) {
    case CONTROL_HEARTBEAT:
        heartbeat_received (c, msg);
        break;
    case CONTROL_KEYS:
        control_decode_keys (msg, key_received, c);
        break;
    case CONTROL_JOINED:
        child_set_joined (c, idt_msg_control_status (msg) > 0 ? idt_msg_control_status (msg) : 1);
        break;
    case CONTROL_GOODBYE:
        c->goodbye = link_now ();
        c->down->leaving = true; /* children_turn () continues */
        break;
    default: /* a type that only a newer version has */
        break;
    }
}

static int child_wire (void *arg, const idt_msg_t *msg)
{
    struct child *c = arg;

    return link_send (c->down->ov, c->wire, c->peer.uuid, &c->channel, &c->peer, msg);
}

static void child_message (void *arg, idt_msg_t *msg)
{
    struct child *c = arg;

    link_received (c->down->ov, &c->peer, &c->channel, msg);
}

static void child_broken (void *arg)
{
    struct child *c = arg;

    c->down->doomed = true;
}

static const struct channel_ops channel_ops = {
    .send = child_wire,
    .message = child_message,
    .control = control_received,
    .event = child_event,
    .event_sent = child_event_sent,
    .broken = child_broken,
};

/* Find the child with this connection.  A peer chooses its identity itself, so the wire must match, too. */
static struct child *find (const struct children *down, const struct wire_from *from)
{
    struct peer *p = router_peer (down->ov->conf.router, from->identity);
    struct child *c = p && p->kind == PEER_CHILD ? p->arg : NULL;

    return c && c->wire == from->wire ? c : NULL;
}

static void received (void *arg, idt_msg_t *msg, const struct wire_from *from)
{
    struct children *down = arg;
    int saved = errno;
    struct child *c = find (down, from);

    errno = saved;
    if (c) {
        c->heard = link_now ();
        if (!msg)
            channel_break (&c->channel, errno == ENOMEM ? "out of memory" : "it sent a malformed message");
        else
            channel_received (&c->channel, msg);
    }
    else if (msg)
        children_stranger (down, msg, from);
}

static const struct wire_ops wire_ops = { .received = received, .closed = closed };

/* --- records -------------------------------------------------------------------------------------- */

static int compare_rank (const void *rank, const void *child)
{
    uint32_t a = *(const uint32_t *)rank, b = (*(struct child *const *)child)->peer.rank;

    return (a > b) - (a < b);
}

struct child *child_proper (const struct children *down, uint32_t rank)
{
    struct child **c = bsearch (&rank, down->children, down->count, sizeof (down->children[0]), compare_rank);

    return c ? *c : NULL;
}

struct child *child_create (struct children *down, uint32_t rank, bool adopted)
{
    struct child *c = calloc (1, sizeof (*c));

    if (!c)
        return NULL;
    c->down = down;
    c->peer = (struct peer){ .kind = PEER_CHILD, .rank = rank, .send = child_send, .hang_up = child_hang_up, .arg = c };
    c->health = HEALTH_OFFLINE;
    c->since = link_now ();
    c->adopted = adopted;
    if (link_init_channel (down->ov, &c->channel, &channel_ops, c) < 0) {
        free (c);
        return NULL;
    }
    return c;
}

/* --- life --------------------------------------------------------------------------------------------- */

struct children *children_create (struct overlay *ov)
{
    struct children *down = calloc (1, sizeof (*down));
    struct overlay_conf *conf = &ov->conf;

    if (!down)
        return NULL;
    down->ov = ov;
    down->count = topo_child_count (conf->topo, conf->rank);
    ov->health = down->count > 0 ? HEALTH_PARTIAL : HEALTH_FULL;
    down->size = down->count + 1;
    if (!(down->children = calloc (down->size, sizeof (down->children[0])))) {
        free (down);
        return NULL;
    }
    for (; down->total < down->count; down->total++) {
        uint32_t rank = topo_child (conf->topo, conf->rank, down->total);

        if (!(down->children[down->total] = child_create (down, rank, false))) {
            children_destroy (down);
            return NULL;
        }
    }
    return down;
}

int overlay_bind (struct overlay *ov, const char *endpoint, bool others, idt_error_t *errp)
{
    struct children *down = ov->down;
    const struct wire_conf *conf = &ov->wire;
    bool inside = conf->inside && conf->kind != WIRE_ZMQ;

    if ((others || !inside) && !(down->outside = wire_listen (conf, endpoint, &wire_ops, down)))
        return errprintf (errp, "tbon.endpoint %s: %s", endpoint, zmq_strerror (errno));
    if (inside && !(down->inside = wire_listen_inside (conf, &wire_ops, down)))
        return errno == EEXIST ? errprintf (errp, "rank %u is in this process already", conf->rank)
                               : errprintf (errp, "rank %u cannot listen inside of its process (tbon.transport %s): %s",
                                            conf->rank, wire_kind_name (conf->kind), zmq_strerror (errno));
    return 0;
}

const char *overlay_endpoint (const struct overlay *ov)
{
    return ov->down->outside ? wire_endpoint (ov->down->outside) : NULL;
}

void children_destroy (struct children *down)
{
    if (!down)
        return;
    for (uint32_t i = 0; i < down->total; i++) {
        struct child *c = down->children[i];

        if (child_is_online (c)) {
            if (down->stopping) /* a broker that is not stopping was killed, and sends no message */
                children_send_disconnect (down, c->wire, c->peer.uuid, ESHUTDOWN, "the parent has stopped");
            router_peer_remove (down->ov->conf.router, &c->peer);
        }
        child_destroy (c);
    }
    wire_close (down->outside, 0);
    wire_close (down->inside, 0);
    free (down->children);
    free (down);
}

void overlay_accept (struct overlay *ov, bool accept)
{
    struct children *down = ov->down;

    down->accept = accept;
    down->stopping = !accept;
    for (uint32_t i = 0; accept && i < down->count; i++)
        if (down->children[i]->hello.msg)
            child_take_in (down->children[i]);
    children_adopt (down);
}

void children_retry (struct children *down)
{
    for (uint32_t i = 0; i < down->total; i++)
        channel_retry (&down->children[i]->channel);
}

/* --- descriptions ----------------------------------------------------------------------------------- */

static uint32_t count_online (const struct children *down, uint32_t from)
{
    uint32_t n = 0;

    for (uint32_t i = from; i < down->total; i++)
        n += child_is_online (down->children[i]);
    return n;
}

uint32_t overlay_children_online (const struct overlay *ov)
{
    return count_online (ov->down, 0);
}

uint32_t children_adopted (const struct children *down)
{
    return count_online (down, down->count);
}

void children_describe_links (const struct children *down, json_t *links)
{
    for (uint32_t i = 0; i < down->total; i++)
        if (child_is_online (down->children[i]))
            json_array_append_new (links, link_describe (down->children[i]->peer.rank, down->children[i]->wire,
                                                         &down->children[i]->channel));
}

void children_add_load (const struct children *down, struct overlay_load *load)
{
    for (uint32_t i = 0; i < down->total; i++)
        if (child_is_online (down->children[i]))
            link_add_load (&down->children[i]->channel, load);
    load->adopted += children_adopted (down);
}

json_t *children_describe (const struct children *down)
{
    json_t *a = json_array ();

    for (uint32_t i = 0; i < down->count; i++) {
        const struct child *c = down->children[i];

        json_add_new (&a, json_pack ("{s:I s:s s:f}", "rank", (json_int_t)c->peer.rank, "status",
                                     health_name (c->health), "duration", link_now () - c->since));
    }
    return a;
}

const char *overlay_child_status (const struct overlay *ov, uint32_t rank)
{
    const struct child *c = child_proper (ov->down, rank);

    return c ? health_name (c->health) : NULL;
}

/* Append the children of a kind to a sentence, at most MISSING_SHOWN of them: "rank 3", "ranks below [1,4-7] and 20
 * more".
 */
static size_t name_kind (const struct children *down, bool online, const char *what, char *buf, size_t size)
{
    uint32_t ranks[MISSING_SHOWN], count = 0, shown;
    char more[32] = "", *set;
    int n;

    for (uint32_t i = 0; i < down->count; i++) {
        const struct child *c = down->children[i];

        if (c->health != HEALTH_FULL && child_is_online (c) == online && count++ < MISSING_SHOWN)
            ranks[count - 1] = c->peer.rank;
    }
    shown = count < MISSING_SHOWN ? count : MISSING_SHOWN;
    if (count == 0 || !(set = ranges_format (ranks, shown)))
        return 0;
    if (count > shown)
        snprintf (more, sizeof (more), " and %u more", count - shown);
    n = snprintf (buf, size, "%s%s %s%s", count > 1 || online ? "ranks" : "rank", what, set, more);
    free (set);
    return n;
}

void overlay_name_missing (const struct overlay *ov, char *buf, size_t size)
{
    char below[256];
    size_t n = name_kind (ov->down, true, " below", below, sizeof (below)), len;

    buf[0] = '\0';
    len = name_kind (ov->down, false, "", buf, size);
    if (n > 0 && len < size)
        snprintf (buf + len, size - len, "%s%s", len > 0 ? ", " : "", below);
}
