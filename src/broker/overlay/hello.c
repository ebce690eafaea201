/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* hello.c - which brokers may join: children, and descendants whose own parent is lost
 *
 * A broker that sends hello must have our topology and our size.  The broker must be below us, and must have connected
 * with the key of its rank.  The broker must run our major version, and must not belong to another instance.  No other
 * broker may serve the same rank.  A child joins immediately, or when this broker begins to accept children.  Of the
 * adopted descendants, some join in each turn.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/overlay/children_private.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

/* --- the messages ------------------------------------------------------------------------------------ */

/* Set the text of 'o' (stolen) as the payload of 'msg' (stolen; may be NULL).  Returns the message, or NULL without
 * memory.
 */
static idt_msg_t *add_json (idt_msg_t *msg, json_t *o)
{
    char *text = o ? json_dumps (o, JSON_COMPACT) : NULL;

    json_decref (o);
    if (msg && (!text || idt_msg_set_string (msg, text) < 0)) {
        idt_msg_unref (msg);
        msg = NULL;
    }
    free (text);
    return msg;
}

#define OTHER_PROTOCOL \
    "%s runs idtree %s with version %d of the protocol between brokers, %s %s with version %d: install the same on all"

idt_msg_t *hello_request (struct overlay *ov, uint32_t to)
{
    struct overlay_conf *conf = &ov->conf;
    idt_msg_t *msg;

    msg = add_json (idt_msg_create (IDT_MSGTYPE_REQUEST),
                    instance_put_new (conf->instance,
                                      json_pack ("{s:I s:s s:s s:i s:s s:s s:s s:I s:s s:i s:I s:I}", "rank",
                                                 (json_int_t)conf->rank, "uuid", conf->uuid, "version", PACKAGE_VERSION,
                                                 "protocol", HELLO_PROTOCOL, "hostname", conf->host, "topology",
                                                 conf->topo->name, "status", health_name (ov->health), "seq",
                                                 (json_int_t)event_seq (conf->event), "stream",
                                                 event_stream (conf->event), "link", CHANNEL_VERSION, "size",
                                                 (json_int_t)conf->topo->size, "joined", (json_int_t)ov->joined)));
    if (!msg || idt_msg_set_topic (msg, "overlay.hello") < 0) {
        idt_msg_unref (msg);
        return NULL;
    }
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_nodeid (msg, to);
    idt_msg_set_cred (msg, (struct idt_cred){ geteuid (), IDT_ROLE_OWNER });
    idt_msg_route_clear (msg);
    return msg;
}

int hello_welcome (const idt_msg_t *msg, struct welcome *w, idt_error_t *errp)
{
    json_int_t seq, received = 0, sent = 0, bound = 0;
    const char *version;
    int lived, protocol = 1;

    *w = (struct welcome){ .uuid = "" };
    if (idt_msg_unpack (msg, &w->o, errp, "{s:s s:s s?i s:s s:I s?[I,I] s?I s?i s?{s:s s:s s?b}}", "uuid", &w->uuid,
                        "version", &version, "protocol", &protocol, "stream", &w->stream, "seq", &seq, "time_us",
                        &received, &sent, "bound_us", &bound, "link", &w->link, "instance", "uuid", &w->instance,
                        "name", &w->name, "lived", &lived)
        < 0)
        return -1;
    if (protocol != HELLO_PROTOCOL)
        return errsetf (errp, EPROTO, OTHER_PROTOCOL, "it", version, protocol, "this broker", PACKAGE_VERSION,
                        HELLO_PROTOCOL);
    w->seq = seq;
    w->sample.peer_received_us = received;
    w->sample.peer_sent_us = sent;
    w->sample.peer_bound_us = bound;
    if (strlen (w->uuid) == IDT_MSG_UUID_LEN && strlen (w->stream) <= IDT_MSG_UUID_LEN)
        return 0;
    return errsetf (errp, EPROTO, "its hello has a malformed uuid");
}

/* The instance time when the hello arrived.  Since then our clock may have been stepped forward, or CLOCK_BOOTTIME may
 * have jumped, so there are two estimates.  The later one is used.  From a time that is too early, the child would
 * compute a message delay that is too short, and so an error that is too small.
 */
static uint64_t hello_came (const struct hello *hello, uint64_t now_us)
{
    uint64_t waited_us = link_boot_us () - hello->boot_us;

    if (hello->came_us == 0 || now_us < waited_us)
        return hello->came_us;
    return hello->came_us > now_us - waited_us ? hello->came_us : now_us - waited_us;
}

/* The number of the event after which a child continues.  If the child follows another stream, or none, it begins at
 * our position.
 */
static uint64_t event_of (const struct overlay *ov, const struct hello *hello)
{
    uint64_t seq = event_seq (ov->conf.event);
    bool follows = hello->stream && strcmp (hello->stream, event_stream (ov->conf.event)) == 0 && hello->seq >= 0;

    return follows && (uint64_t)hello->seq < seq ? (uint64_t)hello->seq : seq;
}

static idt_msg_t *make_welcome (struct child *c)
{
    struct overlay *ov = c->down->ov;
    uint64_t sent, bound;

    c->event = event_of (ov, &c->hello);
    link_read_clock (ov, &sent, &bound);
    return add_json (idt_msg_respond (c->hello.msg, 0),
                     instance_put_new (ov->conf.instance,
                                       json_pack ("{s:s s:s s:i s:s s:I s:[I,I] s:I s:i}", "uuid", ov->conf.uuid,
                                                  "version", PACKAGE_VERSION, "protocol", HELLO_PROTOCOL, "stream",
                                                  event_stream (ov->conf.event), "seq", (json_int_t)c->event, "time_us",
                                                  (json_int_t)hello_came (&c->hello, sent), (json_int_t)sent,
                                                  "bound_us", (json_int_t)bound, "link", CHANNEL_VERSION)));
}

static void refuse (struct children *down, const struct hello *hello, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

static void refuse (struct children *down, const struct hello *hello, int errnum, const char *fmt, ...)
{
    idt_msg_t *msg = idt_msg_respond (hello->msg, errnum);
    char text[512];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    if (msg && idt_msg_set_string (msg, text) == 0)
        link_send (down->ov, hello->from.wire, hello->from.identity, NULL, NULL, msg);
    idt_msg_unref (msg);
    log_refusal (down->ov->conf.log, LOG_REFUSED_HELLO, "a hello is refused: %s", text);
}

void hello_clear (struct hello *hello)
{
    json_decref (hello->o);
    idt_msg_unref (hello->msg);
    *hello = (struct hello){ .msg = NULL };
}

/* --- checks of a hello ------------------------------------------------------------------------------ */

/* Find the record of an adopted descendant, or make it.  NULL without memory. */
static struct child *adopted_child (struct children *down, uint32_t rank)
{
    struct child *c;

    for (uint32_t i = down->count; i < down->total; i++)
        if (down->children[i]->peer.rank == rank)
            return down->children[i];
    if (down->total == down->size) {
        uint32_t size = down->size * 2 + 16;
        struct child **children = realloc (down->children, size * sizeof (children[0]));

        if (!children)
            return NULL;
        down->children = children;
        down->size = size;
    }
    if ((c = child_create (down, rank, true)))
        down->children[down->total++] = c;
    return c;
}

/* Remember that 'rank' belongs to another tree.  Returns how many ranks have reported within WITNESS_S that they do. */
static uint32_t hear_witness (struct children *down, uint32_t rank)
{
    struct witness *place = &down->witness[0];
    double now = link_now ();
    uint32_t n = 0;

    for (int i = 0; i < WITNESSES_MAX && place->rank != rank; i++)
        if (down->witness[i].rank == rank || down->witness[i].heard < place->heard)
            place = &down->witness[i];
    *place = (struct witness){ rank, now };
    for (int i = 0; i < WITNESSES_MAX; i++)
        n += down->witness[i].heard > 0. && now - down->witness[i].heard <= WITNESS_S;
    return n;
}

/* A rank that belongs to another instance has sent hello to this root.  Returns whether the root has the wrong state.
 * The root is right if a child has joined that already knew this instance.  A broker that remembers no instance joins
 * any root, so such children prove less.  Children without memory count only after tbon.timeout, when brokers that
 * remember an instance had time to connect, and only if these children outnumber the ranks of the other tree.
 */
static bool is_wrong (struct children *down, uint32_t witness)
{
    uint32_t against = hear_witness (down, witness), others = down->ov->joined - 1;

    if (down->is_known)
        return false;
    if (down->taken == 0. || link_now () - down->taken <= down->ov->timeout)
        return true;
    return against >= (others < WITNESSES_MAX ? others : WITNESSES_MAX);
}

/* Refuse a broker of another instance.  If brokers that lived in another tree return to this root, the root may have
 * been started with the wrong state folder.  In this case ops->intruder () is called, so that the root ends.
 */
static bool is_of_another (struct children *down, const struct hello *hello)
{
    struct overlay_conf *conf = &down->ov->conf;
    const struct instance *ours = conf->instance;
    idt_error_t why;

    if (!ours || !hello->instance || strcmp (hello->instance, ours->uuid) == 0)
        return false;
    if (conf->rank > 0 && !ours->told) /* our memory may be wrong; our parent corrects it */
        return false;
    errprintf (&why,
               "rank %jd on %s is of the instance %s (%s), rank %u of %s (%s): one of them has the wrong statedir",
               (intmax_t)hello->rank, hello->host, hello->instance, hello->name ? hello->name : "?", conf->rank,
               ours->uuid, ours->name);
    refuse (down, hello, STATE_REFUSED, "%s", why.text);
    if (conf->rank == 0 && hello->lived && is_wrong (down, (uint32_t)hello->rank))
        conf->ops->intruder (conf->arg, why.text);
    return true;
}

/* Whether brokers of these versions can be in one tree: their major versions are equal. */
static bool same_version (const char *a, const char *b)
{
    size_t len = strspn (a, "0123456789");

    return len > 0 && strspn (b, "0123456789") == len && strncmp (a, b, len) == 0;
}

/* Find the child that sent a hello.  NULL if the hello was refused, or without memory. */
static struct child *find_child (struct children *down, const struct hello *hello)
{
    struct overlay_conf *conf = &down->ov->conf;
    struct child *c;

    if (hello->topology && strcmp (hello->topology, conf->topo->name) != 0) {
        refuse (down, hello, EINVAL, "rank %jd has the topology %s, but rank %u has %s: all must have the same",
                (intmax_t)hello->rank, hello->topology, conf->rank, conf->topo->name);
        return NULL;
    }
    if (hello->size > 0 && hello->size != conf->topo->size) {
        refuse (down, hello, EINVAL,
                "rank %jd knows of %jd ranks, but rank %u of %u: all must have the same list of hosts",
                (intmax_t)hello->rank, (intmax_t)hello->size, conf->rank, conf->topo->size);
        return NULL;
    }
    if (hello->rank < 0 || hello->rank >= conf->topo->size
        || topo_child_toward (conf->topo, conf->rank, hello->rank) == TOPO_NONE) {
        refuse (down, hello, EINVAL, "rank %jd is not below rank %u", (intmax_t)hello->rank, conf->rank);
        return NULL;
    }
    if (hello->from.rank != hello->rank) {
        refuse (down, hello, EPERM, "the key of this connection is not rank %jd's", (intmax_t)hello->rank);
        return NULL;
    }
    if (!same_version (hello->version, PACKAGE_VERSION)) {
        refuse (down, hello, EPROTO, "rank %jd runs version %s, its parent %s", (intmax_t)hello->rank, hello->version,
                PACKAGE_VERSION);
        return NULL;
    }
    if (hello->protocol != HELLO_PROTOCOL) {
        char who[32];

        snprintf (who, sizeof (who), "rank %jd", (intmax_t)hello->rank);
        refuse (down, hello, EPROTO, OTHER_PROTOCOL, who, hello->version, hello->protocol, "its parent",
                PACKAGE_VERSION, HELLO_PROTOCOL);
        return NULL;
    }
    if (is_of_another (down, hello))
        return NULL;
    if (!(c = child_proper (down, hello->rank)) && !(c = adopted_child (down, hello->rank)))
        return NULL;
    if (child_is_online (c) && strcmp (c->uuid, hello->uuid) != 0) {
        refuse (down, hello, EADDRINUSE, "rank %u is served by %s on %s", c->peer.rank, c->uuid, c->host);
        return NULL;
    }
    return c;
}

/* --- joining ----------------------------------------------------------------------------------------- */

/* The health that a connected child reports for its subtree; "full" if it reports none. */
static enum health health_of (const char *status)
{
    for (enum health health = HEALTH_FULL; status && health <= HEALTH_DEGRADED; health++)
        if (strcmp (status, health_name (health)) == 0)
            return health;
    return HEALTH_FULL;
}

/* The number of joined brokers that a child reports for its subtree; 1 if it reports none. */
static uint32_t joined_of (const struct hello *hello)
{
    return hello->joined >= 1 && hello->joined <= UINT32_MAX ? (uint32_t)hello->joined : 1;
}

void child_take_in (struct child *c)
{
    struct overlay_conf *conf = &c->down->ov->conf;
    const struct hello *hello = &c->hello;
    idt_msg_t *msg;

    assert (hello->msg);
    child_remove (c, "it sends hello again");
    assert (!child_is_online (c));
    memcpy (c->peer.uuid, hello->from.identity, sizeof (c->peer.uuid));
    c->wire = hello->from.wire;
    c->line = hello->from.line;
    c->heard = link_now ();
    if ((msg = make_welcome (c)) && link_send (c->down->ov, c->wire, c->peer.uuid, NULL, NULL, msg) == 0
        && router_peer_add (conf->router, &c->peer) == 0) {
        channel_open (&c->channel, hello->link);
        child_set_health (c, health_of (hello->status));
        child_set_joined (c, joined_of (hello));
        log_printf (conf->log, c->adopted ? LOG_INFO : LOG_DEBUG, "overlay", "%s (rank %u) is taken in: %s on %s",
                    c->adopted ? "adopted child" : "child", c->peer.rank, c->uuid, c->host);
        conf->ops->child (conf->arg, c->peer.rank, true);
        c->down->is_known |= hello->instance != NULL; /* our instance: a hello with another one was refused */
        c->down->taken = c->down->taken > 0. ? c->down->taken : link_now ();
    }
    idt_msg_unref (msg);
    hello_clear (&c->hello);
}

/* Handle a valid hello.  If the hello is accepted, this takes over what 'hello' owns. */
static void hello_received (struct children *down, struct hello *hello)
{
    struct child *c;
    uint64_t bound;

    /* First handle the ends of connections that are known by now, because the number of a closed connection may be in
     * use again.
     */
    wire_read_ends (hello->from.wire);
    if (down->stopping) {
        refuse (down, hello, ESHUTDOWN, "rank %u is shutting down", down->ov->conf.rank);
        return;
    }
    if (!(c = find_child (down, hello)))
        return;
    down->hellos += c->adopted && !c->hello.msg;
    hello_clear (&c->hello);
    c->hello = *hello;
    *hello = (struct hello){ .msg = NULL };
    hello = &c->hello;
    link_read_clock (down->ov, &hello->came_us, &bound);
    hello->boot_us = link_boot_us ();
    snprintf (c->uuid, sizeof (c->uuid), "%s", hello->uuid);
    snprintf (c->host, sizeof (c->host), "%s", hello->host);
    if (!c->adopted && down->accept)
        child_take_in (c);
}

/* Adopts descendants for at most ADOPT_US in each turn, so that other messages are served in between. */
bool children_adopt (struct children *down)
{
    uint64_t since_us = 0;

    for (uint32_t i = down->count; down->accept && down->hellos > 0 && i < down->total; i++) {
        if (!down->children[i]->hello.msg)
            continue;
        child_take_in (down->children[i]);
        down->hellos--;
        if (clock_is_over (&since_us, ADOPT_US))
            break;
    }
    return down->accept && down->hellos > 0;
}

void children_stranger (struct children *down, idt_msg_t *msg, const struct wire_from *from)
{
    struct hello hello = { .msg = msg, .from = *from, .protocol = 1 };
    const char *topic = idt_msg_topic (msg);
    idt_error_t err;

    if (idt_msg_type (msg) != IDT_MSGTYPE_REQUEST || !topic || strcmp (topic, "overlay.hello") != 0)
        children_send_disconnect (down, from->wire, from->identity, EPROTO, "say hello first");
    else if (idt_msg_unpack (msg, &hello.o, &err, "{s:I s:s s:s s?i s:s s?s s?s s?i s?s s?I s?I s?I s?{s:s s:s s?b}}",
                             "rank", &hello.rank, "uuid", &hello.uuid, "version", &hello.version, "protocol",
                             &hello.protocol, "hostname", &hello.host, "topology", &hello.topology, "status",
                             &hello.status, "link", &hello.link, "stream", &hello.stream, "seq", &hello.seq, "size",
                             &hello.size, "joined", &hello.joined, "instance", "uuid", &hello.instance, "name",
                             &hello.name, "lived", &hello.lived)
             < 0)
        refuse (down, &hello, EPROTO, "malformed hello: %s", err.text);
    else if (strlen (hello.uuid) != IDT_MSG_UUID_LEN)
        refuse (down, &hello, EPROTO, "malformed hello: the uuid must have %d characters", IDT_MSG_UUID_LEN);
    else
        hello_received (down, &hello);
    hello_clear (&hello);
}
