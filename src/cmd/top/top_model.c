/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* top_model.c - the data of idtree top about ranks, which ranks it shows in which order, and the effect of keys */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top/top_model.h"

const char *const top_model_sort_names[SORTS] = {
    [SORT_TREE] = "tree",   [SORT_RANK] = "rank",   [SORT_HOST] = "host", [SORT_STATUS] = "status",
    [SORT_FLUID] = "fluid", [SORT_LEASE] = "lease", [SORT_IDS] = "ids/s", [SORT_REQUESTS] = "requests/s",
};

/* --- rows -------------------------------------------------------------------------------------------- */

/* Return the index of a rank's row, or the index at which the row must be inserted. */
static size_t place_of (const struct top_model *b, uint32_t rank)
{
    size_t lo = 0, hi = b->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (b->rows[mid].rank < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct top_model_row *top_model_row (const struct top_model *b, uint32_t rank)
{
    size_t i = place_of (b, rank);

    return i < b->n && b->rows[i].rank == rank ? &b->rows[i] : NULL;
}

static struct top_model_row *insert (struct top_model *b, uint32_t rank)
{
    size_t i = place_of (b, rank);

    if (b->n == b->room) {
        size_t room = b->room ? 2 * b->room : 64;
        struct top_model_row *rows = realloc (b->rows, room * sizeof (rows[0]));

        if (!rows)
            return NULL;
        b->rows = rows;
        b->room = room;
    }
    assert (i <= b->n && b->n < b->room);
    memmove (&b->rows[i + 1], &b->rows[i], (b->n - i) * sizeof (b->rows[0]));
    b->n++;
    b->rows[i] = (struct top_model_row){ .rank = rank, .from = TOP_MODEL_NONE, .lease_ms = TOP_MODEL_NONE };
    return &b->rows[i];
}

static size_t seen (const struct top_model *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->rows[i].round == b->round;
    return n;
}

void top_model_begin (struct top_model *b, uint32_t root)
{
    b->root = root;
    b->round++;
    b->left_out = 0;
}

struct top_model_row *top_model_add (struct top_model *b, uint32_t rank, uint32_t parent, const char *status)
{
    struct top_model_row *row = top_model_row (b, rank), *above = top_model_row (b, parent);
    unsigned depth = above && rank != parent ? above->depth + 1 : 0;

    if ((!row || row->round != b->round) && seen (b) == TOP_MODEL_RANKS_MAX) {
        b->left_out++;
        return NULL;
    }
    if (!row && !(row = insert (b, rank)))
        return NULL;
    /* the root is its own parent, so a cycle of parents through the root ends there */
    row->parent = rank == b->root ? rank : parent;
    row->depth = depth;
    row->round = b->round;
    snprintf (row->status, sizeof (row->status), "%s", status);
    return row;
}

/* A timestamp is text, as it may have 64 bits. */
static int64_t ms_of (const json_t *value)
{
    const char *s = json_string_value (value);

    return s ? strtoll (s, NULL, 10) : TOP_MODEL_NONE;
}

void top_model_take_info (struct top_model_row *row, const json_t *info)
{
    const char *state = json_string_value (json_object_get (info, "state"));
    const json_t *from = json_object_get (info, "served_by");
    int64_t now_ms = ms_of (json_object_get (info, "timestamp_ms"));
    int64_t end_ms = ms_of (json_array_get (json_object_get (info, "lease"), 1));

    snprintf (row->fluid, sizeof (row->fluid), "%s", state ? state : "");
    row->from = json_is_integer (from) ? json_integer_value (from) : TOP_MODEL_NONE;
    row->lease_ms = now_ms < 0 || end_ms < 0 ? TOP_MODEL_NONE : end_ms > now_ms ? end_ms - now_ms : 0;
}

/* Return the rate of a counter; 0 if the counter is smaller than before, because the broker was restarted. */
static double rate (uint64_t before, uint64_t now, double s)
{
    return now >= before && s > 0 ? (double)(now - before) / s : 0;
}

void top_model_take_stats (struct top_model_row *row, const json_t *stats, double now_s)
{
    uint64_t ids = (uint64_t)json_integer_value (json_object_get (stats, "ids"))
                   + (uint64_t)json_integer_value (json_object_get (stats, "page_ids"));
    uint64_t requests = (uint64_t)json_integer_value (json_object_get (stats, "requests"));
    double s = row->counted_s > 0 ? now_s - row->counted_s : 0;

    row->ids_s = rate (row->ids, ids, s);
    row->requests_s = rate (row->requests, requests, s);
    row->ids = ids;
    row->requests = requests;
    row->counted_s = now_s;
}

void top_model_end (struct top_model *b)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->n; i++)
        if (b->rows[i].round == b->round)
            b->rows[kept++] = b->rows[i];
    b->n = kept;
    top_model_arrange (b);
}

/* --- order ------------------------------------------------------------------------------------------- */

static bool passes (const struct top_model *b, const struct top_model_row *row)
{
    char rank[16];

    snprintf (rank, sizeof (rank), "%" PRIu32, row->rank);
    return !*b->filter || !strcmp (b->filter, rank) || strcasestr (row->host, b->filter)
           || strcasestr (row->status, b->filter) || strcasestr (row->fluid, b->filter);
}

static void show (struct top_model *b, const struct top_model_row *row)
{
    if (passes (b, row) && b->nshown < TOP_MODEL_RANKS_MAX)
        b->shown[b->nshown++] = row->rank;
}

/* Add a rank to the shown ranks, then the ranks below it; children are in the order of their ranks. */
static void show_tree (struct top_model *b, const struct top_model_row *row)
{
    show (b, row);
    for (size_t i = 0; i < b->n; i++)
        if (b->rows[i].parent == row->rank && b->rows[i].rank != row->rank)
            show_tree (b, &b->rows[i]);
}

/* Return the position of a status in the order by status: statuses that need an operator come first. */
static int badness (const struct top_model_row *row)
{
    static const char *const states[] = { "full", "partial", "degraded", "offline", "no answer", "lost" };

    for (size_t i = 0; i < sizeof (states) / sizeof (states[0]); i++)
        if (!strcmp (row->status, states[i]))
            return (int)i;
    return 2;
}

static int compare_numbers (double a, double b)
{
    return (a > b) - (a < b);
}

/* Compare by a number. Usually the largest comes first; the lease that ends first comes first. */
static int compare_by (enum top_model_sort sort, const struct top_model_row *a, const struct top_model_row *b)
{
    switch (sort) {
    case SORT_HOST:
        return strcmp (a->host, b->host);
    case SORT_STATUS:
        return badness (b) - badness (a);
    case SORT_FLUID:
        return strcmp (a->fluid, b->fluid);
    case SORT_LEASE:
        return compare_numbers (a->lease_ms < 0 ? 1e18 : (double)a->lease_ms,
                                b->lease_ms < 0 ? 1e18 : (double)b->lease_ms);
    case SORT_IDS:
        return compare_numbers (b->ids_s, a->ids_s);
    case SORT_REQUESTS:
        return compare_numbers (b->requests_s, a->requests_s);
    default:
        return 0;
    }
}

static int compare_rows (const void *x, const void *y, void *arg)
{
    const struct top_model *b = arg;
    const struct top_model_row *p = top_model_row (b, *(const uint32_t *)x),
                               *q = top_model_row (b, *(const uint32_t *)y);
    int order = compare_by (b->sort, p, q);

    return order != 0 ? order : (p->rank > q->rank) - (p->rank < q->rank);
}

static void turn_round (struct top_model *b)
{
    for (size_t i = 0, j = b->nshown; i + 1 < j; i++) {
        uint32_t rank = b->shown[i];

        b->shown[i] = b->shown[--j];
        b->shown[j] = rank;
    }
}

void top_model_arrange (struct top_model *b)
{
    const struct top_model_row *root = top_model_row (b, b->root);

    b->nshown = 0;
    if (b->sort == SORT_TREE) {
        if (root)
            show_tree (b, root);
    }
    else {
        for (size_t i = 0; i < b->n; i++)
            show (b, &b->rows[i]);
        qsort_r (b->shown, b->nshown, sizeof (b->shown[0]), compare_rows, b);
    }
    if (b->reverse)
        turn_round (b);
}

/* --- what is shown ----------------------------------------------------------------------------------- */

double top_model_ids_s (const struct top_model *b)
{
    double sum = 0;

    for (size_t i = 0; i < b->nshown; i++)
        sum += top_model_row (b, b->shown[i])->ids_s;
    return sum;
}

/* Round to tenths. */
static json_t *tenths_new (double x)
{
    return json_real ((double)(int64_t)(x * 10 + 0.5) / 10);
}

static json_t *row_json_new (const struct top_model_row *row)
{
    json_t *o = json_pack ("{s:I s:I s:s s:s s:s s:o s:o}", "rank", (json_int_t)row->rank, "parent",
                           (json_int_t)row->parent, "host", row->host, "status", row->status, "fluid", row->fluid,
                           "ids_per_s", tenths_new (row->ids_s), "requests_per_s", tenths_new (row->requests_s));

    if (row->from >= 0)
        json_object_set_new (o, "ids_from", json_integer (row->from));
    if (row->lease_ms >= 0)
        json_object_set_new (o, "lease_left_ms", json_integer (row->lease_ms));
    return o;
}

json_t *top_model_json_new (const struct top_model *b)
{
    json_t *rows = json_array ();

    for (size_t i = 0; i < b->nshown; i++)
        json_array_append_new (rows, row_json_new (top_model_row (b, b->shown[i])));
    return json_pack ("{s:I s:I s:o s:o}", "root", (json_int_t)b->root, "left_out", (json_int_t)b->left_out,
                      "ids_per_s", tenths_new (top_model_ids_s (b)), "ranks", rows);
}

/* --- keys -------------------------------------------------------------------------------------------- */

static size_t find_selected (const struct view *v)
{
    for (size_t i = 0; i < v->board->nshown; i++)
        if (v->board->shown[i] == v->selected)
            return i;
    return 0;
}

size_t view_place (struct view *v)
{
    size_t place = find_selected (v), lines = v->lines > 0 ? v->lines : 1;

    if (v->board->nshown > 0)
        v->selected = v->board->shown[place];
    if (place < v->first)
        v->first = place;
    if (place >= v->first + lines)
        v->first = place - lines + 1;
    return place;
}

static enum view_action move (struct view *v, long by)
{
    long last = (long)v->board->nshown - 1, place = (long)find_selected (v) + by;

    if (last < 0)
        return VIEW_NOTHING;
    v->selected = v->board->shown[place < 0 ? 0 : place > last ? last : place];
    return VIEW_DRAW;
}

static enum view_action sort_by (struct view *v, int step)
{
    v->board->sort = (enum top_model_sort) (((int)v->board->sort + step + SORTS) % SORTS);
    top_model_arrange (v->board);
    return VIEW_DRAW;
}

static enum view_action go_to (struct view *v, uint32_t root)
{
    if (root == v->root)
        return VIEW_NOTHING;
    v->root = v->selected = root;
    v->first = 0;
    return VIEW_ASK;
}

static enum view_action set_filter (struct view *v, size_t len)
{
    v->board->filter[len] = '\0';
    top_model_arrange (v->board);
    return VIEW_DRAW;
}

static enum view_action type (struct view *v, int key)
{
    size_t len = strlen (v->board->filter);

    if (key == VIEW_ENTER || key == VIEW_ESCAPE) {
        v->typing = false;
        return key == VIEW_ESCAPE ? set_filter (v, 0) : VIEW_DRAW;
    }
    if (key == VIEW_BACK)
        return set_filter (v, len > 0 ? len - 1 : 0);
    if (key < ' ' || key > '~' || len + 1 >= sizeof (v->board->filter))
        return VIEW_NOTHING;
    v->board->filter[len] = (char)key;
    return set_filter (v, len + 1);
}

static enum view_action toggle (bool *what)
{
    *what = !*what;
    return VIEW_DRAW;
}

enum view_action view_key (struct view *v, int key)
{
    if (v->typing)
        return type (v, key);
    switch (key) {
    case 'q':
        return VIEW_QUIT;
    case 'k':
    case VIEW_UP:
        return move (v, -1);
    case 'j':
    case VIEW_DOWN:
        return move (v, 1);
    case VIEW_PAGE_UP:
        return move (v, -(long)v->lines);
    case VIEW_PAGE_DOWN:
        return move (v, (long)v->lines);
    case VIEW_HOME:
        return move (v, -TOP_MODEL_RANKS_MAX);
    case VIEW_END:
        return move (v, TOP_MODEL_RANKS_MAX);
    case 's':
    case '>':
        return sort_by (v, 1);
    case 'S':
    case '<':
        return sort_by (v, -1);
    case 'r':
        v->board->reverse = !v->board->reverse;
        top_model_arrange (v->board);
        return VIEW_DRAW;
    case '/':
        return toggle (&v->typing);
    case VIEW_ENTER:
        return go_to (v, v->selected);
    case 'u':
    case VIEW_BACK:
        return go_to (v, 0);
    case VIEW_ESCAPE:
        return set_filter (v, 0);
    case ' ':
        return toggle (&v->paused);
    case 'h':
    case '?':
        return toggle (&v->help);
    default:
        return VIEW_NOTHING;
    }
}

/* --- life -------------------------------------------------------------------------------------------- */

void top_model_init (struct top_model *b)
{
    *b = (struct top_model){ .sort = SORT_TREE };
}

void top_model_fini (struct top_model *b)
{
    free (b->rows);
    b->rows = NULL;
}
