/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the inside of a client's page */
#ifndef LIBPAGE_PRIVATE_H
#define LIBPAGE_PRIVATE_H

#include <idtree/page.h>

#include "libpage/page.h"

struct idt_page {
    struct page *page;
    uint32_t generator; /* ours: others may write there */
    int64_t epoch_ms;
    char instance[40];
};

#endif /* LIBPAGE_PRIVATE_H */
