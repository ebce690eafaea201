/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_private.h - what the files of local clients share
 *
 *   usock.c         clients of a rank: their limit, turns, output, end
 *   usock_client.c  one client: input, output, when it is not read
 *   usock_listen.c  sockets of the process, accept, which rank a connection is for
 */
#ifndef BROKER_USOCK_PRIVATE_H
#define BROKER_USOCK_PRIVATE_H

#include <sys/queue.h>

#include "broker/route/usock.h"
#include "libmsg/stream.h"
#include "libutil/queue/budget.h"
#include "libutil/clock.h"

#define LOCAL_RESERVE 32 /* descriptors of the process kept for clients */

/* The use of the shared pools by all connections of one guest. */
struct local_user {
    LIST_ENTRY (local_user) link;
    uint32_t userid;
    uint32_t clients;
    uint64_t input;
    uint64_t output;
};

struct client {
    struct peer peer;
    struct usock *local;
    struct local_user *user; /* NULL: the instance owner's client */
    struct client *next_dirty;
    TAILQ_ENTRY (client) link, turn;
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    int events; /* events 'w' waits for */
    /* The client is not read while a budget waits, while a service has no room for 'held', or while the pool has no
     * space for its long message ('stalled').
     */
    struct budget asks;
    struct budget out;
    idt_msg_t *first; /* message that came before it joined this rank */
    idt_msg_t *held;
    uint64_t held_us; /* time of the first check with 'held'; 0: none yet */
    bool stalled;
    size_t reserved;                                  /* bytes of the input pool, for a long message */
    uint64_t frame_us;                                /* start of the current speed check */
    size_t frame_got;                                 /* bytes read since then */
    bool readable;                                    /* the socket may have input */
    enum { TURN_NONE, TURN_NEW, TURN_ROUND } turn_in; /* list of clients to serve that it is in */
    bool dirty;                                       /* in the list of clients to flush */
    bool want_write;                                  /* the socket is full, wait for POLLOUT */
    bool eof;
    bool heard;   /* it has sent a message */
    bool unready; /* its requests wait at the modules */
    int broken;   /* errno of its end; 0: connected */
};

struct usocks {
    idt_reactor_t *reactor;
    TAILQ_HEAD (, usock) list;
    uint32_t first;                           /* first rank of the process */
    char *path;                               /* path of its socket; NULL before the first rank */
    bool several;                             /* the process has had other ranks, too */
    struct door *main;                        /* socket of the first rank; NULL while no rank exists */
    TAILQ_HEAD (caller_list, caller) callers; /* oldest first */
    uint32_t ncallers;
    int reserve[LOCAL_RESERVE]; /* descriptors to give up when clients find no other */
    int reserved;
    size_t clients; /* including callers */
    uint32_t most;  /* largest number of 'clients' */
    struct msg_spare spare;
    uint64_t input;                 /* bytes reserved for long messages */
    uint64_t output;                /* bytes of queued output */
    LIST_HEAD (, local_user) users; /* guests with clients */
};

struct usock {
    struct usocks *all;
    TAILQ_ENTRY (usock) link;
    uint32_t rank;
    idt_reactor_t *reactor;
    struct router *router;
    struct log *log;
    struct authz admit; /* users that may connect */
    const struct usock_ops *ops;
    void *arg;
    struct door *door;   /* socket of its own; NULL: none, or the process's */
    idt_watcher_t *tick; /* runs while a client is not read */
    struct client *dirty;
    TAILQ_HEAD (client_list, client) clients;
    uint32_t nclients;
    struct client_list turns;     /* the round of clients to serve */
    struct client_list newcomers; /* clients that were not in it */
    /* attributes */
    uint32_t max_clients;
    uint32_t max_asks;
    uint64_t max_message;
    uint64_t max_queue;
    uint64_t input_pool;
    uint64_t output_pool;
    uint64_t patience_us;
    uint64_t frame_time_us;
};

/* --- usock_client.c ------------------------------------------------------------------------------ */

/* The clock for timeouts of clients.  It is coarse: some milliseconds do not matter. */
static inline uint64_t usock_now_us (void)
{
    return clock_us (CLOCK_MONOTONIC_COARSE);
}

/* Create a client.  'stream' contains the input so far; NULL: make a new one.  Returns NULL with errno set; 'fd' and
 * 'stream' then still belong to the caller.
 */
struct client *client_create (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream);
void client_destroy (struct client *c);

/* A message stream for a client with the limits of rank 'l'.  Returns NULL with errno ENOMEM. */
struct msg_stream *usock_stream (struct usock *l, int fd);

/* Start to serve a client that has sent something.  'first' (stolen, may be NULL) is its first message; its stream may
 * contain more.
 */
void client_begin (struct client *c, idt_msg_t *first);

/* The status of the rank that a client named: 0, or an errno.  NULL without memory. */
idt_msg_t *usock_rank_answer (int errnum);

/* Send the client the status of the rank that it named: 0, or an errno.  Written immediately, because this broker's
 * loop may not run now.
 */
void client_answer (struct client *c, int errnum);

/* Mark a client as broken; usock_flush () ends it.  'why' is logged unless it is NULL. */
void client_break (struct client *c, int errnum, const char *why);

/* Handle some messages of a client.  Returns whether it has more. */
bool client_serve (struct client *c);

/* Write its output, as far as the socket takes it. */
void client_flush (struct client *c);

/* Check whether the client may be read again.  Returns whether to check again later. */
bool client_tick (struct client *c, uint64_t now_us);

/* Release what the client holds of shared lists and pools. */
void client_let_go (struct client *c);

/* --- usock.c ------------------------------------------------------------------------------------- */

/* Make a connection a client of this rank if the limits allow it (else errno EMFILE).  Arguments as client_create ().
 */
struct client *usock_admit (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream);

/* --- usock_listen.c -------------------------------------------------------------------------- */

/* Listen at 'path', as usock_create () describes.  Returns 0, or -1 with errno set and 'errp' filled. */
int usock_listen (struct usock *l, const char *path, struct attrs *attrs, idt_error_t *errp);

/* Close its sockets.  The rank must no longer be in the list. */
void usock_unlisten (struct usock *l);

/* Fill the reserve of descriptors, so that clients get one when other uses have taken the rest. */
void usocks_fill_reserve (struct usocks *all);

#endif /* BROKER_USOCK_PRIVATE_H */
