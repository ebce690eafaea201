/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pagestorm.c - ids from pages, while the processes that make them, and brokers, are killed
 *
 *   pagestorm RANKS IDS SEED     inside of an instance: idtree start -s RANKS -o fluid.lease=2s ... pagestorm ...
 *
 * Each rank has two workers. They make ids in blocks of any size: by the page alone, or through a handle, which uses
 * the page and requests. Each id is immediately marked in a shared map. If an id is marked already, it is a duplicate.
 * Workers are killed at any instruction, brokers are killed and stopped, and their modules are reloaded, until there
 * are enough ids. After that, all run without faults for a while. Prints one line of JSON, and exits with 1 after a
 * violation.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>
#include <idtree/page.h>

#include "t/chaos/rng.h"

#define RANKS_MAX 16
#define EACH 2                 /* workers of each rank */
#define SPAN_MS (3600U * 1000) /* largest time of an id in ms; the map has bits up to it */
#define BLOCK 256
#define PATIENCE_S 120

/* Data that all processes share. The map has a bit for each id. */
struct world {
    _Atomic uint64_t ids, twice, disorder, by_page, beyond;
    _Atomic uint64_t made[RANKS_MAX * EACH]; /* ids that each worker made */
    _Atomic uint64_t map[];
};

static size_t map_words (uint32_t ranks)
{
    return (size_t)ranks * SPAN_MS * FLUID_PER_MS / 64;
}

static struct world *world_create (uint32_t ranks)
{
    size_t size = sizeof (struct world) + map_words (ranks) * sizeof (uint64_t);
    void *p = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        perror ("pagestorm: no memory for the map");
        exit (2);
    }
    return p;
}

static void mark (struct world *w, uint32_t ranks, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);

    if (f.generator >= ranks || f.timestamp_ms >= SPAN_MS) {
        atomic_fetch_add (&w->beyond, 1);
        return;
    }
    size_t bit = ((size_t)f.generator * SPAN_MS + f.timestamp_ms) * FLUID_PER_MS + f.sequence;
    uint64_t mask = UINT64_C (1) << bit % 64;
    if (atomic_fetch_or_explicit (&w->map[bit / 64], mask, memory_order_relaxed) & mask)
        atomic_fetch_add (&w->twice, 1);
}

/* --- a worker -------------------------------------------------------------------------------------- */

struct worker {
    struct world *w;
    uint32_t ranks, slot;
    struct rng rng;
    const char *uri;
    idt_page_t *page; /* NULL: there is no page now, or the worker uses a handle */
    idt_t *h;         /* NULL: the worker uses pages only */
    fluid_t last;
};

static void pause_ms (long ms)
{
    nanosleep (&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Get up to 'n' ids. Returns their number; 0: none. */
static int get (struct worker *k, uint32_t n, fluid_t *ids)
{
    if (k->h)
        return idt_fluid_generate (k->h, n, ids) == 0 ? (int)n : 0;
    if (!k->page && !(k->page = idt_page_open (k->uri, 1000)))
        return 0;
    int got = idt_page_generate (k->page, k->last, n, ids);
    if (got < 0) { /* the broker may have been replaced by one with another page */
        idt_page_close (k->page);
        k->page = NULL;
        return 0;
    }
    return got;
}

static void note (struct worker *k, const fluid_t *ids, int n)
{
    for (int i = 0; i < n; i++) {
        if (ids[i] <= k->last)
            atomic_fetch_add (&k->w->disorder, 1);
        k->last = ids[i];
        mark (k->w, k->ranks, ids[i]);
    }
    atomic_fetch_add (&k->w->ids, (uint64_t)n);
    atomic_fetch_add (&k->w->made[k->slot], (uint64_t)n);
    if (!k->h)
        atomic_fetch_add (&k->w->by_page, (uint64_t)n);
}

static void work (struct worker *k)
{
    fluid_t ids[BLOCK];

    if (rng_below (&k->rng, 3) == 0)
        while (!(k->h = idt_open_ex (k->uri, &(struct idt_open_options){ .flags = IDT_O_RECONNECT }, NULL)))
            pause_ms (10);
    for (;;) {
        int n = get (k, 1 + rng_below (&k->rng, BLOCK), ids);

        if (n > 0)
            note (k, ids, n);
        else
            pause_ms (2);
    }
}

static pid_t start_worker (struct world *w, uint32_t ranks, uint32_t slot, uint64_t seed, const char *base)
{
    char uri[256];
    pid_t pid = fork ();

    if (pid != 0)
        return pid;
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    snprintf (uri, sizeof (uri), "%s%u", base, slot / EACH);
    struct worker k = { .w = w, .ranks = ranks, .slot = slot, .rng = { seed }, .uri = uri };
    work (&k);
    _exit (0);
}

/* --- faults ------------------------------------------------------------------------------------------ */

static void run (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
static void run (const char *fmt, ...)
{
    char line[256];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (line, sizeof (line), fmt, ap);
    va_end (ap);
    if (system (line) != 0) /* a broker that is down cannot be stopped, so take the next one */
        return;
}

static void fault (struct rng *rng, uint32_t ranks)
{
    uint32_t r = rng_below (rng, ranks);
    long ms = (long)rng_below (rng, 900);

    switch (rng_below (rng, 4)) {
    case 0:
        run ("idtree startctl kill %u >/dev/null 2>&1", r);
        pause_ms (ms);
        run ("idtree startctl run %u >/dev/null 2>&1", r);
        break;
    case 1:
        run ("idtree startctl stop %u >/dev/null 2>&1", r);
        pause_ms (ms);
        run ("idtree startctl cont %u >/dev/null 2>&1", r);
        break;
    case 2: /* stop the root, which grants leases */
        run ("idtree startctl stop 0 >/dev/null 2>&1");
        pause_ms (ms);
        run ("idtree startctl cont 0 >/dev/null 2>&1");
        break;
    default:
        run ("timeout 20 idtree module remove -r %u fluid >/dev/null 2>&1", r);
        run ("timeout 20 idtree module load -r %u fluid >/dev/null 2>&1", r);
    }
}

/* --- the storm ------------------------------------------------------------------------------------------ */

struct storm {
    struct world *w;
    uint32_t ranks;
    struct rng rng;
    char base[200];
    pid_t pid[RANKS_MAX * EACH];
    unsigned killed, faults;
};

static void replace_worker (struct storm *s)
{
    uint32_t slot = rng_below (&s->rng, s->ranks * EACH);

    kill (s->pid[slot], SIGKILL);
    waitpid (s->pid[slot], NULL, 0);
    s->killed++;
    s->pid[slot] = start_worker (s->w, s->ranks, slot, rng_next (&s->rng), s->base);
}

/* Cause faults. This is a process of its own, because faults take time, and workers are killed meanwhile. */
static void rage (struct storm *s, uint64_t ids)
{
    pid_t pid = -1;
    time_t end = time (NULL) + (time_t)(ids / 50000) + 600;

    while (atomic_load (&s->w->ids) < ids && time (NULL) < end) {
        if (pid > 0 && waitpid (pid, NULL, WNOHANG) == pid)
            pid = -1;
        if (pid < 0) {
            struct rng rng = { rng_next (&s->rng) };
            s->faults++;
            if ((pid = fork ()) == 0) {
                fault (&rng, s->ranks);
                _exit (0);
            }
        }
        pause_ms (5 + (long)rng_below (&s->rng, 60));
        replace_worker (s);
    }
    if (pid > 0)
        waitpid (pid, NULL, 0);
}

/* Whether each worker makes ids again after the faults have ended. */
static bool all_go_on (struct storm *s)
{
    time_t end = time (NULL) + PATIENCE_S;
    bool good = true;

    for (uint32_t r = 0; r < s->ranks; r++)
        run ("idtree startctl cont %u >/dev/null 2>&1; idtree startctl run %u >/dev/null 2>&1; "
             "timeout 20 idtree module load -r %u fluid >/dev/null 2>&1",
             r, r, r);
    for (uint32_t k = 0; k < s->ranks * EACH; k++) {
        uint64_t before = atomic_load (&s->w->made[k]);

        while (atomic_load (&s->w->made[k]) == before && time (NULL) < end)
            pause_ms (20);
        if (atomic_load (&s->w->made[k]) == before) {
            fprintf (stderr, "pagestorm: worker %u, at rank %u, makes no ids\n", k, k / EACH);
            good = false;
        }
    }
    return good;
}

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI"), *dash = uri ? strrchr (uri, '-') : NULL;
    struct storm s = { .ranks = argc == 4 ? (uint32_t)strtoul (argv[1], NULL, 10) : 0 };

    if (s.ranks < 1 || s.ranks > RANKS_MAX || !dash || (size_t)(dash + 1 - uri) >= sizeof (s.base)) {
        fprintf (stderr, "usage: idtree start -s RANKS -o fluid.lease=2s pagestorm RANKS (1 to %d) IDS SEED\n",
                 RANKS_MAX);
        return 2;
    }
    memcpy (s.base, uri, (size_t)(dash + 1 - uri));
    s.rng.state = strtoull (argv[3], NULL, 10);
    s.w = world_create (s.ranks);
    for (uint32_t k = 0; k < s.ranks * EACH; k++)
        s.pid[k] = start_worker (s.w, s.ranks, k, rng_next (&s.rng), s.base);
    rage (&s, strtoull (argv[2], NULL, 10));
    bool good = all_go_on (&s);
    for (uint32_t k = 0; k < s.ranks * EACH; k++) {
        kill (s.pid[k], SIGKILL);
        waitpid (s.pid[k], NULL, 0);
    }
    printf ("{\"ids\":%" PRIu64 ",\"pages_alone\":%" PRIu64 ",\"twice\":%" PRIu64 ",\"disorder\":%" PRIu64
            ",\"beyond\":%" PRIu64 ",\"workers_killed\":%u,\"faults\":%u}\n",
            atomic_load (&s.w->ids), atomic_load (&s.w->by_page), atomic_load (&s.w->twice),
            atomic_load (&s.w->disorder), atomic_load (&s.w->beyond), s.killed, s.faults);
    return !good || s.w->twice + s.w->disorder + s.w->beyond > 0 || s.w->ids < strtoull (argv[2], NULL, 10);
}
