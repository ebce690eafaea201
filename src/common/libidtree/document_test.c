/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_test.c - documents against a server that orders ranges, and fails when the test wants it to
 *
 * The server's thread orders ranges; the test's thread has the documents. Data of both is in 'struct orderer', under
 * its lock.
 *
 * document_test.t [SEED [COUNT]]: run only the random histories with COUNT seeds from SEED on (COUNT is 1 by default)
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/document.h>
#include <idtree/rpc.h>

#include "test/test_server.h"
#include "test/tap.h"

#define NAME "drawing"
#define TOPIC "compressor.ranges." NAME
#define RANGES_MAX 20000
#define WAIT_MS 60000 /* far longer than any test needs: a test that hangs ends */

struct orderer {
    pthread_mutex_t lock;
    struct idcomp *c; /* all ordered ranges */
    char uuid[IDCOMP_UUID_TEXT_MAX];
    char *range[RANGES_MAX]; /* the range of number 1 is at [0] */
    int64_t n;
    int64_t window; /* number of latest ranges that fetch can return */
    uint64_t random;

    int joins, submits, fetches; /* requests received */
    int fail;                    /* this number of submits from now on ... */
    int fail_fetches;            /* ... and this number of fetches ... */
    int errnum;                  /* ... fail with this errno, and nothing is ordered */
    bool mute;                   /* no events are sent */
    bool deaf;                   /* submits are ordered, but the connection is closed without a response */
    bool strange;                /* responses are malformed */
    unsigned faults;             /* percentage of requests that have a random fault */
};

static struct orderer *orderer_create (void)
{
    struct orderer *o = calloc (1, sizeof (*o));

    if (!o || !(o->c = idcomp_create ("00000000-0000-4000-8000-000000000000", IDCOMP_ORDERER)))
        bail_out ("out of memory");
    pthread_mutex_init (&o->lock, NULL);
    strcpy (o->uuid, "6a0b79c1-7c4f-4c5b-9f3e-0123456789ab");
    o->window = RANGES_MAX;
    return o;
}

/* A number that the server's thread counts. */
static int peek (struct orderer *o, const int *number)
{
    pthread_mutex_lock (&o->lock);
    int n = *number;
    pthread_mutex_unlock (&o->lock);
    return n;
}

static void orderer_destroy (struct orderer *o)
{
    for (int64_t i = 0; i < o->n; i++)
        free (o->range[i]);
    idcomp_destroy (o->c);
    pthread_mutex_destroy (&o->lock);
    free (o);
}

static char *state_of (struct orderer *o)
{
    size_t size = idcomp_save_size (o->c, IDCOMP_WITHOUT_LOCAL);
    char *form = malloc (size), *text = malloc (IDCOMP_BASE64_TEXT_SIZE (size));

    if (!form || !text || idcomp_save (o->c, IDCOMP_WITHOUT_LOCAL, form, size) < 0)
        bail_out ("save");
    idcomp_base64_format (form, size, text, IDCOMP_BASE64_TEXT_SIZE (size));
    free (form);
    return text;
}

static char *dump_new (json_t *o)
{
    char *s = json_dumps (o, JSON_COMPACT);

    json_decref (o);
    return s;
}

static void join (struct orderer *o, struct test_reply *reply)
{
    char *state = state_of (o);

    o->joins++;
    reply->text = dump_new (json_pack ("{s:s s:s s:I s:s}", "document", NAME, "uuid", o->uuid, "seq", (json_int_t)o->n,
                                       "state", o->strange ? "*" : state));
    free (state);
}

static json_t *ranges_from (struct orderer *o, int64_t from)
{
    json_t *a = json_array ();

    for (int64_t seq = from; seq <= o->n && json_array_size (a) < 100; seq++)
        json_array_append_new (a, json_loads (o->range[seq - 1], 0, NULL));
    return a;
}

static void fetch (struct orderer *o, json_int_t from, struct test_reply *reply)
{
    json_t *answer = json_pack ("{s:s s:s s:I}", "document", NAME, "uuid", o->uuid, "newest", (json_int_t)o->n);

    o->fetches++;
    if (o->fail_fetches > 0) {
        o->fail_fetches--;
        reply->errnum = o->errnum;
        json_decref (answer);
        return;
    }
    if (from > o->n - o->window) {
        json_object_set_new (answer, "seq", json_integer (from));
        json_object_set_new (answer, "ranges", ranges_from (o, from));
    }
    else {
        char *state = state_of (o);
        json_object_set_new (answer, "seq", json_integer (o->n));
        json_object_set_new (answer, "state", json_string (state));
        free (state);
    }
    if (o->strange)
        json_object_set_new (answer, "newest", json_string ("many"));
    reply->text = dump_new (answer);
}

/* Order a range if it is new. Returns 0, or an errno. */
static int order (struct orderer *o, const json_t *r)
{
    struct idcomp_range range;
    char *text = json_dumps (r, JSON_COMPACT);

    if (idcomp_range_parse (text, strlen (text), &range, NULL) < 0)
        bail_out ("the range is malformed");
    bool repeats = idcomp_expected (o->c, range.session) >= range.first + range.count;
    int rc = repeats ? 0 : idcomp_finalize (o->c, &range);
    int errnum = rc < 0 ? idcomp_errno (errno) : 0;
    idcomp_range_fini (&range);
    if (rc == 0 && !repeats && o->n < RANGES_MAX)
        o->range[o->n++] = text;
    else
        free (text);
    return errnum;
}

static void submit (struct orderer *o, json_t *request, struct test_reply *reply)
{
    const json_t *ranges = json_object_get (request, "ranges");
    int64_t before = o->n;

    o->submits++;
    if (o->fail > 0) {
        o->fail--;
        reply->errnum = o->errnum;
        reply->text = strdup ("not now");
        return;
    }
    reply->errnum = order (o, json_array_get (ranges, 0));
    if (o->n > before && !o->mute) {
        reply->event_topic = strdup (TOPIC);
        reply->event = dump_new (json_pack ("{s:s s:s s:I s:o}", "document", NAME, "uuid", o->uuid, "seq",
                                            (json_int_t)(before + 1), "ranges", ranges_from (o, before + 1)));
    }
    if (reply->errnum == 0)
        reply->text = dump_new (json_pack ("{s:I}", "seq", (json_int_t)o->n));
    reply->close = o->deaf;
}

static unsigned pick (uint64_t *random, unsigned n)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (unsigned)(*random >> 20) % n;
}

/* Add a fault to some replies at random. */
static void spoil (struct orderer *o, struct test_reply *reply)
{
    if (pick (&o->random, 100) >= o->faults)
        return;
    switch (pick (&o->random, 3)) {
    case 0: /* the event is lost */
        free (reply->event_topic);
        reply->event_topic = NULL;
        break;
    case 1: /* the response is lost */
        free (reply->text);
        reply->text = NULL;
        reply->errnum = EHOSTUNREACH;
        break;
    default:
        reply->close = true;
    }
}

static bool serve (void *arg, const idt_msg_t *msg, struct test_reply *reply)
{
    struct orderer *o = arg;
    const char *topic = idt_msg_topic (msg);
    json_int_t from = 0;
    json_t *request = idt_msg_json (msg, NULL);

    pthread_mutex_lock (&o->lock);
    bool known = strncmp (topic, "compressor.", 11) == 0 && request != NULL;
    if (known && strcmp (topic, "compressor.join") == 0)
        join (o, reply);
    else if (known && strcmp (topic, "compressor.fetch") == 0 && json_unpack (request, "{s:I}", "from", &from) == 0)
        fetch (o, from, reply);
    else if (known && strcmp (topic, "compressor.submit") == 0)
        submit (o, request, reply);
    if (known && o->faults > 0)
        spoil (o, reply);
    pthread_mutex_unlock (&o->lock);
    json_decref (request);
    return known;
}

/* --- the test's side -------------------------------------------------------------------------- */

static struct orderer *o;
static struct test_server *server;

#define LOCKED(statement)                \
    do {                                 \
        pthread_mutex_lock (&o->lock);   \
        statement;                       \
        pthread_mutex_unlock (&o->lock); \
    } while (0)

static void start (void)
{
    o = orderer_create ();
    server = test_server_create (0);
    test_server_plug (server, serve, o);
}

static void stop (void)
{
    test_server_destroy (server);
    orderer_destroy (o);
}

static idt_document_t *open_new (idt_t *h)
{
    idt_error_t error;
    idt_document_t *d = idt_document_open (h, NAME, WAIT_MS, &error);

    if (!d)
        bail_out (error.text);
    return d;
}

static int64_t make (idt_document_t *d, int n)
{
    int64_t id = 0;

    for (int i = 0; i < n; i++)
        if (idcomp_generate (idt_document_ids (d), &id) < 0)
            bail_out (idcomp_strerror (errno));
    return id;
}

static struct idcomp_uuid uuid_of (idt_document_t *d, int64_t id)
{
    struct idcomp_uuid uuid;

    if (idcomp_decompress (idt_document_ids (d), id, &uuid) < 0)
        bail_out (idcomp_strerror (errno));
    return uuid;
}

/* The id in op space, the form in which 'd' sends it. */
static int64_t op_of (idt_document_t *d, int64_t id)
{
    int64_t op;

    if (idcomp_to_op (idt_document_ids (d), id, &op) < 0)
        bail_out (idcomp_strerror (errno));
    return op;
}

/* Whether 'id' of document 'a' is final and has the same UUID in document 'b'. */
static bool means_the_same (idt_document_t *a, int64_t id, idt_document_t *b)
{
    struct idcomp_uuid mine = uuid_of (a, id), theirs;
    int64_t there;

    return op_of (a, id) >= 0 && idcomp_to_session (idt_document_ids (b), op_of (a, id), NULL, &there) == 0
           && idcomp_decompress (idt_document_ids (b), there, &theirs) == 0
           && memcmp (&mine, &theirs, sizeof (mine)) == 0;
}

static unsigned requests (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "test.count", NULL, IDT_NODEID_ANY, 0);
    int count;

    if (!f || idt_rpc_get_unpack (f, "{s:i}", "count", &count) < 0)
        bail_out ("test.count");
    idt_future_destroy (f);
    return (unsigned)count;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void test_names (idt_t *h)
{
    static const char *const bad[] = { "", ".x", "-x", "a b", "a/b", "a*", "\xc3\xa4", NULL };
    char name[IDT_DOCUMENT_NAME_MAX + 2];
    unsigned before = requests (h);
    bool refused = true;

    for (int i = 0; bad[i]; i++)
        refused = refused && !idt_document_open (h, bad[i], WAIT_MS, NULL) && errno == EINVAL;
    memset (name, 'n', sizeof (name) - 1);
    name[sizeof (name) - 1] = '\0';
    refused = refused && !idt_document_open (h, name, WAIT_MS, NULL) && errno == EINVAL;
    ok (refused, "names that are malformed or too long are refused");
    ok (requests (h) == before + 1, "a document with an invalid name is refused without a request to the broker");
}

static void test_open (void)
{
    idt_error_t error;

    start ();
    idt_t *h = test_server_open (server);
    test_names (h);
    LOCKED (o->strange = true);
    ok (!idt_document_open (h, NAME, WAIT_MS, &error) && strstr (error.text, "cannot read the response"),
        "a malformed response to a join is reported: %s", error.text);
    LOCKED (o->strange = false);
    idt_document_t *d = open_new (h);
    ok (strcmp (idt_document_name (d), NAME) == 0 && strcmp (idt_document_uuid (d), o->uuid) == 0
            && idt_document_seq (d) == 0 && idt_document_settled (d),
        "a new document is empty");
    ok (idt_document_errnum (d) == 0 && !idt_document_error (d), "a new document has no error");
    idt_document_close (d);
    idt_document_close (NULL);
    idt_close (h);
    test_server_plug (server, NULL, NULL);
    h = test_server_open (server);
    ok (!idt_document_open (h, NAME, WAIT_MS, &error) && errno == ENOSYS && strstr (error.text, "compressor module"),
        "opening a document without a compressor module fails with ENOSYS: %s", error.text);
    idt_close (h);
    stop ();
}

/* --- ids -------------------------------------------------------------------------------------- */

static void test_ids (void)
{
    start ();
    idt_t *h = test_server_open (server);
    idt_document_t *a = open_new (h), *b = open_new (h);
    unsigned before = requests (h);

    int64_t id = make (a, 1000);
    struct idcomp_uuid uuid = uuid_of (a, id);
    ok (id == -1000 && requests (h) == before + 1, "1000 ids of a document are made and converted without a message");
    ok (idt_document_settle (a, WAIT_MS) == 0 && idt_document_settled (a), "all ids of a document become final");
    ok (peek (o, &o->submits) == 1 && peek (o, &o->fetches) == 0,
        "1000 ids of a document become final with one submit and one event");
    ok (op_of (a, -1) == 0 && op_of (a, id) == 999, "each id of a document has become a final id");
    struct idcomp_uuid again = uuid_of (a, id);
    ok (memcmp (&uuid, &again, sizeof (uuid)) == 0, "an id of a document has the same UUID after it became final");
    ok (idt_document_sync (b, WAIT_MS) == 0 && means_the_same (a, id, b),
        "another session of the same process knows ids that became final");
    ok (make (a, 1) == 1000, "the next id of a document with reserved ids is final immediately");
    make (b, 10);
    ok (idt_document_settle (b, WAIT_MS) == 0 && idt_document_settle (a, WAIT_MS) == 0
            && idt_document_sync (a, WAIT_MS) == 0 && means_the_same (b, -10, a),
        "both sessions of a document can make further ids");
    idt_document_close (a);
    idt_document_close (b);
    ok (requests (h) > 0, "closing documents leaves the connection open");
    idt_close (h);
    stop ();
}

static void count_cb (idt_document_t *d, void *arg)
{
    ++*(int *)arg;
}

static void settle_in_cb (idt_document_t *d, void *arg)
{
    *(int *)arg = idt_document_settle (d, WAIT_MS) < 0 ? errno : 0;
}

static void test_changed (void)
{
    int calls = 0, errnum = 0;

    start ();
    idt_t *h = test_server_open (server);
    idt_document_t *a = open_new (h), *b = open_new (h);
    idt_document_set_changed (b, count_cb, &calls);
    make (a, 5);
    ok (idt_document_settle (a, WAIT_MS) == 0 && idt_document_sync (b, WAIT_MS) == 0 && calls == 1,
        "the changed callback is called when ranges of another session arrive");
    idt_document_set_changed (b, settle_in_cb, &errnum);
    make (a, 1000);
    ok (idt_document_settle (a, WAIT_MS) == 0 && idt_document_sync (b, WAIT_MS) == 0 && errnum == EDEADLK,
        "waiting in the changed callback fails with EDEADLK");
    idt_document_close (b);
    idt_document_attach (a, NULL);
    ok (idt_document_settle (a, WAIT_MS) < 0 && errno == ENOTCONN,
        "waiting for a document without a handle fails with ENOTCONN");
    idt_document_close (a);
    idt_close (h);
    stop ();
}

/* --- failures ----------------------------------------------------------------------------------- */

static void test_lost_events (void)
{
    start ();
    idt_t *h = test_server_open (server);
    idt_document_t *a = open_new (h), *b = open_new (h);

    LOCKED (o->mute = true);
    make (a, 10);
    ok (idt_document_settle (a, WAIT_MS) == 0 && peek (o, &o->fetches) == 1,
        "a range whose event was lost is found because of the response, and fetched");
    ok (idt_document_seq (b) == 0, "a document does not know a range whose event was lost");
    LOCKED ((o->fail_fetches = 2, o->errnum = EHOSTUNREACH));
    idt_future_t *f = idt_event_publish (h, "event.lost", 0, "{\"stream\":\"x\",\"from\":1,\"to\":1}");
    wait_until (idt_document_seq (b) != 0) idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    idt_future_destroy (f);
    ok (means_the_same (a, -10, b) && peek (o, &o->fetches) >= 4,
        "after an event.lost a document fetches the missing range, and repeats the request until rank 0 answers");
    make (a, 1000);
    LOCKED (o->mute = false);
    make (b, 1000);
    ok (idt_document_settle (b, WAIT_MS) == 0 && idt_document_settle (a, WAIT_MS) == 0,
        "a document fetches ranges that are missing before the range of an event");
    LOCKED (o->window = 1);
    LOCKED (o->mute = true);
    for (int i = 0; i < 5; i++) {
        make (a, 3000);
        if (idt_document_settle (a, WAIT_MS) < 0)
            bail_out ("settle");
    }
    int64_t id = make (b, 2500);
    struct idcomp_uuid uuid = uuid_of (b, id);
    ok (idt_document_sync (b, WAIT_MS) == 0 && idt_document_seq (b) >= 8,
        "if the server no longer has the missing ranges, a document loads a state instead");
    struct idcomp_uuid again = uuid_of (b, id);
    ok (memcmp (&uuid, &again, sizeof (uuid)) == 0 && idt_document_settle (b, WAIT_MS) == 0
            && idt_document_sync (a, WAIT_MS) == 0 && means_the_same (b, id, a),
        "after loading a state, a document's ids have the same UUIDs");
    idt_document_close (a);
    idt_document_close (b);
    idt_close (h);
    stop ();
}

static void test_repeats (void)
{
    int calls = 0;

    start ();
    idt_t *h = test_server_open (server);
    idt_document_t *d = open_new (h);
    idt_document_set_changed (d, count_cb, &calls);
    LOCKED ((o->fail = 3, o->errnum = EAGAIN));
    make (d, 10);
    ok (idt_document_settle (d, 0) < 0 && errno == ETIMEDOUT && !idt_document_settled (d),
        "settling with a timeout of 0 fails with ETIMEDOUT");
    wait_until (idt_document_errnum (d) != 0) idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    ok (idt_document_errnum (d) == EAGAIN && strcmp (idt_document_error (d), "not now") == 0 && calls == 1,
        "a failed announcement is reported");
    make (d, 10);
    ok (idt_document_settle (d, WAIT_MS) == 0 && o->n == 2 && peek (o, &o->submits) == 5,
        "announcements are repeated unchanged until they are ordered");
    ok (idt_document_errnum (d) == 0 && !idt_document_error (d),
        "a document whose announcement was ordered has no error");
    idt_document_close (d);
    idt_close (h);
    stop ();
}

static void test_refused (void)
{
    start ();
    idt_t *h = test_server_open (server);
    idt_document_t *a = open_new (h), *b = open_new (h);

    LOCKED ((o->fail = 1, o->errnum = EINVAL));
    make (a, 10);
    bool good = idt_document_settle (a, WAIT_MS) < 0 && errno == EPIPE;
    ok (good && idt_document_errnum (a) == EPIPE, "a refused announcement breaks the document: %s",
        idt_document_error (a));
    ok (uuid_of (a, -10).bytes[6] >> 4 == 4, "the ids of a broken document can be read");
    make (b, 10);
    ok (idt_document_settle (b, WAIT_MS) == 0 && idt_document_sync (b, WAIT_MS) == 0,
        "while one document is broken, another document of the same name still works");
    idt_document_close (a);
    LOCKED (o->uuid[0] = '7');
    good = idt_document_sync (b, WAIT_MS) < 0 && errno == EPIPE;
    ok (good, "a document fails if the server has another document of that name, with another UUID: %s",
        idt_document_error (b));
    idt_document_close (b);
    b = open_new (h);
    LOCKED (o->strange = true);
    good = idt_document_sync (b, WAIT_MS) < 0 && errno == EPIPE;
    ok (good, "a malformed response breaks the document: %s", idt_document_error (b));
    idt_document_close (b);
    idt_close (h);
    stop ();
}

static void test_reconnect (void)
{
    start ();
    idt_t *h = test_server_open (server);
    idt_document_t *d = open_new (h);

    make (d, 10);
    struct idcomp_uuid uuid = uuid_of (d, -10);
    LOCKED (o->mute = o->deaf = true);
    ok (idt_document_settle (d, WAIT_MS) < 0 && errno == ECONNRESET,
        "on a lost connection a wait for a document fails with ECONNRESET");
    ok (idt_document_settle (d, WAIT_MS) < 0 && errno == ECONNRESET,
        "on a lost connection each further wait for a document fails with ECONNRESET");
    make (d, 10);
    LOCKED (o->mute = o->deaf = false);
    idt_document_attach (d, NULL);
    idt_close (h);
    make (d, 10);
    h = test_server_open (server);
    ok (idt_document_attach (d, h) == 0 && idt_document_settle (d, WAIT_MS) == 0 && o->n == 2,
        "a document that is attached to a new connection continues, and no range is ordered twice");
    struct idcomp_uuid again = uuid_of (d, -10);
    ok (memcmp (&uuid, &again, sizeof (uuid)) == 0 && op_of (d, -30) == 29,
        "a document that is attached to a new connection keeps the UUIDs of its ids");
    idt_document_close (d);
    idt_close (h);
    stop ();
}

/* --- random histories ------------------------------------------------------------------------- */

#define CLIENTS 6
#define STEPS 150
#define IDS_MAX 4096

struct client {
    idt_t *h;
    idt_document_t *d;
    int64_t id[IDS_MAX];
    struct idcomp_uuid uuid[IDS_MAX];
    int64_t final[IDS_MAX]; /* -1: not seen final yet */
    int n;
};

struct world {
    uint64_t random;
    idt_reactor_t *r;
    struct client client[CLIENTS];
    const char *wrong;
    char why[256];
};

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    *(bool *)arg = true;
}

/* Replace the connection. */
static void reconnect (struct world *w, struct client *c)
{
    static bool ignored;

    if (c->d)
        idt_document_attach (c->d, NULL);
    idt_close (c->h);
    c->h = test_server_open (server);
    idt_set_lost (c->h, lost_cb, &ignored);
    if (idt_set_reactor (c->h, w->r) < 0 || (c->d && idt_document_attach (c->d, c->h) < 0))
        bail_out ("attach");
}

/* Open the document again until that succeeds. Ids that were made and not settled are forgotten. */
static void renew (struct world *w, struct client *c)
{
    idt_document_close (c->d);
    c->d = NULL;
    c->n = 0;
    wait_until ((c->d = idt_document_open (c->h, NAME, WAIT_MS, NULL))) reconnect (w, c);
}

static void make_some (struct world *w, struct client *c)
{
    for (int n = (int)pick (&w->random, 40); n > 0 && c->n < IDS_MAX; n--, c->n++) {
        c->id[c->n] = make (c->d, 1);
        c->uuid[c->n] = uuid_of (c->d, c->id[c->n]);
        c->final[c->n] = -1;
    }
}

/* Check that UUIDs have not changed, and that final ids are still final. */
static void look (struct world *w, struct client *c)
{
    for (int i = 0; i < c->n; i++) {
        struct idcomp_uuid uuid = uuid_of (c->d, c->id[i]);
        int64_t op = op_of (c->d, c->id[i]);
        if (memcmp (&uuid, &c->uuid[i], sizeof (uuid)) != 0)
            w->wrong = "an id changed its UUID";
        if (c->final[i] >= 0 && op != c->final[i])
            w->wrong = "a final id changed";
        c->final[i] = op;
    }
    if (idt_document_errnum (c->d) == EPIPE) {
        snprintf (w->why, sizeof (w->why), "%s", idt_document_error (c->d));
        w->wrong = w->why;
    }
}

static void step (struct world *w)
{
    struct client *c = &w->client[pick (&w->random, CLIENTS)];
    unsigned what = pick (&w->random, 100);

    if (what < 60)
        make_some (w, c);
    else if (what < 63)
        reconnect (w, c);
    else if (what < 65)
        renew (w, c);
    else if (what < 80)
        look (w, c);
    else
        idt_reactor_run (w->r, IDT_REACTOR_NOWAIT);
}

static void settle_all (struct world *w)
{
    for (int i = 0; i < CLIENTS; i++)
        wait_until (idt_document_settle (w->client[i].d, WAIT_MS) == 0)
        {
            if (errno == EPIPE || errno == ETIMEDOUT) {
                w->wrong = "a document does not settle";
                return;
            }
            reconnect (w, &w->client[i]);
        }
    for (int i = 0; i < CLIENTS; i++)
        wait_until (idt_document_sync (w->client[i].d, WAIT_MS) == 0)
        {
            if (errno == EPIPE || errno == ETIMEDOUT) {
                w->wrong = "a document does not sync";
                return;
            }
            reconnect (w, &w->client[i]);
        }
}

static void compare_all (struct world *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &w->client[i];
        look (w, c);
        if (!idcomp_equal (idt_document_ids (c->d), o->c, IDCOMP_WITHOUT_LOCAL))
            w->wrong = "a final space differs";
        for (int k = 0; k < c->n; k++)
            if (c->final[k] < 0)
                w->wrong = "an id is not final";
    }
}

static bool run_history (uint64_t seed)
{
    struct world *w = calloc (1, sizeof (*w));

    start ();
    w->random = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;
    o->random = w->random ^ 0x5555;
    o->window = 1 + pick (&w->random, 20);
    w->r = idt_reactor_create ();
    for (int i = 0; i < CLIENTS; i++) {
        reconnect (w, &w->client[i]);
        renew (w, &w->client[i]);
    }
    LOCKED (o->faults = 25);
    for (int i = 0; i < STEPS && !w->wrong; i++)
        step (w);
    LOCKED (o->faults = 0);
    if (!w->wrong)
        settle_all (w);
    if (!w->wrong)
        compare_all (w);
    bool good = !w->wrong;
    if (!good)
        diag ("history %llu: %s", (unsigned long long)seed, w->wrong);
    for (int i = 0; i < CLIENTS; i++) {
        idt_document_close (w->client[i].d);
        idt_close (w->client[i].h);
    }
    idt_reactor_destroy (w->r);
    stop ();
    free (w);
    return good;
}

static void test_histories (uint64_t first, uint64_t count)
{
    uint64_t good = 0;

    for (uint64_t seed = first; seed < first + count; seed++)
        good += run_history (seed);
    ok (good == count, "in %llu random histories all documents reach the same final space, and no id changes",
        (unsigned long long)count);
}

int main (int argc, char **argv)
{
    if (argc > 1) {
        test_histories (strtoull (argv[1], NULL, 10), argc > 2 ? strtoull (argv[2], NULL, 10) : 1);
        return done_testing ();
    }
    test_open ();
    test_ids ();
    test_changed ();
    test_lost_events ();
    test_repeats ();
    test_refused ();
    test_reconnect ();
    test_histories (1, 30);
    return done_testing ();
}
