/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.h - the known state of the ranks of an instance, and its JSON for readers (etc/openapi.json); no I/O
 *
 * The caller passes in the answers of brokers and the time. A rank is shown below the rank that it is attached to. That
 * is its parent in the topology, unless the rank has reported another one. A lost rank is attached to no rank.
 */
#ifndef HTTP_LIVE_RANKS_H
#define HTTP_LIVE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define RANKS_ROWS 512    /* most ranks in one answer */
#define RANKS_CHANGES 256 /* most changes in one event */
#define RANKS_MAX_DEPTH 64
#define RANKS_MAX 1000000
#define RANKS_NONE (-1)

struct live_ranks;

struct live_ranks *ranks_create (void); /* the object has no ranks yet; NULL with errno ENOMEM */
void ranks_destroy (struct live_ranks *r);

uint32_t ranks_size (const struct live_ranks *r);

/* --- answers of brokers ----------------------------------------------------- */

/* Pass in the answer of overlay.topology of rank 0. If the tree differs from the previous one, all other data is
 * dropped. Returns 0, or -1 with errno EPROTO or ENOMEM; then nothing has changed.
 */
int ranks_take_topology (struct live_ranks *r, const json_t *topology);

/* Pass in the answer of metrics.get for all ranks: their status, and the states of generators. */
void ranks_take_survey (struct live_ranks *r, const json_t *report);

/* Pass in the answers of one rank: fluid.info, fluid.stats-get, overlay.stats-get, and its host name. Malformed answers
 * are ignored.
 */
void ranks_take_info (struct live_ranks *r, uint32_t rank, const json_t *info, double now_s);
void ranks_take_stats (struct live_ranks *r, uint32_t rank, const json_t *stats, double now_s);
void ranks_take_overlay (struct live_ranks *r, uint32_t rank, const json_t *stats);
void ranks_take_host (struct live_ranks *r, uint32_t rank, const char *host);

/* --- who is asked next --------------------------------------------------------- */

/* Choose up to 'max' ranks to ask next: first the ranks that have probably changed, then all others in turn. Lost ranks
 * are left out. Returns how many ranks were chosen.
 */
size_t ranks_pick (struct live_ranks *r, uint32_t *picked, size_t max);

/* Whether the host of a rank is known. It is no longer known if the rank was lost or offline, or if the topology was
 * requested again.
 */
int ranks_has_host (const struct live_ranks *r, uint32_t rank);

/* --- JSON for readers: new references; NULL: nothing, or no memory ------------------------------------------------ */

/* The changes since the last call: "ranks" and "more" of EventChange. */
json_t *ranks_changes_new (struct live_ranks *r);

/* Return "ids_per_s", "requests_per_s", "more", "ranks" of EventRates, for the ranks that changed since the last call.
 */
json_t *ranks_rates_new (struct live_ranks *r, double now_s);

/* Return the members "size" ... "requests_per_s", "ranks" of Tree. 'rank' must be below ranks_size (). */
json_t *ranks_tree_new (const struct live_ranks *r, uint32_t rank, unsigned depth, double now_s);

#endif /* HTTP_LIVE_RANKS_H */
