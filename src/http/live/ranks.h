/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.h - the known state of the ranks of an instance, and its JSON for readers (etc/openapi.json); no I/O
 *
 * The caller passes in the answers of brokers and the time. A rank is shown below the rank that it is attached to,
 * which is its parent unless another one is known. A lost rank is attached to no rank.
 */
#ifndef HTTP_LIVE_RANKS_H
#define HTTP_LIVE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define RANKS_ROWS 512    /* ranks in an answer */
#define RANKS_CHANGES 256 /* changes in an event */
#define RANKS_MAX_DEPTH 64
#define RANKS_MAX 1000000
#define RANKS_NONE (-1)

struct live_ranks;

struct live_ranks *ranks_create (void); /* of 0 ranks; NULL with errno ENOMEM */
void ranks_destroy (struct live_ranks *r);

uint32_t ranks_size (const struct live_ranks *r);

/* --- answers of brokers ----------------------------------------------------- */

/* The answer of overlay.topology of rank 0. If the tree differs from the previous one, all other data is dropped.
 * Returns 0, or -1 with errno EPROTO or ENOMEM and nothing changed.
 */
int ranks_take_topology (struct live_ranks *r, const json_t *topology);

/* The answer of metrics.get for all ranks: their status, and the states of generators. */
void ranks_take_survey (struct live_ranks *r, const json_t *report);

/* Answers of one rank: fluid.info, fluid.stats-get, overlay.stats-get, and its host name. Malformed answers are
 * ignored.
 */
void ranks_take_info (struct live_ranks *r, uint32_t rank, const json_t *info, double now_s);
void ranks_take_stats (struct live_ranks *r, uint32_t rank, const json_t *stats, double now_s);
void ranks_take_overlay (struct live_ranks *r, uint32_t rank, const json_t *stats);
void ranks_take_host (struct live_ranks *r, uint32_t rank, const char *host);

/* --- who is asked next --------------------------------------------------------- */

/* Choose up to 'max' ranks: first the probably changed ones, then all others in turn, without the lost ones.
 * Returns how many.
 */
size_t ranks_pick (struct live_ranks *r, uint32_t *picked, size_t max);

/* Whether the host of a rank is known, and neither the rank nor the instance was away since. */
int ranks_has_host (const struct live_ranks *r, uint32_t rank);

/* --- JSON for readers: new references; NULL: nothing, or no memory ------------------------------------------------ */

/* The changes since the last call: "ranks" and "more" of EventChange. */
json_t *ranks_changes_new (struct live_ranks *r);

/* "ids_per_s", "requests_per_s", "more", "ranks" of EventRates, for the ranks that changed since the last call. */
json_t *ranks_rates_new (struct live_ranks *r, double now_s);

/* "size" ... "requests_per_s", "ranks" of Tree. 'rank' is below ranks_size (). */
json_t *ranks_tree_new (const struct live_ranks *r, uint32_t rank, unsigned depth, double now_s);

#endif /* HTTP_LIVE_RANKS_H */
