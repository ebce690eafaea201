/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-peers.c - requests to a broker of idtree, to one of Flux and to uuidd, by the same client, in turn
 *
 * bench/peers starts them and runs this program with IDTREE_URI for idtree, BENCH_FLUX_URI (if set) for Flux, and
 * BENCH_UUIDD (if set) for uuidd's socket.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "line.h"

#define TURNS 8
#define ROUNDS 500
#define WARMUP 200
#define MESSAGE_SIZE 64 /* bytes of an echoed message: about as many as a request for ids has */
#define UUIDD_TIME 2    /* uuidd's request code for one time-based UUID */
#define UUID_SIZE 16
#define ROADS_MAX 6

static void die (const char *what)
{
    fprintf (stderr, "bench-peers: %s: %s\n", what, strerror (errno));
    exit (1);
}

static void *echo_main (void *arg)
{
    char buf[MESSAGE_SIZE];
    int fd = *(int *)arg;
    ssize_t n;

    while ((n = read (fd, buf, sizeof (buf))) > 0)
        if (write (fd, buf, n) != n)
            break;
    return NULL;
}

static void echo_once (void *arg)
{
    int fd = *(int *)arg;
    char buf[MESSAGE_SIZE] = { 0 };

    if (write (fd, buf, sizeof (buf)) != sizeof (buf) || read (fd, buf, sizeof (buf)) != sizeof (buf))
        die ("echo");
}

static void generate_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("idt_fluid_generate");
}

static void ping_once (void *arg)
{
    idt_future_t *f = idt_rpc (arg, "broker.ping", "{\"seq\":1,\"pad\":\"\"}", IDT_NODEID_ANY, 0);

    if (!f || idt_rpc_get (f, NULL) < 0)
        die (f ? idt_future_error (f) : "broker.ping");
    idt_future_destroy (f);
}

/* Request a UUID of uuidd, which accepts one request per connection. The request is a byte. The answer is its own
 * length in four bytes, and the UUID.
 */
static void uuidd_once (void *arg)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char op = UUIDD_TIME, answer[4 + UUID_SIZE];
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t got = 0;
    ssize_t n;

    strncpy (addr.sun_path, arg, sizeof (addr.sun_path) - 1);
    if (fd < 0 || connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || write (fd, &op, 1) != 1)
        die (arg);
    while (got < sizeof (answer) && (n = read (fd, answer + got, sizeof (answer) - got)) > 0)
        got += (size_t)n;
    if (got < sizeof (answer))
        die ("uuidd's answer");
    close (fd);
}

static idt_t *open_uri (const char *uri)
{
    idt_error_t err;
    idt_t *h = idt_open_ex (uri, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, &err);

    if (!h) {
        fprintf (stderr, "bench-peers: %s: %s\n", uri ? uri : "IDTREE_URI", err.text);
        exit (1);
    }
    return h;
}

struct road {
    const char *name;
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

static void print_roads (struct road *roads, int n)
{
    for (int i = 1; i < n; i++) {
        line_print (&(struct line){
            .subject = "peers",
            .name = roads[i].name,
            .unit = "us",
            .figures = &roads[i].figures,
            .bare = &roads[0].figures,
            .limit_of = "a bare UNIX socket echo",
        });
        figures_fini (&roads[i].figures);
    }
    figures_fini (&roads[0].figures);
}

int main (void)
{
    const char *flux = getenv ("BENCH_FLUX_URI"), *uuidd = getenv ("BENCH_UUIDD");
    struct road roads[ROADS_MAX] = { 0 };
    idt_t *ours = open_uri (NULL), *theirs = flux ? open_uri (flux) : NULL;
    pthread_t thread;
    int fds[2], n = 0;

    if (socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0 || pthread_create (&thread, NULL, echo_main, &fds[1]) != 0)
        die ("echo");
    roads[n++] = (struct road){ .once = echo_once, .arg = &fds[0] };
    roads[n++] = (struct road){ .name = "one id: idtree", .once = generate_once, .arg = ours };
    if (uuidd)
        roads[n++] = (struct road){ .name = "one id: uuidd, by a connection",
                                    .once = uuidd_once,
                                    .arg = (void *)uuidd };
    roads[n++] = (struct road){ .name = "broker.ping: idtree", .once = ping_once, .arg = ours };
    if (theirs)
        roads[n++] = (struct road){ .name = "broker.ping: flux", .once = ping_once, .arg = theirs };
    time_roads (roads, n);
    print_roads (roads, n);
    idt_close (ours);
    idt_close (theirs);
    close (fds[0]);
    pthread_join (thread, NULL);
    close (fds[1]);
    return 0;
}
