/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fault_test.c - each allocation fails in turn; and how many system calls a round trip needs
 *
 * Linked with --wrap for the functions below. In the test's thread allocation number 'fail_at' (from 0) fails; the
 * server's thread has its own counter. Each case runs with fail_at = 0, 1, 2, ... until it succeeds. The address
 * sanitizer finds leaks. Only libidtree's own allocations fail: jansson 2.14 silently omits a number if it cannot
 * allocate it.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "libidtree/handle.h"
#include "test/test_server.h"
#include "test/tap.h"

static _Thread_local unsigned fail_at = -1u; /* counts down; the call that finds it 0 fails */
static _Thread_local unsigned allocations, reads, writes, polls;

static bool fails (void)
{
    allocations++;
    if (fail_at == -1u || fail_at-- > 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc (size_t size);
void *__wrap_malloc (size_t size);
void *__wrap_malloc (size_t size)
{
    return fails () ? NULL : __real_malloc (size);
}

void *__real_calloc (size_t count, size_t size);
void *__wrap_calloc (size_t count, size_t size);
void *__wrap_calloc (size_t count, size_t size)
{
    return fails () ? NULL : __real_calloc (count, size);
}

char *__real_strdup (const char *s);
char *__wrap_strdup (const char *s);
char *__wrap_strdup (const char *s)
{
    return fails () ? NULL : __real_strdup (s);
}

ssize_t __real_read (int fd, void *buf, size_t size);
ssize_t __wrap_read (int fd, void *buf, size_t size);
ssize_t __wrap_read (int fd, void *buf, size_t size)
{
    reads++;
    return __real_read (fd, buf, size);
}

ssize_t __real_send (int fd, const void *buf, size_t size, int flags);
ssize_t __wrap_send (int fd, const void *buf, size_t size, int flags);
ssize_t __wrap_send (int fd, const void *buf, size_t size, int flags)
{
    writes++;
    return __real_send (fd, buf, size, flags);
}

int __real_ppoll (struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask);
int __wrap_ppoll (struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask);
int __wrap_ppoll (struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *mask)
{
    polls++;
    return __real_ppoll (fds, n, ts, mask);
}

/* --- cases: each returns 0, or -1 with errno; each cleans up in either case ---------------- */

static int rpc_case (idt_t *h)
{
    idt_future_t *f = idt_rpc_pack (h, "test.echo", IDT_NODEID_ANY, 0, "{s:i s:s}", "i", 1, "s", "x");
    const char *s;
    int i;
    int rc = f ? idt_rpc_get_unpack (f, "{s:i s:s}", "i", &i, "s", &s) : -1;

    idt_future_destroy (f);
    return rc;
}

static int raw_case (idt_t *h)
{
    idt_future_t *f = idt_rpc_raw (h, "test.echo", "abc", 3, IDT_NODEID_UPSTREAM, 0);
    int rc = f ? idt_rpc_get_raw (f, NULL, NULL) : -1;

    idt_future_destroy (f);
    return rc;
}

static int generate_case (idt_t *h)
{
    fluid_t ids[10];

    return idt_fluid_generate (h, 10, ids);
}

static int attr_case (idt_t *h)
{
    return idt_attr_get (h, "log-level") && idt_attr_get (h, "size") ? idt_attr_set (h, "log-level", "7", NULL) : -1;
}

static int publish_case (idt_t *h)
{
    idt_future_t *f = idt_event_publish (h, "a.b", 0, "{}");
    int rc = f ? idt_rpc_get (f, NULL) : -1;

    idt_future_destroy (f);
    return rc;
}

static int log_case (idt_t *h)
{
    unsigned before = writes;

    idt_log (h, LOG_INFO, "hello");
    if (writes > before)
        return 0;
    errno = ENOMEM; /* the line was lost */
    return -1;
}

static int stream_case (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "test.stream", "{\"n\":30}", IDT_NODEID_ANY, IDT_RPC_STREAMING);
    int n = 0;

    while (f && idt_rpc_get (f, NULL) == 0) {
        n++;
        idt_future_reset (f);
    }
    int errnum = f ? idt_future_errnum (f) : errno;
    idt_future_destroy (f);
    if (errnum == ENODATA && n == 30)
        return 0;
    errno = errnum;
    return -1;
}

struct seen {
    int calls;
    int errnum;
};

static void seen_cb (idt_future_t *f, void *arg)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->errnum = idt_future_errnum (f);
}

static unsigned unanswered; /* requests for which a handler sent no response */

static void echo_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    unsigned before = writes;

    (void)idt_respond_pack (h, msg, "{s:i}", "x", 1);
    (void)idt_flush (h);
    unanswered += idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && writes == before;
}

static const struct idt_handler_spec table[] = {
    { IDT_MSGTYPE_REQUEST, "me.echo", echo_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_EVENT, "test.*", echo_cb, 0 },
    IDT_HANDLERS_END,
};

/* Events go to the inbox, the response to a callback, which is called exactly once even if allocations fail. */
static int then_case (idt_t *h)
{
    struct seen seen = { 0 };
    idt_future_t *f = idt_rpc (h, "test.event", "{\"n\":20}", IDT_NODEID_ANY, 0);
    int rc = -1;

    if (f && idt_future_then (f, 1e9, seen_cb, &seen) == 0 && rpc_case (h) == 0) {
        rc = idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
        if (seen.calls != 1)
            bail_out ("a callback was not called exactly once");
        if (rc == 0 && seen.errnum != 0) {
            errno = seen.errnum;
            rc = -1;
        }
    }
    idt_future_destroy (f);
    return rc;
}

static int handler_case (idt_t *h)
{
    idt_future_t *f = NULL;
    int rc = -1;

    if (idt_handlers_add (h, table, NULL) == 0
        && (f = idt_rpc_pack (h, "test.request", IDT_NODEID_ANY, 0, "{s:s s:i}", "topic", "me.echo", "rolemask", 1))
        && idt_get_reactor (h)) {
        unsigned before = writes, missed = unanswered;
        wait_until (writes != before || unanswered != missed || h->lost)
            idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
        if (writes > before)
            rc = idt_rpc_get (f, NULL);
        else
            errno = unanswered > missed ? ENOMSG : ENOMEM;
    }
    idt_future_destroy (f);
    return rc;
}

static const struct {
    const char *name;
    int (*run) (idt_t *h);
} cases[] = {
    { "a request with JSON", rpc_case }, { "a request with bytes", raw_case }, { "generating ids", generate_case },
    { "attributes", attr_case },         { "publishing", publish_case },       { "logging", log_case },
    { "a stream", stream_case },         { "a callback", then_case },          { "a handler", handler_case },
};

/* Run a case on a new connection, with each allocation failing in turn. */
static void test_case (struct test_server *s, const char *name, int (*run) (idt_t *h))
{
    bool clean = true;
    int rc = -1;
    unsigned n;

    for (n = 0; rc < 0 && n < 1000; n++) {
        fail_at = n;
        idt_t *h = idt_open (test_server_uri (s), NULL);
        rc = h ? run (h) : -1;
        bool failed = fail_at == -1u;
        if (rc < 0 && (!failed || (errno != ENOMEM && errno != ENOBUFS))) {
            diag ("%s: allocation %u: %s", name, n, strerror (errno));
            clean = false;
        }
        idt_close (h);
        fail_at = -1u;
    }
    ok (clean && rc == 0, "%s: if any one of %u allocations fails, the result is ENOMEM", name, n - 1);
}

/* Lose the connection and reconnect, with each allocation failing in turn. After a failed attempt the handle tries
 * again.
 */
static void test_reconnect (struct test_server *s)
{
    bool clean = true;
    unsigned n, failed = 0;

    for (n = 0; n < 60; n++) {
        fluid_t id;
        idt_t *h = idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .flags = IDT_O_RECONNECT }, NULL);
        idt_future_t *f = h ? idt_event_subscribe (h, "x.") : NULL;
        if (!f || idt_rpc_get (f, NULL) < 0)
            bail_out ("subscribe");
        idt_future_destroy (f);
        f = idt_rpc (h, "test.close", NULL, IDT_NODEID_ANY, 0);
        fail_at = n;
        if (f && idt_future_wait (f, -1) == 0)
            clean = false;
        if (idt_fluid_generate (h, 1, &id) < 0) {
            failed++;
            clean = clean && (errno == ENOMEM || errno == ENOBUFS);
        }
        fail_at = -1u;
        idt_future_destroy (f);
        clean = clean && idt_fluid_generate (h, 1, &id) == 0;
        idt_close (h);
    }
    ok (clean, "after %u lost connections with a failed allocation each, %u calls fail, and later calls succeed", n,
        failed);
}

/* Prefetch ids with each allocation failing in turn. If prefetching fails, the call or a later one requests the ids. */
static void test_prefetch (struct test_server *s)
{
    unsigned n, failed = 0;
    bool clean = true;

    for (n = 0; n < 60; n++) {
        fluid_t id = 0, last = 0;
        idt_t *h = idt_open (test_server_uri (s), NULL);
        fail_at = n;
        int rc = h ? idt_fluid_prefetch (h, 32, 60000) : -1;
        for (int i = 0; i < 100; i++, last = id) {
            if (rc == 0 && idt_fluid_generate (h, 1, &id) == 0)
                clean = clean && id > last;
            else
                failed++, clean = clean && errno == ENOMEM;
        }
        fail_at = -1u;
        clean = clean && idt_fluid_prefetch (h, 32, 60000) == 0 && idt_fluid_generate (h, 1, &id) == 0 && id > last;
        idt_close (h);
    }
    ok (clean && failed > 0, "prefetched ids are given out in order even when allocations fail; %u of %u calls fail",
        failed, 100 * n);
}

/* System calls and allocations for one block of ids, in the steady state. */
static void test_price (struct test_server *s)
{
    idt_t *h = idt_open (test_server_uri (s), NULL);
    fluid_t ids[16];
    const unsigned rounds = 100;
    bool good = true;

    /* After the first response the client also requests the instance's UUID. */
    good = idt_fluid_generate (h, 16, ids) == 0 && idt_fluid_generate (h, 16, ids) == 0;
    allocations = reads = writes = polls = 0;
    for (unsigned i = 0; i < rounds; i++)
        good = good && idt_fluid_generate (h, 16, ids) == 0;
    ok (good && writes == rounds && reads == rounds && polls == rounds,
        "a call for a block of ids needs one write, one poll and one read");
    ok (allocations <= 5 * rounds, "a call for a block of ids needs %.1f allocations", (double)allocations / rounds);
    good = idt_fluid_prefetch (h, 1024, 60000) == 0;
    for (unsigned i = 0; i < 256; i++)
        good = good && idt_fluid_generate (h, 16, ids) == 0;
    allocations = reads = writes = polls = 0;
    for (unsigned i = 0; i < 1024; i++)
        good = good && idt_fluid_generate (h, 16, ids) == 0;
    ok (good && writes <= 32 && reads <= 32 && polls <= 32 && allocations <= 5 * 32,
        "1,024 blocks of prefetched ids need %u writes, %u polls, %u reads, %u allocations", writes, polls, reads,
        allocations);
    idt_close (h);
}

int main (int argc, char *argv[])
{
    struct test_server *s = test_server_create (0);
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
        test_case (s, cases[i].name, cases[i].run);
    test_reconnect (s);
    test_prefetch (s);
    test_price (s);
    test_server_destroy (s);
    return done_testing ();
}
