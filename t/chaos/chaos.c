/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* chaos.c - injects faults into an instance, and checks the ids that its clients got
 *
 * The main thread runs the nemesis and all links; each client is a thread. The main thread and a client share only the
 * client's number of answers, and a descriptor by which all clients are stopped. With --documents or --jobs there are
 * workers instead of clients: programs that check their results themselves. All processes run below a reaper, which
 * kills all that are left in the end (libreaper/reaper.h).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "libreaper/reaper.h"
#include "die.h"
#include "libutil/duration.h"
#include "nemesis.h"
#include "twin.h"
#include "worker.h"

#define CLIENTS_MAX (16 * (HOST_RANKS_MAX + 1))
#define NO_RANK UINT32_MAX /* rank of the clients that use twins */
#define HEAL_US 120000000
#define LEASE_MAX_PERCENT 200 /* of --lease; an option of a rank may set its lease */
#define TIME_END_MS (UINT64_C (1) << 40)
#define SHARE_SIZE 16
#define PATH_SIZE 128 /* paths in the test folder; the path of a socket has at most 108 bytes */
#define WORKER_ARGS 5 /* arguments of a worker, without the ranks */

enum work {
    WORK_IDS,
    WORK_DOCUMENTS,
    WORK_JOBS,
};

struct options {
    uint32_t size, fanout, clients, max_generators, lanes;
    uint64_t seed, steps, duration_ms, lease_ms, timeout_ms;
    const char *save_log;
    const char *records; /* of --jobs; NULL: records are in the test folder, and removed in the end */
    uint32_t faults;
    const char *share; /* value of fluid.share */
    uint64_t end_ms;   /* ms from the start until the time of ids ends; 0: far away */
    bool plan, verbose;
    enum work work;
};

enum { WORKER_SESSIONS, WORKER_OWN, WORKER_JOBS, WORKERS };

struct chaos {
    struct options opt;
    char dir[64], pmi[PATH_SIZE], twin_dir[PATH_SIZE - 32], twin_socket[PATH_SIZE];
    char tune[PATH_SIZE], broker[PATH_SIZE], run[PATH_SIZE - 32], state[PATH_SIZE], links_dir[PATH_SIZE],
        page_path[PATH_SIZE], log[PATH_SIZE], records[PATH_SIZE];
    char attr[7][64];
    const char *attrs[16];
    struct host_page *page;
    idt_reactor_t *r;
    struct links *links;
    struct twin *twin;
    struct nemesis *nemesis;
    int stop_fd, signal_fd;
    idt_watcher_t *signal_w;
    bool finishing;
    uint32_t nclients;
    struct client *client[CLIENTS_MAX];
    uint32_t nranked; /* number of clients of ranks; clients of twins follow them */
    char uri[HOST_RANKS_MAX + 1][PATH_SIZE];
    uint64_t answers[CLIENTS_MAX];  /* answers of each client when the instance was whole again */
    struct worker *worker[WORKERS]; /* NULL: none */
};

/* --- options ---------------------------------------------------------------------------------- */

static const char usage[] =
    "Usage: chaos [OPTION]...\nInject faults into brokers, links, clocks and disks of an instance while clients "
    "request ids; then check the ids.\n  -s, --size N          brokers (8), at most 64\n  -k, --fanout K        of "
    "the tree (2)\n  -c, --clients N       of each broker (2)\n      --steps N         number of faults (60)\n      "
    "--duration T      time of faults instead, as 10m\n      --seed N          of the faults; printed, random by "
    "default\n      --lease T         fluid.lease (1s; with --jobs 300ms)\n      --timeout T       tbon.timeout (1s; "
    "with --jobs 3s)\n      --max-generators N  ranks below it generate ids (3/4 of the brokers)\n      --lanes N "
    "        fluid.lanes (1); with more all brokers generate ids\n      --share "
    "S         fluid.share (auto)\n      --faults LIST     as kill,cut (all)\n      --end T           the time of "
    "ids ends in T, as 20s\n      --documents       work in documents of the id compressor instead, two clients of "
    "each broker\n      --jobs            submit jobs and consume them instead, two submitters of each broker and a "
    "consumer\n      --plan            print the faults of a seed and end\n      --log FILE        keep the log of "
    "the brokers\n      --records DIR     keep the records of submitters and consumers of jobs there\n  -v, "
    "--verbose         print each step\nExit status: 0 no violation, 1 violations, 2 wrong options.\nExample: chaos "
    "--size 8 --duration 5m --seed 1\n";

static void refuse (const char *what, const char *value)
{
    fprintf (stderr, "chaos: %s: '%s' is not in its range\n%s", what, value, usage);
    exit (2);
}

static uint64_t number (const char *what, const char *s, uint64_t min, uint64_t max)
{
    uint64_t n = 0;

    if (parse_number (s, min, max, &n) < 0)
        refuse (what, s);
    return n;
}

static uint64_t duration (const char *what, const char *s)
{
    uint64_t ms = 0;

    if (parse_duration (s, UINT64_C (1000) * 86400 * 30, &ms) < 0 || ms == 0)
        refuse (what, s);
    return ms;
}

enum {
    OPT_STEPS = 256,
    OPT_DURATION,
    OPT_SEED,
    OPT_LEASE,
    OPT_TIMEOUT,
    OPT_GENERATORS,
    OPT_LANES,
    OPT_SHARE,
    OPT_PLAN,
    OPT_LOG,
    OPT_RECORDS,
    OPT_DOCUMENTS,
    OPT_JOBS,
    OPT_FAULTS,
    OPT_END
};

static const struct option long_options[] = {
    { "size", 1, NULL, 's' },
    { "fanout", 1, NULL, 'k' },
    { "clients", 1, NULL, 'c' },
    { "verbose", 0, NULL, 'v' },
    { "help", 0, NULL, 'h' },
    { "steps", 1, NULL, OPT_STEPS },
    { "duration", 1, NULL, OPT_DURATION },
    { "seed", 1, NULL, OPT_SEED },
    { "lease", 1, NULL, OPT_LEASE },
    { "timeout", 1, NULL, OPT_TIMEOUT },
    { "max-generators", 1, NULL, OPT_GENERATORS },
    { "lanes", 1, NULL, OPT_LANES },
    { "share", 1, NULL, OPT_SHARE },
    { "plan", 0, NULL, OPT_PLAN },
    { "log", 1, NULL, OPT_LOG },
    { "records", 1, NULL, OPT_RECORDS },
    { "documents", 0, NULL, OPT_DOCUMENTS },
    { "jobs", 0, NULL, OPT_JOBS },
    { "faults", 1, NULL, OPT_FAULTS },
    { "end", 1, NULL, OPT_END },
    { 0 },
};

static void take_option (struct options *o, int key, const char *arg)
{
    switch (key) {
    case 's':
        o->size = number ("size", arg, 1, HOST_RANKS_MAX);
        break;
    case 'k':
        o->fanout = number ("fanout", arg, 1, HOST_RANKS_MAX);
        break;
    case 'c':
        o->clients = number ("clients", arg, 1, 16);
        break;
    case 'v':
        o->verbose = true;
        break;
    case OPT_STEPS:
        o->steps = number ("steps", arg, 0, UINT32_MAX);
        break;
    case OPT_DURATION:
        o->duration_ms = duration ("duration", arg);
        break;
    case OPT_DOCUMENTS:
        o->work = WORK_DOCUMENTS;
        break;
    case OPT_JOBS:
        o->work = WORK_JOBS;
        break;
    case OPT_FAULTS:
        if (!(o->faults = faults_parse (arg)))
            refuse ("faults", arg);
        break;
    case OPT_END:
        o->end_ms = duration ("end", arg);
        break;
    case OPT_SEED:
        o->seed = number ("seed", arg, 0, UINT64_MAX / 2);
        break;
    case OPT_LEASE:
        o->lease_ms = duration ("lease", arg);
        break;
    case OPT_TIMEOUT:
        o->timeout_ms = duration ("timeout", arg);
        break;
    case OPT_GENERATORS:
        o->max_generators = number ("max-generators", arg, 1, FLUID_GENERATOR_MAX + 1);
        break;
    case OPT_LANES:
        o->lanes = number ("lanes", arg, 1, (FLUID_GENERATOR_MAX + 1) / 64);
        break;
    case OPT_SHARE:
        if (strlen (arg) > SHARE_SIZE)
            refuse ("share", arg);
        o->share = arg;
        break;
    case OPT_PLAN:
        o->plan = true;
        break;
    case OPT_LOG:
        o->save_log = arg;
        break;
    case OPT_RECORDS:
        o->records = arg;
        break;
    case 'h':
        fputs (usage, stdout);
        exit (0);
    default:
        fputs (usage, stderr);
        exit (2);
    }
}

static void take_options (struct options *o, int argc, char **argv)
{
    int key;

    *o = (struct options){
        .size = 8, .fanout = 2, .clients = 2, .lanes = 1, .share = "auto", .faults = faults_parse ("all")
    };
    if (getrandom (&o->seed, sizeof (o->seed), 0) != sizeof (o->seed))
        die ("getrandom");
    o->seed %= 1000000000;
    while ((key = getopt_long (argc, argv, "s:k:c:vh", long_options, NULL)) != -1)
        take_option (o, key, optarg);
    if (optind != argc)
        take_option (o, '?', NULL);
    if (o->steps == 0 && o->duration_ms == 0)
        o->steps = 60;
    /* A job that is pending for more than a lease is judged by rank 0. Brokers must not give up a job before that, so
     * the lease for jobs is short.
     */
    if (o->lease_ms == 0)
        o->lease_ms = o->work == WORK_JOBS ? 300 : 1000;
    if (o->timeout_ms == 0)
        o->timeout_ms = o->work == WORK_JOBS ? 3000 : 1000;
    if (o->lanes > 1)
        o->max_generators = o->size * o->lanes;
    if (o->max_generators == 0)
        o->max_generators = o->size < 4 ? o->size : o->size * 3 / 4;
}

static struct plan make_plan (const struct options *o)
{
    struct plan plan;

    plan_init (&plan, o->seed, o->size, o->fanout, o->lease_ms, o->faults);
    return plan;
}

static int print_plan (const struct options *o)
{
    struct plan plan = make_plan (o);
    struct step step;
    char text[256];
    uint64_t ms = 0;

    for (uint64_t i = 0; o->steps > 0 ? i < o->steps : ms < o->duration_ms; i++) {
        plan_next (&plan, &step);
        ms += step.gap_ms;
        step_print (&step, text, sizeof (text));
        printf ("%" PRIu64 ".%03" PRIu64 " s %s\n", ms / 1000, ms % 1000, text);
    }
    return 0;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* Return the ranks that may make ids of a part for clients of this rank, as bits: the rank and its ancestors, as
 * far as they have no generator. If 'rank' is not known, these are all ranks without a generator.
 */
static uint64_t makers_for (const struct options *o, uint32_t rank)
{
    uint64_t makers = 0;

    if (strcmp (o->share, "off") == 0)
        return 0;
    if (rank == NO_RANK)
        for (uint32_t r = o->max_generators; r < o->size; r++)
            makers |= UINT64_C (1) << r;
    else
        for (uint32_t r = rank; r >= o->max_generators; r = (r - 1) / o->fanout)
            makers |= UINT64_C (1) << r;
    return makers;
}

static void start_clients (struct chaos *c, struct rng *rng, uint32_t rank, const char *uri)
{
    for (uint32_t i = 0; i < c->opt.clients; i++, c->nclients++)
        c->client[c->nclients] = client_start (&(struct client_config){ .uri = uri,
                                                                        .rank = rank,
                                                                        .client = c->nclients,
                                                                        .makers = makers_for (&c->opt, rank),
                                                                        .ranks = c->opt.lanes > 1 ? c->opt.size : 0,
                                                                        .seed = rng_next (rng),
                                                                        .asks_info = i == 0,
                                                                        .forgets = i % 2 != 0,
                                                                        .stop_fd = c->stop_fd });
}

/* Start a program with the arguments 'args' (NULL ends them), and the ranks after them. */
static struct worker *start_worker (const struct chaos *c, const char *const *args)
{
    char rank[HOST_RANKS_MAX][16];
    const char *argv[HOST_RANKS_MAX + WORKER_ARGS + 1] = { 0 };
    size_t n = 0;

    for (; args[n]; n++)
        argv[n] = args[n];
    for (uint32_t i = 0; i < c->opt.size; i++) {
        snprintf (rank[i], sizeof (rank[i]), "%u", i);
        argv[n++] = rank[i];
    }
    return worker_start (argv);
}

static void start_documents (struct chaos *c, const char *prefix)
{
    char record[PATH_SIZE];

    snprintf (record, sizeof (record), "%s/record", c->dir);
    c->worker[WORKER_SESSIONS] = start_worker (c, (const char *[]){ IDCOMP_LOAD, prefix, "sessions", record, NULL });
    c->worker[WORKER_OWN] = start_worker (c, (const char *[]){ DOCUMENT_LOAD, prefix, "own", NULL });
}

static void start_jobs (struct chaos *c, const char *prefix)
{
    char seed[32];

    snprintf (seed, sizeof (seed), "%" PRIu64, c->opt.seed);
    c->worker[WORKER_JOBS] = start_worker (c, (const char *[]){ JOBLOAD, "crowd",
                                                                c->opt.records ? c->opt.records : c->records, seed,
                                                                prefix, NULL });
}

static void start_workers (struct chaos *c)
{
    char prefix[PATH_SIZE];

    snprintf (prefix, sizeof (prefix), "local://%s/local-", c->run);
    if (c->opt.work == WORK_DOCUMENTS)
        start_documents (c, prefix);
    else
        start_jobs (c, prefix);
}

/* Start clients of each rank, and some clients that use the present twin. */
static void start_clients_of_all (struct chaos *c)
{
    struct rng rng = { c->opt.seed ^ UINT64_C (0x636c69656e7473) };

    for (uint32_t rank = 0; rank < c->opt.size; rank++) {
        snprintf (c->uri[rank], PATH_SIZE, "local://%s/local-%u", c->run, rank);
        start_clients (c, &rng, rank, c->uri[rank]);
    }
    c->nranked = c->nclients;
    snprintf (c->uri[HOST_RANKS_MAX], PATH_SIZE, "local://%.100s", c->twin_socket);
    start_clients (c, &rng, NO_RANK, c->uri[HOST_RANKS_MAX]);
}

static void start_cb (void *arg)
{
    struct chaos *c = arg;

    if (c->opt.work == WORK_IDS)
        start_clients_of_all (c);
    else
        start_workers (c);
}

static bool served_cb (void *arg, bool first)
{
    struct chaos *c = arg;
    bool all = true;

    for (uint32_t i = 0; i < c->nranked; i++) {
        uint64_t n = client_answers (c->client[i]);

        if (first)
            c->answers[i] = n;
        all &= n > c->answers[i];
    }
    return all;
}

static void drain_cb (void *arg)
{
    struct chaos *c = arg;

    eventfd_write (c->stop_fd, 1);
    for (int i = 0; i < WORKERS; i++)
        if (c->worker[i])
            worker_finish (c->worker[i], HEAL_US);
}

static bool drained_cb (void *arg)
{
    struct chaos *c = arg;

    for (uint32_t i = 0; i < c->nclients; i++)
        if (!client_ended (c->client[i]))
            return false;
    for (int i = 0; i < WORKERS; i++)
        if (c->worker[i] && !worker_ended (c->worker[i]))
            return false;
    return true;
}

static const struct nemesis_ops nemesis_ops = {
    .start = start_cb, .served = served_cb, .drain = drain_cb, .drained = drained_cb
};

/* --- a place for it all --------------------------------------------------------------------------- */

static void make_dir (struct chaos *c)
{
    const char *tmp = getenv ("TMPDIR");

    if ((size_t)snprintf (c->dir, sizeof (c->dir), "%s/chaos-XXXXXX", tmp ? tmp : "/tmp") >= sizeof (c->dir)
        || !mkdtemp (c->dir))
        die (c->dir);
    snprintf (c->run, sizeof (c->run), "%s/run", c->dir);
    snprintf (c->state, PATH_SIZE, "%s/state", c->dir);
    snprintf (c->links_dir, PATH_SIZE, "%s/links", c->dir);
    snprintf (c->page_path, PATH_SIZE, "%s/page", c->dir);
    snprintf (c->log, PATH_SIZE, "%s/log", c->dir);
    snprintf (c->pmi, PATH_SIZE, "%s/pmi", c->dir);
    snprintf (c->tune, PATH_SIZE, "%s/tune", c->dir);
    snprintf (c->broker, PATH_SIZE, "%s/broker", c->dir);
    snprintf (c->records, PATH_SIZE, "%s/records", c->dir);
    snprintf (c->twin_dir, sizeof (c->twin_dir), "%s/twin", c->dir);
    snprintf (c->twin_socket, PATH_SIZE, "%s/twin.local", c->dir);
    if (mkdir (c->links_dir, 0700) < 0 || mkdir (c->pmi, 0700) < 0 || mkdir (c->twin_dir, 0700) < 0
        || mkdir (c->tune, 0700) < 0 || mkdir (c->records, 0700) < 0)
        die (c->dir);
}

/* Choose the epoch: normally so far in the past that clocks may step, or so far that the time of ids ends soon. */
static void choose_epoch (const struct chaos *c, char text[64])
{
    time_t at = time (NULL) - (time_t)((TIME_END_MS - c->opt.end_ms) / 1000);
    struct tm tm;

    if (c->opt.end_ms == 0)
        snprintf (text, 64, "2020-01-01T00:00:00Z");
    else
        strftime (text, 64, "%Y-%m-%dT%H:%M:%SZ", gmtime_r (&at, &tm));
}

static void make_state (const struct chaos *c)
{
    char command[3 * PATH_SIZE], epoch[64];

    choose_epoch (c, epoch);
    snprintf (command, sizeof (command), IDTREE " init --statedir '%s' --epoch %s >&2", c->state, epoch);
    if (system (command) != 0)
        die (c->state);
}

/* Make the program that the launcher starts as the broker: a script that adds the options of its rank. */
static void make_broker (struct chaos *c)
{
    FILE *f = fopen (c->broker, "we");

    if (!f
        || fprintf (f, "#!/bin/sh\nread -r tune 2>/dev/null <%s/$PMI_RANK\nexec %s \"$@\" $tune\n", c->tune, BROKER) < 0
        || fclose (f) != 0 || chmod (c->broker, 0700) < 0)
        die (c->broker);
}

static void make_page (struct chaos *c)
{
    int fd = open (c->page_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate (fd, sizeof (*c->page)) < 0
        || (c->page = mmap (NULL, sizeof (*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED)
        die (c->page_path);
    close (fd);
}

static void append_env (const char *name, const char *value)
{
    const char *old = getenv (name);
    char text[4096];

    snprintf (text, sizeof (text), "%s%s%s", old ? old : "", old ? ":" : "", value);
    setenv (name, text, 1);
}

/* Set the environment of the brokers. If a sanitizer reports an error, the exit status must differ from the status of a
 * broker that gave up.
 */
static void set_env (struct chaos *c)
{
    setenv ("LD_PRELOAD", HOST_SO, 1);
    setenv ("IDTREE_BROKER", c->broker, 1);
    setenv (HOST_ENV_PAGE, c->page_path, 1);
    setenv (HOST_ENV_LINKS, c->links_dir, 1);
    setenv (HOST_ENV_PMI, c->pmi, 1);
    setenv (HOST_ENV_STATE, c->state, 1);
    append_env ("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:exitcode=99");
    append_env ("TSAN_OPTIONS", "exitcode=66");
}

/* few batches are kept, so that a rank that was away needs the stored form */
static const char *const document_attrs[] = {
    "broker.modules=fluid,compressor",
    "compressor.window=8",
    "compressor.compact=16",
    "event.replay=4",
};

/* limits are small, so that some are reached, and it becomes unknown whether some jobs are stored */
static const char *const job_attrs[] = {
    "broker.modules=fluid,job-ingest",
    "ingest.max-waiting=80",
    "ingest.max-jobs=20000",
    "ingest.timeout=5s",
};

static void add_attrs (struct chaos *c, size_t n, const char *const *attrs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        c->attrs[n + i] = attrs[i];
}

static void set_attrs (struct chaos *c)
{
    size_t n = 0;

    snprintf (c->attr[n++], sizeof (c->attr[0]), "fluid.lease=%" PRIu64 "ms", c->opt.lease_ms);
    snprintf (c->attr[n++], sizeof (c->attr[0]), "fluid.max-generators=%u", c->opt.max_generators);
    snprintf (c->attr[n++], sizeof (c->attr[0]), "fluid.lanes=%u", c->opt.lanes);
    snprintf (c->attr[n++], sizeof (c->attr[0]), "fluid.share=%s", c->opt.share);
    snprintf (c->attr[n++], sizeof (c->attr[0]), "tbon.timeout=%" PRIu64 "ms", c->opt.timeout_ms);
    snprintf (c->attr[n++], sizeof (c->attr[0]), "log-stderr-level=5");
    for (size_t i = 0; i < n; i++)
        c->attrs[i] = c->attr[i];
    if (c->opt.work == WORK_DOCUMENTS)
        add_attrs (c, n, document_attrs, sizeof (document_attrs) / sizeof (document_attrs[0]));
    if (c->opt.work == WORK_JOBS)
        add_attrs (c, n, job_attrs, sizeof (job_attrs) / sizeof (job_attrs[0]));
}

/* --- report ------------------------------------------------------------------------------------------ */

/* Count the lines of the brokers' log that no fault explains. */
static uint64_t read_log (struct chaos *c)
{
    static const char *const bad[] = {
        "Sanitizer", "runtime error", "Assertion", "assert", "double free", "corrupted"
    };
    FILE *in = fopen (c->log, "re"), *out = c->opt.save_log ? fopen (c->opt.save_log, "we") : NULL;
    char *line = NULL;
    size_t size = 0;
    uint64_t found = 0;

    while (in && getline (&line, &size, in) > 0) {
        if (out)
            fputs (line, out);
        for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++)
            if (strstr (line, bad[i])) {
                if (found++ < CHECKER_EXAMPLES)
                    printf ("  log: %s", line);
                break;
            }
    }
    free (line);
    if (in)
        fclose (in);
    if (out)
        fclose (out);
    return found;
}

static void print_steps (const struct chaos *c, const struct nemesis_report *n)
{
    uint64_t total = 0, answers = 0;

    for (int i = 0; i < FAULT_COUNT; i++)
        total += n->steps[i];
    printf ("faults: %" PRIu64 " in %.1f s:", total, (double)n->faults_us / 1e6);
    for (int i = 0; i < FAULT_COUNT; i++)
        printf (" %s %" PRIu64, fault_name (i), n->steps[i]);
    printf ("\nbrokers: %" PRIu64 " kill, stop, cont and run, %" PRIu64 " of them refused; %" PRIu64 " gave up\n",
            n->asked, n->refused, n->gave_up);
    printf ("instance: %" PRIu64 " starts, %" PRIu64 " of them failed under faults\n", n->starts, n->failed_starts);
    for (uint32_t i = c->nranked; i < c->nclients; i++)
        answers += client_answers (c->client[i]);
    printf ("twins: %" PRIu64 " started, %" PRIu64 " requests answered by them\n", n->twins, answers);
    printf ("links: %" PRIu64 " connections, %" PRIu64 " bits turned over, %" PRIu64 " pauses of slow ones\n",
            links_connections (c->links), links_corrupted (c->links), links_pauses (c->links));
    printf ("others: %" PRIu64 " rogues, %" PRIu64 " limits, %" PRIu64 " brokers ended in order\n", n->rogues,
            n->limits, n->ended);
}

static void print_verdict (const struct verdict *v)
{
    printf ("requests: %" PRIu64 ": %" PRIu64 " answered, %" PRIu64 " refused, %" PRIu64
            " ended with the connection, %" PRIu64 " unanswered\n",
            v->requests, v->answered, v->refused, v->lost, v->unanswered);
    printf ("ids: %" PRIu64 " in %" PRIu64 " runs\n", v->ids, v->runs);
    printf ("duplicates: %" PRIu64 "\nmalformed answers: %" PRIu64 "\nout of a client's order: %" PRIu64
            "\nout of order beyond the bounds: %" PRIu64 " of %" PRIu64 " judged; %" PRIu64 " excused by a new root\n",
            v->duplicates, v->malformed, v->disorder, v->misordered, v->judged, v->excused);
    if (v->watermarks > 0)
        printf ("below the watermark: %" PRIu64 " (%" PRIu64 " watermarks)\n", v->below, v->watermarks);
    else
        printf ("below the watermark: left out, fluid.watermark does not answer\n");
    for (size_t i = 0; i < v->nexamples; i++)
        printf ("  %s\n", v->example[i]);
}

static void print_gaps (const struct chaos *c, const struct history *const *h)
{
    const struct nemesis_report *n = nemesis_report (c->nemesis);
    struct gap all, one;
    size_t noutages;
    const struct window *outages = nemesis_outages (c->nemesis, &noutages);

    checker_gaps (h, c->nclients, outages, noutages, n->begun_us, n->done_us, &all, &one);
    printf (
        "longest time without service: %.3f s anywhere; %.3f s at a rank that lives and reaches the root: rank %u at %" PRIu64
        " us\n",
        (double)all.us / 1e6, (double)one.us / 1e6, one.rank, one.at_us);
}

/* Check the histories of the clients. Returns the number of violations. */
static uint64_t judge_clients (struct chaos *c)
{
    const struct history *h[CLIENTS_MAX];
    struct verdict v;
    size_t nroots;

    for (uint32_t i = 0; i < c->nclients; i++)
        h[i] = client_join (c->client[i]);
    const struct window *roots = nemesis_roots (c->nemesis, &nroots);
    checker_judge (h, c->nclients, roots, nroots, &v);
    print_verdict (&v);
    print_gaps (c, h);
    if (v.ids == 0)
        printf ("no ids at all\n");
    for (uint32_t i = 0; i < c->nclients; i++)
        client_destroy (c->client[i]);
    return checker_violations (&v) + (v.ids == 0);
}

/* Check the exit status of the workers, which have printed their violations. */
static uint64_t judge_workers (struct chaos *c)
{
    uint64_t bad = 0, n = 0;

    for (int i = 0; i < WORKERS; i++) {
        bad += c->worker[i] && !worker_good (c->worker[i]);
        n += c->worker[i] != NULL;
        worker_destroy (c->worker[i]);
    }
    bad += n == 0;
    printf ("%s: %s\n", c->opt.work == WORK_JOBS ? "jobs" : "documents", bad ? "with violations" : "no violations");
    return bad;
}

static int report (struct chaos *c)
{
    const struct nemesis_report *n = nemesis_report (c->nemesis);

    print_steps (c, n);
    uint64_t bad = c->opt.work == WORK_IDS ? judge_clients (c) : judge_workers (c);
    bad += n->surprises + read_log (c);
    if (n->surprises > 0)
        printf ("surprises: %" PRIu64 ", the first: %s\n", n->surprises, n->surprise);
    printf ("%s: seed %" PRIu64 "\n", bad ? "FAILED" : "passed", c->opt.seed);
    fflush (stdout);
    return bad ? 1 : 0;
}

/* --- run ----------------------------------------------------------------------------------------------- */

/* The first SIGINT ends the faults: the instance is healed and checked. A second SIGINT, any other signal that ends
 * programs, or the end of the reaper ends this program immediately.
 */
static void signal_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct chaos *c = arg;
    struct signalfd_siginfo info;

    if (read (c->signal_fd, &info, sizeof (info)) != sizeof (info) || info.ssi_signo == SIGCHLD)
        return;
    if (info.ssi_signo != SIGINT || c->finishing) {
        reaper_sweep (c->dir, false);
        _exit (128 + (int)info.ssi_signo);
    }
    c->finishing = true;
    nemesis_finish (c->nemesis);
}

static void make_reactor (struct chaos *c)
{
    sigset_t set;

    reaper_signals (&set); /* these signals are blocked */
    if (!(c->r = idt_reactor_create ()) || (c->stop_fd = eventfd (0, EFD_CLOEXEC)) < 0
        || (c->signal_fd = signalfd (-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)) < 0
        || !(c->signal_w = idt_fd_watcher_create (c->r, c->signal_fd, IDT_POLLIN, signal_cb, c)))
        die ("a reactor");
    idt_watcher_start (c->signal_w);
}

static void destroy_reactor (struct chaos *c)
{
    idt_watcher_destroy (c->signal_w);
    close (c->signal_fd);
    close (c->stop_fd);
    idt_reactor_destroy (c->r);
}

static int run (struct chaos *c)
{
    struct instance_config instance = { IDTREE, c->run, c->state, c->log, c->opt.size, c->opt.fanout, c->attrs };
    struct nemesis_config config = { make_plan (&c->opt),
                                     c->opt.steps,
                                     c->opt.duration_ms * 1000,
                                     HEAL_US,
                                     c->opt.lease_ms * LEASE_MAX_PERCENT * 10,
                                     ROGUE,
                                     c->tune,
                                     c->opt.verbose };

    struct twin_config twin = { BROKER, c->pmi, c->twin_dir, c->twin_socket, &instance };

    make_reactor (c);
    c->links = links_create (c->r, c->links_dir, c->run, c->opt.size, c->opt.fanout, c->opt.seed);
    c->twin = twin_create (c->r, &twin);
    c->nemesis = nemesis_create (c->r, &config, &instance, c->links, c->twin, c->page, &nemesis_ops, c);
    nemesis_begin (c->nemesis);
    idt_reactor_run (c->r, IDT_REACTOR_DEFAULT);
    int status = report (c);
    nemesis_destroy (c->nemesis);
    twin_destroy (c->twin);
    links_destroy (c->links);
    destroy_reactor (c);
    return status;
}

int main (int argc, char **argv)
{
    static struct chaos c;

    take_options (&c.opt, argc, argv);
    if (c.opt.plan)
        return print_plan (&c.opt);
    printf ("chaos: seed %" PRIu64 ", %u brokers, kary:%u, %u clients each, lease %" PRIu64 " ms, %u lanes, share %s\n",
            c.opt.seed, c.opt.size, c.opt.fanout, c.opt.work == WORK_IDS ? c.opt.clients : 2, c.opt.lease_ms,
            c.opt.lanes, c.opt.share);
    fflush (stdout);
    make_dir (&c);
    if (reaper_split (c.dir, false) < 0)
        die ("fork");
    signal (SIGPIPE, SIG_IGN);
    make_page (&c);
    make_state (&c);
    make_broker (&c);
    set_env (&c);
    set_attrs (&c);
    int status = run (&c);
    reaper_sweep (c.dir, false);
    return status;
}
