/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_scale.c - simulates the id service at size, and prints how much work it does: fluid-scale --help */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <idtree/fluid.h>

#include "broker/base/topology.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "modules/fluid/node/node.h"
#include "sim/scale/scale.h"

static const char usage[] =
    "usage: fluid-scale [OPTION]...\n"
    "Simulate an instance of idtree: its real core, with modelled processors and links.\n"
    "Prints a JSON object a line: the run, the cold start, latency, links, load, and the effects of a loss.\n"
    "\n"
    "  -s, --size=N            ranks (10000)\n"
    "      --topology=T        shape of the tree (" TOPO_DEFAULT ")\n"
    "      --max-generators=N  ranks that own a generator (16368)\n"
    "      --lease=TIME        length of a lease (60s)\n"
    "      --costs=FILE        times of steps (measured by scripts/scale-measure)\n"
    "  -r, --rate=X            requests a second of each rank, at random (1)\n"
    "  -n, --count=N           ids of a request (1)\n"
    "      --ask=WHO           ranks with clients: all, idle (no generator), owners (all)\n"
    "      --burst=N           in addition, each rank sends N requests together ...\n"
    "      --period=TIME       ... with this period (1s) ...\n"
    "      --spread=TIME       ... distributed over this time (0)\n"
    "      --warm-up=TIME      of load that is not counted (1s)\n"
    "  -t, --time=TIME         to be measured (10s)\n"
    "      --start-spread=TIME brokers start within this time (0)\n"
    "      --kill=RANK         after a quarter of the time this rank is killed ...\n"
    "      --restart=TIME      ... and is started again after this time (never)\n"
    "      --drift=PPM         largest drift of brokers' clocks (50)\n"
    "      --one-host=CORES    brokers and one client process share one host (each has its own)\n"
    "      --processes=N       ... in N processes, as idtree start --per-process (one each)\n"
    "      --share=HOW         ranks without a generator borrow: off, auto, 16, 32 ... 512 (off)\n"
    "      --seed=N            of the random numbers (1)\n"
    "      --check             also check that no id is made twice\n"
    "  -h, --help              print this\n"
    "\n"
    "example: fluid-scale -s 100000 --topology kary:64 --rate 0.5 --kill 3\n";

enum option_code {
    OPT_TOPOLOGY = 256,
    OPT_GENERATORS,
    OPT_LEASE,
    OPT_COSTS,
    OPT_ASK,
    OPT_BURST,
    OPT_PERIOD,
    OPT_SPREAD,
    OPT_START_SPREAD,
    OPT_KILL,
    OPT_RESTART,
    OPT_DRIFT,
    OPT_ONE_HOST,
    OPT_PROCESSES,
    OPT_SHARE,
    OPT_WARM_UP,
    OPT_SEED,
    OPT_CHECK,
};

static const struct option options[] = {
    { "size", required_argument, NULL, 's' },
    { "topology", required_argument, NULL, OPT_TOPOLOGY },
    { "max-generators", required_argument, NULL, OPT_GENERATORS },
    { "lease", required_argument, NULL, OPT_LEASE },
    { "costs", required_argument, NULL, OPT_COSTS },
    { "rate", required_argument, NULL, 'r' },
    { "count", required_argument, NULL, 'n' },
    { "ask", required_argument, NULL, OPT_ASK },
    { "burst", required_argument, NULL, OPT_BURST },
    { "period", required_argument, NULL, OPT_PERIOD },
    { "spread", required_argument, NULL, OPT_SPREAD },
    { "time", required_argument, NULL, 't' },
    { "start-spread", required_argument, NULL, OPT_START_SPREAD },
    { "kill", required_argument, NULL, OPT_KILL },
    { "restart", required_argument, NULL, OPT_RESTART },
    { "drift", required_argument, NULL, OPT_DRIFT },
    { "one-host", required_argument, NULL, OPT_ONE_HOST },
    { "processes", required_argument, NULL, OPT_PROCESSES },
    { "warm-up", required_argument, NULL, OPT_WARM_UP },
    { "share", required_argument, NULL, OPT_SHARE },
    { "seed", required_argument, NULL, OPT_SEED },
    { "check", no_argument, NULL, OPT_CHECK },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

#define HOUR_MS UINT64_C (3600000)

static void bad (const char *option, const char *value, const char *want)
{
    fprintf (stderr, "fluid-scale: --%s=%s: must be %s\n", option, value, want);
    exit (2);
}

static uint64_t number (const char *option, const char *s, uint64_t min, uint64_t max)
{
    uint64_t n;
    char want[64];

    snprintf (want, sizeof (want), "a number from %" PRIu64 " to %" PRIu64, min, max);
    if (parse_number (s, min, max, &n) < 0)
        bad (option, s, want);
    return n;
}

static uint64_t duration (const char *option, const char *s, uint64_t min_ms)
{
    uint64_t ms;

    if (parse_duration (s, HOUR_MS, &ms) < 0 || ms < min_ms)
        bad (option, s, "a time up to 1h, such as 10s or 250ms");
    return ms;
}

static double rate (const char *s)
{
    char *end;
    double x = strtod (s, &end);

    if (end == s || *end || !(x >= 0 && x <= 1e6))
        bad ("rate", s, "a number from 0 to 1000000");
    return x;
}

static enum scale_askers askers (const char *s)
{
    if (strcmp (s, "all") == 0)
        return ASKERS_ALL;
    if (strcmp (s, "idle") == 0)
        return ASKERS_IDLE;
    if (strcmp (s, "owners") != 0)
        bad ("ask", s, "all, idle or owners");
    return ASKERS_OWNERS;
}

static uint32_t share (const char *s)
{
    uint64_t n;

    if (strcmp (s, "off") == 0)
        return NODE_SHARE_OFF;
    if (strcmp (s, "auto") == 0)
        return NODE_SHARE_AUTO;
    if (parse_number (s, AREA_MIN_SIZE, AREA_MAX_SIZE, &n) < 0 || (n & (n - 1)) != 0)
        bad ("share", s, "off, auto, or 16, 32 ... 512");
    return (uint32_t)n;
}

static void set_load (struct scale_load *l, int option, const char *s)
{
    if (option == 'r')
        l->rate = rate (s);
    else if (option == 'n')
        l->count = (uint32_t)number ("count", s, 1, 65536);
    else if (option == OPT_ASK)
        l->askers = askers (s);
    else if (option == OPT_BURST)
        l->burst = (uint32_t)number ("burst", s, 0, 1000000);
    else if (option == OPT_PERIOD)
        l->period_ms = duration ("period", s, 1);
    else if (option == OPT_SPREAD)
        l->spread_ms = duration ("spread", s, 0);
}

static void set_fault (struct scale_fault *f, int option, const char *s)
{
    if (option == OPT_KILL) {
        f->kill = true;
        f->rank = (uint32_t)number ("kill", s, 0, SCALE_MAX_SIZE - 1);
    }
    else if (option == OPT_RESTART)
        f->restart_ms = duration ("restart", s, 0);
}

static void set_host (struct scale_config *c, int option, const char *s)
{
    if (option == OPT_DRIFT)
        c->drift_ppm = (uint32_t)number ("drift", s, 0, 100);
    else if (option == OPT_ONE_HOST) {
        c->one_host = true;
        c->cores = (uint32_t)number ("one-host", s, 1, SCALE_MAX_CORES);
    }
    else if (option == OPT_PROCESSES)
        c->processes = (uint32_t)number ("processes", s, 1, SCALE_MAX_SIZE);
    else if (option == OPT_SHARE)
        c->share = share (s);
    else if (option == OPT_SEED)
        c->seed = number ("seed", s, 0, UINT64_MAX);
    else if (option == OPT_CHECK)
        c->check = true;
}

static void set_tree (struct scale_config *c, int option, const char *s)
{
    if (option == 's')
        c->size = (uint32_t)number ("size", s, 1, SCALE_MAX_SIZE);
    else if (option == OPT_TOPOLOGY)
        c->topology = s;
    else if (option == OPT_GENERATORS)
        c->max_generators = (uint32_t)number ("max-generators", s, 1, FLUID_GENERATOR_MAX + 1);
    else if (option == OPT_LEASE)
        c->lease_ms = duration ("lease", s, 100);
    else if (option == OPT_WARM_UP)
        c->warm_up_ms = duration ("warm-up", s, 0);
    else if (option == 't')
        c->measure_ms = duration ("time", s, 1);
    else if (option == OPT_START_SPREAD)
        c->start_spread_ms = duration ("start-spread", s, 0);
}

static void set (struct scale_config *c, int option, const char *s)
{
    set_tree (c, option, s);
    set_load (&c->load, option, s);
    set_fault (&c->fault, option, s);
    set_host (c, option, s);
}

static void parse (int argc, char **argv, struct scale_config *c)
{
    const char *costs = SCALE_COSTS;
    idt_error_t err;
    int option;

    while ((option = getopt_long (argc, argv, "s:r:n:t:h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs (usage, stdout);
            exit (0);
        }
        if (option == '?') {
            fputs ("Try fluid-scale --help\n", stderr);
            exit (2);
        }
        if (option == OPT_COSTS)
            costs = optarg;
        set (c, option, optarg);
    }
    if (optind < argc) {
        fprintf (stderr, "fluid-scale: '%s' is not an option: try fluid-scale --help\n", argv[optind]);
        exit (2);
    }
    if (costs_read (&c->costs, costs, &err) < 0) {
        fprintf (stderr, "fluid-scale: %s\n", err.text);
        exit (2);
    }
}

static double now_s (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void report_program (uint32_t size, double start_s)
{
    struct rusage used;

    getrusage (RUSAGE_SELF, &used);
    printf ("{\"scale\":\"program\",\"seconds\":%.1f,\"memory_mib\":%.1f,\"bytes_a_rank\":%.0f}\n", now_s () - start_s,
            (double)used.ru_maxrss / 1024, (double)used.ru_maxrss * 1024 / size);
}

int main (int argc, char **argv)
{
    struct scale_config config = { .seed = 1,
                                   .size = 10000,
                                   .topology = TOPO_DEFAULT,
                                   .max_generators = 16368,
                                   .lease_ms = 60000,
                                   .backlog_ms = 2000,
                                   .timeout_ms = 5000,
                                   .max_waiting = 8192,
                                   .load = { .rate = 1, .count = 1, .period_ms = 1000 },
                                   .fault = { .restart_ms = UINT64_MAX },
                                   .warm_up_ms = 1000,
                                   .measure_ms = 10000,
                                   .drift_ppm = 50,
                                   .cores = 1 };
    struct scale_result result;
    double start_s = now_s ();
    idt_error_t err;

    parse (argc, argv, &config);
    struct scale *s = scale_create (&config, &err);
    if (!s) {
        fprintf (stderr, "fluid-scale: %s\n", err.text);
        return 2;
    }
    scale_run (s, &result);
    scale_report (s, stdout);
    report_program (config.size, start_s);
    scale_destroy (s);
    if (result.violation[0] != '\0')
        fprintf (stderr, "fluid-scale: %s\n", result.violation);
    return result.violation[0] != '\0';
}
