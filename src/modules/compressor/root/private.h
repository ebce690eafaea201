/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - shared by the files of rank 0: one object, in several files
 *
 *   document_root.c  one group after another: store the changes, publish them, answer the requests
 *   tasks.c          the changes that a request makes, and its answer
 *   reads.c          answers from stored documents, which do not wait for the disk
 *
 * document_root.c calls the other files, and no file calls document_root.c.
 */
#ifndef COMPRESSOR_ROOT_PRIVATE_H
#define COMPRESSOR_ROOT_PRIVATE_H

#include "libutil/queue/drr_queue.h"
#include "modules/compressor/service.h"
#include "modules/compressor/root/document_store.h"

#define GROUP_MAX 1024 /* the most requests of a group */

/* A group begins no further request after it has requests of GROUP_BYTES, and writes no further form that is not needed
 * after it has forms of GROUP_BYTES. So a commit stays far below 1 GiB, the most that PostgreSQL takes.
 */
#define GROUP_BYTES ((size_t)64 << 20)

/* A stored form that is sent in pieces. It is made once for all requesters that read it at the same time. */
struct kept_form {
    void *bytes; /* NULL: no form */
    size_t size;
    int64_t seq;
    uint64_t used_ms; /* when a piece was requested last */
};

struct stored_document {
    uint32_t refs; /* held by the list of documents, and by tasks */
    bool gone;     /* deleted: only tasks refer to it */
    int64_t id;
    uint32_t owner; /* userid; IDT_USERID_UNKNOWN: only the instance owner may change it */
    char name[DOCWIRE_NAME_MAX + 1];
    char uuid[IDCOMP_UUID_TEXT_MAX];
    struct orderer *orderer;
    int64_t form_seq; /* last range in the stored form; -1: no form is stored */
    struct kept_form kept;
    idt_error_t refused; /* why rank 0 refuses the document; "": it does not */
};

/* A request that has begun. answer () ends the request: a read in the turn of its document, other requests when the
 * group is stored.
 */
struct document_root_task {
    const idt_msg_t *msg;
    void (*answer) (struct document_root *root, const struct document_root_task *task);
    struct stored_document *doc;
    json_t *results; /* of order, delete and rename: the answer; of a refused read: the error */
    int64_t seq;     /* of fetch: the first range; of state: the range of the form */
    size_t offset;   /* of state: bytes of the form before this piece */
    bool behind;     /* of join: the form may lack the newest ranges, because the requester will fetch them */
    size_t cost;     /* of a read: bytes of the answer, estimated */
};

struct document_root_method {
    const char *topic; /* NULL: the end of a list */
    int (*begin) (struct document_root *root, struct document_root_task *task, const json_t *o, idt_error_t *errp);
};

/* The deletion or renaming that the current group ends with. */
struct document_root_edit {
    struct stored_document *doc;     /* NULL: none */
    char name[DOCWIRE_NAME_MAX + 1]; /* the new name; "": delete it */
};

struct document_root {
    struct compressor *service;
    struct orderer_limits limits;
    struct stored_document **docs;
    uint32_t ndocs;
    int64_t last_id; /* the highest document id so far; an id is not reused while this service runs */

    struct document_store *store; /* NULL: it cannot be used; 'why' has the reason */
    bool open;                    /* the store is open, and 'docs' has its documents */
    idt_watcher_t *store_watcher;

    struct fifo waiting; /* requests that wait for the next group */
    struct document_root_task tasks[GROUP_MAX];
    size_t ntasks;
    struct document_store_change *changes;
    size_t nchanges;
    struct document_root_edit edit;
    bool confirm;       /* the group has a refusal that is answered only after a commit */
    bool committing;    /* a commit is under way, or the store is being opened */
    uint64_t commit_us; /* CLOCK_MONOTONIC when that began */
    size_t publishing;  /* events that the broker has not confirmed yet */
    int failing;        /* errno of the last commit; 0: it succeeded */
    idt_error_t why;
    bool told; /* the failure was logged */

    struct drr_queue *reads; /* waiting reads; documents take turns */
    idt_watcher_t *reads_prepare, *reads_idle;
    size_t kept_bytes;

    uint64_t groups, ranges, repeated, refused, events, failures, forms;
    struct metrics_times commits; /* durations of successful commits */
};

/* --- tasks.c ------------------------------------------------------------------------------------- */

/* Add a stored document. Returns NULL with errno set. */
struct stored_document *stored_document_add (struct document_root *root, const struct document_store_document *d);

/* Drop the documents from index 'n' on. */
void document_root_documents_cut (struct document_root *root, uint32_t n);

/* Remove a document from the list. */
void stored_document_remove (struct document_root *root, struct stored_document *doc);

/* Take a reference to a document; drop a reference. NULL is allowed. */
struct stored_document *stored_document_ref (struct stored_document *doc);
void stored_document_unref (struct stored_document *doc);

/* Answer a task. If its document was deleted meanwhile, the answer is ENOENT. */
void document_root_answer (struct document_root *root, const struct document_root_task *task);

/* The method for the topic of a message, or NULL if 'methods' has none. */
const struct document_root_method *document_root_find_method (const struct document_root_method *methods,
                                                              const idt_msg_t *msg);

/* Begin the task of a message (borrowed). Returns 0, or -1 with errno set and 'errp' filled. */
int document_root_begin (struct document_root *root, const struct document_root_method *method,
                         struct document_root_task *task, const idt_msg_t *msg, idt_error_t *errp);

/* Find the document that a request or an element names. Returns NULL with errno set and 'errp' filled:
 *   EPROTO  the request has no name
 *   ENOENT  no document has that name
 */
struct stored_document *document_root_find (struct document_root *root, const json_t *o, idt_error_t *errp);

/* Find the document of a session that has joined. It is found by its UUID, even if it has another name now. 'seq' is
 * the last range that the session has finalized, and the request's "digest", if present, is the digest of the session's
 * history up to 'seq'. Returns NULL with errno set and 'errp' filled: to a value of document_root_find (), or to
 *   ESTALE          another document has the name now
 *   ENOTRECOVERABLE the document is refused, because its history differs from that of this or another session
 */
struct stored_document *document_root_find_joined (struct document_root *root, const json_t *o, int64_t seq,
                                                   idt_error_t *errp);

/* Begin a request as the next task of the group. The reference to 'msg' is taken over. If the request is invalid, it is
 * answered immediately.
 */
void document_root_task_begin (struct document_root *root, const idt_msg_t *msg);

/* Whether a request that was refused with 'errnum' must wait for a commit. A session ends when it gets such a refusal.
 * If another process has become rank 0, it may have what is missing here. So in PostgreSQL such refusals are answered
 * only after a commit that began later: it fails if this rank 0 was replaced.
 */
bool document_root_must_confirm (const struct document_root *root, int errnum);

/* Answer all tasks of the group. document_root_tasks_finish () answers them with their results,
 * document_root_tasks_stop () with the error that the service stops.
 */
void document_root_tasks_finish (struct document_root *root);
void document_root_tasks_stop (struct document_root *root);

/* Answer with the reason why documents cannot be stored. document_root_refuse () answers one request,
 * document_root_refuse_all () answers all tasks of the group and all requests that wait for the next group.
 */
void document_root_refuse (struct document_root *root, const idt_msg_t *msg);
void document_root_refuse_all (struct document_root *root);

/* The number of ranges from 'first' up to 'last' that fit into one message. It is at least one, unless range 'first' is
 * not kept. '*bytes' gets the size of these ranges.
 */
size_t document_root_count_ranges (const struct orderer *o, int64_t first, int64_t last, size_t *bytes);

/* The text of a range, as a callback of docwire_ranges (); 'arg' is the orderer. */
const char *document_root_range_text (void *arg, int64_t seq);

/* --- reads.c --------------------------------------------------------------------------------------- */

/* Returns 0, or -1 with errno ENOMEM. */
int document_root_reads_init (struct document_root *root);
void document_root_reads_fini (struct document_root *root);

/* Handle a request that only reads. Returns false if the request is not handled, because it changes documents, or was
 * refused and must wait for a commit.
 */
bool document_root_read (struct document_root *root, const idt_msg_t *msg);

/* Drop the kept form of a document. */
void document_root_reads_forget (struct document_root *root, struct stored_document *doc);

/* Answer a join of a stored document. */
void document_root_answer_join (struct document_root *root, const struct document_root_task *task);

/* Drop kept forms that were not requested for compressor.timeout. */
void document_root_reads_tick (struct document_root *root);

#endif /* COMPRESSOR_ROOT_PRIVATE_H */
