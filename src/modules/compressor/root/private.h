/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the files of rank 0 share
 *
 *   root.c        from group to group: what changed is stored, then published, then requests are answered
 *   tasks.c       what a request does to the documents, and its answer
 *   edits.c       documents end, or have another name
 *   reads.c       what is told of documents as they are stored, which waits for no disk
 */
#ifndef COMPRESSOR_ROOT_PRIVATE_H
#define COMPRESSOR_ROOT_PRIVATE_H

#include "libutil/queue/turns.h"
#include "modules/compressor/service.h"
#include "modules/compressor/root/store.h"

#define GROUP_MAX 1024 /* requests */

/* A stored form that is sent in pieces: made once for all who ask for it meanwhile. */
struct kept_form {
    void *bytes; /* NULL: none */
    size_t size;
    int64_t seq;
    uint64_t used_ms; /* when somebody asked for a piece of it last */
};

struct root_document {
    uint32_t refs; /* the list of documents, and tasks */
    bool gone;     /* it was deleted: nothing but tasks knows of it */
    int64_t id;
    uint32_t owner; /* userid; IDT_USERID_UNKNOWN: nobody's but the instance's owner's */
    char name[DOCWIRE_NAME_MAX + 1];
    char uuid[IDCOMP_UUID_TEXT_MAX];
    struct orderer *orderer;
    int64_t form_seq; /* of the stored form; -1: none is stored */
    struct kept_form kept;
    idt_error_t refused; /* why nothing of it is told; "": it is good */
};

/* A request that has begun.  answer () ends it: when the group is stored, or in the turn of its document. */
struct root_task {
    const idt_msg_t *msg;
    void (*answer) (struct root *root, const struct root_task *task);
    struct root_document *doc;
    json_t *results; /* order; what the end or the name of a document is answered with */
    int64_t seq;     /* fetch: the first range; state: of the form */
    size_t offset;   /* state */
    bool behind;     /* join: the last ranges may be missing in the form, the asker will fetch them */
    size_t cost;     /* of an answer that is read */
};

struct root_method {
    const char *topic; /* NULL: the end of a list of them */
    int (*begin) (struct root *root, struct root_task *task, const json_t *o, idt_error_t *errp);
};

/* What the group that is being stored does to one document in the end: one such request is the last of its group. */
struct root_edit {
    struct root_document *doc;       /* NULL: there is none */
    char name[DOCWIRE_NAME_MAX + 1]; /* its new name; "": it is deleted */
};

struct root {
    struct service *service;
    struct orderer_limits limits;
    struct root_document **docs;
    uint32_t ndocs;
    int64_t last_id; /* that a document has had: none comes twice while we run */

    struct store *store; /* NULL: it cannot be used, as 'why' says */
    idt_watcher_t *store_watcher;

    struct fifo waiting; /* requests for the next group */
    struct root_task tasks[GROUP_MAX];
    size_t ntasks;
    struct store_change *changes;
    size_t nchanges;
    struct root_edit edit;
    bool committing;
    uint64_t commit_us; /* CLOCK_MONOTONIC when it began */
    size_t publishing;  /* events that the broker has not taken yet */
    int failing;        /* errno of the last commit; 0: it was good */
    idt_error_t why;
    bool told; /* that it fails */

    struct turns *reads; /* by documents */
    idt_watcher_t *reads_prepare, *reads_idle;
    size_t kept_bytes;

    uint64_t groups, ranges, repeated, refused, events, failures, forms;
    struct metrics_times commits; /* how long those took that were stored */
};

/* --- root.c -------------------------------------------------------------------------------------- */

/* Publish an event of a document (stolen; NULL: no memory); requests of the group are answered after it. */
void root_publish_new (struct root *root, const char *name, char *text);

/* --- tasks.c ------------------------------------------------------------------------------------- */

/* Add a document that is stored.  Returns NULL with errno set. */
struct root_document *root_document_add (struct root *root, const struct store_document *d);

/* Forget documents from number 'n' on. */
void root_documents_cut (struct root *root, uint32_t n);

/* Take one out of the list of documents. */
void root_document_remove (struct root *root, struct root_document *doc);

/* Keep a document that a task is about; let it go (NULL is fine). */
struct root_document *root_document_ref (struct root_document *doc);
void root_document_unref (struct root_document *doc);

/* Answer a task, or tell that its document was deleted meanwhile. */
void root_answer (struct root *root, const struct root_task *task);

/* The method that a message asks for; NULL: none of 'methods'. */
const struct root_method *root_find_method (const struct root_method *methods, const idt_msg_t *msg);

/* Begin the task of a message (borrowed).  Returns 0, or -1 with errno set and 'errp' filled. */
int root_begin (struct root *root, const struct root_method *method, struct root_task *task, const idt_msg_t *msg,
                idt_error_t *errp);

/* The document that a request or an element names, NULL with errno set and 'errp' filled: EPROTO, ENOENT. */
struct root_document *root_find (struct root *root, const json_t *o, idt_error_t *errp);

/* The same for somebody who joined: by the UUID, whatever its name is now.  Also ESTALE, or ENOTRECOVERABLE where it is
 * refused.  'seq' is the number of the last range that he has finalized; "digest", where it is there, tells of which
 * history (below).
 */
struct root_document *root_find_joined (struct root *root, const json_t *o, int64_t seq, idt_error_t *errp);

/* Do to the documents what a request asks for (steals the reference), as the next task of the group; one that is wrong
 * is answered at once.
 */
void root_task_begin (struct root *root, const idt_msg_t *msg);

/* Answer all tasks: with what they made, or because the service stops. */
void root_tasks_finish (struct root *root);
void root_tasks_stop (struct root *root);

/* Tell why nothing is stored: to one request, or to all of the group and those that wait. */
void root_refuse (struct root *root, const idt_msg_t *msg);
void root_refuse_all (struct root *root);

/* How many ranges from 'first' on, up to 'last', go into one message: one, or as many as fit; '*bytes' are theirs. */
size_t root_count_ranges (const struct orderer *o, int64_t first, int64_t last, size_t *bytes);

/* The text of a range, for docwire_ranges (): 'arg' is the orderer. */
const char *root_range_text (void *arg, int64_t seq);

/* --- edits.c --------------------------------------------------------------------------------------- */

/* Methods of requests. */
int root_begin_delete (struct root *root, struct root_task *task, const json_t *o, idt_error_t *errp);
int root_begin_rename (struct root *root, struct root_task *task, const json_t *o, idt_error_t *errp);

/* What a commit does for it, in 'change', which is of its document. */
void root_edit_store (const struct root *root, struct store_change *change);

/* It is stored: do it, and tell all.  Or it could not be. */
void root_edit_done (struct root *root);
void root_edit_drop (struct root *root);

/* --- reads.c --------------------------------------------------------------------------------------- */

/* Returns 0, or -1 with errno ENOMEM. */
int root_reads_init (struct root *root);
void root_reads_fini (struct root *root);

/* Take a request that reads.  Returns false where it is none: it changes documents. */
bool root_read (struct root *root, const idt_msg_t *msg);

/* Forget the form that is kept of a document. */
void root_reads_forget (struct root *root, struct root_document *doc);

/* Answer a join of a document that is stored. */
void root_answer_join (struct root *root, const struct root_task *task);

/* Forget forms that nobody asks for any more. */
void root_reads_tick (struct root *root);

#endif /* COMPRESSOR_ROOT_PRIVATE_H */
