/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reduction.h - decides which ranks are asked for the figures of a subtree, and adds up the answers; a core
 *
 * Each rank is asked for its whole subtree, and asks its children in turn. If a rank does not answer with a report:
 *
 *   it cannot be reached      the rank is "lost" or "offline". Its children are asked from here, because they may be
 *                             connected to another ancestor
 *   unknown request           the rank is "older", a broker of an earlier version. Its children are asked from here
 *   no answer in time         its whole subtree is "no answer"
 *   its answer is malformed   its whole subtree is "malformed"
 *   any other error           its whole subtree is "busy": the rank is overloaded, or stops
 *
 * So each rank of the subtree is in the set REDUCTION_STATUS exactly once, with the status that it reports or with one
 * of these.
 *
 * A rank that is asked has less time for its answer than the rank that asks: an eighth less, but at most
 * REDUCTION_MARGIN_MS less. So if a rank in a subtree is silent, the answer of the subtree still arrives in time.
 */
#ifndef BROKER_REDUCTION_H
#define BROKER_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "broker/base/topology.h"
#include "libmetrics/metrics.h"

#define REDUCTION_STATUS "status" /* name of the set of all ranks, by status */
#define REDUCTION_WINDOW 256      /* largest number of ranks that are asked at the same time */
#define REDUCTION_MARGIN_MS 250.

struct reduction;

struct reduction_ops {
    /* Ask a rank for its subtree. The owner later reports the result with reduction_answered () or reduction_failed ().
     * Returns 0, or -1 with errno set if the request cannot be sent.
     */
    int (*ask) (void *arg, uint32_t rank, double timeout_ms);

    /* The status of a descendant that cannot be reached, as far as this broker knows it. */
    const char *(*status) (void *arg, uint32_t rank);

    /* The status of a descendant that need not be asked, because its whole answer is known here. NULL: the descendant
     * must be asked.
     */
    const char *(*known) (void *arg, uint32_t rank);
};

struct reduction_conf {
    const struct topo *topo;
    uint32_t own;  /* this rank */
    uint32_t root; /* root of the subtree: this rank, or another rank, which is asked */
    bool alone;    /* only the root, without its descendants */
    const struct reduction_ops *ops;
    void *arg;
};

/* Copies 'conf'; its pointers are borrowed. NULL with errno ENOMEM. */
struct reduction *reduction_create (const struct reduction_conf *conf, double now_ms, double timeout_ms);
void reduction_destroy (struct reduction *s); /* NULL is fine */

/* Ask the next ranks. Call this at the start, and after each result. */
void reduction_turn (struct reduction *s, double now_ms);

void reduction_answered (struct reduction *s, uint32_t rank, const json_t *report);
void reduction_failed (struct reduction *s, uint32_t rank, int errnum);

/* Whether all ranks have answered or were given up. */
bool reduction_is_over (const struct reduction *s);

/* Milliseconds that a rank has for its answer if it is asked now. */
double reduction_left_ms (const struct reduction *s, double now_ms);

/* The sum of the answers. The owner must add the figures of its own rank. */
struct metrics *reduction_metrics (struct reduction *s);

#endif /* BROKER_REDUCTION_H */
