/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store_log.h - when to log that the store fails, or works again
 *
 * A candidate asks the store several times a second. On a busy host some of its statements fail and the next one does
 * not, and in a failover of PostgreSQL each server gives another reason by turns. So a line is logged when the kind of
 * failure (its errno) is another one than in the last line, and only STORE_LOG_LINES at once and then one a minute. The
 * newest kind is logged in the end, because the caller reports each result.
 *
 * This object does no I/O; the time is passed in.
 */
#ifndef BROKER_STORE_LOG_H
#define BROKER_STORE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_LOG_LINES 8
#define STORE_LOG_US UINT64_C (60000000)

struct store_log {
    int told;          /* errno of the newest line; 0: the store works */
    int seen;          /* errno of the newest result */
    uint32_t lines;    /* that were logged and are not made up for by time */
    uint64_t since_us; /* since then time makes up for lines */
    uint64_t left_out; /* changes since the newest line that were not logged */
};

/* Report a result: the errno of a failure, or 0. Returns whether to log it. Then '*left_out' is the number of changes
 * that were not logged before it.
 */
bool store_log_take (struct store_log *l, uint64_t now_us, int errnum, uint64_t *left_out);

#endif /* BROKER_STORE_LOG_H */
