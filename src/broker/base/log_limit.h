/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log_limit.h - lines that other programs can cause without limit: the first of a period, then the number left out
 *
 * 'now' is a time in seconds that does not go back.
 */
#ifndef BROKER_LOG_LIMIT_H
#define BROKER_LOG_LIMIT_H

#include <stdbool.h>

#define LOG_LIMIT_LINES 20     /* of one kind in a period */
#define LOG_LIMIT_PERIOD_S 10. /* from the first line of the period */

struct log_limit { /* all zero: no line so far */
    double since;
    unsigned lines;
    unsigned long left_out;
};

/* Count a line. Returns whether it may be logged. */
bool log_limit_take (struct log_limit *l, double now);

/* The number of lines left out, returned once, when their period has ended; else 0. */
unsigned long log_limit_left_out (struct log_limit *l, double now);

#endif /* BROKER_LOG_LIMIT_H */
