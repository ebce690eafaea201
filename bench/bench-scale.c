/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-scale.c - latency, and the processor time of each thread, of a real instance on this host under a load
 *
 *   idtree start -s 64 -- bench-scale RATE SECONDS [RANK...]
 *   bench-scale wants
 *
 * Sends requests for one id to each of the ranks (default: all), RATE times a second each, at random times. Each rank
 * must have a socket of its own (idtree start --local-sockets), because the load of a process that hosts many ranks
 * cannot be divided by rank or level. Prints the same lines as fluid-scale (src/sim/scale), for scripts/scale-measure
 * and scripts/scale-compare. With 'wants' it measures the time of a lease message, and of each want in it.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "modules/fluid/service/wire.h"
#include "sim/scale/samples.h"
#include "timing.h"

#define MAX_LEVELS 40
#define WARM_UP_S 1.

struct cpu {
    double main_s, io_s; /* processor time of a broker: main_s of its first thread, io_s of all other threads */
};

struct process {
    long pid;
    uint32_t ranks;
    struct cpu before, used;
};

struct rank {
    struct load *load;
    idt_t *h;
    uint32_t level;
    bool idle; /* the rank makes no ids */
    uint32_t process;
};

struct load {
    idt_reactor_t *reactor;
    struct rank *rank;
    uint32_t size;
    struct process *process;
    uint32_t nprocesses;
    uint32_t *asked; /* the ranks that get requests */
    uint32_t naskers;
    double rate;
    double next_s, begin_s, end_s;
    int timer_fd;
    uint64_t outstanding, answered, failed;
    bool begun;
    double client_s;
    struct samples latency[MAX_LEVELS][2], all;
};

struct request {
    struct rank *r;
    double asked_s;
};

static void die (const char *what)
{
    fprintf (stderr, "bench-scale: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* --- processor time -------------------------------------------------------------------------------------------- */

static double thread_s (long pid, const char *tid)
{
    char path[128];
    unsigned long long ns = 0;

    snprintf (path, sizeof (path), "/proc/%ld/task/%.20s/schedstat", pid, tid);
    FILE *f = fopen (path, "r");
    if (!f || fscanf (f, "%llu", &ns) != 1)
        ns = 0; /* the thread has ended */
    if (f)
        fclose (f);
    return (double)ns / 1e9;
}

static struct cpu read_cpu (long pid)
{
    struct cpu cpu = { 0, 0 };
    char path[64];
    struct dirent *e;

    snprintf (path, sizeof (path), "/proc/%ld/task", pid);
    DIR *d = opendir (path);
    if (!d)
        die (path);
    while ((e = readdir (d))) {
        if (e->d_name[0] == '.')
            continue;
        double s = thread_s (pid, e->d_name);
        if (atol (e->d_name) == pid)
            cpu.main_s += s;
        else
            cpu.io_s += s;
    }
    closedir (d);
    return cpu;
}

static double own_s (void)
{
    struct rusage u;

    getrusage (RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void begin (struct load *l)
{
    l->begun = true;
    for (uint32_t i = 0; i < l->nprocesses; i++)
        l->process[i].before = read_cpu (l->process[i].pid);
    l->client_s = own_s ();
    l->begin_s = now_s ();
}

static void end (struct load *l)
{
    l->end_s = now_s ();
    l->client_s = own_s () - l->client_s;
    for (uint32_t i = 0; i < l->nprocesses; i++) {
        struct process *p = &l->process[i];
        struct cpu now = read_cpu (p->pid);

        p->used = (struct cpu){ now.main_s - p->before.main_s, now.io_s - p->before.io_s };
    }
}

/* --- the load ----------------------------------------------------------------------------------------------------- */

static void answered (idt_future_t *f, void *arg)
{
    struct request *q = arg;
    struct rank *r = q->r;
    struct load *l = r->load;
    double now = now_s ();
    fluid_t id;

    if (idt_fluid_generate_get (f, 1, &id) < 0)
        l->failed++;
    else if (l->begun && q->asked_s >= l->begin_s) {
        uint64_t ns = (uint64_t)((now - q->asked_s) * 1e9);

        l->answered++;
        samples_add (&l->latency[r->level][r->idle], ns);
        samples_add (&l->all, ns);
    }
    l->outstanding--;
    idt_future_destroy (f);
    free (q);
}

static void ask (struct rank *r)
{
    struct request *q = malloc (sizeof (*q));

    if (!q)
        die ("malloc");
    *q = (struct request){ r, now_s () };
    idt_future_t *f = idt_fluid_generate_async (r->h, 1);
    if (!f || idt_future_then (f, -1., answered, q) < 0)
        die ("idt_fluid_generate_async");
    r->load->outstanding++;
}

static void plan (struct load *l)
{
    l->next_s += -log (1 - drand48 ()) / (l->rate * l->naskers);
    struct itimerspec at = { .it_value = { (time_t)l->next_s, (long)(fmod (l->next_s, 1) * 1e9) } };
    if (timerfd_settime (l->timer_fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
        die ("timerfd_settime");
}

static void due (idt_watcher_t *w, int revents, void *arg)
{
    struct load *l = arg;
    uint64_t count;

    if (read (l->timer_fd, &count, sizeof (count)) < 0)
        return;
    while (l->next_s <= now_s ()) {
        if (l->rate > 0)
            ask (&l->rank[l->asked[(uint32_t)(drand48 () * l->naskers)]]);
        plan (l);
    }
}

static void stop_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_reactor_stop (arg);
}

static void run_for (struct load *l, double seconds)
{
    idt_watcher_t *w = idt_timer_watcher_create (l->reactor, seconds * 1000, 0., stop_cb, l->reactor);

    if (!w)
        die ("timer");
    idt_watcher_start (w);
    if (idt_reactor_run (l->reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    idt_watcher_destroy (w);
}

static void play (struct load *l, double seconds)
{
    idt_watcher_t *w = NULL;

    l->timer_fd = timerfd_create (CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->timer_fd < 0 || !(w = idt_fd_watcher_create (l->reactor, l->timer_fd, IDT_POLLIN, due, l)))
        die ("timer");
    idt_watcher_start (w);
    l->next_s = now_s ();
    if (l->rate > 0)
        plan (l);
    run_for (l, WARM_UP_S);
    begin (l);
    run_for (l, seconds);
    end (l);
    idt_watcher_stop (w);
    while (l->outstanding > 0)
        run_for (l, 0.1);
    idt_watcher_destroy (w);
    close (l->timer_fd);
}

/* --- what is there ------------------------------------------------------------------------------------------------ */

static long number (idt_t *h, const char *name)
{
    const char *s = idt_attr_get (h, name);

    if (!s)
        die (name);
    return atol (s);
}

static idt_t *open_rank (uint32_t rank)
{
    const char *uri = getenv ("IDTREE_URI");
    char buf[512];
    idt_error_t err;
    idt_t *h;

    if (!uri || strlen (uri) < 2) {
        errno = EINVAL;
        die ("IDTREE_URI");
    }
    snprintf (buf, sizeof (buf), "%.*s%u", (int)(strrchr (uri, '-') + 1 - uri), uri, (unsigned)rank);
    if (!(h = idt_open_ex (buf, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, &err))) {
        fprintf (stderr, "bench-scale: %s\n", err.text);
        exit (1);
    }
    return h;
}

static long generators (idt_t *h)
{
    const char *s = idt_attr_get (h, "fluid.max-generators");

    return s ? atol (s) : 16368;
}

/* Return the index of a process. The search begins with the processes that were added last, because the ranks of a
 * process are neighbours.
 */
static uint32_t find_process (struct load *l, long pid)
{
    uint32_t i = l->nprocesses;

    while (i > 0 && l->process[i - 1].pid != pid)
        i--;
    if (i == 0) {
        i = ++l->nprocesses;
        l->process[i - 1] = (struct process){ .pid = pid };
    }
    l->process[i - 1].ranks++;
    return i - 1;
}

static void open_all (struct load *l)
{
    idt_t *h = open_rank (0);

    long makers = generators (h);

    l->size = (uint32_t)number (h, "size");
    idt_close (h);
    l->rank = calloc (l->size, sizeof (l->rank[0]));
    l->process = calloc (l->size, sizeof (l->process[0]));
    l->asked = calloc (l->size, sizeof (l->asked[0]));
    if (!l->rank || !l->process || !l->asked || !(l->reactor = idt_reactor_create ()))
        die ("calloc");
    for (uint32_t i = 0; i < l->size; i++) {
        struct rank *r = &l->rank[i];

        *r = (struct rank){ .load = l, .h = open_rank (i) };
        r->level = (uint32_t)number (r->h, "tbon.level");
        r->process = find_process (l, number (r->h, "broker.pid"));
        r->idle = i >= makers;
        if (r->level >= MAX_LEVELS || idt_set_reactor (r->h, l->reactor) < 0)
            die ("reactor");
    }
}

static void choose (struct load *l, int n, char **ranks)
{
    l->naskers = n > 0 ? (uint32_t)n : l->size;
    for (uint32_t i = 0; i < l->naskers; i++) {
        l->asked[i] = n > 0 ? (uint32_t)atol (ranks[i]) : i;
        if (l->asked[i] >= l->size) {
            errno = EINVAL;
            die (ranks[i]);
        }
    }
}

/* --- the report --------------------------------------------------------------------------------------------------- */

static void print_times (struct samples *t)
{
    printf (
        "\"n\":%llu,\"mean_us\":%.2f,\"p10_us\":%.2f,\"p50_us\":%.2f,\"p90_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.2f}\n",
        (unsigned long long)t->count, samples_mean (t) / 1e3, (double)samples_percentile (t, 10) / 1e3,
        (double)samples_percentile (t, 50) / 1e3, (double)samples_percentile (t, 90) / 1e3,
        (double)samples_percentile (t, 99) / 1e3, (double)t->max_ns / 1e3);
}

static double main_s (const struct rank *r)
{
    return r->load->process[r->process].used.main_s;
}

static void report_level (const struct load *l, uint32_t level, double seconds)
{
    double sum = 0, most = 0;
    uint32_t ranks = 0;

    for (uint32_t i = 0; i < l->size; i++) {
        const struct rank *r = &l->rank[i];

        if (r->level != level)
            continue;
        ranks++;
        sum += main_s (r);
        most = main_s (r) > most ? main_s (r) : most;
    }
    if (ranks > 0)
        printf ("{\"scale\":\"load\",\"level\":%u,\"ranks\":%u,\"mean\":%.5f,\"max\":%.5f}\n", (unsigned)level,
                (unsigned)ranks, sum / ranks / seconds, most / seconds);
}

static void report_ranks (const struct load *l)
{
    for (uint32_t i = 0; i < l->size && l->size <= 8; i++) {
        const struct process *p = &l->process[l->rank[i].process];

        printf ("{\"scale\":\"rank\",\"rank\":%u,\"main_s\":%.6f,\"io_s\":%.6f,\"ever_main_s\":%.6f}\n", (unsigned)i,
                p->used.main_s, p->used.io_s, p->before.main_s);
    }
}

static void report_processes (const struct load *l, double seconds)
{
    for (uint32_t i = 0; i < l->nprocesses; i++) {
        const struct process *p = &l->process[i];

        printf ("{\"scale\":\"process\",\"process\":%u,\"ranks\":%u,\"load\":%.5f,\"ever_main_s\":%.6f}\n", (unsigned)i,
                (unsigned)p->ranks, p->used.main_s / seconds, p->before.main_s);
    }
}

static void report (struct load *l)
{
    static const char *const states[] = { "active", "idle" };
    double seconds = l->end_s - l->begin_s, all_s = 0, io_s = 0;

    for (uint32_t i = 0; i < l->nprocesses; i++) {
        all_s += l->process[i].used.main_s;
        io_s += l->process[i].used.io_s;
    }
    printf ("{\"scale\":\"run\",\"size\":%u,\"rate\":%g,\"seconds\":%.3f,\"answered\":%llu,\"failed\":%llu,"
            "\"client_s\":%.6f,\"root_ever_main_s\":%.6f}\n{\"scale\":\"latency\",",
            (unsigned)l->size, l->rate, seconds, (unsigned long long)l->answered, (unsigned long long)l->failed,
            l->client_s, l->process[l->rank[0].process].before.main_s);
    print_times (&l->all);
    for (uint32_t level = 0; level < MAX_LEVELS; level++)
        for (int i = 0; i < 2; i++)
            if (l->latency[level][i].count > 0) {
                printf ("{\"scale\":\"latency\",\"level\":%u,\"state\":\"%s\",", (unsigned)level, states[i]);
                print_times (&l->latency[level][i]);
            }
    for (uint32_t level = 0; level < MAX_LEVELS && l->nprocesses == l->size; level++)
        report_level (l, level, seconds);
    report_ranks (l);
    if (l->nprocesses < l->size)
        report_processes (l, seconds);
    printf ("{\"scale\":\"host\",\"brokers\":%.4f,\"io\":%.4f,\"client\":%.4f}\n", all_s / seconds, io_s / seconds,
            l->client_s / seconds);
}

/* --- lease messages ----------------------------------------------------------------------------------------------- */

#define MANY 1000
#define TURNS 200

/* Return the seconds to write and read a request with 'n' wants. */
static double lease_s (size_t n)
{
    static struct want want[MANY + 1];
    double start = now_s ();

    for (size_t i = 0; i < n; i++)
        want[i] = (struct want){ (uint32_t)i, "00000000-0000-4000-8000-000000000000", 1, BOX_WHOLE, 1000000, 0, 0, 0 };
    for (int i = 0; i < TURNS; i++) {
        struct lease_request req = { .want = want, .nwant = n }, back;
        json_t *o = wire_pack_lease_request (&req);
        char *text = o ? json_dumps (o, JSON_COMPACT) : NULL;
        json_t *read = text ? json_loads (text, 0, NULL) : NULL;

        if (!read || wire_get_lease_request (read, &back, NULL) < 0)
            die ("wire");
        lease_request_fini (&back);
        json_decref (read);
        json_decref (o);
        free (text);
    }
    return (now_s () - start) / TURNS;
}

static void report_wants (void)
{
    double one = lease_s (1), many = lease_s (MANY + 1);

    printf ("{\"scale\":\"wants\",\"message_us\":%.3f,\"want_us\":%.3f}\n", one * 1e6 / 2,
            (many - one) * 1e6 / MANY / 2);
}

int main (int argc, char **argv)
{
    struct load l = { .begun = false };

    if (argc == 2 && strcmp (argv[1], "wants") == 0) {
        report_wants ();
        return 0;
    }
    if (argc < 3) {
        fprintf (stderr, "usage: idtree start -s N -- bench-scale RATE SECONDS [RANK...], or bench-scale wants\n");
        return 2;
    }
    l.rate = atof (argv[1]);
    open_all (&l);
    choose (&l, argc - 3, argv + 3);
    play (&l, atof (argv[2]));
    report (&l);
    for (uint32_t i = 0; i < l.size; i++)
        idt_close (l.rank[i].h);
    return 0;
}
