/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* handle.h - a connection to a broker: send, receive, serve
 *
 * A handle, its futures and its handlers belong to one thread. The handle's reactor dispatches incoming messages: a
 * response to the future that waits for it, a request or an event to the handler whose topic matches. idt_future_wait
 * () reads from the connection without the reactor. It keeps the messages that it does not wait for, in order, for the
 * reactor.
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
#pragma GCC visibility push(default)

typedef struct idt idt_t;

/* --- connection ---------------------------------------------------------------------------- */

/* Connect to the broker at 'uri', such as local:///run/idtree/local. If ?rank=RANK is appended, connect to that rank in
 * the process that serves the socket. Several URIs, separated by blanks or commas, are tried in order, for 30 s
 * together. NULL means idt_default_uri (). Returns a handle for idt_close (), or NULL with errno set and the reason in
 * 'errp' (may be NULL). If all of several URIs fail, errno and 'errp' are for the last of them:
 *   EINVAL        not a local:// URI, a path longer than a UNIX socket's may be, or more than 16 URIs
 *   ENOENT, ECONNREFUSED  no broker listens at the socket
 *   EHOSTUNREACH, EHOSTDOWN  the process does not host that rank, or the rank has ended
 *   ETIMEDOUT     the broker does not answer
 *   EPERM, EACCES the broker serves another user
 */
idt_t *idt_open (const char *uri, idt_error_t *errp);

/* How a handle reconnects: it replaces a lost connection by a connection to the first broker of its list that accepts
 * it. The flags below say which calls do so.
 *
 * 1. Requests that were sent before the loss end with ECONNRESET, once. It is unknown whether they were carried out.
 * 2. Requests made while there is no connection are kept and sent after reconnecting, unless the caller has given up
 *    waiting for the answer. The time limits of their futures include this time.
 * 3. The list is tried from its beginning, round by round, with pauses of up to 2 s. After 30 s without success, or as
 *    soon as all brokers refuse this user or are of another instance, the handle gives up. Waiting requests then end
 *    with the error with which idt_open () would fail (ECONNREFUSED, ETIMEDOUT, ...). The next call tries again.
 * 4. A broker of another instance (attribute instance.uuid) is not accepted: ESTALE.
 * 5. Subscriptions and services are requested again before anything else. A handle with subscriptions first receives
 *    the event event.lost with {"reconnected":true}, because it may have missed events.
 * 6. New FLUIDs are above all FLUIDs that the handle returned before, even if another rank makes them.
 * 7. Requests that the handle received over the old connection can no longer be answered: an answer is dropped.
 *
 * The calling thread reconnects while it waits for an answer or runs the reactor. A module's handle never reconnects.
 * After fork () a handle belongs to the parent; the child must open its own.
 */
enum idt_open_flag {
    /* Any call may reconnect, and the reactor reconnects by itself. The callback of idt_set_lost () is called only when
     * the handle gives up.
     */
    IDT_O_RECONNECT = 1,
    /* Never reconnect: the handle is unusable once the connection is lost. */
    IDT_O_NORECONNECT = 2,
    /* Request ids by message, never make them in this process (idtree/page.h). May be combined with one of the two
     * flags above.
     */
    IDT_O_NOSHM = 4,
    /* Without the first two flags, only calls that the library can repeat reconnect: the functions for ids and
     * attributes, idt_event_publish (), idt_event_subscribe (), idt_service_add (). idt_rpc (), idt_send () and the
     * reactor report each loss.
     */
};

/* Returns whether the waiting call may continue (idt_set_interrupt ()). */
typedef bool (*idt_interrupt_f) (void *arg);

/* Options of idt_open_ex (); zeros are the defaults. */
struct idt_open_options {
    int flags;                 /* enum idt_open_flag */
    double timeout_ms;         /* for all URIs together; 0: 30 s; negative: no limit */
    idt_interrupt_f interrupt; /* as for idt_set_interrupt (), from the start of the call; NULL: none */
    void *arg;                 /* passed to 'interrupt' */
};

/* Connect as idt_open (), with options ('options' NULL: the defaults). Each broker of the list must answer within
 * its share: the time left, divided by the number of brokers not tried yet, and at most 5 s. The last broker has all of
 * the time left. Fails as idt_open (), and with:
 *   EINVAL  unknown flags, or both IDT_O_RECONNECT and IDT_O_NORECONNECT
 *   EINTR   'interrupt' returned false
 */
idt_t *idt_open_ex (const char *uri, const struct idt_open_options *options, idt_error_t *errp);

/* The URI that NULL stands for: IDTREE_URI of the environment, else FLUX_URI, else local:///run/idtree/local. Borrowed.
 */
const char *idt_default_uri (void);

/* The URI of the broker to which the handle was connected last, as it stands in the list of URIs. Borrowed; NULL for a
 * module's handle.
 */
const char *idt_get_uri (const idt_t *h);

/* Why there is no connection, as a sentence; NULL while there is a connection. Borrowed until the next call with the
 * handle.
 */
const char *idt_lost_error (const idt_t *h);

/* Close the connection and destroy the handlers. Before that, the caller must destroy all futures, close all documents
 * or attach them to another handle, and return from all callbacks of this handle (asserted). Messages that are not
 * written yet are lost: call idt_flush () first. NULL is allowed; errno is preserved.
 */
void idt_close (idt_t *h);

/* The reactor of the handle, created on first use and destroyed with the handle. The handle keeps it running while a
 * future with a callback is pending, a table of handlers is registered, or a document is attached. NULL with errno
 * ENOMEM, or as idt_reactor_create () (EMFILE, ...).
 */
idt_reactor_t *idt_get_reactor (idt_t *h);

/* Use a reactor that the caller owns. Returns 0, or -1 with errno EBUSY (the handle has a reactor already) or
 * ENOMEM.
 */
int idt_set_reactor (idt_t *h, idt_reactor_t *r);

/* Set a callback that the reactor calls when the connection is lost, and when the handle gives up reconnecting, with
 * the reason in 'errnum'. Without a callback the reactor stops with that error:
 *   ECONNRESET       the broker closed the connection
 *   EPROTO, EMSGSIZE the broker sent something that is not a message
 *   EPIPE            (modules) the broker asks the module to end
 *   ENOBUFS          more than 2^20 messages arrived while the reactor did not run
 *   ECONNREFUSED, ETIMEDOUT, ESTALE, ... no other broker was found
 * Before the callback is called or the reactor stops, all received messages are dispatched, and all pending futures end
 * with the same error.
 */
typedef void (*idt_lost_f) (idt_t *h, int errnum, void *arg);
void idt_set_lost (idt_t *h, idt_lost_f cb, void *arg);

/* Send a message as it is. Never blocks: bytes that the connection does not accept now are written later, by the
 * reactor or by a call that waits. Returns 0, or -1 with errno set (EPIPE, ECONNRESET: the connection is lost; ENOBUFS:
 * more than 64 MiB would wait to be written). The message must not be changed afterwards.
 */
int idt_send (idt_t *h, const idt_msg_t *msg);

/* Set a callback that can interrupt calls. While a call with this handle waits, 'cb' is called after each wake-up, also
 * by a signal, and 20 times a second. If it returns false, the call fails with EINTR and its request is given up.
 * Bindings need this for languages whose signal handlers cannot run while their thread waits here. 'cb' must not use
 * the handle. NULL removes it.
 */
void idt_set_interrupt (idt_t *h, idt_interrupt_f cb, void *arg);

/* Wait until everything sent has been written to the connection. Returns 0, or -1 with errno set. */
int idt_flush (idt_t *h);

/* --- requests that we answer ---------------------------------------------------------------- */

typedef void (*idt_handler_f) (idt_t *h, const idt_msg_t *msg, void *arg);

/* A flag for the type of a row: the handler may answer a streaming request several times. */
#define IDT_HANDLER_STREAM 0x100

/* A flag for the type of a row: the handler accepts a longer JSON text. The broker's reactor is blocked while a module
 * that runs on it parses a text. Therefore such a module receives texts of at most broker.max-json bytes, or four times
 * as many for a row with this flag. A request with a longer text is answered EMSGSIZE. So is a request with a text of
 * more than 2,048 values, unless a broker sent it.
 */
#define IDT_HANDLER_LARGE 0x200

/* One row of a table of handlers, which ends with IDT_HANDLERS_END. 'topic' must match exactly. If it ends in '*', the
 * part before the '*' is a prefix of the topics that match. The first row that matches takes the message.
 *
 * 'rolemask': a request of a user with none of these roles is answered EPERM. 0 stands for IDT_ROLE_OWNER, except for
 * idtree's own topics, whose roles are in a table of the library. A row with IDT_ROLE_BROKER accepts only requests from
 * modules of brokers, of any rank; with IDT_ROLE_BROKER and IDT_ROLE_LOCAL, only requests from modules of this rank's
 * broker. A client cannot claim IDT_ROLE_BROKER. Events are not checked; idt_msg_cred () returns their sender.
 *
 * A request that no row matches is answered ENOSYS. A row without IDT_HANDLER_STREAM receives a streaming request
 * without the flag STREAMING, and its one answer ends the request.
 */
struct idt_handler_spec {
    int type;          /* IDT_MSGTYPE_REQUEST (| IDT_HANDLER_...) or IDT_MSGTYPE_EVENT */
    const char *topic; /* borrowed while the table is registered */
    idt_handler_f cb;
    uint32_t rolemask;
};
#define IDT_HANDLERS_END \
    {                    \
        0, NULL, NULL, 0 \
    }

/* Register a table (borrowed). Tables are searched in the order in which they were added. A handler may add and remove
 * tables, including its own. Returns 0, or -1 with errno ENOMEM.
 */
int idt_handlers_add (idt_t *h, const struct idt_handler_spec *table, void *arg);
void idt_handlers_remove (idt_t *h, const struct idt_handler_spec *table);

/* Ask the broker to route requests for service 'name' to this handle. A module has the service of its own name without
 * this call. Returns a future with an empty answer, or with the error EEXIST if the name is taken.
 */
struct idt_future;
struct idt_future *idt_service_add (idt_t *h, const char *name);
struct idt_future *idt_service_remove (idt_t *h, const char *name);

/* Answer a request: empty or with a string (JSON text), packed JSON, bytes, or an error (above 0) with a text (may be
 * NULL). Sends nothing if the request has NORESPONSE. Returns 0, or -1 with errno set (EPROTO: the values do not form
 * JSON, such as text that is not UTF-8). On failure the requester gets that error as its answer. So the request is
 * answered in any case, and must not be answered again.
 */
int idt_respond (idt_t *h, const idt_msg_t *request, const char *s);
int idt_respond_pack (idt_t *h, const idt_msg_t *request, const char *fmt, ...);
int idt_respond_raw (idt_t *h, const idt_msg_t *request, const void *data, size_t size);
int idt_respond_error (idt_t *h, const idt_msg_t *request, int errnum, const char *text);

/* Parse a JSON payload. Returns a new reference to an object, or NULL with errno EPROTO and the reason in 'errp' (no
 * payload, no NUL at its end, not JSON, not an object).
 */
json_t *idt_msg_json (const idt_msg_t *msg, idt_error_t *errp);

/* Parse a JSON payload and unpack it as json_unpack () does. '*o' (new reference) owns the unpacked strings; call
 * json_decref () on it afterwards. Returns 0, or -1 with errno EPROTO, the reason in 'errp' and '*o' NULL.
 */
int idt_msg_unpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, ...);

/* --- events ------------------------------------------------------------------------------- */

/* Start or stop receiving events whose topic begins with 'prefix'.  Returns a future with an empty answer.  While there
 * is no connection, an unsubscription takes effect immediately. If it cancels a subscription that was not sent yet, the
 * future of that subscription ends with ECANCELED.
 */
struct idt_future *idt_event_subscribe (idt_t *h, const char *prefix);
struct idt_future *idt_event_unsubscribe (idt_t *h, const char *prefix);

/* Publish an event, with a JSON text or NULL. 'flags': 0 or IDT_MSGFLAG_PRIVATE. Returns a future; idt_rpc_get_unpack
 * (f, "{s:i}", "seq", &seq) stores the event's sequence number in 'seq'.
 */
struct idt_future *idt_event_publish (idt_t *h, const char *topic, int flags, const char *s);

/* --- attributes, log ------------------------------------------------------------------------ */

/* Get or set a broker's attribute. The value is borrowed until the handle is closed or the attribute is requested
 * again. NULL with errno set (ENOENT: no such attribute). Blocks for one round trip, except in inline modules.
 */
const char *idt_attr_get (idt_t *h, const char *name);
int idt_attr_set (idt_t *h, const char *name, const char *value, idt_error_t *errp);

/* For modules: define an attribute, which the broker lists from then on. Returns the value that the broker got for it
 * at its start, else 'value'; borrowed as for idt_attr_get (). The attribute and its value remain when the module ends.
 * NULL with errno set (EPERM: the handle is not a module's). Blocks as idt_attr_get ().
 */
const char *idt_attr_define (idt_t *h, const char *name, const char *value);

/* The rank of the broker, and the number of brokers. Return 0, or -1 with errno set. */
int idt_get_rank (idt_t *h, uint32_t *rank);
int idt_get_size (idt_t *h, uint32_t *size);

#define IDT_LOG_TEXT_MAX 2047 /* bytes of a text that idt_log () sends; it drops the rest */

/* Append a text to the broker's log, at most IDT_LOG_TEXT_MAX bytes; each of its lines becomes a line of the log.
 * 'level': LOG_EMERG ... LOG_DEBUG of <syslog.h>. The lines carry the name set by idt_log_set_name () (its first 48
 * bytes), else the name of the module, else the name of the program. Never blocks; a text that cannot be sent is lost;
 * errno is preserved.
 */
void idt_log (idt_t *h, int level, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));
void idt_log_set_name (idt_t *h, const char *name);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* IDTREE_HANDLE_H */
