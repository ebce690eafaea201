/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reconnect.h - a list of broker URIs: in which order and for how long they are tried, for the first connection and
 * after a connection is lost
 *
 * A core: the caller passes in the time (CLOCK_MONOTONIC in milliseconds) and the result of each attempt.
 *
 * 1. The brokers of a list are tried in their order, without pauses between them. Trying all of them once is a round.
 *    There is a pause after each round.
 * 2. The first pause is RECONNECT_PAUSE_MIN_MS. Each further pause is twice as long as the previous one, up to
 *    RECONNECT_PAUSE_MAX_MS. Each pause is shortened by a random part of up to one half, so that the clients of a
 *    broker do not all reconnect at the same time.
 * 3. If a connection lasted less than RECONNECT_PAUSE_MAX_MS, reconnecting begins with a pause, and the pauses continue
 *    to grow from their last length.
 * 4. One attempt may take RECONNECT_TRY_MS, and all attempts together RECONNECT_PATIENCE_MS. After that time
 *    reconnecting fails. It fails earlier if all brokers of a round return errors that waiting does not change: they
 *    belong to another instance, or refuse this user.
 */
#ifndef LIBIDTREE_RECONNECT_H
#define LIBIDTREE_RECONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include <idtree/error.h>

/* --- the list ------------------------------------------------------------------------------- */

/* A URI is local://PATH, or local://PATH?rank=RANK for one of the ranks that a process hosts (protocol.md section 2).
 * Blanks and commas separate URIs only if another URI begins after them, so a path may contain both.
 */
#define URIS_MAX 16 /* maximum number of URIs in one list */

struct uri {
    char *text; /* the URI as the caller wrote it */
    struct sockaddr_un socket;
    bool has_rank;
    uint32_t rank;
};

struct uris {
    struct uri uri[URIS_MAX];
    size_t count; /* number of URIs, at least 1 */
};

/* Parse a list into '*u'; free it with uris_fini (). Returns 0, or -1 with '*u' empty and errno EINVAL (the reason is
 * in 'errp') or ENOMEM.
 */
int uris_parse (struct uris *u, const char *text, idt_error_t *errp);

/* Keeps errno. */
void uris_fini (struct uris *u);

/* --- the attempts --------------------------------------------------------------------------- */

#define RECONNECT_PAUSE_MIN_MS 20.
#define RECONNECT_PAUSE_MAX_MS 2000.
#define RECONNECT_TRY_MS 5000.
#define RECONNECT_PATIENCE_MS 30000.

struct reconnect {
    size_t count;   /* number of brokers in the list */
    size_t next;    /* index of the broker to try now, or at 'at_ms' */
    size_t refused; /* number of brokers in this round that returned an error that waiting does not change */
    uint32_t dice;
    double begun_ms;
    double at_ms;    /* the next attempt must not begin before this time */
    double pause_ms; /* length of the pause before this round, before it is shortened; 0: no recent loss */
    double up_ms;    /* when the last connection was made */
};

/* 'seed' must differ from client to client. */
void reconnect_init (struct reconnect *r, size_t count, uint32_t seed);

/* The connection was lost: begin to reconnect. */
void reconnect_begin (struct reconnect *r, double now_ms);

/* reconnect_at (): when to try 'next'. reconnect_end (): when an attempt that begins now must end. */
double reconnect_at (const struct reconnect *r);
double reconnect_end (const struct reconnect *r, double now_ms);

/* How long one attempt may take when a handle is opened. 'left_ms' (INFINITY: no limit) is the time that is left for
 * this attempt and for the 'behind' brokers after it. The result is RECONNECT_TRY_MS, or an equal share of 'left_ms' if
 * that is less. If 'behind' is 0, the result is 'left_ms'.
 */
double reconnect_share (double left_ms, size_t behind);

/* The attempt to connect to broker 'next' failed. Returns whether to try again, at reconnect_at (). */
bool reconnect_failed (struct reconnect *r, double now_ms, int errnum);

/* The attempt succeeded. */
void reconnect_succeeded (struct reconnect *r, double now_ms);

#endif /* LIBIDTREE_RECONNECT_H */
