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

#include "timing.h"

#define ROUNDS 20000
#define RUNS 5  /* the best of which counts */
#define FILLS 8 /* of a block, in a run that counts processor time */
#define AGE_MS 1000
#define BLOCK 64
#define PAUSE_US 200 /* between calls that come one by one */

struct times {
    double p50_ns, p99_ns, mean_ns;
};

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

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void generate (idt_t *h, uint32_t n)
{
    fluid_t ids[BLOCK];

    if (idt_fluid_generate (h, n, ids) < 0)
        die ("idt_fluid_generate");
}

static struct times measure_once (idt_t *h, const struct subject *s)
{
    static double t[ROUNDS];
    double sum = 0;

    for (int i = 0; i < s->rounds; i++) {
        if (s->pause_us)
            usleep ((useconds_t)s->pause_us);
        double start = now_ns ();
        generate (h, s->n);
        t[i] = now_ns () - start;
        sum += t[i];
    }
    qsort (t, (size_t)s->rounds, sizeof (t[0]), compare);
    return (struct times){ t[s->rounds / 2], t[s->rounds - s->rounds / 100], sum / s->rounds };
}

static double least (double a, double b)
{
    return a < b ? a : b;
}

static struct times measure (const char *uri, const struct subject *s)
{
    idt_t *h = idt_open (uri, NULL);
    struct times best = { 1e18, 1e18, 1e18 };

    if (!h || idt_fluid_prefetch (h, s->ahead, AGE_MS) < 0)
        die (uri);
    for (int i = 0; i < s->rounds / 10; i++)
        generate (h, s->n);
    for (int i = 0; i < RUNS; i++) {
        struct times x = measure_once (h, s);
        best = (struct times){ least (best.p50_ns, x.p50_ns), least (best.p99_ns, x.p99_ns),
                               least (best.mean_ns, x.mean_ns) };
    }
    idt_close (h);
    return best;
}

/* What a call can't do without: it reads the clock. */
static double measure_clock (void)
{
    struct timespec ts;
    double best = 1e18;

    for (int i = 0; i < RUNS; i++) {
        double start = now_ns ();
        for (int k = 0; k < ROUNDS; k++)
            clock_gettime (CLOCK_BOOTTIME, &ts);
        best = least (best, (now_ns () - start) / ROUNDS);
    }
    return best;
}

/* Processor time of an id that lies at hand, with its share of asking for it. */
static double measure_loop (const char *uri, uint32_t ahead, uint32_t n)
{
    idt_t *h = idt_open (uri, NULL);
    struct timespec a, b;
    double best = 1e18;

    if (!h || idt_fluid_prefetch (h, ahead, AGE_MS) < 0)
        die (uri);
    for (int i = 0; i < RUNS + 1; i++) {
        uint32_t calls = FILLS * ahead / n; /* in the first run the size of a block is found */
        clock_gettime (CLOCK_THREAD_CPUTIME_ID, &a);
        for (uint32_t k = 0; k < calls; k++)
            generate (h, n);
        clock_gettime (CLOCK_THREAD_CPUTIME_ID, &b);
        best = least (best, ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / (calls * n));
    }
    idt_close (h);
    return best;
}

static void run (const char *uri)
{
    static const struct subject subjects[] = {
        { "a request", 0, 1, 1000, 0 },    { "a request, now and then", 0, 1, 1000, PAUSE_US },
        { "at hand", 64, 1, ROUNDS, 0 },   { "at hand, now and then", 64, 1, 1000, PAUSE_US },
        { "at hand", 4096, 1, ROUNDS, 0 }, { "at hand, 64 a call", 4096, BLOCK, 1000, 0 },
    };
    double clock_ns = measure_clock ();

    for (size_t i = 0; i < sizeof (subjects) / sizeof (subjects[0]); i++) {
        const struct subject *s = &subjects[i];
        struct times t = measure (uri, s);
        printf ("{\"bench\":\"prefetch-3-hops\",\"way\":\"%s\",\"ahead\":%u,\"p50_ns\":%.0f,\"p99_ns\":%.0f,"
                "\"ns_per_id\":%.1f,\"clock_ns\":%.1f}\n",
                s->name, (unsigned)s->ahead, t.p50_ns, t.p99_ns, t.mean_ns / s->n, clock_ns);
        fflush (stdout);
    }
    static const uint32_t loops[][2] = { { 64, 1 }, { 4096, 1 }, { 4096, BLOCK }, { 65536, BLOCK } };
    for (size_t i = 0; i < sizeof (loops) / sizeof (loops[0]); i++) {
        printf ("{\"bench\":\"prefetch-processor-time\",\"ahead\":%u,\"ids_of_a_call\":%u,\"ns_per_id\":%.2f,"
                "\"clock_ns\":%.1f}\n",
                (unsigned)loops[i][0], (unsigned)loops[i][1], measure_loop (uri, loops[i][0], loops[i][1]), clock_ns);
        fflush (stdout);
    }
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
