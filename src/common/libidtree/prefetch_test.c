/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* prefetch_test.c - prefetched ids: their order and age, and the effect of a fork, a refusal and the end of a broker
 *
 * Linked with --wrap for the clock, which the test sets, and for madvise (), which some kernels do not support.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "libidtree/transport.h"
#include "test/test_server.h"
#include "test/tap.h"

#define AGE_MS 60000
#define MOST 64

static _Thread_local long ahead_s; /* seconds added to CLOCK_BOOTTIME, as if the host had been suspended */
static bool cannot_wipe;

int __real_clock_gettime (clockid_t id, struct timespec *ts);
int __wrap_clock_gettime (clockid_t id, struct timespec *ts);
int __wrap_clock_gettime (clockid_t id, struct timespec *ts)
{
    int rc = __real_clock_gettime (id, ts);

    ts->tv_sec += id == CLOCK_BOOTTIME ? ahead_s : 0;
    return rc;
}

int __real_madvise (void *p, size_t size, int advice);
int __wrap_madvise (void *p, size_t size, int advice);
int __wrap_madvise (void *p, size_t size, int advice)
{
    if (!cannot_wipe || advice != MADV_WIPEONFORK)
        return __real_madvise (p, size, advice);
    errno = EINVAL;
    return -1;
}

static idt_t *open_prefetching (struct test_server *s)
{
    idt_t *h = test_server_open (s);

    if (idt_fluid_prefetch (h, MOST, AGE_MS) < 0)
        bail_out ("idt_fluid_prefetch");
    return h;
}

static fluid_t one (idt_t *h)
{
    fluid_t id;

    return idt_fluid_generate (h, 1, &id) == 0 ? id : 0;
}

static void ask (idt_t *h, const char *topic, const char *text)
{
    idt_future_t *f = idt_rpc (h, topic, text, IDT_NODEID_ANY, 0);

    if (!f || idt_rpc_get (f, NULL) < 0)
        bail_out (topic);
    idt_future_destroy (f);
}

/* Requests that the server received, including this one. */
static int count (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "test.count", NULL, IDT_NODEID_ANY, 0);
    int n;

    if (!f || idt_rpc_get_unpack (f, "{s:i}", "count", &n) < 0)
        bail_out ("test.count");
    idt_future_destroy (f);
    return n;
}

/* --- order ---------------------------------------------------------------------------------- */

static void test_singles (struct test_server *s)
{
    idt_t *h = open_prefetching (s);
    int before = count (h), gaps = 0;
    fluid_t last = one (h);

    for (int i = 1; i < 10000; i++, last++)
        gaps += one (h) != last + 1;
    ok (gaps == 0, "each of 10,000 single ids directly follows the one before, so that no id is skipped");
    int requests = count (h) - before - 1;
    ok (requests < 10000 / 16, "10,000 single ids need %d requests", requests);
    idt_close (h);
}

static void test_mixed (struct test_server *s)
{
    idt_t *h = open_prefetching (s);
    fluid_t ids[500], last = 0;
    int disorder = 0;

    for (int i = 0; i < 5000; i++) {
        uint32_t n = i % 17 == 0 ? 500 : 1 + i % 40;
        idt_future_t *f = i % 7 == 0 ? idt_fluid_generate_async (h, n) : NULL;
        if (f ? idt_fluid_generate_get (f, n, ids) < 0 : idt_fluid_generate (h, n, ids) < 0)
            bail_out ("idt_fluid_generate");
        idt_future_destroy (f);
        for (uint32_t k = 0; k < n; k++) {
            disorder += ids[k] <= last;
            last = ids[k];
        }
    }
    ok (disorder == 0, "prefetched and requested ids, in calls for few and many ids, always increase");

    fluid_t first = one (h);
    idt_future_t *f = idt_fluid_generate_async (h, 1);
    fluid_t later = one (h);
    ok (f && idt_fluid_generate_get (f, 1, ids) == 0 && first < ids[0] && ids[0] < later,
        "an id that is requested while another request is in progress is above all ids of that request");
    idt_future_destroy (f);
    idt_close (h);
}

/* --- age, demand ---------------------------------------------------------------------------- */

static void test_age (struct test_server *s)
{
    idt_t *h = open_prefetching (s), *other = test_server_open (s);
    fluid_t first = one (h);
    fluid_t made = one (other);

    ahead_s += AGE_MS / 1000 - 1;
    ok (one (h) == first + 1 && first < made,
        "a prefetched id is given out even if another client made later ids meanwhile");
    made = one (other);
    ahead_s += AGE_MS / 1000;
    ok (one (h) > made, "an expired id is not given out; the age of an id includes time in suspension");
    idt_close (other);
    idt_close (h);
}

static void test_idle (struct test_server *s)
{
    idt_t *h = open_prefetching (s);

    (void)one (h);
    int before = count (h);
    idt_reactor_t *r = idt_get_reactor (h);
    for (int i = 0; i < 100; i++, ahead_s += 1)
        (void)idt_reactor_run (r, IDT_REACTOR_NOWAIT);
    ok (count (h) == before + 1, "a handle that is not used makes no request");
    ahead_s += 2 * AGE_MS / 1000;
    before = count (h);
    (void)one (h);
    ok (count (h) == before + 2, "after a long pause a call makes one request, for its own ids");
    before = count (h);
    (void)one (h);
    ok (count (h) == before + 3,
        "the second call after a long pause makes two requests: for its own ids, and for ids to prefetch");
    before = count (h);
    (void)one (h);
    ok (count (h) == before + 1, "the third call after a long pause makes no request");
    idt_close (h);
}

static void destroy_cb (idt_future_t *f, void *arg)
{
    idt_future_destroy (f);
}

/* Ids that the reactor has received are used while no broker can answer. */
static void test_reactor (struct test_server *s)
{
    idt_t *h = open_prefetching (s);
    fluid_t last = one (h);
    int n = 1;

    while (n < 16 && one (h) == last + (unsigned)n)
        n++;
    idt_reactor_t *r = idt_get_reactor (h);
    idt_future_t *f = idt_rpc (h, "test.echo", "{}", IDT_NODEID_ANY, 0); /* after the request for more */
    if (!f || idt_future_then (f, -1, destroy_cb, NULL) < 0)
        bail_out ("test.echo");
    (void)idt_reactor_run (r, IDT_REACTOR_DEFAULT);
    test_server_stop (s);
    for (int i = 0; i < 8; i++, n++)
        last = one (h) == last + (unsigned)n ? last : 0;
    ok (last > 0, "the reactor receives the response to a request for ids to prefetch");
    test_server_start (s);
    idt_close (h);
}

/* --- failures ------------------------------------------------------------------------------- */

static void test_refused (struct test_server *s)
{
    idt_t *h = open_prefetching (s);
    fluid_t last = one (h), id;
    int n = 1;

    ask (h, "test.refuse", "{\"n\":1000,\"errnum\":11}");
    while (idt_fluid_generate (h, 1, &id) == 0 && id == last + 1) {
        last = id;
        n++;
    }
    ok (n >= 16 && errno == EAGAIN,
        "after a refusal %d prefetched ids are given out, then a call fails with EAGAIN, as it does without "
        "prefetching",
        n);
    int before = count (h);
    ok (one (h) == 0 && errno == EAGAIN && count (h) == before + 2,
        "for some time after a refusal no ids are prefetched");
    ask (h, "test.refuse", "{\"n\":0,\"errnum\":0}");
    ok ((id = one (h)) > last && one (h) > id, "calls succeed when requests succeed again after a refusal");
    idt_close (h);
}

/* A guest that may not request this many ids at a time. */
static void test_too_many (struct test_server *s)
{
    idt_t *h = test_server_open (s);

    ask (h, "test.refuse", "{\"n\":1,\"errnum\":1}");
    if (idt_fluid_prefetch (h, MOST, AGE_MS) < 0 || one (h) == 0)
        bail_out ("idt_fluid_prefetch");
    for (int i = 0; i < 3; i++, ahead_s += AGE_MS / 1000 - 1)
        (void)one (h);
    int before = count (h), got = 0;
    for (int i = 0; i < 80; i++)
        got += one (h) > 0;
    int requests = count (h) - before - 1;
    ok (got == 80 && requests >= 80 / 8 && requests < 40,
        "after a refusal of a request as too large, requests are halved permanently (%d requests)", requests);
    idt_close (h);
}

static void test_silent (struct test_server *s)
{
    idt_t *h = test_server_open (s);

    ask (h, "test.refuse", "{\"n\":1,\"errnum\":0}");
    if (idt_fluid_prefetch (h, MOST, 20) < 0)
        bail_out ("idt_fluid_prefetch");
    ok (one (h) > 0,
        "a call sends a request for its own ids if the response to a prefetch would arrive after its ids have expired");
    ask (h, "test.fluid", NULL);
    idt_close (h);
}

static void test_lost (struct test_server *s)
{
    idt_t *h = open_prefetching (s);
    fluid_t last = 0, id;
    int n = 0;

    for (int i = 0; i < 100; i++)
        last = one (h);
    test_server_stop (s);
    idt_future_t *f = idt_rpc (h, "test.echo", NULL, IDT_NODEID_ANY, 0);
    idt_future_destroy (f);
    while (n < 1000 && idt_lost_error (h) == NULL && (id = one (h)) > last) {
        last = id;
        n++;
    }
    test_server_start (s);
    int disorder = 0;
    for (int i = 0; i < 1000; i++, last = id)
        disorder += (id = one (h)) <= last;
    ok (n > 0 && disorder == 0,
        "when the broker ends, the prefetched ids are given out, then higher ids of the next broker");
    idt_close (h);
}

static void test_lost_request (struct test_server *s)
{
    idt_t *h = test_server_open (s);

    ask (h, "test.refuse", "{\"n\":1,\"errnum\":0}");
    if (idt_fluid_prefetch (h, MOST, AGE_MS) < 0)
        bail_out ("idt_fluid_prefetch");
    ask (h, "test.echo", "{}"); /* so that the server has the request */
    test_server_stop (s);
    test_server_start (s);
    ok (one (h) > 0, "a call does not fail because a request for ids to prefetch is lost with its broker");
    int before = count (h);
    for (int i = 0; i < 1000; i++)
        (void)one (h);
    ok (count (h) < before + 100, "the next broker immediately gets a request for ids to prefetch");
    idt_close (h);
}

static void test_once (struct test_server *s)
{
    idt_t *h = idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .flags = IDT_O_NORECONNECT }, NULL);
    fluid_t last, id;
    int n = 0;

    if (!h || idt_fluid_prefetch (h, MOST, AGE_MS) < 0)
        bail_out ("open");
    last = one (h);
    test_server_stop (s);
    while (idt_fluid_generate (h, 1, &id) == 0 && id == last + 1) {
        last = id;
        n++;
    }
    ok (n >= 15 && (errno == ECONNRESET || errno == EPIPE),
        "without reconnection a call fails when the prefetched ids are used up, as it does without prefetching");
    test_server_start (s);
    idt_close (h);
}

static void test_fork (struct test_server *s)
{
    idt_t *h = open_prefetching (s);
    fluid_t last = one (h), id = 0;
    int status;

    fflush (stdout);
    pid_t pid = fork ();
    if (pid == 0) {
        bool good = idt_fluid_generate (h, 1, &id) < 0 && errno == ENOTCONN && id == 0;
        good = good && idt_fluid_prefetch (h, MOST, AGE_MS) < 0 && errno == ENOTCONN;
        idt_close (h);
        _exit (good ? 0 : 1);
    }
    ok (pid > 0 && waitpid (pid, &status, 0) == pid && status == 0, "in a forked child each call fails with ENOTCONN");
    ok (one (h) == last + 1, "the parent process of a forked child continues to get ids");
    idt_close (h);
}

static void nothing (int signum)
{
}

static bool not_again (void *arg)
{
    int *asked = arg;

    return ++*asked < 2;
}

static void test_interrupt (struct test_server *s)
{
    idt_t *h = test_server_open (s);
    int asked = 0;

    sigaction (SIGALRM, &(struct sigaction){ .sa_handler = nothing }, NULL);
    idt_set_interrupt (h, not_again, &asked);
    ask (h, "test.refuse", "{\"n\":3,\"errnum\":0}");
    asked = 0;
    const struct itimerval often = { { 0, 5000 }, { 0, 5000 } }, never = { { 0, 0 }, { 0, 0 } };
    setitimer (ITIMER_REAL, &often, NULL);
    ok (one (h) == 0 && errno == EINTR && asked == 2,
        "after a signal the interrupt callback ends a call that waits for its own ids");
    asked = 0;
    ok (idt_fluid_prefetch (h, MOST, AGE_MS) == 0 && one (h) == 0 && errno == EINTR && asked == 2,
        "after a signal the interrupt callback ends a call that waits for prefetched ids");
    setitimer (ITIMER_REAL, &never, NULL);
    asked = 0;
    ok (one (h) == 0 && errno == EINTR && asked == 2,
        "without a signal the interrupt callback is called regularly, too");
    idt_set_interrupt (h, NULL, NULL);
    idt_close (h);
    h = test_server_open (s);
    ask (h, "test.refuse", "{\"n\":0,\"errnum\":0}");
    ok (one (h) > 0, "after an interrupted call another handle still gets ids");
    idt_close (h);
}

/* --- arguments ------------------------------------------------------------------------------ */

static void test_limits (struct test_server *s)
{
    idt_t *h = test_server_open (s), *inlined = idt_handle_create (&(struct idt_transport){ .destroy = free }, NULL);
    fluid_t last, ids[MOST];

    ok (idt_fluid_prefetch (h, IDT_FLUID_MAX_COUNT + 1, 1) < 0 && errno == EINVAL,
        "prefetching with too many ids fails with EINVAL");
    ok (idt_fluid_prefetch (h, 1, 0) < 0 && errno == EINVAL, "prefetching with a maximum age of 0 fails with EINVAL");
    ok (idt_fluid_prefetch (inlined, 1, 1) < 0 && errno == EDEADLK,
        "prefetching in an inline module fails with EDEADLK");
    cannot_wipe = true;
    ok (idt_fluid_prefetch (h, 1, 1) < 0 && errno == ENOTSUP,
        "prefetching on a kernel without MADV_WIPEONFORK fails with ENOTSUP");
    cannot_wipe = false;
    ok (idt_fluid_prefetch (h, 0, 0) == 0, "ending prefetching that was not begun succeeds");
    ok (idt_fluid_prefetch (h, IDT_FLUID_MAX_COUNT, UINT32_MAX) == 0 && one (h) > 0,
        "prefetching accepts the largest number of ids and the largest age");
    ok (idt_fluid_generate (h, 0, ids) < 0 && errno == EINVAL, "a call for 0 ids fails with EINVAL");
    ok (idt_fluid_generate (h, IDT_FLUID_MAX_COUNT + 1, ids) < 0 && errno == EINVAL,
        "a call for too many ids fails with EINVAL");
    last = one (h);
    ok (idt_fluid_prefetch (h, 3, AGE_MS) == 0 && (ids[0] = one (h)) > last,
        "after the number of prefetched ids was changed the ids still increase");
    ok (idt_fluid_prefetch (h, 0, 0) == 0 && one (h) > ids[0], "after prefetching has ended the ids still increase");
    int before = count (h);
    ok (one (h) > 0 && count (h) == before + 2, "after prefetching has ended each call requests its ids");
    idt_close (inlined);
    idt_close (h);
}

int main (int argc, char *argv[])
{
    struct test_server *s = test_server_create (0);

    test_singles (s);
    test_mixed (s);
    test_age (s);
    test_idle (s);
    test_reactor (s);
    test_refused (s);
    test_too_many (s);
    test_silent (s);
    test_lost (s);
    test_lost_request (s);
    test_once (s);
    test_fork (s);
    test_interrupt (s);
    test_limits (s);
    test_server_destroy (s);
    return done_testing ();
}
