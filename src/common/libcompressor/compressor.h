/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.h - shared by the files of the compressor
 *
 * Each generation count of the local session up to 'generated' is either in 'runs' (it was handed out as a local id) or
 * was handed out as a final id (eager). The local session is session 0 of the space.
 */
#ifndef COMPRESSOR_COMPRESSOR_H
#define COMPRESSOR_COMPRESSOR_H

#include "libutil/fork_guard.h"
#include "runs.h"
#include "space.h"

struct idcomp {
    struct fork_guard *guard; /* only the process that made the compressor may make ids */
    struct idspace space;
    struct idruns runs;
    int64_t generated;   /* ids that the local session made */
    int64_t next_first;  /* generation count at which the next range begins */
    int64_t eager_end;   /* generation counts below it have reserved final ids ... */
    int64_t eager_shift; /* ... which are higher by this number */
    int64_t cluster_size;
    int64_t neager; /* since the last IDCOMP_STATUS event */
    int64_t nlocal;
    int flags;
    bool broken;
    bool ghost;      /* a ghost session is active */
    bool ghost_made; /* it made ids: the last cluster of the space is its cluster */
    char ghost_session[IDCOMP_UUID_TEXT_MAX];
    char session[IDCOMP_UUID_TEXT_MAX];
    idcomp_event_f event_cb;
    void *event_arg;
};

/* The key of the session named 'text', which the key may borrow. Returns 0, or -1 with errno set:
 *   IDCOMP_EBAD_UUID
 */
int compressor_key (int flags, const char *text, struct idspace_key *key);

/* A compressor without sessions.  Returns NULL with errno ENOMEM. */
struct idcomp *compressor_new (int flags);

/* Set the name of the local session, which must be registered. */
void compressor_set_session (struct idcomp *c, const char *text);

/* Compute which final ids are reserved for the local session. Must be called when its clusters have changed. */
void compressor_set_eager (struct idcomp *c);

/* As idcomp_load () of a summary, except that the summary may contain 'session': the new compressor then continues it.
 */
struct idcomp *compressor_load_again (const void *data, size_t size, const char *session);

/* Whether the local state is consistent with the final space: rules (4) and (5) of stored.c. */
bool compressor_local_state_fits (const struct idcomp *c);

/* Fail if the compressor cannot be used now. Return 0, or -1 with errno set:
 *   IDCOMP_EBROKEN
 *   IDCOMP_EGHOST_ACTIVE  (the second function only)
 */
int compressor_check (const struct idcomp *c);
int compressor_check_no_ghost (const struct idcomp *c);

/* Fail if a range is not valid. Returns 0, or -1 with errno set as for idcomp_finalize (). */
int compressor_check_range (const struct idcomp_range *range);

/* Make 'count' ids for the active ghost session, beginning with '*first'. Returns 0, or -1 with errno. */
int compressor_ghost_generate (struct idcomp *c, int64_t count, int64_t *first);

/* Call the event callback, if one is set, after filling in 'session'. */
void compressor_emit (const struct idcomp *c, struct idcomp_event event);

#endif /* COMPRESSOR_COMPRESSOR_H */
