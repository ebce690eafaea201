/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside.h - the members of a client's page, for libpage and its tests */
#ifndef LIBPAGE_INSIDE_H
#define LIBPAGE_INSIDE_H

#include <idtree/page.h>

#include "libpage/page.h"

struct idt_page {
    struct page *page;  /* the part with the word */
    struct page *terms; /* the part that only the broker writes */
    uint32_t generator; /* a private copy: another process may overwrite the page */
    int64_t epoch_ms;
    char instance[40];
};

#endif /* LIBPAGE_INSIDE_H */
