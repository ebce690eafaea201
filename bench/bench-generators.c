/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-generators.c - the time to make an id: FLUID, sno, uid and flax, compared with a bare clock_gettime ()
 *
 * bench-codecs measures the text forms of these ids. A sno generator cannot exceed the cap of its format, however fast
 * the code is.
 */
#include <stdlib.h>
#include <time.h>

#include "idtree/flax.h"
#include "idtree/fluid.h"
#include "idtree/sno.h"
#include "idtree/uid.h"
#include "loops.h"

#define IDS 500    /* ids of a round, which is so short that some rounds are not interrupted */
#define ROUNDS 125 /* rounds of a turn: a new sno generator can make their ids below the cap of its first unit */
#define TURNS 16
#define CAP_UNITS 10
#define CAP_ROUNDS 6
#define CAP_NS (4e6 / 65536) /* ns between two ids at the cap of the format: 65,536 ids in 4 ms */

struct bed {
    struct sno_gen *sno_gen;
    struct uid_gen *uid_gen;
    struct flax_gen *flax_gen;
    struct fluid_gen fluid_gen;
    sno_t sno[IDS];
    struct uid uid[IDS];
    flax_t flax[IDS];
    fluid_t fluid[IDS];
    char text[IDS][FLUID_TEXT_MAX];
    struct timespec ts;
};

static size_t read_clock (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += clock_gettime (CLOCK_REALTIME, &bed->ts) == 0;
    return done;
}

/* --- FLUID: the caller passes in the time, and advances it as fast as ids use it up --- */

static void fluid_begin (struct bed *bed)
{
    fluid_gen_init (&bed->fluid_gen, &(struct fluid_gen_config){ .generator = 1, .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
}

/* Read the clock for each request, like a broker. */
static size_t fluid_make (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    fluid_begin (bed);
    while (done < IDS) {
        clock_gettime (CLOCK_REALTIME, &bed->ts);
        done += fluid_gen_reserve (&bed->fluid_gen, (uint64_t)done / FLUID_PER_MS, 1, &bed->fluid[done]) == 1;
    }
    return done;
}

static size_t fluid_reserve (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    fluid_begin (bed);
    for (int i = 0; i < IDS; i++)
        done += fluid_gen_reserve (&bed->fluid_gen, i / FLUID_PER_MS, 1, &bed->fluid[i]) == 1;
    return done;
}

static size_t fluid_reserve_in (struct bed *bed, uint64_t granules)
{
    size_t done = 0;
    uint64_t ms = 0;

    fluid_begin (bed);
    while (done < IDS)
        if (fluid_gen_reserve_in (&bed->fluid_gen, ms, granules, 1, &bed->fluid[done]) == 1)
            done++;
        else
            ms++;
    return done;
}

static size_t fluid_reserve_all (void *arg)
{
    return fluid_reserve_in (arg, UINT64_MAX);
}

static size_t fluid_reserve_holes (void *arg)
{
    return fluid_reserve_in (arg, UINT64_C (0x00ff0f0f33335555));
}

/* --- sno, uid, flax --- */

/* Make a new generator, because it can use a whole unit at any time. */
static void sno_renew (void *arg, int unused)
{
    struct bed *bed = arg;

    sno_gen_destroy (bed->sno_gen);
    bed->sno_gen = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 1 } });
    if (!bed->sno_gen)
        exit (EXIT_FAILURE);
}

static size_t sno_make (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += sno_gen_make (bed->sno_gen, 7, -1, &bed->sno[done]) == 0;
    return done;
}

static size_t uid_make_global (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += uid_gen_make (bed->uid_gen, UID_GLOBAL, -1, &bed->uid[done]) == 0;
    return done;
}

static size_t uid_make_and_write (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    for (; done < IDS; done++)
        if (uid_gen_make (bed->uid_gen, UID_GLOBAL, -1, &bed->uid[done]) < 0
            || uid_format (&bed->uid[done], NULL, bed->text[done], sizeof (bed->text[done])) < 0)
            break;
    return done;
}

static size_t flax_make (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    while (done < IDS)
        done += flax_gen_make (bed->flax_gen, &bed->flax[done]) == 0;
    return done;
}

static size_t flax_make_and_write (void *arg)
{
    struct bed *bed = arg;
    size_t done = 0;

    for (; done < IDS && flax_gen_make (bed->flax_gen, &bed->flax[done]) == 0; done++)
        flax_format (&bed->flax[done], bed->text[done], sizeof (bed->text[done]));
    return done;
}

static const struct {
    const char *name;
    size_t (*work) (void *bed);
    void (*prepare) (void *bed, int arg);
} cases[] = {
    { "clock_gettime", read_clock, NULL }, /* the limit of all other loops */
    { "fluid", fluid_make, NULL },
    { "fluid without a clock", fluid_reserve, NULL },
    { "fluid without a clock, all granules", fluid_reserve_all, NULL },
    { "fluid without a clock, granules with holes", fluid_reserve_holes, NULL },
    { "sno, below the cap", sno_make, sno_renew },
    { "uid, global", uid_make_global, NULL },
    { "uid, global, and its text", uid_make_and_write, NULL },
    { "flax", flax_make, NULL },
    { "flax and its text", flax_make_and_write, NULL },
};

#define CASES (sizeof (cases) / sizeof (cases[0]))

static void measure_loops (struct bed *bed)
{
    struct loop loops[CASES] = { 0 };

    for (size_t i = 0; i < CASES; i++)
        loops[i] = (struct loop){
            .name = cases[i].name,
            .work = cases[i].work,
            .prepare = cases[i].prepare,
            .count = IDS,
            .rounds = ROUNDS - ROUNDS / 10 - 1, /* the rounds of the warm-up must be below the cap, too */
        };
    loops_run (loops, CASES, bed, TURNS);
    for (size_t i = 0; i < CASES; i++)
        line_print (&(struct line){
            .subject = "generators",
            .name = cases[i].name,
            .unit = "ns",
            .figures = &loops[i].figures,
            .bare = i > 0 ? &loops[0].figures : NULL,
            .limit_of = "clock_gettime",
        });
    for (size_t i = 0; i < CASES; i++)
        figures_fini (&loops[i].figures);
}

/* --- sno at its cap --- */

static double real_ns (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Make all remaining ids of a unit, and the first id of the next unit. Returns when that next unit began. If the
 * machine is too slow to use up a unit, this would never end, so it stops after the ids of two units.
 */
static double start_unit (struct bed *bed)
{
    uint32_t left = 2 * sno_gen_cap (bed->sno_gen);

    while (left > 0 && sno_gen_try (bed->sno_gen, 7, &bed->sno[0], NULL) == 0)
        left--;
    if (sno_gen_make (bed->sno_gen, 7, -1, &bed->sno[0]) < 0)
        exit (EXIT_FAILURE);
    return (double)sno_unix_ns (&bed->sno[0]);
}

/* Measure from the start of a unit until an id is made CAP_UNITS units later. */
static void measure_cap (struct bed *bed)
{
    struct figures f = { 0 };

    for (int turn = 0; turn < CAP_ROUNDS; turn++) {
        double start_ns = start_unit (bed);
        int done = 0;
        while (done < CAP_UNITS * (int)sno_gen_cap (bed->sno_gen))
            done += sno_gen_make (bed->sno_gen, 7, -1, &bed->sno[0]) == 0;
        figures_add (&f, (real_ns () - start_ns) / done);
        figures_end_turn (&f);
    }
    line_print (&(struct line){
        .subject = "generators",
        .name = "sno, at the cap",
        .unit = "ns",
        .figures = &f,
        .limit = CAP_NS,
        .limit_of = "the format: 65536 in 4 ms",
    });
    figures_fini (&f);
}

int main (void)
{
    struct bed *bed = calloc (1, sizeof (*bed));
    struct uid_gen_config config = { .node = uid_node_named ("uid@127.0.0.1"), .ahead_us = 1000000 };

    if (!bed || !(bed->uid_gen = uid_gen_create (&config)) || !(bed->flax_gen = flax_gen_create (NULL)))
        return EXIT_FAILURE;
    measure_loops (bed);
    measure_cap (bed);
    sno_gen_destroy (bed->sno_gen);
    uid_gen_destroy (bed->uid_gen);
    flax_gen_destroy (bed->flax_gen);
    free (bed);
    return EXIT_SUCCESS;
}
