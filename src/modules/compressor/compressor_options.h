/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor_options.h - the compressor.* attributes of a broker, which doc/design/compressor.md describes */
#ifndef COMPRESSOR_COMPRESSOR_OPTIONS_H
#define COMPRESSOR_COMPRESSOR_OPTIONS_H

#include <idtree/handle.h>

#include "modules/compressor/order/orderer.h"

struct compressor_options {
    uint32_t rank;
    uint32_t max_documents;
    uint32_t max_count;   /* the most ids of a request */
    uint32_t max_waiting; /* the most waiting ranges at a rank, and requests at rank 0 */
    uint32_t compact;     /* ranges that are stored before the form is written again */
    uint64_t timeout_ms;
    struct orderer_limits limits;
    const char *statedir; /* borrowed; rank 0 only */
};

/* Read the attributes of the handle's broker. Returns 0, or -1 with errno set and a message in 'errp'. */
int compressor_options_read (idt_t *h, struct compressor_options *o, idt_error_t *errp);

#endif /* COMPRESSOR_COMPRESSOR_OPTIONS_H */
