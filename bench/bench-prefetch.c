/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-prefetch.c - ids at hand, on an idle rank three hops away from its generator, beside requests and a clock
 *
 * Started alone it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may generate.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "line.h"
#include "timing.h"

#define TURNS 8
#define ROUNDS_MAX 2000 /* of a turn */
#define CLOCKS 1000     /* readings of a round */
#define FILLS 8         /* of a block, in a turn that counts processor time */
#define AGE_MS 1000
#define BLOCK 64
#define PAUSE_US 200 /* between calls that come one by one */

struct subject {
    const char *name;
    uint32_t ahead, n; /* at hand at most; of a call */
    int rounds, pause_us;
};

static void die (const char *what)
{
    fprintf (stderr, "bench-prefetch: %s: %s\n", what, strerror (errno));
    exit (1);
}

static void generate (idt_t *h, uint32_t n)
{
    fluid_t ids[BLOCK];

    if (idt_fluid_generate (h, n, ids) < 0)
        die ("idt_fluid_generate");
}

static idt_t *open_ahead (const char *uri, uint32_t ahead)
{
    idt_t *h = idt_open_with (uri, IDT_O_NOSHM, NULL);

    if (!h || idt_fluid_prefetch (h, ahead, AGE_MS) < 0)
        die (uri);
    return h;
}

/* What a call can't do without: it reads the clock. */
static void time_clock (struct figures *f)
{
    struct timespec ts;
    double start = now_ns ();

    for (int i = 0; i < CLOCKS; i++)
        clock_gettime (CLOCK_BOOTTIME, &ts);
    figures_add (f, (now_ns () - start) / CLOCKS);
    figures_end_turn (f);
}

static void time_calls (struct figures *f, idt_t *h, const struct subject *s)
{
    for (int i = 0; i < s->rounds; i++) {
        if (s->pause_us)
            usleep ((useconds_t)s->pause_us);
        double start = now_ns ();
        generate (h, s->n);
        figures_add (f, (now_ns () - start) / s->n);
    }
    figures_end_turn (f);
}

static void print (const char *name, uint32_t ahead, struct figures *f, struct figures *clock)
{
    line_print (&(struct line){
        .subject = "prefetch",
        .name = name,
        .unit = "ns",
        .figures = f,
        .bare = clock,
        .limit_of = "clock_gettime",
        .size = ahead,
        .size_of = "ids at hand",
    });
    figures_fini (f);
    figures_fini (clock);
}

static void measure_calls (const char *uri, const struct subject *s)
{
    idt_t *h = open_ahead (uri, s->ahead);
    struct figures f = { .of = FIGURES_MEDIAN, .warmup = s->rounds / 2 }, clock = { .warmup = 0 };

    for (int i = 0; i < f.warmup; i++)
        generate (h, s->n);
    for (int turn = 0; turn < TURNS; turn++) {
        time_calls (&f, h, s);
        time_clock (&clock);
    }
    print (s->name, s->ahead, &f, &clock);
    idt_close (h);
}

/* Processor time of an id that lies at hand, with its share of asking for it. */
static double time_loop (idt_t *h, uint32_t calls, uint32_t n)
{
    struct timespec a, b;

    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &a);
    for (uint32_t k = 0; k < calls; k++)
        generate (h, n);
    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / ((double)calls * n);
}

static void measure_loop (const char *uri, uint32_t ahead, uint32_t n)
{
    idt_t *h = open_ahead (uri, ahead);
    struct figures f = { .warmup = 1 }, clock = { .warmup = 0 };
    uint32_t calls = FILLS * ahead / n;
    char name[64];

    time_loop (h, calls, n); /* the size of a block is found */
    for (int turn = 0; turn < TURNS; turn++) {
        figures_add (&f, time_loop (h, calls, n));
        figures_end_turn (&f);
        time_clock (&clock);
    }
    snprintf (name, sizeof (name), "processor time of an id, %u a call", (unsigned)n);
    print (name, ahead, &f, &clock);
    idt_close (h);
}

static void run (const char *uri)
{
    static const struct subject subjects[] = {
        { "one id, by a request", 0, 1, 200, 0 }, { "one id, by a request, now and then", 0, 1, 200, PAUSE_US },
        { "one id", 64, 1, ROUNDS_MAX, 0 },       { "one id, now and then", 64, 1, 200, PAUSE_US },
        { "one id", 4096, 1, ROUNDS_MAX, 0 },     { "an id of 64 a call", 4096, BLOCK, 200, 0 },
    };
    static const uint32_t loops[][2] = { { 64, 1 }, { 4096, 1 }, { 4096, BLOCK }, { 65536, BLOCK } };

    for (size_t i = 0; i < sizeof (subjects) / sizeof (subjects[0]); i++)
        measure_calls (uri, &subjects[i]);
    for (size_t i = 0; i < sizeof (loops) / sizeof (loops[0]); i++)
        measure_loop (uri, loops[i][0], loops[i][1]);
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    char far[256];

    if (argc < 2) {
        execl (idtree, idtree, "start", "-s", "4", "--topology", "kary:1", "-o", "fluid.max-generators=1", "-o",
               "fluid.share=off", argv[0], "inside", (char *)NULL);
        die (idtree);
    }
    if (!uri || strlen (uri) < 2) {
        errno = EINVAL;
        die ("IDTREE_URI");
    }
    snprintf (far, sizeof (far), "%.*s3", (int)strlen (uri) - 1, uri);
    run (far);
    return 0;
}
