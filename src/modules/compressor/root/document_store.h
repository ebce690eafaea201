/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_store.h - the documents of an instance, at rank 0
 *
 * The file is compressor.sqlite in the statedir. A thread of the store makes commits, one at a time. A descriptor
 * notifies the reactor when a commit has ended.
 */
#ifndef COMPRESSOR_DOCUMENT_STORE_H
#define COMPRESSOR_DOCUMENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/idcomp.h>
#include <idtree/msg.h>

struct document_store;

/* A document as it is stored: its form, in which ranges 1 ... 'seq' are finalized. Later ranges are stored separately.
 */
struct document_store_document {
    int64_t id; /* its number in the file, > 0 */
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

/* Functions that get the stored content. 'document' is called for each document; after it 'range' is called for each
 * range of that document, in order. They return 0 to continue, or -1 with errno and 'errp' set.
 */
struct document_store_reader {
    int (*document) (void *arg, const struct document_store_document *document, idt_error_t *errp);
    int (*range) (void *arg, int64_t seq, const char *text, idt_error_t *errp);
};

/* Open the file in folder 'dir', or create it, and read its content. Blocks. Returns NULL with errno set and 'errp'
 * filled, as by database_open ().
 */
struct document_store *document_store_open (const char *dir, const char *holder,
                                            const struct document_store_reader *reader, void *arg, idt_error_t *errp);

/* Returns 0, unless the file is a copy that idtree state backup made, and was opened for the first time. For such a
 * copy it returns when the copy was made, in Unix seconds, and each document has got a new UUID.
 */
int64_t document_store_copied (const struct document_store *st);

/* Let the thread commit 'changes', all or nothing. 'changes' is borrowed until document_store_result () has returned 1
 * or -1. Only one commit may be under way. Never blocks on the disk.
 */
void document_store_commit (struct document_store *st, const struct document_store_change *changes, size_t n);

/* A descriptor that is readable (level-triggered) when a commit has ended. */
int document_store_fd (const struct document_store *st);

/* Take the result of the commit. Returns 1 if it is durable, 0 if no commit has ended, or -1 with errno set and 'errp'
 * filled: nothing was stored.
 */
int document_store_result (struct document_store *st, idt_error_t *errp);

/* Wait for the thread, and close the file. Blocks. NULL is allowed; errno is kept. */
void document_store_close (struct document_store *st);

#endif /* COMPRESSOR_DOCUMENT_STORE_H */
