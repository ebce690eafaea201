/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-lease.c - what leases cost a local request: nothing that can be measured
 *
 * One instance is started inside of the other, one for each length of lease, so that the same process asks all of them
 * in turn, and whatever else the machine does falls upon all.  An hour is as good as none.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "timing.h"

#define ROUNDS 5000 /* requests in a row to one instance */
#define TURNS 30    /* the best of which counts */

static const char *const leases[] = { "1h", "60s", "100ms" };
#define NLEASES ((int)(sizeof (leases) / sizeof (leases[0])))

static void die (const char *what)
{
    fprintf (stderr, "bench-lease: %s: %s\n", what, strerror (errno));
    exit (1);
}

static int compare (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median time of a request, in seconds. */
static double median (idt_t *h)
{
    static double t[ROUNDS];
    fluid_t id;

    for (int i = 0; i < ROUNDS; i++) {
        double start = now_s ();

        if (idt_fluid_generate (h, 1, &id) < 0)
            die ("idt_fluid_generate");
        t[i] = now_s () - start;
    }
    qsort (t, ROUNDS, sizeof (t[0]), compare);
    return t[ROUNDS / 2];
}

static void measure (char **uris)
{
    idt_t *h[NLEASES];
    double best[NLEASES];

    for (int i = 0; i < NLEASES; i++) {
        best[i] = 1E9;
        if (!(h[i] = idt_open (uris[i], NULL)))
            die (uris[i]);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < NLEASES; i++) {
            double t = median (h[i]);

            best[i] = t < best[i] ? t : best[i];
        }
    for (int i = 0; i < NLEASES; i++) {
        printf ("{\"bench\":\"lease-cost\",\"lease\":\"%s\",\"p50_us\":%.2f,\"ratio\":%.3f}\n", leases[i],
                best[i] * 1E6, best[i] / best[0]);
        idt_close (h[i]);
    }
}

/* Arguments: the URIs of the instances around us, but for the innermost one, which is in the environment. */
int main (int argc, char **argv)
{
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    char *uris[NLEASES + 1], lease[64];
    char *args[NLEASES + 10] = { "idtree", "start", "-o", "log-stderr-level=0", "-o", lease, argv[0], "inside" };
    int n = 0, nargs = 8;

    for (int i = 2; i < argc && n < NLEASES; i++)
        uris[n++] = argv[i];
    if (argc > 1 && getenv ("IDTREE_URI"))
        uris[n++] = getenv ("IDTREE_URI");
    if (n == NLEASES) {
        measure (uris);
        return 0;
    }
    snprintf (lease, sizeof (lease), "fluid.lease=%s", leases[n]);
    for (int i = 0; i < n; i++)
        args[nargs++] = uris[i];
    execv (idtree, args);
    die (idtree);
    return 1;
}
