/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sets.c - which ranks of a subtree are in which state, as sets
 *
 * A rank that has children tells of them, so leaves are asked for their health only where their parent does not answer.
 * The state of a generator is each rank's own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ranks.h"
#include "cmd/look/overlay.h"
#include "libutil/ranges.h"

#define STATE_SIZE OVERLAY_STATE_SIZE
#define MAX_GROUPS 64 /* lines of a table */

struct place {
    uint32_t rank;
    bool inner;              /* it has children in the tree */
    char status[STATE_SIZE]; /* empty: unknown */
    char fluid[STATE_SIZE];
    char lender[STATE_SIZE]; /* the generator of which it borrows; empty: it does not */
};

struct summary {
    const struct overlay_view *view;
    struct cmd *cmd;
    struct place *places; /* in order of rank */
    size_t n;
};

/* --- the subtree ------------------------------------------------------------------------------------- */

static json_t *get_topology_new (struct cmd *cmd, uint32_t rank)
{
    return ask_new (cmd, "overlay.topology", IDT_NODEID_ANY, json_pack ("{s:I}", "rank", (json_int_t)rank), "topology");
}

uint32_t overlay_subtree_size (struct cmd *cmd, uint32_t rank)
{
    uint32_t size;
    json_t *o;

    if (rank == 0 && idt_get_size (cmd_connect_for (cmd, 0), &size) == 0)
        return size;
    o = get_topology_new (cmd, rank);
    size = (uint32_t)json_integer_value (json_object_get (o, "size"));

    json_decref (o);
    return size;
}

static void add_places (struct summary *s, const json_t *o)
{
    json_t *children = json_object_get (o, "children"), *child;
    size_t i;

    s->places[s->n++] = (struct place){ .rank = (uint32_t)json_integer_value (json_object_get (o, "rank")),
                                        .inner = json_array_size (children) > 0 };
    json_array_foreach (children, i, child)
        add_places (s, child);
}

static int by_rank (const void *a, const void *b)
{
    uint32_t x = ((const struct place *)a)->rank, y = ((const struct place *)b)->rank;

    return (x > y) - (x < y);
}

static void make_places (struct summary *s, uint32_t rank)
{
    json_t *o = get_topology_new (s->cmd, rank);
    size_t size = (size_t)json_integer_value (json_object_get (o, "size"));

    if (size == 0 || !(s->places = calloc (size, sizeof (s->places[0]))))
        cmd_die (s->cmd, "out of memory");
    add_places (s, o);
    qsort (s->places, s->n, sizeof (s->places[0]), by_rank);
    json_decref (o);
}

/* --- asking -------------------------------------------------------------------------------------------- */

static struct place *find_place (const struct summary *s, uint32_t rank)
{
    const struct place key = { .rank = rank };

    return bsearch (&key, s->places, s->n, sizeof (key), by_rank);
}

/* Ask all that are wanted when it begins. */
static void ask_all (struct summary *s, const char *topic, bool (*wanted) (const struct place *p), ranks_f take)
{
    struct ranks ranks = { .rank = calloc (s->n, sizeof (ranks.rank[0])) };

    if (!ranks.rank)
        cmd_die (s->cmd, "out of memory");
    for (size_t i = 0; i < s->n; i++)
        if (wanted (&s->places[i]))
            ranks.rank[ranks.n++] = s->places[i].rank;
    ranks_ask (s->cmd, &ranks, topic, take, s);
    ranks_fini (&ranks);
}

static void set_state (char state[STATE_SIZE], const char *text)
{
    snprintf (state, STATE_SIZE, "%s", text);
}

/* --- health ---------------------------------------------------------------------------------------------- */

/* What a parent says of its child; the child knows better. */
static void take_child (struct summary *s, const json_t *child)
{
    json_int_t rank;
    const char *status;

    if (json_unpack ((json_t *)child, "{s:I s:s}", "rank", &rank, "status", &status) < 0)
        return;
    struct place *p = find_place (s, (uint32_t)rank);
    if (p && !*p->status && (!p->inner || strcmp (status, "lost") == 0 || strcmp (status, "offline") == 0))
        set_state (p->status, status);
}

static void take_health (uint32_t rank, idt_future_t *f, void *arg)
{
    struct summary *s = arg;
    json_t *children, *child;
    const char *status;
    size_t i;

    if (!f || idt_rpc_get_unpack (f, "{s:s s:o}", "status", &status, "children", &children) < 0)
        return;
    set_state (find_place (s, rank)->status, status);
    json_array_foreach (children, i, child)
        take_child (s, child);
}

/* Nobody else told of it. */
static void take_last (uint32_t rank, idt_future_t *f, void *arg)
{
    struct place *p = find_place (arg, rank);

    take_health (rank, f, arg);
    if (!*p->status)
        set_state (p->status, "lost");
}

static bool is_inner (const struct place *p)
{
    return p->inner;
}

static bool is_unknown (const struct place *p)
{
    return !*p->status;
}

/* --- generators --------------------------------------------------------------------------------------------- */

static bool is_there (const struct place *p)
{
    return strcmp (p->status, "lost") != 0 && strcmp (p->status, "offline") != 0;
}

static void take_fluid (uint32_t rank, idt_future_t *f, void *arg)
{
    struct place *p = find_place (arg, rank);
    json_int_t generator = -1;
    const char *state;

    if (!f || idt_rpc_get_unpack (f, "{s:s s?{s:I}}", "state", &state, "share", "generator", &generator) < 0)
        return;
    set_state (p->fluid, state);
    if (generator >= 0)
        snprintf (p->lender, sizeof (p->lender), "%" JSON_INTEGER_FORMAT, generator);
}

/* --- sets ------------------------------------------------------------------------------------------------------ */

static const char *status_of (const struct place *p)
{
    return p->status;
}

static const char *fluid_of (const struct place *p)
{
    return p->fluid;
}

static const char *lender_of (const struct place *p)
{
    return p->lender;
}

/* The ranks of each state, in an object. */
static json_t *group_new (const struct summary *s, const char *(*state_of) (const struct place *p))
{
    json_t *groups = json_object ();
    uint32_t *ranks = calloc (s->n, sizeof (ranks[0]));

    if (!groups || !ranks)
        cmd_die (s->cmd, "out of memory");
    for (size_t i = 0; i < s->n; i++) {
        const char *state = state_of (&s->places[i]);
        size_t n = 0;
        char *text;

        if (!*state || json_object_get (groups, state))
            continue;
        for (size_t k = i; k < s->n; k++)
            if (strcmp (state_of (&s->places[k]), state) == 0)
                ranks[n++] = s->places[k].rank;
        if (!(text = ranges_format (ranks, n)))
            cmd_die (s->cmd, "out of memory");
        json_object_set_new (groups, state, json_pack ("{s:I s:s}", "count", (json_int_t)n, "ranks", text));
        free (text);
    }
    free (ranks);
    return groups;
}

static void print_group (const char *color, const char *state, const json_t *group)
{
    printf ("%s%-12s%s %8" JSON_INTEGER_FORMAT "  %s\n", color ? color : "", state, color ? COLOR_END : "",
            json_integer_value (json_object_get (group, "count")),
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
    printf ("%-12s %8s  %s\n", title, "COUNT", "RANKS");
    json_object_foreach (groups, state, group)
        if (printed++ < MAX_GROUPS)
            print_group (color ? color_begin (overlay_mood (state)) : NULL, state, group);
    if (n > MAX_GROUPS)
        printf ("... and %zu more: --json tells all\n", n - MAX_GROUPS);
}

/* What is wrong with rank 0's store of its horizon, where there is something. */
static void add_store (struct summary *s, json_t *o)
{
    idt_future_t *f = s->places[0].rank == 0 ? idt_rpc (s->cmd->h, "fluid.info", NULL, 0, 0) : NULL;
    const char *store;

    if (f && idt_future_wait (f, s->cmd->timeout_ms) == 0 && idt_rpc_get_unpack (f, "{s:s}", "store", &store) == 0
        && strcmp (store, "good") != 0)
        json_object_set_new (o, "store", json_string (store));
    idt_future_destroy (f);
}

static json_t *collect_new (struct summary *s, bool fluid)
{
    json_t *o, *status;

    ask_all (s, "overlay.health", is_inner, take_health);
    ask_all (s, "overlay.health", is_unknown, take_last);
    if (fluid)
        ask_all (s, "fluid.info", is_there, take_fluid);
    status = group_new (s, status_of);
    if (s->view->down)
        json_object_del (status, "full");
    o = json_pack ("{s:I s:o}", "size", (json_int_t)s->n, "status", status);
    if (fluid)
        json_object_set_new (o, "fluid", group_new (s, fluid_of));
    json_t *borrowing = group_new (s, lender_of);
    if (json_object_size (borrowing) > 0)
        json_object_set (o, "borrowed_of", borrowing);
    json_decref (borrowing);
    add_store (s, o);
    return o;
}

void overlay_print_sets (const struct overlay_view *v)
{
    struct summary s = { .view = v, .cmd = v->cmd };
    json_t *o;

    make_places (&s, v->rank);
    o = collect_new (&s, v->fluid);
    if (v->json)
        ask_print (v->cmd, o);
    else {
        print_groups ("STATUS", json_object_get (o, "status"), color_wanted (v->cmd, &v->color));
        print_groups ("FLUID", json_object_get (o, "fluid"), false);
        print_groups ("BORROWED OF", json_object_get (o, "borrowed_of"), false);
        if (json_object_get (o, "store"))
            printf ("store %s\n", json_string_value (json_object_get (o, "store")));
    }
    json_decref (o);
    free (s.places);
}
