/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-share.c - the latency of a request at a borrower rank, three hops below the owner rank
 *
 * It runs a chain of four brokers, of which only rank 0 owns a generator. The same process sends requests to rank 0 and
 * rank 3 in turn. At first rank 3 forwards. After it had requests for some time, it borrows (fluid.share=auto), and is
 * measured again.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "line.h"

#define ROUNDS 1000 /* requests that are sent to one rank in a row */
#define TURNS 12
#define WARMUP 200
#define MAX_TURNS 20000 /* most turns of 10 requests until rank 3 must borrow */

static const char *const shares[] = { "off", "auto" };

static void die (const char *what)
{
    fprintf (stderr, "bench-share: %s: %s\n", what, strerror (errno));
    exit (1);
}

static void generate_once (void *arg)
{
    fluid_t id;

    if (idt_fluid_generate (arg, 1, &id) < 0)
        die ("idt_fluid_generate");
}

static void generate (idt_t *h, int times)
{
    for (int i = 0; i < times; i++)
        generate_once (h);
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
    struct figures f[2];
    char leaf[256];
    idt_t *h[2];

    snprintf (leaf, sizeof (leaf), "%.*s3", (int)strlen (uri) - 1, uri);
    if (!(h[0] = idt_open_ex (uri, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, NULL))
        || !(h[1] = idt_open_ex (leaf, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, NULL)))
        die (leaf);
    for (int i = 0; i < MAX_TURNS && strcmp (share, "off") != 0 && !borrows (h[1]); i++)
        generate (h[1], 10);
    for (int i = 0; i < 2; i++) {
        f[i] = (struct figures){ .of = FIGURES_MEDIAN, .warmup = WARMUP };
        generate (h[i], WARMUP);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 2; i++)
            figures_time_calls (&f[i], generate_once, h[i], ROUNDS);
    line_print (&(struct line){
        .subject = "shares",
        .name = borrows (h[1]) ? "three hops from the owner, borrowing" : "three hops from the owner, forwarding",
        .unit = "us",
        .figures = &f[1],
        .bare = &f[0],
        .limit_of = "a request to the owner",
    });
    for (int i = 0; i < 2; i++) {
        figures_fini (&f[i]);
        idt_close (h[i]);
    }
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

/* Inside of an instance the argument is "auto" or "off". Otherwise there is no argument. */
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
