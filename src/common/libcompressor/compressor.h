/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.h - what the parts of the compressor share, which call each other
 *
 * Generation counts of the local session up to 'generated' are either in 'runs' (handed out as
 * local ids) or were eager.  The local session is session 0 of the space.
 */
#ifndef COMPRESSOR_COMPRESSOR_H
#define COMPRESSOR_COMPRESSOR_H

#include "libutil/fork_guard.h"
#include "runs.h"
#include "space.h"

struct idcomp {
    struct fork_guard *guard; /* of this process: only here it makes ids */
    struct idspace space;
    struct idruns runs;
    int64_t generated;   /* ids that the local session made */
    int64_t next_first;  /* generation count at which the next range starts */
    int64_t eager_end;   /* generation counts below it have final ids set aside ... */
    int64_t eager_shift; /* ... which are this much higher */
    int64_t cluster_size;
    int64_t neager; /* since the last IDCOMP_STATUS event */
    int64_t nlocal;
    int flags;
    bool broken;
    bool ghost;      /* a ghost session is active */
    bool ghost_made; /* it made ids: the last cluster of the space is its own */
    char ghost_session[IDCOMP_UUID_TEXT_MAX];
    char session[IDCOMP_UUID_TEXT_MAX];
    idcomp_event_f event_cb;
    void *event_arg;
};

/* A key for the session named 'text', which it may borrow.  Returns 0, or -1 with errno set:
 *   IDCOMP_EBAD_UUID
 */
int compressor_key (int flags, const char *text, struct idspace_key *key);

/* A compressor without sessions.  Returns NULL with errno ENOMEM. */
struct idcomp *compressor_new (int flags);

/* Note the name of the local session, which is registered. */
void compressor_set_session (struct idcomp *c, const char *text);

/* Note which final ids are set aside for the local session.  Needed after its clusters changed. */
void compressor_set_eager (struct idcomp *c);

/* As idcomp_load () of a summary, which may have ids of 'session' already: it is the same session then. */
struct idcomp *compressor_load_again (const void *data, size_t size, const char *session);

/* Whether the local state goes with the final space: rules (4) and (5) of stored.c. */
bool compressor_local_state_fits (const struct idcomp *c);

/* Fail if the compressor can't be asked now.  Return 0, or -1 with errno set:
 *   IDCOMP_EBROKEN
 *   IDCOMP_EGHOST_ACTIVE  (the second function only)
 */
int compressor_check (const struct idcomp *c);
int compressor_check_no_ghost (const struct idcomp *c);

/* Fail if a range is none.  Returns 0, or -1 with errno set as for idcomp_finalize (). */
int compressor_check_range (const struct idcomp_range *range);

/* Make 'count' ids for the active ghost session, from '*first'.  Returns 0, or -1 with errno. */
int compressor_ghost_generate (struct idcomp *c, int64_t count, int64_t *first);

/* Report an event to whoever asked for it; 'session' is filled in. */
void compressor_emit (const struct idcomp *c, struct idcomp_event event);

#endif /* COMPRESSOR_COMPRESSOR_H */
