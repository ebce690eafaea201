/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log.h - the broker's log: a ring of RFC 5424 lines, levels, forwarding, dmesg
 *
 * Every line goes into the ring (log-level); lines up to log-forward-level travel to rank 0 as well; lines up to
 * log-stderr-level are shown on stderr by rank 0, or by a broker that cannot reach it.  Where that is another stderr
 * than rank 0's (log_set_readers ()), a broker shows its own ones, too: on each host those who started it look there.
 * Where log-stderr-priority is 1 these begin with <LEVEL>, as the journal of systemd reads it.
 *
 * A line is `<PRI>1 TIME RANK NAME PID - - TEXT`, where PRI is the severity times 8, as deployed Flux clients
 * write and read it.
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

/* NULL with errno set and 'errp' filled: an attribute of the log is nonsense, or ENOMEM. */
struct log *log_create (struct attrs *attrs, uint32_t rank, idt_error_t *errp);
void log_destroy (struct log *log);

/* Add a line of our own. */
void log_printf (struct log *log, int level, const char *name, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* What strangers and broken clients can cause as often as they like: LOG_LIMIT_LINES of a kind are logged, as warnings,
 * then how many were left out (log_limit.h).
 */
enum log_refusal {
    LOG_REFUSED_CLIENT, /* a connection of a client, or what ends one */
    LOG_REFUSED_HELLO,
    LOG_REFUSED_KEY,
    LOG_REFUSALS,
};
void log_refusal (struct log *log, enum log_refusal kind, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Say how many were left out where their time is over at 'now' (CLOCK_MONOTONIC, s).  Called now and then. */
void log_tell_left_out (struct log *log, double now);

/* Where lines go that rank 0 shall see; returns whether they were sent. */
typedef bool (*log_forward_f) (const char *line, void *arg);
void log_set_forward (struct log *log, log_forward_f cb, void *arg);

/* Whether the stderr of this broker is its alone, and read by somebody. */
void log_set_readers (struct log *log, bool has_readers);

/* Serve log.append, log.dmesg, log.clear, log.disconnect and log.stats-get on the broker's own handle. */
int log_serve (struct log *log, idt_t *h);

#endif /* BROKER_LOG_H */
