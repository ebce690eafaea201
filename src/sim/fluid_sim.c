/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid_sim.c - plays simulated histories of the id service, one for each seed
 *
 *   fluid-sim [-s SEED] [-c COUNT] [-n NODES] [-e STEPS] [-r] [-v]
 *
 * Prints one JSON object with the sums over all histories. If a history breaks a promise, the program prints the
 * command that plays this history again, and ends with exit code 1.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

struct sim_plan {
    struct sim_config config;
    uint64_t count;
};

static void print_sum (const struct sim_result *s, uint64_t histories)
{
    printf ("{\"histories\":%" PRIu64 ",\"events\":%" PRIu64 ",\"faults\":%" PRIu64 ",\"lives\":%" PRIu64
            ",\"takeovers\":%" PRIu64 ",\"ranges\":%" PRIu64 ",\"parts\":%" PRIu64 ",\"watermarks\":%" PRIu64
            ",\"requests\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"ids\":%" PRIu64
            ",\"paged\":%" PRIu64 ",\"simulated_s\":%.1f,\"duplicates\":0}\n",
            histories, s->events, s->faults, s->lives, s->takeovers, s->ranges, s->parts, s->watermarks, s->requests,
            s->answered, s->failed, s->ids, s->paged, (double)s->sim_ms / 1000);
}

static void usage (void)
{
    fprintf (stderr, "usage: fluid-sim [-s SEED] [-c COUNT] [-n NODES] [-e STEPS] [-r] [-v]\n"
                     "Play COUNT (100) histories from SEED (1) on, of NODES (0: any number) brokers, 1 to 64,\n"
                     "STEPS (20000) events each.  -r: other roots take over.  -v prints each event.\n");
    exit (2);
}

static uint64_t number (const char *s, uint64_t max)
{
    char *end;
    unsigned long long n = strtoull (s, &end, 10);

    if (*s < '0' || *s > '9' || *end || n > max)
        usage ();
    return n;
}

static struct sim_plan parse (int argc, char **argv)
{
    struct sim_plan p = { .config = { .seed = 1, .steps = 20000 }, .count = 100 };
    int c;

    while ((c = getopt (argc, argv, "s:c:n:e:rv")) != -1) {
        if (c == 's')
            p.config.seed = number (optarg, UINT64_MAX);
        else if (c == 'c')
            p.count = number (optarg, UINT64_MAX);
        else if (c == 'n')
            p.config.nodes = (uint32_t)number (optarg, 64);
        else if (c == 'e')
            p.config.steps = number (optarg, UINT64_MAX);
        else if (c == 'r')
            p.config.standby = true;
        else if (c == 'v')
            p.config.verbose = true;
        else
            usage ();
    }
    if (optind < argc)
        usage ();
    return p;
}

int main (int argc, char **argv)
{
    struct sim_plan p = parse (argc, argv);
    struct sim_result sum = { .events = 0 };

    for (uint64_t i = 0; i < p.count; i++, p.config.seed++) {
        sim_run (&p.config, &sum);
        if (sum.violation[0] != '\0') {
            printf ("%s\nagain: fluid-sim -s %" PRIu64 " -c 1 -n %u -e %" PRIu64 "%s -v\n", sum.violation,
                    p.config.seed, (unsigned)p.config.nodes, p.config.steps, p.config.standby ? " -r" : "");
            return 1;
        }
    }
    print_sum (&sum, p.count);
    return 0;
}
