/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pageload.c - processes that make ids in the page of the broker at $IDTREE_URI, and the check of their ids
 *
 *   pageload make FILE COUNT BLOCK   append COUNT ids, up to BLOCK at a time, to FILE (8 bytes each); if the page has
 *                                    no id, wait for one; if it is closed, get another page
 *   pageload ask FILE COUNT BLOCK    the same through a handle, which uses the page and requests
 *   pageload turns FILE COUNT BLOCK  like ask, but every second block by idt_fluid_generate_async (), whose answer is
 *                                    awaited after the next block
 *   pageload check FILE...           each file must increase, no id may be in them twice; prints the number of ids
 *
 * Ids are written to the file before the next ones are made. So if the process is killed, at most its last ids are
 * missing in the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <idtree/idtree.h>
#include <idtree/page.h>

#define MOST 1024
#define PATIENCE_S 300

static void die (const char *what)
{
    fprintf (stderr, "pageload: %s: %s\n", what, strerror (errno));
    exit (1);
}

static void pause_ms (long ms)
{
    nanosleep (&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void put (FILE *file, const fluid_t *ids, size_t n)
{
    if (fwrite (ids, sizeof (*ids), n, file) != n || fflush (file) != 0)
        die ("cannot write");
}

/* --- the two ways --------------------------------------------------------------------------------- */

static idt_page_t *get_page (time_t end)
{
    idt_page_t *page;

    while (!(page = idt_page_open (NULL, 1000))) {
        if (time (NULL) >= end)
            die ("no page");
        pause_ms (10);
    }
    return page;
}

static void make (FILE *file, size_t count, uint32_t block)
{
    time_t end = time (NULL) + PATIENCE_S;
    idt_page_t *page = get_page (end);
    fluid_t ids[MOST], last = 0;

    while (count > 0) {
        int n = idt_page_generate (page, last, block < count ? block : (uint32_t)count, ids);

        if (n < 0 && time (NULL) >= end)
            die ("no id");
        if (n < 0 && errno == ESTALE) {
            idt_page_close (page);
            page = get_page (end);
        }
        else if (n < 0)
            pause_ms (1);
        if (n <= 0)
            continue;
        put (file, ids, (size_t)n);
        last = ids[n - 1];
        count -= (size_t)n;
    }
    idt_page_close (page);
}

static idt_t *open_handle (void)
{
    idt_error_t err;
    idt_t *h = idt_open_ex (NULL, &(struct idt_open_options){ .flags = IDT_O_RECONNECT }, &err);

    if (!h) {
        fprintf (stderr, "pageload: %s\n", err.text);
        exit (1);
    }
    return h;
}

static void ask (FILE *file, size_t count, uint32_t block)
{
    time_t end = time (NULL) + PATIENCE_S;
    idt_t *h = open_handle ();
    fluid_t ids[MOST];

    while (count > 0) {
        uint32_t n = block < count ? block : (uint32_t)count;

        if (idt_fluid_generate (h, n, ids) < 0) {
            if (time (NULL) >= end)
                die ("no id");
            pause_ms (1);
            continue;
        }
        put (file, ids, n);
        count -= n;
    }
    idt_close (h);
}

static void turns (FILE *file, size_t count, uint32_t block)
{
    idt_t *h = open_handle ();
    fluid_t first[MOST], second[MOST];

    for (size_t i = 0; i < count; i++) /* after these requests the handle has the page, if there is one */
        if (idt_fluid_generate (h, 1, first) < 0)
            die ("no id");
    for (; count > 0; count -= count < 2 * block ? count : 2 * block) {
        idt_future_t *f = idt_fluid_generate_async (h, block);

        if (!f || idt_fluid_generate (h, block, second) < 0 || idt_fluid_generate_get (f, block, first) < 0)
            die ("no id");
        put (file, first, block);
        put (file, second, block);
        idt_future_destroy (f);
    }
    idt_close (h);
}

/* --- the judge --------------------------------------------------------------------------------------- */

static int by_value (const void *a, const void *b)
{
    fluid_t x = *(const fluid_t *)a, y = *(const fluid_t *)b;

    return (x > y) - (x < y);
}

/* Append the ids of a file to '*all'. If the process was killed, the last id may be incomplete, and is left out. */
static void read_ids (const char *name, fluid_t **all, size_t *n)
{
    FILE *file = fopen (name, "rb");
    struct stat st;

    if (!file || fstat (fileno (file), &st) < 0)
        die (name);
    size_t count = (size_t)st.st_size / sizeof (fluid_t);
    if (!(*all = realloc (*all, (*n + count + 1) * sizeof (fluid_t)))
        || fread (*all + *n, sizeof (fluid_t), count, file) != count)
        die (name);
    fclose (file);
    *n += count;
}

static int check (char **names)
{
    fluid_t *all = NULL;
    size_t n = 0, twice = 0, disorder = 0;

    for (; *names; names++) {
        size_t first = n;

        read_ids (*names, &all, &n);
        for (size_t i = first + 1; i < n; i++)
            disorder += all[i] <= all[i - 1];
    }
    qsort (all, n, sizeof (*all), by_value);
    for (size_t i = 1; i < n; i++)
        twice += all[i] == all[i - 1];
    printf ("ids %zu twice %zu disorder %zu\n", n, twice, disorder);
    free (all);
    return twice + disorder > 0;
}

int main (int argc, char **argv)
{
    if (argc >= 3 && !strcmp (argv[1], "check"))
        return check (argv + 2);
    static const struct {
        const char *name;
        void (*run) (FILE *file, size_t count, uint32_t block);
    } ways[] = { { "make", make }, { "ask", ask }, { "turns", turns } };
    uint32_t block = argc == 5 ? (uint32_t)strtoul (argv[4], NULL, 10) : 0;
    size_t way = 0;

    while (way < 3 && argc == 5 && strcmp (argv[1], ways[way].name) != 0)
        way++;
    if (block < 1 || block > MOST || way == 3) {
        fprintf (stderr, "usage: pageload make|ask|turns FILE COUNT BLOCK (1 to %d)\n       pageload check FILE...\n",
                 MOST);
        return 2;
    }
    FILE *file = fopen (argv[2], "ab");
    if (!file)
        die (argv[2]);
    ways[way].run (file, strtoul (argv[3], NULL, 10), block);
    fclose (file);
    return 0;
}
