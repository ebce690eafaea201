/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-turns.c - how long one client occupies a broker's reactor: all other clients wait for that time
 *
 * Two brokers run in a thread of this process, and a client sends expensive messages to them. A result is the processor
 * time of the reactor's thread between two calls of epoll_wait (), which this program replaces. The longest of a turn
 * counts.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "broker/boot/boot.h"
#include "broker/broker_group.h"
#include "line.h"
#include "timing.h"

#define MAX_TURNS (1 << 22)
#define LIMIT_US 1000
#define TURNS 4
#define SECONDS 0.7
#define HEADER 8

static void must (bool good, const char *what)
{
    if (!good) {
        fprintf (stderr, "bench-turns: %s: %s\n", what, strerror (errno));
        exit (1);
    }
}

/* --- the reactor's turns ----------------------------------------------------------------------------------------- */

static __thread bool measured;
static __thread double since_us;
static float turns[MAX_TURNS];
static size_t nturns; /* changed atomically */

static double cpu_us (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

/* Replace the function of the C library. */
int epoll_wait (int fd, struct epoll_event *events, int max, int timeout)
{
    if (measured && since_us > 0. && nturns < MAX_TURNS) {
        turns[nturns] = (float)(cpu_us () - since_us);
        __atomic_add_fetch (&nturns, 1, __ATOMIC_RELEASE);
    }
    int rc = (int)syscall (SYS_epoll_pwait, fd, events, max, timeout, NULL, 0);
    if (measured)
        since_us = cpu_us ();
    return rc;
}

/* --- the broker -------------------------------------------------------------------------------------------------- */

struct run {
    struct process *process;
    struct broker_group *crew;
    struct attrs *attrs;
    pthread_t thread;
    char dir[64];
};

static void *run_main (void *arg)
{
    struct run *run = arg;

    measured = true;
    process_run (run->process);
    measured = false;
    broker_group_destroy (run->crew);
    process_destroy (run->process);
    attrs_destroy (run->attrs);
    return NULL;
}

static void give (struct attrs *attrs, const char *name, const char *value)
{
    must (attr_give (attrs, name, value, NULL) == 0, name);
}

static void run_start (struct run *run)
{
    struct broker_group_conf conf = {
        .attrs = attrs_create (),
        .boot = { .method = &boot_single, .size = 2 },
        .tmpdir = "/tmp",
        .module_path = BUILDDIR "/src/modules/.libs:" BUILDDIR "/t/modules/.libs",
    };
    idt_error_t err = { "" };

    *run = (struct run){ .attrs = conf.attrs, .dir = "/tmp/bench-turns.XXXXXX" };
    must (mkdtemp (run->dir) != NULL, "mkdtemp");
    give (conf.attrs, "rundir", run->dir);
    give (conf.attrs, "broker.modules", "fluid,inlined");
    give (conf.attrs, "log-stderr-level", "3");
    conf.process = run->process = process_create (&err);
    if (!conf.process || !(run->crew = broker_group_create (&conf)) || broker_group_start (run->crew, &err) < 0) {
        fprintf (stderr, "bench-turns: %s\n", err.text);
        exit (1);
    }
    must (pthread_create (&run->thread, NULL, run_main, run) == 0, "pthread_create");
}

static void run_stop (struct run *run)
{
    char uri[128];
    idt_future_t *f;
    idt_t *h;

    snprintf (uri, sizeof (uri), "local://%s/local-0", run->dir);
    must ((h = idt_open (uri, NULL)) && (f = idt_rpc (h, "shutdown.start", NULL, IDT_NODEID_ANY, 0)), uri);
    must (idt_rpc_get (f, NULL) == 0, "shutdown.start");
    idt_future_destroy (f);
    idt_close (h);
    pthread_join (run->thread, NULL);
    rmdir (run->dir);
}

/* --- the client -------------------------------------------------------------------------------------------------- */

struct attack {
    const char *name, *topic;
    size_t size; /* bytes of the payload */
    int rank;    /* the rank that must answer */
    char fill;   /* the payload is an object with a string of this; '[': with arrays */
    struct figures figures;
};

static char *make_payload (const struct attack *a, size_t *size)
{
    char *p = malloc (a->size + 64);
    size_t n;

    must (p != NULL, "malloc");
    if (a->fill == '[') { /* as many small values as the size allows */
        n = (size_t)sprintf (p, "{\"a\":[");
        while (n < a->size)
            n += (size_t)sprintf (p + n, "[],");
        n += (size_t)sprintf (p + n, "0]}");
    }
    else {
        n = (size_t)sprintf (p, "{\"a\":\"");
        memset (p + n, 'x', a->size);
        n += a->size;
        n += (size_t)sprintf (p + n, "\"}");
    }
    *size = n + 1;
    return p;
}

static int open_raw (const struct run *run)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char welcome;

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/local-0", run->dir);
    must (fd >= 0 && connect (fd, (struct sockaddr *)&addr, sizeof (addr)) == 0 && read (fd, &welcome, 1) == 1,
          "connect");
    return fd;
}

static uint8_t *make_frame (const struct attack *a, size_t *size)
{
    const uint32_t magic = 0xffee0012;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    size_t payload_size;
    char *payload = make_payload (a, &payload_size);
    uint8_t *frame;

    must (msg && idt_msg_set_topic (msg, a->topic) == 0 && idt_msg_set_payload (msg, payload, payload_size) == 0,
          "message");
    idt_msg_set_matchtag (msg, 1);
    idt_msg_set_nodeid (msg, (uint32_t)a->rank);
    idt_msg_route_clear (msg);
    *size = HEADER + idt_msg_encode_size (msg);
    must ((frame = malloc (*size)) != NULL, "malloc");
    memcpy (frame, &magic, 4);
    memcpy (frame + 4, &(uint32_t){ htobe32 ((uint32_t)(*size - HEADER)) }, 4);
    idt_msg_encode (msg, frame + HEADER, *size - HEADER);
    idt_msg_unref (msg);
    free (payload);
    return frame;
}

static void *read_main (void *arg)
{
    static char buf[1 << 20];

    while (read (*(int *)arg, buf, sizeof (buf)) > 0)
        ;
    return NULL;
}

/* Return the longest turn since turn 'first', in microseconds. */
static double longest (size_t first)
{
    size_t n = __atomic_load_n (&nturns, __ATOMIC_ACQUIRE);
    double us = 0.;

    for (size_t i = first; i < n; i++)
        us = turns[i] > us ? turns[i] : us;
    return us;
}

/* Send an attack. Returns the longest turn of the broker meanwhile, in microseconds. */
static double attack (const struct run *run, const struct attack *a)
{
    size_t size, first = __atomic_load_n (&nturns, __ATOMIC_ACQUIRE);
    uint8_t *frame = make_frame (a, &size);
    int fd = open_raw (run);
    double end = now_s () + SECONDS;
    pthread_t reader;
    uint32_t tag = 0;

    must (pthread_create (&reader, NULL, read_main, &fd) == 0, "pthread_create");
    while (now_s () < end) {
        memcpy (frame + size - 4, &(uint32_t){ htobe32 (++tag) }, 4);
        for (size_t n = 0; n < size;) {
            ssize_t rc = write (fd, frame + n, size - n);

            must (rc > 0, "write");
            n += (size_t)rc;
        }
    }
    shutdown (fd, SHUT_RDWR);
    pthread_join (reader, NULL);
    close (fd);
    free (frame);
    usleep (100000);
    return longest (first);
}

int main (void)
{
    static struct attack attacks[] = {
        { .name = "requests, echoed by a module", .topic = "inlined.echo", .size = 10, .fill = 'x' },
        { .name = "requests, echoed by a module", .topic = "inlined.echo", .size = 100000, .fill = 'x' },
        { .name = "requests, echoed by a module", .topic = "inlined.echo", .size = 1000000, .fill = 'x' },
        { .name = "requests to an unknown service", .topic = "nobody.there", .size = 16000000, .fill = 'x' },
        { .name = "requests to an unknown service", .topic = "nobody.there", .size = 60000000, .fill = 'x' },
        { .name = "requests to another broker", .topic = "nobody.there", .size = 1000000, .rank = 1, .fill = 'x' },
        { .name = "requests to another broker", .topic = "nobody.there", .size = 16000000, .rank = 1, .fill = 'x' },
        { .name = "pings with a long string", .topic = "broker.ping", .size = 1000000, .fill = 'x' },
        { .name = "pings with an array", .topic = "broker.ping", .size = 6000, .fill = '[' },
        { .name = "pings with an array", .topic = "broker.ping", .size = 1000000, .fill = '[' },
    };
    const size_t n = sizeof (attacks) / sizeof (attacks[0]);
    struct run run;

    run_start (&run);
    for (int turn = 0; turn < TURNS; turn++) {
        for (struct attack *a = attacks; a < attacks + n; a++) {
            figures_add (&a->figures, attack (&run, a));
            figures_end_turn (&a->figures);
        }
    }
    run_stop (&run);
    for (struct attack *a = attacks; a < attacks + n; a++) {
        line_print (&(struct line){ .subject = "turns",
                                    .name = a->name,
                                    .unit = "us",
                                    .figures = &a->figures,
                                    .limit = LIMIT_US,
                                    .limit_of = "a millisecond, the aim",
                                    .aim = true,
                                    .size = (double)a->size,
                                    .size_of = "bytes" });
        figures_fini (&a->figures);
    }
    return 0;
}
