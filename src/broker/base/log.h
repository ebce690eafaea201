/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log.h - the broker's log: a ring of RFC 5424 lines, levels, forwarding, dmesg
 *
 * Lines up to log-level are kept in the ring. Lines up to log-forward-level are sent to rank 0, too. Lines up to
 * log-stderr-level are printed on stderr by rank 0, or by a broker that did not send them to rank 0. A broker with a
 * stderr of its own (log_set_readers ()) prints its own lines in any case, for the user who started it on that host.
 * With log-stderr-priority=1 printed lines begin with <LEVEL>, as the journal of systemd reads it.
 *
 * A line is `<PRI>1 TIME RANK NAME PID - - TEXT`, where PRI is the severity times 8, as deployed Flux clients write and
 * read it.
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

/* Warnings that strangers and broken clients can cause without limit: LOG_LIMIT_LINES of a kind are logged in
 * LOG_LIMIT_PERIOD_S, then the number of lines left out.
 */
enum log_refusal {
    LOG_REFUSED_CLIENT, /* a connection of a client is refused or ended */
    LOG_REFUSED_HELLO,
    LOG_REFUSED_KEY,
    LOG_REFUSALS,
};
void log_refusal (struct log *log, enum log_refusal kind, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Log the number of lines left out in periods that are over at 'now' (CLOCK_MONOTONIC, s). The owner calls it
 * regularly.
 */
void log_tell_left_out (struct log *log, double now);

/* Set the function that sends lines to rank 0; it returns whether a line was sent. */
typedef bool (*log_forward_f) (const char *line, void *arg);
void log_set_forward (struct log *log, log_forward_f cb, void *arg);

/* Set whether this broker has a stderr of its own that a user reads. */
void log_set_readers (struct log *log, bool has_readers);

/* Serve log.append, log.dmesg, log.clear, log.disconnect and log.stats-get on the broker's own handle. */
int log_serve (struct log *log, idt_t *h);

/* --- for tests --------------------------------------------------------------------------------- */

#define LOG_LIMIT_LINES 20     /* of one kind in a period */
#define LOG_LIMIT_PERIOD_S 10. /* from the first line of the period */

struct log_limit { /* of one kind of lines; all zero: no line so far */
    double since;
    unsigned lines;
    unsigned long left_out;
};

/* Count a line at 'now', a time in seconds that does not go back. Returns whether it may be logged. */
bool log_limit_take (struct log_limit *l, double now);

/* The number of lines left out, returned once, when their period has ended; else 0. */
unsigned long log_limit_left_out (struct log_limit *l, double now);

#endif /* BROKER_LOG_H */
