/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* handle_test.c - opening, handlers and their roles, events, attributes, log, and the order of messages */
#include "config.h"

#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "libidtree/handle.h"
#include "test/test_server.h"
#include "test/tap.h"

/* Wait for the response. Returns whether it arrived with error 'errnum'. */
static bool asks (idt_future_t *f, int errnum)
{
    bool good = f && idt_future_wait (f, -1) == 0 && idt_future_errnum (f) == errnum;

    idt_future_destroy (f);
    return good;
}

/* --- opening -------------------------------------------------------------------------------- */

static bool refused (const char *uri, int errnum)
{
    idt_error_t error = { .text = "" };
    idt_t *h = idt_open (uri, &error);

    return !h && errno == errnum && strncmp (error.text, uri, strnlen (uri, 20)) == 0;
}

/* The URI of a socket that no process listens on. */
static const char *dead_uri (char *buf, size_t size)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM, 0);

    snprintf (addr.sun_path, sizeof (addr.sun_path), "/tmp/idtree-test-dead.%d", (int)getpid ());
    unlink (addr.sun_path);
    if (fd < 0 || bind (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0)
        bail_out ("bind");
    close (fd);
    snprintf (buf, size, "local://%s", addr.sun_path);
    return buf;
}

/* A NULL URI means the one of the environment. */
static void test_default (void)
{
    struct test_server *s = test_server_create (0);
    idt_error_t error = { .text = "" };

    setenv ("IDTREE_URI", test_server_uri (s), 1);
    setenv ("FLUX_URI", "local:///nosuch/flux", 1);
    idt_t *h = idt_open (NULL, &error);
    ok (h && strcmp (idt_get_uri (h), test_server_uri (s)) == 0, "the default URI of a handle is IDTREE_URI %s",
        error.text);
    idt_close (h);
    setenv ("IDTREE_URI", "", 1);
    ok (!idt_open (NULL, &error) && errno == ENOENT && strstr (error.text, "/nosuch/flux"),
        "if IDTREE_URI is empty, the default URI is FLUX_URI: %s", error.text);
    unsetenv ("FLUX_URI");
    ok (strcmp (idt_default_uri (), "local:///run/idtree/local") == 0,
        "if neither IDTREE_URI nor FLUX_URI is set, the default URI names the system instance");
    h = idt_open (NULL, &error);
    ok (h || strstr (error.text, "no instance: neither IDTREE_URI nor FLUX_URI is set"),
        "a missing system instance is reported: %s", error.text);
    idt_close (h);
    test_server_destroy (s);
}

static void test_list (void)
{
    struct test_server *s = test_server_create (0);
    idt_error_t error = { .text = "" };
    char uris[512];

    snprintf (uris, sizeof (uris), "local:///nosuch/a, %s local:///nosuch/b", test_server_uri (s));
    idt_t *h = idt_open (uris, &error);
    ok (h && strcmp (idt_get_uri (h), test_server_uri (s)) == 0, "the first reachable broker of a list is used %s",
        error.text);
    idt_close (h);
    ok (!idt_open ("local:///nosuch/a,local:///nosuch/b", &error) && errno == ENOENT,
        "a list without a reachable broker fails with ENOENT: %s", error.text);
    ok (!idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .flags = 3 }, &error) && errno == EINVAL,
        "contradictory flags fail with EINVAL: %s", error.text);
    test_server_destroy (s);
}

static void test_open (void)
{
    char uri[256] = "local:///";
    struct test_server *s;

    memset (uri + 9, 'x', 200);
    ok (refused (uri, EINVAL), "a URI with a path that is too long fails with EINVAL");
    ok (refused ("tcp://127.0.0.1:8000/x", EINVAL), "a URI with an unknown scheme fails with EINVAL");
    ok (refused ("local://", EINVAL), "a URI with an empty path fails with EINVAL");
    ok (refused ("local:///nosuch/idtree/socket", ENOENT), "a URI of a missing socket fails with ENOENT");
    ok (refused (dead_uri (uri, sizeof (uri)), ECONNREFUSED),
        "a URI of a socket without a listener fails with ECONNREFUSED");
    unlink (uri + strlen ("local://"));
    ok (!idt_open ("x", NULL) && errno == EINVAL, "the caller of idt_open () may pass no memory for the error text");
    test_default ();
    s = test_server_create (EPERM);
    ok (refused (test_server_uri (s), EPERM), "the first byte from the broker, if it is not 0, becomes errno: EPERM");
    test_server_destroy (s);
    test_list ();
    errno = 77;
    idt_close (NULL);
    idt_future_destroy (NULL);
    idt_watcher_destroy (NULL);
    idt_reactor_destroy (NULL);
    ok (errno == 77, "idt_close (NULL) has no effect and keeps errno");
}

/* --- handlers ------------------------------------------------------------------------------- */

static void echo_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, idt_msg_string (msg));
}

static void name_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond_pack (h, msg, "{s:s}", "name", (const char *)arg);
}

static int malformed_rc, malformed_errno;

static void raw_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond_raw (h, msg, "\1\0\2", 3);
}

static void malformed_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    malformed_rc = idt_respond_pack (h, msg, "{s:s}", "name", "caf\xe9");
    malformed_errno = errno;
}

static void null_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond_pack (h, msg, "{s:o}", "names", NULL);
}

static void error_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond_error (h, msg, EBUSY, "come again");
}

static void strict_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t error;
    json_t *o;
    int i;

    if (idt_msg_unpack (msg, &o, &error, "{s:i !}", "i", &i) < 0) {
        (void)idt_respond_error (h, msg, errno, error.text);
        return;
    }
    (void)idt_respond_pack (h, msg, "{s:i}", "i", i + 1);
    json_decref (o);
}

static const struct idt_handler_spec table[];

static void quit_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_handlers_remove (h, table);
    (void)idt_respond (h, msg, NULL);
}

static const struct idt_handler_spec table[] = {
    { IDT_MSGTYPE_REQUEST, "me.echo", echo_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "me.name", name_cb, IDT_ROLE_USER },
    { IDT_MSGTYPE_REQUEST, "me.raw", raw_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.error", error_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.malformed", malformed_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.null", null_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.strict", strict_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.quit", quit_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.sub.*", name_cb, IDT_ROLE_ALL },
    IDT_HANDLERS_END,
};

static const struct idt_handler_spec second[] = {
    { IDT_MSGTYPE_REQUEST, "me.raw", error_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.sub.more", error_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "me.second", name_cb, IDT_ROLE_ALL },
    IDT_HANDLERS_END,
};

static void stop_cb (idt_future_t *f, void *arg)
{
    idt_reactor_stop (idt_get_reactor (idt_future_handle (f)));
}

/* Have the server send us a request 'topic', and run the reactor until it is answered. Returns the future of our
 * response.
 */
static idt_future_t *ask_me (idt_t *h, const char *topic, const char *payload, int rolemask, int flags)
{
    idt_future_t *f = idt_rpc_pack (h, "test.request", IDT_NODEID_ANY, 0, "{s:s s:s* s:i s:i}", "topic", topic,
                                    "payload", payload, "rolemask", rolemask, "flags", flags);

    if (!f || idt_future_then (f, -1, stop_cb, NULL) < 0
        || idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT) < 0)
        bail_out ("test.request");
    return f;
}

/* Whether our response has error 'errnum' and payload 'text' (NULL: empty). */
static bool answers (idt_t *h, const char *topic, const char *payload, int rolemask, int errnum, const char *text)
{
    idt_future_t *f = ask_me (h, topic, payload, rolemask, 0);
    const idt_msg_t *msg = idt_rpc_get_msg (f);
    const char *s = msg ? idt_msg_string (msg) : NULL;
    bool good = msg && (int)idt_msg_errnum (msg) == errnum && (text ? s && strcmp (s, text) == 0 : !s);

    if (!good)
        diag ("%s: %d '%s'", topic, idt_future_errnum (f), s ? s : "-");
    idt_future_destroy (f);
    return good;
}

static void test_handlers (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    const int owner = IDT_ROLE_OWNER, user = IDT_ROLE_USER | IDT_ROLE_LOCAL;
    const char *unknown = "Unknown service method 'me.echo'";
    const void *data;
    size_t size;

    ok (answers (h, "me.echo", "x", owner, ENOSYS, unknown), "without message handlers a request fails with ENOSYS");
    ok (idt_handlers_add (h, table, "first") == 0 && idt_handlers_add (h, second, "second") == 0,
        "several tables of message handlers can be added");
    ok (answers (h, "me.echo", "hello", owner, 0, "hello"), "idt_respond sends a string");
    ok (answers (h, "me.echo", NULL, owner, 0, NULL), "idt_respond can send an empty response");
    ok (answers (h, "me.name", NULL, user, 0, "{\"name\":\"first\"}"), "idt_respond_pack sends JSON");
    idt_future_t *f = ask_me (h, "me.raw", NULL, user, 0);
    ok (idt_rpc_get_raw (f, &data, &size) == 0 && size == 3 && memcmp (data, "\1\0\2", 3) == 0,
        "idt_respond_raw sends bytes; of several rows that match a request, the first receives the request");
    idt_future_destroy (f);
    ok (answers (h, "me.error", NULL, user, EBUSY, "come again"), "idt_respond_error sends an error");
    f = ask_me (h, "me.malformed", NULL, user, 0);
    ok (idt_future_errnum (f) == EPROTO && strstr (idt_future_error (f), "UTF-8"),
        "if idt_respond_pack cannot make its JSON, the requester gets an error: %s", idt_future_error (f));
    ok (malformed_rc == -1 && malformed_errno == EPROTO, "idt_respond_pack fails if it cannot make its JSON");
    idt_future_destroy (f);
    f = ask_me (h, "me.null", NULL, user, 0);
    ok (idt_future_errnum (f) == EPROTO, "if a string for idt_respond_pack is NULL, the requester gets an error: %s",
        idt_future_error (f));
    idt_future_destroy (f);
    ok (answers (h, "me.sub.more", NULL, user, 0, "{\"name\":\"first\"}"),
        "a '*' at the end of a handler's topic matches any rest");
    ok (answers (h, "me.sub.", NULL, user, 0, "{\"name\":\"first\"}"),
        "the rest that a '*' in a handler's topic matches may be empty");
    ok (answers (h, "me.second", NULL, user, 0, "{\"name\":\"second\"}"),
        "each table of message handlers has its own arg");
    ok (answers (h, "me.ech", NULL, owner, ENOSYS, "Unknown service method 'me.ech'")
            && answers (h, "me.echoo", NULL, owner, ENOSYS, "Unknown service method 'me.echoo'"),
        "a handler's topic without '*' must match exactly");
    ok (answers (h, "me.ping", "{}", owner, ENOSYS, "Unknown service method 'me.ping'"),
        "a client program has no built-in methods");

    const char *eperm = "Request requires a role that the user does not have";
    const char *owners = "me.echo is for the owner of the instance: user 1000 may not send it";
    ok (answers (h, "me.echo", "x", user, EPERM, owners),
        "a handler with rolemask 0 accepts only requests of the instance owner");
    ok (answers (h, "me.echo", "x", 0, EPERM, owners), "a request of a sender without a role fails with EPERM");
    ok (answers (h, "me.name", NULL, owner, EPERM, eperm),
        "the instance owner needs a role of the handler's rolemask, too");

    ok (answers (h, "me.strict", "{\"i\":1}", owner, 0, "{\"i\":2}"), "a strict unpack accepts the keys of its format");
    f = ask_me (h, "me.strict", "{\"i\":1,\"j\":2}", owner, 0);
    ok (idt_future_errnum (f) == EPROTO && strstr (idt_future_error (f), "j"),
        "a strict unpack fails for an unknown key, and the error names the key: %s", idt_future_error (f));
    idt_future_destroy (f);
    ok (answers (h, "me.strict", NULL, owner, EPROTO, "message has no payload"), "an unpack of an empty payload fails");
    ok (answers (h, "me.strict", "[1]", owner, EPROTO, "payload is not a JSON object"),
        "an unpack of a JSON array fails");
    f = ask_me (h, "me.strict", "{\"i\":", owner, 0);
    ok (idt_future_errnum (f) == EPROTO, "an unpack of malformed JSON fails: %s", idt_future_error (f));
    idt_future_destroy (f);

    f = ask_me (h, "me.error", NULL, owner, IDT_MSGFLAG_NORESPONSE);
    ok (asks (f, 0), "a request with NORESPONSE is handled, and not answered");
    ok (answers (h, "me.quit", NULL, owner, 0, NULL), "a message handler may remove its own table");
    ok (answers (h, "me.echo", NULL, owner, ENOSYS, unknown), "a removed table of handlers receives no request");
    ok (answers (h, "me.raw", NULL, owner, EBUSY, "come again"),
        "the requests of a removed table go to the next table that matches");
    idt_handlers_remove (h, second);
    ok (idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT) == 0, "a reactor without handlers and futures ends");
    idt_close (h);
}

/* --- events --------------------------------------------------------------------------------- */

struct trace {
    char text[4096];
    size_t len;
};

__attribute__ ((format (printf, 2, 3))) static void trace_add (struct trace *t, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    t->len += (size_t)vsnprintf (t->text + t->len, sizeof (t->text) - t->len, fmt, ap);
    va_end (ap);
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    trace_add (arg, "%s ", idt_msg_topic (msg));
}

static const struct idt_handler_spec event_table[] = {
    { IDT_MSGTYPE_EVENT, "test.*", event_cb, 0 },
    IDT_HANDLERS_END,
};

static void answer_cb (idt_future_t *f, void *arg)
{
    const char *s = NULL;

    idt_rpc_get (f, &s);
    trace_add (arg, "%s ", s ? s : "-");
    if (!s)
        idt_reactor_stop (idt_get_reactor (idt_future_handle (f)));
    idt_future_destroy (f);
}

/* Events and responses arrive alternately; some are read while the test waits for another response. */
static void test_order (struct test_server *s, bool wait_first)
{
    idt_t *h = test_server_open (s);
    struct trace t = { .len = 0 };
    idt_future_t *f;

    idt_handlers_add (h, event_table, &t);
    for (int i = 3; i >= 0; i--) {
        char text[32];
        snprintf (text, sizeof (text), "answer.%d", i);
        f = idt_rpc (h, "test.hold", text, IDT_NODEID_ANY, 0);
        idt_future_then (f, -1, answer_cb, &t);
    }
    f = idt_rpc (h, "test.batch", "{\"n\":4}", IDT_NODEID_ANY, 0);
    idt_future_then (f, -1, answer_cb, &t);
    if (wait_first) {
        ok (asks (idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0), 0) && t.len == 0,
            "a wait for a response keeps all other messages for the reactor");
    }
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    ok (strcmp (t.text, "test.0 answer.0 test.1 answer.1 test.2 answer.2 test.3 answer.3 - ") == 0,
        "events and responses are dispatched in the order in which they were sent%s",
        wait_first ? ", also those that waited in the inbox" : "");
    if (strstr (t.text, "- ") == NULL)
        diag ("%s", t.text);
    idt_close (h);
}

/* Messages that were read but not dispatched when a wait ended come after the inbox. */
static void test_order_behind (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    struct trace t = { .len = 0 };

    idt_handlers_add (h, event_table, &t);
    idt_future_t *f = idt_rpc (h, "test.hold", NULL, IDT_NODEID_ANY, 0);
    idt_future_t *g = idt_rpc (h, "test.batch", "{\"n\":3}", IDT_NODEID_ANY, 0);
    idt_future_then (g, -1, answer_cb, &t);
    ok (asks (f, 0) && h->inbox.count == 1, "an event that arrives before a response is kept in the inbox");
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    ok (strcmp (t.text, "test.0 test.1 test.2 - ") == 0, "an event in the inbox is dispatched before later events");
    idt_close (h);
}

static void test_many_events (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    struct trace t = { .len = 0 };
    char expect[4096];
    size_t len = 0;

    for (int i = 0; i < 300; i++)
        len += (size_t)snprintf (expect + len, sizeof (expect) - len, "test.%d ", i);
    idt_handlers_add (h, event_table, &t);
    ok (asks (idt_rpc (h, "test.event", "{\"n\":200}", IDT_NODEID_ANY, 0), 0), "200 events wait for a reactor");
    t.len = 0;
    idt_future_t *f = idt_rpc (h, "test.event", "{\"n\":1}", IDT_NODEID_ANY, 0);
    idt_future_then (f, -1, answer_cb, &t);
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    strcpy (expect + strlen (expect) - strlen (strstr (expect, "test.200 ")), "test.0 - ");
    ok (strcmp (t.text, expect) == 0, "more events than fit in one turn stay in order");
    idt_handlers_remove (h, event_table);
    ok (asks (idt_rpc (h, "test.event", "{\"n\":9}", IDT_NODEID_ANY, 0), 0)
            && idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT) == 0,
        "events without a handler are dropped");
    idt_close (h);
}

static void published_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    const char *s = idt_msg_string (msg);

    trace_add (arg, "%s=%s ", idt_msg_topic (msg), s ? s : "-");
}

static const struct idt_handler_spec published_table[] = {
    { IDT_MSGTYPE_EVENT, "a.*", published_cb, 0 },
    IDT_HANDLERS_END,
};

static void test_publish (struct test_server *s)
{
    idt_t *h = test_server_open (s), *other = test_server_open (s);
    struct trace t = { .len = 0 };
    int seq = 0;
    idt_future_t *f;

    idt_handlers_add (h, published_table, &t);
    ok (asks (idt_event_subscribe (h, "a."), 0), "a handle subscribes to a prefix");
    f = idt_event_publish (other, "a.b", 0, "{\"x\":1}");
    ok (f && idt_rpc_get_unpack (f, "{s:i}", "seq", &seq) == 0 && seq > 0,
        "another handle publishes an event and receives its number");
    idt_future_destroy (f);
    ok (asks (idt_event_publish (other, "a.c", IDT_MSGFLAG_PRIVATE, NULL), 0), "a published event may be empty");
    ok (asks (idt_event_publish (other, "b.c", 0, NULL), 0),
        "a handle publishes an event of a topic to which no handle has subscribed");
    wait_until (strstr (t.text, "a.c")) idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    ok (strcmp (t.text, "a.b={\"x\":1} a.c=- ") == 0,
        "a subscriber receives the events of its prefix only, with their payload");
    ok (asks (idt_event_unsubscribe (h, "a."), 0), "a subscriber removes its subscription");
    ok (asks (idt_service_add (h, "me"), 0), "a handle adds a service name");
    ok (asks (idt_service_remove (h, "me"), ENOSYS),
        "if a broker cannot remove a service name, the caller gets an error");
    idt_close (h);
    idt_close (other);
}

/* --- attributes, log ------------------------------------------------------------------------ */

static int requests (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "test.count", NULL, IDT_NODEID_ANY, 0);
    int count = -1;

    (void)idt_rpc_get_unpack (f, "{s:i}", "count", &count);
    idt_future_destroy (f);
    return count;
}

static void test_attrs (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    idt_error_t error = { .text = "" };
    uint32_t rank = 0, size = 0;
    const char *value;

    ok (idt_get_rank (h, &rank) == 0 && rank == 3, "idt_get_rank () returns the attribute rank");
    ok (idt_get_size (h, &size) == 0 && size == 8, "idt_get_size () returns the attribute size");
    int before = requests (h);
    ok (idt_get_rank (h, &rank) == 0 && strcmp (idt_attr_get (h, "rank"), "3") == 0 && requests (h) == before + 1,
        "the value of an immutable attribute is requested only once");
    value = idt_attr_get (h, "log-level");
    ok (value && strcmp (value, "7") == 0, "idt_attr_get () returns the value of an attribute that can be set");
    ok (idt_attr_set (h, "log-level", "5", &error) == 0, "idt_attr_set () sets an attribute");
    value = idt_attr_get (h, "log-level");
    ok (value && strcmp (value, "5") == 0,
        "idt_attr_get () requests the value of an attribute that can be set each time");
    ok (idt_attr_set (h, "rank", "5", &error) < 0 && errno == EINVAL
            && strcmp (error.text, "rank: attribute may not be updated") == 0,
        "a refused idt_attr_set () has an error text: %s", error.text);
    ok (!idt_attr_get (h, "nosuch") && errno == ENOENT, "idt_attr_get () of an unknown attribute fails with ENOENT");
    ok (!idt_attr_get (h, "bad") && errno == EPROTO, "idt_attr_get () fails with EPROTO for a malformed response");
    idt_close (h);
}

static bool logged (idt_t *h, const char *regex)
{
    idt_future_t *f = idt_rpc (h, "test.log", NULL, IDT_NODEID_ANY, 0);
    const char *s = NULL;
    regex_t re;

    if (regcomp (&re, regex, REG_EXTENDED | REG_NOSUB) != 0)
        bail_out ("regcomp");
    bool good = f && idt_rpc_get (f, &s) == 0 && s && regexec (&re, s, 0, NULL, 0) == 0;
    if (!good)
        diag ("%s", s);
    regfree (&re);
    idt_future_destroy (f);
    return good;
}

static void test_log (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    char big[10000], regex[256];

    errno = 77;
    idt_log (h, LOG_INFO, "hello %d", 1);
    ok (errno == 77, "idt_log keeps errno");
    snprintf (regex, sizeof (regex), "^<48>1 %s - [^ ]*handle_test[^ ]* %d - - hello 1$",
              "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z", (int)getpid ());
    ok (logged (h, regex), "a line of idt_log () is RFC 5424 text, with \"-\" for an unknown rank");
    idt_log (h, LOG_INFO, "two\nlines");
    ok (logged (h, " - - lines$"), "each line of a text for idt_log () is a line of the log");
    idt_get_rank (h, &(uint32_t){ 0 });
    idt_log_set_name (h, "a name");
    idt_log (h, LOG_EMERG, "%s", "");
    ok (logged (h, "^<0>1 [^ ]+ 3 a_name [0-9]+ - - $"),
        "a line of idt_log () has the rank if it is known, and the name that was set");
    memset (big, 'x', sizeof (big) - 1);
    big[sizeof (big) - 1] = '\0';
    idt_log (h, LOG_INFO, "%s", big);
    ok (logged (h, " x{2047}$"), "a line of idt_log () that is too long is cut");
    idt_close (h);
}

/* --- reactors ------------------------------------------------------------------------------- */

static void test_reactors (struct test_server *s)
{
    idt_reactor_t *r = idt_reactor_create ();
    idt_t *h = test_server_open (s), *other = test_server_open (s);
    struct trace t = { .len = 0 };

    ok (idt_set_reactor (h, r) == 0 && idt_get_reactor (h) == r, "a handle accepts a reactor of the caller");
    ok (idt_set_reactor (h, r) < 0 && errno == EBUSY, "a second reactor is refused with EBUSY");
    ok (idt_set_reactor (other, r) == 0, "two handles share a reactor");
    idt_handlers_add (h, event_table, &t);
    idt_future_then (idt_rpc (other, "test.echo", NULL, IDT_NODEID_ANY, 0), -1, answer_cb, &t);
    idt_reactor_run (r, IDT_REACTOR_DEFAULT);
    ok (strcmp (t.text, "- ") == 0, "a reactor that two handles share serves both");
    ok (idt_overlay_attach (h, NULL, NULL) < 0 && errno == ENOTSUP, "a client cannot attach to the overlay");
    idt_close (h);
    idt_close (other);
    idt_reactor_destroy (r);
}

/* The broker does not read from the connection: output waits for the reactor. */
static void test_backlog (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    struct trace t = { .len = 0 };
    static char big[1 << 20];
    int sent = 0;
    idt_future_t *f;

    idt_get_reactor (h);
    while (sent < 200) {
        f = idt_rpc_raw (h, "test.echo", big, sizeof (big), IDT_NODEID_ANY, 0);
        if (!f)
            break;
        idt_future_destroy (f); /* so its response is dropped */
        sent++;
    }
    ok (sent == 200 || errno == ENOBUFS,
        "a handle refuses requests when its queued output has reached the limit (ENOBUFS)");
    wait_until ((f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0)) || errno != ENOBUFS)
        idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    idt_future_then (f, -1, answer_cb, &t);
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    ok (strcmp (t.text, "- ") == 0, "the reactor writes queued output of a handle, and reads meanwhile");
    idt_close (h);
}

int main (int argc, char *argv[])
{
    test_open ();
    struct test_server *s = test_server_create (0);
    test_handlers (s);
    test_order (s, false);
    test_order (s, true);
    test_order_behind (s);
    test_many_events (s);
    test_publish (s);
    test_attrs (s);
    test_log (s);
    test_reactors (s);
    test_backlog (s);
    test_server_destroy (s);
    return done_testing ();
}
