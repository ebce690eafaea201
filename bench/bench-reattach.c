/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-reattach.c - how long ranks have no service when the router above them is killed, and when it runs again
 *
 * If there is no instance, it runs itself under `idtree start`, in a tree of three levels: rank 0, four routers, and
 * four ranks below each router. One thread per rank requests ids continuously. Rank 1 is killed and started again. Some
 * of the ranks below it hold a lease, and need nothing else. The others are idle, and must first attach to rank 0.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "timing.h"

#define SIZE 21
#define KARY 4
#define ROUTER 1
#define FIRST (KARY * ROUTER + 1) /* the first of the ranks below the router */
#define LAST (KARY * ROUTER + KARY)
#define GENERATORS "7" /* number of generators: the first two ranks below the router own one */
#define ROUNDS 10
#define COUNT 16      /* ids of a request */
#define PAUSE_US 2000 /* us between an answer and the next request, so that the machine is not overloaded */
#define WATCH_US 3000000

struct load {
    uint32_t rank;
    pthread_t thread;
    idt_t *h;
    _Atomic bool *stop;
    _Atomic uint64_t answered_us; /* when the last answer with ids arrived */
    _Atomic uint64_t longest_us;  /* longest time between two answers with ids, since this was set to 0 */
    _Atomic uint64_t errors;
};

static uint64_t now_us (void)
{
    return (uint64_t)(now_ns () / 1e3);
}

static void pause_us (uint64_t us)
{
    nanosleep (&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static void die (const char *what)
{
    fprintf (stderr, "bench-reattach: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* --- load ------------------------------------------------------------------------------------- */

static void *load_main (void *arg)
{
    struct load *l = arg;
    fluid_t ids[COUNT];

    atomic_store (&l->answered_us, now_us ());
    while (!atomic_load (l->stop)) {
        if (idt_fluid_generate (l->h, COUNT, ids) < 0)
            atomic_fetch_add (&l->errors, 1);
        else {
            uint64_t now = now_us (), gap = now - atomic_exchange (&l->answered_us, now);

            if (gap > atomic_load (&l->longest_us))
                atomic_store (&l->longest_us, gap);
        }
        pause_us (PAUSE_US);
    }
    return NULL;
}

static void start_load (struct load *l, const char *uri, uint32_t rank, _Atomic bool *stop)
{
    char text[256];

    snprintf (text, sizeof (text), "%.*s%" PRIu32, (int)strlen (uri) - 1, uri, rank);
    l->rank = rank;
    l->stop = stop;
    if (!(l->h = idt_open_ex (text, &(struct idt_open_options){ .flags = IDT_O_NOSHM }, NULL))
        || (errno = pthread_create (&l->thread, NULL, load_main, l)) != 0)
        die (text);
}

static void clear (struct load *loads)
{
    for (uint32_t r = 0; r < SIZE; r++) {
        atomic_store (&loads[r].longest_us, 0);
        atomic_store (&loads[r].errors, 0);
    }
}

/* Return the longest time without ids, including the time since the last answer. */
static uint64_t longest (const struct load *l)
{
    uint64_t gap = now_us () - atomic_load (&l->answered_us), longest_us = atomic_load (&l->longest_us);

    return gap > longest_us ? gap : longest_us;
}

/* --- rounds -------------------------------------------------------------------------------------- */

static const char *const kinds[] = { "elsewhere", "holder", "idle" };

static int kind_of (uint32_t rank)
{
    return rank < FIRST || rank > LAST ? 0 : rank < (uint32_t)atoi (GENERATORS) ? 1 : 2;
}

static void call (const char *idtree, const char *verb)
{
    char command[4096];

    snprintf (command, sizeof (command), "%s startctl %s %d", idtree, verb, ROUTER);
    if (system (command) != 0)
        die (command);
}

/* Do 'verb' to the router, then print how long each rank had no ids. 'worst' gets the longest time of each kind of
 * rank.
 */
static void measure (const char *idtree, const char *verb, struct load *loads, uint64_t worst[3])
{
    clear (loads);
    call (idtree, verb);
    pause_us (WATCH_US);
    for (uint32_t r = 0; r < SIZE; r++) {
        uint64_t us = r == ROUTER ? 0 : longest (&loads[r]);
        int kind = kind_of (r);

        if (us > worst[kind])
            worst[kind] = us;
        if (kind > 0)
            printf ("{\"bench\":\"reattach\",\"after\":\"%s\",\"rank\":%" PRIu32
                    ",\"kind\":\"%s\",\"longest_ms\":%.1f,\"errors\":%" PRIu64 "}\n",
                    verb, r, kinds[kind], us / 1E3, atomic_load (&loads[r].errors));
    }
    fflush (stdout);
}

static void report (const char *verb, const uint64_t worst[3])
{
    for (int k = 0; k < 3; k++)
        printf ("{\"bench\":\"reattach-worst\",\"after\":\"%s\",\"kind\":\"%s\",\"rounds\":%d,\"longest_ms\":%.1f}\n",
                verb, kinds[k], ROUNDS, worst[k] / 1E3);
}

static void inside (const char *idtree, const char *uri)
{
    static struct load loads[SIZE];
    uint64_t killed[3] = { 0 }, back[3] = { 0 };
    _Atomic bool stop = false;

    for (uint32_t r = 0; r < SIZE; r++) /* clients of the router itself would have to reconnect, so it has none */
        if (r != ROUTER)
            start_load (&loads[r], uri, r, &stop);
    pause_us (WATCH_US);
    for (int i = 0; i < ROUNDS; i++) {
        measure (idtree, "kill", loads, killed);
        measure (idtree, "run", loads, back);
    }
    report ("kill", killed);
    report ("run", back);
    atomic_store (&stop, true);
    for (uint32_t r = 0; r < SIZE; r++)
        if (r != ROUTER) {
            pthread_join (loads[r].thread, NULL);
            idt_close (loads[r].h);
        }
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI");
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    char size[16], topology[16];

    if (argc > 1 && uri) {
        inside (idtree, uri);
        return 0;
    }
    snprintf (size, sizeof (size), "%d", SIZE);
    snprintf (topology, sizeof (topology), "kary:%d", KARY);
    execl (idtree, idtree, "start", "-s", size, "--topology", topology, "-o", "fluid.max-generators=" GENERATORS, "-o",
           "fluid.share=off", "-o", "log-stderr-level=0", argv[0], "inside", (char *)NULL);
    die (idtree);
    return 1;
}
