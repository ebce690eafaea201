/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* overlay.c - idtree overlay status: the state of each rank, now or after it has reached a given state
 *
 * As a tree: each rank knows only the states of its children, so the tree is walked from the root, level by level.
 * Requests to the ranks of a level are concurrent.  If a rank's parent reports it as lost or offline, the rank gets no
 * request, and is shown with that state.  The ranks below a lost rank may be online, attached to another ancestor. They
 * are found in the topology, and get requests, too.
 *
 * As sets of ranks, one for each state: one request is passed down the tree, and the answers are merged on the way back
 * (broker/metrics/serve.h).  Brokers of an older version do not know this request, so each of them gets separate
 * requests.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/base/table.h"
#include "libmetrics/metrics.h"
#include "libutil/clock.h"
#include "libutil/text.h"

#define STATE_SIZE 32     /* bytes of the name of a state */
#define MANY_RANKS 256    /* larger trees are shown as sets, except with --all */
#define MAX_GROUPS 64     /* most lines of a table of sets */
#define WINDOW 256        /* concurrent requests to the ranks of a level */
#define LOOK_AGAIN_MS 100 /* ms between two looks while waiting for a state */

static const char *const states[] = { "full", "partial", "degraded", "lost", NULL };

struct overlay_view {
    struct cmd *cmd;
    uint32_t rank; /* the root of the shown subtree */
    bool fluid;    /* also show sets for the states of generators */
    bool down;     /* show only ranks that are not full */
    bool all, summary, check;
    const char *wait;
    struct color color;
};

static enum mood mood_of (const char *state)
{
    if (!strcmp (state, "full"))
        return MOOD_GOOD;
    return !strcmp (state, "lost") || !strcmp (state, "offline") || !strcmp (state, "no answer") ? MOOD_BAD
                                                                                                 : MOOD_WARNING;
}

/* --- as sets ----------------------------------------------------------------------------------------- */

/* Return the number of brokers in the subtree of a rank.  Ends the program if the rank does not exist. */
static uint32_t subtree_size (struct cmd *cmd, uint32_t rank)
{
    uint32_t size;

    if (rank == 0 && idt_get_size (ask_connect_for (cmd, 0), &size) == 0)
        return size;
    json_t *o = subtree_topology_new (cmd, rank);
    size = (uint32_t)json_integer_value (json_object_get (o, "size"));
    json_decref (o);
    return size;
}

/* Return the merged report; NULL: the broker does not know the request. */
static json_t *get_states_new (const struct overlay_view *v)
{
    json_t *question = subtree_request_new (v->cmd, v->rank);

    json_object_set_new (question, "states", json_true ());
    json_object_set_new (question, "services", v->fluid ? json_pack ("[s]", "fluid") : json_array ());
    return subtree_report_new (v->cmd, question, "states");
}

static void add_rank (uint64_t first, uint64_t last, void *arg)
{
    struct ranks *ranks = arg;

    for (uint64_t rank = first; rank <= last; rank++)
        ranks->rank[ranks->n++] = (uint32_t)rank;
}

/* Return the ranks that do not know the request.  If 'merged' is NULL, these are all ranks of the subtree. */
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
    char of[32];
    const char *state;

    if (!f || idt_rpc_get_unpack (f, "{s:s s?{s:I}}", "state", &state, "part", "generator", &generator) < 0)
        return;
    metrics_put_rank (arg, "fluid_state", state, rank);
    snprintf (of, sizeof (of), "%" JSON_INTEGER_FORMAT, generator);
    if (generator >= 0)
        metrics_put_rank (arg, "fluid_part_of", of, rank);
}

/* Add the states of older ranks to the merged report (stolen; NULL: no report).  Returns a new reference. */
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

/* Return the states of a set with their ranks and the number of ranks, ordered by the first rank of each state. */
static json_t *groups_new (struct cmd *cmd, const json_t *report, const char *name)
{
    json_t *of_state = json_object_get (json_object_get (report, "ranks"), name), *groups = json_object (), *ranks;
    size_t n = json_object_size (of_state), i = 0;
    struct rank_group *sorted = calloc (n + 1, sizeof (sorted[0]));
    const char *state;

    if (!groups || !sorted)
        cmd_die (cmd, "out of memory");
    json_object_foreach (of_state, state, ranks) {
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

/* Print at most MAX_GROUPS groups, because there may be one for each generator. */
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
            print_group (color ? mood_colors[mood_of (state)].begin : NULL, state, group);
    if (n > MAX_GROUPS)
        out_print ("... and %zu more: --json prints all\n", n - MAX_GROUPS);
}

/* If rank 0 reports a problem of the store of its horizon, add the problem. */
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
    uint32_t size = subtree_size (v->cmd, v->rank);
    json_t *report = complete_new (v, size, get_states_new (v)), *status = groups_new (v->cmd, report, "status");

    if (v->down)
        json_object_del (status, "full");
    json_t *o = json_pack ("{s:I s:o}", "size", (json_int_t)size, "status", status);
    if (v->fluid)
        json_object_set_new (o, "fluid", groups_new (v->cmd, report, "fluid_state"));
    json_t *parts = groups_new (v->cmd, report, "fluid_part_of");
    if (json_object_size (parts) > 0)
        json_object_set (o, "part_of", parts);
    json_decref (parts);
    json_decref (report);
    add_store (v, o);
    return o;
}

static void print_sets (const struct overlay_view *v)
{
    json_t *o = collect_new (v);

    if (v->cmd->json)
        ask_print (v->cmd, o);
    else {
        print_groups ("STATUS", json_object_get (o, "status"), color_wanted (v->cmd, &v->color));
        print_groups ("FLUID", json_object_get (o, "fluid"), false);
        print_groups ("PART OF", json_object_get (o, "part_of"), false);
        if (json_object_get (o, "store"))
            out_print ("store %s\n", json_string_value (json_object_get (o, "store")));
    }
    json_decref (o);
}

/* --- as a tree --------------------------------------------------------------------------------------- */

enum column { RANK, HOST, STATUS, SINCE, FLUID, GENERATOR, SERVED_BY, COLUMNS };

/* The key in JSON is the title in lower case. */
static const struct table_column columns[COLUMNS] = {
    [RANK] = { "RANK", NULL, TABLE_TREE | TABLE_NUMBER },
    [HOST] = { "HOST", NULL, 0 },
    [STATUS] = { "STATUS", NULL, 0 },
    [SINCE] = { "SINCE", NULL, TABLE_RIGHT | TABLE_NUMBER },
    [FLUID] = { "FLUID", NULL, 0 },
    [GENERATOR] = { "GENERATOR", NULL, TABLE_RIGHT | TABLE_NUMBER },
    [SERVED_BY] = { "IDS-FROM", NULL, TABLE_RIGHT | TABLE_NUMBER },
};

struct tree_node {
    uint32_t rank;
    struct libscols_line *parent;
    char status[STATE_SIZE]; /* status of the rank as its parent reports it */
    uint64_t asked_ms;
    double duration_s;
    bool orphan; /* the parent of the rank in the tree is lost */
    idt_future_t *health, *host, *info;
    idt_future_t *overlay; /* answer of an orphan to overlay.stats-get */
};

struct level {
    struct tree_node *nodes;
    size_t n, room;
};

struct walk {
    const struct overlay_view *view;
    struct cmd *cmd;
    bool color;
    struct libscols_table *table;
    struct level next;
    char store[512]; /* the problem of rank 0's store; empty: no problem */
};

static struct tree_node *add_node (struct walk *w, uint32_t rank, struct libscols_line *parent, const char *status,
                                   double duration_s)
{
    struct level *l = &w->next;

    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 64;
        if (!(l->nodes = realloc (l->nodes, l->room * sizeof (l->nodes[0]))))
            cmd_die (w->cmd, "out of memory");
    }
    struct tree_node *node = &l->nodes[l->n++];
    memset (node, 0, sizeof (*node));
    node->rank = rank;
    node->parent = parent;
    node->duration_s = duration_s;
    snprintf (node->status, sizeof (node->status), "%s", status);
    return node;
}

static bool is_gone (const struct tree_node *node)
{
    return !strcmp (node->status, "lost") || !strcmp (node->status, "offline");
}

static void ask_node (struct walk *w, struct tree_node *node)
{
    if (is_gone (node))
        return;
    node->asked_ms = clock_ms (CLOCK_MONOTONIC);
    node->health = idt_rpc (w->cmd->h, "overlay.health", NULL, node->rank, 0);
    node->host = idt_rpc_pack (w->cmd->h, "attr.get", node->rank, 0, "{s:s}", "name", "hostname");
    node->info = idt_rpc (w->cmd->h, "fluid.info", "{}", node->rank, 0);
    if (node->orphan)
        node->overlay = idt_rpc (w->cmd->h, "overlay.stats-get", NULL, node->rank, 0);
    if (!node->health || !node->host || !node->info || (node->orphan && !node->overlay))
        cmd_die (w->cmd, "cannot send: %s", strerror (errno));
}

/* Whether a request of a node was answered without an error.  The requests of a node are concurrent, and --timeout
 * counts from the first one.  So if the rank is silent, the command waits for it only once.
 */
static bool answered (const struct walk *w, const struct tree_node *node, idt_future_t *f)
{
    return f && idt_future_wait (f, ask_left_ms (w->cmd, node->asked_ms)) == 0 && idt_future_errnum (f) == 0;
}

struct tree_row {
    char rank[16], since[16], generator[16], served_by[16], state[64];
    const char *texts[COLUMNS]; /* NULL: empty */
};

static void format_duration (double s, char *buf, size_t size)
{
    if (s < 60)
        snprintf (buf, size, "%.1fs", s);
    else if (s < 3600)
        snprintf (buf, size, "%.1fm", s / 60);
    else if (s < 86400)
        snprintf (buf, size, "%.1fh", s / 3600);
    else
        snprintf (buf, size, "%.1fd", s / 86400);
}

static const char *format_number (const json_t *o, const char *key, char *buf, size_t size)
{
    const json_t *n = json_object_get (o, key);

    if (!json_is_integer (n))
        return NULL;
    snprintf (buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value (n));
    return buf;
}

/* Rank 0 reports its store as "good", or as a word that a colon and the reason may follow. */
static void fill_store (struct walk *w, const json_t *o, char *state, size_t size)
{
    const char *store = json_string_value (json_object_get (o, "store"));
    size_t len = strlen (state);

    if (!store || !strcmp (store, "good"))
        return;
    snprintf (state + len, size - len, ", store %.*s", (int)strcspn (store, ":"), store);
    snprintf (w->store, sizeof (w->store), "%s", store);
}

static void fill_fluid (struct walk *w, struct tree_node *node, struct tree_row *row)
{
    const char *state;
    json_t *o;

    if (!answered (w, node, node->info) || idt_rpc_get_unpack (node->info, "o", &o) < 0)
        return;
    row->texts[GENERATOR] = format_number (o, "generator", row->generator, sizeof (row->generator));
    if (!row->texts[GENERATOR]) /* show the generator of the rank's part */
        row->texts[GENERATOR] = format_number (json_object_get (o, "part"), "generator", row->generator,
                                               sizeof (row->generator));
    row->texts[SERVED_BY] = format_number (o, "served_by", row->served_by, sizeof (row->served_by));
    if ((state = json_string_value (json_object_get (o, "state")))) {
        snprintf (row->state, sizeof (row->state), "%s", state);
        fill_store (w, o, row->state, sizeof (row->state));
        row->texts[FLUID] = row->state;
    }
}

static void set_color (const struct walk *w, struct libscols_line *line, const char *status)
{
    const char *color = mood_colors[mood_of (status)].name;

    if (w->color && color && scols_cell_set_color (scols_line_get_cell (line, STATUS), color) < 0)
        cmd_die (w->cmd, "out of memory");
}

/* Add a line for the node.  Returns the line, which will be the parent of the lines of ranks below. */
static struct libscols_line *add_row (struct walk *w, struct tree_node *node)
{
    struct tree_row row = { .texts = { NULL } };
    const char *host;

    snprintf (row.rank, sizeof (row.rank), "%" PRIu32, node->rank);
    row.texts[RANK] = row.rank;
    row.texts[STATUS] = node->status;
    if (node->duration_s >= 0) {
        if (w->cmd->json)
            snprintf (row.since, sizeof (row.since), "%.1f", node->duration_s);
        else
            format_duration (node->duration_s, row.since, sizeof (row.since));
        row.texts[SINCE] = row.since;
    }
    if (answered (w, node, node->host) && idt_rpc_get_unpack (node->host, "{s:s}", "value", &host) == 0)
        row.texts[HOST] = host;
    fill_fluid (w, node, &row);
    if (w->view->down && mood_of (node->status) == MOOD_GOOD)
        return node->parent;
    struct libscols_line *line = table_add (w->table, node->parent, row.texts, COLUMNS);
    set_color (w, line, node->status);
    return line;
}

static void add_children (struct walk *w, const json_t *children, struct libscols_line *line)
{
    size_t i;
    json_t *child;

    json_array_foreach (children, i, child) {
        json_int_t rank;
        const char *status;
        double duration_s = -1;

        if (json_unpack (child, "{s:I s:s s?F}", "rank", &rank, "status", &status, "duration", &duration_s) == 0)
            add_node (w, rank, line, status, duration_s);
    }
}

/* If a rank is lost, add its children by the topology. */
static void add_orphans (struct walk *w, uint32_t rank, struct libscols_line *line)
{
    json_t *o = ask_new (w->cmd, "overlay.topology", 0, json_pack ("{s:I}", "rank", (json_int_t)rank), "topology");
    json_t *child;
    size_t i;

    json_array_foreach (json_object_get (o, "children"), i, child) {
        json_int_t orphan;

        if (json_unpack (child, "{s:I}", "rank", &orphan) == 0)
            add_node (w, orphan, line, "unknown", -1)->orphan = true;
    }
    json_decref (o);
}

/* If an orphan answers, add "via" and the rank that it is attached to to its status.  If it does not, it is lost. */
static void take_orphan (const struct walk *w, struct tree_node *node)
{
    json_int_t rank;
    size_t len = strlen (node->status);

    if (!answered (w, node, node->health))
        snprintf (node->status, sizeof (node->status), "lost");
    else if (answered (w, node, node->overlay)
             && idt_rpc_get_unpack (node->overlay, "{s:I}", "parent-rank", &rank) == 0)
        snprintf (node->status + len, sizeof (node->status) - len, " via %" JSON_INTEGER_FORMAT, rank);
}

/* Take the answers of a node.  The status that a rank reports of its own subtree replaces the one that its parent
 * reported.
 */
static void take_node (struct walk *w, struct tree_node *node)
{
    const char *status;
    json_t *children = NULL;

    if (answered (w, node, node->health)
        && idt_rpc_get_unpack (node->health, "{s:s s:F s:o}", "status", &status, "duration", &node->duration_s,
                               "children", &children)
               == 0)
        snprintf (node->status, sizeof (node->status), "%s", status);
    else if (!is_gone (node))
        snprintf (node->status, sizeof (node->status), "%s",
                  node->health && idt_future_errnum (node->health) == EHOSTUNREACH ? "lost" : "no answer");
    if (node->orphan)
        take_orphan (w, node);
    struct libscols_line *line = add_row (w, node);
    add_children (w, children, line);
    if (is_gone (node))
        add_orphans (w, node->rank, line);
    idt_future_destroy (node->overlay);
    idt_future_destroy (node->health);
    idt_future_destroy (node->host);
    idt_future_destroy (node->info);
}

static void walk_level (struct walk *w, struct level *l)
{
    size_t asked = 0;

    for (size_t i = 0; i < l->n; i++) {
        for (; asked < l->n && asked < i + WINDOW; asked++)
            ask_node (w, &l->nodes[asked]);
        take_node (w, &l->nodes[i]);
    }
    free (l->nodes);
}

static void print_tree (const struct overlay_view *v)
{
    struct walk w = { .view = v, .cmd = v->cmd, .color = !v->cmd->json && color_wanted (v->cmd, &v->color) };

    struct table_column titled[COLUMNS];

    memcpy (titled, columns, sizeof (columns));
    if (v->cmd->json)
        titled[SERVED_BY].title = "IDS_FROM";
    w.table = table_create (titled, COLUMNS);
    scols_table_enable_colors (w.table, w.color);
    add_node (&w, v->rank, NULL, "unknown", -1);
    while (w.next.n > 0) {
        struct level l = w.next;

        w.next = (struct level){ NULL, 0, 0 };
        walk_level (&w, &l);
    }
    if (v->cmd->json) {
        json_t *o = table_json_new (w.table, "overlay");

        ask_print_new (v->cmd, o);
        return;
    }
    table_print (w.table);
    if (w.store[0] != '\0')
        out_print ("store %s\n", w.store);
}

/* --- the command ------------------------------------------------------------------------------------- */

/* Write the state that a rank reports of its subtree into 'state'.  If the rank cannot be reached, write "lost". */
static void get_state (struct cmd *cmd, uint32_t rank, char state[STATE_SIZE])
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, "overlay.health", rank, NULL), "state");
    const char *status;

    if (idt_future_errnum (f) == EHOSTUNREACH)
        status = "lost";
    else if (idt_rpc_get_unpack (ask_wait (cmd, f, "state"), "{s:s}", "status", &status) < 0)
        cmd_die (cmd, "state: the answer has no state");
    snprintf (state, STATE_SIZE, "%s", status);
    idt_future_destroy (f);
}

static void check_state_name (struct cmd *cmd, const char *name)
{
    for (int i = 0; states[i]; i++)
        if (!strcmp (states[i], name))
            return;
    cmd_usage (cmd, "'%.64s' is not a state to wait for: full, partial, degraded or lost", name);
}

/* Wait until the rank has the wanted state, for at most --timeout in total, because the rank may never reach the state.
 */
static void await_state (struct cmd *cmd, const struct overlay_view *v)
{
    uint64_t since_ms = clock_ms (CLOCK_MONOTONIC);
    char state[STATE_SIZE];

    for (;;) {
        get_state (cmd, v->rank, state);
        if (!strcmp (state, v->wait))
            return;
        if (ask_left_ms (cmd, since_ms) == 0)
            cmd_die (cmd, "rank %" PRIu32 " is %s, not %s, after %g s (--timeout)", v->rank, state, v->wait,
                     cmd->timeout_ms / 1000);
        clock_sleep_ns (LOOK_AGAIN_MS * INT64_C (1000000));
    }
}

static void show (const struct overlay_view *v)
{
    if (v->summary || v->fluid || (!v->all && subtree_size (v->cmd, v->rank) > MANY_RANKS))
        print_sets (v);
    else
        print_tree (v);
}

static int run (struct cmd *cmd)
{
    struct overlay_view v = { .cmd = cmd };
    char state[STATE_SIZE];

    cmd_options (cmd, &v);
    if (v.wait)
        check_state_name (cmd, v.wait);
    ask_connect_for (cmd, v.rank);
    if (v.wait)
        await_state (cmd, &v);
    show (&v);
    if (!v.check)
        return CMD_OK;
    get_state (cmd, v.rank, state);
    return mood_of (state) == MOOD_GOOD ? 0 : mood_of (state) == MOOD_WARNING ? 1 : 2;
}

#define AT(member) offsetof (struct overlay_view, member)

static const struct cmd_option options[] = {
    { 'r', "rank", "RANK", "only that rank and the ranks below it", cmd_take_rank, AT (rank) },
    { 0, "summary", NULL, "each state with its set of ranks, as for more than 256 ranks", cmd_take_flag, AT (summary) },
    { 0, "fluid", NULL, "as --summary, with the states of generators", cmd_take_flag, AT (fluid) },
    { 0, "all", NULL, "a line for each rank, also for more than 256", cmd_take_flag, AT (all) },
    { 0, "down", NULL, "only ranks that are not full", cmd_take_flag, AT (down) },
    { 0, "wait", "STATE", "first wait until RANK (0) is full, partial, degraded or lost", cmd_take_text, AT (wait) },
    { 0, "check", NULL, "exit status 0: full, 1: partial or degraded, 2: lost", cmd_take_flag, AT (check) },
    COLOR_OPTIONS (AT (color)),
    CMD_OPTIONS_END,
};

const struct command overlay_status_command = {
    .name = "overlay status",
    .flags = CMD_CONNECTS,
    .summary = "Show the tree, the state of each rank, and where its ids come from",
    .details = "STATUS: full, partial (ranks below are offline), degraded (ranks below are lost), lost, "
               "offline;\n\"via R\": its parent is lost, it is attached to rank R.\nFLUID: active (makes ids), idle "
               "(no generator: its ids come from IDS-FROM), fenced (waits for a\nlease), sharing (makes ids with "
               "a part of the numbers of another rank's GENERATOR);\nat rank 0 also the problem of the store "
               "of its horizon, if any.",
    .example = "idtree overlay status --wait=full --down",
    .json = "one object",
    .options = options,
    .run = run,
};
