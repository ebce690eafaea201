/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - the inside of a handle, for the files of libidtree alone
 *
 * A handle is one object in several files that call each other: handle.c, open.c, connection.c, bond.c, future.c,
 * rpc.c, attr.c, service.c, respond.c, builtin.c, document.c, generate.c, attach.c, prefetch.c.
 *
 * handle.c reads messages and decides when; future.c, service.c know what to do with one.  Design:
 *
 * 1. Each message that comes in is dispatched exactly once, or dropped.
 * 2. Callbacks (handlers, futures, lost) are made from turn () and idt_handle_dispatch () only,
 *    that is from the reactor or by the broker, never from a call of the user.
 * 3. A fulfilled future with a callback is on the ready list until the callback is made; the list
 *    is emptied before the next message is dispatched, so callbacks come in the order of the
 *    messages.
 * 4. handle_wait () gives responses to futures without callbacks; all else goes to the inbox,
 *    which turn () empties before it reads on.
 * 5. Whoever leaves work for a later turn (ready list, inbox, bytes that were read) calls
 *    handle_wake ().
 * 6. A handle has had 'connections' of them, this one included, and counts the next one from when the last is lost.  A
 *    future belongs to one: it ends in an error with it.  What is asked for while there is none belongs to the next.
 */
#ifndef LIBIDTREE_PRIVATE_H
#define LIBIDTREE_PRIVATE_H

#include <stdarg.h>
#include <sys/queue.h>

#include <idtree/generate.h>
#include <idtree/handle.h>
#include <idtree/rpc.h>

#include "libidtree/connect/dial.h"
#include "libidtree/tags/tagtab.h"
#include "libidtree/transport.h"
#include "libmsg/message.h"
#include "libutil/queue/fifo.h"
#include "libutil/queue/spare.h"

#define HANDLE_MAX_INBOX (1U << 20) /* messages kept for the reactor, or for a streaming future */
#define HANDLE_MAX_NAME 48          /* bytes of a name in the log (RFC 5424 6.2.5) */

#define RPC_TYPED 0x100 /* of a call whose meaning the library knows: it may connect anew (enum idt_rpc_flag) */

struct handler_table;
struct connection;
struct bond;
struct attach;
struct prefetch;

TAILQ_HEAD (bond_list, bond);
TAILQ_HEAD (future_list, idt_future);
TAILQ_HEAD (handler_list, handler_table);
TAILQ_HEAD (observer_list, observer);

struct idt {
    const struct idt_transport *transport;
    void *impl;

    idt_reactor_t *reactor; /* NULL: not used yet */
    bool owns_reactor;
    idt_watcher_t *io;   /* the connection; NULL: no reactor yet, inline, or lost */
    idt_watcher_t *wake; /* idle watcher that makes a turn happen now */
    int io_events;
    unsigned interest; /* futures and tables that keep the reactor running */
    unsigned depth;    /* above 0: in a callback */

    struct fifo inbox; /* messages that handle_wait () did not wait for */
    struct tagtab tags;
    struct future_list ready;
    struct spare futures;  /* that are none any more */
    struct msg_pool *pool; /* of requests; NULL: of malloc () */
    unsigned ready_count;
    unsigned future_count; /* all that exist */
    struct handler_list handlers;
    struct observer_list observers;

    int lost;                      /* errno of the lost connection; 0: it is there */
    int untold;                    /* errno of a loss that the reactor has not told yet */
    unsigned connections;          /* from 1 */
    struct connection *connection; /* where the next one comes from; NULL: a module's, none does */
    struct bond_list bonds;
    idt_lost_f lost_cb;
    void *lost_arg;
    idt_interrupt_f interrupt_cb; /* whether to go on waiting; NULL: always */
    void *interrupt_arg;

    json_t *attrs; /* the answers to attr.get, by name */
    uint32_t rank; /* what "rank" said */
    bool has_rank;
    size_t max_json; /* bytes of a request's text; 0: no limit */
    char *module;    /* name of the module; NULL: a program */
    char log_name[HANDLE_MAX_NAME + 1];
    fluid_t last_fluid;        /* 0: none yet */
    unsigned fluids_asked;     /* futures of idt_fluid_generate_async () that are not answered */
    struct attach *attach;     /* NULL: no page was asked for yet */
    struct prefetch *prefetch; /* NULL: none */
};

struct idt_future {
    idt_t *h;
    uint32_t tag; /* 0: no response is expected any more */
    bool streaming;
    bool ready;
    bool lost;           /* ended by the loss of the connection */
    unsigned connection; /* the number of that */
    struct bond *bond;   /* that the answer makes; NULL: none */
    int errnum;
    const idt_msg_t *response; /* NULL: none came */
    json_t *json;              /* what idt_rpc_get_unpack () lent strings from */
    struct fifo later;         /* responses that came before the reset */
    int later_errnum;          /* error without a response that follows them */

    idt_future_f cb; /* NULL: none */
    void *arg;
    double timeout_ms;
    idt_watcher_t *timer;
    bool listed; /* on the handle's ready list */
    TAILQ_ENTRY (idt_future) link;

    uint32_t nids; /* that generate_ask () asked for; 0: it did not */
    bool ordered;  /* by idt_fluid_generate_async (): it counts in fluids_asked */
    fluid_t after; /* they must be above */
};

/* --- generate.c ----------------------------------------------------------------------------- */

/* An answer with ids is here, though nobody has got it yet: what is asked for from now on must be above them, for it
 * may go to another broker.
 */
void generate_answered (idt_future_t *f);

/* As idt_fluid_generate_async (), with what was prefetched left alone. */
idt_future_t *generate_ask (idt_t *h, uint32_t n);

/* --- attach.c ------------------------------------------------------------------------------- */

/* Store 'n' new ids in 'ids', above all before, without a message.  Returns whether that was possible; else what 'ids'
 * holds means nothing.
 */
bool attach_generate (idt_t *h, uint32_t n, fluid_t *ids);

/* Ids are asked for by message: see whether there is another way from now on.  Does not block; keeps errno. */
void attach_work (idt_t *h);

void attach_fini (idt_t *h);

/* --- prefetch.c ----------------------------------------------------------------------------- */

/* As idt_fluid_generate (), where ids are prefetched. */
int prefetch_generate (idt_t *h, uint32_t n, fluid_t *ids);

/* Ids above all that are at hand or under way are asked for: those are not given out any more. */
void prefetch_pass (idt_t *h);

void prefetch_fini (idt_t *h);

/* --- handle.c ------------------------------------------------------------------------------- */

/* Read from the connection until '*done', at most 'timeout_ms' (negative: for ever).  Returns 0,
 * or -1 with errno ETIMEDOUT, EDEADLK (inline), or why the connection was lost.
 */
int handle_wait (idt_t *h, const bool *done, double timeout_ms);

/* As idt_send (); where that is 'typed' the connection may be made anew for it. */
int handle_send (idt_t *h, const idt_msg_t *msg, bool typed);

/* How long a call that can be interrupted sleeps before it asks whether to go on: what says no may not be able to wake
 * it (another thread, or a signal between the question and the sleep).
 */
#define HANDLE_ASK_MS 50.

/* Until when to sleep: 'deadline_ms' (as of handle_poll ()), or sooner where somebody is to be asked. */
double handle_sleep_until (bool asks, double deadline_ms);

/* Sleep until 'pfd' (its fd may be negative) is ready, or 'deadline_ms' of CLOCK_MONOTONIC comes (negative: none).
 * Returns 0, also for a signal, with 'revents' set; -1 with errno ETIMEDOUT or as poll (2).
 */
struct pollfd;
int handle_poll (struct pollfd *pfd, double deadline_ms);

/* There is a connection again, and its transport is in place. */
void handle_connected (idt_t *h);

/* There is none any more, or there will be none: what waits for it ends with 'errnum'. */
void handle_lose (idt_t *h, int errnum);

/* Keep a message for the reactor.  Returns 0, or -1 with errno ENOBUFS or ENOMEM and the message still the caller's. */
int handle_keep (idt_t *h, const idt_msg_t *msg);

/* Make a turn happen soon, where there is a reactor. */
void handle_wake (idt_t *h);

/* One more (+1) or less (-1) reason for the connection to keep the reactor running. */
void handle_interest (idt_t *h, int change);

/* Who is shown each event before the handlers are, and told of a new connection.  It keeps the reactor running, and the
 * handle: idt_close () comes after handle_unobserve ().
 */
struct observer {
    void (*event_cb) (const idt_msg_t *event, void *arg);
    void (*connected_cb) (void *arg);
    void *arg;
    TAILQ_ENTRY (observer) link;
};

void handle_observe (idt_t *h, struct observer *o);
void handle_unobserve (idt_t *h, struct observer *o);

/* The 'arg' of the observer with this callback.  NULL: there is none. */
void *handle_observed (const idt_t *h, void (*event_cb) (const idt_msg_t *event, void *arg));

static inline bool handle_is_inline (const idt_t *h)
{
    return !h->transport->pollfd;
}

/* --- future.c ------------------------------------------------------------------------------- */

/* A future that waits for nothing yet.  NULL with errno ENOMEM. */
idt_future_t *future_create (idt_t *h);

/* Fulfil with a response (takes a reference), or with an error that came without one. */
void future_deliver (idt_future_t *f, const idt_msg_t *response);
void future_fail (idt_future_t *f, int errnum);

/* End what was not answered with ECANCELED; a request that waits for a connection is not sent. */
void future_cancel (idt_future_t *f);

/* Make the callbacks of the futures that are ready now. */
void future_run_ready (idt_t *h);

/* The future that a response is for.  NULL: nobody waits for it any more. */
idt_future_t *future_find (idt_t *h, const idt_msg_t *response);

/* --- connection.c --------------------------------------------------------------------------- */

/* As idt_open_ex (), with all URIs given. */
idt_t *connection_open (const char *uris, const struct idt_open_options *options, idt_error_t *errp);

/* Whether another connection may follow this one, and whether it does without being asked for. */
bool connection_may_follow (const idt_t *h);
bool connection_follows (const idt_t *h);

/* Look for another connection, now that there is none.  Returns whether one is looked for. */
bool connection_seek (idt_t *h);
bool connection_is_sought (const idt_t *h);

/* Whether the handle may have ids without a message: a client that did not say otherwise. */
bool connection_may_attach (const idt_t *h);

/* Whether it may be connected to a broker of 'instance', as far as is known ("": of any). */
bool connection_is_of (const idt_t *h, const char *instance);

/* The broker made ids, so it has joined an instance: ask for that once, where it did not know before.  And forget that
 * one did.
 */
void connection_learn (idt_t *h);
void connection_forget (idt_t *h);

/* The handle's bonds are not what the next broker may have been told: begin with it anew, where that was begun. */
void connection_retell (idt_t *h);

/* Keep what is to be sent for the next connection.  Returns 0, or -1 with errno ENOBUFS or ENOMEM. */
int connection_hold (idt_t *h, const idt_msg_t *msg);

/* While one is sought: wait until something happened, at most until 'deadline_ms'.  Returns 0, or -1 with errno
 * ETIMEDOUT or as poll (2).
 */
int connection_wait (idt_t *h, double deadline_ms);

/* Let the reactor see to it, where there is one and something waits for it; or no more. */
void connection_watch (idt_t *h);
void connection_unwatch (idt_t *h);

void connection_destroy (idt_t *h);

/* --- bond.c --------------------------------------------------------------------------------- */

/* What the future waits for is there, or failed; or nobody waits for it any more. */
void bond_answered (idt_future_t *f, int errnum);
void bond_unheard (idt_future_t *f);

/* Have all bonds asked for over a new connection.  Returns 0, or -1 with errno ENOMEM. */
int bonds_say_again (idt_t *h, struct dial *dial);

/* It is there: ask for those that came too late for it. */
void bonds_say_late (idt_t *h);

/* Whether there are subscriptions. */
bool bonds_subscribed (const idt_t *h);

void bonds_fini (idt_t *h);

/* --- service.c, builtin.c ------------------------------------------------------------------- */

/* Give a request or event to the handler that it is for. */
void service_dispatch (idt_t *h, const idt_msg_t *msg);
void service_fini (idt_t *h);

/* The handler for METHOD of a module's NAME.METHOD.  NULL: none is built in. */
const struct idt_handler_spec *builtin_find (const char *method);

/* --- attr.c --------------------------------------------------------------------------------- */

/* The value of an attribute that is known without a round trip (borrowed); NULL: not known. */
const char *attr_peek (idt_t *h, const char *name);

/* Ask for all anew: it is another broker.  What was lent stays. */
void attr_forget (idt_t *h);

/* --- json.c --------------------------------------------------------------------------------- */

/* Pack JSON text.  Returns a string for free (), or NULL with errno EINVAL (bad format, text that is
 * not UTF-8) or ENOMEM and the reason in 'errp'.
 */
char *json_vpack_text (idt_error_t *errp, const char *fmt, va_list ap);

/* Whether a JSON text in the payload has more than so many values: they are what takes time. */
bool msg_json_is_much (const idt_msg_t *msg, uint32_t values);

/* As idt_msg_unpack (). */
int msg_vunpack (const idt_msg_t *msg, json_t **o, idt_error_t *errp, const char *fmt, va_list ap);

#endif /* LIBIDTREE_PRIVATE_H */
