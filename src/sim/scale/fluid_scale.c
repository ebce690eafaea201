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
    "      --share=HOW         ranks without a generator hold parts: off, auto, 16, 32 ... 1008 (off)\n"
    "      --seed=N            of the random numbers (1)\n"
    "      --check             also check that no id is made twice\n"
    "  -h, --help              print this\n"
    "\n"
    "example: fluid-scale -s 100000 --topology kary:64 --rate 0.5 --kill 3\n";

#define HOUR_MS UINT64_C (3600000)

enum value_kind { VALUE_U32, VALUE_U64, VALUE_TIME, VALUE_FLAG, VALUE_TEXT, VALUE_OTHER };

/* An option: where its value goes, and which values are allowed. For a time only the smallest value is given. */
static const struct row {
    const char *name;
    char letter; /* 0: the option has no letter */
    enum value_kind kind;
    size_t offset; /* offset in struct scale_config; VALUE_OTHER: not used */
    uint64_t min, max;
} rows[] = {
#define AT(member) offsetof (struct scale_config, member)
    { "size", 's', VALUE_U32, AT (size), 1, SCALE_MAX_SIZE },
    { "topology", 0, VALUE_TEXT, AT (topology), 0, 0 },
    { "max-generators", 0, VALUE_U32, AT (max_generators), 1, FLUID_GENERATOR_MAX + 1 },
    { "lease", 0, VALUE_TIME, AT (lease_ms), 100, 0 },
    { "costs", 0, VALUE_OTHER, 0, 0, 0 },
    { "rate", 'r', VALUE_OTHER, 0, 0, 0 },
    { "count", 'n', VALUE_U32, AT (load.count), 1, 65536 },
    { "ask", 0, VALUE_OTHER, 0, 0, 0 },
    { "burst", 0, VALUE_U32, AT (load.burst), 0, 1000000 },
    { "period", 0, VALUE_TIME, AT (load.period_ms), 1, 0 },
    { "spread", 0, VALUE_TIME, AT (load.spread_ms), 0, 0 },
    { "time", 't', VALUE_TIME, AT (measure_ms), 1, 0 },
    { "start-spread", 0, VALUE_TIME, AT (start_spread_ms), 0, 0 },
    { "kill", 0, VALUE_U32, AT (fault.rank), 0, SCALE_MAX_SIZE - 1 },
    { "restart", 0, VALUE_TIME, AT (fault.restart_ms), 0, 0 },
    { "drift", 0, VALUE_U32, AT (drift_ppm), 0, 100 },
    { "one-host", 0, VALUE_U32, AT (cores), 1, SCALE_MAX_CORES },
    { "processes", 0, VALUE_U32, AT (processes), 1, SCALE_MAX_SIZE },
    { "warm-up", 0, VALUE_TIME, AT (warm_up_ms), 0, 0 },
    { "share", 0, VALUE_OTHER, 0, 0, 0 },
    { "seed", 0, VALUE_U64, AT (seed), 0, UINT64_MAX },
    { "check", 0, VALUE_FLAG, AT (check), 0, 0 },
    { "help", 'h', VALUE_FLAG, 0, 0, 0 },
};

#define NROWS (sizeof (rows) / sizeof (rows[0]))

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
    if (parse_number (s, BOX_MIN_SIZE, BOX_MAX_PART, &n) < 0 || !box_is_part_size (n))
        bad ("share", s, "off, auto, or a multiple of 16 from 16 to 1008");
    return (uint32_t)n;
}

static bool is (const struct row *row, const char *name)
{
    return strcmp (row->name, name) == 0;
}

static void set (struct scale_config *c, const struct row *row, const char *s)
{
    void *to = (char *)c + row->offset;

    switch (row->kind) {
    case VALUE_U32:
        *(uint32_t *)to = (uint32_t)number (row->name, s, row->min, row->max);
        break;
    case VALUE_U64:
        *(uint64_t *)to = number (row->name, s, row->min, row->max);
        break;
    case VALUE_TIME:
        *(uint64_t *)to = duration (row->name, s, row->min);
        break;
    case VALUE_FLAG:
        *(bool *)to = true;
        break;
    case VALUE_TEXT:
        *(const char **)to = s;
        break;
    case VALUE_OTHER:
        if (is (row, "rate"))
            c->load.rate = rate (s);
        else if (is (row, "ask"))
            c->load.askers = askers (s);
        else if (is (row, "share"))
            c->share = share (s);
    }
    c->fault.kill = c->fault.kill || is (row, "kill");
    c->one_host = c->one_host || is (row, "one-host");
}

static const struct row *find_row (int letter, int index)
{
    for (size_t i = 0; letter != 0 && i < NROWS; i++)
        if (rows[i].letter == letter)
            return &rows[i];
    return &rows[index];
}

static void parse (int argc, char **argv, struct scale_config *c)
{
    struct option options[NROWS + 1] = { { NULL, 0, NULL, 0 } };
    const char *costs = SCALE_COSTS;
    idt_error_t err;
    int letter, index = 0;

    for (size_t i = 0; i < NROWS; i++)
        options[i] = (struct option){ rows[i].name, rows[i].kind != VALUE_FLAG, NULL, 0 };
    while ((letter = getopt_long (argc, argv, "s:r:n:t:h", options, &index)) != -1) {
        if (letter == '?') {
            fputs ("Try fluid-scale --help\n", stderr);
            exit (2);
        }
        const struct row *row = find_row (letter, index);
        if (is (row, "help")) {
            fputs (usage, stdout);
            exit (0);
        }
        if (is (row, "costs"))
            costs = optarg;
        set (c, row, optarg);
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
