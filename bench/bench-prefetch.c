/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-prefetch.c - prefetched ids on an idle rank three hops away from its generator, compared with requests and a
 * clock
 *
 * If there is no instance, it runs itself under `idtree start` in a chain of four brokers of which only rank 0 may
 * generate.
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

#define TURNS 12
#define AGE_MS 1000
#define MOST 64 /* ids of a call */
#define SELDOM_ROUNDS 200
#define SELDOM_US 200 /* us between two single calls */
#define OFTEN_ROUNDS 1000
#define FILLS 4 /* how often a round that measures processor time fills a block */

static void die (const char *what)
{
    fprintf (stderr, "bench-prefetch: %s: %s\n", what, strerror (errno));
    exit (1);
}

static idt_t *open_with (const char *uri, uint32_t ahead)
{
    idt_t *h = idt_open (uri, NULL);

    if (!h || idt_fluid_prefetch (h, ahead, AGE_MS) < 0)
        die (uri);
    return h;
}

static void generate (idt_t *h, uint32_t n)
{
    fluid_t ids[MOST];

    if (idt_fluid_generate (h, n, ids) < 0)
        die ("idt_fluid_generate");
}

/* --- calls that come one by one ------------------------------------------------------------- */

static void time_seldom (struct figures *median, struct figures *p99, idt_t *h)
{
    for (int i = 0; i < SELDOM_ROUNDS; i++) {
        usleep (SELDOM_US);
        double start = now_ns ();
        generate (h, 1);
        double us = (now_ns () - start) / 1e3;
        figures_add (median, us);
        figures_add (p99, us);
    }
    figures_end_turn (median);
    figures_end_turn (p99);
}

static void measure_seldom (const char *uri)
{
    static const char *const names[2][2] = {
        { "three hops, a call each 200 us", "three hops, a call each 200 us, one in a hundred" },
        { "64 prefetched, a call each 200 us", "64 prefetched, a call each 200 us, one in a hundred" },
    };
    static const enum figures_of of[] = { FIGURES_MEDIAN, FIGURES_P99 };
    idt_t *h[] = { open_with (uri, 0), open_with (uri, 64) };
    struct figures f[2][2] = { 0 };

    for (int way = 0; way < 2; way++)
        for (int k = 0; k < 2; k++)
            f[way][k].of = of[k];
    for (int turn = 0; turn < TURNS; turn++)
        for (int way = 0; way < 2; way++)
            time_seldom (&f[way][0], &f[way][1], h[way]);
    for (int way = 0; way < 2; way++)
        for (int k = 0; k < 2; k++)
            line_print (&(struct line){
                .subject = "prefetch",
                .name = names[way][k],
                .unit = "us",
                .figures = &f[way][k],
                .bare = way == 1 ? &f[0][k] : NULL,
                .limit_of = "a request",
            });
    for (int way = 0; way < 2; way++) {
        idt_close (h[way]);
        for (int k = 0; k < 2; k++)
            figures_fini (&f[way][k]);
    }
}

/* --- calls without a pause ------------------------------------------------------------------ */

static void time_clock (struct figures *f)
{
    struct timespec ts;
    double start = now_ns ();

    for (int i = 0; i < OFTEN_ROUNDS; i++)
        clock_gettime (CLOCK_BOOTTIME, &ts);
    figures_add (f, (now_ns () - start) / OFTEN_ROUNDS);
    figures_end_turn (f);
}

static void time_often (struct figures *f, idt_t *h)
{
    for (int i = 0; i < OFTEN_ROUNDS; i++) {
        double start = now_ns ();
        generate (h, 1);
        figures_add (f, now_ns () - start);
    }
    figures_end_turn (f);
}

static void measure_often (const char *uri)
{
    struct figures clock = { .of = FIGURES_BEST }, f = { .of = FIGURES_MEDIAN, .warmup = OFTEN_ROUNDS * TURNS };
    idt_t *h = open_with (uri, 4096);

    for (int i = 0; i < OFTEN_ROUNDS * TURNS; i++)
        generate (h, 1);
    for (int turn = 0; turn < TURNS; turn++) {
        time_clock (&clock);
        time_often (&f, h);
    }
    line_print (&(struct line){
        .subject = "prefetch",
        .name = "4096 prefetched, calls without a pause",
        .unit = "ns",
        .figures = &f,
        .bare = &clock,
        .limit_of = "a clock reading",
    });
    figures_fini (&clock);
    figures_fini (&f);
    idt_close (h);
}

/* --- processor time of an id, including its share of the requests ----------- */

static double processor_ns (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void measure_processor (const char *uri, uint32_t ahead, uint32_t n, const char *name)
{
    struct figures clock = { .of = FIGURES_BEST }, f = { .of = FIGURES_BEST, .warmup = 1 };
    idt_t *h = open_with (uri, ahead);
    uint32_t calls = FILLS * ahead / n;

    for (int turn = -1; turn < TURNS; turn++) {
        double start = processor_ns ();
        for (uint32_t i = 0; i < calls; i++)
            generate (h, n);
        if (turn < 0) /* this turn only finds the number of calls */
            continue;
        figures_add (&f, (processor_ns () - start) / (calls * n));
        figures_end_turn (&f);
        time_clock (&clock);
    }
    line_print (&(struct line){
        .subject = "prefetch",
        .name = name,
        .unit = "ns",
        .figures = &f,
        .bare = &clock,
        .share = 1. / n,
        .limit_of = "a clock reading a call",
        .size = ahead,
        .size_of = "ids prefetched",
    });
    figures_fini (&clock);
    figures_fini (&f);
    idt_close (h);
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
    measure_seldom (far);
    measure_often (far);
    measure_processor (far, 64, 1, "processor time of an id");
    measure_processor (far, 4096, 1, "processor time of an id");
    measure_processor (far, 4096, MOST, "processor time of an id, 64 a call");
    measure_processor (far, 65536, MOST, "processor time of an id, 64 a call");
    return 0;
}
