/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* report.c - prints the results of a simulation at size, a JSON object a line */
#include <inttypes.h>

#include "sim/scale/private.h"

static double seconds (const struct scale *s)
{
    return (double)(s->end_ns - s->begin_ns) / 1e9;
}

static void print_times (struct samples *t, const char *unit, double ns, FILE *out)
{
    fprintf (out, "\"n\":%" PRIu64 ",\"mean_%s\":%.2f,\"p50_%s\":%.2f,\"p90_%s\":%.2f,\"p99_%s\":%.2f,\"max_%s\":%.2f",
             t->count, unit, samples_mean (t) / ns, unit, (double)samples_percentile (t, 50) / ns, unit,
             (double)samples_percentile (t, 90) / ns, unit, (double)samples_percentile (t, 99) / ns, unit,
             (double)t->max_ns / ns);
}

static void report_run (const struct scale *s, FILE *out)
{
    const struct scale_config *c = &s->config;
    const struct scale_result *r = &s->result;

    fprintf (
        out,
        "{\"scale\":\"run\",\"size\":%u,\"topology\":\"%s\",\"levels\":%u,\"generators\":%u,\"rate\":%g,\"count\":%u,"
        "\"burst\":%u,\"seed\":%" PRIu64 ",\"seconds\":%.1f,\"asked\":%" PRIu64 ",\"answered\":%" PRIu64
        ",\"failed\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"ids\":%" PRIu64 ",\"events\":%" PRIu64
        ",\"forwards_under_way\":%u,\"share\":%u,\"sharing\":%" PRIu64 "}\n",
        (unsigned)c->size, c->topology, (unsigned)s->nlevels, (unsigned)s->owners, c->load.rate,
        (unsigned)c->load.count, (unsigned)c->load.burst, c->seed, seconds (s), r->asked, r->answered, r->failed,
        r->dropped, r->ids, r->events, (unsigned)r->most_under_way, (unsigned)c->share, r->sharing);
}

static void report_start (struct scale *s, FILE *out)
{
    fprintf (out, "{\"scale\":\"start\",\"complete\":%s,\"what\":\"joined\",", s->result.started ? "true" : "false");
    print_times (&s->joined, "ms", 1e6, out);
    fprintf (out, "}\n{\"scale\":\"start\",\"complete\":%s,\"what\":\"active\",", s->result.started ? "true" : "false");
    print_times (&s->activated, "ms", 1e6, out);
    fprintf (out, ",\"root_lease_messages\":%" PRIu64 ",\"root_wants\":%" PRIu64 "}\n", s->result.root_leases,
             s->cold_root_wants);
}

static void report_latency (struct scale *s, FILE *out)
{
    fprintf (out, "{\"scale\":\"latency\",");
    print_times (&s->all, "us", 1e3, out);
    fprintf (out, "}\n");
    for (uint32_t l = 0; l < s->nlevels; l++)
        for (int i = 0; i < NSTATES; i++) {
            if (s->level[l].latency[i].count == 0)
                continue;
            fprintf (out, "{\"scale\":\"latency\",\"level\":%u,\"state\":\"%s\",", (unsigned)l,
                     node_state_name ((enum node_state)i));
            print_times (&s->level[l].latency[i], "us", 1e3, out);
            fprintf (out, "}\n");
        }
}

/* Print the numbers of the links from each level to the level above. */
static void report_links (const struct scale *s, FILE *out)
{
    static const char *const names[NMESSAGES] = {
        [MSG_BLOCK] = "blocks",  [MSG_CANCEL] = "cancels", [MSG_LEASE] = "leases",  [MSG_REPORT] = "reports",
        [MSG_PING] = "pings",    [MSG_HELLO] = "hellos",   [MSG_IDS] = "ids",       [MSG_ERROR] = "errors",
        [MSG_GRANTS] = "grants", [MSG_PONG] = "pongs",     [MSG_JOINED] = "joined",
    };

    for (uint32_t l = 1; l < s->nlevels; l++) {
        const struct scale_level *level = &s->level[l];
        double links_s = (double)level->ranks * seconds (s);
        uint64_t sum = 0;

        for (int i = 0; i < NMESSAGES; i++)
            sum += level->messages[i];
        fprintf (out, "{\"scale\":\"link\",\"level\":%u,\"links\":%u,\"messages_per_s\":%.3f,\"bytes_per_s\":%.1f",
                 (unsigned)l, (unsigned)level->ranks, (double)sum / links_s, (double)level->bytes / links_s);
        for (int i = 0; i < NMESSAGES; i++)
            fprintf (out, ",\"%s_per_s\":%.4f", names[i], (double)level->messages[i] / links_s);
        fprintf (out, "}\n");
    }
}

struct busy {
    uint64_t sum_ns, max_ns;
    uint32_t rank, ranks, parents;
};

static struct busy find_busy (const struct scale *s, uint32_t level)
{
    struct busy b = { 0 };

    for (uint32_t i = 0; i < s->config.size; i++) {
        const struct scale_rank *r = &s->rank[i];

        if (r->level != level)
            continue;
        b.ranks++;
        b.parents += topo_child_count (s->topo, i) > 0;
        b.sum_ns += r->used_ns;
        if (r->used_ns >= b.max_ns) {
            b.max_ns = r->used_ns;
            b.rank = i;
        }
    }
    return b;
}

static void report_load (const struct scale *s, FILE *out)
{
    double window_ns = (double)(s->end_ns - s->begin_ns);
    struct busy busiest = { 0 };

    for (uint32_t l = 0; l < s->nlevels; l++) {
        struct busy b = find_busy (s, l);

        if (b.parents > 0 && b.max_ns >= busiest.max_ns)
            busiest = b;
        fprintf (out, "{\"scale\":\"load\",\"level\":%u,\"ranks\":%u,\"parents\":%u,\"mean\":%.5f,\"max\":%.5f}\n",
                 (unsigned)l, (unsigned)b.ranks, (unsigned)b.parents, (double)b.sum_ns / b.ranks / window_ns,
                 (double)b.max_ns / window_ns);
    }
    const struct scale_rank *r = &s->rank[busiest.rank];
    fprintf (out,
             "{\"scale\":\"busiest\",\"rank\":%u,\"level\":%u,\"children\":%u,\"load\":%.5f,\"messages_per_s\":%.1f}\n",
             (unsigned)busiest.rank, (unsigned)r->level, (unsigned)topo_child_count (s->topo, busiest.rank),
             (double)r->used_ns / window_ns, (double)r->received / seconds (s));
}

static void report_host (const struct scale *s, FILE *out)
{
    double window_ns = (double)(s->end_ns - s->begin_ns);

    if (!s->config.one_host)
        return;
    fprintf (out, "{\"scale\":\"host\",\"cores\":%u,\"processes\":%u,\"brokers\":%.4f,\"io\":%.4f,\"client\":%.4f}\n",
             (unsigned)s->config.cores, s->plan ? (unsigned)plan_processes (s->plan) : (unsigned)s->config.size,
             s->result.busy_cores, (double)s->io_used_ns / window_ns, (double)s->client_used_ns / window_ns);
}

static void report_processes (const struct scale *s, FILE *out)
{
    double window_ns = (double)(s->end_ns - s->begin_ns);

    for (uint32_t i = 0; s->plan && i < plan_processes (s->plan); i++) {
        double used_ns = 0;

        for (uint32_t n = 0; n < plan_count (s->plan, i); n++)
            used_ns += (double)s->rank[plan_rank (s->plan, i, n)].used_ns;
        fprintf (out, "{\"scale\":\"process\",\"process\":%u,\"ranks\":%u,\"load\":%.5f}\n", (unsigned)i,
                 (unsigned)plan_count (s->plan, i), used_ns / window_ns);
    }
}

/* Print how long the requests right after the loss waited, by the state of their rank. */
static void report_loss (struct scale *s, FILE *out)
{
    if (s->kill_ns == 0)
        return;
    for (int i = 0; i < NSTATES; i++) {
        if (s->served_again[i].count == 0)
            continue;
        fprintf (out, "{\"scale\":\"served-again\",\"killed\":%u,\"state\":\"%s\",", (unsigned)s->config.fault.rank,
                 node_state_name ((enum node_state)i));
        print_times (&s->served_again[i], "ms", 1e6, out);
        fprintf (out, "}\n");
    }
    fprintf (out, "{\"scale\":\"joined-again\",\"killed\":%u,", (unsigned)s->config.fault.rank);
    print_times (&s->joined_again, "ms", 1e6, out);
    fprintf (out, ",\"up\":%u}\n", (unsigned)s->nup);
}

void scale_report (struct scale *s, FILE *out)
{
    report_run (s, out);
    report_start (s, out);
    report_latency (s, out);
    report_links (s, out);
    report_load (s, out);
    report_host (s, out);
    report_processes (s, out);
    report_loss (s, out);
}
