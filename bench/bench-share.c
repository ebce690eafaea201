/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-share.c - what a request costs at a rank that borrows, three hops below the one that owns the generator
 *
 * A chain of four brokers, of which rank 0 alone owns a generator.  The same process asks rank 0 and rank 3 in turn:
 * first while rank 3 forwards, then while it borrows, which it does when it is asked for a while (fluid.share=auto).
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "timing.h"

#define ROUNDS 2000     /* requests in a row to one rank */
#define TURNS 20        /* the best of which counts */
#define MAX_TURNS 20000 /* until rank 3 borrows */

static const char *const shares[] = { "off", "auto" };

static void die (const char *what)
{
    fprintf (stderr, "bench-share: %s: %s\n", what, strerror (errno));
    exit (1);
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median time of a request, in seconds. */
static double median (idt_t *h, int rounds)
{
    static double t[ROUNDS];
    fluid_t id;

    for (int i = 0; i < rounds; i++) {
        double start = now_s ();

        if (idt_fluid_generate (h, 1, &id) < 0)
            die ("idt_fluid_generate");
        t[i] = now_s () - start;
    }
    qsort (t, (size_t)rounds, sizeof (t[0]), compare);
    return t[rounds / 2];
}

static bool borrows (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    const char *info = NULL;
    bool yes = f && idt_rpc_get (f, &info) == 0 && info && strstr (info, "\"borrowing\"");

    idt_future_destroy (f);
    return yes;
}

static void measure (const char *uri, const char *share)
{
    double best[2] = { 1E9, 1E9 };
    char leaf[256];
    idt_t *h[2];

    snprintf (leaf, sizeof (leaf), "%.*s3", (int)strlen (uri) - 1, uri);
    if (!(h[0] = idt_open (uri, NULL)) || !(h[1] = idt_open (leaf, NULL)))
        die (leaf);
    for (int i = 0; i < MAX_TURNS && strcmp (share, "off") != 0 && !borrows (h[1]); i++)
        median (h[1], 10);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 2; i++) {
            double t = median (h[i], ROUNDS);

            best[i] = t < best[i] ? t : best[i];
        }
    printf (
        "{\"bench\":\"share\",\"share\":\"%s\",\"borrows\":%s,\"active_p50_us\":%.2f,\"idle_p50_us\":%.2f,\"ratio\":%.3f}\n",
        share, borrows (h[1]) ? "true" : "false", best[0] * 1E6, best[1] * 1E6, best[1] / best[0]);
    idt_close (h[0]);
    idt_close (h[1]);
}

static int start (const char *self, const char *share)
{
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    char command[1024];

    snprintf (command, sizeof (command),
              "%s start -s 4 --topology kary:1 -o log-stderr-level=0 -o fluid.max-generators=1 -o fluid.share=%s %s %s",
              idtree, share, self, share);
    return system (command);
}

/* Inside of an instance: "auto" or "off"; else none. */
int main (int argc, char **argv)
{
    int failed = 0;

    if (argc > 1 && getenv ("IDTREE_URI")) {
        measure (getenv ("IDTREE_URI"), argv[1]);
        return 0;
    }
    for (int i = 0; i < 2; i++)
        failed += start (argv[0], shares[i]) != 0;
    return failed > 0;
}
