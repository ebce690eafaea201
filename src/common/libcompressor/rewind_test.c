/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rewind_test.c - the form of some ranges ago equals the form saved then, and digests distinguish final spaces */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "compressor.h"

#define OWN "00000000-0000-4000-8000-000000000000"
#define OTHER "99999999-9999-4999-8999-999999999999"
#define RANGES 60
#define SESSIONS 7
#define HISTORIES 200

struct past {
    struct idcomp_stats stats;
    uint64_t digest;
    void *form;
    size_t size;
};

static uint64_t random_state;

static uint32_t pick (uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

static struct past look (struct idcomp *c)
{
    struct past p = { .stats = idcomp_stats (c), .digest = compressor_digest (c) };

    p.size = idcomp_save_size (c, IDCOMP_WITHOUT_LOCAL);
    p.form = malloc (p.size);
    if (!p.form || idcomp_save (c, IDCOMP_WITHOUT_LOCAL, p.form, p.size) < 0)
        bail_out ("save");
    return p;
}

static struct idcomp_range random_range (const struct idcomp *c)
{
    struct idcomp_range range = { .has_ids = true, .count = 1 + pick (20), .cluster_size = 1 + pick (12) };

    sprintf (range.session, "%08x-1111-4111-8111-111111111111", 1 + pick (SESSIONS));
    range.first = idcomp_expected (c, range.session);
    return range;
}

/* Whether a form that another session loads has the digest of the time when it was saved. */
static bool same_when_loaded (const struct past *p)
{
    struct idcomp *c = idcomp_load (p->form, p->size, OTHER, IDCOMP_STRICT);
    bool same = c && compressor_digest (c) == p->digest;

    idcomp_destroy (c);
    return same;
}

static const struct rewind_step *step_of (const void *arg, size_t i)
{
    static struct rewind_step step;
    const struct idcomp_range *range = (const struct idcomp_range *)arg + i;

    strcpy (step.session, range->session);
    step.first = range->first;
    return &step;
}

static bool is_then (const struct idcomp *c, const struct past *past, const struct idcomp_range *since, size_t n)
{
    size_t size = 0;
    void *form = compressor_save_then (c, &past->stats, step_of, since, n, &size);
    bool same = form && size == past->size && memcmp (form, past->form, size) == 0;

    free (form);
    return same;
}

static bool run_history (uint64_t seed, bool *loads, bool *differ)
{
    struct idcomp *c = idcomp_create (OWN, IDCOMP_ORDERER);
    struct idcomp_range ranges[RANGES];
    struct past past[RANGES + 1];
    bool good = true;

    random_state = seed;
    for (int i = 0; i < RANGES; i++) {
        past[i] = look (c);
        ranges[i] = random_range (c);
        if (idcomp_finalize (c, &ranges[i]) < 0)
            bail_out ("finalize");
    }
    past[RANGES] = look (c);
    for (int i = 0; i <= RANGES; i++) {
        good = good && is_then (c, &past[i], ranges + i, (size_t)(RANGES - i));
        *loads = *loads && same_when_loaded (&past[i]);
        *differ = *differ && (i == 0 || past[i].digest != past[i - 1].digest);
    }
    for (int i = 0; i <= RANGES; i++)
        free (past[i].form);
    idcomp_destroy (c);
    return good;
}

/* The same ranges of the same sessions, in a different order. */
static void check_order_counts (void)
{
    struct idcomp_range a = { .has_ids = true, .first = 1, .count = 3, .cluster_size = 4 }, b = a;
    struct idcomp *one = idcomp_create (OWN, IDCOMP_ORDERER), *two = idcomp_create (OWN, IDCOMP_ORDERER);

    strcpy (a.session, "11111111-1111-4111-8111-111111111111");
    strcpy (b.session, OTHER);
    ok (compressor_digest (one) == compressor_digest (two), "two equal final spaces have the same digest");
    idcomp_finalize (one, &a);
    idcomp_finalize (two, &b);
    ok (compressor_digest (one) != compressor_digest (two),
        "final spaces with ranges of different sessions have different digests");
    idcomp_finalize (one, &b);
    idcomp_finalize (two, &a);
    ok (compressor_digest (one) != compressor_digest (two),
        "final spaces with the same ranges in a different order have different digests");
    idcomp_destroy (one);
    idcomp_destroy (two);
}

int main (void)
{
    bool good = true, loads = true, differ = true;

    for (uint64_t seed = 1; seed <= HISTORIES; seed++)
        good = run_history (seed, &loads, &differ) && good;
    ok (good, "in %d histories the form that is computed for an earlier range equals the form saved then", HISTORIES);
    ok (loads, "a compressor that loaded a form has the digest of the compressors that finalized the same ranges");
    ok (differ, "each finalized range changes the digest");
    check_order_counts ();
    return done_testing ();
}
