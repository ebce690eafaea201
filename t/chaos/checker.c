/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* checker.c - checks the histories of all clients
 *
 * Ids are checked as runs, sorted by their first id: no run may begin before the end of an earlier run. The other rules
 * that compare clients are checked in the order of time. For each answer there is a lower bound: the maximum over all
 * events that happened early enough before it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "die.h"

#define FRESH_US 1000000 /* a report of a skew bound counts for answers within this time of it */

static void *array (size_t n, size_t size)
{
    return must (calloc (n + 1, size));
}

static void tell (struct verdict *v, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

static void tell (struct verdict *v, const char *fmt, ...)
{
    va_list ap;

    if (v->nexamples == CHECKER_EXAMPLES)
        return;
    va_start (ap, fmt);
    vsnprintf (v->example[v->nexamples++], sizeof (v->example[0]), fmt, ap);
    va_end (ap);
}

/* --- each id once --------------------------------------------------------------------------------- */

struct owned {
    fluid_t first;
    uint32_t n;
    uint32_t client;
    uint64_t got_us;
};

static int by_first (const void *a, const void *b)
{
    const struct owned *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static struct owned *collect_runs (const struct history *const *h, size_t n, size_t total)
{
    struct owned *all = array (total, sizeof (all[0])), *o = all;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < h[i]->nanswers; j++) {
            const struct history_answer *a = &h[i]->answers[j];

            for (uint32_t r = 0; r < a->nruns; r++, o++) {
                const struct history_run *run = &h[i]->runs[a->run + r];

                *o = (struct owned){ run->first, run->n, h[i]->client, a->got_us };
            }
        }
    return all;
}

static void judge_unique (const struct history *const *h, size_t n, struct verdict *v)
{
    struct owned *all = collect_runs (h, n, v->runs), *far = all;

    qsort (all, v->runs, sizeof (all[0]), by_first);
    for (struct owned *o = all + 1; o < all + v->runs; o++) {
        fluid_t end = far->first + (far->n - 1), last = o->first + (o->n - 1);

        if (o->first <= end) {
            struct fluid_fields f = fluid_split (o->first);

            v->duplicates += (end < last ? end : last) - o->first + 1;
            tell (v,
                  "generator %u, %" PRIu64 " ms: id %" PRIu64 " was given to client %u at %" PRIu64
                  " us and to client %u at %" PRIu64 " us",
                  f.generator, f.timestamp_ms, o->first, far->client, far->got_us, o->client, o->got_us);
        }
        if (last > end)
            far = o;
    }
    free (all);
}

/* --- each answer for itself ------------------------------------------------------------------------- */

static bool is_good (const struct history *h, const struct history_answer *a)
{
    uint64_t left = a->count;
    fluid_t last = 0;

    for (uint32_t r = 0; r < a->nruns; r++) {
        const struct history_run *run = &h->runs[a->run + r];

        if (run->n == 0 || run->n > left || run->n > FLUID_PER_MS - (run->first & FLUID_SEQUENCE_MAX)
            || (r > 0 && run->first <= last))
            return false;
        last = run->first + (run->n - 1);
        left -= run->n;
    }
    return left == 0;
}

static void judge_answer (const struct history *h, const struct history_answer *a, struct verdict *v)
{
    v->runs += a->nruns;
    if (a->errnum == ECONNRESET)
        v->lost++;
    else if (a->errnum == ETIMEDOUT) {
        v->unanswered++;
        tell (v, "client %u of rank %u: no answer to a request sent at %" PRIu64 " us", h->client, h->rank, a->sent_us);
    }
    else if (a->errnum != 0)
        v->refused++;
    else {
        v->answered++;
        v->ids += a->count;
        if (!is_good (h, a)) {
            v->malformed++;
            tell (v, "client %u of rank %u: a malformed answer at %" PRIu64 " us", h->client, h->rank, a->got_us);
        }
        else if (h->runs[a->run].first <= a->after) {
            v->disorder++;
            tell (v, "client %u of rank %u: asked at %" PRIu64 " us for ids above %" PRIu64 ", got %" PRIu64, h->client,
                  h->rank, a->sent_us, a->after, h->runs[a->run].first);
        }
    }
}

static void judge_client (const struct history *h, struct verdict *v)
{
    uint64_t missing = h->sent > h->nanswers ? h->sent - h->nanswers : h->nanswers - h->sent;

    v->requests += h->sent;
    v->watermarks += h->nwatermarks;
    v->unanswered += missing + h->twice;
    if (missing + h->twice > 0)
        tell (v, "client %u of rank %u: %" PRIu64 " requests, %zu of them ended, %" PRIu64 " more than once", h->client,
              h->rank, h->sent, h->nanswers, h->twice);
    for (size_t i = 0; i < h->nanswers; i++)
        judge_answer (h, &h->answers[i], v);
}

/* --- order across clients --------------------------------------------------------------------------- */

#define NRANKS (FLUID_GENERATOR_MAX + 1)

/* The skew bounds that a rank reported, in order of time. Entries 0 to NRANKS - 1 belong to the ranks' brokers, and the
 * next NRANKS entries to the ranks' second brokers.
 */
struct bounds {
    struct history_bound *bound;
    size_t n;
};

/* Whether the client uses second brokers. Only such clients get ids that second brokers have made. */
static bool is_second (const struct history *h)
{
    return h->rank == UINT32_MAX;
}

static int by_got (const void *a, const void *b)
{
    const struct history_bound *x = a, *y = b;

    return x->got_us < y->got_us ? -1 : x->got_us > y->got_us;
}

static struct bounds *collect_bounds (const struct history *const *h, size_t n)
{
    struct bounds *all = array (2 * NRANKS, sizeof (all[0]));

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < h[i]->nbounds; j++) {
            struct bounds *b = &all[h[i]->bounds[j].rank + (is_second (h[i]) ? NRANKS : 0)];

            b->bound = must (realloc (b->bound, (b->n + 1) * sizeof (b->bound[0])));
            b->bound[b->n++] = h[i]->bounds[j];
        }
    for (size_t r = 0; r < 2 * NRANKS; r++)
        if (all[r].n > 0)
            qsort (all[r].bound, all[r].n, sizeof (all[r].bound[0]), by_got);
    return all;
}

static void free_bounds (struct bounds *all)
{
    for (size_t r = 0; r < 2 * NRANKS; r++)
        free (all[r].bound);
    free (all);
}

/* Find the skew bound of a broker while it made an answer: the larger one of its last report before, and its first
 * report after. Returns false if one of these reports is missing, because a broker that has just started may have known
 * the time less well than at its first report.
 */
static bool find_bound (const struct bounds *b, const struct history_answer *a, uint64_t *bound_us)
{
    size_t lo = 0, hi = b->n; /* finds the first report after a->sent_us */

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (b->bound[mid].got_us > a->sent_us)
            hi = mid;
        else
            lo = mid + 1;
    }
    *bound_us = 0;
    if (lo == 0 || b->bound[lo - 1].got_us + FRESH_US <= a->sent_us)
        return false;
    for (size_t i = lo - 1; i < b->n && b->bound[i].life == b->bound[lo - 1].life; i++) {
        if (b->bound[i].sent_us >= a->got_us + FRESH_US)
            return false;
        if (b->bound[i].bound_us > *bound_us)
            *bound_us = b->bound[i].bound_us;
        if (b->bound[i].sent_us >= a->got_us)
            return true;
    }
    return false;
}

/* An answer on the time scale of rule 4 (see checker.h). It affects only requests after 'to_us', and only answers
 * before 'from_us' affect it.
 */
struct placed {
    int64_t from_us, to_us;
    fluid_t first, last;
    const struct history *h;
    const struct history_answer *a;
};

/* Find the bound for the brokers of a rank that may have made an answer in 'h': the rank's broker, or a second one. */
static bool find_either (const struct bounds *all, uint32_t rank, const struct history *h,
                         const struct history_answer *a, uint64_t *bound_us)
{
    uint64_t second_us;
    bool found = find_bound (&all[rank], a, bound_us);

    if (!is_second (h) || !find_bound (&all[rank + NRANKS], a, &second_us))
        return found;
    if (!found || *bound_us < second_us)
        *bound_us = second_us;
    return true;
}

/* Find the bound for all brokers that may have made ids of this generator: the broker of its rank, and the holders of
 * parts. If a holder has no bound, it was not running, except that the broker of the client must have one.
 */
static bool find_makers (const struct bounds *all, uint32_t generator, const struct history *h,
                         const struct history_answer *a, uint64_t *bound_us)
{
    bool found = find_either (all, h->ranks > 0 ? generator % h->ranks : generator, h, a, bound_us);
    uint64_t one_us;

    for (uint32_t r = 0; found && h->makers >> r != 0; r++) {
        if (!(h->makers >> r & 1))
            continue;
        if (!find_either (all, r, h, a, &one_us))
            found = r != h->rank;
        else if (one_us > *bound_us)
            *bound_us = one_us;
    }
    return found;
}

static bool place (const struct bounds *bounds, const struct history *h, const struct history_answer *a,
                   struct placed *p)
{
    const struct history_run *runs = &h->runs[a->run];
    uint64_t bound_us = 0, one_us;

    for (uint32_t r = 0; r < a->nruns; r++) {
        if (!find_makers (bounds, fluid_split (runs[r].first).generator, h, a, &one_us))
            return false;
        if (one_us > bound_us)
            bound_us = one_us;
    }
    *p = (struct placed){ (int64_t)(a->sent_us - bound_us),
                          (int64_t)(a->got_us + bound_us),
                          runs[0].first,
                          runs[a->nruns - 1].first + (runs[a->nruns - 1].n - 1),
                          h,
                          a };
    return true;
}

static int by_from (const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    return x->from_us < y->from_us ? -1 : x->from_us > y->from_us;
}

static int by_to (const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    return x->to_us < y->to_us ? -1 : x->to_us > y->to_us;
}

static void tell_misordered (struct verdict *v, const struct placed *early, const struct placed *late)
{
    struct fluid_fields e = fluid_split (early->last), l = fluid_split (late->first);

    v->misordered++;
    tell (v,
          "id of %" PRIu64 " ms by generator %u had come at %" PRIu64 " us, the id of %" PRIu64
          " ms by generator %u was asked for at %" PRIu64 " us and came at %" PRIu64 " us, %" PRId64
          " us beyond the bounds of %" PRIu64 " and %" PRIu64 " us",
          e.timestamp_ms, e.generator, early->a->got_us, l.timestamp_ms, l.generator, late->a->sent_us, late->a->got_us,
          late->from_us - early->to_us, (uint64_t)early->to_us - early->a->got_us,
          late->a->sent_us - (uint64_t)late->from_us);
}

static size_t place_all (const struct history *const *h, size_t n, struct placed *placed)
{
    struct bounds *bounds = collect_bounds (h, n);
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < h[i]->nanswers; j++)
            if (h[i]->answers[j].errnum == 0 && h[i]->answers[j].nruns > 0
                && place (bounds, h[i], &h[i]->answers[j], &placed[count]))
                count++;
    free_bounds (bounds);
    return count;
}

static bool is_excused (const struct placed *late, const struct window *roots, size_t nroots)
{
    for (size_t i = 0; i < nroots; i++)
        if (late->a->sent_us >= roots[i].from_us && late->a->sent_us <= roots[i].to_us)
            return true;
    return false;
}

static void judge_order (const struct history *const *h, size_t n, const struct window *roots, size_t nroots,
                         struct verdict *v)
{
    struct placed *late = array (v->answered, sizeof (late[0])), *early = array (v->answered, sizeof (early[0]));
    const struct placed *top = NULL;
    size_t next = 0;

    v->judged = place_all (h, n, late);
    memcpy (early, late, v->judged * sizeof (late[0]));
    qsort (late, v->judged, sizeof (late[0]), by_from);
    qsort (early, v->judged, sizeof (early[0]), by_to);
    for (size_t i = 0; i < v->judged; i++) {
        for (; next < v->judged && early[next].to_us < late[i].from_us; next++)
            if (!top || early[next].last > top->last)
                top = &early[next];
        if (!top || late[i].first > top->last)
            continue;
        if (is_excused (&late[i], roots, nroots))
            v->excused++;
        else
            tell_misordered (v, top, &late[i]);
    }
    free (early);
    free (late);
}

/* --- watermark --------------------------------------------------------------------------------------- */

static int by_told (const void *a, const void *b)
{
    const struct history_watermark *x = a, *y = b;

    return x->got_us < y->got_us ? -1 : x->got_us > y->got_us;
}

/* Return all watermarks in order of time. A watermark that is smaller than an earlier one is raised to that. */
static struct history_watermark *collect_watermarks (const struct history *const *h, size_t n, size_t total)
{
    struct history_watermark *all = array (total, sizeof (all[0]));
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (h[i]->nwatermarks > 0)
            memcpy (all + count, h[i]->watermarks, h[i]->nwatermarks * sizeof (all[0]));
        count += h[i]->nwatermarks;
    }
    qsort (all, total, sizeof (all[0]), by_told);
    for (size_t i = 1; i < total; i++)
        if (all[i].timestamp_ms < all[i - 1].timestamp_ms)
            all[i].timestamp_ms = all[i - 1].timestamp_ms;
    return all;
}

/* The largest watermark that was reported before 'us'; 0: none. */
static uint64_t watermark_at (const struct history_watermark *all, size_t n, uint64_t us)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (all[mid].got_us >= us)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo > 0 ? all[lo - 1].timestamp_ms : 0;
}

static void judge_watermark (const struct history *const *h, size_t n, struct verdict *v)
{
    struct history_watermark *all = collect_watermarks (h, n, v->watermarks);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < h[i]->nanswers; j++) {
            const struct history_answer *a = &h[i]->answers[j];
            uint64_t mark_ms = watermark_at (all, v->watermarks, a->sent_us);

            if (a->errnum != 0 || a->nruns == 0)
                continue;
            struct fluid_fields f = fluid_split (h[i]->runs[a->run].first);
            if (f.timestamp_ms < mark_ms) {
                v->below++;
                tell (v,
                      "id of %" PRIu64 " ms by generator %u was asked for at %" PRIu64 " us; the watermark was %" PRIu64
                      " ms before",
                      f.timestamp_ms, f.generator, a->sent_us, mark_ms);
            }
        }
    free (all);
}

/* --- verdict ------------------------------------------------------------------------------------------- */

void checker_judge (const struct history *const *h, size_t n, const struct window *roots, size_t nroots,
                    struct verdict *v)
{
    *v = (struct verdict){ 0 };
    for (size_t i = 0; i < n; i++)
        judge_client (h[i], v);
    judge_unique (h, n, v);
    judge_order (h, n, roots, nroots, v);
    judge_watermark (h, n, v);
}

uint64_t checker_violations (const struct verdict *v)
{
    return v->duplicates + v->unanswered + v->malformed + v->disorder + v->misordered + v->below;
}

/* --- service ------------------------------------------------------------------------------------------- */

/* A time in which a client did not wait in vain: an answer (of length 0), or an outage. */
struct span {
    uint64_t from_us, to_us;
};

static int by_time (const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return x->from_us < y->from_us ? -1 : x->from_us > y->from_us;
}

static void longest (struct span *spans, size_t n, uint64_t from_us, uint64_t to_us, uint32_t rank, struct gap *gap)
{
    uint64_t last_us = from_us;

    spans[n++] = (struct span){ to_us, to_us };
    qsort (spans, n, sizeof (spans[0]), by_time);
    for (size_t i = 0; i < n && last_us < to_us; i++) {
        if (spans[i].from_us > last_us && spans[i].from_us - last_us > gap->us)
            *gap = (struct gap){ spans[i].from_us - last_us, last_us, rank };
        if (spans[i].to_us > last_us)
            last_us = spans[i].to_us;
    }
}

static size_t add_answers (const struct history *h, struct span *spans)
{
    size_t n = 0;

    for (size_t i = 0; i < h->nanswers; i++)
        if (h->answers[i].errnum == 0)
            spans[n++] = (struct span){ h->answers[i].got_us, h->answers[i].got_us };
    return n;
}

static size_t add_outages (const struct window *outages, size_t noutages, uint32_t rank, struct span *spans)
{
    size_t n = 0;

    for (size_t i = 0; i < noutages; i++)
        if (outages[i].ranks >> rank & 1)
            spans[n++] = (struct span){ outages[i].from_us, outages[i].to_us };
    return n;
}

void checker_gaps (const struct history *const *h, size_t n, const struct window *outages, size_t noutages,
                   uint64_t from_us, uint64_t to_us, struct gap *all, struct gap *one)
{
    uint32_t ranks = 0;
    size_t count = 0, max = noutages + 1;

    for (size_t i = 0; i < n; i++) {
        max += h[i]->nanswers;
        if (!is_second (h[i]) && h[i]->rank >= ranks)
            ranks = h[i]->rank + 1;
    }
    struct span *spans = array (max, sizeof (spans[0]));
    *all = *one = (struct gap){ 0 };
    for (size_t i = 0; i < n; i++)
        count += add_answers (h[i], spans + count);
    longest (spans, count, from_us, to_us, 0, all);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        count = add_outages (outages, noutages, rank, spans);
        for (size_t i = 0; i < n; i++)
            if (h[i]->rank == rank)
                count += add_answers (h[i], spans + count);
        longest (spans, count, from_us, to_us, rank, one);
    }
    free (spans);
}
