/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.h - the id compressor (idtree/idcomp.h), an object in several files
 *
 *   compressor.c  life, making and converting ids
 *   range.c       creation ranges and ghost sessions: how ids become final
 *   stored.c      the stored form
 *
 * Only these files use the members of struct idcomp.
 *
 * Each generation count of the local session up to 'generated' was handed out either as a local id (then the count is
 * in 'runs') or as a final id ("eager"). The local session is session 0 of the space.
 */
#ifndef COMPRESSOR_COMPRESSOR_H
#define COMPRESSOR_COMPRESSOR_H

#include "libutil/fork_guard.h"
#include "space.h"

struct idcomp {
    struct fork_guard *guard; /* only the process that made the compressor may make ids */
    struct idspace space;
    struct idruns runs;
    int64_t generated;   /* ids that the local session made */
    int64_t next_first;  /* generation count at which the next creation range begins */
    int64_t eager_end;   /* for generation counts below it final ids are reserved */
    int64_t eager_shift; /* reserved final id minus its generation count */
    int64_t cluster_size;
    int64_t neager; /* eager ids since the last IDCOMP_STATUS event */
    int64_t nlocal;
    int flags;
    bool broken;
    bool ghost;      /* a ghost session is active */
    bool ghost_made; /* the ghost session made ids: its cluster is the last one of the space */
    char ghost_session[IDCOMP_UUID_TEXT_MAX];
    char session[IDCOMP_UUID_TEXT_MAX];
    idcomp_event_f event_cb;
    void *event_arg;
};

/* Set '*key' to the key of the session named 'text'. '*key' may point to 'text' from then on. Returns 0, or -1 with
 * errno set:
 *   IDCOMP_EBAD_UUID
 */
int compressor_key (int flags, const char *text, struct idspace_key *key);

/* Make a compressor without sessions. Returns NULL with errno ENOMEM. */
struct idcomp *compressor_new (int flags);

/* Set the name of the local session, which must be registered. */
void compressor_set_session (struct idcomp *c, const char *text);

/* Compute which final ids are reserved for the local session. Must be called when its clusters have changed. */
void compressor_set_eager (struct idcomp *c);

/* Fail if the compressor cannot be used now. Return 0, or -1 with errno set:
 *   IDCOMP_EBROKEN
 *   IDCOMP_EGHOST_ACTIVE  (only compressor_check_no_ghost ())
 */
int compressor_check (const struct idcomp *c);
int compressor_check_no_ghost (const struct idcomp *c);

/* Make 'count' ids for the active ghost session, and set '*first' to the first of them. Returns 0, or -1 with errno. */
int compressor_ghost_generate (struct idcomp *c, int64_t count, int64_t *first);

/* Set the member 'session' of the event, then call the event callback if one is set. */
void compressor_emit (const struct idcomp *c, struct idcomp_event event);

/* --- for the files that keep a document in order: replica.c, and the orderer at rank 0 --- */

/* A number that depends only on the final space: it is equal for all compressors that finalized the same ranges in the
 * same order. It does not depend on the local session. A stored form keeps it.
 */
uint64_t compressor_digest (struct idcomp *c);

/* Session and first generation count of a range. */
struct rewind_step {
    char session[IDCOMP_UUID_TEXT_MAX];
    int64_t first;
};

typedef const struct rewind_step *(*rewind_step_f) (const void *arg, size_t i);

/* Make the stored form without local state as it was before the last 'n' ranges were finalized. 'then' is what
 * idcomp_stats () returned at that time. step (arg, 0) returns the first of the 'n' ranges, step (arg, 1) the second,
 * and so on. The compressor itself must not make ids. Returns '*size' bytes, which the caller frees. NULL with errno
 * ENOMEM.
 */
void *compressor_save_then (const struct idcomp *c, const struct idcomp_stats *then, rewind_step_f step,
                            const void *arg, size_t n, size_t *size);

/* Make a compressor from a stored form without local state of 'size' bytes. The new compressor has the final space of
 * the form, and continues the session of 'mine' with all ids that 'mine' made. The caller owns the new compressor.
 * 'mine' is unchanged, and must not make further ids. Returns NULL with errno set:
 *   ESTALE         the form is older than 'mine', or has another order of ranges: ids that are
 *                  final in 'mine' would change
 *   IDCOMP_E...    the form is damaged, or has ids of this session that the session has not made
 *   ENOMEM
 */
struct idcomp *compressor_rebase (const struct idcomp *mine, const void *form, size_t size);

#endif /* COMPRESSOR_COMPRESSOR_H */
