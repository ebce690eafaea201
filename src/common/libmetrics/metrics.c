/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* metrics.c - reports of ranks, summed up
 *
 * A report is checked completely before any part of it is added. Numbers are kept as JSON values, as the result needs
 * them. Sets of ranks are kept as arrays, which are sorted when the result is made.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmetrics/metrics.h"
#include "libutil/errprintf.h"
#include "libutil/text.h"

struct set {
    uint32_t *ranks;
    size_t n, room;
};

struct metrics {
    uint32_t size;
    json_t *sections[METRICS_MERGES]; /* METRICS_RANKS is {NAME: {VALUE: index of a set}} */
    struct set *sets;
    size_t nsets, room;
    uint64_t held; /* total number of ranks in all sets */
    bool spoilt;   /* memory was exhausted, so there is no result */
};

const char *const metrics_sections[METRICS_MERGES] = { "sum", "min", "max", "buckets", "ranks" };

/* --- numbers ---------------------------------------------------------------------------------------- */

static json_t *sum_new (const json_t *a, const json_t *b)
{
    json_int_t sum;

    if (!json_is_integer (a) || !json_is_integer (b))
        return json_real (json_number_value (a) + json_number_value (b)); /* fails (NULL) if the sum is infinite */
    if (__builtin_add_overflow (json_integer_value (a), json_integer_value (b), &sum))
        sum = json_integer_value (a) > 0 ? INT64_MAX : INT64_MIN;
    return json_integer (sum);
}

static json_t *extreme_new (const json_t *a, const json_t *b, bool greatest)
{
    bool first = (json_number_value (a) > json_number_value (b)) == greatest;

    return json_incref ((json_t *)(first ? a : b));
}

/* Add two histograms. The result has as many buckets as the longer one. */
static json_t *buckets_new (const json_t *a, const json_t *b)
{
    size_t n = json_array_size (a) > json_array_size (b) ? json_array_size (a) : json_array_size (b);
    json_t *sum = json_array (), *zero = json_integer (0);

    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get (a, i), *y = json_array_get (b, i);

        if (json_array_append_new (sum, sum_new (x ? x : zero, y ? y : zero)) < 0) {
            json_decref (sum);
            sum = NULL;
        }
    }
    json_decref (zero);
    return sum;
}

static json_t *merged_new (enum metrics_merge merge, const json_t *a, const json_t *b)
{
    switch (merge) {
    case METRICS_SUM:
        return sum_new (a, b);
    case METRICS_BUCKETS:
        return buckets_new (a, b);
    default:
        return extreme_new (a, b, merge == METRICS_MAX);
    }
}

void metrics_put_new (struct metrics *m, enum metrics_merge merge, const char *name, json_t *value)
{
    json_t *had = json_object_get (m->sections[merge], name);
    json_t *both = had && value ? merged_new (merge, had, value) : json_incref (value);

    json_decref (value);
    if (json_object_set_new (m->sections[merge], name, both) < 0)
        m->spoilt = true;
}

void metrics_put_count (struct metrics *m, const char *name, uint64_t count)
{
    metrics_put_new (m, METRICS_SUM, name, json_integer ((json_int_t)count));
}

void metrics_put_ms (struct metrics *m, enum metrics_merge merge, const char *name, double ms)
{
    metrics_put_new (m, merge, name, json_real (ms / 1E3));
}

void metrics_put_times (struct metrics *m, const char *name, const char *longest, const struct metrics_times *t)
{
    char sum[METRICS_MAX_NAME + 1];
    json_t *buckets = json_array ();

    for (size_t i = 0; i <= METRICS_BOUNDS; i++)
        if (json_array_append_new (buckets, json_integer ((json_int_t)t->count[i])) < 0)
            m->spoilt = true;
    metrics_put_new (m, METRICS_BUCKETS, name, buckets);
    snprintf (sum, sizeof (sum), "%s_sum", name);
    metrics_put_ms (m, METRICS_SUM, sum, (double)t->sum_us / 1E3);
    metrics_put_ms (m, METRICS_MAX, longest, (double)t->longest_us / 1E3);
}

/* --- sets of ranks ------------------------------------------------------------------------------------ */

static struct set *add_set (struct metrics *m)
{
    size_t room = m->room ? 2 * m->room : 16;
    struct set *sets = m->nsets < m->room ? m->sets : realloc (m->sets, room * sizeof (sets[0]));

    if (!sets)
        return NULL;
    m->room = m->nsets < m->room ? m->room : room;
    m->sets = sets;
    sets[m->nsets] = (struct set){ NULL, 0, 0 };
    return &sets[m->nsets++];
}

/* Find or make the set of a value. NULL if memory is exhausted. */
static struct set *get_set (struct metrics *m, const char *name, const char *value)
{
    json_t *values = json_object_get (m->sections[METRICS_RANKS], name), *index;

    if (!values && json_object_set_new (m->sections[METRICS_RANKS], name, values = json_object ()) < 0)
        return NULL;
    if ((index = json_object_get (values, value)))
        return &m->sets[json_integer_value (index)];
    if (json_object_set_new (values, value, json_integer ((json_int_t)m->nsets)) < 0)
        return NULL;
    struct set *set = add_set (m);
    if (!set)
        json_object_del (values, value);
    return set;
}

static int make_room (struct set *set, size_t n)
{
    size_t room = set->room ? set->room : 4;
    uint32_t *ranks;

    while (room < set->n + n)
        room *= 2;
    if (room == set->room)
        return 0;
    if (!(ranks = realloc (set->ranks, room * sizeof (ranks[0]))))
        return -1;
    set->ranks = ranks;
    set->room = room;
    return 0;
}

struct taker {
    struct metrics *m;
    struct set *set;
};

static void take_range (uint64_t first, uint64_t last, void *arg)
{
    struct taker *t = arg;
    struct set *set = t->set;

    if (!set || make_room (set, last - first + 1) < 0) {
        t->m->spoilt = true;
        return;
    }
    t->m->held += last - first + 1;
    for (uint64_t rank = first; rank <= last; rank++)
        set->ranks[set->n++] = (uint32_t)rank;
}

void metrics_put_rank (struct metrics *m, const char *name, const char *value, uint32_t rank)
{
    struct taker t = { m, get_set (m, name, value) };

    take_range (rank, rank, &t);
}

static void put_ranks (struct metrics *m, const char *name, const json_t *values)
{
    const char *value;
    json_t *ranks;

    json_object_foreach ((json_t *)values, value, ranks) {
        struct taker t = { m, get_set (m, name, value) };

        ranges_each (json_string_value (ranks), take_range, &t);
    }
}

/* --- reports of others -------------------------------------------------------------------------------- */

struct count {
    uint32_t size;
    uint64_t ranks, values;
    bool beyond; /* true: a rank is not below 'size' */
};

static void count_range (uint64_t first, uint64_t last, void *arg)
{
    struct count *c = arg;

    c->beyond = c->beyond || last >= c->size;
    c->ranks += last - first + 1;
}

static bool is_good_text (const char *s)
{
    size_t len = strlen (s);

    return len > 0 && len <= METRICS_MAX_NAME;
}

static bool are_good_ranks (const json_t *values, struct count *c)
{
    const char *value;
    json_t *ranks;

    if (!json_is_object (values))
        return false;
    c->values += json_object_size (values);
    json_object_foreach ((json_t *)values, value, ranks)
        if (!is_good_text (value) || !json_is_string (ranks)
            || ranges_each (json_string_value (ranks), count_range, c) < 0)
            return false;
    return !c->beyond;
}

static bool are_good_buckets (const json_t *buckets)
{
    const json_t *bucket;
    size_t i;

    if (!json_is_array (buckets) || json_array_size (buckets) > METRICS_MAX_BUCKETS)
        return false;
    json_array_foreach ((json_t *)buckets, i, bucket)
        if (!json_is_integer (bucket))
            return false;
    return true;
}

static bool is_good_value (enum metrics_merge merge, const json_t *value, struct count *c)
{
    if (merge == METRICS_RANKS)
        return are_good_ranks (value, c);
    return merge == METRICS_BUCKETS ? are_good_buckets (value) : json_is_number (value);
}

/* Check a section. Returns how many names it would have after the merge; -1: it is malformed. */
static int check_section (const struct metrics *m, enum metrics_merge merge, const json_t *section, struct count *c)
{
    int fresh = 0;
    const char *name;
    json_t *value;

    if (section && !json_is_object (section))
        return -1;
    json_object_foreach ((json_t *)section, name, value) {
        if (!is_good_text (name) || !is_good_value (merge, value, c))
            return -1;
        fresh += !json_object_get (m->sections[merge], name);
    }
    return (int)json_object_size (m->sections[merge]) + fresh;
}

static int check (const struct metrics *m, const json_t *report)
{
    struct count c = { .size = m->size };

    if (!json_is_object (report))
        return errset (EPROTO);
    for (int i = 0; i < METRICS_MERGES; i++) {
        int count = check_section (m, i, json_object_get (report, metrics_sections[i]), &c);

        if (count < 0 || count > METRICS_MAX_NAMES)
            return errset (count < 0 ? EPROTO : EMSGSIZE);
    }
    if (m->held + c.ranks > METRICS_MAX_STATES * (uint64_t)m->size || m->nsets + c.values > METRICS_MAX_VALUES)
        return errset (EMSGSIZE);
    return 0;
}

int metrics_merge (struct metrics *m, const json_t *report)
{
    const char *name;
    json_t *value;

    if (check (m, report) < 0)
        return -1;
    for (int i = 0; i < METRICS_MERGES; i++)
        json_object_foreach (json_object_get (report, metrics_sections[i]), name, value) {
            if (i == METRICS_RANKS)
                put_ranks (m, name, value);
            else
                metrics_put_new (m, i, name, json_incref (value));
        }
    return 0;
}

static bool is_zero (const json_t *value)
{
    const json_t *part;
    size_t i;

    if (!json_is_array (value))
        return json_number_value (value) == 0;
    json_array_foreach ((json_t *)value, i, part)
        if (json_number_value (part) != 0)
            return false;
    return true;
}

void metrics_leave_out_zeros (struct metrics *m)
{
    static const enum metrics_merge added[] = { METRICS_SUM, METRICS_BUCKETS };
    const char *name;
    json_t *value;
    void *next;

    for (size_t i = 0; i < 2; i++)
        json_object_foreach_safe (m->sections[added[i]], next, name, value) if (is_zero (value))
            json_object_del (m->sections[added[i]], name);
}

/* --- the result ------------------------------------------------------------------------------------------ */

static json_t *set_new (struct set *set)
{
    char *text = ranges_format (set->ranks, set->n);
    json_t *o = text ? json_string (text) : NULL;

    free (text);
    return o;
}

static json_t *ranks_new (struct metrics *m)
{
    json_t *section = json_object (), *values, *index;
    const char *name, *value;

    json_object_foreach (m->sections[METRICS_RANKS], name, values) {
        json_t *o = json_object ();

        json_object_foreach (values, value, index)
            if (json_object_set_new (o, value, set_new (&m->sets[json_integer_value (index)])) < 0)
                m->spoilt = true;
        if (json_object_set_new (section, name, o) < 0)
            m->spoilt = true;
    }
    return section;
}

json_t *metrics_report_new (struct metrics *m)
{
    json_t *report = json_object ();

    for (int i = 0; i < METRICS_MERGES; i++) {
        json_t *section = i == METRICS_RANKS ? ranks_new (m) : json_incref (m->sections[i]);

        if (json_object_size (section) == 0)
            json_decref (section);
        else if (json_object_set_new (report, metrics_sections[i], section) < 0)
            m->spoilt = true;
    }
    if (report && !m->spoilt)
        return report;
    json_decref (report);
    return errset_null (ENOMEM);
}

/* --- create and destroy ---------------------------------------------------------------------------------- */

struct metrics *metrics_create (uint32_t size)
{
    struct metrics *m = calloc (1, sizeof (*m));

    if (!m)
        return NULL;
    m->size = size;
    for (int i = 0; i < METRICS_MERGES; i++)
        if (!(m->sections[i] = json_object ())) {
            metrics_destroy (m);
            return errset_null (ENOMEM);
        }
    return m;
}

void metrics_destroy (struct metrics *m)
{
    int saved_errno = errno;

    if (!m)
        return;
    for (int i = 0; i < METRICS_MERGES; i++)
        json_decref (m->sections[i]);
    for (size_t i = 0; i < m->nsets; i++)
        free (m->sets[i].ranks);
    free (m->sets);
    free (m);
    errno = saved_errno;
}
