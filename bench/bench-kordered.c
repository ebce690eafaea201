/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-kordered.c - what an id costs to make, to write and to read: sno, uid and flax beside FLUID
 *
 * Prints one JSON object a line: nanoseconds for one, the best of ROUNDS short windows, and the
 * ratio to a bare clock_gettime (), measured before, between and after the others in the same run
 * (the best counts).  "At the cap" is the best of CAP_ROUNDS windows that each begin and end with
 * the first id of a unit of time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "idtree/fluid.h"
#include "idtree/flax.h"
#include "idtree/sno.h"
#include "idtree/uid.h"

#define IDS 500 /* in a round: short enough to be left alone by the scheduler now and then */
#define ROUNDS 1600
#define RENEW (65536 / IDS) /* rounds of sno that stay below the cap of a unit */
#define CAP_UNITS 10
#define CAP_ROUNDS 25

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

typedef int (*work_f) (struct bed *bed); /* returns how many ids it worked on */

static double now_ns (clockid_t clock)
{
    struct timespec ts;

    clock_gettime (clock, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* A new generator has a whole unit before it, wherever the clock stands. */
static void renew (struct bed *bed)
{
    sno_gen_destroy (bed->sno_gen);
    bed->sno_gen = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 1 } });
    if (!bed->sno_gen)
        exit (EXIT_FAILURE);
}

/* Nanoseconds for one id, best of ROUNDS.  Ends the program when the work is not done. */
static double measure (work_f work, struct bed *bed)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        if (round % RENEW == 0)
            renew (bed);
        double start_ns = now_ns (CLOCK_MONOTONIC);
        int done = work (bed);
        double ns = (now_ns (CLOCK_MONOTONIC) - start_ns) / IDS;

        if (done != IDS)
            exit (EXIT_FAILURE);
        best = ns < best ? ns : best;
    }
    return best;
}

static int read_clock (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += clock_gettime (CLOCK_REALTIME, &bed->ts) == 0;
    return done;
}

static int sno_make (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += sno_gen_make (bed->sno_gen, 7, -1, &bed->sno[done]) == 0;
    return done;
}

static int sno_write (struct bed *bed)
{
    int done = 0;
    for (; done < IDS; done++)
        sno_format (&bed->sno[done], bed->text[done], sizeof (bed->text[done]));
    return done;
}

/* What the loop and the call of sno_read take by themselves. */
__attribute__ ((noinline)) static int nothing (const char *text, size_t len, sno_t *id, size_t *errpos)
{
    __asm__ volatile("" : : "r"(text), "r"(len), "r"(id), "r"(errpos) : "memory");
    return 0;
}

static int bare_call (struct bed *bed)
{
    int done = 0;
    for (; done < IDS; done++)
        if (nothing (bed->text[done], SNO_TEXT_LEN, &bed->sno[done], NULL) < 0)
            break;
    return done;
}

static int sno_read (struct bed *bed)
{
    int done = 0;
    for (; done < IDS; done++)
        if (sno_parse (bed->text[done], SNO_TEXT_LEN, &bed->sno[done], NULL) < 0)
            break;
    return done;
}

static int uid_make_global (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += uid_gen_make (bed->uid_gen, UID_GLOBAL, -1, &bed->uid[done]) == 0;
    return done;
}

static int uid_make_and_write (struct bed *bed)
{
    int done = 0;
    for (; done < IDS; done++)
        if (uid_gen_make (bed->uid_gen, UID_GLOBAL, -1, &bed->uid[done]) < 0
            || uid_format (&bed->uid[done], NULL, bed->text[done], sizeof (bed->text[done])) < 0)
            break;
    return done;
}

static int uid_write (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += uid_format (&bed->uid[done], NULL, bed->text[done], sizeof (bed->text[done])) == UID_GLOBAL_TEXT_LEN;
    return done;
}

static int uid_read (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += uid_parse (bed->text[done], UID_GLOBAL_TEXT_LEN, NULL, &bed->uid[done], NULL) == 0;
    return done;
}

static int flax_make (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += flax_gen_make (bed->flax_gen, &bed->flax[done]) == 0;
    return done;
}

static int flax_make_and_write (struct bed *bed)
{
    int done = 0;
    for (; done < IDS && flax_gen_make (bed->flax_gen, &bed->flax[done]) == 0; done++)
        flax_format (&bed->flax[done], bed->text[done], sizeof (bed->text[done]));
    return done;
}

static int flax_write (struct bed *bed)
{
    int done = 0;
    for (; done < IDS; done++)
        flax_format (&bed->flax[done], bed->text[done], sizeof (bed->text[done]));
    return done;
}

static int flax_read (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += flax_parse (bed->text[done], FLAX_TEXT_LEN, &bed->flax[done], NULL) == 0;
    return done;
}

/* As a broker does, the clock is read for each request; the time handed in runs as fast as ids fill
 * it.
 */
static int fluid_make (struct bed *bed)
{
    int done = 0;

    fluid_gen_init (&bed->fluid_gen, &(struct fluid_gen_config){ .generator = 1, .hi_ms = FLUID_TIMESTAMP_MAX + 1 });
    while (done < IDS) {
        clock_gettime (CLOCK_REALTIME, &bed->ts);
        done += fluid_gen_reserve (&bed->fluid_gen, (uint64_t)done / FLUID_PER_MS, 1, &bed->fluid[done]) == 1;
    }
    return done;
}

static int fluid_write (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += fluid_format (bed->fluid[done], FLUID_F58, bed->text[done], FLUID_TEXT_MAX) > 0;
    return done;
}

static int fluid_read (struct bed *bed)
{
    int done = 0;
    while (done < IDS)
        done += fluid_parse (bed->text[done], strlen (bed->text[done]), &bed->fluid[done], NULL) == 0;
    return done;
}

/* In the order in which each needs what the ones before it made. */
static const struct {
    const char *name;
    work_f work;
} cases[] = {
    { "bare call", bare_call },
    { "fluid make", fluid_make },
    { "fluid F58 encode", fluid_write },
    { "fluid F58 decode", fluid_read },
    { "sno make, below the cap", sno_make },
    { "sno encode", sno_write },
    { "sno decode", sno_read },
    { "uid global make", uid_make_global },
    { "uid global encode", uid_write },
    { "uid global decode", uid_read },
    { "uid global make and encode", uid_make_and_write },
    { "flax make", flax_make },
    { "flax encode", flax_write },
    { "flax decode", flax_read },
    { "flax make and encode", flax_make_and_write },
};

#define CASES (sizeof (cases) / sizeof (cases[0]))

/* Make all ids of a unit that are left, and the first of the next.  Returns when that one began. */
static double start_unit (struct bed *bed)
{
    while (sno_gen_try (bed->sno_gen, 7, &bed->sno[0], NULL) == 0)
        ;
    if (sno_gen_make (bed->sno_gen, 7, -1, &bed->sno[0]) < 0)
        exit (EXIT_FAILURE);
    return (double)sno_unix_ns (&bed->sno[0]);
}

/* From the start of a unit to an id made CAP_UNITS later. */
static double at_cap (struct bed *bed)
{
    double best_ns = 1e18;

    for (int round = 0; round < CAP_ROUNDS; round++) {
        double start_ns = start_unit (bed);
        int done = 0;
        while (done < CAP_UNITS * (int)sno_gen_cap (bed->sno_gen))
            done += sno_gen_make (bed->sno_gen, 7, -1, &bed->sno[0]) == 0;
        double ns = (now_ns (CLOCK_REALTIME) - start_ns) / done;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return best_ns;
}

static struct bed *bed_create (void)
{
    struct bed *bed = calloc (1, sizeof (*bed));
    struct uid_gen_config config = { .node = uid_node_named ("uid@127.0.0.1"), .ahead_us = 1000000 };

    if (!bed || !(bed->uid_gen = uid_gen_create (&config)) || !(bed->flax_gen = flax_gen_create (NULL)))
        exit (EXIT_FAILURE);
    return bed;
}

int main (void)
{
    struct bed *bed = bed_create ();
    double ns[CASES], clock_ns = 1e18;

    for (size_t i = 0; i < CASES; i++) {
        double bare_ns = measure (read_clock, bed);
        clock_ns = bare_ns < clock_ns ? bare_ns : clock_ns;
        ns[i] = measure (cases[i].work, bed);
    }
    printf ("{\"bench\":\"clock_gettime\",\"ns\":%.2f}\n", clock_ns);
    for (size_t i = 0; i < CASES; i++)
        printf ("{\"bench\":\"%s\",\"ns\":%.2f,\"to_clock_gettime\":%.2f}\n", cases[i].name, ns[i], ns[i] / clock_ns);
    printf ("{\"bench\":\"sno make, at the cap of 61.04\",\"ns\":%.2f}\n", at_cap (bed));
    sno_gen_destroy (bed->sno_gen);
    uid_gen_destroy (bed->uid_gen);
    flax_gen_destroy (bed->flax_gen);
    free (bed);
    return EXIT_SUCCESS;
}
