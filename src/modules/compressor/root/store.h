/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store.h - the documents of an instance, at rank 0
 *
 * The file is compressor.sqlite in the state directory.  Commits are made by a thread of the store's own, one at a
 * time; the reactor is told through a descriptor.
 */
#ifndef COMPRESSOR_STORE_H
#define COMPRESSOR_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>
#include <idtree/idcomp.h>
#include <idtree/msg.h>

struct store;

/* A document as it is stored: its form, in which ranges 1 ... 'seq' are finalized.  Ranges since follow. */
struct store_document {
    int64_t id; /* its number in the file, > 0 */
    const char *name;
    const char *uuid;
    int64_t seq;
    const void *form;
    size_t form_size;
    uint32_t owner; /* whose it is; IDT_USERID_UNKNOWN: nobody knows, it is of a version that did not tell */
};

/* What a commit does to a document: what is added, then its end or its new name. */
struct store_change {
    struct store_document document; /* form not NULL: put it in place of what is stored, and of ranges up to 'seq';
                                       needed for a new document.  Else only the id counts */
    int64_t first;                  /* number of the first of these ranges */
    const char **ranges;            /* texts */
    size_t nranges;
    bool deleted;         /* nothing of it stays */
    const char *new_name; /* NULL: it keeps its name */
    void *arg;            /* the caller's */
};

/* Called for each document, then each of its ranges in order; return 0 to go on, or -1 with errno and 'errp' set. */
struct store_reader {
    int (*document) (void *arg, const struct store_document *document, idt_error_t *errp);
    int (*range) (void *arg, int64_t seq, const char *text, idt_error_t *errp);
};

/* Open the file in folder 'dir' or make it, and read what is in it.  Blocks.  Returns NULL with errno set and 'errp'
 * filled, as database_open ().
 */
struct store *store_open (const char *dir, const char *holder, const struct store_reader *reader, void *arg,
                          idt_error_t *errp);

/* When the file was copied by idtree state backup (Unix seconds), where it is such a copy and was opened for the first
 * time: each document in it has another UUID since.  0: it is none.
 */
int64_t store_copied (const struct store *st);

/* Have the thread commit all of 'changes', or nothing of them.  They are borrowed until the result is taken.  At most
 * one commit may be under way.  Never blocks on the disk.
 */
void store_commit (struct store *st, const struct store_change *changes, size_t n);

/* Readable (level-triggered) when a commit has ended. */
int store_fd (const struct store *st);

/* Take the outcome of the commit.  Returns 1: it is durable; 0: none has ended; -1 with errno set and 'errp' filled:
 * nothing of it is there.
 */
int store_result (struct store *st, idt_error_t *errp);

/* Wait for the thread, and close.  Blocks.  NULL is fine; keeps errno. */
void store_close (struct store *st);

#endif /* COMPRESSOR_STORE_H */
