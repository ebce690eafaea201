/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event_test.c - each event reaches each subscriber once and in order, or is reported as lost
 *
 * The second half runs chains of brokers.  Their links lose events, break and are restored, and the root restarts.  The
 * test checks what the subscribers of each broker get.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "broker/route/event.h"
#include "broker/route/router.h"
#include "libmodule/quota.h"
#include "test/tap.h"

#define STREAM "00000001-0000-4000-8000-000000000000"
#define OTHER "00000002-0000-4000-8000-000000000000"

static const struct idt_cred owner = { 100, IDT_ROLE_OWNER };

/* --- one broker ------------------------------------------------------------------------------------------- */

/* The events that a subscriber got, one per line: TOPIC SEQ PAYLOAD */
struct sink {
    struct peer peer;
    char text[4096];
    int count;
};

static int sink_send (void *arg, const idt_msg_t *msg)
{
    struct sink *s = arg;
    const char *payload = idt_msg_string (msg);
    size_t len = strlen (s->text);

    s->count++;
    snprintf (s->text + len, sizeof (s->text) - len, "%s %u%s%.200s\n", idt_msg_topic (msg), idt_msg_seq (msg),
              payload ? " " : "", payload ? payload : "");
    return 0;
}

static void sink_init (struct sink *s, unsigned n)
{
    memset (s, 0, sizeof (*s));
    snprintf (s->peer.uuid, sizeof (s->peer.uuid), "%08x-1111-4000-8000-000000000000", n);
    s->peer.kind = PEER_CLIENT;
    s->peer.send = sink_send;
    s->peer.arg = s;
}

/* How often the functions of struct event_ops were called. */
struct calls {
    int forwards, fetches, announces;
    uint64_t from;
    char stream[IDT_MSG_UUID_LEN + 1];
};

static void note_forward (void *arg, const idt_msg_t *msg)
{
    ((struct calls *)arg)->forwards++;
}

static void note_fetch (void *arg, const char *stream, uint64_t from)
{
    struct calls *c = arg;

    c->fetches++;
    c->from = from;
    snprintf (c->stream, sizeof (c->stream), "%s", stream);
}

static void note_announce (void *arg)
{
    ((struct calls *)arg)->announces++;
}

static const struct event_ops note_ops = {
    .forward = note_forward,
    .fetch = note_fetch,
    .announce = note_announce,
};

static idt_msg_t *make_event (const char *topic, uint32_t seq, const char *payload)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);

    idt_msg_set_topic (msg, topic);
    idt_msg_set_seq (msg, seq);
    if (payload)
        idt_msg_set_string (msg, payload);
    return msg;
}

static void receive (struct event *ev, const char *topic, uint32_t seq)
{
    idt_msg_t *msg = make_event (topic, seq, NULL);

    event_receive (ev, msg);
    idt_msg_unref (msg);
}

static void test_subscriptions (void)
{
    struct calls calls = { 0 };
    struct event *ev = event_create (true, STREAM, 100, &note_ops, &calls);
    struct sink a, b;
    char prefix[16], long_prefix[IDT_MSG_MAX_TOPIC + 2];
    int n = 0;

    sink_init (&a, 1);
    sink_init (&b, 2);
    event_subscribe (ev, &a.peer, owner, "x.");
    event_subscribe (ev, &a.peer, owner, "x.y");
    event_subscribe (ev, &b.peer, owner, "");
    ok (event_publish_new (ev, make_event ("x.y", 77, NULL)) == 1
            && event_publish_new (ev, make_event ("z", 77, NULL)) == 2 && event_seq (ev) == 2
            && strcmp (event_stream (ev), STREAM) == 0,
        "rank 0 numbers events 1, 2, ... and ignores the numbers that the events had");
    ok (strcmp (a.text, "x.y 1\n") == 0, "a peer with two matching subscriptions gets the event once");
    ok (strcmp (b.text, "x.y 1\nz 2\n") == 0, "a subscription to the empty prefix gets all topics");
    ok (calls.forwards == 2, "each event is forwarded to the children");
    ok (event_unsubscribe (ev, &a.peer, owner, "x") < 0 && errno == ENOENT,
        "a request to remove a subscription that does not exist fails");
    event_subscribe (ev, &a.peer, owner, "x.");
    event_unsubscribe (ev, &a.peer, owner, "x.y");
    event_unsubscribe (ev, &a.peer, owner, "x.");
    event_publish_new (ev, make_event ("x.q", 0, NULL));
    ok (a.count == 2, "after two subscriptions to a prefix, events arrive until both were removed");
    event_unsubscribe (ev, &a.peer, owner, "x.");
    event_publish_new (ev, make_event ("x.q", 0, NULL));
    ok (a.count == 2 && event_unsubscribe (ev, &a.peer, owner, "x.") < 0 && errno == ENOENT,
        "after both subscriptions to a prefix were removed no event arrives");
    event_forget (ev, &b.peer);
    event_forget (ev, &b.peer);
    event_publish_new (ev, make_event ("x.q", 0, NULL));
    ok (b.count == 4, "a forgotten peer gets no event");
    long_prefix[sizeof (long_prefix) - 1] = '\0';
    memset (long_prefix, 'x', sizeof (long_prefix) - 1);
    ok (event_subscribe (ev, &a.peer, owner, long_prefix) < 0 && errno == EINVAL,
        "a subscription to a prefix longer than any topic is refused");
    for (n = 0; n <= EVENT_MAX_SUBSCRIPTIONS; n++) {
        snprintf (prefix, sizeof (prefix), "p%d", n);
        if (event_subscribe (ev, &a.peer, owner, prefix) < 0)
            break;
    }
    ok (n == EVENT_MAX_SUBSCRIPTIONS && errno == ENOSPC, "a peer may have %d subscriptions", n);
    event_destroy (ev);
    event_destroy (NULL);
}

/* Publish an event of a user. */
static void say (struct event *ev, const char *topic, uint32_t userid, int flag)
{
    idt_msg_t *msg = make_event (topic, 0, NULL);

    idt_msg_set_cred (msg, (struct idt_cred){ userid, IDT_ROLE_USER });
    if (flag)
        idt_msg_set_flag (msg, flag);
    event_publish_new (ev, msg);
}

static void test_private (void)
{
    const struct idt_cred users[] = {
        owner, { 101, IDT_ROLE_USER | IDT_ROLE_GROUP }, { 102, IDT_ROLE_USER }, { 103, 0 }
    };
    struct calls calls = { 0 };
    struct event *ev = event_create (true, STREAM, 100, &note_ops, &calls);
    struct sink s[4];
    char prefix[16] = "p";
    int n = 0;

    for (int i = 0; i < 4; i++) {
        sink_init (&s[i], i);
        event_subscribe (ev, &s[i].peer, users[i], "");
    }
    say (ev, "x", 101, 0);
    say (ev, "y", 102, IDT_MSGFLAG_PRIVATE);
    say (ev, "compressor.z", 100, IDT_MSGFLAG_PRIVATE);
    ok (!strcmp (s[0].text, "x 1\ny 2\ncompressor.z 3\n"), "the owner receives all events");
    ok (!strcmp (s[1].text, "x 1\ncompressor.z 3\n"),
        "a group member receives the events of documents, and no private events of other users");
    ok (!strcmp (s[2].text, "x 1\ny 2\n"), "a guest receives only its own private events");
    ok (s[3].count == 0, "a user without a role receives no event");
    ok (event_unsubscribe (ev, &s[2].peer, owner, "") < 0 && errno == ENOENT,
        "a user cannot remove the subscription of another user");
    for (errno = 0; event_subscribe (ev, &s[2].peer, users[2], prefix) == 0; n++)
        snprintf (prefix, sizeof (prefix), "p%d", n);
    ok (n + 1 == (int)quota_rule (QUOTA_SUBSCRIPTIONS)->guest && errno == ENOSPC, "a guest may have %d subscriptions",
        n + 1);
    ok (event_subscribe (ev, &s[1].peer, users[2], "q") < 0 && errno == ENOSPC,
        "the quota of a guest's subscriptions counts all connections of the guest");
    ok (event_subscribe (ev, &s[1].peer, users[1], "q") == 0 && event_subscribe (ev, &s[0].peer, owner, "q") == 0,
        "the subscriptions of one guest do not count towards the quota of another user");
    event_unsubscribe (ev, &s[2].peer, users[2], "");
    ok (event_subscribe (ev, &s[1].peer, users[2], "q") == 0 && event_subscribe (ev, &s[2].peer, users[2], "q") < 0,
        "when a guest removes a subscription, it may make another one on another connection");
    event_forget (ev, &s[2].peer);
    ok (event_subscribe (ev, &s[2].peer, users[2], "q") == 0,
        "when a connection of a guest ends, the guest may make as many subscriptions on another");
    event_destroy (ev);
}

/* --- gaps ------------------------------------------------------------------------------------------------- */

/* Pass rank 0's response to the fetch that 'calls' has recorded to 'ev'. */
static void replay (struct event *root, struct event *ev, const struct calls *calls)
{
    void *buf;
    size_t size;

    if (event_window (root, calls->stream, calls->from, &buf, &size) < 0)
        event_replay (ev, NULL, 0);
    else {
        event_replay (ev, buf, size);
        free (buf);
    }
}

static void test_gap (void)
{
    struct calls none = { 0 }, calls = { 0 };
    struct event *root = event_create (true, STREAM, 100, &note_ops, &none);
    struct event *ev = event_create (false, "", 0, &note_ops, &calls);
    struct sink s;

    sink_init (&s, 1);
    event_subscribe (ev, &s.peer, owner, "");
    event_publish_new (root, make_event ("a", 0, NULL));
    event_newest (ev, STREAM, 1);
    ok (event_seq (ev) == 1 && calls.fetches == 0 && s.count == 0,
        "a broker that joins gets no events that were sent before");
    event_publish_new (root, make_event ("b", 0, NULL));
    event_publish_new (root, make_event ("c", 0, "{}"));
    receive (ev, "c", 3);
    ok (s.count == 0 && calls.fetches == 1 && calls.from == 2 && strcmp (calls.stream, STREAM) == 0,
        "an event that arrives after a gap is held back, and the missing events are fetched");
    receive (ev, "d", 4);
    event_newest (ev, STREAM, 4);
    ok (calls.fetches == 1, "the events of a gap are fetched with one request");
    event_publish_new (root, make_event ("d", 0, NULL));
    replay (root, ev, &calls);
    ok (strcmp (s.text, "b 2\nc 3 {}\nd 4\n") == 0 && calls.forwards == 3,
        "the events that filled a gap are delivered in order, to the children, too");
    receive (ev, "c", 3);
    ok (s.count == 3 && event_stats (ev).duplicates == 1, "an event that arrives twice is delivered once");
    event_publish_new (root, make_event ("e", 0, NULL));
    event_newest (ev, STREAM, 5);
    ok (calls.fetches == 2 && calls.from == 5, "a gap is also detected by the newest number that the parent reports");
    event_replay (ev, NULL, 0);
    ok (s.count == 3, "a failed fetch of events changes nothing");
    event_newest (ev, STREAM, 5);
    ok (calls.fetches == 3, "a failed fetch of events is repeated after the next message from the parent");
    replay (root, ev, &calls);
    ok (strstr (s.text, "e 5\n") && event_stats (ev).recovered == 4 && event_stats (ev).lost == 0,
        "a repeated fetch of events succeeds");
    event_destroy (ev);
    event_destroy (root);
}

static void test_lost (void)
{
    struct calls none = { 0 }, calls = { 0 };
    struct event *root = event_create (true, STREAM, 4, &note_ops, &none);
    struct event *ev = event_create (false, "", 0, &note_ops, &calls);
    struct sink s;

    sink_init (&s, 1);
    event_subscribe (ev, &s.peer, owner, "x");
    event_newest (ev, STREAM, 0);
    for (int i = 0; i < 10; i++)
        event_publish_new (root, make_event ("x", 0, NULL));
    event_newest (ev, STREAM, 10);
    replay (root, ev, &calls);
    ok (strncmp (s.text, "event.lost 0 {\"stream\":\"" STREAM "\",\"from\":1,\"to\":6}\nx 7\n", 80) == 0
            && event_seq (ev) == 10 && s.count == 5,
        "events that are no longer in the parent's window are reported as lost to all subscribers, before the "
        "events that are still in it");
    ok (event_stats (ev).lost == 6 && event_stats (ev).delivered == 4, "lost events are counted");
    event_newest (ev, OTHER, 2);
    ok (strstr (s.text, "event.lost 0 {\"stream\":\"" STREAM "\",\"from\":11,\"to\":11}\n") && calls.announces == 2
            && calls.from == 1 && strcmp (calls.stream, OTHER) == 0,
        "after a change of the stream, the end of the old stream is reported as lost, and the new stream is fetched "
        "from event 1");
    event_destroy (ev);
    event_destroy (root);
}

static void test_large (void)
{
    struct calls none = { 0 }, calls = { 0 };
    struct event *root = event_create (true, STREAM, 1000, &note_ops, &none);
    struct event *ev = event_create (false, "", 0, &note_ops, &calls);
    size_t size = 400000;
    char *payload = malloc (size + 1);
    int before;

    memset (payload, 'x', size);
    payload[size] = '\0';
    event_newest (ev, STREAM, 0);
    for (int i = 0; i < 10; i++)
        event_publish_new (root, make_event ("x", 0, payload));
    event_newest (ev, STREAM, 10);
    do {
        before = calls.fetches;
        replay (root, ev, &calls);
    } while (calls.fetches > before);
    ok (event_seq (ev) == 10 && event_stats (ev).lost == 0 && calls.fetches == 4,
        "the events of a long gap are fetched with several requests of a bounded size (%d)", calls.fetches);
    for (int i = 0; i < 200; i++)
        event_publish_new (root, make_event ("x", 0, payload));
    event_newest (ev, STREAM, 210);
    replay (root, ev, &calls);
    ok (event_stats (ev).lost == 210 - 10 - EVENT_REPLAY_BYTES / (size + 26 + 5 + 320),
        "the window of events is limited in bytes (%ju lost)", (uintmax_t)event_stats (ev).lost);
    free (payload);
    event_destroy (ev);
    event_destroy (root);
}

/* Event numbers continue above 2^32, although messages carry only the lower 32 bits. */
static void test_wrap (void)
{
    struct calls none = { 0 }, calls = { 0 };
    struct event *root = event_create (true, STREAM, 4, &note_ops, &none);
    struct event *ev = event_create (false, "", 100, &note_ops, &calls);
    uint64_t start = UINT32_MAX - 2, seq;
    struct sink s;

    sink_init (&s, 1);
    event_subscribe (ev, &s.peer, owner, "x");
    event_start_after (root, start);
    event_newest (ev, STREAM, start);
    for (int i = 1; i <= 5; i++) {
        event_publish_new (root, make_event ("x", 0, NULL));
        receive (ev, "x", (uint32_t)event_seq (root));
    }
    ok (strcmp (s.text, "x 4294967294\nx 4294967295\nx 0\nx 1\nx 2\n") == 0 && event_seq (ev) == start + 5,
        "the numbers of events continue after 2^32 - 1");
    receive (ev, "x", UINT32_MAX);
    ok (s.count == 5 && event_stats (ev).duplicates == 1,
        "a repeated event with a number before the wrap at 2^32 is recognized");
    event_start_after (root, start);
    event_destroy (ev);
    ev = event_create (false, "", 100, &note_ops, &calls);
    event_subscribe (ev, &s.peer, owner, "x");
    event_newest (ev, STREAM, start);
    for (int i = 1; i <= 6; i++)
        event_publish_new (root, make_event ("x", 0, NULL));
    event_newest_low (ev, STREAM, (uint32_t)event_seq (root));
    ok (calls.fetches == 1 && calls.from == start + 1,
        "a gap across the wrap at 2^32 is detected by the newest number that the parent reports");
    replay (root, ev, &calls);
    ok (event_seq (ev) == start + 6 && event_stats (ev).lost == 2 && event_stats (ev).recovered == 4
            && strstr (s.text, "\"from\":4294967294,\"to\":4294967295}\nx 0\nx 1\nx 2\nx 3\n"),
        "the events of a gap across the wrap at 2^32 are fetched, and lost events are reported");
    ok (event_after (ev, start + 3, &seq) && seq == start + 4 && !event_after (ev, start + 6, &seq),
        "the events of a gap across the wrap at 2^32 are kept for children");
    ok (event_after (ev, start, &seq) && seq == start + 3,
        "a reader that requests events older than the window gets the oldest event in it");
    event_destroy (ev);
    event_destroy (root);
}

static int deaf_send (void *arg, const idt_msg_t *msg)
{
    errno = ENOBUFS;
    return -1;
}

/* When rank 0 restarts, missed events are still reported with the name of the old stream. */
static void test_missed_streams (void)
{
    struct calls calls = { 0 };
    struct event *ev = event_create (false, "", 0, &note_ops, &calls);
    struct sink s;

    sink_init (&s, 1);
    s.peer.send = deaf_send;
    event_subscribe (ev, &s.peer, owner, "x");
    event_newest (ev, STREAM, 0);
    receive (ev, "x", 1);
    receive (ev, "x", 2);
    event_newest (ev, OTHER, 0);
    receive (ev, "x", 1);
    s.peer.send = sink_send;
    receive (ev, "x", 2);
    ok (strcmp (s.text, "event.lost 0 {\"stream\":\"" STREAM "\",\"from\":1,\"to\":3}\n"
                        "event.lost 0 {\"stream\":\"" OTHER "\",\"from\":1,\"to\":1}\nx 2\n")
            == 0,
        "missed events of one stream are not reported as lost events of the next stream: %s", s.text);
    event_destroy (ev);
}

/* Each subscriber that has missed an event gets a report. */
static void test_missed (void)
{
    struct calls calls = { 0 };
    struct event *ev = event_create (true, STREAM, 4, &note_ops, &calls);
    struct sink s;
    idt_msg_t *msg = make_event ("x", 0, NULL);
    uint64_t seq;

    sink_init (&s, 1);
    event_subscribe (ev, &s.peer, owner, "x");
    event_publish_new (ev, make_event ("x", 0, NULL));
    s.peer.send = deaf_send;
    event_publish_new (ev, make_event ("x", 0, NULL));
    event_publish_new (ev, make_event ("y", 0, NULL));
    event_publish_new (ev, make_event ("x", 0, NULL));
    s.peer.send = sink_send;
    event_publish_new (ev, make_event ("x", 0, NULL));
    ok (strcmp (s.text, "x 1\nevent.lost 0 {\"stream\":\"" STREAM "\",\"from\":2,\"to\":4}\nx 5\n") == 0,
        "a subscriber for which an event could not be queued gets an event.lost before its next event");
    idt_msg_route_clear (msg);
    for (int i = 0; i < 100; i++)
        idt_msg_route_push (msg, STREAM);
    ok (event_publish_new (ev, msg) == 6 && idt_msg_route_count (event_after (ev, 5, &seq)) == 0,
        "the events that a broker keeps have no routes");
    msg = make_event ("x", 0, NULL);
    memset (idt_msg_alloc_payload (msg, EVENT_MAX_BYTES), 0, EVENT_MAX_BYTES);
    ok (event_publish_new (ev, msg) == 0 && errno == EMSGSIZE, "an event larger than EVENT_MAX_BYTES is refused");
    event_destroy (ev);
}

/* Rank 0's response is truncated at each byte, and gets flipped bits. This causes no crash, and no event out of order.
 */
static void test_damaged (void)
{
    struct calls none = { 0 };
    struct event *root = event_create (true, STREAM, 100, &note_ops, &none);
    unsigned char *buf;
    size_t size;
    bool good = true;
    unsigned seed = 1;

    for (int i = 0; i < 5; i++)
        event_publish_new (root, make_event ("x", 0, "{\"a\":1}"));
    event_window (root, STREAM, 1, (void **)&buf, &size);
    for (size_t i = 0; i < size + 2000; i++) {
        struct calls calls = { 0 };
        struct event *ev = event_create (false, "", 0, &note_ops, &calls);
        unsigned char *copy = malloc (size);
        struct sink s;

        sink_init (&s, 1);
        memcpy (copy, buf, size);
        event_newest (ev, STREAM, 0);
        event_subscribe (ev, &s.peer, owner, "x");
        if (i < size)
            event_replay (ev, copy, i);
        else {
            copy[8 + rand_r (&seed) % (size - 8)] ^= 1 << rand_r (&seed) % 8;
            event_replay (ev, copy, size);
        }
        good = good && s.count <= 5 && event_stats (ev).lost == 0;
        event_destroy (ev);
        free (copy);
    }
    ok (good, "a malformed response to a fetch delivers no wrong event");
    free (buf);
    ok (event_window (root, OTHER, 1, (void **)&buf, &size) < 0 && errno == ENOENT,
        "a request for the window of another stream fails with ENOENT");
    ok (event_window (root, STREAM, 77, (void **)&buf, &size) == 0 && size == 8,
        "a request for events after the newest one returns no events");
    free (buf);
    event_destroy (root);
}

/* --- a chain of brokers ------------------------------------------------------------------------------------- */

#define NODES 4
#define QUEUE 4096
#define STEPS 6000
#define MAX_ASKS 20000
#define WINDOW 20

struct item {
    enum { ITEM_EVENT, ITEM_POSITION, ITEM_ANSWER } kind;
    const idt_msg_t *msg;              /* for ITEM_EVENT */
    char stream[IDT_MSG_UUID_LEN + 1]; /* for ITEM_POSITION */
    uint64_t seq;
    struct ask *ask; /* for ITEM_ANSWER */
    void *buf;       /* NULL: the fetch has failed */
    size_t size;
};

/* A fetch that a node has sent to the root, or the root's response on its way down. */
struct ask {
    int dest; /* the node that fetches; -1: the fetch is answered */
    int at;   /* the response is on the link to this node; 0: the root has sent no response yet */
    char stream[IDT_MSG_UUID_LEN + 1];
    uint64_t from;
};

/* The stream and the number of the next event that a subscriber must get. */
struct watch {
    struct peer peer;
    struct chain *chain;
    int stream;
    uint64_t expected;
    bool may_switch;
    bool joined;
};

struct node {
    struct chain *chain;
    int i;
    struct event *ev;
    struct item *link; /* queue of items from the parent */
    int head, count;
    bool connected;
    struct watch watch;
};

struct chain {
    struct node nodes[NODES];
    struct ask *asks;
    int nasks;
    unsigned seed;
    uint64_t start; /* number after which the first stream starts */
    int streams;
    int wrong;
    int lost, events;
};

static int draw (struct chain *c, int n)
{
    return rand_r (&c->seed) % n;
}

static void wrong (struct watch *w, const char *what, const idt_msg_t *msg)
{
    if (w->chain->wrong++ < 5)
        diag ("%s: %s %s, expected number %ju of stream %d", what, idt_msg_topic (msg),
              idt_msg_string (msg) ? idt_msg_string (msg) : "", (uintmax_t)w->expected, w->stream);
}

static void watch_stream (struct watch *w, int stream, const idt_msg_t *msg)
{
    if (stream == w->stream)
        return;
    if (stream < w->stream || !w->may_switch)
        wrong (w, "a new stream without a report", msg);
    w->stream = stream;
    w->expected = 1;
}

static void watch_lost (struct watch *w, const idt_msg_t *msg)
{
    const char *uuid;
    json_int_t from, to;
    json_t *o = json_loads (idt_msg_string (msg), 0, NULL);

    if (json_unpack (o, "{s:s s:I s:I}", "stream", &uuid, "from", &from, "to", &to) < 0)
        bail_out ("event.lost is malformed");
    watch_stream (w, strtol (uuid, NULL, 16), msg);
    if ((uint64_t)from != w->expected || to < from)
        wrong (w, "lost", msg);
    w->expected = to + 1;
    w->may_switch = true;
    w->chain->lost++;
    json_decref (o);
}

static int watch_send (void *arg, const idt_msg_t *msg)
{
    struct watch *w = arg;
    int stream;
    uintmax_t seq;

    if (strcmp (idt_msg_topic (msg), "event.lost") == 0) {
        watch_lost (w, msg);
        return 0;
    }
    if (sscanf (idt_msg_topic (msg), "e.%d.%ju", &stream, &seq) != 2)
        bail_out ("an event is malformed");
    watch_stream (w, stream, msg);
    if (seq != w->expected || (uint32_t)seq != idt_msg_seq (msg))
        wrong (w, "event", msg);
    w->expected = seq + 1;
    w->may_switch = false;
    w->chain->events++;
    return 0;
}

/* --- links */

static void link_push (struct node *to, const struct item *item)
{
    if (to->count == QUEUE)
        bail_out ("a link is full");
    to->link[(to->head + to->count++) % QUEUE] = *item;
}

static void item_free (struct item *item)
{
    idt_msg_unref (item->msg);
    free (item->buf);
}

static struct node *child_of (struct node *n)
{
    return n->i + 1 < NODES && n[1].connected ? &n[1] : NULL;
}

static void chain_forward (void *arg, const idt_msg_t *msg)
{
    struct node *n = arg, *child = child_of (n);

    if (child)
        link_push (child, &(struct item){ .kind = ITEM_EVENT, .msg = idt_msg_copy (msg, true) });
}

static void send_position (struct node *n, struct node *child)
{
    struct item item = { .kind = ITEM_POSITION, .seq = event_seq (n->ev) };

    snprintf (item.stream, sizeof (item.stream), "%s", event_stream (n->ev));
    link_push (child, &item);
}

static void chain_announce (void *arg)
{
    struct node *n = arg, *child = child_of (n);

    if (child)
        send_position (n, child);
}

static void chain_fetch (void *arg, const char *stream, uint64_t from)
{
    struct node *n = arg;
    struct ask *ask = &n->chain->asks[n->chain->nasks++];

    if (n->chain->nasks == MAX_ASKS)
        bail_out ("too many fetches");
    *ask = (struct ask){ .dest = n->i, .from = from };
    snprintf (ask->stream, sizeof (ask->stream), "%s", stream);
}

static const struct event_ops chain_ops = {
    .forward = chain_forward,
    .fetch = chain_fetch,
    .announce = chain_announce,
};

/* If all links up to the root are connected, the root responds to the fetches of a node. */
static void serve_fetches (struct chain *c, struct node *n)
{
    for (int i = 1; i <= n->i; i++)
        if (!c->nodes[i].connected)
            return;
    for (struct ask *ask = c->asks; ask < c->asks + c->nasks; ask++) {
        struct item item = { .kind = ITEM_ANSWER, .ask = ask };

        if (ask->dest != n->i || ask->at > 0)
            continue;
        ask->at = 1;
        if (event_window (c->nodes[0].ev, ask->stream, ask->from, &item.buf, &item.size) < 0)
            item.buf = NULL;
        link_push (&c->nodes[1], &item);
    }
}

/* A response arrives at a node.  The response is for this node, or is passed on, or is dropped because the fetch was
 * given up.
 */
static void take_answer (struct node *n, struct item *item)
{
    struct ask *ask = item->ask;
    struct node *child = child_of (n);

    if (ask->dest == n->i && ask->at == n->i) {
        ask->dest = -1;
        event_replay (n->ev, item->buf, item->size);
    }
    else if (ask->at == n->i && child) {
        ask->at++;
        link_push (child, item);
        item->buf = NULL;
    }
    item_free (item);
}

static void take_item (struct node *n, bool reliable)
{
    struct item item;

    if (!n->connected || n->count == 0)
        return;
    item = n->link[n->head];
    n->head = (n->head + 1) % QUEUE;
    n->count--;
    if (item.kind == ITEM_ANSWER) {
        take_answer (n, &item);
        return;
    }
    if (item.kind == ITEM_POSITION)
        event_newest_low (n->ev, item.stream, (uint32_t)item.seq);
    else if (reliable || draw (n->chain, 20) > 0)
        event_receive (n->ev, item.msg);
    item_free (&item);
}

/* Break the connection of a node to its parent.  Items on this connection are lost, and the fetches that were sent over
 * it fail.
 */
static void disconnect (struct node *n)
{
    struct chain *c = n->chain;
    int nasks = c->nasks;

    n->connected = false;
    for (; n->count > 0; n->count--, n->head = (n->head + 1) % QUEUE)
        item_free (&n->link[n->head]);
    for (struct ask *ask = c->asks; ask < c->asks + nasks; ask++) {
        if (ask->dest < n->i || ask->at > n->i)
            continue;
        ask->at = n->i;
        take_answer (n, &(struct item){ .kind = ITEM_ANSWER, .ask = ask });
    }
}

/* Connect a node to its parent, which reports its position in hello. */
static void connect_node (struct node *n)
{
    struct node *parent = n - 1;

    if (n->connected || (parent->i > 0 && (!parent->connected || !event_stream (parent->ev)[0])))
        return;
    n->connected = true;
    event_newest (n->ev, event_stream (parent->ev), event_seq (parent->ev));
    if (!n->watch.joined) {
        n->watch.joined = true;
        n->watch.stream = strtol (event_stream (n->ev), NULL, 16);
        n->watch.expected = event_seq (n->ev) + 1;
    }
}

static void start_root (struct chain *c)
{
    char uuid[IDT_MSG_UUID_LEN + 1];

    snprintf (uuid, sizeof (uuid), "%08x-0000-4000-8000-000000000000", ++c->streams);
    c->nodes[0].ev = event_create (true, uuid, WINDOW, &chain_ops, &c->nodes[0]);
    if (c->streams == 1)
        event_start_after (c->nodes[0].ev, c->start);
}

static void publish (struct chain *c)
{
    char topic[64];

    snprintf (topic, sizeof (topic), "e.%d.%ju", c->streams, (uintmax_t)event_seq (c->nodes[0].ev) + 1);
    event_publish_new (c->nodes[0].ev, make_event (topic, 0, NULL));
}

static void restart_root (struct chain *c)
{
    if (c->nodes[1].connected)
        disconnect (&c->nodes[1]);
    event_destroy (c->nodes[0].ev);
    start_root (c);
}

static void step (struct chain *c)
{
    struct node *n = &c->nodes[1 + draw (c, NODES - 1)];
    int what = draw (c, 1000);

    if (what < 200)
        publish (c);
    else if (what < 800)
        take_item (n, false);
    else if (what < 900)
        serve_fetches (c, n);
    else if (what < 950 && child_of (n - 1))
        send_position (n - 1, n);
    else if (what < 990)
        connect_node (n);
    else if (what < 998 && n->connected)
        disconnect (n);
    else if (what == 999)
        restart_root (c);
}

/* Run until all messages have arrived. */
static void settle (struct chain *c)
{
    for (int round = 0; round < 200; round++) {
        for (int i = 1; i < NODES; i++) {
            struct node *n = &c->nodes[i];

            connect_node (n);
            if (n->connected)
                send_position (n - 1, n);
            while (n->count > 0)
                take_item (n, true);
            serve_fetches (c, n);
        }
    }
}

static void test_chain (unsigned seed)
{
    struct chain c = { .seed = seed, .start = seed % 2 ? UINT32_MAX - seed % 50 : 0 };
    bool complete = true;

    c.asks = calloc (MAX_ASKS, sizeof (c.asks[0]));
    start_root (&c);
    for (int i = 0; i < NODES; i++) {
        struct node *n = &c.nodes[i];

        n->chain = &c;
        n->i = i;
        n->link = calloc (QUEUE, sizeof (n->link[0]));
        if (i > 0)
            n->ev = event_create (false, "", 0, &chain_ops, n);
        n->watch.chain = &c;
        n->watch.peer = (struct peer){ .kind = PEER_CLIENT, .send = watch_send, .arg = &n->watch };
        snprintf (n->watch.peer.uuid, sizeof (n->watch.peer.uuid), "%036d", i);
        if (i > 0)
            event_subscribe (n->ev, &n->watch.peer, owner, "");
    }
    for (int i = 0; i < STEPS; i++)
        step (&c);
    publish (&c);
    settle (&c);
    for (int i = 1; i < NODES; i++)
        complete = complete && c.nodes[i].watch.stream == c.streams
                   && c.nodes[i].watch.expected == event_seq (c.nodes[0].ev) + 1;
    if (seed <= 3)
        diag ("history %u: %d streams, %d events seen, %d reports of loss", seed, c.streams, c.events, c.lost);
    if (c.wrong > 0 || !complete)
        ok (false, "history %u: each subscriber sees each event once, in order, or event.lost (%d wrong%s)", seed,
            c.wrong, complete ? "" : ", not all arrived");
    for (int i = 0; i < NODES; i++) {
        struct node *n = &c.nodes[i];

        event_destroy (n->ev);
        for (; n->count > 0; n->count--, n->head = (n->head + 1) % QUEUE)
            item_free (&n->link[n->head]);
        free (n->link);
    }
    free (c.asks);
}

int main (void)
{
    int failed;

    test_subscriptions ();
    test_private ();
    test_gap ();
    test_lost ();
    test_large ();
    test_wrap ();
    test_missed ();
    test_missed_streams ();
    test_damaged ();
    failed = tap_failed;
    for (unsigned seed = 1; seed <= 200; seed++)
        test_chain (seed);
    ok (tap_failed == failed,
        "in 200 histories of a chain each subscriber sees each event once, in order, or event.lost");
    return done_testing ();
}
