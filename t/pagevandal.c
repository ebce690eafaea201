/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pagevandal.c - gets the page of the broker at $IDTREE_URI, and takes numbers back that were used; "pagevandal ahead":
 * all up to the end of the lease
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "libpage/inside.h"

int main (int argc, char *argv[])
{
    idt_page_t *page = idt_page_open (NULL, 10000);

    if (!page) {
        fprintf (stderr, "pagevandal: no page: %s\n", strerror (errno));
        return 1;
    }
    bool ahead = argc > 1 && strcmp (argv[1], "ahead") == 0;
    struct word w = { .ms = atomic_load (&page->terms->hi_ms) - 1, .used = 1 };

    if (mprotect (page->terms, PAGE_SIZE, PROT_READ | PROT_WRITE) == 0) {
        fprintf (stderr, "pagevandal: what only the broker may write can be written\n");
        return 3;
    }
    atomic_store (&page->page->word, ahead ? word_pack (w) : 0);
    idt_page_close (page);
    return 0;
}
