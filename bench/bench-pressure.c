/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-pressure.c - the latency of a modest client beside greedy, lying and deaf clients
 *
 * If there is no instance, it runs itself under `idtree start` in a chain of three brokers of which only rank 0 may
 * generate. A modest client, which is a process of its own, requests one id every 2 ms: at rank 0, which makes the id,
 * and at rank 1, which only forwards the request. It does so first without other load, then beside attackers at the
 * same broker, each of which is a process of its own.
 *
 * Each phase reports the p99 of the modest client, and the peak memory of each broker. Two phases have requirements:
 * "together" has one greedy, one lying and one deaf client at a time, and "traces" has a guest with 16 connections and
 * 32 traced requests on each. In these phases the p99 must be at most 5 times the quiet p99 of this run, memory must be
 * below 256 MiB, and no other client may lose its connection.
 *
 * The machine adds to the latency of a client: if more processes want to run than there are processors, each waits for
 * the scheduler. So attackers use only the processor time that others leave (SCHED_IDLE), as if they had their own
 * processors. In addition, a client of a bare UNIX echo server sends as often as the modest client in each phase. If
 * the p99 of the echo rises above its quiet p99, the limit is raised by the same factor.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "line.h"
#include "timing.h"

#define SAMPLES 1000
#define PERIOD_US 2000
#define SETTLE_US 300000 /* us until attackers run at full speed */
#define RANKS 3
#define MAX_RATIO 5.
#define MAX_MIB 256.
#define MESSAGE_SIZE 64 /* bytes of an echoed message: about as many as a request for ids has */
#define MAX_ATTACKERS 3
#define GUEST 65534 /* any user id that is not the owner's */

static const char *base; /* the URI of the instance, without the rank at its end */

static void die (const char *what, const char *why)
{
    fprintf (stderr, "bench-pressure: %s: %s\n", what, why);
    exit (1);
}

static void sleep_us (long us)
{
    struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

    nanosleep (&ts, NULL);
}

static void uri_of (char uri[256], int rank)
{
    snprintf (uri, 256, "%s%d", base, rank);
}

static idt_t *open_rank (int rank)
{
    idt_error_t err = { "" };
    char uri[256];
    idt_t *h;

    uri_of (uri, rank);
    if (!(h = idt_open_ex (uri, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, &err)))
        die (uri, err.text);
    return h;
}

/* --- processes ---------------------------------------------------------------------------------- */

/* Start a child that runs 'run'. It is killed when this program ends. */
static pid_t start (void (*run) (int arg), int arg)
{
    pid_t pid;

    fflush (stdout);
    if ((pid = fork ()) < 0)
        die ("fork", strerror (errno));
    if (pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        run (arg);
        _exit (0);
    }
    return pid;
}

static void stop (pid_t pid)
{
    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
}

/* Start an attacker, which gets only the processor time that other processes leave. */
static pid_t start_attacker (void (*run) (int arg), int arg)
{
    struct sched_param none = { 0 };
    pid_t pid = start (run, arg);

    if (sched_setscheduler (pid, SCHED_IDLE, &none) < 0)
        die ("sched_setscheduler", strerror (errno));
    return pid;
}

/* --- attackers, each with a rank to be at ----------------------------------------------------- */

struct flood {
    const char *topic;
    const void *payload; /* a text; with 'size': that number of bytes */
    size_t size;
    uint32_t nodeid;
    int under_way, max; /* pending requests; after each answer another request is sent, up to 'max' */
    bool guest;         /* requests are sent in the name of a guest */
};

static void flood_answer (idt_future_t *f, void *arg)
{
    struct flood *fl = arg;

    fl->under_way--;
    idt_future_destroy (f);
}

static idt_future_t *ask_as_guest (idt_t *h, const struct flood *fl)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    idt_future_t *f;

    if (!msg || idt_msg_set_topic (msg, fl->topic) < 0 || idt_msg_set_string (msg, fl->payload) < 0)
        die ("message", strerror (errno));
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = GUEST, .rolemask = IDT_ROLE_USER });
    f = idt_rpc_message (h, msg, fl->nodeid, 0);
    idt_msg_unref (msg);
    return f;
}

static idt_future_t *flood_ask (idt_t *h, const struct flood *fl)
{
    if (fl->guest)
        return ask_as_guest (h, fl);
    return fl->size > 0 ? idt_rpc_raw (h, fl->topic, fl->payload, fl->size, fl->nodeid, 0)
                        : idt_rpc (h, fl->topic, fl->payload, fl->nodeid, 0);
}

/* Send as many requests as the handle accepts, until 'max' are pending. */
static void flood_send (idt_t *h, struct flood *fl)
{
    while (fl->under_way < fl->max) {
        idt_future_t *f = flood_ask (h, fl);

        if (!f || idt_future_then (f, -1., flood_answer, fl) < 0)
            return;
        fl->under_way++;
    }
}

static void flood (int rank, struct flood fl, int connections)
{
    idt_reactor_t *r = idt_reactor_create ();
    struct flood *fls = calloc (connections, sizeof (fls[0]));
    idt_t **h = calloc (connections, sizeof (h[0]));

    for (int i = 0; i < connections; i++) {
        fls[i] = fl;
        h[i] = open_rank (rank);
        idt_set_reactor (h[i], r);
    }
    for (;;) {
        for (int i = 0; i < connections; i++)
            flood_send (h[i], &fls[i]);
        if (idt_reactor_run (r, IDT_REACTOR_ONCE) < 0)
            die ("flood", strerror (errno));
    }
}

static const uint8_t many[12] = { 0, 1, 0, 0 }; /* a request of fluid.block for 65,536 ids without a lower bound */

static void greedy (int rank)
{
    flood (rank, (struct flood){ "fluid.block", many, sizeof (many), IDT_NODEID_ANY, 0, 60000, false }, 1);
}

static void pings_here (int rank)
{
    flood (rank, (struct flood){ "broker.ping", "{\"seq\":1}", 0, rank, 0, 60000, false }, 1);
}

static void pings_far (int rank)
{
    flood (rank, (struct flood){ "broker.ping", "{\"seq\":1}", 0, rank + 1, 0, 60000, false }, 1);
}

static void crowd (int rank)
{
    flood (rank, (struct flood){ "broker.ping", "{\"seq\":1}", 0, rank, 0, 600, false }, 200);
}

static void flax (int rank)
{
    flood (rank, (struct flood){ "flax.generate", "{\"count\":65536}", 0, IDT_NODEID_ANY, 0, 10, false }, 30);
}

/* Run a guest with many connections. If root runs this program, the process changes to the guest's user id; otherwise
 * its messages contain the guest's user id.
 */
static void tracer (int rank)
{
    static const struct flood fl = { "fluid.trace", "{\"count\":1}", 0, IDT_NODEID_ANY, 0, 32, true };

    if (geteuid () == 0 && (setgid (GUEST) < 0 || setuid (GUEST) < 0))
        die ("setuid", strerror (errno));
    prctl (PR_SET_PDEATHSIG, SIGKILL); /* changing the user has cleared this setting */
    flood (rank, fl, 16);
}

/* A request with forged fields. */
static int send_forged (idt_t *h, const char *topic, const void *data, size_t size, uint32_t nodeid, int flags,
                        uint32_t roles)
{
    static uint32_t tag;
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    int rc;

    if (!msg || idt_msg_set_topic (msg, topic) < 0 || idt_msg_set_payload (msg, data, size) < 0)
        die ("message", strerror (errno));
    idt_msg_set_flag (msg, flags);
    idt_msg_set_nodeid (msg, nodeid);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = getuid (), .rolemask = roles });
    idt_msg_set_matchtag (msg, UINT32_C (1) << 30 | (++tag & 0xffffff));
    rc = idt_send (h, msg);
    idt_msg_unref (msg);
    return rc;
}

/* Connect, send bytes that are not a message, and disconnect, repeatedly. */
static void babble (int rank)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char uri[256], noise[256], *path;
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    uri_of (uri, rank);
    path = strstr (uri, "://") ? strstr (uri, "://") + 3 : uri;
    memcpy (addr.sun_path, path, strnlen (path, sizeof (addr.sun_path) - 1));
    memset (noise, 0xee, sizeof (noise));
    if (fd >= 0 && connect (fd, (struct sockaddr *)&addr, sizeof (addr)) == 0
        && send (fd, noise, sizeof (noise), MSG_NOSIGNAL) < 0 && errno != EPIPE)
        die ("liar", strerror (errno));
    if (fd >= 0)
        close (fd);
}

/* Send requests that only brokers may send, and requests for ids above one of 30 years ahead: from all ranks, with all
 * roles.
 */
static bool lie (idt_t *h, unsigned turn)
{
    static const uint32_t nodes[] = { IDT_NODEID_ANY, 0, 1, 2, 7 };
    static const uint32_t roles[] = { IDT_ROLE_OWNER, IDT_ROLE_ALL, 0, UINT32_MAX, IDT_ROLE_USER };
    static const char lease[] = "{\"want\":[[1,\"11111111-1111-4111-8111-111111111111\",1,\"946080000000\"]]}";
    uint32_t nodeid = nodes[turn % 5], role = roles[turn / 5 % 5];
    int flags = turn / 25 % 2 && nodeid != IDT_NODEID_ANY ? IDT_MSGFLAG_UPSTREAM : 0;
    uint8_t far[12];

    memcpy (far, &(uint32_t){ htobe32 (3) }, 4);
    memcpy (far + 4, &(uint64_t){ htobe64 (UINT64_C (946080000000) << 24) }, 8);
    return send_forged (h, "fluid.block", far, sizeof (far), nodeid, flags, role) == 0
           && send_forged (h, "fluid.lease", lease, sizeof (lease), nodeid, flags, role) == 0;
}

static void liar (int rank)
{
    idt_t *h = open_rank (rank);

    for (unsigned turn = 0;; turn++) {
        if (!lie (h, turn) && errno != ENOBUFS) { /* the broker may have disconnected this client */
            idt_close (h);
            h = open_rank (rank);
        }
        if (turn % 8 == 0) {
            idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT);
            babble (rank);
            sleep_us (500);
        }
    }
}

/* Request ids and larger answers, and read nothing: the handle writes until the socket accepts no further bytes. */
static void deaf (int rank)
{
    static const char flaxes[] = "{\"count\":10000}";
    idt_t *h = open_rank (rank);

    for (unsigned n = 0;; n++) {
        int rc = n % 100 == 0
                     ? send_forged (h, "flax.generate", flaxes, sizeof (flaxes), IDT_NODEID_ANY, 0, IDT_ROLE_OWNER)
                     : send_forged (h, "fluid.block", (uint8_t[12]){ 0, 0, 0, 1 }, 12, IDT_NODEID_ANY, 0,
                                    IDT_ROLE_OWNER);

        if (rc < 0 && errno != ENOBUFS) {
            idt_close (h);
            h = open_rank (rank);
        }
        if (rc < 0 || n % 1000 == 0)
            sleep_us (1000);
    }
}

/* --- the modest client ---------------------------------------------------------------------------- */

struct times {
    double us[SAMPLES];
};

static int report; /* descriptor to which the modest client's process writes its times */

/* Send a request each PERIOD_US, or later if the answer to the previous request has not arrived by then. */
static void measure (void (*once) (void *arg), void *arg)
{
    static struct times t;
    double next = now_s ();

    for (int i = 0; i < SAMPLES; i++) {
        double begin, now = now_s ();

        next = next + PERIOD_US * 1E-6 > now ? next + PERIOD_US * 1E-6 : now;
        if (next > now)
            sleep_us ((next - now) * 1E6);
        begin = now_s ();
        once (arg);
        t.us[i] = (now_s () - begin) * 1E6;
    }
    for (size_t done = 0; done < sizeof (t);) {
        ssize_t n = write (report, (char *)&t + done, sizeof (t) - done);

        if (n < 0)
            die ("write", strerror (errno));
        done += n;
    }
}

static void ask_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("the modest client", strerror (errno));
}

static void modest (int rank)
{
    measure (ask_once, open_rank (rank));
}

static int echo_fd[2];

static void echo_once (void *arg)
{
    char buf[MESSAGE_SIZE] = { 0 };

    if (write (echo_fd[0], buf, sizeof (buf)) != sizeof (buf) || read (echo_fd[0], buf, sizeof (buf)) != sizeof (buf))
        die ("echo", strerror (errno));
}

static void modest_echo (int unused)
{
    measure (echo_once, NULL);
}

static void echo_server (int unused)
{
    char buf[MESSAGE_SIZE];
    ssize_t n;

    while ((n = read (echo_fd[1], buf, sizeof (buf))) > 0)
        if (write (echo_fd[1], buf, n) != n)
            die ("echo", strerror (errno));
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A modest client that runs. Its results arrive through a pipe. */
struct run {
    pid_t pid;
    int fd;
};

static void begin_run (struct run *r, void (*run) (int arg), int arg)
{
    int fds[2];

    if (pipe (fds) < 0)
        die ("pipe", strerror (errno));
    report = fds[1];
    r->pid = start (run, arg);
    r->fd = fds[0];
    close (fds[1]);
}

/* Wait until the client has ended, and return its times, sorted. */
static void end_run (struct run *r, struct times *t)
{
    size_t done = 0;
    int status;
    ssize_t n;

    while (done < sizeof (*t) && (n = read (r->fd, (char *)t + done, sizeof (*t) - done)) > 0)
        done += n;
    close (r->fd);
    if (waitpid (r->pid, &status, 0) < 0 || status != 0 || done < sizeof (*t))
        die ("the modest client", "it was cut, or refused");
    qsort (t->us, SAMPLES, sizeof (t->us[0]), compare);
}

static double p99 (const struct times *t)
{
    return t->us[SAMPLES * 99 / 100];
}

/* The results of a modest client at a rank, and of the client of the echo server at the same time. */
struct pair {
    struct times ids;
    struct times echo;
};

static void run_pair (int rank, struct pair *p)
{
    struct run ids, echo;

    begin_run (&ids, modest, rank);
    begin_run (&echo, modest_echo, 0);
    end_run (&ids, &p->ids);
    end_run (&echo, &p->echo);
}

/* --- phases ------------------------------------------------------------------------------------------- */

static const struct phase {
    const char *name;
    void (*attackers[MAX_ATTACKERS]) (int rank);
    bool must; /* whether MAX_RATIO is a requirement */
} phases[] = {
    { "greedy", { greedy }, false },
    { "pings-same-rank", { pings_here }, false },
    { "pings-other-rank", { pings_far }, false },
    { "crowd", { crowd }, false },
    { "flax", { flax }, false },
    { "liar", { liar }, false },
    { "deaf", { deaf }, false },
    { "traces", { tracer }, true },
    { "together", { greedy, liar, deaf }, true },
};
#define PHASES (sizeof (phases) / sizeof (phases[0]))

/* Print the p99 of 't', together with 'limit_us' if that is a limit. */
static void print (const char *name, int rank, const struct times *t, double limit_us)
{
    struct figures f = { .of = FIGURES_P99 };
    char text[128];

    for (int i = 0; i < SAMPLES; i++)
        figures_add (&f, t->us[i]);
    figures_end_turn (&f);
    snprintf (text, sizeof (text), "p99 of a request at rank %d, %s", rank, name);
    line_print (&(struct line){
        .subject = "pressure",
        .name = text,
        .unit = "us",
        .figures = &f,
        .limit = limit_us,
        .limit_of = "5 times the quiet one, on a machine as busy",
        .aim = true,
    });
    figures_fini (&f);
}

/* Return the limit for a modest client. If the machine slowed down the client of the bare echo, the limit is raised by
 * the same factor.
 */
static double limit_us (const struct pair *p, const struct pair *quiet)
{
    double floor = p99 (&p->echo) / p99 (&quiet->echo);

    return MAX_RATIO * p99 (&quiet->ids) * (floor > 1 ? floor : 1);
}

/* Report a requirement that was not met. Returns whether that is tolerated. */
static bool miss (const struct phase *p, int rank, const char *what)
{
    if (p->must)
        fprintf (stderr, "bench-pressure: %s at rank %d: %s\n", p->name, rank, what);
    return !p->must;
}

/* Run a phase. Returns whether all of its requirements were met. */
static bool run_phase (const struct phase *p, int rank, const struct pair *quiet)
{
    static struct pair times;
    pid_t pids[MAX_ATTACKERS];
    int n = 0;

    for (; n < MAX_ATTACKERS && p->attackers[n]; n++)
        pids[n] = start_attacker (p->attackers[n], rank);
    sleep_us (SETTLE_US);
    run_pair (rank, &times);
    while (n > 0)
        stop (pids[--n]);
    double limit = limit_us (&times, quiet);
    print (p->name, rank, &times.ids, limit);
    sleep_us (SETTLE_US);
    return p99 (&times.ids) <= limit || miss (p, rank, "is above its limit");
}

/* Run the quiet phase twice, and use the smaller p99, because the larger one would make the other phases look better.
 */
static void run_quiet (int rank, struct pair *quiet)
{
    static struct pair again;

    run_pair (rank, quiet);
    run_pair (rank, &again);
    if (p99 (&again.ids) < p99 (&quiet->ids))
        quiet->ids = again.ids;
    if (p99 (&again.echo) < p99 (&quiet->echo))
        quiet->echo = again.echo;
    print ("quiet", rank, &quiet->ids, 0);
}

/* --- brokers, and who was there all the time -------------------------------------------------------- */

static void proc_path (char path[256], idt_t *h, const char *name)
{
    const char *pid = idt_attr_get (h, "broker.pid");

    snprintf (path, 256, "/proc/%s/%s", pid ? pid : "none", name);
}

/* Reset the peak of a broker's memory. */
static void forget_peak (idt_t *h)
{
    char path[256];
    FILE *fp;

    proc_path (path, h, "clear_refs");
    if (!(fp = fopen (path, "w")) || fputs ("5", fp) < 0 || fclose (fp) != 0)
        die (path, strerror (errno));
}

static double peak_mib (idt_t *h)
{
    char path[256], line[256];
    double kib = -1;
    FILE *fp;

    proc_path (path, h, "status");
    if (!(fp = fopen (path, "r")))
        die (path, strerror (errno));
    while (kib < 0 && fgets (line, sizeof (line), fp))
        if (strncmp (line, "VmHWM:", 6) == 0)
            kib = atof (line + 6);
    fclose (fp);
    return kib / 1024;
}

static bool check_broker (idt_t *h, int rank, const struct phase *p)
{
    struct figures f = { 0 };
    char name[128];
    fluid_t id;

    if (idt_fluid_generate (h, 1, &id) < 0)
        return miss (p, rank, "another client lost its connection");
    figures_add (&f, peak_mib (h));
    figures_end_turn (&f);
    snprintf (name, sizeof (name), "memory of rank %d at its highest, %s", rank, p->name);
    line_print (&(struct line){
        .subject = "pressure",
        .name = name,
        .unit = "MiB",
        .figures = &f,
        .limit = MAX_MIB,
        .limit_of = "bound",
        .aim = true,
    });
    double mib = figures_value (&f);
    figures_fini (&f);
    return mib < MAX_MIB || miss (p, rank, "memory is above its bound");
}

static bool run_all (const char *only)
{
    idt_t *idle[RANKS];
    static struct pair quiet[2];
    bool good = true;

    for (int rank = 0; rank < RANKS; rank++)
        idle[rank] = open_rank (rank);
    for (int rank = 0; rank < 2; rank++)
        run_quiet (rank, &quiet[rank]);
    for (size_t i = 0; i < PHASES; i++) {
        if (only && strcmp (only, phases[i].name) != 0)
            continue;
        for (int rank = 0; rank < RANKS; rank++)
            forget_peak (idle[rank]);
        for (int rank = 0; rank < 2; rank++)
            good = run_phase (&phases[i], rank, &quiet[rank]) && good;
        for (int rank = 0; rank < RANKS; rank++)
            good = check_broker (idle[rank], rank, &phases[i]) && good;
    }
    for (int rank = 0; rank < RANKS; rank++)
        idt_close (idle[rank]);
    return good;
}

/* Without an argument, run all phases. An argument is the name of the only phase to run. */
int main (int argc, char **argv)
{
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    const char *uri = getenv ("IDTREE_URI");
    char prefix[256];

    if (argc < 2 || strcmp (argv[1], "inside") != 0) {
        execl (idtree, idtree, "start", "-s", "3", "--topology", "kary:1", "-o", "fluid.max-generators=1", "-o",
               "fluid.share=off", "-o", "access.allow-guest-user=on", "-o", "log-stderr-level=0", argv[0], "inside",
               argc > 1 ? argv[1] : NULL, (char *)NULL);
        die (idtree, strerror (errno));
    }
    if (!uri || strlen (uri) < 2 || strlen (uri) > sizeof (prefix))
        die ("IDTREE_URI", "is not set, or too long");
    snprintf (prefix, sizeof (prefix), "%.*s", (int)strlen (uri) - 1, uri);
    base = prefix;
    setlinebuf (stdout);
    if (socketpair (AF_UNIX, SOCK_STREAM, 0, echo_fd) < 0)
        die ("socketpair", strerror (errno));
    start (echo_server, 0);
    return run_all (argc > 2 ? argv[2] : NULL) ? 0 : 1;
}
