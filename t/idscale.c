/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idscale.c - request some ids from each of many ranks, and check that no id was issued twice
 *
 *     idscale FILE COUNT FIRST LAST [TIMES [AT-A-TIME]]     with IDTREE_URI
 *
 * Each request is for COUNT ids. Each rank from FIRST to LAST gets TIMES (1) requests, of which AT-A-TIME (1) are
 * pending at a time. If neither is given, only some ranks have requests pending at a time, otherwise all have. A
 * request that fails is repeated until it succeeds. FILE holds the ids of all runs so far, 8 bytes each: none of them
 * may be issued again. Prints one JSON object, in which "own" is the number of ranks that made all of their ids
 * themselves. The exit status is 0 if and only if no id was issued twice.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <idtree/idtree.h>

#define WINDOW 256
#define MAX_COUNT 1024
#define RETRY_MS 20.

struct scale {
    idt_t *h;
    idt_reactor_t *reactor;
    uint32_t count, first, ranks;
    uint32_t times, at_a_time;        /* requests of each rank, and how many are pending at a time */
    uint32_t next, window, under_way; /* sequences of requests; in each, requests are sent one after the other */
    unsigned long retries;
    uint32_t own;
    uint32_t least, most; /* least and greatest generator in the ids */
    fluid_t *ids;
    size_t n, old;
};

struct request {
    struct scale *s;
    uint32_t rank, left;
    idt_watcher_t *again;
};

static void die (const char *what)
{
    fprintf (stderr, "idscale: %s: %s\n", what, strerror (errno));
    exit (2);
}

static double now_s (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- ids ------------------------------------------------------------------------------------------- */

static void keep (struct scale *s, uint32_t rank, const fluid_t *ids)
{
    bool own = true;

    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t generator = fluid_split (ids[i]).generator;

        own = own && generator == rank;
        s->least = generator < s->least ? generator : s->least;
        s->most = generator > s->most ? generator : s->most;
        s->ids[s->n++] = ids[i];
    }
    s->own += own;
}

static void read_old (struct scale *s, const char *path)
{
    FILE *file = fopen (path, "r");
    long size = 0;

    if (file && (fseek (file, 0, SEEK_END) < 0 || (size = ftell (file)) < 0))
        die (path);
    s->n = s->old = (size_t)size / sizeof (s->ids[0]);
    if (!(s->ids = calloc (s->old + (size_t)s->count * s->ranks * s->times, sizeof (s->ids[0]))))
        die ("calloc");
    if (file && (fseek (file, 0, SEEK_SET) < 0 || fread (s->ids, sizeof (s->ids[0]), s->old, file) != s->old))
        die (path);
    if (file)
        fclose (file);
}

static void write_new (const struct scale *s, const char *path)
{
    FILE *file = fopen (path, "a");

    if (!file || fwrite (s->ids + s->old, sizeof (s->ids[0]), s->n - s->old, file) != s->n - s->old
        || fclose (file) != 0)
        die (path);
}

static int compare (const void *a, const void *b)
{
    fluid_t x = *(const fluid_t *)a, y = *(const fluid_t *)b;

    return (x > y) - (x < y);
}

static size_t count_twice (struct scale *s)
{
    size_t twice = 0;

    qsort (s->ids, s->n, sizeof (s->ids[0]), compare);
    for (size_t i = 1; i < s->n; i++)
        twice += s->ids[i] == s->ids[i - 1];
    return twice;
}

/* --- requests -------------------------------------------------------------------------------------- */

static void ask_more (struct scale *s);
static void ask (struct request *r);

static void answered (idt_future_t *f, void *arg)
{
    struct request *r = arg;
    struct scale *s = r->s;
    fluid_t ids[MAX_COUNT];
    bool good = idt_fluid_generate_get (f, s->count, ids) == 0;

    idt_future_destroy (f);
    if (!good) {
        s->retries++;
        idt_watcher_start (r->again);
        return;
    }
    keep (s, r->rank, ids);
    if (--r->left > 0) {
        ask (r);
        return;
    }
    idt_watcher_destroy (r->again);
    free (r);
    s->under_way--;
    ask_more (s);
}

static void ask (struct request *r)
{
    uint32_t count = htobe32 (r->s->count);
    uint8_t request[12] = { 0 };
    idt_future_t *f;

    memcpy (request, &count, sizeof (count));
    if (!(f = idt_rpc_raw (r->s->h, "fluid.block", request, sizeof (request), r->rank, 0))
        || idt_future_then (f, -1., answered, r) < 0)
        die ("fluid.block");
}

static void again_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_watcher_stop (w);
    ask (arg);
}

static void ask_more (struct scale *s)
{
    while (s->under_way < s->window && s->next < s->ranks * s->at_a_time) {
        struct request *r = calloc (1, sizeof (*r));

        if (!r || !(r->again = idt_timer_watcher_create (s->reactor, RETRY_MS, RETRY_MS, again_cb, r)))
            die ("calloc");
        r->s = s;
        r->rank = s->first + s->next++ % s->ranks;
        r->left = s->times / s->at_a_time;
        s->under_way++;
        ask (r);
    }
    if (s->under_way == 0)
        idt_reactor_stop (s->reactor);
}

static void lost (idt_t *h, int errnum, void *arg)
{
    errno = errnum;
    die ("the connection is lost");
}

static bool take_arguments (struct scale *s, int argc, char **argv)
{
    if (argc < 5 || argc > 7)
        return false;
    s->count = (uint32_t)atoi (argv[2]);
    s->first = (uint32_t)atoi (argv[3]);
    s->ranks = (uint32_t)atoi (argv[4]) - s->first + 1;
    s->times = argc > 5 ? (uint32_t)atoi (argv[5]) : 1;
    s->at_a_time = argc > 6 ? (uint32_t)atoi (argv[6]) : 1;
    s->window = argc > 5 ? UINT32_MAX : WINDOW;
    return s->count > 0 && s->count <= MAX_COUNT && s->at_a_time > 0 && s->times % s->at_a_time == 0;
}

int main (int argc, char **argv)
{
    struct scale s = { .least = UINT32_MAX };
    idt_error_t error;

    if (!take_arguments (&s, argc, argv)) {
        fprintf (stderr, "usage: idscale FILE COUNT FIRST LAST [TIMES [AT-A-TIME]]\n");
        return 2;
    }
    read_old (&s, argv[1]);
    if (!(s.h = idt_open (getenv ("IDTREE_URI"), &error))) {
        fprintf (stderr, "idscale: %s\n", error.text);
        return 2;
    }
    idt_set_lost (s.h, lost, NULL);
    s.reactor = idt_get_reactor (s.h);
    double began = now_s ();
    ask_more (&s);
    idt_reactor_run (s.reactor, IDT_REACTOR_DEFAULT);
    double took = now_s () - began;
    idt_close (s.h);
    write_new (&s, argv[1]);
    size_t made = s.n - s.old, twice = count_twice (&s);
    printf (
        "{\"ids\":%zu,\"of_all\":%zu,\"twice\":%zu,\"own\":%u,\"generators\":[%u,%u],\"retries\":%lu,\"seconds\":%.3f}\n",
        made, s.n, twice, s.own, s.least, s.most, s.retries, took);
    free (s.ids);
    return twice > 0;
}
