/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log_limit.h - lines that others can cause at will: the first of a period, then how many were left out
 *
 * 'now' is a time in seconds that does not go back.
 */
#ifndef BROKER_LOG_LIMIT_H
#define BROKER_LOG_LIMIT_H

#include <stdbool.h>

#define LOG_LIMIT_LINES 20     /* of one kind in a period */
#define LOG_LIMIT_PERIOD_S 10. /* from the first of them */

struct log_limit { /* all zero: nothing was said */
    double since;
    unsigned lines;
    unsigned long left_out;
};

/* Whether one more line may be said; it is counted either way. */
bool log_limit_take (struct log_limit *l, double now);

/* The number of lines that were left out, told once, when their period has ended; else 0. */
unsigned long log_limit_left_out (struct log_limit *l, double now);

#endif /* BROKER_LOG_LIMIT_H */
