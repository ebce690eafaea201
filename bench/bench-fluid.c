/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-fluid.c - what the generator of a FLUID costs; its text forms are in bench-codecs
 *
 * Prints a JSON object: nanoseconds for one id, the best of ROUNDS, and what granules add to it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "idtree/fluid.h"
#include "timing.h"

#define IDS 20000
#define ROUNDS 9

struct sample {
    fluid_t id[IDS];
};

typedef uint64_t (*work_f) (struct sample *s);

/* Nanoseconds for one id, best of ROUNDS.  Ends the program when the work is not done. */
static double measure (work_f work, struct sample *s)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        double start_ns = now_ns ();
        uint64_t done = work (s);
        double ns = (now_ns () - start_ns) / IDS;

        if (done != IDS)
            exit (EXIT_FAILURE);
        best = ns < best ? ns : best;
    }
    return best;
}

/* One id at a time, as fast as milliseconds are handed in. */
static uint64_t reserve (struct sample *s)
{
    struct fluid_gen gen;
    uint64_t done = 0;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .generator = 1, .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
    for (int i = 0; i < IDS; i++)
        done += fluid_gen_reserve (&gen, i / FLUID_PER_MS, 1, &s->id[i]) == 1;
    return done;
}

/* The same by granules: of all, or with holes. */
static uint64_t reserve_in (struct sample *s, uint64_t granules)
{
    struct fluid_gen gen;
    uint64_t done = 0, ms = 0;

    fluid_gen_init (&gen, &(struct fluid_gen_config){ .generator = 1, .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
    while (done < IDS)
        if (fluid_gen_reserve_in (&gen, ms, granules, 1, &s->id[done]) == 1)
            done++;
        else
            ms++;
    return done;
}

static uint64_t reserve_in_all (struct sample *s)
{
    return reserve_in (s, UINT64_MAX);
}

static uint64_t reserve_in_holes (struct sample *s)
{
    return reserve_in (s, UINT64_C (0x00ff0f0f33335555));
}

int main (void)
{
    struct sample *s = malloc (sizeof (*s));

    if (!s)
        return EXIT_FAILURE;
    double reserve_ns = measure (reserve, s);
    double all_ns = measure (reserve_in_all, s);
    double holes_ns = measure (reserve_in_holes, s);

    printf ("{\"bench\":\"fluid.gen\",\"reserve_ns\":%.1f,\"in_all_ratio\":%.2f,\"in_holes_ratio\":%.2f}\n", reserve_ns,
            all_ns / reserve_ns, holes_ns / reserve_ns);
    free (s);
    return EXIT_SUCCESS;
}
