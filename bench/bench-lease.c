/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-lease.c - the effect of leases on a local request, which should be too small to measure
 *
 * Several instances run, each started inside the one before, with leases of different lengths. The same process sends
 * requests to all of them in turn, so that other load of the machine affects all of them. An instance with leases of an
 * hour stands for one without leases.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "line.h"

#define ROUNDS 2000 /* requests that are sent to one instance in a row */
#define TURNS 20
#define WARMUP 500

static const char *const leases[] = { "1h", "60s", "100ms" };
#define NLEASES ((int)(sizeof (leases) / sizeof (leases[0])))

static void die (const char *what)
{
    fprintf (stderr, "bench-lease: %s: %s\n", what, strerror (errno));
    exit (1);
}

static void generate_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("idt_fluid_generate");
}

static void report (const struct figures f[NLEASES])
{
    for (int i = 0; i < NLEASES; i++) {
        char name[64];

        snprintf (name, sizeof (name), "a local request, leases of %s", leases[i]);
        line_print (&(struct line){
            .subject = "leases",
            .name = name,
            .unit = "us",
            .figures = &f[i],
            .bare = i > 0 ? &f[0] : NULL,
            .limit_of = "leases of an hour",
        });
    }
}

static void measure (char **uris)
{
    struct figures f[NLEASES] = { 0 };
    idt_t *h[NLEASES];

    for (int i = 0; i < NLEASES; i++) {
        f[i] = (struct figures){ .of = FIGURES_MEDIAN, .warmup = WARMUP };
        if (!(h[i] = idt_open_ex (uris[i], &(struct idt_open_options){ .flags = IDT_O_NOSHM }, NULL)))
            die (uris[i]);
        for (int k = 0; k < WARMUP; k++)
            generate_once (h[i]);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < NLEASES; i++)
            figures_time_calls (&f[i], generate_once, h[i], ROUNDS);
    report (f);
    for (int i = 0; i < NLEASES; i++) {
        figures_fini (&f[i]);
        idt_close (h[i]);
    }
}

/* The arguments are the URIs of the outer instances. The URI of the innermost instance is in the environment. */
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
