/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.c - the known state of the ranks of an instance: evaluate answers, choose the ranks to ask next */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "http/live/rank_rows.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"

#define LEAST_S 0.5 /* shortest time between two readings of counters for a rate */

const char *const rank_statuses[RANK_STATUSES] = { "unknown", "full",  "partial", "degraded",  "lost",
                                                   "offline", "older", "busy",    "no answer", "malformed" };
const char *const rank_fluids[RANK_FLUIDS] = { NULL, "active", "idle", "fenced", "borrowing" };

/* 0 if it is not in the table. */
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
        free (rows[i].lends_to);
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

/* jansson limits the depth of an answer. */
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
    unsigned char status, fluid; /* 0: another one */
};

/* Keep the host, because an operator searches the lost rank there. Keep the lease of a lost rank, too: it was not
 * returned, and the watermark does not advance until it is over.
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
    free (row->lends_to);
    row->lends_to = NULL;
}

static void set_status (struct rank_row *row, unsigned char status)
{
    bool lost = strcmp (rank_statuses[status], "lost") == 0;
    bool gone = lost || strcmp (rank_statuses[status], "offline") == 0;

    row->due = row->due || row->now.status != status;
    if (gone && row->parent != RANKS_NONE && !rank_is_gone (row))
        forget (row, lost);
    else if (!gone && rank_is_gone (row)) /* until it answers */
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

/* A rank that is in no set keeps its state. */
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
        if (r->rows[i].now.attached >= 0 && rank_is_gone (&r->rows[r->rows[i].now.attached]))
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
    const json_t *share = json_object_get (info, "share");

    if (!row || rank_is_gone (row) || !json_is_object (info))
        return;
    row->now.fluid = find_word (rank_fluids, RANK_FLUIDS, json_string_value (json_object_get (info, "state")));
    row->now.ids_from = number_of (json_object_get (info, "served_by"));
    row->generator = number_of (json_object_get (share ? share : info, "generator"));
    row->lease_end_s = at_s < 0 || end_s < 0 ? -1 : now_s + (end_s > at_s ? end_s - at_s : 0);
    set_text (&row->lends_to, json_string_value (json_object_get (json_object_get (info, "lent"), "ranks")));
    row->info_s = now_s;
    row->fresh = true;
    row->moved = row->moved || fabs (row->lease_end_s - row->told_lease_end_s) > 0.5;
}

/* The counters of a restarted broker begin at 0. */
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

    if (!row || rank_is_gone (row) || (row->stats_s > 0 && now_s - row->stats_s < LEAST_S))
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

    if (row && !rank_is_gone (row) && attached >= 0 && (uint32_t)attached < r->n && row->parent != RANKS_NONE)
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
        if (r->rows[i].due && !rank_is_gone (&r->rows[i]))
            picked[n++] = i;
    due = n;
    for (uint32_t i = 0; i < r->n && n < max; i++, r->turn = (r->turn + 1) % r->n)
        if (!r->rows[r->turn].due && !rank_is_gone (&r->rows[r->turn]))
            picked[n++] = r->turn;
    for (size_t i = 0; i < due; i++)
        r->rows[picked[i]].due = false;
    return n;
}
