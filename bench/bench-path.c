/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-path.c - the time of a request on its path through the broker, compared with bare ZeroMQ and a bare socket
 *
 * If there is no instance, it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may
 * generate: rank 0 answers itself, rank 1 over one hop, rank 3 over three hops.
 *
 * Latency: one id at a time. In the same turns, another process echoes 64 bytes: over a UNIX socket, and over a DEALER
 * and a ROUTER with CURVE, as between brokers.
 *
 * Load: one client with a fixed number of pending requests, each for one id. The client's frames are made in advance,
 * and its answers are only counted, so that the broker dominates the measurement.
 *
 * All of this runs on one processor. If threads on two processors slept between messages, the time to wake a processor
 * would dominate, which differs by a factor of three from one second to the next.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <idtree/idtree.h>

#include "line.h"
#include "timing.h"

#define TURNS 9
#define WARMUP 150
#define CALLS 1500      /* calls of each kind in a turn */
#define MESSAGE_SIZE 64 /* bytes of an echoed message: about as many as a request for ids has */
#define UNDER_WAY 512   /* pending requests of the client that causes the load */
#define BATCH 64        /* requests that this client writes in one call */
#define LOAD_S 0.5      /* seconds of load in a turn */
#define FRAME_HEADER 8

static void die (const char *what)
{
    fprintf (stderr, "bench-path: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* --- echoes: each served by a process of its own ----------------------------------------------------------------- */

static pid_t serve (void (*main) (void *arg), void *arg)
{
    pid_t pid = fork ();

    if (pid < 0)
        die ("fork");
    if (pid > 0)
        return pid;
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    main (arg);
    _exit (0);
}

static void socket_main (void *arg)
{
    char buf[4096];
    ssize_t n;

    while ((n = read (*(int *)arg, buf, sizeof (buf))) > 0)
        if (write (*(int *)arg, buf, (size_t)n) != n)
            break;
}

static void socket_once (void *arg)
{
    char buf[MESSAGE_SIZE] = { 0 };

    if (write (*(int *)arg, buf, sizeof (buf)) != sizeof (buf) || read (*(int *)arg, buf, sizeof (buf)) != sizeof (buf))
        die ("echo over a socket");
}

struct curve {
    char endpoint[128];
    char public_key[41], secret_key[41];
    void *ctx, *sock;
};

static void *curve_socket (struct curve *c, int type, bool server)
{
    void *sock = zmq_socket (c->ctx = zmq_ctx_new (), type);
    int on = 1;

    if (!sock || zmq_setsockopt (sock, ZMQ_CURVE_SECRETKEY, c->secret_key, 40) < 0)
        die ("zmq_socket");
    if (server ? zmq_setsockopt (sock, ZMQ_CURVE_SERVER, &on, sizeof (on)) < 0 || zmq_bind (sock, c->endpoint) < 0
               : zmq_setsockopt (sock, ZMQ_CURVE_PUBLICKEY, c->public_key, 40) < 0
                     || zmq_setsockopt (sock, ZMQ_CURVE_SERVERKEY, c->public_key, 40) < 0
                     || zmq_connect (sock, c->endpoint) < 0)
        die (c->endpoint);
    return sock;
}

static void curve_main (void *arg)
{
    struct curve *c = arg;
    void *sock = curve_socket (c, ZMQ_ROUTER, true);
    char id[64], buf[4096];
    int n, m;

    while ((n = zmq_recv (sock, id, sizeof (id), 0)) >= 0 && (m = zmq_recv (sock, buf, sizeof (buf), 0)) >= 0)
        if (zmq_send (sock, id, (size_t)n, ZMQ_SNDMORE) < 0 || zmq_send (sock, buf, (size_t)m, 0) < 0)
            break;
}

static void curve_once (void *arg)
{
    struct curve *c = arg;
    char buf[MESSAGE_SIZE] = { 0 };

    if (zmq_send (c->sock, buf, sizeof (buf), 0) < 0 || zmq_recv (c->sock, buf, sizeof (buf), 0) != sizeof (buf))
        die ("echo over ZeroMQ");
}

/* --- latency ----------------------------------------------------------------------------------------------------- */

static void generate_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("idt_fluid_generate");
}

enum { SOCKET, CURVE, LOCAL, ONE_HOP, THREE_HOPS, KINDS };

struct kind {
    void (*once) (void *arg);
    void *arg;
    int hops;
    const struct kind *floor; /* the bare measurement to compare with; NULL: this is the bare one */
    const char *floor_name;
    struct figures figures;
};

static void measure_latency (struct kind *kinds)
{
    for (int turn = 0; turn < TURNS; turn++) {
        for (struct kind *k = kinds; k < kinds + KINDS; k++) {
            for (int i = 0; i < WARMUP; i++)
                k->once (k->arg);
            figures_time_calls (&k->figures, k->once, k->arg, CALLS);
        }
    }
    for (struct kind *k = kinds; k < kinds + KINDS; k++) {
        if (k->floor)
            line_print (&(struct line){ .subject = "path",
                                        .name = "one id, on one processor",
                                        .unit = "us",
                                        .figures = &k->figures,
                                        .bare = &k->floor->figures,
                                        .limit_of = k->floor_name,
                                        .size = k->hops,
                                        .size_of = "hops" });
    }
    for (struct kind *k = kinds; k < kinds + KINDS; k++)
        figures_fini (&k->figures);
}

/* --- load -------------------------------------------------------------------------------------------------------- */

/* A client that writes frames itself: they are made once, and only their matchtags change. */
struct piper {
    int fd;
    uint8_t out[BATCH][256];
    size_t size;  /* bytes of a frame */
    uint32_t tag; /* matchtag of the last frame */
    size_t skip;  /* bytes of an answer that are still to come */
    uint8_t in[1 << 18], head[FRAME_HEADER];
    size_t have; /* bytes that are in 'head' */
};

static int open_raw (const char *uri)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char welcome;

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", uri + strlen ("local://"));
    if (fd < 0 || connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || read (fd, &welcome, 1) != 1 || welcome)
        die (uri);
    return fd;
}

static void make_frames (struct piper *p, const char *topic, const void *data, size_t size)
{
    const uint32_t magic = 0xffee0012;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, topic) < 0 || idt_msg_set_payload (msg, data, size) < 0)
        die ("message");
    idt_msg_route_clear (msg);
    p->size = FRAME_HEADER + idt_msg_encode_size (msg);
    memcpy (p->out[0], &magic, 4);
    uint32_t size_be = htobe32 ((uint32_t)p->size - FRAME_HEADER);
    memcpy (p->out[0] + 4, &size_be, 4);
    idt_msg_encode (msg, p->out[0] + FRAME_HEADER, sizeof (p->out[0]) - FRAME_HEADER);
    idt_msg_unref (msg);
}

static void write_batch (struct piper *p, int n)
{
    static uint8_t buf[BATCH * 256];
    uint8_t *at = buf;

    for (int i = 0; i < n; i++, at += p->size) {
        memcpy (at, p->out[0], p->size);
        uint32_t tag_be = htobe32 (++p->tag);

        memcpy (at + p->size - 4, &tag_be, 4);
    }
    for (uint8_t *from = buf; from < at;) {
        ssize_t written = write (p->fd, from, (size_t)(at - from));

        if (written < 0)
            die ("write");
        from += written;
    }
}

/* Count the answers in the received data. If an answer is an error, end the program. */
static int count_answers (struct piper *p, size_t n)
{
    int answers = 0;

    for (size_t i = 0; i < n;) {
        if (p->skip > 0) {
            size_t some = p->skip < n - i ? p->skip : n - i;

            i += some;
            answers += (p->skip -= some) == 0;
            continue;
        }
        p->head[p->have++] = p->in[i++];
        if (p->have < FRAME_HEADER)
            continue;
        p->have = 0;
        p->skip = be32toh (*(uint32_t *)(void *)(p->head + 4));
    }
    return answers;
}

static double pipe_for (struct piper *p, double seconds)
{
    double start = now_s (), end = start + seconds, t;
    uint64_t answers = 0;
    int under_way = 0;

    do {
        while (under_way + BATCH <= UNDER_WAY) {
            write_batch (p, BATCH);
            under_way += BATCH;
        }
        ssize_t n = read (p->fd, p->in, sizeof (p->in));
        if (n <= 0)
            die ("read");
        int came = count_answers (p, (size_t)n);
        answers += (uint64_t)came;
        under_way -= came;
        t = now_s ();
    } while (t < end);
    while (under_way > 0) {
        ssize_t n = read (p->fd, p->in, sizeof (p->in));
        if (n <= 0)
            die ("read");
        under_way -= count_answers (p, (size_t)n);
    }
    return (double)answers / (t - start);
}

struct load {
    const char *name, *topic;
    const void *payload;
    size_t size;
    double aim; /* requests a second that the broker should reach */
    struct figures figures;
    struct piper piper;
};

static const uint8_t block_of_one[12] = { 0, 0, 0, 1 };
static const char json_of_one[] = "{\"count\":1}";

static void measure_load (const char *uri)
{
    static struct load loads[] = {
        { .name = "requests in binary, 512 under way",
          .topic = "fluid.block",
          .payload = block_of_one,
          .size = sizeof (block_of_one),
          .aim = 500000 },
        { .name = "requests in JSON, 512 under way",
          .topic = "fluid.generate",
          .payload = json_of_one,
          .size = sizeof (json_of_one),
          .aim = 300000 },
    };
    const size_t n = sizeof (loads) / sizeof (loads[0]);

    for (struct load *l = loads; l < loads + n; l++) {
        l->figures.more = true;
        l->piper.fd = open_raw (uri);
        make_frames (&l->piper, l->topic, l->payload, l->size);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (struct load *l = loads; l < loads + n; l++) {
            figures_add (&l->figures, pipe_for (&l->piper, LOAD_S));
            figures_end_turn (&l->figures);
        }
    }
    for (struct load *l = loads; l < loads + n; l++) {
        line_print (&(struct line){ .subject = "path",
                                    .name = l->name,
                                    .unit = "1/s",
                                    .figures = &l->figures,
                                    .limit = l->aim,
                                    .limit_of = "the aim",
                                    .aim = true });
        figures_fini (&l->figures);
        close (l->piper.fd);
    }
}

/* --- all --------------------------------------------------------------------------------------------------------- */

static idt_t *open_rank (const char *base, int rank)
{
    idt_error_t err = { "" };
    char uri[256];
    idt_t *h;

    snprintf (uri, sizeof (uri), "%.*s%d", (int)strlen (base) - 1, base, rank);
    if (!(h = idt_open_ex (uri, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, &err))) {
        fprintf (stderr, "bench-path: %s\n", err.text);
        exit (1);
    }
    return h;
}

static void measure_all_latencies (const char *uri)
{
    struct curve curve;
    int fds[2];
    pid_t pids[2];

    snprintf (curve.endpoint, sizeof (curve.endpoint), "ipc:///tmp/bench-path-%d", (int)getpid ());
    if (zmq_curve_keypair (curve.public_key, curve.secret_key) < 0 || socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0)
        die ("echoes");
    pids[0] = serve (socket_main, &fds[1]);
    pids[1] = serve (curve_main, &curve);
    curve.sock = curve_socket (&curve, ZMQ_DEALER, false);
    struct kind kinds[KINDS] = {
        [SOCKET] = { .once = socket_once, .arg = &fds[0] },
        [CURVE] = { .once = curve_once, .arg = &curve },
        [LOCAL] = { .once = generate_once,
                    .arg = open_rank (uri, 0),
                    .hops = 0,
                    .floor = &kinds[SOCKET],
                    .floor_name = "a bare UNIX socket echo" },
        [ONE_HOP] = { .once = generate_once,
                      .arg = open_rank (uri, 1),
                      .hops = 1,
                      .floor = &kinds[CURVE],
                      .floor_name = "a bare ZeroMQ and CURVE echo" },
        [THREE_HOPS] = { .once = generate_once,
                         .arg = open_rank (uri, 3),
                         .hops = 3,
                         .floor = &kinds[CURVE],
                         .floor_name = "a bare ZeroMQ and CURVE echo" },
    };

    for (int i = 0; i < KINDS; i++)
        kinds[i].figures = (struct figures){ .of = FIGURES_MEDIAN, .warmup = WARMUP };
    measure_latency (kinds);
    for (int i = LOCAL; i < KINDS; i++)
        idt_close (kinds[i].arg);
    zmq_close (curve.sock);
    zmq_ctx_term (curve.ctx);
    for (int i = 0; i < 2; i++) {
        kill (pids[i], SIGKILL);
        waitpid (pids[i], NULL, 0);
        close (fds[i]);
    }
    unlink (curve.endpoint + strlen ("ipc://"));
}

/* Bind this process, and all processes that it starts, to one processor. */
static void stay_here (void)
{
    cpu_set_t set;

    CPU_ZERO (&set);
    CPU_SET (sched_getcpu (), &set);
    if (sched_setaffinity (0, sizeof (set), &set) < 0)
        die ("sched_setaffinity");
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    const char *part = argc > 1 ? argv[1] : "all";

    if (argc < 3) {
        stay_here ();
        execl (idtree, idtree, "start", "-s", "4", "--topology", "kary:1", "-o", "fluid.max-generators=1", "-o",
               "fluid.share=off", argv[0], part, "inside", (char *)NULL);
        die (idtree);
    }
    if (!uri || strlen (uri) < 2) {
        errno = EINVAL;
        die ("IDTREE_URI");
    }
    if (strcmp (part, "load") != 0)
        measure_all_latencies (uri);
    if (strcmp (part, "latency") != 0)
        measure_load (uri);
    return 0;
}
