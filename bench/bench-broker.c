/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-broker.c - latency and throughput of ids from a running instance, and the time to start one
 *
 * If there is no instance, it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may
 * generate. So rank 3 is an idle rank, three hops away from the generator.
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

#include "flood.h"
#include "line.h"
#include "timing.h"

#define TURNS 10
#define ROUNDS 1000 /* requests of a turn */
#define WARMUP 1000
#define HOPS 4          /* numbers of hops: 0 to 3 */
#define MESSAGE_SIZE 64 /* bytes of an echoed message: about as many as a request for ids has */
#define BLOCK 1024
#define OUTSTANDING 64
#define CROWD 512 /* pending requests, each for one id */
#define CLIENTS_MAX 16
#define CLIENT_REQUESTS 16 /* pending requests of each client */
#define FLOOD_TURNS 6
#define TURN_S 0.5 /* length of a flood in seconds */
#define START_TURNS 5
#define WARMUP_S 0.3 /* seconds at the beginning of a flood that do not count, because the pipeline is not full */
#define START_TURNS 5
#define LIMIT 1024000. /* most ids a second that one generator can make */

static void die (const char *what)
{
    fprintf (stderr, "bench-broker: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* --- a bare UNIX socket echo through epoll, which no server can be faster than --- */

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

/* --- latency ------------------------------------------------------------------------------------------------------ */

static void generate_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("idt_fluid_generate");
}

static idt_t *open_rank (const char *uri, int rank)
{
    char text[256];
    idt_error_t err;
    idt_t *h;

    snprintf (text, sizeof (text), "%.*s%d", (int)strlen (uri) - 1, uri, rank);
    if (!(h = idt_open_ex (text, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, &err))) {
        fprintf (stderr, "bench-broker: %s\n", err.text);
        exit (1);
    }
    return h;
}

/* A target of the measurement: the echo server first, then a rank for each number of hops. */
struct road {
    void (*once) (void *arg);
    void *arg;
    struct figures figures;
};

static void time_roads (struct road *roads, int n)
{
    for (int i = 0; i < n; i++) {
        roads[i].figures = (struct figures){ .of = FIGURES_MEDIAN, .warmup = WARMUP };
        for (int k = 0; k < WARMUP; k++)
            roads[i].once (roads[i].arg);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < n; i++)
            figures_time_calls (&roads[i].figures, roads[i].once, roads[i].arg, ROUNDS);
}

static void measure_latency (const char *uri)
{
    struct road roads[1 + HOPS] = { 0 };
    pthread_t thread;
    int fds[2];

    if (socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        die ("socketpair");
    if (pthread_create (&thread, NULL, echo_main, &fds[1]) != 0)
        die ("pthread_create");
    roads[0] = (struct road){ .once = echo_once, .arg = &fds[0] };
    for (int i = 0; i < HOPS; i++)
        roads[1 + i] = (struct road){ .once = generate_once, .arg = open_rank (uri, i) };
    time_roads (roads, 1 + HOPS);
    for (int i = 0; i < HOPS; i++) {
        line_print (&(struct line){
            .subject = "broker",
            .name = "one id",
            .unit = "us",
            .figures = &roads[1 + i].figures,
            .bare = &roads[0].figures,
            .limit_of = "a bare UNIX socket echo",
            .size = i,
            .size_of = "hops",
        });
        idt_close (roads[1 + i].arg);
        figures_fini (&roads[1 + i].figures);
    }
    figures_fini (&roads[0].figures);
    close (fds[0]);
    pthread_join (thread, NULL);
    close (fds[1]);
}

/* --- floods ------------------------------------------------------------------------------------------------------- */

/* Run one flood. Each turn starts new clients, because the scheduler may keep a good or bad placement of client and
 * broker for as long as these live.
 */
static double flood_once (const struct flood *fl, const char *uri, int rank, int clients)
{
    idt_t *h[CLIENTS_MAX];

    for (int i = 0; i < clients; i++)
        h[i] = open_rank (uri, rank);
    return flood_run (fl, h, clients);
}

static void run_flood (const struct flood *fl, const char *uri, int rank, int clients, struct figures *f)
{
    for (int turn = 0; turn < FLOOD_TURNS; turn++) {
        figures_add (f, flood_once (fl, uri, rank, clients));
        figures_end_turn (f);
    }
}

/* Measure the rate of bare sockets with the same number of pending messages, which is an upper limit for floods of
 * requests.
 */
static void flood_echo (int fd, int under_way, struct figures *f)
{
    char buf[64 * MESSAGE_SIZE] = { 0 };
    size_t left = 0; /* bytes of pending messages */

    for (int turn = 0; turn < FLOOD_TURNS; turn++) {
        double start = now_s (), s;
        uint64_t got = 0;

        while ((s = now_s () - start) < TURN_S) {
            for (; left < (size_t)under_way * MESSAGE_SIZE; left += sizeof (buf))
                if (write (fd, buf, sizeof (buf)) != sizeof (buf))
                    die ("write");
            ssize_t n = read (fd, buf, sizeof (buf));
            if (n <= 0)
                die ("read");
            left -= (size_t)n;
            got += (size_t)n;
        }
        figures_add (f, got / s / MESSAGE_SIZE);
        figures_end_turn (f);
    }
    while (left > 0)
        left -= (size_t)read (fd, buf, sizeof (buf));
}

static void measure_echo_flood (int under_way, struct figures *f)
{
    pthread_t thread;
    int fds[2];

    *f = (struct figures){ .more = true };
    if (socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        die ("socketpair");
    if (pthread_create (&thread, NULL, echo_main, &fds[1]) != 0)
        die ("pthread_create");
    flood_echo (fds[0], under_way, f);
    close (fds[0]);
    pthread_join (thread, NULL);
    close (fds[1]);
}

static void measure_blocks (const char *uri, int rank)
{
    struct flood fl = { .block = BLOCK, .under_way = OUTSTANDING, .warmup_s = WARMUP_S, .seconds = TURN_S };
    struct figures f = { .more = true };

    run_flood (&fl, uri, rank, 1, &f);
    line_print (&(struct line){
        .subject = "broker",
        .name = "ids in blocks of 1024, 64 outstanding",
        .unit = "/s",
        .figures = &f,
        .limit = LIMIT,
        .limit_of = "limit of the format for one generator",
        .size = rank,
        .size_of = "hops",
    });
    figures_fini (&f);
}

/* Measure requests for one id each. Brokers combine requests that arrive at the same time. */
static void measure_requests (const char *uri, const char *name, const char *topic, const struct figures *bare)
{
    struct flood fl = { .topic = topic, .block = 1, .under_way = CROWD, .warmup_s = WARMUP_S, .seconds = TURN_S };
    struct figures f = { .more = true };

    run_flood (&fl, uri, HOPS - 1, 1, &f);
    line_print (&(struct line){
        .subject = "broker",
        .name = name,
        .unit = "/s",
        .figures = &f,
        .bare = bare,
        .limit_of = "messages through bare sockets",
        .size = HOPS - 1,
        .size_of = "hops",
    });
    figures_fini (&f);
}

static void measure_all_requests (const char *uri)
{
    struct figures bare;

    measure_echo_flood (CROWD, &bare);
    measure_requests (uri, "requests for one FLUID, 512 outstanding", NULL, &bare);
    measure_requests (uri, "requests for one sno, 512 outstanding", "sno.generate", &bare);
    measure_requests (uri, "requests for one uid, 512 outstanding", "uid.generate", &bare);
    figures_fini (&bare);
}

/* Measure local clients of one broker, all in one process, with CLIENT_REQUESTS pending requests each. */
static void measure_clients (const char *uri, int clients)
{
    struct flood fl = { .block = 1, .under_way = CLIENT_REQUESTS, .warmup_s = WARMUP_S, .seconds = TURN_S };
    struct figures f = { .more = true }, bare;

    measure_echo_flood (CLIENT_REQUESTS * clients, &bare);
    run_flood (&fl, uri, 0, clients, &f);
    line_print (&(struct line){
        .subject = "broker",
        .name = "requests for one FLUID, 16 outstanding of each client",
        .unit = "/s",
        .figures = &f,
        .bare = &bare,
        .limit_of = "messages through bare sockets",
        .size = clients,
        .size_of = "clients",
    });
    figures_fini (&f);
    figures_fini (&bare);
}

/* --- start-up ----------------------------------------------------------------------------------------------------- */

static void start_once (void *arg)
{
    if (system (arg) != 0)
        die (arg);
}

/* Measure the start of an instance. The limit is the time of as many processes that only start and end. */
static void measure_start (const char *idtree, int size)
{
    struct figures f = { 0 }, bare = { 0 };
    char command[4096], processes[256];

    snprintf (command, sizeof (command), "%s start -s %d true", idtree, size);
    snprintf (processes, sizeof (processes), "for i in $(seq %d); do /bin/true & done; wait", size);
    for (int i = 0; i < START_TURNS; i++) {
        figures_time_calls (&f, start_once, command, 1);
        figures_time_calls (&bare, start_once, processes, 1);
    }
    line_print (&(struct line){
        .subject = "broker",
        .name = "start and stop an instance",
        .unit = "us",
        .figures = &f,
        .bare = &bare,
        .limit_of = "as many processes that only end",
        .size = size,
        .size_of = "brokers",
    });
    figures_fini (&bare);
    figures_fini (&f);
}

static void measure_inside (const char *uri, const char *part)
{
    if (!part || strcmp (part, "latency") == 0)
        measure_latency (uri);
    if (!part || strcmp (part, "blocks") == 0) {
        measure_blocks (uri, 0);
        measure_blocks (uri, HOPS - 1);
    }
    if (!part || strcmp (part, "requests") == 0)
        measure_all_requests (uri);
    for (int n = 1; n <= CLIENTS_MAX && (!part || strcmp (part, "clients") == 0); n *= 4)
        measure_clients (uri, n);
}

/* An argument selects one part: start, latency, blocks, requests, clients. */
int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    const char *part = argc > 1 ? argv[1] : NULL;

    if (part && strcmp (part, "inside") == 0) {
        if (!uri || strlen (uri) < 2) {
            errno = EINVAL;
            die ("IDTREE_URI");
        }
        measure_inside (uri, argc > 2 ? argv[2] : NULL);
        return 0;
    }
    for (int size = 4; size <= 64 && (!part || strcmp (part, "start") == 0); size *= 4)
        measure_start (idtree, size);
    if (part && strcmp (part, "start") == 0)
        return 0;
    execl (idtree, idtree, "start", "-s", "4", "--topology", "kary:1", "-o", "fluid.max-generators=1", "-o",
           "fluid.share=off", argv[0], "inside", part, (char *)NULL);
    die (idtree);
    return 1;
}
