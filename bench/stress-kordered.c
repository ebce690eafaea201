/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stress-kordered.c - one generator, many threads, the real clock, hundreds of millions of ids, no duplicate
 *
 * usage: stress-kordered [IDS [THREADS]]      default: 300000000 ids in all, 8 threads
 *
 * Every id is marked in a bitmap of its step of time when it is made. If a bit is marked already, the id is a
 * duplicate. Prints one JSON object a line, and fails if there was a duplicate. sno and uid are tested one after the
 * other.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "idtree/sno.h"
#include "idtree/uid.h"
#include "timing.h"

#define STEPS (1 << 20) /* steps for which ids can be marked: 70 minutes for sno, 18 minutes for uid */

struct stress {
    const char *name;
    uint32_t per_step; /* most ids in a step, times the number of timelines */
    uint64_t first_step;
    _Atomic (_Atomic uint64_t *) maps[STEPS]; /* a bit for each id of a step, allocated when the step begins */
    _Atomic uint64_t duplicates;
    uint64_t ids_per_thread;
    void *gen;
    int (*make) (void *gen, uint64_t *step, uint32_t *bit);
};

static int make_sno (void *gen, uint64_t *step, uint32_t *bit)
{
    sno_t id;

    if (sno_gen_make (gen, 0, -1, &id) < 0)
        return -1;
    struct sno_fields f = sno_split (&id);
    *step = f.unit;
    *bit = f.tick << 16 | f.sequence;
    return 0;
}

static int make_uid (void *gen, uint64_t *step, uint32_t *bit)
{
    struct uid id;

    if (uid_gen_make (gen, UID_LOCAL, -1, &id) < 0)
        return -1;
    *step = (uint64_t)(id.a * 1000000 + id.b) * UID_STEPS_PER_SECOND + (uint64_t)id.c / UID_STEP_US;
    *bit = (uint32_t)id.sequence;
    return 0;
}

static _Atomic uint64_t *map_of (struct stress *s, uint64_t step)
{
    if (step < s->first_step || step - s->first_step >= STEPS) {
        fprintf (stderr, "%s: the clock moved too far for this test\n", s->name);
        exit (EXIT_FAILURE);
    }
    _Atomic (_Atomic uint64_t *) *slot = &s->maps[step - s->first_step];
    _Atomic uint64_t *map = atomic_load (slot), *fresh;
    if (map)
        return map;
    if (!(fresh = calloc (s->per_step / 64, sizeof (*fresh))))
        exit (EXIT_FAILURE);
    if (atomic_compare_exchange_strong (slot, &map, fresh))
        return fresh;
    free (fresh);
    return map;
}

static void *work (void *arg)
{
    struct stress *s = arg;
    uint64_t step;
    uint32_t bit;

    for (uint64_t i = 0; i < s->ids_per_thread; i++) {
        if (s->make (s->gen, &step, &bit) < 0)
            exit (EXIT_FAILURE);
        uint64_t mask = UINT64_C (1) << bit % 64;
        if (atomic_fetch_or_explicit (&map_of (s, step)[bit / 64], mask, memory_order_relaxed) & mask)
            atomic_fetch_add (&s->duplicates, 1);
    }
    return NULL;
}

static uint64_t run (struct stress *s, int count)
{
    pthread_t threads[256];
    double start_s = now_s ();
    unsigned steps = 0;

    for (int i = 0; i < count; i++)
        if (pthread_create (&threads[i], NULL, work, s))
            exit (EXIT_FAILURE);
    for (int i = 0; i < count; i++)
        pthread_join (threads[i], NULL);
    double took_s = now_s () - start_s;
    for (size_t i = 0; i < STEPS; i++) {
        steps += s->maps[i] != NULL;
        free (s->maps[i]);
    }
    uint64_t ids = s->ids_per_thread * (uint64_t)count;
    printf ("{\"stress\":\"%s\",\"threads\":%d,\"ids\":%llu,\"steps\":%u,\"seconds\":%.1f,\"ns\":%."
            "1f,\"duplicates\":%llu}\n",
            s->name, count, (unsigned long long)ids, steps, took_s, took_s * 1e9 / (double)ids,
            (unsigned long long)s->duplicates);
    fflush (stdout);
    return s->duplicates;
}

static struct stress *stress_create (const char *name, uint32_t per_step, uint64_t first_step, uint64_t ids_per_thread)
{
    struct stress *s = calloc (1, sizeof (*s));

    if (!s)
        exit (EXIT_FAILURE);
    s->name = name;
    s->per_step = per_step;
    s->first_step = first_step;
    s->ids_per_thread = ids_per_thread;
    return s;
}

static uint64_t stress_sno (uint64_t ids, int threads)
{
    uint64_t unit = 0;

    sno_unit_at ((int64_t)time (NULL) * 1000000000, &unit);
    struct stress *s = stress_create ("sno", 2 * SNO_PER_UNIT, unit - 1000, ids / (uint64_t)threads);
    s->gen = sno_gen_create (&(struct sno_gen_config){ .start = { .partition = 1 } });
    s->make = make_sno;
    uint64_t duplicates = run (s, threads);
    sno_gen_destroy (s->gen);
    free (s);
    return duplicates;
}

static uint64_t stress_uid (uint64_t ids, int threads)
{
    uint64_t step = ((uint64_t)time (NULL) - 1) * UID_STEPS_PER_SECOND;
    struct stress *s = stress_create ("uid", UID_PER_STEP, step, ids / (uint64_t)threads);

    s->gen = uid_gen_create (&(struct uid_gen_config){ .ahead_us = 0 });
    s->make = make_uid;
    uint64_t duplicates = run (s, threads);
    uid_gen_destroy (s->gen);
    free (s);
    return duplicates;
}

int main (int argc, char **argv)
{
    uint64_t ids = argc > 1 ? strtoull (argv[1], NULL, 10) : 300000000;
    int threads = argc > 2 ? atoi (argv[2]) : 8;

    if (ids < 1 || threads < 1 || threads > 256) {
        fprintf (stderr, "usage: stress-kordered [IDS [THREADS]]\n");
        return EXIT_FAILURE;
    }
    uint64_t duplicates = stress_sno (ids, threads);
    duplicates += stress_uid (ids, threads);
    return duplicates ? EXIT_FAILURE : EXIT_SUCCESS;
}
