/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ranks.h - what is known of the ranks of an instance, as JSON for readers (etc/openapi.json); a thinking part
 *
 * It is told answers of brokers, and the time.  A rank is drawn below the one that it is attached to now, which is its
 * parent as long as nothing else is known; a rank that is lost is attached to nobody.
 */
#ifndef HTTP_LIVE_RANKS_H
#define HTTP_LIVE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define RANKS_ROWS 512    /* of an answer */
#define RANKS_CHANGES 256 /* of an event */
#define RANKS_MAX_DEPTH 64
#define RANKS_MAX 1000000
#define RANKS_NONE (-1)

struct live_ranks;

struct live_ranks *ranks_create (void); /* of 0 ranks; NULL with errno ENOMEM */
void ranks_destroy (struct live_ranks *r);

uint32_t ranks_size (const struct live_ranks *r);

/* --- what is told --------------------------------------------------------- */

/* The answer of overlay.topology of rank 0.  Where it is another tree than before all else is forgotten.  Returns 0, or
 * -1 with errno EPROTO or ENOMEM and nothing changed.
 */
int ranks_take_topology (struct live_ranks *r, const json_t *topology);

/* That of metrics.get for all: statuses, and states of generators. */
void ranks_take_survey (struct live_ranks *r, const json_t *report);

/* Those of one rank: fluid.info, fluid.stats-get, overlay.stats-get, and its host's name.  What is none is ignored. */
void ranks_take_info (struct live_ranks *r, uint32_t rank, const json_t *info, double now_s);
void ranks_take_stats (struct live_ranks *r, uint32_t rank, const json_t *stats, double now_s);
void ranks_take_overlay (struct live_ranks *r, uint32_t rank, const json_t *stats);
void ranks_take_host (struct live_ranks *r, uint32_t rank, const char *host);

/* --- who is asked next --------------------------------------------------------- */

/* Up to 'max' ranks: those of which something must have changed, then all others in turn, but those that are gone.
 * Returns how many.
 */
size_t ranks_pick (struct live_ranks *r, uint32_t *picked, size_t max);

/* Whether it is known, and the rank was not away since, nor the instance. */
int ranks_has_host (const struct live_ranks *r, uint32_t rank);

/* --- what is told on: new references; NULL: nothing, or no memory ------------------------------------------------- */

/* What is otherwise than at the last call: "ranks" and "more" of EventChange. */
json_t *ranks_changes_new (struct live_ranks *r);

/* "ids_per_s", "requests_per_s", "more", "ranks" of EventRates, of those that are otherwise than at the last call. */
json_t *ranks_rates_new (struct live_ranks *r, double now_s);

/* "size" ... "requests_per_s", "ranks" of Tree.  'rank' is below ranks_size (). */
json_t *ranks_tree_new (const struct live_ranks *r, uint32_t rank, unsigned depth, double now_s);

#endif /* HTTP_LIVE_RANKS_H */
