/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rpc_test.c - each future is fulfilled once: by its response, an error, a timeout, or the loss of the connection */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "libidtree/handle.h"
#include "test/test_server.h"
#include "test/tap.h"

#define MANY 10000

/* --- callbacks that count their calls ------------------------------------------------------- */

struct seen {
    int calls;
    int errnum;   /* of the last call */
    int sum;      /* of "i" */
    bool reset;   /* reset the future in the callback */
    bool destroy; /* destroy the future in the callback */
    bool stop;    /* stop the reactor in the callback */
};

static void seen_cb (idt_future_t *f, void *arg)
{
    struct seen *seen = arg;
    idt_reactor_t *r = idt_get_reactor (idt_future_handle (f));
    int i;

    seen->calls++;
    seen->errnum = idt_future_errnum (f);
    if (seen->errnum == 0 && idt_rpc_get_unpack (f, "{s:i}", "i", &i) == 0)
        seen->sum += i;
    if (seen->reset)
        idt_future_reset (f);
    if (seen->destroy)
        idt_future_destroy (f);
    if (seen->stop)
        idt_reactor_stop (r);
}

static int run (idt_t *h)
{
    return idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
}

/* --- one response --------------------------------------------------------------------------- */

static void test_sync (idt_t *h)
{
    const char *s = "x";
    const void *data;
    size_t size;
    idt_future_t *f;

    f = idt_rpc (h, "test.echo", "hello", IDT_NODEID_ANY, 0);
    ok (f && !idt_future_is_ready (f), "a future is not ready before its response is read");
    ok (idt_rpc_get (f, &s) == 0 && strcmp (s, "hello") == 0, "idt_rpc_get waits for a string");
    ok (idt_future_is_ready (f) && idt_future_errnum (f) == 0, "a future is ready after idt_rpc_get");
    ok (idt_future_wait (f, 0) == 0, "waiting for a ready future returns immediately");
    ok (idt_rpc_get_unpack (f, "{s:i}", "i", &(int){ 0 }) < 0 && errno == EPROTO,
        "unpacking a text that is not JSON fails with EPROTO");
    idt_future_destroy (f);

    f = idt_rpc_raw (h, "test.echo", "\1\0\2", 3, IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get_raw (f, &data, &size) == 0 && size == 3 && memcmp (data, "\1\0\2", 3) == 0,
        "idt_rpc_get_raw returns bytes");
    ok (idt_rpc_get (f, &s) < 0 && errno == EPROTO,
        "idt_rpc_get fails with EPROTO for a response of bytes that are no string");
    idt_future_destroy (f);

    f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get (f, &s) == 0 && s == NULL, "idt_rpc_get returns NULL for an empty response");
    ok (idt_rpc_get_raw (f, &data, &size) < 0 && errno == EPROTO,
        "idt_rpc_get_raw fails with EPROTO for a future without a message");
    ok (idt_rpc_get_msg (f) && strcmp (idt_msg_topic (idt_rpc_get_msg (f)), "test.echo") == 0,
        "idt_rpc_get_msg returns the message");
    idt_future_destroy (f);
}

static void test_pack (idt_t *h)
{
    const char *name = NULL;
    int i = 0;
    idt_future_t *f = idt_rpc_pack (h, "test.echo", IDT_NODEID_ANY, 0, "{s:s s:i}", "name", "x", "i", 7);

    ok (f && idt_rpc_get_unpack (f, "{s:s s:i}", "name", &name, "i", &i) == 0 && strcmp (name, "x") == 0 && i == 7,
        "JSON that idt_rpc_pack packs is returned unchanged");
    ok (idt_rpc_get_unpack (f, "{s:i}", "nosuch", &i) < 0 && errno == EPROTO,
        "idt_rpc_get_unpack fails with EPROTO for a missing key");
    ok (idt_rpc_get_unpack (f, "{s:i}", "i", &i) == 0, "a response can be unpacked again");
    idt_future_destroy (f);
    ok (!idt_rpc_pack (h, "test.echo", IDT_NODEID_ANY, 0, "}") && errno == EINVAL,
        "idt_rpc_get_unpack fails with EINVAL for a bad format");
}

static void test_errors (idt_t *h)
{
    idt_future_t *f;

    f = idt_rpc (h, "test.error", "{\"errnum\":13,\"text\":\"no way\"}", IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get (f, NULL) < 0 && errno == EACCES, "idt_rpc_get returns the error of a response in errno");
    ok (idt_future_wait (f, -1) == 0, "idt_future_wait succeeds for an error response");
    ok (strcmp (idt_future_error (f), "no way") == 0, "idt_future_error returns the text of an error response");
    ok (idt_rpc_get_msg (f) && idt_msg_errnum (idt_rpc_get_msg (f)) == EACCES,
        "idt_rpc_get_msg returns the message of an error response");
    idt_future_destroy (f);
    f = idt_rpc (h, "test.error", "{\"errnum\":13}", IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get (f, NULL) < 0 && strcmp (idt_future_error (f), strerror (EACCES)) == 0 && errno == EACCES,
        "for an error without a text idt_future_error returns the text of strerror, and errno is kept");
    idt_future_destroy (f);
    f = idt_rpc (h, "nosuch.method", NULL, IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get (f, NULL) < 0 && errno == ENOSYS, "a request for an unknown topic fails with ENOSYS");
    idt_future_destroy (f);

    char topic[IDT_MSG_MAX_TOPIC + 2];
    memset (topic, 'x', sizeof (topic) - 1);
    topic[sizeof (topic) - 1] = '\0';
    ok (!idt_rpc (h, topic, NULL, IDT_NODEID_ANY, 0) && errno == EINVAL,
        "a request with a topic that is too long fails with EINVAL");
}

static void test_large (idt_t *h)
{
    const void *data;
    size_t size;
    idt_future_t *f = idt_rpc (h, "test.answer", "{\"n\":20000000}", IDT_NODEID_ANY, 0);

    ok (f && idt_rpc_get_raw (f, &data, &size) == 0 && size == 20000000, "a response of 20 MB arrives");
    idt_future_destroy (f);
    char *big = calloc (1, 20000000);
    f = idt_rpc_raw (h, "test.echo", big, 20000000, IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get_raw (f, &data, &size) == 0 && size == 20000000, "a request of 20 MB is echoed");
    idt_future_destroy (f);
    f = idt_rpc_raw (h, "test.echo", big, 20000000, IDT_NODEID_ANY, IDT_RPC_NORESPONSE);
    ok (f && idt_flush (h) == 0, "idt_flush writes all of a long request");
    idt_future_destroy (f);
    free (big);
}

static void test_noresponse (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "test.never", NULL, IDT_NODEID_ANY, IDT_RPC_NORESPONSE);
    struct seen seen = { .destroy = true };

    ok (f && idt_future_is_ready (f), "a future with NORESPONSE is ready when the request is sent");
    ok (idt_rpc_get (f, NULL) == 0 && !idt_rpc_get_msg (f), "a future with NORESPONSE has a result without a message");
    ok (idt_rpc_get_raw (f, NULL, NULL) < 0 && errno == EPROTO,
        "idt_rpc_get_raw fails with EPROTO for a future with NORESPONSE");
    ok (idt_future_then (f, -1, seen_cb, &seen) == 0 && seen.calls == 0,
        "idt_future_then on a ready future does not call the callback");
    ok (run (h) == 0 && seen.calls == 1, "the reactor calls the callback of a ready future once");
    f = idt_rpc (h, "test.never", NULL, IDT_NODEID_ANY, IDT_RPC_NORESPONSE);
    idt_future_then (f, -1, seen_cb, &seen);
    idt_future_destroy (f);
    ok (run (h) == 0 && seen.calls == 1, "the callback of a future is not called if the future is destroyed before");
}

static void test_upstream (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_UPSTREAM, 0);

    ok (f && idt_rpc_get (f, NULL) == 0, "a request to UPSTREAM is answered");
    idt_future_destroy (f);
}

/* --- callbacks ------------------------------------------------------------------------------ */

static void test_then (idt_t *h)
{
    struct seen seen = { .destroy = true };
    idt_future_t *f = idt_rpc (h, "test.echo", "{\"i\":5}", IDT_NODEID_ANY, 0);

    ok (idt_future_then (f, -1, seen_cb, &seen) == 0, "a future accepts one callback");
    ok (idt_future_then (f, -1, seen_cb, &seen) < 0 && errno == EINVAL, "a second callback for a future is refused");
    ok (idt_future_wait (f, -1) < 0 && errno == EINVAL, "waiting for a future that has a callback is refused");
    ok (run (h) == 0 && seen.calls == 1 && seen.sum == 5, "the reactor calls the callback of a future, then ends");

    struct seen other = { 0 };
    f = idt_rpc (h, "test.echo", "{\"i\":6}", IDT_NODEID_ANY, 0);
    idt_future_then (f, -1, seen_cb, &other);
    idt_future_t *g = idt_rpc (h, "test.echo", "hello", IDT_NODEID_ANY, 0);
    ok (idt_rpc_get (g, NULL) == 0 && other.calls == 0 && !idt_future_is_ready (f),
        "waiting for another future calls no callback");
    idt_future_destroy (g);
    ok (run (h) == 0 && other.calls == 1 && other.sum == 6,
        "after a wait for another future the reactor calls the callback of the first");
    idt_future_destroy (f);
}

/* Sends the next request from the callback of the last one. */
static void chain_cb (idt_future_t *f, void *arg)
{
    idt_t *h = idt_future_handle (f);
    int *left = arg;

    idt_future_destroy (f);
    if (--*left > 0 && (f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0)))
        idt_future_then (f, -1, chain_cb, left);
}

/* Waits for another future in a callback. */
static void nested_cb (idt_future_t *f, void *arg)
{
    idt_future_t *g = idt_rpc (idt_future_handle (f), "test.echo", "in", IDT_NODEID_ANY, 0);

    *(bool *)arg = g && idt_rpc_get (g, NULL) == 0;
    idt_future_destroy (g);
    idt_future_destroy (f);
}

static void test_callbacks (idt_t *h)
{
    int left = 1000;
    bool good = false;
    idt_future_t *f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0);

    idt_future_then (f, -1, chain_cb, &left);
    ok (run (h) == 0 && left == 0, "a callback may destroy its future and send the next request");
    f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0);
    idt_future_then (f, -1, nested_cb, &good);
    ok (run (h) == 0 && good, "a callback may wait for another future");
}

/* --- streams -------------------------------------------------------------------------------- */

static void test_stream (idt_t *h)
{
    int i = -1, n = 0;
    idt_future_t *f = idt_rpc (h, "test.stream", "{\"n\":100}", IDT_NODEID_ANY, IDT_RPC_STREAMING);

    while (idt_rpc_get_unpack (f, "{s:i}", "i", &i) == 0 && i == n) {
        n++;
        idt_future_reset (f);
    }
    ok (errno == ENODATA && n == 100, "a stream returns its responses in order, then ENODATA");
    idt_future_reset (f);
    ok (idt_future_is_ready (f) && idt_future_errnum (f) == ENODATA,
        "resetting a future after the end of its stream has no effect");
    idt_future_destroy (f);

    struct seen seen = { .reset = true };
    f = idt_rpc (h, "test.stream", "{\"n\":100}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    idt_future_then (f, -1, seen_cb, &seen);
    ok (run (h) == 0 && seen.calls == 101 && seen.sum == 4950 && seen.errnum == ENODATA,
        "the callback of a stream is called once for each response and once for the end");
    idt_future_destroy (f);

    struct seen lazy = { .stop = true };
    f = idt_rpc (h, "test.stream", "{\"n\":3}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    idt_future_then (f, -1, seen_cb, &lazy);
    for (int round = 1; round <= 4; round++) {
        run (h);
        ok (lazy.calls == round, "without a reset the callback of a stream is not called again (%d)", round);
        idt_future_reset (f);
    }
    ok (lazy.errnum == ENODATA && run (h) == 0 && lazy.calls == 4,
        "after the end of a stream its callback is not called again");
    idt_future_destroy (f);

    f = idt_rpc (h, "test.stream", "{\"n\":1000}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    ok (f && idt_rpc_get (f, NULL) == 0, "the future of an unfinished stream may be destroyed");
    idt_future_destroy (f);
    f = idt_rpc (h, "test.echo", "hello", IDT_NODEID_ANY, 0);
    ok (f && idt_rpc_get (f, NULL) == 0, "the remaining responses of a stream whose future was destroyed are dropped");
    idt_future_destroy (f);
}

/* --- timeouts ------------------------------------------------------------------------------- */

static void test_timeouts (idt_t *h)
{
    struct seen seen = { 0 };
    const char *s = NULL;
    idt_future_t *f = idt_rpc (h, "test.hold", "late", IDT_NODEID_ANY, 0);
    idt_future_t *g;

    ok (idt_future_wait (f, 0) < 0 && errno == ETIMEDOUT, "waiting 0 ms without a response fails with ETIMEDOUT");
    ok (idt_future_wait (f, 5.5) < 0 && errno == ETIMEDOUT, "a longer wait without a response fails with ETIMEDOUT");
    g = idt_rpc (h, "test.release", NULL, IDT_NODEID_ANY, 0);
    ok (idt_rpc_get (f, &s) == 0 && strcmp (s, "late") == 0,
        "a future whose wait has timed out can be waited for again");
    idt_future_destroy (f);
    idt_future_destroy (g);

    f = idt_rpc (h, "test.hold", NULL, IDT_NODEID_ANY, 0);
    idt_future_then (f, 5, seen_cb, &seen);
    ok (run (h) == 0 && seen.calls == 1 && seen.errnum == ETIMEDOUT,
        "the callback of a future is called with ETIMEDOUT when its timeout is over");
    g = idt_rpc (h, "test.release", NULL, IDT_NODEID_ANY, 0);
    ok (idt_rpc_get (g, NULL) == 0 && run (h) == 0 && seen.calls == 1,
        "a response after the timeout of its future is dropped");
    idt_future_destroy (f);
    idt_future_destroy (g);

    struct seen quick = { 0 };
    f = idt_rpc (h, "test.echo", "{\"i\":1}", IDT_NODEID_ANY, 0);
    idt_future_then (f, 1e9, seen_cb, &quick);
    ok (run (h) == 0 && quick.calls == 1 && quick.errnum == 0,
        "a response before the timeout stops the timer of the future");
    idt_future_destroy (f);

    struct seen each = { .reset = true };
    f = idt_rpc (h, "test.hold", "{\"i\":1}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    idt_future_then (f, 1, seen_cb, &each);
    g = idt_rpc (h, "test.release", NULL, IDT_NODEID_ANY, 0);
    idt_rpc_get (g, NULL); /* by now the first response to f has been read */
    ok (run (h) == 0 && each.calls == 2 && each.sum == 1 && each.errnum == ETIMEDOUT,
        "the timeout applies to each response of a stream");
    idt_future_destroy (f);
    idt_future_destroy (g);

    struct seen met = { 0 };
    f = idt_rpc (h, "test.echo", "{\"i\":1}", IDT_NODEID_ANY, 0);
    idt_future_then (f, 0, seen_cb, &met);
    g = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0);
    idt_rpc_get (g, NULL); /* by now the response to f has been read */
    ok (run (h) == 0 && met.calls == 1 && met.errnum == 0,
        "a response that was already read takes precedence over an expired timer");
    idt_future_destroy (f);
    idt_future_destroy (g);

    struct seen there = { 0 };
    struct pollfd pfd = { .fd = h->transport->pollfd (h->impl), .events = POLLIN };
    f = idt_rpc (h, "test.echo", "{\"i\":1}", IDT_NODEID_ANY, 0);
    idt_future_then (f, 0, seen_cb, &there);
    wait_until (poll (&pfd, 1, TAP_WAIT_S * 1000) == 1);
    ok (run (h) == 0 && there.calls == 1 && there.errnum == 0,
        "a response that can be read takes precedence over an expired timer");
    idt_future_destroy (f);
}

/* --- many ----------------------------------------------------------------------------------- */

static void test_many_sync (idt_t *h)
{
    static idt_future_t *f[MANY];
    int good = 0;

    for (int i = 0; i < MANY; i++) {
        char s[32];
        snprintf (s, sizeof (s), "{\"i\":%d}", i);
        f[i] = idt_rpc (h, i % 2 ? "test.hold" : "test.echo", s, IDT_NODEID_ANY, 0);
    }
    for (int i = 0; i < MANY; i += 4) { /* half of each kind is dropped */
        idt_future_destroy (f[i]);
        idt_future_destroy (f[i + 1]);
        f[i] = f[i + 1] = NULL;
    }
    idt_future_t *g = idt_rpc (h, "test.release", NULL, IDT_NODEID_ANY, 0);
    for (int i = 0; i < MANY; i++) {
        int got = -1;
        if (f[i] && idt_rpc_get_unpack (f[i], "{s:i}", "i", &got) == 0 && got == i)
            good++;
        idt_future_destroy (f[i]);
    }
    ok (idt_rpc_get (g, NULL) == 0, "the response to the last of many requests is received");
    idt_future_destroy (g);
    ok (good == MANY / 2, "each of %d concurrent requests gets its own response", MANY);
    ok (h->tags.count == 0, "after all responses no matchtag is in use");
}

static void test_many_async (idt_t *h)
{
    struct seen seen = { .destroy = true };
    int sent = 0;

    for (int i = 0; i < MANY; i++) {
        idt_future_t *f = idt_rpc (h, i % 2 ? "test.hold" : "test.echo", "{\"i\":1}", IDT_NODEID_ANY, 0);
        if (f && idt_future_then (f, -1, seen_cb, &seen) == 0)
            sent++;
    }
    idt_future_t *g = idt_rpc (h, "test.release", "{\"i\":0}", IDT_NODEID_ANY, 0);
    idt_future_then (g, -1, seen_cb, &seen);
    ok (run (h) == 0 && seen.calls == sent + 1 && seen.sum == MANY,
        "each of %d callbacks of concurrent requests is called once", MANY);
}

/* --- the loss of the connection ------------------------------------------------------------- */

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->errnum = errnum;
}

static void test_lost (struct test_server *s, const char *topic, int errnum)
{
    enum { n = 100 };
    idt_t *h = test_server_open (s);
    struct seen seen = { 0 }, lost = { 0 };
    idt_future_t *waiting[n], *called[n], *last;
    int failed = 0;

    idt_set_lost (h, lost_cb, &lost);
    for (int i = 0; i < n; i++) {
        waiting[i] = idt_rpc (h, "test.never", NULL, IDT_NODEID_ANY, 0);
        called[i] = idt_rpc (h, "test.never", NULL, IDT_NODEID_ANY, i % 2 ? IDT_RPC_STREAMING : 0);
        idt_future_then (called[i], 1e9, seen_cb, &seen);
    }
    idt_future_t *good = idt_rpc (h, "test.echo", "{\"i\":1}", IDT_NODEID_ANY, 0);
    struct seen fine = { 0 };
    idt_future_then (good, -1, seen_cb, &fine);
    last = idt_rpc (h, topic, NULL, IDT_NODEID_ANY, 0);
    ok (idt_future_wait (last, -1) < 0 && errno == errnum, "%s: waiting for a future fails with %s", topic,
        strerror (errnum));
    for (int i = 0; i < n; i++)
        failed += idt_future_is_ready (waiting[i]) && idt_future_errnum (waiting[i]) == errnum;
    ok (failed == n, "after a loss of the connection all other waiting futures have failed");
    ok (seen.calls == 0 && lost.calls == 0,
        "after a loss of the connection no callback has been called before the reactor runs");
    ok (!idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0) && errno == errnum,
        "after a loss of the connection a new request fails");
    ok (run (h) == 0 && seen.calls == n && seen.errnum == errnum,
        "after a loss of the connection the reactor calls each callback once, then ends");
    ok (fine.calls == 1 && fine.errnum == 0,
        "a response that arrived before the loss of the connection is returned, not an error");
    ok (lost.calls == 1 && lost.errnum == errnum, "the lost callback is called once for a loss of the connection");
    ok (run (h) == 0 && lost.calls == 1 && seen.calls == n,
        "after a loss of the connection a second run of the reactor has no effect");
    for (int i = 0; i < n; i++) {
        idt_future_destroy (waiting[i]);
        idt_future_destroy (called[i]);
    }
    idt_future_destroy (good);
    idt_future_destroy (last);
    idt_close (h);
}

/* A stream that was not reset when the connection was lost. */
static void test_lost_later (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    struct seen seen = { 0 }, lost = { 0 };
    idt_future_t *f = idt_rpc (h, "test.hold", "{\"i\":1}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    idt_future_t *g = idt_rpc (h, "test.release", NULL, IDT_NODEID_ANY, 0);

    idt_set_lost (h, lost_cb, &lost);
    idt_future_then (f, -1, seen_cb, &seen);
    idt_rpc_get (g, NULL);
    idt_future_destroy (g);
    wait_until (seen.calls > 0) idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    g = idt_rpc (h, "test.close", NULL, IDT_NODEID_ANY, 0);
    ok (idt_rpc_get (g, NULL) < 0 && run (h) == 0 && seen.calls == 1 && seen.errnum == 0,
        "a stream with a response that was not read does not report the loss of the connection yet");
    idt_future_reset (f);
    ok (run (h) == 0 && seen.calls == 2 && seen.errnum == ECONNRESET,
        "a stream reports the loss of the connection after the reset of its future");
    idt_future_reset (f);
    ok (run (h) == 0 && seen.calls == 2, "a stream reports the loss of the connection once");
    idt_future_destroy (f);
    idt_future_destroy (g);
    idt_close (h);
}

static void test_lost_in_reactor (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    struct seen seen = { .destroy = true };
    idt_future_t *f = idt_rpc (h, "test.never", NULL, IDT_NODEID_ANY, 0);
    idt_future_t *g = idt_rpc (h, "test.close", NULL, IDT_NODEID_ANY, 0);

    idt_future_then (f, -1, seen_cb, &seen);
    idt_future_then (g, -1, seen_cb, &seen);
    ok (run (h) < 0 && errno == ECONNRESET && seen.calls == 2,
        "without idt_set_lost a loss of the connection stops the reactor, after the callbacks");
    idt_close (h);
}

int main (int argc, char *argv[])
{
    struct test_server *s = test_server_create (0);
    idt_t *h = test_server_open (s);

    test_sync (h);
    test_pack (h);
    test_errors (h);
    test_large (h);
    test_noresponse (h);
    test_upstream (h);
    test_then (h);
    test_callbacks (h);
    test_stream (h);
    test_timeouts (h);
    test_many_sync (h);
    test_many_async (h);
    idt_close (h);
    test_lost (s, "test.close", ECONNRESET);
    test_lost (s, "test.garbage", EPROTO);
    test_lost_later (s);
    test_lost_in_reactor (s);
    test_server_destroy (s);
    return done_testing ();
}
