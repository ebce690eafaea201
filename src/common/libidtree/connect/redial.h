/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* redial.h - which broker is tried when, and for how long: once a connection is lost, and for the first one
 *
 * It is told the time (CLOCK_MONOTONIC in milliseconds) and what came of each try, and touches nothing.
 *
 * 1. A list is tried in its order from the beginning, without pauses.  After each round there is one.
 * 2. The first pause is REDIAL_PAUSE_MIN_MS, each further one twice that of before, REDIAL_PAUSE_MAX_MS at most; by
 *    chance each is up to a half shorter, so that many clients of one broker do not come back at once.
 * 3. A connection that did not last for REDIAL_PAUSE_MAX_MS does not end the growth of pauses.
 * 4. One try has REDIAL_TRY_MS; all have REDIAL_PATIENCE_MS together.  Then it is given up; at once where all brokers
 *    of a round say what waiting does not change (they are of another instance, or do not let us in).
 */
#ifndef LIBIDTREE_CONNECT_REDIAL_H
#define LIBIDTREE_CONNECT_REDIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDIAL_PAUSE_MIN_MS 20.
#define REDIAL_PAUSE_MAX_MS 2000.
#define REDIAL_TRY_MS 5000.
#define REDIAL_PATIENCE_MS 30000.

struct redial {
    size_t count;   /* brokers of the list */
    size_t next;    /* the one to be tried now, or at 'at_ms' */
    size_t refused; /* how many of this round said what stays so */
    uint32_t dice;
    double begun_ms;
    double at_ms;    /* not before */
    double pause_ms; /* after this round, before chance; 0: none was needed lately */
    double up_ms;    /* when the last connection was made */
};

/* 'seed' differs from client to client. */
void redial_init (struct redial *r, size_t count, uint32_t seed);

/* The connection is lost: begin. */
void redial_begin (struct redial *r, double now_ms);

/* When 'next' is to be tried, and, where a try began, when that ends at the latest. */
double redial_at (const struct redial *r);
double redial_end (const struct redial *r, double now_ms);

/* The same where a handle is opened: how long one try may take if 'left_ms' (INFINITY: there is no limit) are left for
 * it and for 'behind' others.  It has REDIAL_TRY_MS, or its equal share where that is less; the last has all that is
 * left.
 */
double redial_share (double left_ms, size_t behind);

/* 'next' was tried in vain.  Returns whether there is to be another try. */
bool redial_failed (struct redial *r, double now_ms, int errnum);

/* There is a connection. */
void redial_succeeded (struct redial *r, double now_ms);

#endif /* LIBIDTREE_CONNECT_REDIAL_H */
