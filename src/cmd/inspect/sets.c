/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sets.c - the ranks of a subtree as sets, one for each state
 *
 * One request is passed down the tree, and its answers are merged on the way back (broker/metrics/serve.h).  Brokers of
 * an older version do not know this request; each of them gets separate requests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/inspect/overlay.h"
#include "libmetrics/metrics.h"
#include "libutil/text.h"

#define MAX_GROUPS 64 /* lines of a table */

/* --- the view --------------------------------------------------------------------------------------------------- */

uint32_t overlay_subtree_size (struct cmd *cmd, uint32_t rank)
{
    uint32_t size;

    if (rank == 0 && idt_get_size (ask_connect_for (cmd, 0), &size) == 0)
        return size;
    json_t *o = subtree_topology_new (cmd, rank);
    size = (uint32_t)json_integer_value (json_object_get (o, "size"));
    json_decref (o);
    return size;
}

/* NULL: the broker does not know the request. */
static json_t *get_states_new (const struct overlay_view *v)
{
    json_t *question = subtree_request_new (v->cmd, v->rank);

    json_object_set_new (question, "states", json_true ());
    json_object_set_new (question, "services", v->fluid ? json_pack ("[s]", "fluid") : json_array ());
    return subtree_report_new (v->cmd, question, "states");
}

/* --- one by one --------------------------------------------------------------------------------------- */

static void add_rank (uint64_t first, uint64_t last, void *arg)
{
    struct ranks *ranks = arg;

    for (uint64_t rank = first; rank <= last; rank++)
        ranks->rank[ranks->n++] = (uint32_t)rank;
}

/* The ranks that do not know the request; if 'merged' is NULL, all ranks. */
static struct ranks older_ranks (const struct overlay_view *v, uint32_t size, const json_t *merged)
{
    const json_t *status = json_object_get (json_object_get (merged, "ranks"), "status");
    const char *text = json_string_value (json_object_get (status, "older"));

    if (!merged)
        return subtree_ranks (v->cmd, v->rank);
    struct ranks ranks = { .rank = calloc (size, sizeof (ranks.rank[0])) };
    if (!ranks.rank)
        cmd_die (v->cmd, "out of memory");
    if (text && ranges_count (text, UINT32_MAX) <= size)
        ranges_each (text, add_rank, &ranks);
    return ranks;
}

static void take_health (uint32_t rank, idt_future_t *f, void *arg)
{
    const char *status;

    if (!f || idt_rpc_get_unpack (f, "{s:s}", "status", &status) < 0)
        status = !f ? "no answer" : "lost";
    metrics_put_rank (arg, "status", status, rank);
}

static void take_fluid (uint32_t rank, idt_future_t *f, void *arg)
{
    json_int_t generator = -1;
    char lender[32];
    const char *state;

    if (!f || idt_rpc_get_unpack (f, "{s:s s?{s:I}}", "state", &state, "share", "generator", &generator) < 0)
        return;
    metrics_put_rank (arg, "fluid_state", state, rank);
    snprintf (lender, sizeof (lender), "%" JSON_INTEGER_FORMAT, generator);
    if (generator >= 0)
        metrics_put_rank (arg, "fluid_borrowed_of", lender, rank);
}

/* Add the states of older ranks to the merged report (stolen; NULL: none); returns a new reference. */
static json_t *complete_new (const struct overlay_view *v, uint32_t size, json_t *merged)
{
    struct ranks older = older_ranks (v, size, merged);
    struct metrics *m = metrics_create (UINT32_MAX);
    json_t *report = merged;

    if (older.n > 0) {
        if (!m || (merged && metrics_merge (m, merged) < 0))
            cmd_die (v->cmd, "states: malformed answer of the broker");
        ranks_ask (v->cmd, &older, "overlay.health", NULL, take_health, m);
        if (v->fluid)
            ranks_ask (v->cmd, &older, "fluid.info", NULL, take_fluid, m);
        if (!(report = metrics_report_new (m)))
            cmd_die (v->cmd, "out of memory");
        json_object_del (json_object_get (json_object_get (report, "ranks"), "status"), "older");
        json_decref (merged);
    }
    metrics_destroy (m);
    ranks_fini (&older);
    return report;
}

/* --- sets ------------------------------------------------------------------------------------------------------ */

struct rank_group {
    const char *state;
    const char *ranks;
    unsigned long first;
};

static int by_first (const void *a, const void *b)
{
    unsigned long x = ((const struct rank_group *)a)->first, y = ((const struct rank_group *)b)->first;

    return (x > y) - (x < y);
}

/* The states of a set, in order of the first rank of each, with the number of ranks. */
static json_t *groups_new (struct cmd *cmd, const json_t *report, const char *name)
{
    json_t *states = json_object_get (json_object_get (report, "ranks"), name), *groups = json_object (), *ranks;
    size_t n = json_object_size (states), i = 0;
    struct rank_group *sorted = calloc (n + 1, sizeof (sorted[0]));
    const char *state;

    if (!groups || !sorted)
        cmd_die (cmd, "out of memory");
    json_object_foreach (states, state, ranks) {
        const char *text = json_string_value (ranks);

        if (text)
            sorted[i++] = (struct rank_group){ state, text, strtoul (text + (*text == '['), NULL, 10) };
    }
    qsort (sorted, i, sizeof (sorted[0]), by_first);
    for (size_t k = 0; k < i; k++)
        json_object_set_new (groups, sorted[k].state,
                             json_pack ("{s:I s:s}", "count", (json_int_t)ranges_count (sorted[k].ranks, UINT32_MAX),
                                        "ranks", sorted[k].ranks));
    free (sorted);
    return groups;
}

static void print_group (const char *color, const char *state, const json_t *group)
{
    out_own (color ? color : "");
    out_print ("%-12s", state);
    out_own (color ? COLOR_END : "");
    out_print (" %8" JSON_INTEGER_FORMAT "  %s\n", json_integer_value (json_object_get (group, "count")),
               json_string_value (json_object_get (group, "ranks")));
}

/* There may be a group for each generator. */
static void print_groups (const char *title, json_t *groups, bool color)
{
    size_t n = json_object_size (groups), printed = 0;
    const char *state;
    json_t *group;

    if (n == 0)
        return;
    out_print ("%-12s %8s  %s\n", title, "COUNT", "RANKS");
    json_object_foreach (groups, state, group)
        if (printed++ < MAX_GROUPS)
            print_group (color ? color_begin (overlay_mood (state)) : NULL, state, group);
    if (n > MAX_GROUPS)
        out_print ("... and %zu more: --json prints all\n", n - MAX_GROUPS);
}

/* Add the problem of rank 0's store of its horizon, if any. */
static void add_store (const struct overlay_view *v, json_t *o)
{
    idt_future_t *f = v->rank == 0 ? idt_rpc (v->cmd->h, "fluid.info", NULL, 0, 0) : NULL;
    const char *store;

    if (f && idt_future_wait (f, v->cmd->timeout_ms) == 0 && idt_rpc_get_unpack (f, "{s:s}", "store", &store) == 0
        && strcmp (store, "good") != 0)
        json_object_set_new (o, "store", json_string (store));
    idt_future_destroy (f);
}

static json_t *collect_new (const struct overlay_view *v)
{
    uint32_t size = overlay_subtree_size (v->cmd, v->rank);
    json_t *report = complete_new (v, size, get_states_new (v)), *status = groups_new (v->cmd, report, "status");

    if (v->down)
        json_object_del (status, "full");
    json_t *o = json_pack ("{s:I s:o}", "size", (json_int_t)size, "status", status);
    if (v->fluid)
        json_object_set_new (o, "fluid", groups_new (v->cmd, report, "fluid_state"));
    json_t *borrowing = groups_new (v->cmd, report, "fluid_borrowed_of");
    if (json_object_size (borrowing) > 0)
        json_object_set (o, "borrowed_of", borrowing);
    json_decref (borrowing);
    json_decref (report);
    add_store (v, o);
    return o;
}

void overlay_print_sets (const struct overlay_view *v)
{
    json_t *o = collect_new (v);

    if (v->json)
        ask_print (v->cmd, o);
    else {
        print_groups ("STATUS", json_object_get (o, "status"), color_wanted (v->cmd, &v->color));
        print_groups ("FLUID", json_object_get (o, "fluid"), false);
        print_groups ("BORROWED OF", json_object_get (o, "borrowed_of"), false);
        if (json_object_get (o, "store"))
            out_print ("store %s\n", json_string_value (json_object_get (o, "store")));
    }
    json_decref (o);
}
