/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-broker.c - latency and throughput of ids from a running instance, each beside the machine's limit
 *
 * Started alone it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may generate, so
 * that rank 3 is an idle rank three hops away from the generator.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "timing.h"

#define ROUNDS 20000
#define RUNS 5          /* the best of which counts */
#define MESSAGE_SIZE 64 /* bytes of an echoed message: about a request for ids */
#define BLOCK 1024
#define OUTSTANDING 64
#define CROWD 512 /* requests for one id that are under way */
#define SECONDS 4.0
#define LIMIT 1024000. /* ids a second that one generator can make */

static void die (const char *what)
{
    fprintf (stderr, "bench-broker: %s: %s\n", what, strerror (errno));
    exit (1);
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median time of one call of 'once', in microseconds. */
static double median (void (*once) (void *arg), void *arg)
{
    static double t[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        double start = now_s ();

        once (arg);
        t[i] = now_s () - start;
    }
    qsort (t, ROUNDS, sizeof (t[0]), compare);
    return t[ROUNDS / 2] * 1E6;
}

static double best_median (void (*once) (void *arg), void *arg)
{
    double best = median (once, arg);

    for (int i = 1; i < RUNS; i++) {
        double m = median (once, arg);

        if (m < best)
            best = m;
    }
    return best;
}

/* --- a bare UNIX socket echo through epoll: what any server pays ----------------------------------------------- */

static void *echo_main (void *arg)
{
    int fd = *(int *)arg, ep = epoll_create1 (0);
    struct epoll_event ev = { .events = EPOLLIN };
    char buf[4096];
    ssize_t n;

    if (ep < 0 || epoll_ctl (ep, EPOLL_CTL_ADD, fd, &ev) < 0)
        die ("epoll");
    while (epoll_wait (ep, &ev, 1, -1) == 1 && (n = read (fd, buf, sizeof (buf))) > 0)
        if (write (fd, buf, n) != n)
            break;
    close (ep);
    return NULL;
}

static void echo_once (void *arg)
{
    int fd = *(int *)arg;
    char buf[MESSAGE_SIZE] = { 0 };

    if (write (fd, buf, sizeof (buf)) != sizeof (buf) || read (fd, buf, sizeof (buf)) != sizeof (buf))
        die ("echo");
}

static double measure_echo (void)
{
    pthread_t thread;
    double us;
    int fds[2];

    if (socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        die ("socketpair");
    if (pthread_create (&thread, NULL, echo_main, &fds[1]) != 0)
        die ("pthread_create");
    us = best_median (echo_once, &fds[0]);
    close (fds[0]);
    pthread_join (thread, NULL);
    close (fds[1]);
    return us;
}

/* --- latency ------------------------------------------------------------------------------------------------------ */

static void generate_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("idt_fluid_generate");
}

static void measure_latency (const char *name, const char *uri, double echo_us)
{
    idt_error_t err;
    idt_t *h = idt_open (uri, &err);
    double us;

    if (!h) {
        fprintf (stderr, "bench-broker: %s\n", err.text);
        exit (1);
    }
    us = best_median (generate_once, h);
    printf ("{\"bench\":\"%s\",\"p50_us\":%.2f,\"echo_p50_us\":%.2f,\"ratio\":%.2f}\n", name, us, echo_us,
            us / echo_us);
    fflush (stdout);
    idt_close (h);
}

/* --- throughput --------------------------------------------------------------------------------------------------- */

struct flood {
    idt_t *h;
    double start;
    double end; /* of the time that counts */
    uint64_t ids;
    int outstanding;
};

static void ask (struct flood *fl);

static void answered (idt_future_t *f, void *arg)
{
    struct flood *fl = arg;
    fluid_t ids[BLOCK];
    double t = now_s ();

    if (idt_fluid_generate_get (f, BLOCK, ids) < 0)
        die (idt_future_error (f));
    idt_future_destroy (f);
    fl->outstanding--;
    if (t >= fl->start && t < fl->end)
        fl->ids += BLOCK;
    if (t < fl->end)
        ask (fl);
    else if (fl->outstanding == 0)
        idt_reactor_stop (idt_get_reactor (fl->h));
}

static void ask (struct flood *fl)
{
    idt_future_t *f = idt_fluid_generate_async (fl->h, BLOCK);

    if (!f || idt_future_then (f, -1., answered, fl) < 0)
        die ("idt_fluid_generate_async");
    fl->outstanding++;
}

static void measure_throughput (const char *name, const char *uri)
{
    struct flood fl = { .h = idt_open (uri, NULL) };
    double rate;

    if (!fl.h)
        die (uri);
    fl.start = now_s () + 0.5; /* until the pipe is full */
    fl.end = fl.start + SECONDS;
    for (int i = 0; i < OUTSTANDING; i++)
        ask (&fl);
    if (idt_reactor_run (idt_get_reactor (fl.h), IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    rate = fl.ids / SECONDS;
    printf ("{\"bench\":\"%s\",\"ids_per_s\":%.0f,\"limit\":%.0f,\"ratio\":%.4f}\n", name, rate, LIMIT, rate / LIMIT);
    fflush (stdout);
    idt_close (fl.h);
}

/* --- requests for one id each: what comes together goes up together ------------------------------------------- */

struct crowd {
    idt_t *h;
    const char *topic;
    double start, end; /* of the time that counts */
    uint64_t answers;
    int outstanding;
};

static void ask_one (struct crowd *c);

static void one_answered (idt_future_t *f, void *arg)
{
    struct crowd *c = arg;
    double t = now_s ();

    fluid_t id;

    if ((c->topic ? idt_rpc_get (f, NULL) : idt_fluid_generate_get (f, 1, &id)) < 0)
        die (idt_future_error (f));
    idt_future_destroy (f);
    c->outstanding--;
    c->answers += t >= c->start && t < c->end;
    if (t < c->end)
        ask_one (c);
    else if (c->outstanding == 0)
        idt_reactor_stop (idt_get_reactor (c->h));
}

static void ask_one (struct crowd *c)
{
    idt_future_t *f = c->topic ? idt_rpc (c->h, c->topic, "{\"count\":1}", IDT_NODEID_ANY, 0)
                               : idt_fluid_generate_async (c->h, 1);

    if (!f || idt_future_then (f, -1., one_answered, c) < 0)
        die ("request");
    c->outstanding++;
}

/* 'topic' NULL: of FLUIDs. */
static void measure_requests (const char *name, const char *uri, const char *topic)
{
    struct crowd c = { .h = idt_open (uri, NULL), .topic = topic };

    if (!c.h)
        die (uri);
    c.start = now_s () + 0.5;
    c.end = c.start + SECONDS;
    for (int i = 0; i < CROWD; i++)
        ask_one (&c);
    if (idt_reactor_run (idt_get_reactor (c.h), IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    printf ("{\"bench\":\"%s\",\"requests_per_s\":%.0f}\n", name, (double)c.answers / SECONDS);
    fflush (stdout);
    idt_close (c.h);
}

static void measure_requests_of (const char *far)
{
    measure_requests ("requests-3-hops-fluid", far, NULL);
    measure_requests ("requests-3-hops-sno", far, "sno.generate");
    measure_requests ("requests-3-hops-uid", far, "uid.generate");
}

/* --- start-up ----------------------------------------------------------------------------------------------------- */

static void measure_start (const char *idtree, int size)
{
    char command[4096];
    double best = 1E9;

    snprintf (command, sizeof (command), "%s start -s %d true", idtree, size);
    for (int i = 0; i < 3; i++) {
        double start = now_s ();

        if (system (command) != 0)
            die (command);
        if (now_s () - start < best)
            best = now_s () - start;
    }
    printf ("{\"bench\":\"start-%d\",\"seconds\":%.3f}\n", size, best);
    fflush (stdout);
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    char far[256];
    double echo_us;

    if (argc < 2) {
        measure_start (idtree, 64);
        execl (idtree, idtree, "start", "-s", "4", "--topology", "kary:1", "-o", "fluid.max-generators=1", "-o",
               "fluid.share=off", argv[0], "inside", (char *)NULL);
        die (idtree);
    }
    if (!uri || strlen (uri) < 2) {
        errno = EINVAL;
        die ("IDTREE_URI");
    }
    snprintf (far, sizeof (far), "%.*s3", (int)strlen (uri) - 1, uri);
    if (argc > 2) { /* one part alone: requests, or local */
        if (strcmp (argv[2], "local") == 0)
            measure_throughput ("throughput-local", uri);
        else
            measure_requests_of (far);
        return 0;
    }
    echo_us = measure_echo ();
    measure_latency ("latency-local", uri, echo_us);
    measure_latency ("latency-3-hops", far, echo_us);
    measure_throughput ("throughput-local", uri);
    measure_throughput ("throughput-3-hops", far);
    measure_requests_of (far);
    return 0;
}
