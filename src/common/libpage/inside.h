/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* inside.h - the inside of a client's page: for libpage, and its tests */
#ifndef LIBPAGE_INSIDE_H
#define LIBPAGE_INSIDE_H

#include <idtree/page.h>

#include "libpage/page.h"

struct idt_page {
    struct page *page;  /* its word */
    struct page *terms; /* what only the broker writes */
    uint32_t generator; /* ours: others may write there */
    int64_t epoch_ms;
    char instance[40];
};

#endif /* LIBPAGE_INSIDE_H */
