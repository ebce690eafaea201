/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* options.h - the compressor.* attributes of a broker: doc/design/compressor.md lists them */
#ifndef COMPRESSOR_OPTIONS_H
#define COMPRESSOR_OPTIONS_H

#include <idtree/handle.h>

#include "modules/compressor/order/orderer.h"

struct options {
    uint32_t rank;
    uint32_t max_documents;
    uint32_t max_count;   /* ids of one request */
    uint32_t max_waiting; /* ranges at a node; requests at rank 0 */
    uint32_t compact;     /* ranges stored before the form is written anew */
    uint64_t timeout_ms;
    struct orderer_limits limits;
    const char *statedir; /* borrowed; rank 0 alone */
};

/* Read the attributes of the handle's broker.  Returns 0, or -1 with errno set and a sentence in 'errp'. */
int options_read (idt_t *h, struct options *o, idt_error_t *errp);

#endif /* COMPRESSOR_OPTIONS_H */
