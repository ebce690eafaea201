/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pagevandal.c - gets the page of the broker at $IDTREE_URI, and takes numbers back that were used */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libpage/inside.h"

int main (void)
{
    idt_page_t *page = idt_page_open (NULL, 10000);

    if (!page) {
        fprintf (stderr, "pagevandal: no page: %s\n", strerror (errno));
        return 1;
    }
    atomic_store (&page->page->word, 0);
    idt_page_close (page);
    return 0;
}
