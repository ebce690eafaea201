/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.h - the connection of a command: connect to a broker, send requests to one or many ranks, wait for the answers
 *
 * A function returns the requested data within --timeout, or it ends the program with a message that says what failed
 * and what to do.
 */
#ifndef CMD_ASK_H
#define CMD_ASK_H

#include <pthread.h>

#include <jansson.h>

#include "cmd/base/cmd.h"

/* --- the connection ------------------------------------------------------------------------------ */

/* Connect to the broker in the first call; later calls return the same handle.  If this fails, or if the broker does
 * not answer within --timeout, end the program with a message that says what to do.
 */
idt_t *ask_connect (struct cmd *cmd);

/* Connect like ask_connect (), for a command that can work without a broker.  Returns NULL with errno set and the
 * reason in 'errp' if this fails.  Ends the program only if cmd->uri is not a URI (CMD_USAGE) or the broker does not
 * answer.
 */
idt_t *ask_try_connect (struct cmd *cmd, idt_error_t *errp);

/* Connect like ask_connect (), for a command that sends requests to 'rank'.  Ends the program if 'rank' is neither a
 * rank of the instance nor IDT_NODEID_ANY.
 */
idt_t *ask_connect_for (struct cmd *cmd, uint32_t rank);

/* Connect like ask_connect (), for a command that stops or changes a broker.  Ends the program before any such request
 * if the broker belongs to Flux.
 */
idt_t *ask_connect_own (struct cmd *cmd);

/* Like ask_connect_own (), but returns NULL with errno ECONNRESET if the broker has closed the connection. */
idt_t *ask_try_connect_own (struct cmd *cmd);

/* The URI of the connected broker, or of the broker that ask_connect () would connect to; for messages.  Borrowed. */
const char *ask_uri (const struct cmd *cmd);

/* The rank of the connected broker. */
uint32_t ask_own_rank (const struct cmd *cmd);

/* Whether the connected broker belongs to Flux. */
bool ask_is_flux (const struct cmd *cmd);

/* A limit of the time that a library function waits for a broker, for functions that take no deadline.  A handle has no
 * timeout while it gets an attribute: without a guard, a stopped broker would block the command forever.
 */
struct guard {
    const struct cmd *cmd;
    bool armed; /* the thread of the guard runs */
    pthread_t thread;
    uint64_t until_ms; /* when the time is over, by CLOCK_MONOTONIC */
    int ended_fd;      /* an eventfd; guard_end () writes to it */
};

/* End the program, --timeout from now, with a message that its broker does not answer.  Does nothing if --timeout is 0.
 * 'g' must stay at its address until guard_end ().
 */
void guard_begin (struct guard *g, const struct cmd *cmd);

/* The broker has answered: stop the guard.  Keeps errno. */
void guard_end (struct guard *g);

/* --- one request --------------------------------------------------------------------------------- */

/* Connect, send 'request' (stolen; NULL: no payload) and remember its service and rank for the message of a timeout.
 * Returns NULL with errno set if it cannot be sent.
 */
idt_future_t *ask_send (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* Like ask_send (), for a stream of answers.  An answer of a stream may take any time.  Wait for the first one with
 * ask_ready () only if the service sends it immediately; wait for all others with ask_next ().
 */
idt_future_t *ask_stream (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request);

/* Remember the service and rank of a request that the caller sends itself. */
void ask_note (struct cmd *cmd, const char *topic, uint32_t nodeid);

/* Wait until 'f' is fulfilled by a result or an error, and return 'f'.  If 'f' is NULL because the request could not be
 * sent, end the program with the reason.  If no answer arrives within --timeout, find out which broker or service does
 * not answer, and end the program with "WHAT: no answer ...".
 */
idt_future_t *ask_ready (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Wait like ask_ready (), but without a limit of time: --timeout does not apply. */
idt_future_t *ask_next (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Wait like ask_ready ().  If the answer is an error, end the program with "WHAT: why". */
idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what);

/* The services of idtree inside Flux.  The text follows the word "serves" in a sentence. */
#define ASK_IN_FLUX "only fluids: flux exec -r all flux module load .../idtree/flux/idtree-flux.so (doc/design/flux.md)"

/* If 'f' (fulfilled) failed with ENOSYS and the broker belongs to Flux, end the program with a sentence about what
 * idtree serves there.
 */
void ask_check_flux (const struct cmd *cmd, const idt_future_t *f, const char *what);

/* End the program because no answer arrived: "WHAT: no answer within 30 s: ...". */
void ask_blame (const struct cmd *cmd, const char *what) __attribute__ ((noreturn));

/* How many ms of --timeout remain for the answer to a request that was sent at 'since_ms' (clock_ms ()).  Negative:
 * there is no limit.
 */
double ask_left_ms (const struct cmd *cmd, uint64_t since_ms);

/* Wait like ask_wait () for the answer of 'f' (stolen), and return its object, a new reference.  If the answer has no
 * payload, the object is empty.
 */
json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what);

/* Connect, send 'request' (stolen; NULL: no payload) to 'nodeid', wait for the answer and return its object, a new
 * reference.
 */
json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what);

/* Send a rank a request for an attribute, and wait like ask_ready ().  The answer has a "value". */
idt_future_t *ask_attr (struct cmd *cmd, uint32_t nodeid, const char *name);

/* Digits of real numbers, for jansson: few enough that rounding errors do not show (0.3, and not 0.30000000000000004).
 */
#define ASK_REALS JSON_REAL_PRECISION (15)

/* Print an object on one line, as JSON; ask_print_new () also releases it.  ask_print_lines () prints each element of
 * an array on its own line, as all commands that list something do.
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

/* Whether 'text' may name several ranks: it is not a single number.  False if 'text' is NULL. */
bool ranks_are_many (const char *text);

/* Read "all", or ranks such as 0-3,17.  Connects to the broker.  Ends the program if 'text' is neither of these
 * (CMD_USAGE), or if it names a rank that the instance does not have.
 */
struct ranks ranks_read (struct cmd *cmd, const char *text);
void ranks_fini (struct ranks *r);

/* Called for each rank, in order.  'f' is fulfilled by a result or an error, or NULL if no answer arrived within
 * --timeout.
 */
typedef void (*ranks_f) (uint32_t rank, idt_future_t *f, void *arg);

/* Send 'topic' to all ranks ('request' is borrowed; NULL: without a payload), up to 512 of them concurrently. */
void ranks_ask (struct cmd *cmd, const struct ranks *r, const char *topic, json_t *request, ranks_f take, void *arg);

/* If 'f' is NULL or an error, add the rank to the object 'failed', below the reason.  Returns whether 'f' is NULL or an
 * error.
 */
bool ranks_note (json_t *failed, uint32_t rank, const idt_future_t *f);

/* Return the ranks in 'failed': the key is the reason, the value the ranks as ranges; a new reference. */
json_t *ranks_noted_new (struct cmd *cmd, const json_t *failed);

/* Warn "WHICH 0-3,17: why" for each reason in 'failed'.  Returns the exit status. */
int ranks_warn (struct cmd *cmd, const json_t *failed, const char *which);

/* An array of ranks as text with ranges such as 0-3,17: a new reference. */
json_t *ranks_text_new (struct cmd *cmd, const json_t *ranks);

/* --- a subtree ----------------------------------------------------------------------------------- */

/* Return a request for the merged report of a rank's subtree (broker/metrics/serve.h), a new reference.  Its deadline
 * fits --timeout.
 */
json_t *subtree_request_new (const struct cmd *cmd, uint32_t rank);

/* Send 'request' (stolen) of subtree_request_new ().  Returns the report, a new reference, or NULL if the broker does
 * not know the request.  Ends the program with "WHAT: why" if no answer arrives.
 */
json_t *subtree_report_new (struct cmd *cmd, json_t *request, const char *what);

/* Return the answer of overlay.topology about a rank, a new reference; or the ranks of this topology, for ranks_fini
 * ().  Both functions end the program if the rank does not exist.
 */
json_t *subtree_topology_new (struct cmd *cmd, uint32_t rank);
struct ranks subtree_ranks (struct cmd *cmd, uint32_t rank);

#endif /* CMD_ASK_H */
