/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* space.h - the final space: which final ids belong to which ids of which sessions
 *
 * A cluster maps a block of final ids to the same number of generation counts of one session, in order. Clusters are
 * stored in the order in which they were made, and these rules hold:
 * 1. The blocks of final ids tile 0, 1, 2, ...: each cluster begins where the one before it ends, and only the last one
 *    can grow.
 * 2. The clusters of a session tile its generation counts 1, 2, 3, ... in the same way.
 * 3. The end of a cluster may be reserved, not finalized. Only the last cluster of a session has a reserve (a stored
 *    form of the original may break this rule; no code relies on it).
 *
 * So the capacity of a cluster is not stored. A cluster is a block in one array, in order of final ids, and a link in
 * an array of its session, in order of generation counts: 32 bytes in all. Each query is a search in one of the two
 * arrays.
 */
#ifndef COMPRESSOR_SPACE_H
#define COMPRESSOR_SPACE_H

#include <idtree/idcomp.h>

#include "uuid.h"

#define IDSPACE_NONE UINT32_MAX
#define IDSPACE_MAX (UINT32_MAX - 1) /* maximum number of clusters, and of sessions */

struct idblock {
    int64_t final;    /* first final id of the cluster */
    uint32_t session; /* index of its session */
    uint32_t link;    /* index in the chain of its session */
};

struct idlink {
    int64_t gen;      /* generation count of the first final id */
    uint32_t block;   /* index in the final space */
    uint32_t reserve; /* ids at the end of the cluster that are not finalized */
};

struct idsession {
    u128 base;   /* numeric form of the UUID of its first id */
    char *alias; /* its name if that is not the lower case form of 'base', else NULL */
    int64_t end; /* generation counts below it are in clusters */
    struct idlink *chain;
    uint32_t nchain;
    uint32_t room;
};

/* All data of a cluster. */
struct idcluster {
    int64_t final;
    int64_t gen;
    int64_t capacity;
    uint32_t session;
    uint32_t reserve;
};

struct idspace {
    struct idblock *blocks;     /* one for each cluster */
    struct idsession *sessions; /* in order of registration: the local session is the first */
    uint32_t *order;            /* indexes of sessions, in order of 'base' */
    uint32_t nclusters;
    uint32_t nsessions;
    uint32_t room_clusters;
    uint32_t room_sessions;
    int64_t limit;   /* final ids below it are in clusters */
    uint64_t digest; /* of the first 'summed' clusters */
    uint32_t summed;
    size_t room_links; /* allocated links in the chains of all sessions */
};

/* The key of a session: see struct idsession. 'alias' is borrowed. */
struct idspace_key {
    u128 base;
    const char *alias;
};

void idspace_fini (struct idspace *s);

/* Allocate memory for 'n' clusters (sessions) in all, so that adding them cannot fail. Return 0, or -1 with errno
 * ENOMEM.
 */
int idspace_reserve_clusters (struct idspace *s, uint32_t n);
int idspace_reserve_sessions (struct idspace *s, uint32_t n);

/* Allocate memory for 'n' clusters of a session in all. Same result. */
int idspace_reserve_chain (struct idspace *s, uint32_t session, uint32_t n);

/* Register a session and allocate memory for its first cluster. Returns its index, or IDSPACE_NONE with errno ENOMEM.
 * The caller must ensure that its 'base' is new.
 */
uint32_t idspace_add_session (struct idspace *s, const struct idspace_key *key);

/* The same for many sessions: idspace_sort_sessions () must follow before any other call. It returns 0, or -1 with
 * errno IDCOMP_ESESSION_EXISTS if two sessions have the same base.
 */
uint32_t idspace_add_session_unsorted (struct idspace *s, const struct idspace_key *key);
int idspace_sort_sessions (struct idspace *s);

/* Append a cluster to the final space and to a session; memory must be allocated in both. */
void idspace_add_cluster (struct idspace *s, uint32_t session, int64_t capacity, uint32_t reserve);

/* Add 'more' ids to the last cluster of the final space; its last 'reserve' ids are not finalized. */
void idspace_expand (struct idspace *s, int64_t more, uint32_t reserve);

/* Set the number of ids that are not finalized in cluster 'link' of a session. */
void idspace_set_reserve (struct idspace *s, uint32_t session, uint32_t link, uint32_t reserve);

/* A number that depends only on the clusters: their places, owners, capacities and reserves. Two final spaces with the
 * same digest are equal, except with a probability of about 2^-64. Takes one step for each cluster that was added since
 * the last call.
 */
uint64_t idspace_digest (struct idspace *s);

/* The session with the greatest base at or below 'num', or IDSPACE_NONE. Session 'except' (may be IDSPACE_NONE) is
 * skipped.
 */
uint32_t idspace_nearest (const struct idspace *s, u128 num, uint32_t except);

/* The session with that key, or IDSPACE_NONE with errno set:
 *   IDCOMP_EUNKNOWN_SESSION
 *   IDCOMP_ESESSION_ALIAS    its base belongs to a session with another name
 */
uint32_t idspace_find (const struct idspace *s, const struct idspace_key *key);

/* Cluster 'i' in order of final ids. */
struct idcluster idspace_cluster (const struct idspace *s, uint32_t i);

/* Find the cluster with a final id, the cluster of a session with a generation count, or the last cluster of a session.
 * Return true and set '*k', or return false if there is no such cluster.
 */
bool idspace_find_final (const struct idspace *s, int64_t id, struct idcluster *k);
bool idspace_find_gen (const struct idspace *s, uint32_t session, int64_t gen, struct idcluster *k);
bool idspace_last (const struct idspace *s, uint32_t session, struct idcluster *k);

/* The first generation count of a session that is not finalized. */
int64_t idspace_next_gen (const struct idspace *s, uint32_t session);

/* Whether generation counts gen ... gen+capacity-1 of a session that begins at 'base' would be UUIDs of another
 * session. 'session' is its index, or IDSPACE_NONE if it is not registered.
 */
bool idspace_collides (const struct idspace *s, uint32_t session, u128 base, int64_t gen, int64_t capacity);

/* Bytes in use. */
size_t idspace_memory (const struct idspace *s);

/* Whether each session of 'a' that has clusters (if 'empty_too', each session of 'a') is in 'b' with equal clusters. */
bool idspace_within (const struct idspace *a, const struct idspace *b, bool empty_too);

/* --- sets of numbers as runs: the generation counts that a session handed out as local ids, or final ids ---
 *
 * Runs are ascending, disjoint, and never adjacent: a number that follows the last run extends it.
 */

struct idruns {
    struct idcomp_run *v;
    size_t n;
    size_t room;
};

void idruns_fini (struct idruns *runs);

/* Allocate memory for 'n' runs in all. Returns 0, or -1 with errno ENOMEM. */
int idruns_reserve (struct idruns *runs, size_t n);

/* Add 'count' numbers from 'first' on, which must be above all others. Returns 0, or -1 with errno ENOMEM and the runs
 * unchanged.
 */
int idruns_append (struct idruns *runs, int64_t first, int64_t count);

/* Whether 'gen' is in a run. */
bool idruns_contain (const struct idruns *runs, int64_t gen);

/* Copy the part of the runs within first ... last to a new array '*cut' (NULL if empty; the caller frees it) of length
 * '*n'. Returns 0, or -1 with errno ENOMEM.
 */
int idruns_cut (const struct idruns *runs, int64_t first, int64_t last, struct idcomp_run **cut, size_t *n);

/* Whether both have the same numbers. */
bool idruns_equal (const struct idruns *a, const struct idruns *b);

#endif /* COMPRESSOR_SPACE_H */
