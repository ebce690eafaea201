/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_store.h - the documents of an instance, at rank 0
 *
 * They are in the file compressor.sqlite in the statedir, or in PostgreSQL (root.store). A thread of the store reads
 * them and makes commits, one piece of work at a time. A descriptor notifies the reactor when a piece has ended.
 */
#ifndef COMPRESSOR_DOCUMENT_STORE_H
#define COMPRESSOR_DOCUMENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/idcomp.h>
#include <idtree/msg.h>

#include "libmodule/module.h"

struct document_store;

/* A document as it is stored: its form, in which ranges 1 ... 'seq' are finalized. Later ranges are stored separately.
 */
struct document_store_document {
    int64_t id; /* its number in the store, > 0 */
    const char *name;
    const char *uuid;
    int64_t seq;
    const void *form;
    size_t form_size;
    uint32_t owner; /* the owner; IDT_USERID_UNKNOWN: stored by an older version without owners */
};

/* The changes of a commit to one document: a new form, ranges, and finally a deletion or a new name. */
struct document_store_change {
    /* If 'form' is not NULL, it replaces the stored form and the ranges up to 'seq'. A new document needs a form. If
     * 'form' is NULL, only 'id' is used.
     */
    struct document_store_document document;
    int64_t first;       /* number of ranges[0] */
    const char **ranges; /* texts */
    size_t nranges;
    bool deleted;         /* delete the document */
    const char *new_name; /* NULL: keep the name */
    void *arg;            /* for the caller's use */
};

/* Functions that get the stored content; the thread of the store calls them. 'document' is called for each document;
 * after it 'range' is called for each range of that document, in order. They return 0 to continue, or -1 with errno and
 * 'errp' set.
 */
struct document_store_reader {
    int (*document) (void *arg, const struct document_store_document *document, idt_error_t *errp);
    int (*range) (void *arg, int64_t seq, const char *text, idt_error_t *errp);
};

/* Prepare a store. 'place' must stay valid. The reader functions are called with 'arg'. Returns NULL with errno set and
 * 'errp' filled.
 */
struct document_store *document_store_create (const struct module_place *place, const char *holder,
                                              const struct document_store_reader *reader, void *arg, idt_error_t *errp);

/* Let the thread open the store, or make its file, and read its content. Never blocks; document_store_result () returns
 * the outcome. After a failure it can be called again. It must succeed before the first commit.
 */
void document_store_open (struct document_store *st);

/* Returns 0, unless the store is a copy that idtree state backup made, and was opened for the first time. For such a
 * copy it returns when the copy was made, in Unix seconds, and each document has got a new UUID.
 */
int64_t document_store_copied (const struct document_store *st);

/* Let the thread commit 'changes', all or nothing. 'changes' is borrowed until document_store_result () has returned 1
 * or -1. Only one piece of work may be under way. Never blocks. Names of new and renamed documents must differ from the
 * stored names and from each other. Without changes it checks that the store can be written; in PostgreSQL that proves
 * that this rank 0 was not replaced before the commit began.
 */
void document_store_commit (struct document_store *st, const struct document_store_change *changes, size_t n);

/* A descriptor that is readable (level-triggered) when a piece of work has ended. */
int document_store_fd (const struct document_store *st);

/* Take the result of the work. Returns 1 if the store is open or the commit is durable, 0 if no work has ended, or -1
 * with errno set and 'errp' filled: nothing was stored. errno is as database_open () and database_run () set it, or in
 * PostgreSQL as fenced_open () and fenced_write () do, but:
 *   EAGAIN  another process is rank 0 now. The commit under way may be stored, and no later one will be
 *   EFBIG   the commit is larger than PostgreSQL accepts
 */
int document_store_result (struct document_store *st, idt_error_t *errp);

/* Wait until the work has ended, and return its result. */
int document_store_wait (struct document_store *st, idt_error_t *errp);

/* Say in 'why' that the work has no result after 'ms', and why. */
void document_store_late (const struct document_store *st, uint64_t ms, idt_error_t *why);

/* End the thread, and close the store. A file is closed when the work has ended. In PostgreSQL the work is given up: a
 * commit that is under way may be stored or not. Blocks. NULL is allowed; errno is kept.
 */
void document_store_close (struct document_store *st);

#endif /* COMPRESSOR_DOCUMENT_STORE_H */
