/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* handle.h - the inside of a handle; only the files of libidtree include it
 *
 * A handle is one object in two files: handle.c reads messages and decides when they are dispatched, and future.c
 * processes responses. A handle uses the connection (connection.h, transport.h), which calls back through tables of
 * functions. The parts above the handle use it: rpc.c, broker.c, registration.c, service.c, generate.c, document.c.
 * open.c makes a handle with all of these parts. Design rules:
 *
 * 1. Each message that arrives is dispatched exactly once, or dropped.
 * 2. Callbacks (handlers, futures, lost) are called only from turn () and idt_handle_dispatch (), which the reactor or
 *    the broker calls. No callback is called inside another call of the user.
 * 3. A fulfilled future with a callback stays on the ready list until the callback is called. The list is emptied
 *    before the next message is dispatched, so callbacks are called in the order of the messages.
 * 4. handle_wait () delivers responses to futures without callbacks and puts all other messages in the inbox. turn ()
 *    empties the inbox before it reads from the connection again.
 * 5. A function that leaves work for a later turn (ready list, inbox, bytes that were read) calls handle_wake ().
 * 6. 'connections' is the number of the current connection, counted from 1. When that connection is lost, 'connections'
 *    becomes the number of the next one. A future belongs to one connection and fails when that connection is lost. A
 *    request that is made between two connections belongs to the next one.
 */
#ifndef LIBIDTREE_HANDLE_H
#define LIBIDTREE_HANDLE_H

#include <sys/queue.h>

#include <idtree/generate.h>
#include <idtree/handle.h>
#include <idtree/page.h>
#include <idtree/rpc.h>

#include "libidtree/connection.h"
#include "libidtree/transport.h"
#include "libmsg/message.h"
#include "libutil/queue/fifo.h"

#define HANDLE_MAX_INBOX (1U << 20) /* maximum number of messages kept for the reactor, or for a streaming future */
#define HANDLE_MAX_NAME 48          /* bytes of a name in the log (RFC 5424 6.2.5) */

#define RPC_TYPED 0x100 /* a call of this library's own functions (enum idt_rpc_flag): it may reconnect */

/* Matchtags in use, and the item that waits for each. An all-zero struct is an empty table. Tags are given in the order
 * 1, 2, 3, ... modulo 2^32; 0 and tags in use are skipped. So a tag is not reused for a long time, and a late response
 * to a removed tag finds no item.
 */
#define MATCHTAG_TABLE_MAX (1U << 20) /* maximum number of tags in use at a time */

struct matchtag_table_slot {
    uint32_t tag; /* 0: free */
    void *item;
};

struct matchtag_table {
    struct matchtag_table_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t count;
    uint32_t last; /* the tag that was given last */
};

TAILQ_HEAD (registration_list, registration);
TAILQ_HEAD (future_list, idt_future);
TAILQ_HEAD (handler_list, handler_table);

/* Functions of the parts above that a handle calls. */
struct handle_ops {
    void (*dispatch) (idt_t *h, const idt_msg_t *msg); /* a request or event has arrived */

    /* For a handle that may reconnect. lost: the connection is lost. connecting: an attempt to connect again begins,
     * and requests may be added to the attempt; returns 0, or -1 with errno ENOMEM. misses_events: whether the handle
     * misses events while it is not connected. connected: a new connection is established.
     */
    void (*lost) (idt_t *h);
    int (*connecting) (idt_t *h, struct connector *attempt);
    bool (*misses_events) (const idt_t *h);
    void (*connected) (idt_t *h);
};

/* The state of generate.c. */
struct id_source {
    fluid_t last;              /* the greatest id of this handle; 0: none yet */
    unsigned asked;            /* number of unanswered idt_fluid_generate_async () futures */
    struct prefetch *prefetch; /* NULL: no prefetching */
    idt_future_t *learn;       /* the request for the instance's UUID; NULL: no request was made */

    idt_page_t *page;         /* NULL: no page */
    int page_fd;              /* socket of a request for a page that is in progress; -1: none */
    unsigned page_connection; /* number of the connection that the page belongs to */
    unsigned page_requests;   /* number of requests for ids over that connection */
    uint64_t page_wait_us;    /* CLOCK_MONOTONIC: request no page before it; end of a request in progress */
};

struct idt {
    const struct idt_transport *transport;
    void *impl;
    const struct handle_ops *ops;

    idt_reactor_t *reactor; /* NULL: the handle has no reactor yet */
    bool owns_reactor;
    idt_watcher_t *io;   /* watches the connection; NULL: no reactor yet, an inline handle, or a lost connection */
    idt_watcher_t *wake; /* idle watcher that makes the reactor run a turn immediately */
    int io_events;
    unsigned interest; /* number of futures and tables that keep the reactor running */
    unsigned depth;    /* above 0 while a callback runs */

    struct fifo inbox; /* messages that handle_wait () read and left for the reactor */
    struct matchtag_table tags;
    struct future_list ready;
    struct freelist futures; /* free list of destroyed futures */
    struct msg_pool *pool;   /* memory of requests; NULL: requests come from malloc () */
    unsigned ready_count;
    unsigned future_count; /* number of futures that exist */

    int flags;                     /* enum idt_open_flag; a module neither reconnects nor uses a page */
    int lost;                      /* errno of the lost connection; 0: connected */
    int untold;                    /* errno of a lost connection that was not reported to the program yet; 0: none */
    unsigned connections;          /* number of the connection, from 1: rule 6 */
    struct connection *connection; /* finds the next connection; NULL for a module */
    idt_lost_f lost_cb;
    void *lost_arg;
    idt_interrupt_f interrupt_cb; /* called to decide whether to continue waiting; NULL: always continue */
    void *interrupt_arg;

    /* State of the parts above. */
    struct handler_list handlers; /* tables of handlers (service.c) */
    size_t max_json;              /* maximum bytes of a request's JSON text; 0: no limit */
    char *module;                 /* name of the module; NULL: a program */
    struct registration_list registrations;
    json_t *attrs; /* broker.c: responses to attr.get and attr.define, by name */
    uint32_t rank; /* value of attribute "rank" */
    bool has_rank;
    char log_name[HANDLE_MAX_NAME + 1];
    struct id_source ids;
    struct siblings *documents; /* NULL: no document is attached */
};

struct idt_future {
    idt_t *h;
    uint32_t tag; /* matchtag of the request; 0: no further response is expected */
    bool streaming;
    bool ready;
    bool lost;           /* the request failed because the connection was lost */
    unsigned connection; /* number of the connection that the future belongs to */
    int errnum;
    const idt_msg_t *response; /* NULL: no response */
    json_t *json;              /* owns the strings that idt_rpc_get_unpack () returned */
    struct fifo later;         /* responses that arrived before idt_future_reset () was called */
    int later_errnum;          /* an error that comes after all responses in 'later', for example a timeout; 0: none */

    idt_future_f cb; /* NULL: no callback */
    void *arg;
    double timeout_ms;
    idt_watcher_t *timer;
    bool listed; /* the future is on the handle's ready list */
    TAILQ_ENTRY (idt_future) link;

    /* Set by the function that made the future. Called once: when the result arrives, or, with 'ready' false, when the
     * future is destroyed without a result. The caller may not have read the result yet. NULL: nothing is called.
     */
    void (*ended) (idt_future_t *f);
    struct registration *registration; /* the registration that the response completes */
    uint32_t nids;                     /* number of ids that were requested */
    bool ordered;                      /* made by idt_fluid_generate_async (): it counts in 'asked' */
    fluid_t after;                     /* the requested ids must be above this one */
};

/* --- handle.c ------------------------------------------------------------------------------- */

/* As idt_handle_create () and idt_close (), except that the handle has no parts above it. */
idt_t *handle_create (const struct idt_transport *transport, void *impl, const struct handle_ops *ops);
void handle_destroy (idt_t *h);

/* Make the handle a client's handle: 'c' is the impl of its transport. */
void handle_set_connection (idt_t *h, struct connection *c, int flags);

/* Read from the connection until '*done' is true, for at most 'timeout_ms' (negative: no limit). Returns 0, or -1 with
 * errno ETIMEDOUT, EDEADLK (an inline handle), EINTR (the interrupt callback returned false), or the errno of the lost
 * connection.
 */
int handle_wait (idt_t *h, const bool *done, double timeout_ms);

/* As idt_send (). If 'typed' is set, a handle that lost its connection may reconnect to send this message. */
int handle_send (idt_t *h, const idt_msg_t *msg, bool typed);

/* Start to look for another connection after a loss. Returns false if the handle must not reconnect. */
bool handle_seek (idt_t *h);

/* Make the reactor, if the handle has one, run a turn soon. */
void handle_wake (idt_t *h);

/* Add (+1) or remove (-1) a reason why the connection keeps the reactor running. */
void handle_interest (idt_t *h, int change);

static inline bool handle_is_inline (const idt_t *h)
{
    return !h->transport->pollfd;
}

/* handle_may_follow (): whether the handle may reconnect. handle_follows (): whether it reconnects immediately after a
 * loss, not only when a request needs the connection. handle_is_sought (): whether it is looking for a connection now.
 */
static inline bool handle_may_follow (const idt_t *h)
{
    return !(h->flags & IDT_O_NORECONNECT);
}

static inline bool handle_follows (const idt_t *h)
{
    return h->flags & IDT_O_RECONNECT;
}

static inline bool handle_is_sought (const idt_t *h)
{
    return h->connection && connection_is_sought (h->connection);
}

/* --- future.c ------------------------------------------------------------------------------- */

/* Give 'item' a tag. Returns the tag, or 0 with errno ENOBUFS (MATCHTAG_TABLE_MAX tags are in use) or ENOMEM. */
uint32_t matchtag_table_add (struct matchtag_table *t, void *item);

/* The item of a tag; NULL: the tag is not in use. */
void *matchtag_table_find (const struct matchtag_table *t, uint32_t tag);

/* Remove a tag that is in use. */
void matchtag_table_remove (struct matchtag_table *t, uint32_t tag);

/* The next item at or after '*cursor' (0 at first), which is advanced; NULL: no further item. Tags must not be added or
 * removed meanwhile.
 */
void *matchtag_table_next (const struct matchtag_table *t, size_t *cursor);

/* Free the table, not the items.  Keeps errno. */
void matchtag_table_fini (struct matchtag_table *t);

/* Make a future that does not wait for a response yet. NULL with errno ENOMEM. */
idt_future_t *future_create (idt_t *h);

/* future_deliver (): fulfil the future with a response (takes a reference). future_fail (): fulfil it with an error
 * that has no response.
 */
void future_deliver (idt_future_t *f, const idt_msg_t *response);
void future_fail (idt_future_t *f, int errnum);

/* Fail an unanswered future with ECANCELED. If its request still waits for a connection, the request is not sent. */
void future_cancel (idt_future_t *f);

/* Call the callbacks of the futures that are ready now. */
void future_run_ready (idt_t *h);

/* The future that waits for a response; NULL: no future waits for it any longer. */
idt_future_t *future_find (idt_t *h, const idt_msg_t *response);

/* --- the parts above, for open.c ------------------------------------------------------------ */

void service_dispatch (idt_t *h, const idt_msg_t *msg);
void service_fini (idt_t *h);

void broker_forget (idt_t *h); /* request each attribute again; strings that were returned before stay valid */

int registration_repeat (idt_t *h, struct connector *attempt); /* add the requests of all registrations */
void registration_repeat_late (idt_t *h);      /* request the registrations that were added after the attempt began */
bool registration_subscribed (const idt_t *h); /* whether the handle is subscribed to events */
void registration_fini (idt_t *h);

void document_event (idt_t *h, const idt_msg_t *event); /* called before the handlers, if 'documents' is set */
void document_connected (idt_t *h);                     /* called for each new connection, if 'documents' is set */

void generate_init (idt_t *h);
void generate_fini (idt_t *h);

#endif /* LIBIDTREE_HANDLE_H */
