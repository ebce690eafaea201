/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.c - send one request and print its answer: ask RANK TOPIC [JSON]
 *
 * Prints the payload of the answer.  If the answer is an error, prints it to stderr as ERRNO-NAME: TEXT, and ends with
 * exit code 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idtree.h>

int main (int argc, char **argv)
{
    const char *uri = getenv ("IDTREE_URI"), *s = NULL;
    idt_error_t error;

    if (argc < 3 || argc > 4 || !uri) {
        fprintf (stderr, "usage: IDTREE_URI=... ask RANK TOPIC [JSON]\n");
        return 2;
    }
    idt_t *h = idt_open (uri, &error);
    if (!h) {
        fprintf (stderr, "%s\n", error.text);
        return 2;
    }
    idt_future_t *f = idt_rpc (h, argv[2], argc == 4 ? argv[3] : "{}", (uint32_t)atoi (argv[1]), 0);
    int rc = f ? idt_rpc_get (f, &s) : -1;
    if (rc == 0)
        printf ("%s\n", s ? s : "");
    else
        fprintf (stderr, "%s: %s\n", strerrorname_np (errno), f ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
    idt_close (h);
    return rc < 0;
}
