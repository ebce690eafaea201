/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_private.h - what the files of rank 0 share
 *
 *   root.c        from group to group: what changed is stored, then published, then requests are answered
 *   root_tasks.c  what a request does to the documents, and its answer
 */
#ifndef COMPRESSOR_ROOT_PRIVATE_H
#define COMPRESSOR_ROOT_PRIVATE_H

#include "modules/compressor/service.h"
#include "modules/compressor/store.h"

#define GROUP_MAX 1024 /* requests */

struct root_document {
    int64_t id;
    char name[WIRE_NAME_MAX + 1];
    char uuid[IDCOMP_UUID_TEXT];
    struct orderer *orderer;
    int64_t form_seq; /* of the stored form; -1: none is stored */
};

/* A request of the group.  finish () answers it. */
struct task {
    const idt_msg_t *msg;
    void (*finish) (struct root *root, struct task *task);
    struct root_document *doc;
    int64_t from;
    json_t *results;
};

struct root {
    struct service *service;
    struct orderer_limits limits;
    struct root_document **docs;
    uint32_t ndocs;

    struct store *store;
    idt_watcher_t *store_watcher;

    struct fifo waiting; /* requests for the next group */
    struct task tasks[GROUP_MAX];
    size_t ntasks;
    struct store_change *changes;
    struct root_document **changed; /* the document of each change */
    size_t nchanges;
    bool committing;
    size_t publishing; /* events that the broker has not taken yet */
    int failing;       /* errno of the last commit; 0: it was good */
    idt_error_t why;

    uint64_t groups, ranges, repeated, refused, events, failures;
};

/* --- root_tasks.c -------------------------------------------------------------------------------- */

/* Add a document that is stored.  Returns NULL with errno set. */
struct root_document *root_document_add (struct root *root, const struct store_document *d);
void root_document_free (struct root_document *doc);

/* Do to the documents what a request asks for (steals the reference), as the next task of the group; one that is wrong is
 * answered at once.
 */
void root_task_begin (struct root *root, const idt_msg_t *msg);

/* Answer all tasks: with what they made, or with an error. */
void root_tasks_finish (struct root *root);
void root_tasks_fail (struct root *root, int errnum, const char *text);

/* Tell why nothing is stored: to one request, or to all of the group and those that wait. */
void root_refuse (struct root *root, const idt_msg_t *msg);
void root_refuse_all (struct root *root);

/* How many ranges from 'first' on go into one message: one, or as many as fit. */
size_t root_count_ranges (const struct orderer *o, int64_t first);

/* The text of a range, for wire_ranges (): 'arg' is the orderer. */
const char *root_range_text (void *arg, int64_t seq);

#endif /* COMPRESSOR_ROOT_PRIVATE_H */
