/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* handle.h - a connection to a broker: send, receive, serve
 *
 * A handle, its futures and its handlers belong to one thread.  Messages that come in are handed out by
 * the handle's reactor: responses to the future that waits for them, requests and events to the handler
 * whose topic matches.  idt_future_wait () reads from the connection without the reactor; what it finds
 * and does not wait for is kept for the reactor in order.
 */
#ifndef IDTREE_HANDLE_H
#define IDTREE_HANDLE_H

#include <stdbool.h>

#include <jansson.h>

#include <idtree/error.h>
#include <idtree/msg.h>
#include <idtree/reactor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct idt idt_t;

/* --- connection ---------------------------------------------------------------------------- */

/* Connect to the broker at 'uri', as local:///run/idtree/local; with ?rank=RANK behind it, one rank of the process that
 * serves the socket.  Several, separated by blanks or commas, are tried in order, for 30 s together.  NULL: what
 * idt_default_uri () says.  Returns a handle for idt_close (), or NULL with errno set and the reason in 'errp' (may be
 * NULL), of several the last's:
 *   EINVAL        not a local:// URI, its path is longer than a UNIX socket's may be, or more than 16 of them
 *   ENOENT, ECONNREFUSED  no broker there
 *   EHOSTUNREACH, EHOSTDOWN  that rank is not there, or ended
 *   ETIMEDOUT     the broker does not answer
 *   EPERM         the broker serves another user
 */
idt_t *idt_open (const char *uri, idt_error_t *errp);

/* A connection that is lost may be followed by another, to the first broker of the list that takes us:
 *
 * 1. Requests under way when it is lost end with ECONNRESET, once.  Nobody knows whether they were done.
 * 2. Who may connect anew is said below.  What is asked for until then is kept and sent when there is a connection, if
 *    somebody still waits for the answer; time limits of futures hold meanwhile.
 * 3. The list is tried from its beginning, round by round, with pauses of up to 2 s between.  After 30 s in vain (at
 *    once where all refuse), it is given up: what waits ends with ECONNREFUSED, ETIMEDOUT, ... as idt_open () fails.
 *    The next call tries again.
 * 4. A broker of another instance (attribute instance.uuid) is not connected to: ESTALE.
 * 5. Subscriptions and services are asked for again before anything else.  Where there are subscriptions, an event
 *    event.lost with {"reconnected":true} comes first: nobody knows which events were missed.
 * 6. FLUIDs go on above all that were got with the handle, whichever rank makes them.
 * 7. Requests that came over the connection before can't be answered any more: such an answer finds nobody.
 *
 * The calling thread does it, while it waits for an answer or runs the reactor.  Modules' handles have one connection.
 * After fork () a handle is the parent's: the child opens its own.
 */
enum idt_open_flag {
    /* Whatever is asked for may connect anew, and the reactor does so by itself.  idt_set_lost () tells of what was
     * given up only.
     */
    IDT_O_RECONNECT = 1,
    /* Nothing does: when the connection is lost, the handle is of no use any more. */
    IDT_O_ONCE = 2,
    /* With either: ids are asked for by message, and never made in this process (idtree/page.h). */
    IDT_O_NOSHM = 4,
    /* 0: calls do whose meaning the library knows: ids, attributes, idt_event_publish () and idt_event_subscribe (),
     * idt_service_add ().  idt_rpc (), idt_send () and the reactor tell of each loss.
     */
};

/* As idt_open (), which has 'flags' 0.  EINVAL, too: other flags. */
idt_t *idt_open_with (const char *uri, int flags, idt_error_t *errp);

/* The same within 'timeout_ms' (negative: for ever), which the brokers of a list share: one that says nothing is left
 * after 5 s, or sooner, so that each behind it has as much; the last has all that is left.
 */
idt_t *idt_open_within (const char *uri, int flags, double timeout_ms, idt_error_t *errp);

/* What NULL means: IDTREE_URI of the environment, else FLUX_URI, else local:///run/idtree/local.  Borrowed. */
const char *idt_default_uri (void);

/* The URI, of those in the list, of the broker that was connected to last.  Borrowed; NULL: a module's handle. */
const char *idt_get_uri (const idt_t *h);

/* Why there is no connection, as a sentence; NULL: there is one.  Borrowed until the next call with the handle. */
const char *idt_lost_error (const idt_t *h);

/* Close a connection, destroy its handlers.  Futures must be destroyed and documents closed or attached elsewhere
 * before, and no callback of this handle may be running (all are checked: assert).  What was sent and not yet written
 * is lost: idt_flush () first.  NULL is fine; keeps errno.
 */
void idt_close (idt_t *h);

/* The reactor of the handle: made at first use, destroyed with the handle.  The handle keeps it running
 * while a future with a callback waits or a table of handlers is registered.  NULL with errno ENOMEM.
 */
idt_reactor_t *idt_get_reactor (idt_t *h);

/* Use a reactor that the caller owns, before the first use of another (else errno EBUSY). */
int idt_set_reactor (idt_t *h, idt_reactor_t *r);

/* Call 'cb', from the reactor, when the connection is lost and when another is given up, with the errno that tells why;
 * without it the reactor is stopped with that error:
 *   ECONNRESET       the broker closed the connection
 *   EPROTO, EMSGSIZE it sent what is no message
 *   EPIPE            a module's: the broker asks it to end
 *   ENOBUFS          more than 2^20 messages came while nobody ran the reactor
 *   ECONNREFUSED, ETIMEDOUT, ESTALE, ... no other broker was found
 * All messages that came before are handed out and all futures that wait end with the same error first.
 */
typedef void (*idt_lost_f) (idt_t *h, int errnum, void *arg);
void idt_set_lost (idt_t *h, idt_lost_f cb, void *arg);

/* Send a message as it is.  Never blocks: what the connection does not take now is written by the reactor
 * or by whoever waits.  Returns 0, or -1 with errno set (EPIPE, ECONNRESET: connection lost; ENOBUFS: more
 * than 64 MiB would wait to be written).  The message may not be changed afterwards.
 */
int idt_send (idt_t *h, const idt_msg_t *msg);

/* Ask 'cb' whether to go on, whenever a call with this handle that waits was woken up, by a signal too, and twenty
 * times a second.  If it says no the call fails with EINTR, and what it asked for is given up.  For languages whose
 * programs are interrupted: a handler of a signal can't run while their thread waits here.  It makes no call with the
 * handle.  NULL: no more.
 */
typedef bool (*idt_interrupt_f) (void *arg);
void idt_set_interrupt (idt_t *h, idt_interrupt_f cb, void *arg);

/* As idt_open_within (), and so from the beginning: EINTR, too: 'cb' said no. */
idt_t *idt_open_asking (const char *uri, int flags, double timeout_ms, idt_interrupt_f cb, void *arg,
                        idt_error_t *errp);

/* Wait until all that was sent has been written to the connection.  Returns 0, or -1 with errno set. */
int idt_flush (idt_t *h);

/* --- requests that we answer ---------------------------------------------------------------- */

typedef void (*idt_handler_f) (idt_t *h, const idt_msg_t *msg, void *arg);

/* In the type of a row: its handler may answer a streaming request several times. */
#define IDT_HANDLER_STREAM 0x100

/* In the type of a row: its handler may get a longer JSON text than others of a module on the broker's reactor, which
 * waits while it is parsed: four times the attribute broker.max-json.  What is longer is answered EMSGSIZE before that.
 */
#define IDT_HANDLER_LARGE 0x200

/* One row of a table of handlers, ended by IDT_HANDLERS_END.  'topic' is compared whole, unless it ends
 * in '*': then it is a prefix.  The first row that matches takes the message.  A request whose user has none
 * of the roles in 'rolemask' is answered EPERM; 0: IDT_ROLE_OWNER is asked for, but that idtree's own topics have their
 * roles in a table of their own.  A row with IDT_ROLE_BROKER takes only what
 * a broker's module sent, from any rank, or with IDT_ROLE_LOCAL beside it from this one: no client can say so
 * of himself.  A request that no row matches is answered ENOSYS.  Events have no roles to check: whom they came
 * from is in idt_msg_cred ().
 * A streaming request for a row without IDT_HANDLER_STREAM comes without the flag STREAMING: its one answer ends it.
 */
struct idt_handler_spec {
    int type;          /* IDT_MSGTYPE_REQUEST (| IDT_HANDLER_...) or IDT_MSGTYPE_EVENT */
    const char *topic; /* borrowed for as long as the table is registered */
    idt_handler_f cb;
    uint32_t rolemask;
};
#define IDT_HANDLERS_END \
    {                    \
        0, NULL, NULL, 0 \
    }

/* Register a table (borrowed).  Tables are searched in the order in which they were added; a handler may
 * add and remove tables, its own too.  Returns 0, or -1 with errno ENOMEM.
 */
int idt_handlers_add (idt_t *h, const struct idt_handler_spec *table, void *arg);
void idt_handlers_remove (idt_t *h, const struct idt_handler_spec *table);

/* Ask the broker to route requests for service 'name' here; modules have the service of their own name
 * anyway.  Returns a future of an empty answer; EEXIST: taken.
 */
struct idt_future;
struct idt_future *idt_service_add (idt_t *h, const char *name);
struct idt_future *idt_service_remove (idt_t *h, const char *name);

/* Answer a request: empty or with a string (JSON text), packed JSON, bytes, an error (above 0) with a text
 * (may be NULL).  Nothing is sent where the request has NORESPONSE.  Return 0, or -1 with errno set (EPROTO: what
 * was to be packed is no JSON, such as text that is not UTF-8): then the asker got that error as its answer.  Either
 * way the request is answered, and must not be answered again.
 */
int idt_respond (idt_t *h, const idt_msg_t *request, const char *s);
int idt_respond_pack (idt_t *h, const idt_msg_t *request, const char *fmt, ...);
int idt_respond_raw (idt_t *h, const idt_msg_t *request, const void *data, size_t size);
int idt_respond_error (idt_t *h, const idt_msg_t *request, int errnum, const char *text);

/* Parse a JSON payload.  Returns a new reference to an object, or NULL with errno EPROTO and the reason in
 * 'errp' (no payload, not NUL-terminated, not JSON, not an object).
 */
json_t *idt_msg_json (const idt_msg_t *msg, idt_error_t *errp);

/* Parse a JSON payload and unpack it as json_unpack () does.  '*o' (new reference) holds what the unpacked
 * strings point into; json_decref () it afterwards.  Returns 0, or -1 with errno EPROTO, the reason in
 * 'errp' and '*o' NULL.
 */
int idt_msg_unpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, ...);

/* --- events ------------------------------------------------------------------------------- */

/* Get events whose topic begins with 'prefix', or no more.  Returns a future of an empty answer.  While there is no
 * connection a subscription ends at once; one that was not sent yet ends with ECANCELED.
 */
struct idt_future *idt_event_subscribe (idt_t *h, const char *prefix);
struct idt_future *idt_event_unsubscribe (idt_t *h, const char *prefix);

/* Publish an event, with a JSON text or NULL.  'flags': 0 or IDT_MSGFLAG_PRIVATE.  Returns a future;
 * idt_rpc_get_unpack (f, "{s:i}", "seq", &seq) tells its number.
 */
struct idt_future *idt_event_publish (idt_t *h, const char *topic, int flags, const char *s);

/* --- attributes, log ------------------------------------------------------------------------ */

/* The value of a broker's attribute; borrowed until the handle is closed or the attribute asked for
 * again.  NULL with errno set (ENOENT: no such attribute).  Blocks for one round trip, but in inline
 * modules.
 */
const char *idt_attr_get (idt_t *h, const char *name);
int idt_attr_set (idt_t *h, const char *name, const char *value, idt_error_t *errp);

/* For modules: make an attribute known to the broker, which lists it from then on.  Returns the value it was given at
 * start, else 'value'; borrowed as above.  Once defined it stays, and the value too.  NULL with errno set (EPERM: this
 * is no module).  Blocks as idt_attr_get ().
 */
const char *idt_attr_define (idt_t *h, const char *name, const char *value);

/* Rank of the broker, and number of brokers.  Return 0, or -1 with errno set. */
int idt_get_rank (idt_t *h, uint32_t *rank);
int idt_get_size (idt_t *h, uint32_t *size);

#define IDT_LOG_TEXT_MAX 2047 /* bytes of a text that idt_log () sends; the rest is cut off */

/* Append a text to the broker's log, of which it keeps IDT_LOG_TEXT_MAX bytes: each line of it is a line there.
 * 'level': LOG_EMERG ... LOG_DEBUG of <syslog.h>.  The name that the lines carry is what idt_log_set_name () said (its
 * first 48 bytes), else the module's, else the program's.  Never blocks; what can't be sent is lost; keeps errno.
 */
void idt_log (idt_t *h, int level, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));
void idt_log_set_name (idt_t *h, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* IDTREE_HANDLE_H */
