/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idqueue.c - requests that wait in a broker's socket for as long as a test needs
 *
 *     idqueue FILE URI COUNT...
 *
 * Connects and prints "ready". After a line on standard input it sends a request for each COUNT, and prints "asked".
 * Then it writes the ids of the answers to FILE: decimal number, generator, timestamp. The exit status is 0 if and only
 * if all requests were answered with ids.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idtree.h>

static void die (const char *what, const char *why)
{
    fprintf (stderr, "idqueue: %s: %s\n", what, why);
    exit (1);
}

static void say (const char *word)
{
    if (puts (word) == EOF || fflush (stdout) == EOF)
        die ("standard output", strerror (errno));
}

static void wait_for_line (void)
{
    int c;

    while ((c = getchar ()) != '\n' && c != EOF)
        ;
}

static void print_ids (FILE *out, idt_future_t *f, uint32_t count)
{
    fluid_t *ids = calloc (count, sizeof (ids[0]));

    if (!ids || idt_fluid_generate_get (f, count, ids) < 0)
        die ("no ids", ids ? idt_future_error (f) : strerror (errno));
    for (uint32_t i = 0; i < count; i++) {
        struct fluid_fields fields = fluid_split (ids[i]);

        fprintf (out, "%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", ids[i], (uint32_t)fields.generator,
                 (uint64_t)fields.timestamp_ms);
    }
    free (ids);
}

int main (int argc, char **argv)
{
    idt_error_t error = { "FILE URI COUNT... are needed" };
    idt_t *h = argc > 3 ? idt_open (argv[2], &error) : NULL;
    FILE *out = h ? fopen (argv[1], "w") : NULL;
    idt_future_t **f = calloc (argc, sizeof (f[0]));

    if (!h || !out || !f)
        die ("cannot start", error.text);
    say ("ready");
    wait_for_line ();
    for (int i = 3; i < argc; i++)
        if (!(f[i] = idt_fluid_generate_async (h, (uint32_t)strtoul (argv[i], NULL, 10))))
            die ("cannot ask", strerror (errno));
    if (idt_flush (h) < 0)
        die ("cannot ask", strerror (errno));
    say ("asked");
    for (int i = 3; i < argc; i++)
        print_ids (out, f[i], (uint32_t)strtoul (argv[i], NULL, 10));
    for (int i = 3; i < argc; i++)
        idt_future_destroy (f[i]);
    free (f);
    idt_close (h);
    if (fclose (out) == EOF)
        die (argv[1], strerror (errno));
    return 0;
}
