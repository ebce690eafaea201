/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.c - idtree metrics: the figures of an instance, a subtree or each of its ranks, for Prometheus */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "libmetrics/text.h"

struct metrics_options {
    uint32_t rank; /* IDT_NODEID_ANY: not given */
    bool subtree, per_rank;
    const char *format;
};

static enum metrics_format read_format (struct cmd *cmd, const char *name)
{
    if (!name || !strcmp (name, "openmetrics"))
        return METRICS_OPENMETRICS;
    if (strcmp (name, "prometheus") != 0)
        cmd_usage (cmd, "--format %.64s: openmetrics or prometheus is needed", name);
    return METRICS_PROMETHEUS;
}

static int print_sums (struct cmd *cmd, const struct metrics_options *o, enum metrics_format format)
{
    bool all = o->rank == IDT_NODEID_ANY;
    json_t *question = subtree_request_new (cmd, all ? 0 : o->rank);

    if (!all && !o->subtree)
        json_object_set_new (question, "alone", json_true ());
    json_t *report = subtree_report_new (cmd, question, "metrics");
    if (!report && ask_is_flux (cmd))
        cmd_die (cmd, "metrics: the broker at %s belongs to Flux, where idtree serves " ASK_IN_FLUX, ask_uri (cmd));
    if (!report)
        cmd_die (cmd, "the broker at %s has no metrics: its version is too old", ask_uri (cmd));
    if (cmd->json)
        ask_print (cmd, report);
    else
        metrics_print (stdout, format, &(struct metrics_source){ report, -1 }, 1);
    json_decref (report);
    return CMD_OK;
}

struct collection {
    struct metrics_source *sources; /* this array owns the reports */
    size_t n;
    json_t *failed;
};

static void take (uint32_t rank, idt_future_t *f, void *arg)
{
    struct collection *c = arg;
    json_t *report;

    if (!ranks_note (c->failed, rank, f) && idt_rpc_get_unpack (f, "O", &report) == 0)
        c->sources[c->n++] = (struct metrics_source){ report, (long)rank };
}

static void print_by_rank (const struct cmd *cmd, const struct collection *c)
{
    json_t *o = json_object ();
    char rank[16];

    for (size_t i = 0; i < c->n; i++) {
        snprintf (rank, sizeof (rank), "%ld", c->sources[i].rank);
        json_object_set (o, rank, (json_t *)c->sources[i].report);
    }
    ask_print_new (cmd, o);
}

static int print_each (struct cmd *cmd, const struct metrics_options *o, enum metrics_format format)
{
    bool one = o->rank != IDT_NODEID_ANY && !o->subtree;
    uint32_t root = o->rank == IDT_NODEID_ANY ? 0 : o->rank;
    struct ranks ranks = subtree_ranks (cmd, root);
    struct collection c = { .sources = calloc (ranks.n + 1, sizeof (c.sources[0])), .failed = json_object () };
    json_t *question = subtree_request_new (cmd, root);

    if (!c.sources)
        cmd_die (cmd, "out of memory");
    json_object_del (question, "rank"); /* each request has its own rank */
    json_object_set_new (question, "alone", json_true ());
    ranks_ask (cmd, one ? &(struct ranks){ &root, 1 } : &ranks, "metrics.get", question, take, &c);
    if (cmd->json)
        print_by_rank (cmd, &c);
    else
        metrics_print (stdout, format, c.sources, c.n);
    int status = ranks_warn (cmd, c.failed, "ranks");
    for (size_t i = 0; i < c.n; i++)
        json_decref ((json_t *)c.sources[i].report);
    free (c.sources);
    json_decref (c.failed);
    json_decref (question);
    ranks_fini (&ranks);
    return status;
}

static int run (struct cmd *cmd)
{
    struct metrics_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    enum metrics_format format = read_format (cmd, o.format);
    if (o.subtree && o.rank == IDT_NODEID_ANY)
        cmd_usage (cmd, "--subtree needs --rank");
    ask_connect_for (cmd, o.rank);
    return (o.per_rank ? print_each : print_sums) (cmd, &o, format);
}

#define AT(member) offsetof (struct metrics_options, member)

static const struct cmd_option options[] = {
    { 'r', "rank", "RANK", "only this rank (default: the instance)", cmd_take_rank, AT (rank) },
    { 0, "subtree", NULL, "with all ranks below it", cmd_take_flag, AT (subtree) },
    { 0, "per-rank", NULL, "each rank separately, instead of sums", cmd_take_flag, AT (per_rank) },
    { 'F', "format", "FORMAT", "openmetrics (default), or prometheus: the older text format", cmd_take_text,
      AT (format) },
    CMD_OPTIONS_END,
};

const struct command metrics_command = {
    .name = "metrics",
    .flags = CMD_CONNECTS,
    .summary = "Show figures of the instance, for Prometheus",
    .details = "One request is passed down the tree, and the figures of the ranks are merged on the way "
               "back:\ncounters and levels are added; of other figures the least or the greatest is shown.  "
               "Missing\nranks are counted (idtree_ranks).",
    .example = "idtree metrics -r 1 --subtree",
    .json = "one object: the report of the brokers",
    .options = options,
    .run = run,
};
