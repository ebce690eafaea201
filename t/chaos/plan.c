/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* plan.c - the faults of a run, drawn from a seed
 *
 * Faults are drawn from a bag. When the bag is empty, it is refilled and shuffled, so that even a short run has all
 * faults.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

#define GAP_MIN_MS 50
#define GAP_MAX_MS 900
#define CLOCK_MAX_MS 600000 /* a clock steps by up to ten minutes */

static const struct {
    const char *name;
    uint8_t often;         /* how many times the bag contains the fault */
    uint16_t min_ms;       /* shortest time for which the fault lasts */
    uint16_t lease_tenths; /* the longest time is min_ms and this number of tenths of a lease */
} faults[FAULT_COUNT] = {
    [FAULT_KILL] = { "kill", 8, 0, 20 },
    [FAULT_TERM] = { "term", 3, 0, 10 },
    [FAULT_TUNE] = { "tune", 3, 0, 10 },
    [FAULT_STOP] = { "stop", 5, 10, 30 },
    [FAULT_STARVE] = { "starve", 2, 100, 20 },
    [FAULT_PAUSE] = { "pause", 2, 100, 30 },
    [FAULT_CUT] = { "cut", 4, 50, 40 },
    [FAULT_RESET] = { "reset", 2, 0, 10 },
    [FAULT_CORRUPT] = { "corrupt", 2, 50, 10 },
    [FAULT_SLOW] = { "slow", 2, 100, 30 },
    [FAULT_CLOCK] = { "clock", 3, 0, 0 },
    [FAULT_BOOT] = { "boot", 2, 0, 0 },
    [FAULT_FILES] = { "files", 2, 100, 20 },
    [FAULT_MEMORY] = { "memory", 1, 100, 20 },
    [FAULT_RELOAD] = { "reload", 3, 100, 20 },
    [FAULT_LIAR] = { "liar", 2, 100, 20 },
    [FAULT_GREEDY] = { "greedy", 1, 100, 20 },
    [FAULT_DEAF] = { "deaf", 1, 100, 20 },
    [FAULT_FLOOD] = { "flood", 1, 100, 20 },
    [FAULT_TWIN] = { "twin", 4, 100, 30 },
    [FAULT_FULL] = { "disk-full", 1, 50, 60 },
    [FAULT_BROKEN] = { "disk-broken", 1, 50, 60 },
    [FAULT_FROZEN] = { "disk-frozen", 1, 50, 60 },
    [FAULT_CRASH] = { "crash", 1, 0, 10 },
    [FAULT_RESTART] = { "restart", 1, 0, 5 },
};

#define BIT(fault) (UINT32_C (1) << (fault))

const char *fault_name (enum fault fault)
{
    return faults[fault].name;
}

/* Return the faults that one word of a list names; 0 if the word is unknown. */
static uint32_t parse_word (const char *word, size_t len)
{
    if (len == 3 && !strncmp (word, "all", len))
        return FAULTS_ALL;
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        if (strlen (faults[fault].name) == len && !strncmp (faults[fault].name, word, len))
            return BIT (fault);
    return 0;
}

uint32_t faults_parse (const char *list)
{
    uint32_t set = 0, one;

    for (const char *p = list;; p++) {
        size_t len = strcspn (p, ",");

        if (!(one = parse_word (p, len)))
            return 0;
        set |= one;
        p += len;
        if (!*p)
            return set;
    }
}

void plan_init (struct plan *p, uint64_t seed, uint32_t size, uint32_t fanout, uint32_t lease_ms, uint32_t kinds)
{
    *p = (struct plan){ .rng = { seed }, .size = size, .fanout = fanout, .lease_ms = lease_ms, .faults = kinds };
}

size_t plan_bag (uint32_t set)
{
    size_t n = 0;

    for (int fault = 0; fault < FAULT_COUNT; fault++)
        n += set & BIT (fault) ? faults[fault].often : 0;
    return n;
}

static void fill_bag (struct plan *p)
{
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        for (int i = 0; (p->faults & BIT (fault)) && i < faults[fault].often; i++)
            p->bag[p->left++] = fault;
    for (size_t i = p->left - 1; i > 0; i--) {
        size_t j = rng_below (&p->rng, i + 1);
        uint8_t fault = p->bag[i];

        p->bag[i] = p->bag[j];
        p->bag[j] = fault;
    }
}

/* --- ranks -------------------------------------------------------------------------------------- */

uint64_t plan_subtree (const struct plan *p, uint32_t top)
{
    uint64_t ranks = UINT64_C (1) << top;

    for (uint32_t r = top + 1; r < p->size; r++)
        if (ranks >> ((r - 1) / p->fanout) & 1)
            ranks |= UINT64_C (1) << r;
    return ranks;
}

/* Choose ranks: usually one rank, often an inner one; sometimes the root, a subtree, or any set. */
static uint64_t choose_ranks (struct plan *p)
{
    uint32_t how = rng_below (&p->rng, 10), one = rng_below (&p->rng, p->size);
    uint32_t inner = rng_below (&p->rng, (p->size + p->fanout - 1) / p->fanout);
    uint64_t any = rng_next (&p->rng);

    if (how < 4)
        return UINT64_C (1) << one;
    if (how < 6)
        return UINT64_C (1) << inner;
    if (how < 7)
        return 1;
    if (how < 9)
        return plan_subtree (p, one);
    return (any & (UINT64_MAX >> (64 - p->size))) | UINT64_C (1) << one;
}

/* Return any rank except the root. Only the lock of the state prevents twins of the root. */
static uint64_t other_rank (struct plan *p)
{
    return UINT64_C (1) << (p->size > 1 ? rng_between (&p->rng, 1, p->size - 1) : 0);
}

/* The root has no link to a parent, so the links of its children are used for it. */
static uint64_t linked_ranks (const struct plan *p, uint64_t ranks)
{
    if (ranks != 1 || p->size == 1)
        return ranks;
    for (uint32_t r = 1; r < p->size && r <= p->fanout; r++)
        ranks |= UINT64_C (1) << r;
    return ranks & ~UINT64_C (1);
}

/* Whether a fault must have only one rank, because several rogues or limits together would be too many. */
static bool is_for_one (enum fault fault)
{
    return fault >= FAULT_FILES && fault <= FAULT_FLOOD;
}

static int32_t choose_amount (struct plan *p, enum fault fault)
{
    switch (fault) {
    case FAULT_CLOCK:
        return (int32_t)rng_below (&p->rng, 2 * CLOCK_MAX_MS + 1) - CLOCK_MAX_MS;
    case FAULT_BOOT:
        return (int32_t)rng_between (&p->rng, 10, 4 * p->lease_ms);
    case FAULT_SLOW:
        return (int32_t)rng_between (&p->rng, 500, 8000);
    case FAULT_TUNE:
        return (int32_t)rng_below (&p->rng, PLAN_TUNES);
    case FAULT_CUT:
        return (int32_t)rng_between (&p->rng, 1, 3);
    case FAULT_CORRUPT:
        return (int32_t)rng_between (&p->rng, 2, 20);
    case FAULT_TWIN:
        return rng_below (&p->rng, 4) > 0;
    case FAULT_FULL:
    case FAULT_BROKEN:
    case FAULT_FROZEN:
        return (int32_t)rng_below (&p->rng, 2);
    default:
        return 0;
    }
}

void plan_next (struct plan *p, struct step *step)
{
    if (p->left == 0)
        fill_bag (p);
    step->fault = p->bag[--p->left];
    step->gap_ms = rng_between (&p->rng, GAP_MIN_MS, GAP_MAX_MS);
    step->hold_ms = faults[step->fault].min_ms
                    + rng_below (&p->rng, p->lease_ms * faults[step->fault].lease_tenths / 10 + 1);
    step->ranks = choose_ranks (p);
    step->amount = choose_amount (p, step->fault);
    if (step->fault >= FAULT_CUT && step->fault <= FAULT_SLOW)
        step->ranks = linked_ranks (p, step->ranks);
    if (step->fault == FAULT_TWIN || step->fault == FAULT_TERM)
        step->ranks = other_rank (p);
    if (is_for_one (step->fault))
        step->ranks = UINT64_C (1) << rng_below (&p->rng, p->size);
    if (step->fault == FAULT_CLOCK && rng_below (&p->rng, 2) == 0)
        step->ranks |= 1;
    if (step->fault >= FAULT_FULL)
        step->ranks = step->fault < FAULT_CRASH ? 1 : UINT64_MAX >> (64 - p->size);
}

/* --- text --------------------------------------------------------------------------------------- */

static size_t print_ranks (uint64_t ranks, char *buf, size_t size)
{
    size_t n = 0;

    for (unsigned r = 0; r < 64 && n < size; r++)
        if (ranks >> r & 1)
            n += snprintf (buf + n, size - n, "%c%u", n ? ',' : ' ', r);
    return n < size ? n : size - 1;
}

void step_print (const struct step *step, char *buf, size_t size)
{
    static const char *const ways[] = { "", "up", "down", "both ways" };
    size_t n = snprintf (buf, size, "%s", fault_name (step->fault));

    n += print_ranks (step->ranks, buf + n, size - n);
    if (step->fault == FAULT_CLOCK || step->fault == FAULT_BOOT)
        n += snprintf (buf + n, size - n, " by %" PRId32 " ms", step->amount);
    else
        n += snprintf (buf + n, size - n, " for %" PRIu32 " ms", step->hold_ms);
    if (step->fault == FAULT_CUT)
        snprintf (buf + n, size - n, ", %s", ways[step->amount]);
    if (step->fault == FAULT_TWIN && step->amount)
        snprintf (buf + n, size - n, ", which is cut off");
    if (step->fault >= FAULT_FULL && step->fault < FAULT_CRASH && step->amount)
        snprintf (buf + n, size - n, ", then kill 0");
    if (step->fault == FAULT_CORRUPT)
        snprintf (buf + n, size - n, ", one buffer in %" PRId32, step->amount);
    if (step->fault == FAULT_SLOW)
        snprintf (buf + n, size - n, ", %" PRId32 " bytes at a time", step->amount);
    if (step->fault == FAULT_TUNE)
        snprintf (buf + n, size - n, ", with options %" PRId32, step->amount);
}
