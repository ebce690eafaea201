/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pagevandal.c - gets the page of the broker at $IDTREE_URI, and damages it
 *
 * Without an argument it writes 0, so that used sequence numbers look unused. "pagevandal ahead" marks all times up to
 * the end of the lease as used. "pagevandal chase" writes times that are 0.9 s ahead, until the page is closed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "libpage/page_client.h"

static uint64_t now_ms (const struct page *terms)
{
    struct timespec ts;

    clock_gettime (CLOCK_BOOTTIME, &ts);
    return (uint64_t)((int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 + atomic_load (&terms->offset_us)) / 1000;
}

static void chase (idt_page_t *page)
{
    for (;;) {
        uint64_t had = atomic_load (&page->page->word), ms = now_ms (page->terms) + 900;
        struct word w = word_unpack (had);

        if (w.closed)
            return;
        w.used = ms > w.ms ? 1 : w.used;
        w.ms = ms > w.ms ? ms : w.ms;
        atomic_compare_exchange_strong (&page->page->word, &had, word_pack (w));
    }
}

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
        fprintf (stderr, "pagevandal: a part of the page that only the broker may write is writable\n");
        return 3;
    }
    if (argc > 1 && strcmp (argv[1], "chase") == 0)
        chase (page);
    else
        atomic_store (&page->page->word, ahead ? word_pack (w) : 0);
    idt_page_close (page);
    return 0;
}
