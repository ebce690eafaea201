/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the inside of a handle; only the files of libidtree include it
 *
 * A handle is one object in several files that call each other: handle.c, open.c, connection.c, registration.c,
 * future.c, rpc.c, attr.c, service.c, respond.c, builtin.c, document.c, generate.c, attach.c, prefetch.c.
 *
 * handle.c reads messages and decides when they are dispatched; future.c and service.c process a dispatched message.
 * Design rules:
 *
 * 1. Each message that arrives is dispatched exactly once, or dropped.
 * 2. Callbacks (handlers, futures, lost) are called from turn () and idt_handle_dispatch () only: from the reactor or
 *    by the broker, never inside another call of the user.
 * 3. A fulfilled future with a callback stays on the ready list until the callback is called. The list is emptied
 *    before the next message is dispatched, so callbacks are called in the order of the messages.
 * 4. handle_wait () delivers responses to futures without callbacks and puts all other messages in the inbox. turn ()
 *    empties the inbox before it reads from the connection again.
 * 5. A function that leaves work for a later turn (ready list, inbox, bytes that were read) calls handle_wake ().
 * 6. 'connections' counts the connections of a handle, including the current one; the next one counts from the moment
 *    the current one is lost. A future belongs to one connection and fails when that connection is lost. A request that
 *    is made between two connections belongs to the next one.
 */
#ifndef LIBIDTREE_PRIVATE_H
#define LIBIDTREE_PRIVATE_H

#include <stdarg.h>
#include <sys/queue.h>

#include <idtree/generate.h>
#include <idtree/handle.h>
#include <idtree/rpc.h>

#include "libidtree/connect/connector.h"
#include "libidtree/tags/matchtag_table.h"
#include "libidtree/transport.h"
#include "libmsg/message.h"
#include "libutil/queue/fifo.h"
#include "libutil/queue/freelist.h"

#define HANDLE_MAX_INBOX (1U << 20) /* messages kept for the reactor, or for a streaming future */
#define HANDLE_MAX_NAME 48          /* bytes of a name in the log (RFC 5424 6.2.5) */

#define RPC_TYPED 0x100 /* a call of this library's own functions: it may reconnect (enum idt_rpc_flag) */

struct handler_table;
struct connection;
struct registration;
struct attach;
struct prefetch;

TAILQ_HEAD (registration_list, registration);
TAILQ_HEAD (future_list, idt_future);
TAILQ_HEAD (handler_list, handler_table);
TAILQ_HEAD (observer_list, observer);

struct idt {
    const struct idt_transport *transport;
    void *impl;

    idt_reactor_t *reactor; /* NULL: not used yet */
    bool owns_reactor;
    idt_watcher_t *io;   /* the connection; NULL: no reactor yet, inline, or lost */
    idt_watcher_t *wake; /* idle watcher that makes the reactor run a turn immediately */
    int io_events;
    unsigned interest; /* number of futures and tables that keep the reactor running */
    unsigned depth;    /* above 0: in a callback */

    struct fifo inbox; /* messages that handle_wait () read but did not wait for */
    struct matchtag_table tags;
    struct future_list ready;
    struct freelist futures; /* free list of destroyed futures */
    struct msg_pool *pool;   /* for requests; NULL: requests come from malloc () */
    unsigned ready_count;
    unsigned future_count; /* all existing futures */
    struct handler_list handlers;
    struct observer_list observers;

    int lost;                      /* errno of the lost connection; 0: connected */
    int untold;                    /* errno of a loss that the reactor has not reported yet */
    unsigned connections;          /* counts from 1 */
    struct connection *connection; /* finds the next connection; NULL: a module, which never reconnects */
    struct registration_list bonds;
    idt_lost_f lost_cb;
    void *lost_arg;
    idt_interrupt_f interrupt_cb; /* whether to continue waiting; NULL: always */
    void *interrupt_arg;

    json_t *attrs; /* responses to attr.get, by name */
    uint32_t rank; /* value of attribute "rank" */
    bool has_rank;
    size_t max_json; /* maximum bytes of a request's JSON text; 0: no limit */
    char *module;    /* name of the module; NULL: a program */
    char log_name[HANDLE_MAX_NAME + 1];
    fluid_t last_fluid;        /* 0: none yet */
    unsigned fluids_asked;     /* idt_fluid_generate_async () futures without a response */
    struct attach *attach;     /* NULL: no page was requested yet */
    struct prefetch *prefetch; /* NULL: no prefetching */
};

struct idt_future {
    idt_t *h;
    uint32_t tag; /* 0: no further response is expected */
    bool streaming;
    bool ready;
    bool lost;                 /* failed because the connection was lost */
    unsigned connection;       /* number of the connection it belongs to */
    struct registration *bond; /* the registration that the response completes; NULL: none */
    int errnum;
    const idt_msg_t *response; /* NULL: no response */
    json_t *json;              /* owns the strings that idt_rpc_get_unpack () returned */
    struct fifo later;         /* responses that arrived before the reset */
    int later_errnum;          /* an error without a response, which follows them */

    idt_future_f cb; /* NULL: no callback */
    void *arg;
    double timeout_ms;
    idt_watcher_t *timer;
    bool listed; /* on the handle's ready list */
    TAILQ_ENTRY (idt_future) link;

    uint32_t nids; /* number of ids that generate_ask () requested; 0: another request */
    bool ordered;  /* by idt_fluid_generate_async (); counts in fluids_asked */
    fluid_t after; /* the ids must be above this one */
};

/* --- generate.c ----------------------------------------------------------------------------- */

/* A response with ids has arrived, even if the caller has not read it yet. From now on requested ids must be above
 * these ids, since another broker may serve the next request.
 */
void generate_answered (idt_future_t *f);

/* As idt_fluid_generate_async (), but keeps the prefetched ids. */
idt_future_t *generate_ask (idt_t *h, uint32_t n);

/* --- attach.c ------------------------------------------------------------------------------- */

/* Store 'n' new ids, above all earlier ones, in 'ids' without a message. Returns whether that was possible; if not, the
 * content of 'ids' is undefined.
 */
bool attach_generate (idt_t *h, uint32_t n, fluid_t *ids);

/* Called when ids are requested by message: try to attach to the broker's page, so that later ids need no message. Does
 * not block; keeps errno.
 */
void attach_work (idt_t *h);

void attach_fini (idt_t *h);

/* --- prefetch.c ----------------------------------------------------------------------------- */

/* As idt_fluid_generate (), from prefetched ids. Only for a handle that prefetches. */
int prefetch_generate (idt_t *h, uint32_t n, fluid_t *ids);

/* Ids above all that are prefetched or requested were requested: the prefetched ones are no longer given out. */
void prefetch_pass (idt_t *h);

void prefetch_fini (idt_t *h);

/* --- handle.c ------------------------------------------------------------------------------- */

/* Read from the connection until '*done' is true, for at most 'timeout_ms' (negative: no limit). Returns 0, or -1 with
 * errno ETIMEDOUT, EDEADLK (inline), or the errno of the lost connection.
 */
int handle_wait (idt_t *h, const bool *done, double timeout_ms);

/* As idt_send (). If 'typed', a lost connection may be replaced by a new one for this message. */
int handle_send (idt_t *h, const idt_msg_t *msg, bool typed);

/* How long an interruptible call sleeps before it calls the interrupt callback again: the event that changes the
 * callback's answer may not wake it (another thread, or a signal between the call and the sleep).
 */
#define HANDLE_ASK_MS 50.

/* How long to sleep: until 'deadline_ms' (as in handle_poll ()), or until the next call of the interrupt callback if
 * 'asks'.
 */
double handle_sleep_until (bool asks, double deadline_ms);

/* Sleep until 'pfd' (its fd may be negative) is ready, or until 'deadline_ms' of CLOCK_MONOTONIC (negative: no limit).
 * Returns 0, also for a signal, with 'revents' set; or -1 with errno ETIMEDOUT or as poll (2).
 */
struct pollfd;
int handle_poll (struct pollfd *pfd, double deadline_ms);

/* A new connection is established, and its transport is in place. */
void handle_connected (idt_t *h);

/* The connection is lost, or no other one was found: requests that wait for it fail with 'errnum'. */
void handle_lose (idt_t *h, int errnum);

/* Keep a message for the reactor. Returns 0, or -1 with errno ENOBUFS or ENOMEM; the caller still owns the message
 * then.
 */
int handle_keep (idt_t *h, const idt_msg_t *msg);

/* Make the reactor, if the handle has one, run a turn soon. */
void handle_wake (idt_t *h);

/* Add (+1) or remove (-1) a reason for the connection to keep the reactor running. */
void handle_interest (idt_t *h, int change);

/* An observer receives each event before the handlers do, and is notified of a new connection. It keeps the reactor
 * running, and the handle open: call handle_unobserve () before idt_close ().
 */
struct observer {
    void (*event_cb) (const idt_msg_t *event, void *arg);
    void (*connected_cb) (void *arg);
    void *arg;
    TAILQ_ENTRY (observer) link;
};

void handle_observe (idt_t *h, struct observer *o);
void handle_unobserve (idt_t *h, struct observer *o);

/* The 'arg' of the observer with this callback; NULL: no such observer. */
void *handle_observed (const idt_t *h, void (*event_cb) (const idt_msg_t *event, void *arg));

static inline bool handle_is_inline (const idt_t *h)
{
    return !h->transport->pollfd;
}

/* --- future.c ------------------------------------------------------------------------------- */

/* A future that waits for nothing yet. NULL with errno ENOMEM. */
idt_future_t *future_create (idt_t *h);

/* Fulfil the future with a response (takes a reference), or with an error that has no response. */
void future_deliver (idt_future_t *f, const idt_msg_t *response);
void future_fail (idt_future_t *f, int errnum);

/* Fail an unanswered future with ECANCELED. If its request still waits for a connection, it is not sent. */
void future_cancel (idt_future_t *f);

/* Call the callbacks of the futures that are ready now. */
void future_run_ready (idt_t *h);

/* The future that waits for a response; NULL: no future waits for it any longer. */
idt_future_t *future_find (idt_t *h, const idt_msg_t *response);

/* --- connection.c --------------------------------------------------------------------------- */

/* As idt_open_ex (), with an explicit list of URIs. */
idt_t *connection_open (const char *uris, const struct idt_open_options *options, idt_error_t *errp);

/* Whether this handle may reconnect, and whether it reconnects without a request that needs it. */
bool connection_may_follow (const idt_t *h);
bool connection_follows (const idt_t *h);

/* Start to look for another connection after a loss. Returns whether the handle is looking for one. */
bool connection_seek (idt_t *h);
bool connection_is_sought (const idt_t *h);

/* Whether the handle may make ids without a message: a client's handle without IDT_O_NOSHM. */
bool connection_may_attach (const idt_t *h);

/* Whether the handle may connect to a broker of 'instance': true if either instance is unknown ("") or if they are the
 * same.
 */
bool connection_is_of (const idt_t *h, const char *instance);

/* connection_learn (): the broker made ids, so it has joined an instance; ask it for the instance's UUID, once for each
 * connection, if that is unknown. connection_forget (): take the response if it has arrived, and end that request.
 */
void connection_learn (idt_t *h);
void connection_forget (idt_t *h);

/* The handle's registrations changed, so a connection attempt that is in progress sends an outdated list: start the
 * attempt again.
 */
void connection_retell (idt_t *h);

/* Keep a message for the next connection. Returns 0, or -1 with errno ENOBUFS or ENOMEM. */
int connection_hold (idt_t *h, const idt_msg_t *msg);

/* While a connection is sought: wait until something happens, at most until 'deadline_ms'. Returns 0, or -1 with errno
 * ETIMEDOUT or as poll (2).
 */
int connection_wait (idt_t *h, double deadline_ms);

/* connection_watch (): let the reactor, if there is one and something waits for the connection, look for it.
 * connection_unwatch (): end that.
 */
void connection_watch (idt_t *h);
void connection_unwatch (idt_t *h);

void connection_destroy (idt_t *h);

/* --- registration.c --------------------------------------------------------------------------------- */

/* registration_answered (): the future's registration succeeded (errnum 0) or failed. registration_unheard (): the
 * future is destroyed.
 */
void registration_answered (idt_future_t *f, int errnum);
void registration_unheard (idt_future_t *f);

/* Add the requests of all registrations to a new connection attempt. Returns 0, or -1 with errno ENOMEM. */
int bonds_say_again (idt_t *h, struct connector *dial);

/* The new connection is in place: request the registrations that were added after the attempt began. */
void bonds_say_late (idt_t *h);

/* Whether the handle has subscriptions. */
bool bonds_subscribed (const idt_t *h);

void bonds_fini (idt_t *h);

/* --- service.c, builtin.c ------------------------------------------------------------------- */

/* Pass a request or event to its handler. */
void service_dispatch (idt_t *h, const idt_msg_t *msg);
void service_fini (idt_t *h);

/* The handler for METHOD of a module's NAME.METHOD; NULL: no built-in method has this name. */
const struct idt_handler_spec *builtin_find (const char *method);

/* --- attr.c --------------------------------------------------------------------------------- */

/* The value of an attribute that is known without a round trip (borrowed); NULL: not known. */
const char *attr_peek (idt_t *h, const char *name);

/* Request each attribute again, since the handle has another broker. Strings that were returned before stay valid. */
void attr_forget (idt_t *h);

/* --- json.c --------------------------------------------------------------------------------- */

/* Pack JSON text. Returns a string for free (), or NULL with the reason in 'errp' and errno EINVAL (bad format, text
 * that is not UTF-8) or ENOMEM.
 */
char *json_vpack_text (idt_error_t *errp, const char *fmt, va_list ap);

/* Whether a JSON text in the payload has more than 'values' values. The number of values determines the time that
 * reading takes.
 */
bool msg_json_is_much (const idt_msg_t *msg, uint32_t values);

/* As idt_msg_unpack (). */
int msg_vunpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, va_list ap);

#endif /* LIBIDTREE_PRIVATE_H */
