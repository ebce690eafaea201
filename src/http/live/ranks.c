/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.c - the known state of the ranks of an instance: evaluate answers, choose the ranks to ask next, print JSON */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/live/ranks.h"
#include "libidtree/json.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"

#define RANK_STATUSES 10
#define RANK_FLUIDS 5
#define LEAST_S 0.5 /* shortest time between two readings of counters for a rate */

/* Words are stored as indices of tables, so that they can be counted and compared. Index 0 means not known. */
static const char *const rank_statuses[RANK_STATUSES] = { "unknown", "full",  "partial", "degraded",  "lost",
                                                          "offline", "older", "busy",    "no answer", "malformed" };
static const char *const rank_fluids[RANK_FLUIDS] = { NULL, "active", "idle", "fenced", "sharing" };

/* The state whose changes are reported. */
struct rank_state {
    unsigned char status, fluid;
    int32_t attached; /* RANKS_NONE: attached to no rank */
    int32_t ids_from;
};

struct rank_row {
    int32_t parent;
    struct rank_state now, told; /* told: the state that readers got last; its status is 0 before that */
    int32_t generator;
    char *host, *granted_to; /* owned; NULL: the host is not known; the rank has granted no parts */
    double lease_end_s;      /* below 0: no lease */
    double told_lease_end_s; /* the value of lease_end_s in the last rates for readers */
    double info_s, stats_s;  /* when the last answer of fluid.info, and of fluid.stats-get, arrived; 0: none arrived */
    uint64_t ids, above, requests; /* counters */
    double ids_s, above_s, requests_s;
    bool fresh;     /* the rank has answered since the last rates */
    bool moved;     /* a rate is not 0, or was not before; or the lease has changed */
    bool due;       /* the state of the rank has probably changed, so it is asked first */
    bool elsewhere; /* the rank may be on another host now, so it is asked for its host again */
};

struct live_ranks {
    struct rank_row *rows;
    uint32_t n;
    uint32_t turn; /* the next rank to ask */
};

static bool is_gone (const struct rank_row *row)
{
    return row->now.attached == RANKS_NONE && row->parent != RANKS_NONE;
}

/* Returns the index of a word in a table; 0 if the table does not have the word. */
static unsigned char find_word (const char *const *words, size_t n, const char *word)
{
    for (size_t i = 1; word && i < n; i++)
        if (strcmp (words[i], word) == 0)
            return (unsigned char)i;
    return 0;
}

static struct rank_row *row_of (struct live_ranks *r, uint32_t rank)
{
    return rank < r->n ? &r->rows[rank] : NULL;
}

/* --- life --------------------------------------------------------- */

struct live_ranks *ranks_create (void)
{
    return calloc (1, sizeof (struct live_ranks));
}

static void free_rows (struct rank_row *rows, uint32_t n)
{
    for (uint32_t i = 0; rows && i < n; i++) {
        free (rows[i].host);
        free (rows[i].granted_to);
    }
    free (rows);
}

void ranks_destroy (struct live_ranks *r)
{
    if (!r)
        return;
    free_rows (r->rows, r->n);
    free (r);
}

uint32_t ranks_size (const struct live_ranks *r)
{
    return r->n;
}

int ranks_has_host (const struct live_ranks *r, uint32_t rank)
{
    return rank < r->n && r->rows[rank].host && !r->rows[rank].elsewhere;
}

/* --- the topology --------------------------------------------------------- */

/* The recursion is limited, because jansson limits the depth of an answer. */
static int take_node (struct rank_row *rows, uint32_t n, const json_t *node, int32_t parent)
{
    const json_t *rank = json_object_get (node, "rank");
    json_t *child;
    size_t i;

    if (!json_is_integer (rank) || json_integer_value (rank) < 0 || json_integer_value (rank) >= n)
        return -1;
    int32_t self = (int32_t)json_integer_value (rank);
    rows[self].parent = rows[self].now.attached = parent;
    json_array_foreach (json_object_get (node, "children"), i, child)
        if (take_node (rows, n, child, self) < 0)
            return -1;
    return 0;
}

static bool is_same (const struct live_ranks *r, const struct rank_row *rows, uint32_t n)
{
    if (n != r->n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].parent != r->rows[i].parent)
            return false;
    return true;
}

int ranks_take_topology (struct live_ranks *r, const json_t *topology)
{
    json_int_t n = json_integer_value (json_object_get (topology, "size"));

    if (n < 1 || n > RANKS_MAX)
        return errset (EPROTO);
    struct rank_row *rows = calloc ((size_t)n, sizeof (rows[0]));
    if (!rows)
        return errset (ENOMEM);
    for (json_int_t i = 0; i < n; i++)
        rows[i] = (struct rank_row){
            .parent = 0, .generator = RANKS_NONE, .lease_end_s = -1, .told_lease_end_s = -1, .now.ids_from = RANKS_NONE
        };
    if (take_node (rows, (uint32_t)n, topology, RANKS_NONE) < 0) {
        free (rows);
        return errset (EPROTO);
    }
    if (is_same (r, rows, (uint32_t)n)) {
        free (rows);
        for (json_int_t i = 0; i < n; i++)
            r->rows[i].elsewhere = true;
        return 0;
    }
    free_rows (r->rows, r->n);
    *r = (struct live_ranks){ .rows = rows, .n = (uint32_t)n };
    return 0;
}

/* --- a survey --------------------------------------------------------- */

struct marking {
    struct live_ranks *ranks;
    unsigned char status, fluid; /* the new value; status 0: 'fluid' is set instead */
};

/* Delete what is known about a lost or offline rank. Keep the host, because an operator searches the lost rank there.
 * Keep the lease of a lost rank, too: the rank did not return its lease, and the watermark does not advance until the
 * lease is over.
 */
static void forget (struct rank_row *row, bool lost)
{
    row->elsewhere = true;
    row->now.attached = row->now.ids_from = row->generator = RANKS_NONE;
    row->now.fluid = 0;
    if (!lost)
        row->lease_end_s = -1;
    row->stats_s = row->ids_s = row->above_s = row->requests_s = 0;
    row->fresh = row->moved = true;
    free (row->granted_to);
    row->granted_to = NULL;
}

static void set_status (struct rank_row *row, unsigned char status)
{
    bool lost = strcmp (rank_statuses[status], "lost") == 0;
    bool gone = lost || strcmp (rank_statuses[status], "offline") == 0;

    row->due = row->due || row->now.status != status;
    if (gone && row->parent != RANKS_NONE && !is_gone (row))
        forget (row, lost);
    else if (!gone && is_gone (row)) /* assume the parent until the rank reports another one */
        row->now.attached = row->parent;
    row->now.status = status;
}

static void mark (uint64_t first, uint64_t last, void *arg)
{
    const struct marking *m = arg;

    for (uint64_t rank = first; rank <= last && rank < m->ranks->n; rank++)
        if (m->status)
            set_status (&m->ranks->rows[rank], m->status);
        else
            m->ranks->rows[rank].now.fluid = m->fluid;
}

/* A rank that is in no set of the report keeps its state. */
void ranks_take_survey (struct live_ranks *r, const json_t *report)
{
    json_t *sets = json_object_get (report, "ranks"), *text;
    const char *word;

    json_object_foreach (json_object_get (sets, "fluid_state"), word, text)
        (void)ranges_each (json_string_value (text) ? json_string_value (text) : "", mark,
                           &(struct marking){ r, 0, find_word (rank_fluids, RANK_FLUIDS, word) });
    json_object_foreach (json_object_get (sets, "status"), word, text) {
        unsigned char status = find_word (rank_statuses, RANK_STATUSES, word);

        if (status > 0)
            (void)ranges_each (json_string_value (text) ? json_string_value (text) : "", mark,
                               &(struct marking){ r, status, 0 });
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (r->rows[i].now.attached >= 0 && is_gone (&r->rows[r->rows[i].now.attached]))
            r->rows[i].due = true;
}

/* --- what a rank tells --------------------------------------------------------- */

/* A timestamp is a string, because it may have 64 bits. */
static double seconds_of (const json_t *ms)
{
    const char *s = json_string_value (ms);

    return s ? (double)strtoull (s, NULL, 10) / 1000 : -1;
}

static int32_t number_of (const json_t *value)
{
    json_int_t n = json_is_integer (value) ? json_integer_value (value) : RANKS_NONE;

    return n >= 0 && n <= INT32_MAX ? (int32_t)n : RANKS_NONE;
}

static void set_text (char **to, const char *from)
{
    if (from && *to && strcmp (*to, from) == 0)
        return;
    free (*to);
    *to = from ? strdup (from) : NULL;
}

void ranks_take_info (struct live_ranks *r, uint32_t rank, const json_t *info, double now_s)
{
    struct rank_row *row = row_of (r, rank);
    double at_s = seconds_of (json_object_get (info, "timestamp_ms"));
    double end_s = seconds_of (json_array_get (json_object_get (info, "lease"), 1));
    const json_t *part = json_object_get (info, "part");

    if (!row || is_gone (row) || !json_is_object (info))
        return;
    row->now.fluid = find_word (rank_fluids, RANK_FLUIDS, json_string_value (json_object_get (info, "state")));
    row->now.ids_from = number_of (json_object_get (info, "served_by"));
    row->generator = number_of (json_object_get (part ? part : info, "generator"));
    row->lease_end_s = at_s < 0 || end_s < 0 ? -1 : now_s + (end_s > at_s ? end_s - at_s : 0);
    set_text (&row->granted_to, json_string_value (json_object_get (json_object_get (info, "granted"), "ranks")));
    row->info_s = now_s;
    row->fresh = true;
    row->moved = row->moved || fabs (row->lease_end_s - row->told_lease_end_s) > 0.5;
}

/* Return the rate of a counter. If a broker was restarted, its counters are smaller than before: the rate is 0 then. */
static double rate (uint64_t before, uint64_t now, double s)
{
    return now >= before ? (double)(now - before) / s : 0;
}

static uint64_t counter_of (const json_t *stats, const char *name)
{
    json_int_t n = json_integer_value (json_object_get (stats, name));

    return n > 0 ? (uint64_t)n : 0;
}

void ranks_take_stats (struct live_ranks *r, uint32_t rank, const json_t *stats, double now_s)
{
    struct rank_row *row = row_of (r, rank);
    uint64_t ids = counter_of (stats, "ids") + counter_of (stats, "page_ids");
    uint64_t above = counter_of (stats, "ids_from_above"), requests = counter_of (stats, "requests");

    if (!row || is_gone (row) || (row->stats_s > 0 && now_s - row->stats_s < LEAST_S))
        return;
    row->moved = row->moved || row->ids_s > 0 || row->requests_s > 0 || row->above_s > 0;
    if (row->stats_s > 0) {
        row->ids_s = rate (row->ids, ids, now_s - row->stats_s);
        row->above_s = rate (row->above, above, now_s - row->stats_s);
        row->requests_s = rate (row->requests, requests, now_s - row->stats_s);
    }
    row->ids = ids;
    row->above = above;
    row->requests = requests;
    row->stats_s = now_s;
    row->fresh = true;
    row->moved = row->moved || row->ids_s > 0 || row->requests_s > 0 || row->above_s > 0;
}

void ranks_take_overlay (struct live_ranks *r, uint32_t rank, const json_t *stats)
{
    struct rank_row *row = row_of (r, rank);
    int32_t attached = number_of (json_object_get (stats, "parent-rank"));

    if (row && !is_gone (row) && attached >= 0 && (uint32_t)attached < r->n && row->parent != RANKS_NONE)
        row->now.attached = attached;
}

void ranks_take_host (struct live_ranks *r, uint32_t rank, const char *host)
{
    struct rank_row *row = row_of (r, rank);

    if (!row)
        return;
    row->elsewhere = false;
    set_text (&row->host, host);
}

/* --- who is asked next --------------------------------------------------------- */

size_t ranks_pick (struct live_ranks *r, uint32_t *picked, size_t max)
{
    size_t n = 0, due;

    for (uint32_t i = 0; i < r->n && n < max; i++)
        if (r->rows[i].due && !is_gone (&r->rows[i]))
            picked[n++] = i;
    due = n;
    for (uint32_t i = 0; i < r->n && n < max; i++, r->turn = (r->turn + 1) % r->n)
        if (!r->rows[r->turn].due && !is_gone (&r->rows[r->turn]))
            picked[n++] = r->turn;
    for (size_t i = 0; i < due; i++)
        r->rows[picked[i]].due = false;
    return n;
}

/* --- JSON: values --------------------------------------------------------- */

/* Rounded to tenths. */
static json_t *tenths_new (double x)
{
    return json_real ((double)(int64_t)(x * 10 + 0.5) / 10);
}

static json_t *rank_new (int32_t rank)
{
    return rank < 0 ? json_null () : json_integer (rank);
}

static json_t *text_new (const char *text)
{
    return text ? json_string (text) : json_null ();
}

static json_t *counter_new (uint64_t n)
{
    char text[24];

    snprintf (text, sizeof (text), "%" PRIu64, n);
    return json_string (text);
}

static json_t *lease_new (const struct rank_row *row, double now_s)
{
    if (row->lease_end_s < 0 || (is_gone (row) && row->lease_end_s <= now_s))
        return json_null ();
    return tenths_new (row->lease_end_s > now_s ? row->lease_end_s - now_s : 0);
}

/* --- changes --------------------------------------------------------- */

static json_t *change_new (uint32_t rank, const struct rank_state *was, const struct rank_state *now)
{
    json_t *o = json_pack ("{s:I}", "rank", (json_int_t)rank), *before = json_object ();

    if (was->status != now->status) {
        json_put_new (&before, "status", json_string (rank_statuses[was->status]));
        json_put_new (&o, "status", json_string (rank_statuses[now->status]));
    }
    if (was->fluid != now->fluid) {
        json_put_new (&before, "fluid", text_new (rank_fluids[was->fluid]));
        json_put_new (&o, "fluid", text_new (rank_fluids[now->fluid]));
    }
    if (was->attached != now->attached) {
        json_put_new (&before, "attached_to", rank_new (was->attached));
        json_put_new (&o, "attached_to", rank_new (now->attached));
    }
    if (was->ids_from != now->ids_from) {
        json_put_new (&before, "ids_from", rank_new (was->ids_from));
        json_put_new (&o, "ids_from", rank_new (now->ids_from));
    }
    json_put_new (&o, "was", before);
    return o;
}

static bool is_other (const struct rank_state *a, const struct rank_state *b)
{
    return a->status != b->status || a->fluid != b->fluid || a->attached != b->attached || a->ids_from != b->ids_from;
}

/* The first data about a rank is not reported as a change. */
json_t *ranks_changes_new (struct live_ranks *r)
{
    json_t *list = json_array ();
    json_int_t more = 0;

    for (uint32_t i = 0; i < r->n; i++) {
        struct rank_row *row = &r->rows[i];

        if (row->now.status == 0 || (row->info_s <= 0 && !is_gone (row)))
            continue;
        if (row->told.status != 0 && is_other (&row->told, &row->now)) {
            if (json_array_size (list) < RANKS_CHANGES)
                json_add_new (&list, change_new (i, &row->told, &row->now));
            else
                more++;
        }
        row->told = row->now;
    }
    if (json_array_size (list) > 0)
        return json_pack ("{s:I s:o}", "more", more, "ranks", list);
    json_decref (list);
    return NULL;
}

/* --- rates --------------------------------------------------------- */

static json_t *row_rates_new (uint32_t rank, const struct rank_row *row, double now_s)
{
    return json_pack ("{s:I s:o s:o s:o s:o}", "rank", (json_int_t)rank, "ids_per_s", tenths_new (row->ids_s),
                      "from_above_per_s", tenths_new (row->above_s), "requests_per_s", tenths_new (row->requests_s),
                      "lease_left_s", lease_new (row, now_s));
}

json_t *ranks_rates_new (struct live_ranks *r, double now_s)
{
    json_t *list = json_array ();
    double ids_s = 0, requests_s = 0;
    json_int_t more = 0;

    for (uint32_t i = 0; i < r->n; i++) {
        struct rank_row *row = &r->rows[i];

        ids_s += row->ids_s;
        requests_s += row->requests_s;
        if (!row->fresh || !row->moved)
            continue;
        if (json_array_size (list) == RANKS_CHANGES) {
            more++;
            continue;
        }
        json_add_new (&list, row_rates_new (i, row, now_s));
        row->fresh = row->moved = false;
        row->told_lease_end_s = row->lease_end_s;
    }
    return json_pack ("{s:o s:o s:I s:o}", "ids_per_s", tenths_new (ids_s), "requests_per_s", tenths_new (requests_s),
                      "more", more, "ranks", list);
}

/* --- the forest as it is attached --------------------------------------------------------- */

struct sums {
    uint32_t ranks;
    uint32_t status[RANK_STATUSES], fluid[RANK_FLUIDS];
    double ids_s, requests_s;
};

struct forest {
    const struct live_ranks *r;
    int32_t *up;          /* RANKS_NONE for a root */
    int32_t *down, *next; /* first child, next sibling, in increasing order */
    uint32_t *order;      /* all ranks; a rank comes before its children */
    struct sums *below;
};

/* Ranks answer at different times, so their answers may form a cycle. Such a cycle is cut here. */
static void cut_circles (struct forest *f)
{
    uint32_t *seen = f->order; /* 'order' is not needed yet: it has the number of the walk that visited each rank */

    memset (seen, 0xff, f->r->n * sizeof (seen[0]));
    for (uint32_t i = 0; i < f->r->n; i++) {
        int32_t at = (int32_t)i;

        while (seen[at] == UINT32_MAX) {
            seen[at] = i;
            if (f->up[at] == RANKS_NONE)
                break;
            if (seen[f->up[at]] == i)
                f->up[at] = RANKS_NONE;
            else
                at = f->up[at];
        }
    }
}

static void link_rows (struct forest *f)
{
    for (uint32_t i = 0; i < f->r->n; i++)
        f->down[i] = f->next[i] = RANKS_NONE;
    for (uint32_t i = f->r->n; i-- > 0;)
        if (f->up[i] != RANKS_NONE) {
            f->next[i] = f->down[f->up[i]];
            f->down[f->up[i]] = (int32_t)i;
        }
}

static void make_order (struct forest *f)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->r->n; i++)
        if (f->up[i] == RANKS_NONE)
            f->order[n++] = i;
    for (uint32_t i = 0; i < n; i++)
        for (int32_t c = f->down[f->order[i]]; c != RANKS_NONE; c = f->next[c])
            f->order[n++] = (uint32_t)c;
}

static void add_one (struct sums *s, const struct rank_row *row)
{
    s->ranks++;
    s->status[row->now.status]++;
    s->fluid[row->now.fluid]++;
    s->ids_s += row->ids_s;
    s->requests_s += row->requests_s;
}

static void add_sums (struct sums *s, const struct sums *more)
{
    s->ranks += more->ranks;
    for (size_t i = 0; i < RANK_STATUSES; i++)
        s->status[i] += more->status[i];
    for (size_t i = 0; i < RANK_FLUIDS; i++)
        s->fluid[i] += more->fluid[i];
    s->ids_s += more->ids_s;
    s->requests_s += more->requests_s;
}

static void sum_up (struct forest *f)
{
    for (uint32_t i = f->r->n; i-- > 0;) {
        uint32_t rank = f->order[i];

        if (f->up[rank] == RANKS_NONE)
            continue;
        add_one (&f->below[f->up[rank]], &f->r->rows[rank]);
        add_sums (&f->below[f->up[rank]], &f->below[rank]);
    }
}

static void forest_fini (struct forest *f)
{
    free (f->up);
    free (f->down);
    free (f->next);
    free (f->order);
    free (f->below);
}

static int forest_init (struct forest *f, const struct live_ranks *r)
{
    f->r = r;
    f->up = calloc (r->n, sizeof (f->up[0]));
    f->down = calloc (r->n, sizeof (f->down[0]));
    f->next = calloc (r->n, sizeof (f->next[0]));
    f->order = calloc (r->n, sizeof (f->order[0]));
    f->below = calloc (r->n, sizeof (f->below[0]));
    if (!f->up || !f->down || !f->next || !f->order || !f->below)
        return -1;
    for (uint32_t i = 0; i < r->n; i++)
        f->up[i] = r->rows[i].now.attached;
    cut_circles (f);
    link_rows (f);
    make_order (f);
    sum_up (f);
    return 0;
}

/* How many ranks are at most 'depth' levels below 'rank'; RANKS_ROWS + 1 if there are more than RANKS_ROWS. */
static uint32_t count_rows (const struct forest *f, uint32_t rank, unsigned depth)
{
    uint32_t n = 1;

    for (int32_t c = depth > 0 ? f->down[rank] : RANKS_NONE; c != RANKS_NONE && n <= RANKS_ROWS; c = f->next[c])
        n += count_rows (f, (uint32_t)c, depth - 1);
    return n <= RANKS_ROWS ? n : RANKS_ROWS + 1;
}

/* Return the largest depth whose ranks fit into RANKS_ROWS. It is at least one level, even if that level does not fit.
 */
static unsigned find_depth (const struct forest *f, uint32_t rank, unsigned depth)
{
    unsigned d = depth > 0 ? 1 : 0;

    while (d < depth && count_rows (f, rank, d + 1) <= RANKS_ROWS
           && count_rows (f, rank, d + 1) > count_rows (f, rank, d))
        d++;
    return d;
}

/* --- the tree --------------------------------------------------------- */

static json_t *counts_new (const char *const *words, const uint32_t *counts, size_t n)
{
    json_t *o = json_object ();

    for (size_t i = 1; i < n; i++)
        if (counts[i] > 0)
            json_put_new (&o, words[i], json_integer (counts[i]));
    return o;
}

static json_t *below_new (const struct sums *s)
{
    return s->ranks == 0 ? json_null ()
                         : json_pack ("{s:I s:o s:o s:o s:o}", "ranks", (json_int_t)s->ranks, "status",
                                      counts_new (rank_statuses, s->status, RANK_STATUSES), "fluid",
                                      counts_new (rank_fluids, s->fluid, RANK_FLUIDS), "ids_per_s",
                                      tenths_new (s->ids_s), "requests_per_s", tenths_new (s->requests_s));
}

static json_t *row_new (const struct forest *f, uint32_t rank, bool folded, double now_s)
{
    const struct rank_row *row = &f->r->rows[rank];
    double age_s = row->info_s > 0 ? now_s - row->info_s : -1;

    return json_pack ("{s:I s:o s:o s:o s:s s:o s:o s:o s:o s:o s:o s:o s:o s:o s:o s:o s:b s:o}", "rank",
                      (json_int_t)rank, "parent", rank_new (row->parent), "attached_to", rank_new (f->up[rank]), "host",
                      text_new (row->host), "status", rank_statuses[row->now.status], "fluid",
                      text_new (rank_fluids[row->now.fluid]), "generator", rank_new (row->generator), "ids_from",
                      rank_new (row->now.ids_from), "granted_to", text_new (row->granted_to), "lease_left_s",
                      lease_new (row, now_s), "ids", counter_new (row->ids), "requests", counter_new (row->requests),
                      "ids_per_s", tenths_new (row->ids_s), "from_above_per_s", tenths_new (row->above_s),
                      "requests_per_s", tenths_new (row->requests_s), "age_s",
                      age_s < 0 ? json_null () : tenths_new (age_s), "folded", (int)(folded && f->down[rank] >= 0),
                      "below", below_new (&f->below[rank]));
}

/* Returns how many ranks did not fit; ranks below a rank that did not fit are not counted. */
static json_int_t add_rows (const struct forest *f, json_t **list, uint32_t rank, unsigned depth, double now_s)
{
    json_int_t left_out = 0;

    json_add_new (list, row_new (f, rank, depth == 0, now_s));
    for (int32_t c = depth > 0 ? f->down[rank] : RANKS_NONE; c != RANKS_NONE; c = f->next[c])
        if (json_array_size (*list) < RANKS_ROWS)
            left_out += add_rows (f, list, (uint32_t)c, depth - 1, now_s);
        else
            left_out++;
    return left_out;
}

static json_int_t add_detached (const struct forest *f, json_t **list, unsigned depth, double now_s)
{
    json_int_t left_out = 0;

    for (uint32_t i = 1; i < f->r->n; i++)
        if (f->up[i] == RANKS_NONE) {
            if (json_array_size (*list) < RANKS_ROWS)
                left_out += add_rows (f, list, i, depth, now_s);
            else
                left_out++;
        }
    return left_out;
}

static json_t *forest_json_new (const struct forest *f, uint32_t rank, unsigned depth, double now_s)
{
    struct sums all = { 0 };
    json_t *list = json_array ();

    unsigned shown = find_depth (f, rank, depth);
    json_int_t left_out = add_rows (f, &list, rank, shown, now_s);
    if (rank == 0)
        left_out += add_detached (f, &list, depth, now_s);
    for (uint32_t i = 0; i < f->r->n; i++)
        add_one (&all, &f->r->rows[i]);
    return json_pack ("{s:I s:I s:I s:I s:o s:o s:o}", "size", (json_int_t)f->r->n, "rank", (json_int_t)rank, "depth",
                      (json_int_t)shown, "left_out", left_out, "ids_per_s", tenths_new (all.ids_s), "requests_per_s",
                      tenths_new (all.requests_s), "ranks", list);
}

json_t *ranks_tree_new (const struct live_ranks *r, uint32_t rank, unsigned depth, double now_s)
{
    struct forest f = { NULL, NULL, NULL, NULL, NULL, NULL };
    json_t *o = NULL;

    if (rank < r->n && forest_init (&f, r) == 0)
        o = forest_json_new (&f, rank, depth < RANKS_MAX_DEPTH ? depth : RANKS_MAX_DEPTH, now_s);
    forest_fini (&f);
    return o;
}
