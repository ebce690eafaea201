/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-fluid.c - what the text forms of a FLUID and its generator cost
 *
 * Prints one JSON object a line: nanoseconds for one id, the best of ROUNDS, and the ratio to what
 * libc takes for the same in decimal (snprintf, strtoull), measured in the same run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idtree/fluid.h"
#include "timing.h"

#define IDS 20000
#define ROUNDS 9

struct sample {
    fluid_t id[IDS];
    char text[IDS][FLUID_TEXT_MAX];
    enum fluid_form form;
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

static uint64_t libc_encode (struct sample *s)
{
    uint64_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += snprintf (s->text[i], FLUID_TEXT_MAX, "%" PRIu64, s->id[i]) > 0;
    return done;
}

static uint64_t libc_parse (struct sample *s)
{
    uint64_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += strtoull (s->text[i], NULL, 10) == s->id[i];
    return done;
}

static uint64_t encode (struct sample *s)
{
    uint64_t done = 0;

    for (int i = 0; i < IDS; i++)
        done += fluid_format (s->id[i], s->form, s->text[i], FLUID_TEXT_MAX) > 0;
    return done;
}

static uint64_t parse (struct sample *s)
{
    uint64_t done = 0;

    for (int i = 0; i < IDS; i++) {
        fluid_t id;

        done += fluid_parse (s->text[i], strlen (s->text[i]), &id, NULL) == 0 && id == s->id[i];
    }
    return done;
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

/* Ids as an instance of some days and 16384 ranks makes them. */
static void make_ids (struct sample *s)
{
    uint64_t x = UINT64_C (0x9e3779b97f4a7c15);

    for (int i = 0; i < IDS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        s->id[i] = x >> 11;
    }
}

int main (void)
{
    struct sample *s = malloc (sizeof (*s));

    if (!s)
        return EXIT_FAILURE;
    make_ids (s);
    double libc_encode_ns = measure (libc_encode, s);
    double libc_parse_ns = measure (libc_parse, s);

    for (int form = 0; form < FLUID_FORM_COUNT; form++) {
        s->form = form;
        double encode_ns = measure (encode, s);
        double parse_ns = measure (parse, s);

        printf ("{\"bench\":\"fluid.form\",\"form\":\"%s\",\"encode_ns\":%.1f,\"parse_ns\":%.1f,"
                "\"encode_to_snprintf\":%.2f,\"parse_to_strtoull\":%.2f}\n",
                fluid_form_name (form), encode_ns, parse_ns, encode_ns / libc_encode_ns, parse_ns / libc_parse_ns);
    }
    double reserve_ns = measure (reserve, s);
    double all_ns = measure (reserve_in_all, s);
    double holes_ns = measure (reserve_in_holes, s);

    printf ("{\"bench\":\"fluid.gen\",\"reserve_ns\":%.1f,\"in_all_ratio\":%.2f,\"in_holes_ratio\":%.2f}\n", reserve_ns,
            all_ns / reserve_ns, holes_ns / reserve_ns);
    free (s);
    return EXIT_SUCCESS;
}
