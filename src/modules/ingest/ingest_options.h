/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ingest_options.h - the ingest.* attributes of a broker, which doc/design/ingest.md describes */
#ifndef INGEST_INGEST_OPTIONS_H
#define INGEST_INGEST_OPTIONS_H

#include <stdbool.h>

#include <idtree/handle.h>

struct ingest_options {
    uint32_t rank;
    bool require_signature;
    bool allow_guests;
    uint32_t max_jobspec; /* bytes */
    uint32_t max_waiting; /* submissions that may wait at a rank */
    uint32_t max_waiting_bytes;
    uint32_t max_jobs; /* jobs at rank 0 that may be unacknowledged */
    uint64_t max_bytes;
    uint32_t max_remembered; /* acknowledged jobs whose id and key are kept */
    uint64_t remember_ms;
    uint64_t settle_ms;
    uint64_t timeout_ms;
    const char *statedir; /* borrowed; rank 0 only */
};

/* Read the attributes of the handle's broker. Returns 0, or -1 with errno set and a message in 'errp'. */
int ingest_options_read (idt_t *h, struct ingest_options *o, idt_error_t *errp);

#endif /* INGEST_INGEST_OPTIONS_H */
