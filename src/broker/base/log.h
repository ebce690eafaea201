/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log.h - the broker's log: a ring of RFC 5424 lines, levels, forwarding, dmesg
 *
 * Lines up to log-level are kept in the ring. Lines up to log-forward-level are also sent to rank 0. Lines up to
 * log-stderr-level are printed on stderr, by rank 0 for all ranks. Another broker prints a line only if it did not send
 * the line to rank 0, or if it has a stderr of its own (log_set_readers ()) and the line is its own. With
 * log-stderr-priority=1 printed lines begin with <LEVEL>, as the journal of systemd reads it.
 *
 * A line is `<PRI>1 TIME RANK NAME PID - - TEXT`. PRI is the severity times 8, as Flux clients in use write and read
 * it.
 */
#ifndef BROKER_LOG_H
#define BROKER_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/handle.h>

#include "broker/base/attr.h"

struct log;

#define LOG_LINE_MAX 4096 /* bytes; longer lines are cut */

/* NULL with errno set and 'errp' filled: EINVAL (an attribute of the log is invalid) or ENOMEM. */
struct log *log_create (struct attrs *attrs, uint32_t rank, idt_error_t *errp);
void log_destroy (struct log *log);

/* Add a line of this broker. */
void log_printf (struct log *log, int level, const char *name, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* Warnings that strangers and broken clients can cause without limit. In each LOG_LIMIT_PERIOD_S, LOG_LIMIT_LINES of a
 * kind are logged. After the period, the number of lines that were left out is logged.
 */
enum log_refusal {
    LOG_REFUSED_CLIENT, /* a connection of a client is refused or ended */
    LOG_REFUSED_HELLO,
    LOG_REFUSED_KEY,
    LOG_REFUSALS,
};
void log_refusal (struct log *log, enum log_refusal kind, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* If a period is over at 'now' (CLOCK_MONOTONIC, s), log how many lines were left out in it. The owner calls this
 * regularly.
 */
void log_tell_left_out (struct log *log, double now);

/* Set the function that sends a line to rank 0. It returns whether the line was sent. */
typedef bool (*log_forward_f) (const char *line, void *arg);
void log_set_forward (struct log *log, log_forward_f cb, void *arg);

/* Set whether a user reads the stderr of this broker itself, not only the stderr of rank 0. */
void log_set_readers (struct log *log, bool has_readers);

/* Serve log.append, log.dmesg, log.clear, log.disconnect and log.stats-get on the broker's own handle. */
int log_serve (struct log *log, idt_t *h);

/* --- for tests --------------------------------------------------------------------------------- */

#define LOG_LIMIT_LINES 20     /* lines of one kind in a period */
#define LOG_LIMIT_PERIOD_S 10. /* seconds, from the first line of the period */

struct log_limit { /* for one kind of lines; all zero: no line so far */
    double since;
    unsigned lines;
    unsigned long left_out;
};

/* Count a line at 'now', in seconds; the time must not go back. Returns whether the line may be logged. */
bool log_limit_take (struct log_limit *l, double now);

/* After a period has ended: the number of lines left out in it, returned only once. Otherwise 0. */
unsigned long log_limit_left_out (struct log_limit *l, double now);

#endif /* BROKER_LOG_H */
