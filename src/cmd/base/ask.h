/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.h - the connection of a command: connect to a broker, send requests to one or many ranks, wait for the answers
 *
 * A function returns what was asked for within --timeout, or it ends the program with a message that says what failed
 * and what to do.
 */
#ifndef CMD_ASK_H
#define CMD_ASK_H

#include <pthread.h>

#include <jansson.h>

#include "cmd/base/cmd.h"

/* --- the connection ------------------------------------------------------------------------------ */

/* Connect to the broker in the first call; later calls return the same handle.  Ends the program with a message that
 * says what to do, also if the broker does not answer within --timeout.
 */
idt_t *ask_connect (struct cmd *cmd);

/* The same for a command that can work without a broker: connect to cmd->uri.  Returns NULL with errno set and the
 * reason in 'errp'.  Ends the program only if cmd->uri is not a URI (CMD_USAGE) or the broker does not answer.
 */
idt_t *ask_try_connect (struct cmd *cmd, idt_error_t *errp);

/* As ask_connect (), for a command that sends requests to 'rank', which must be a rank of the instance or
 * IDT_NODEID_ANY.
 */
idt_t *ask_connect_for (struct cmd *cmd, uint32_t rank);

/* As ask_connect (), for a command that stops or changes a broker: ends the program if the broker belongs to Flux,
 * before any request.
 */
idt_t *ask_connect_own (struct cmd *cmd);

/* The same, but returns NULL with errno ECONNRESET if the broker has closed the connection. */
idt_t *ask_try_connect_own (struct cmd *cmd);

/* The URI of the broker, or the one that would be used, for messages.  Borrowed. */
const char *ask_uri (const struct cmd *cmd);

/* The rank of the connected broker. */
uint32_t ask_own_rank (const struct cmd *cmd);

/* Whether the connected broker belongs to Flux. */
bool ask_is_flux (const struct cmd *cmd);

/* Limits the time that a library function waits for a broker, where the function takes no deadline.  A handle has no
 * timeout while it gets an attribute: without a guard, a stopped broker would block the command without end.
 */
struct guard {
    const struct cmd *cmd;
    bool armed; /* the thread runs */
    pthread_t thread;
    uint64_t until_ms; /* of CLOCK_MONOTONIC */
    int ended_fd;      /* an eventfd */
};

/* End the program --timeout from now, with a message about its broker.  'g' must stay at its address until guard_end
 * ().  Does nothing if --timeout is 0.
 */
void guard_begin (struct guard *g, const struct cmd *cmd);

/* Stop the thread: the broker has answered.  Keeps errno. */
void guard_end (struct guard *g);

/* --- one request --------------------------------------------------------------------------------- */

/* Connect, send 'request' (stolen; NULL: no payload) and remember its service and rank for the message of a timeout.
 * Returns NULL with errno set if it cannot be sent.
 */
idt_future_t *ask_send (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* The same for a stream of answers.  An answer of a stream may take any time: wait for the first one with ask_ready ()
 * only if the service sends it immediately, and for all others with ask_next ().
 */
idt_future_t *ask_stream (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* Remember the service and rank of a request that the caller sends itself. */
void ask_note (struct cmd *cmd, const char *topic, uint32_t nodeid);

/* Wait until 'f' is fulfilled, by a result or an error, and return it.  'f' may be NULL if the request could not be
 * sent.  After --timeout find out which broker or service does not answer, and end the program with "WHAT: no answer
 * ...".
 */
idt_future_t *ask_ready (const struct cmd *cmd, idt_future_t *f, const char *what);

/* The same without a limit of time: --timeout does not apply. */
idt_future_t *ask_next (const struct cmd *cmd, idt_future_t *f, const char *what);

/* As ask_ready (); if the answer is an error, end the program with "WHAT: why". */
idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what);

/* The part of idtree that runs inside Flux.  It follows "serves" in a sentence. */
#define ASK_IN_FLUX "only fluids: flux exec -r all flux module load .../idtree/flux/idtree-flux.so (doc/design/flux.md)"

/* If 'f' (fulfilled) failed with ENOSYS and the broker belongs to Flux, end the program with a sentence that says what
 * is served there.
 */
void ask_check_flux (const struct cmd *cmd, const idt_future_t *f, const char *what);

/* End the program because no answer arrived: "WHAT: no answer within 30 s: ...". */
void ask_blame (const struct cmd *cmd, const char *what) __attribute__ ((noreturn));

/* The remaining time in ms to wait for the answer to a request that was sent at 'since_ms' (clock_ms ()).  Negative:
 * without end.
 */
double ask_left_ms (const struct cmd *cmd, uint64_t since_ms);

/* Wait as above for the answer of 'f' (stolen) and return its object, a new reference.  An empty answer becomes an
 * empty object.
 */
json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Connect, send 'request' (stolen; NULL: no payload) to 'nodeid', wait for the answer and return its object, a new
 * reference.
 */
json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what);

/* Ask a rank for an attribute, and wait as ask_ready () does.  The answer has a "value". */
idt_future_t *ask_attr (struct cmd *cmd, uint32_t nodeid, const char *name);

/* Digits of real numbers, for jansson: few enough that rounding errors do not show (0.3, and not 0.30000000000000004).
 */
#define ASK_REALS JSON_REAL_PRECISION (15)

/* Print an object on one line, as JSON; ask_print_new () steals it.  Print each element of an array on its own line, as
 * all commands that list something do.
 */
void ask_print (const struct cmd *cmd, const json_t *o);
void ask_print_new (const struct cmd *cmd, json_t *o);
void ask_print_lines (const struct cmd *cmd, const json_t *array);

/* --- many ranks ---------------------------------------------------------------------------------- */

/* in increasing order, without duplicates */
struct ranks {
    uint32_t *rank;
    size_t n;
};

/* Whether 'text' (NULL: no) may name several ranks: it is not a single number. */
bool ranks_are_many (const char *text);

/* Read "all", or ranks such as 0-3,17.  Connects to the broker.  Ends the program if 'text' is neither (CMD_USAGE), or
 * names a rank that the instance does not have.
 */
struct ranks ranks_read (struct cmd *cmd, const char *text);
void ranks_fini (struct ranks *r);

/* Called for each rank, in order.  'f' is fulfilled, by a result or an error.  NULL: no answer arrived within
 * --timeout.
 */
typedef void (*ranks_f) (uint32_t rank, idt_future_t *f, void *arg);

/* Send 'topic' to all ranks ('request' is borrowed; NULL: without a payload), up to 512 of them concurrently. */
void ranks_ask (struct cmd *cmd, const struct ranks *r, const char *topic, json_t *request, ranks_f take, void *arg);

/* If 'f' is NULL or an error, add the rank to 'failed', an object.  Returns whether the rank failed. */
bool ranks_note (json_t *failed, uint32_t rank, const idt_future_t *f);

/* The ranks in 'failed' as ranges by reason: a new reference. */
json_t *ranks_noted_new (struct cmd *cmd, const json_t *failed);

/* Warn "WHICH 0-3,17: why" for each reason in 'failed'.  Returns the exit status. */
int ranks_warn (struct cmd *cmd, const json_t *failed, const char *which);

/* An array of ranks as text with ranges such as 0-3,17: a new reference. */
json_t *ranks_text_new (struct cmd *cmd, const json_t *ranks);

/* --- a subtree ----------------------------------------------------------------------------------- */

/* A request for the merged report of a rank's subtree (broker/metrics/serve.h), with a deadline that fits --timeout; a
 * new reference.
 */
json_t *subtree_request_new (const struct cmd *cmd, uint32_t rank);

/* Send it ('request' is stolen).  Returns the report, a new reference, or NULL if the broker does not know the
 * request.  Ends the program with "WHAT: why" if no answer arrives.
 */
json_t *subtree_report_new (struct cmd *cmd, json_t *request, const char *what);

/* overlay.topology of a rank, a new reference; and the ranks in it, for ranks_fini ().  Both end the program if the
 * rank does not exist.
 */
json_t *subtree_topology_new (struct cmd *cmd, uint32_t rank);
struct ranks subtree_ranks (struct cmd *cmd, uint32_t rank);

#endif /* CMD_ASK_H */
