/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* message_test.c - a message's fields, contents and life; histories compared with a model; threads */
#include <errno.h>
#include <pthread.h>

#include "test/msg_vectors.h"

#define UUID(c) c c c c c c c c "-0000-4000-8000-00000000000" c

static const char *uuid_a = UUID ("a"), *uuid_b = UUID ("b"), *uuid_c = UUID ("c");

static const enum idt_msgtype types[] = {
    IDT_MSGTYPE_REQUEST,
    IDT_MSGTYPE_RESPONSE,
    IDT_MSGTYPE_EVENT,
    IDT_MSGTYPE_CONTROL,
};

static bool is_string (const char *a, const char *b)
{
    return a && strcmp (a, b) == 0;
}

/* --- header ----------------------------------------------------------------------------- */

static void test_create (void)
{
    const char *names[] = { "request", "response", "event", "control" };
    int made = 0;

    for (int i = 0; i < 4; i++) {
        idt_msg_t *msg = idt_msg_create (types[i]);
        struct idt_cred cred = idt_msg_cred (msg);

        ok (idt_msg_type (msg) == types[i] && is_string (idt_msg_typestr (msg), names[i]), "a %s has its type",
            names[i]);
        ok (idt_msg_flags (msg) == 0 && !idt_msg_topic (msg) && idt_msg_route_count (msg) == 0
                && cred.userid == IDT_USERID_UNKNOWN && cred.rolemask == IDT_ROLE_NONE,
            "a new message of type %s is empty and has no user", names[i]);
        idt_msg_unref (msg);
    }
    for (int type = 0; type < 300; type++) {
        idt_msg_t *msg = idt_msg_create ((enum idt_msgtype)type);

        made += msg != NULL;
        idt_msg_unref (msg);
    }
    ok (made == 4, "there are four types of messages");
    errno = 0;
    ok (!idt_msg_create (IDT_MSGTYPE_ANY) && errno == EINVAL,
        "creating a message of an unknown type fails with EINVAL");
}

static void test_numbers (void)
{
    idt_msg_t *request = idt_msg_create (IDT_MSGTYPE_REQUEST);
    idt_msg_t *response = idt_msg_create (IDT_MSGTYPE_RESPONSE);
    idt_msg_t *event = idt_msg_create (IDT_MSGTYPE_EVENT);
    idt_msg_t *control = idt_msg_create (IDT_MSGTYPE_CONTROL);

    ok (idt_msg_nodeid (request) == IDT_NODEID_ANY && idt_msg_matchtag (request) == 0,
        "a new request goes to any node and has no matchtag");
    idt_msg_set_nodeid (request, 7);
    idt_msg_set_matchtag (request, UINT32_MAX);
    ok (idt_msg_nodeid (request) == 7 && idt_msg_matchtag (request) == UINT32_MAX,
        "a request keeps nodeid and matchtag");
    idt_msg_set_errnum (response, ENOSYS);
    idt_msg_set_matchtag (response, 9);
    ok (idt_msg_errnum (response) == ENOSYS && idt_msg_matchtag (response) == 9,
        "a response keeps errnum and matchtag");
    idt_msg_set_seq (event, 123);
    ok (idt_msg_seq (event) == 123, "an event keeps its sequence number");
    idt_msg_set_control (control, 3, 4);
    ok (idt_msg_control_type (control) == 3 && idt_msg_control_status (control) == 4,
        "a control message keeps its type and status");
    idt_msg_unref (request);
    idt_msg_unref (response);
    idt_msg_unref (event);
    idt_msg_unref (control);
}

static void test_flags (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, "a.b");
    idt_msg_set_flag (msg, IDT_MSGFLAG_NORESPONSE | IDT_MSGFLAG_USER1);
    ok (idt_msg_flags (msg) == (IDT_MSGFLAG_TOPIC | IDT_MSGFLAG_NORESPONSE | IDT_MSGFLAG_USER1),
        "setting a flag keeps the flags of the parts");
    idt_msg_clear_flag (msg, IDT_MSGFLAG_USER1);
    ok (idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE) && !idt_msg_has_flag (msg, IDT_MSGFLAG_USER1),
        "clearing a flag keeps the other flags");
    idt_msg_unref (msg);
}

/* --- contents --------------------------------------------------------------------------- */

static void test_topic (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    char longest[IDT_MSG_MAX_TOPIC + 2];

    memset (longest, 't', sizeof (longest));
    longest[IDT_MSG_MAX_TOPIC + 1] = '\0';
    ok (idt_msg_set_topic (msg, "fluid.generate") == 0 && is_string (idt_msg_topic (msg), "fluid.generate"),
        "a topic can be set");
    ok (idt_msg_set_topic (msg, longest) < 0 && errno == EINVAL, "setting a topic that is too long fails with EINVAL");
    ok (idt_msg_set_topic (msg, "") < 0 && errno == EINVAL, "setting an empty topic fails with EINVAL");
    ok (is_string (idt_msg_topic (msg), "fluid.generate"), "after a failure to set it the topic is unchanged");
    ok (idt_msg_set_topic (msg, idt_msg_topic (msg) + 6) == 0 && is_string (idt_msg_topic (msg), "generate"),
        "a topic can be set to a part of itself");
    longest[IDT_MSG_MAX_TOPIC] = '\0';
    ok (idt_msg_set_topic (msg, longest) == 0 && is_string (idt_msg_topic (msg), longest),
        "the longest topic can be set");
    ok (idt_msg_set_topic (msg, NULL) == 0 && !idt_msg_topic (msg) && idt_msg_flags (msg) == 0,
        "a topic can be removed");
    idt_msg_unref (msg);
}

static void test_payload (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    const void *data;
    size_t size;

    ok (idt_msg_payload (msg, &data, &size) < 0 && errno == EPROTO, "reading a missing payload fails with EPROTO");
    ok (idt_msg_set_payload (msg, "abc", 3) == 0 && idt_msg_payload (msg, &data, &size) == 0 && size == 3
            && memcmp (data, "abc", 3) == 0,
        "a payload can be set");
    ok (idt_msg_set_payload (msg, (char *)data + 1, 2) == 0 && idt_msg_payload (msg, &data, &size) == 0 && size == 2
            && memcmp (data, "bc", 2) == 0,
        "a payload can be set to a part of itself");
    ok (idt_msg_payload (msg, NULL, NULL) == 0,
        "idt_msg_payload with NULL pointers checks whether a message has a payload");
    ok (idt_msg_set_payload (msg, "", 0) == 0 && idt_msg_payload (msg, &data, &size) == 0 && size == 0
            && idt_msg_has_flag (msg, IDT_MSGFLAG_PAYLOAD),
        "a payload of no bytes is a payload");
    ok (!idt_msg_alloc_payload (msg, (size_t)IDT_MSG_MAX_PAYLOAD + 1) && errno == EOVERFLOW
            && idt_msg_payload (msg, NULL, &size) == 0 && size == 0,
        "setting a payload over the limit fails with EOVERFLOW and changes nothing");
    ok (idt_msg_set_payload (msg, NULL, 5) == 0 && idt_msg_payload (msg, NULL, &size) < 0 && idt_msg_flags (msg) == 0,
        "a payload can be removed");
    idt_msg_unref (msg);
}

static void test_string (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    size_t size;

    ok (!idt_msg_string (msg) && errno == EPROTO, "reading a string without a payload fails with EPROTO");
    ok (idt_msg_set_string (msg, "{}") == 0 && is_string (idt_msg_string (msg), "{}")
            && idt_msg_payload (msg, NULL, &size) == 0 && size == 3,
        "a string is stored as a payload with a NUL at its end");
    ok (idt_msg_set_payload (msg, "ab", 2) == 0 && !idt_msg_string (msg) && errno == EPROTO,
        "a payload without a NUL is not a string");
    ok (idt_msg_set_payload (msg, "a\0b", 4) == 0 && !idt_msg_string (msg) && errno == EPROTO,
        "a payload with a NUL inside is not a string");
    ok (idt_msg_set_payload (msg, "", 0) == 0 && !idt_msg_string (msg) && errno == EPROTO,
        "an empty payload is not a string");
    ok (idt_msg_set_payload (msg, "", 1) == 0 && is_string (idt_msg_string (msg), ""),
        "a payload of a single NUL is the empty string");
    ok (idt_msg_set_string (msg, NULL) == 0 && idt_msg_flags (msg) == 0, "a string can be removed");
    idt_msg_unref (msg);
}

static void test_routes (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    ok (!idt_msg_route_newest (msg) && !idt_msg_route_oldest (msg) && !idt_msg_route_at (msg, 0),
        "a new message has no routes");
    idt_msg_route_pop (msg);
    ok (!idt_msg_has_flag (msg, IDT_MSGFLAG_ROUTE), "popping a route from an empty stack has no effect");
    ok (idt_msg_route_push (msg, "x") < 0 && errno == EINVAL && idt_msg_route_push (msg, UUID ("a") "x") < 0
            && errno == EINVAL && idt_msg_flags (msg) == 0,
        "a route that does not have 36 characters fails with EINVAL");
    idt_msg_route_push (msg, uuid_a);
    idt_msg_route_push (msg, uuid_b);
    ok (is_string (idt_msg_route_newest (msg), uuid_b) && is_string (idt_msg_route_oldest (msg), uuid_a)
            && is_string (idt_msg_route_at (msg, 0), uuid_b) && is_string (idt_msg_route_at (msg, 1), uuid_a)
            && !idt_msg_route_at (msg, 2),
        "the route that was pushed last is the newest");
    idt_msg_route_pop (msg);
    ok (idt_msg_route_count (msg) == 1 && is_string (idt_msg_route_newest (msg), uuid_a),
        "popping a route removes the newest");
    idt_msg_route_clear (msg);
    ok (idt_msg_route_count (msg) == 0 && idt_msg_has_flag (msg, IDT_MSGFLAG_ROUTE),
        "clearing the routes leaves an empty stack");
    idt_msg_unref (msg);
}

static void test_route_limit (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    bool good = idt_msg_route_push (msg, uuid_a) == 0;

    for (int i = 1; i < IDT_MSG_MAX_ROUTES; i++)
        good = good && idt_msg_route_push (msg, idt_msg_route_oldest (msg)) == 0;
    ok (good && idt_msg_route_count (msg) == IDT_MSG_MAX_ROUTES && is_string (idt_msg_route_newest (msg), uuid_a),
        "%d routes can be pushed, each a copy of one on the stack", IDT_MSG_MAX_ROUTES);
    ok (idt_msg_route_push (msg, uuid_b) < 0 && errno == EOVERFLOW, "a route above the limit fails with EOVERFLOW");
    idt_msg_route_pop (msg);
    ok (idt_msg_route_push (msg, uuid_b) == 0, "after a route was popped from a full stack another can be pushed");
    idt_msg_unref (msg);
}

/* --- copies and responses ---------------------------------------------------------------- */

static idt_msg_t *full_request (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, "a.b");
    idt_msg_set_string (msg, "{}");
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 5, .rolemask = IDT_ROLE_USER });
    idt_msg_set_nodeid (msg, 3);
    idt_msg_set_matchtag (msg, 4);
    idt_msg_set_flag (msg, IDT_MSGFLAG_STREAMING | IDT_MSGFLAG_UPSTREAM | IDT_MSGFLAG_USER1);
    idt_msg_route_push (msg, uuid_a);
    idt_msg_route_push (msg, uuid_b);
    return msg;
}

static void test_copy (void)
{
    idt_msg_t *msg = full_request ();
    idt_msg_t *cpy = idt_msg_copy (msg, true);
    idt_msg_t *bare = idt_msg_copy (msg, false);

    ok (same_message (msg, cpy), "a copy of a message equals the message");
    ok (!same_message (msg, bare) && !idt_msg_has_flag (bare, IDT_MSGFLAG_PAYLOAD),
        "a copy of a message without its payload has no payload");
    idt_msg_set_payload (msg, NULL, 0);
    ok (same_message (msg, bare), "a copy of a message without its payload is equal otherwise");
    idt_msg_unref (msg);
    idt_msg_route_push (cpy, uuid_c);
    ok (is_string (idt_msg_string (cpy), "{}") && is_string (idt_msg_topic (cpy), "a.b")
            && is_string (idt_msg_route_oldest (cpy), uuid_a) && is_string (idt_msg_route_newest (cpy), uuid_c),
        "a copy of a message stays valid after the original is freed, and can be changed");
    idt_msg_unref (cpy);
    idt_msg_unref (bare);
}

static void test_respond (void)
{
    idt_msg_t *request = full_request ();
    idt_msg_t *response = idt_msg_respond (request, ENOENT);
    struct idt_cred cred = idt_msg_cred (response);

    idt_msg_unref (request);
    ok (idt_msg_type (response) == IDT_MSGTYPE_RESPONSE && idt_msg_errnum (response) == ENOENT
            && idt_msg_matchtag (response) == 4 && is_string (idt_msg_topic (response), "a.b")
            && idt_msg_route_count (response) == 2 && is_string (idt_msg_route_newest (response), uuid_b),
        "a response has the topic, matchtag and routes of its request");
    ok (idt_msg_flags (response) == (IDT_MSGFLAG_TOPIC | IDT_MSGFLAG_ROUTE | IDT_MSGFLAG_STREAMING),
        "a response has the STREAMING flag of its request and no payload");
    ok (cred.userid == IDT_USERID_UNKNOWN && cred.rolemask == IDT_ROLE_NONE, "a response has no user");
    ok (!idt_msg_respond (response, 0) && errno == EPROTO, "a response to a response fails with EPROTO");
    idt_msg_unref (response);
}

static void test_refs (void)
{
    idt_msg_t *msg = full_request ();
    const idt_msg_t *ref = idt_msg_ref (msg);

    idt_msg_unref (msg);
    ok (is_string (idt_msg_topic (ref), "a.b"), "a message lives until its last reference is dropped");
    errno = 1234;
    idt_msg_unref (ref);
    idt_msg_unref (NULL);
    ok (errno == 1234, "idt_msg_unref accepts NULL and keeps errno");
}

/* --- histories --------------------------------------------------------------------------- */

/* The expected contents of a message, in the simplest form. */
struct model {
    char routes[64][IDT_MSG_UUID_LEN + 1]; /* oldest first */
    unsigned route_count;
    bool has_routes;
    char topic[400]; /* "": none */
    uint8_t payload[600];
    int payload_size; /* -1: none */
};

static uint32_t random_next (uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static bool model_routes_match (const struct model *model, const idt_msg_t *msg)
{
    if (idt_msg_route_count (msg) != model->route_count
        || idt_msg_has_flag (msg, IDT_MSGFLAG_ROUTE) != model->has_routes)
        return false;
    for (unsigned i = 0; i < model->route_count; i++) {
        if (!is_string (idt_msg_route_at (msg, i), model->routes[model->route_count - 1 - i]))
            return false;
    }
    return true;
}

static bool model_matches (const struct model *model, const idt_msg_t *msg)
{
    const void *data;
    size_t size;

    if (!model_routes_match (model, msg))
        return false;
    if (model->topic[0] ? !is_string (idt_msg_topic (msg), model->topic) : !!idt_msg_topic (msg))
        return false;
    if (idt_msg_payload (msg, &data, &size) < 0)
        return model->payload_size == -1;
    return model->payload_size == (int)size && memcmp (model->payload, data, size) == 0;
}

static void step_routes (struct model *model, idt_msg_t *msg, uint64_t *rnd)
{
    unsigned what = random_next (rnd) % 8;

    if (what == 0) {
        idt_msg_route_clear (msg);
        model->route_count = 0;
        model->has_routes = true;
    }
    else if (what < 3) {
        idt_msg_route_pop (msg);
        model->route_count -= model->route_count > 0 ? 1 : 0;
    }
    else if (model->route_count < 64) {
        char *route = model->routes[model->route_count++];

        snprintf (route, IDT_MSG_UUID_LEN + 1, "%036u", (unsigned)random_next (rnd));
        idt_msg_route_push (msg, route);
        model->has_routes = true;
    }
}

static void step_contents (struct model *model, idt_msg_t *msg, uint64_t *rnd)
{
    size_t n = random_next (rnd) % 400;

    if (random_next (rnd) % 2) {
        memset (model->topic, 'a' + n % 26, n);
        model->topic[n] = '\0';
        idt_msg_set_topic (msg, n > 0 ? model->topic : NULL);
    }
    else if (n % 7 == 0) {
        model->payload_size = -1;
        idt_msg_set_payload (msg, NULL, 0);
    }
    else {
        model->payload_size = n;
        memset (model->payload, n, n);
        idt_msg_set_payload (msg, model->payload, n);
    }
}

/* Replace the message by an equal one: decoded from its bytes, or copied. */
static idt_msg_t *reincarnate (idt_msg_t *msg, uint64_t *rnd)
{
    struct bytes b = message_bytes (msg);
    idt_msg_t *next = random_next (rnd) % 2 ? idt_msg_decode (b.data, b.size) : idt_msg_copy (msg, true);

    free (b.data);
    idt_msg_unref (msg);
    return next;
}

static bool history_holds (uint64_t seed)
{
    struct model model = { .payload_size = -1 };
    idt_msg_t *msg = idt_msg_create (types[seed % 4]);
    uint64_t rnd = seed;
    bool good = true;

    for (int i = 0; good && i < 200; i++) {
        unsigned what = random_next (&rnd) % 4;

        if (what < 2)
            step_routes (&model, msg, &rnd);
        else if (what == 2)
            step_contents (&model, msg, &rnd);
        else
            msg = reincarnate (msg, &rnd);
        good = msg && model_matches (&model, msg);
    }
    idt_msg_unref (msg);
    return good;
}

static void test_histories (void)
{
    uint64_t seed = 0;

    while (seed < 500 && history_holds (seed))
        seed++;
    ok (seed == 500, "500 histories of changes, copies and decodings agree with a plain model");
    if (seed < 500)
        diag ("seed %llu fails", (unsigned long long)seed);
}

/* --- threads ------------------------------------------------------------------------------ */

static void *share_cb (void *arg)
{
    const idt_msg_t *msg = arg;

    for (int i = 0; i < 10000; i++) {
        idt_msg_ref (msg);
        if (!is_string (idt_msg_topic (msg), "a.b"))
            return arg;
        idt_msg_unref (msg);
    }
    idt_msg_unref (msg);
    return NULL;
}

static void test_threads (void)
{
    pthread_t threads[4];
    idt_msg_t *msg = full_request ();

    for (int i = 0; i < 4; i++)
        pthread_create (&threads[i], NULL, share_cb, (void *)idt_msg_ref (msg));
    idt_msg_unref (msg);
    int bad = 0;
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        pthread_join (threads[i], &failed);
        bad += failed != NULL;
    }
    ok (bad == 0, "four threads share a message, and the last one frees it");
}

int main (void)
{
    test_create ();
    test_numbers ();
    test_flags ();
    test_topic ();
    test_payload ();
    test_string ();
    test_routes ();
    test_route_limit ();
    test_copy ();
    test_respond ();
    test_refs ();
    test_histories ();
    test_threads ();
    return done_testing ();
}
