/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tree.c - show a subtree rank by rank: the state of each, and where its ids come from
 *
 * Each rank knows only the state of its children, so the tree is walked from the root, level by level.  Requests to the
 * ranks of a level are concurrent, at most WINDOW of them.  A rank that its parent reports as lost or offline gets no
 * request; it is shown with that state.  The ranks below it may be online, attached to another ancestor: they are found
 * in the topology, and get requests, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/base/table.h"
#include "cmd/inspect/overlay.h"
#include "libutil/clock.h"

#define WINDOW 256 /* concurrent requests */

enum column { RANK, HOST, STATUS, SINCE, FLUID, GENERATOR, SERVED_BY, COLUMNS };

/* In JSON the key is the title in lower case. */
static const struct table_column json_columns[COLUMNS] = {
    [RANK] = { "RANK", NULL, TABLE_TREE | TABLE_NUMBER },
    [HOST] = { "HOST", NULL, 0 },
    [STATUS] = { "STATUS", NULL, 0 },
    [SINCE] = { "SINCE", NULL, TABLE_NUMBER },
    [FLUID] = { "FLUID", NULL, 0 },
    [GENERATOR] = { "GENERATOR", NULL, TABLE_NUMBER },
    [SERVED_BY] = { "IDS_FROM", NULL, TABLE_NUMBER },
};

static const struct table_column columns[COLUMNS] = {
    [RANK] = { "RANK", NULL, TABLE_TREE | TABLE_NUMBER },
    [HOST] = { "HOST", NULL, 0 },
    [STATUS] = { "STATUS", NULL, 0 },
    [SINCE] = { "SINCE", NULL, TABLE_RIGHT },
    [FLUID] = { "FLUID", NULL, 0 },
    [GENERATOR] = { "GENERATOR", NULL, TABLE_RIGHT | TABLE_NUMBER },
    [SERVED_BY] = { "IDS-FROM", NULL, TABLE_RIGHT | TABLE_NUMBER },
};

struct tree_node {
    uint32_t rank;
    struct libscols_line *parent;
    char status[OVERLAY_STATE_SIZE]; /* as reported by its parent */
    uint64_t asked_ms;
    double duration_s;
    bool orphan; /* its parent in the tree is lost */
    idt_future_t *health, *host, *info;
    idt_future_t *overlay; /* the answer of an orphan */
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
    char store[512]; /* the problem of rank 0's disk; empty: no problem */
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

/* --- asking --------------------------------------------------------------------------------------- */

static bool is_gone (const struct tree_node *node)
{
    return !strcmp (node->status, "lost") || !strcmp (node->status, "offline");
}

static void ask (struct walk *w, struct tree_node *node)
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

/* The requests of a node are concurrent: --timeout counts from the first one, so that a silent rank is waited for only
 * once.
 */
static bool answered (const struct walk *w, const struct tree_node *node, idt_future_t *f)
{
    return f && idt_future_wait (f, ask_left_ms (w->cmd, node->asked_ms)) == 0 && idt_future_errnum (f) == 0;
}

/* --- rows ----------------------------------------------------------------------------------------- */

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

/* Rank 0 reports its disk as "good", or as a word, a colon and the reason. */
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
    if (!row->texts[GENERATOR]) /* the generator from which it borrows */
        row->texts[GENERATOR] = format_number (json_object_get (o, "share"), "generator", row->generator,
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
    const char *color = color_name (overlay_mood (status));

    if (w->color && color && scols_cell_set_color (scols_line_get_cell (line, STATUS), color) < 0)
        cmd_die (w->cmd, "out of memory");
}

/* Returns the line of the node, parent of the lines below it. */
static struct libscols_line *add_row (struct walk *w, struct tree_node *node)
{
    struct tree_row row = { .texts = { NULL } };
    const char *host;

    snprintf (row.rank, sizeof (row.rank), "%" PRIu32, node->rank);
    row.texts[RANK] = row.rank;
    row.texts[STATUS] = node->status;
    if (node->duration_s >= 0) {
        if (w->view->json)
            snprintf (row.since, sizeof (row.since), "%.1f", node->duration_s);
        else
            format_duration (node->duration_s, row.since, sizeof (row.since));
        row.texts[SINCE] = row.since;
    }
    if (answered (w, node, node->host) && idt_rpc_get_unpack (node->host, "{s:s}", "value", &host) == 0)
        row.texts[HOST] = host;
    fill_fluid (w, node, &row);
    if (w->view->down && overlay_mood (node->status) == MOOD_GOOD)
        return node->parent;
    struct libscols_line *line = table_add (w->table, node->parent, row.texts, COLUMNS);
    set_color (w, line, node->status);
    return line;
}

/* --- walk ----------------------------------------------------------------------------------------- */

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

/* Add the children that a lost rank has in the topology. */
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

/* An orphan that answers reports its parent; an orphan that does not is lost. */
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

/* A rank knows its own subtree better than its parent does. */
static void take (struct walk *w, struct tree_node *node)
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
            ask (w, &l->nodes[asked]);
        take (w, &l->nodes[i]);
    }
    free (l->nodes);
}

void overlay_print_tree (const struct overlay_view *v)
{
    struct walk w = { .view = v, .cmd = v->cmd, .color = !v->json && color_wanted (v->cmd, &v->color) };

    w.table = table_create (v->json ? json_columns : columns, COLUMNS);
    scols_table_enable_colors (w.table, w.color);
    add_node (&w, v->rank, NULL, "unknown", -1);
    while (w.next.n > 0) {
        struct level l = w.next;

        w.next = (struct level){ NULL, 0, 0 };
        walk_level (&w, &l);
    }
    if (v->json) {
        json_t *o = table_json_new (w.table, "overlay");

        ask_print (v->cmd, o);
        json_decref (o);
        return;
    }
    table_print (w.table);
    if (w.store[0] != '\0')
        out_print ("store %s\n", w.store);
}
