/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reduction.h - whom one rank asks for what a subtree tells, and what comes of it; a thinking part
 *
 * Each rank is asked for its whole subtree, and asks its children in turn.  Who is asked in whose stead:
 *
 *   it cannot be reached      it is "lost", or "offline", and its children are asked from here, for they may live,
 *                             attached to somebody else
 *   it knows no such request  it is "older", a broker of a version before, and its children are asked from here
 *   no answer in time         all of its subtree is "no answer"
 *   it has too much to do     all of its subtree is "busy"; what it answers is none: "malformed"
 *
 * So each rank of the subtree is in the set REDUCTION_STATUS once: as itself says, or as above.
 *
 * Who is asked has less time than who asks: an eighth less, but REDUCTION_MARGIN_MS at most.  So what is known of a
 * subtree where one rank is silent still arrives in time.
 */
#ifndef BROKER_REDUCTION_H
#define BROKER_REDUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "broker/base/topology.h"
#include "libmetrics/metrics.h"

#define REDUCTION_STATUS "status" /* the set of all ranks, by what is known of them */
#define REDUCTION_WINDOW 256      /* ranks that are asked at the same time */
#define REDUCTION_MARGIN_MS 250.

struct reduction;

struct reduction_ops {
    /* Ask a rank for its subtree; reduction_answered () or reduction_failed () tells what came of it, later.  Returns
     * 0, or
     * -1 with errno set where it cannot be sent.
     */
    int (*ask) (void *arg, uint32_t rank, double timeout_ms);

    /* What this broker knows of one below that cannot be reached. */
    const char *(*status) (void *arg, uint32_t rank);

    /* What one below would answer, where that is known without asking it; NULL: it is not. */
    const char *(*known) (void *arg, uint32_t rank);
};

struct reduction_conf {
    const struct topo *topo;
    uint32_t own;  /* rank */
    uint32_t root; /* of the subtree: this rank, or another one that is asked in its stead */
    bool alone;    /* without those below it */
    const struct reduction_ops *ops;
    void *arg;
};

/* Copies 'conf'; what it points to is borrowed.  NULL with errno ENOMEM. */
struct reduction *reduction_create (const struct reduction_conf *conf, double now_ms, double timeout_ms);
void reduction_destroy (struct reduction *s); /* NULL is fine */

/* Ask those whose turn it is.  Called at the start, and after each of the two below. */
void reduction_turn (struct reduction *s, double now_ms);

void reduction_answered (struct reduction *s, uint32_t rank, const json_t *report);
void reduction_failed (struct reduction *s, uint32_t rank, int errnum);

/* Whether all were heard, or given up. */
bool reduction_is_over (const struct reduction *s);

/* How long who is asked now has for its answer. */
double reduction_left_ms (const struct reduction *s, double now_ms);

/* What was heard; for what this rank tells of itself, too. */
struct metrics *reduction_metrics (struct reduction *s);

#endif /* BROKER_REDUCTION_H */
