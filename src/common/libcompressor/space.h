/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* space.h - the final space: which final ids belong to which ids of which sessions
 *
 * A cluster maps a block of final ids to the same number of generation counts of one session, in order. Clusters are
 * stored in the order in which they were made, and these rules hold:
 * 1. The blocks of final ids cover 0, 1, 2, ... without gaps: each cluster begins where the previous cluster ends, and
 *    only the last one can grow.
 * 2. The clusters of a session cover its generation counts 1, 2, 3, ... without gaps, in the same way.
 * 3. The ids at the end of a cluster may be reserved, which means not finalized yet. Only the last cluster of a session
 *    has such a reserve. (A stored form of the original may break this rule. No code relies on rule 3.)
 *
 * Because of rule 1 the capacity of a cluster is not stored. A cluster is a block in one array, in order of final ids,
 * and a link in an array of its session, in order of generation counts: 32 bytes in all. Each query is a search in one
 * of the two arrays.
 */
#ifndef COMPRESSOR_SPACE_H
#define COMPRESSOR_SPACE_H

#include <idtree/idcomp.h>

#include "uuid.h"

#define IDSPACE_NONE UINT32_MAX
#define IDSPACE_MAX (UINT32_MAX - 1) /* maximum number of clusters, and of sessions */

struct idblock {
    int64_t final;    /* first final id of the cluster */
    uint32_t session; /* index of the session that the cluster belongs to */
    uint32_t link;    /* index of the cluster's link in the chain of its session */
};

struct idlink {
    int64_t gen;      /* generation count of the cluster's first final id */
    uint32_t block;   /* index of the cluster's block in the final space */
    uint32_t reserve; /* ids at the end of the cluster that are not finalized */
};

struct idsession {
    u128 base;   /* numeric form of the session's UUID, which is also the UUID of its first id */
    char *alias; /* the session's name if it is not the lower case form of 'base', else NULL */
    int64_t end; /* generation counts below it are in clusters of the session */
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
    struct idblock *blocks;     /* an element for each cluster */
    struct idsession *sessions; /* in order of registration: the local session is the first */
    uint32_t *order;            /* indexes of all sessions, sorted by 'base' */
    uint32_t nclusters;
    uint32_t nsessions;
    uint32_t room_clusters;
    uint32_t room_sessions;
    int64_t limit;   /* final ids below it are in clusters */
    uint64_t digest; /* digest of the first 'summed' clusters */
    uint32_t summed;
    size_t room_links; /* allocated links in the chains of all sessions */
};

/* The key of a session: see struct idsession. 'alias' is borrowed. */
struct idspace_key {
    u128 base;
    const char *alias;
};

void idspace_fini (struct idspace *s);

/* Allocate memory for 'n' clusters or 'n' sessions in all, so that adding one cannot fail. Return 0, or -1 with errno
 * ENOMEM.
 */
int idspace_reserve_clusters (struct idspace *s, uint32_t n);
int idspace_reserve_sessions (struct idspace *s, uint32_t n);

/* Allocate memory for 'n' clusters of one session in all. Returns 0, or -1 with errno ENOMEM. */
int idspace_reserve_chain (struct idspace *s, uint32_t session, uint32_t n);

/* Register a session and allocate memory for its first cluster. The caller must ensure that no registered session has
 * the same 'base'. Returns the session's index, or IDSPACE_NONE with errno ENOMEM.
 */
uint32_t idspace_add_session (struct idspace *s, const struct idspace_key *key);

/* Register many sessions: idspace_add_session_unsorted () is like idspace_add_session (), but does not sort. After the
 * last session idspace_sort_sessions () must be called before any other function. idspace_sort_sessions () returns 0,
 * or -1 with errno IDCOMP_ESESSION_EXISTS if two sessions have the same base.
 */
uint32_t idspace_add_session_unsorted (struct idspace *s, const struct idspace_key *key);
int idspace_sort_sessions (struct idspace *s);

/* Append a cluster to the final space and to a session. The caller must have allocated memory in both. */
void idspace_add_cluster (struct idspace *s, uint32_t session, int64_t capacity, uint32_t reserve);

/* Add 'more' ids to the last cluster of the final space. Afterwards the last 'reserve' ids of this cluster are not
 * finalized.
 */
void idspace_expand (struct idspace *s, int64_t more, uint32_t reserve);

/* Set the number of ids that are not finalized in cluster 'link' of a session. */
void idspace_set_reserve (struct idspace *s, uint32_t session, uint32_t link, uint32_t reserve);

/* A number that depends only on the clusters: their places, owners, capacities and reserves. Two final spaces with the
 * same digest are equal, except with a probability of about 2^-64. The function takes one step for each cluster that
 * was added since its last call.
 */
uint64_t idspace_digest (struct idspace *s);

/* The session with the greatest base that is not above 'num'; IDSPACE_NONE if there is no such session. Session
 * 'except' is skipped; IDSPACE_NONE skips no session.
 */
uint32_t idspace_nearest (const struct idspace *s, u128 num, uint32_t except);

/* The session with the key 'key', or IDSPACE_NONE with errno set:
 *   IDCOMP_EUNKNOWN_SESSION
 *   IDCOMP_ESESSION_ALIAS    the base of 'key' belongs to a session with another name
 */
uint32_t idspace_find (const struct idspace *s, const struct idspace_key *key);

/* Cluster 'i' in order of final ids. */
struct idcluster idspace_cluster (const struct idspace *s, uint32_t i);

/* Find a cluster and store it in '*k'. Return true, or false if there is no such cluster. idspace_find_final (): the
 * cluster that contains a final id. idspace_find_gen (): the cluster of a session that contains a generation count.
 * idspace_last (): the last cluster of a session.
 */
bool idspace_find_final (const struct idspace *s, int64_t id, struct idcluster *k);
bool idspace_find_gen (const struct idspace *s, uint32_t session, int64_t gen, struct idcluster *k);
bool idspace_last (const struct idspace *s, uint32_t session, struct idcluster *k);

/* The first generation count of a session that is not finalized. */
int64_t idspace_next_gen (const struct idspace *s, uint32_t session);

/* Whether the UUIDs of generation counts gen ... gen+capacity-1 of a session include a UUID of another registered
 * session. 'base' is where the session begins. 'session' is its index, or IDSPACE_NONE if it is not registered.
 */
bool idspace_collides (const struct idspace *s, uint32_t session, u128 base, int64_t gen, int64_t capacity);

/* Bytes of allocated memory. */
size_t idspace_memory (const struct idspace *s);

/* Whether 'b' contains each session of 'a' with equal clusters. Unless 'empty_too' is set, sessions of 'a' without
 * clusters are skipped.
 */
bool idspace_within (const struct idspace *a, const struct idspace *b, bool empty_too);

/* --- sets of numbers as runs: the generation counts that a session handed out as local ids, or final ids ---
 *
 * Runs are ascending and disjoint. A number that follows the last run extends that run, so no two runs are adjacent.
 */

struct idruns {
    struct idcomp_run *v;
    size_t n;
    size_t room;
};

void idruns_fini (struct idruns *runs);

/* Allocate memory for 'n' runs in all. Returns 0, or -1 with errno ENOMEM. */
int idruns_reserve (struct idruns *runs, size_t n);

/* Add the numbers first ... first + count - 1, which must be above all others. Returns 0, or -1 with errno ENOMEM and
 * the runs unchanged.
 */
int idruns_append (struct idruns *runs, int64_t first, int64_t count);

/* Whether 'gen' is in a run. */
bool idruns_contain (const struct idruns *runs, int64_t gen);

/* Copy those parts of the runs that lie within first ... last to a new array '*cut' of length '*n'. The caller frees
 * the array; it is NULL if no number lies there. Returns 0, or -1 with errno ENOMEM.
 */
int idruns_cut (const struct idruns *runs, int64_t first, int64_t last, struct idcomp_run **cut, size_t *n);

/* Whether two sets have the same numbers. */
bool idruns_equal (const struct idruns *a, const struct idruns *b);

#endif /* COMPRESSOR_SPACE_H */
