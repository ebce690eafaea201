/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_backend.h - where a store keeps documents: what document_store.c needs of it
 *
 * open (), read (), write () and close () block; only one of them runs at a time. Functions return 0, or -1 with errno
 * set and 'errp' filled.
 */
#ifndef COMPRESSOR_DOCUMENT_BACKEND_H
#define COMPRESSOR_DOCUMENT_BACKEND_H

#include "modules/compressor/root/document_store.h"

struct document_backend {
    /* Prepare the object, without I/O. 'place' and 'holder' stay valid. Returns NULL with errno ENOMEM. */
    void *(*create) (const struct module_place *place, const char *holder);

    /* Open the place. May be called again after a failure, also after a failure of read (). */
    int (*open) (void *b, idt_error_t *errp);

    /* Read all documents. When it succeeds, what was read is durable, and nobody else can write. */
    int (*read) (void *b, const struct document_store_reader *reader, void *arg, idt_error_t *errp);

    /* Make a commit, all or nothing. If its outcome is unknown, write () waits until it is known. */
    int (*write) (void *b, const struct document_store_change *changes, size_t n, idt_error_t *errp);

    /* Let the function that is running end soon. Another thread calls it. NULL: it ends by itself. */
    void (*stop) (void *b);

    /* Say in a sentence that there is no result yet, and why. Another thread calls it. */
    void (*late) (void *b, uint64_t ms, idt_error_t *why);

    /* As document_store_copied (). */
    int64_t (*copied) (const void *b);

    /* Close the place, and free the object. */
    void (*close) (void *b);
};

extern const struct document_backend document_disk; /* a file in place.dir */
extern const struct document_backend document_pg;   /* place.store, in PostgreSQL */

/* The end of the sentence of late (). */
#define DOCUMENT_LATE " for %llu ms (half of compressor.timeout): the requests may still be done later"

/* The first of the change's ranges that is stored as a row: its form has those before it. */
static inline size_t document_change_skip (const struct document_store_change *change)
{
    int64_t n = change->document.form ? change->document.seq + 1 - change->first : 0;

    return n < 0 ? 0 : (size_t)n < change->nranges ? (size_t)n : change->nranges;
}

#endif /* COMPRESSOR_DOCUMENT_BACKEND_H */
