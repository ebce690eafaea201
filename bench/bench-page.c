/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-page.c - ids without a message: made in the client's process, from the page that its broker shares
 *
 * If there is no instance, it runs itself under `idtree start`. The time of one id is measured in windows that begin
 * with a millisecond and use only a part of its ids. If a client made more ids than the format allows, it would have to
 * wait. Floods of many processes measure the rate, and the processor time that several processes need.
 */
#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <idtree/page.h>

#include "line.h"
#include "timing.h"

#define TURNS 12
#define ROUNDS 50  /* rounds of a turn */
#define WINDOW 960 /* ids of a round: most of a millisecond's 1,024 */
#define WARMUP 20
#define TIMEOUT_MS 5000
#define PROCESSES 8
#define BLOCK 64
#define FLOOD_TURNS 6
#define TURN_S 0.25
#define WARMUP_S 0.2
#define LIMIT 1024000. /* most ids a second that one generator can make */

static void die (const char *what)
{
    fprintf (stderr, "bench-page: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* --- one id --- */

struct bed {
    idt_page_t *page;
    _Atomic uint64_t word;
};

static void make (struct bed *bed)
{
    fluid_t id;

    if (idt_page_generate (bed->page, 0, 1, &id) != 1)
        die ("idt_page_generate");
}

static void make_64 (struct bed *bed)
{
    fluid_t ids[BLOCK];

    if (idt_page_generate (bed->page, 0, BLOCK, ids) != BLOCK)
        die ("idt_page_generate");
}

/* Do the least that an id needs: read a clock, and compare and swap. */
static void bare (struct bed *bed)
{
    uint64_t old = atomic_load (&bed->word);
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    atomic_compare_exchange_strong (&bed->word, &old, old + (uint64_t)ts.tv_nsec);
}

static void await_millisecond (void)
{
    uint64_t ms = (uint64_t)(now_ns () / 1e6);

    while ((uint64_t)(now_ns () / 1e6) == ms)
        ;
}

/* Measure a turn. One call of 'work' makes 'n' ids. */
static void take_turn (struct figures *f, void (*work) (struct bed *bed), int n, struct bed *bed, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        await_millisecond ();
        double start_ns = now_ns ();
        for (int i = 0; i < WINDOW; i += n)
            work (bed);
        figures_add (f, (now_ns () - start_ns) / WINDOW);
    }
    figures_end_turn (f);
}

static void measure_calls (struct bed *bed, const char *name, void (*work) (struct bed *bed), int n)
{
    struct figures f = { .warmup = WARMUP }, bare_f = { .warmup = WARMUP }, unused = { 0 };

    take_turn (&unused, work, n, bed, WARMUP);
    take_turn (&unused, bare, 1, bed, WARMUP);
    for (int turn = 0; turn < TURNS; turn++) {
        take_turn (&f, work, n, bed, ROUNDS);
        take_turn (&bare_f, bare, 1, bed, ROUNDS);
    }
    line_print (&(struct line){
        .subject = "page",
        .name = name,
        .unit = "ns",
        .figures = &f,
        .bare = &bare_f,
        .limit_of = "a clock reading and a compare-and-swap",
    });
    figures_fini (&f);
    figures_fini (&bare_f);
    figures_fini (&unused);
}

static void measure_one (const char *uri)
{
    struct bed bed = { .page = idt_page_open (uri, TIMEOUT_MS) };

    if (!bed.page)
        die ("idt_page_open");
    measure_calls (&bed, "one id", make, 1);
    measure_calls (&bed, "an id of 64 a call", make_64, BLOCK);
    idt_page_close (bed.page);
}

/* --- processes together --- */

/* The sums over all processes in one turn. */
struct tally {
    _Atomic uint64_t ids, cpu_ns;
};

static double cpu_ns (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Make a block of ids. If the page has no id at the moment, try again a millisecond later. A client would send a
 * message instead.
 */
static uint64_t make_block (idt_page_t *page, uint32_t n)
{
    fluid_t ids[BLOCK];
    int got = idt_page_generate (page, 0, n, ids);

    if (got < 0 && errno != EAGAIN)
        die ("idt_page_generate");
    if (got < 0)
        nanosleep (&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return got > 0 ? (uint64_t)got : 0;
}

static void flood (const char *uri, uint32_t n, double start_s, struct tally *tally)
{
    idt_page_t *page = idt_page_open (uri, TIMEOUT_MS);

    if (!page)
        die ("idt_page_open");
    while (now_s () < start_s)
        make_block (page, n);
    for (int turn = 0; turn < FLOOD_TURNS; turn++) {
        double cpu = cpu_ns ();
        uint64_t ids = 0;

        while (now_s () < start_s + (turn + 1) * TURN_S)
            ids += make_block (page, n);
        atomic_fetch_add (&tally[turn].ids, ids);
        atomic_fetch_add (&tally[turn].cpu_ns, (uint64_t)(cpu_ns () - cpu));
    }
    idt_page_close (page);
}

static void run_processes (const char *uri, int processes, uint32_t n, struct tally *tally)
{
    double start_s = now_s () + WARMUP_S;
    pid_t pid[PROCESSES];
    int status;

    fflush (stdout);
    for (int i = 0; i < processes; i++) {
        if ((pid[i] = fork ()) < 0)
            die ("fork");
        if (pid[i] == 0) {
            prctl (PR_SET_PDEATHSIG, SIGKILL);
            flood (uri, n, start_s, tally);
            _exit (0);
        }
    }
    for (int i = 0; i < processes; i++)
        if (waitpid (pid[i], &status, 0) < 0 || status != 0)
            die ("a process");
}

static void report (int processes, uint32_t n, const struct tally *tally)
{
    struct figures rate = { .more = true, .warmup = 1 }, cpu = { .warmup = 1 };
    char name[64];

    for (int i = 0; i < FLOOD_TURNS; i++) {
        figures_add (&rate, (double)tally[i].ids / TURN_S);
        figures_end_turn (&rate);
        figures_add (&cpu, (double)tally[i].cpu_ns / (double)(tally[i].ids + 1));
        figures_end_turn (&cpu);
    }
    snprintf (name, sizeof (name), "ids, %u a call", (unsigned)n);
    line_print (&(struct line){
        .subject = "page",
        .name = name,
        .unit = "/s",
        .figures = &rate,
        .limit = LIMIT,
        .limit_of = "limit of the format for one generator",
        .size = processes,
        .size_of = "processes",
    });
    snprintf (name, sizeof (name), "processor time of an id, %u a call", (unsigned)n);
    line_print (&(struct line){
        .subject = "page",
        .name = name,
        .unit = "ns",
        .figures = &cpu,
        .size = processes,
        .size_of = "processes",
    });
    figures_fini (&rate);
    figures_fini (&cpu);
}

static void measure_processes (const char *uri, int processes, uint32_t n)
{
    size_t size = FLOOD_TURNS * sizeof (struct tally);
    struct tally *tally = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (tally == MAP_FAILED)
        die ("mmap");
    run_processes (uri, processes, n, tally);
    report (processes, n, tally);
    munmap (tally, size);
}

int main (int argc, char **argv)
{
    const char *idtree = getenv ("IDTREE") ? getenv ("IDTREE") : BUILDDIR "/src/cmd/idtree";
    const char *uri = getenv ("IDTREE_URI");

    if (argc < 2) {
        execl (idtree, idtree, "start", "-s", "1", argv[0], "inside", (char *)NULL);
        die (idtree);
    }
    measure_one (uri);
    for (int processes = 1; processes <= PROCESSES; processes *= 2)
        measure_processes (uri, processes, 1);
    measure_processes (uri, 1, BLOCK);
    measure_processes (uri, PROCESSES, BLOCK);
    return 0;
}
