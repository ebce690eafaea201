/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_private.h - what the files of local clients share
 *
 *   usock.c         who has a turn, limits, the end
 *   usock_listen.c  sockets, accept
 *   usock_handshake.c   which rank a client means
 *   usock_client.c  one client: what it sends and gets, when it is not read
 */
#ifndef BROKER_USOCK_PRIVATE_H
#define BROKER_USOCK_PRIVATE_H

#include <sys/queue.h>

#include <czmq.h>

#include "broker/route/authz.h"
#include "broker/route/usock.h"
#include "libmsg/stream.h"
#include "libutil/queue/budget.h"
#include "libutil/clock.h"
#include "libutil/listener.h"

#define LOCAL_RESERVE 32 /* descriptors of a process kept for clients */

/* What all connections of a user who is not the owner hold of what all share. */
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
    struct local_user *user; /* NULL: the owner's */
    struct client *next_dirty;
    TAILQ_ENTRY (client) turn;
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    int events; /* that 'w' waits for */
    /* Why it is not read: these wait; or a service has no room for 'held'; or the pool has none for its long message.
     */
    struct budget asks;
    struct budget out;
    idt_msg_t *first; /* what it said before it came here */
    idt_msg_t *held;
    uint64_t held_us; /* since when */
    bool stalled;
    size_t reserved;   /* of the pool, for a long message */
    uint64_t frame_us; /* when that was last looked at, and what has come since */
    size_t frame_got;
    bool readable;                                    /* the socket may have something */
    enum { TURN_NONE, TURN_NEW, TURN_ROUND } turn_in; /* the list of those to serve that it is in */
    bool dirty;                                       /* in the list to flush */
    bool want_write;                                  /* the socket is full: wait for POLLOUT */
    bool eof;
    bool heard;   /* it has sent a message */
    bool unready; /* its requests wait at the modules */
    int broken;   /* errno that ends it; 0: fine */
};

/* A socket that clients connect to. */
struct door {
    struct usocks *all;
    uint32_t rank; /* whose it is; that one may have ended */
    struct listener sock;
    char *name; /* a link to it in the same folder, which does not name the rank; NULL: another door's */
    idt_watcher_t *w;
};

/* A connection that has not said whom it means. */
struct caller {
    struct usocks *all;
    uint32_t rank; /* whose socket it came to */
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    bool heard; /* something of a message came */
    TAILQ_ENTRY (caller) link;
};

struct usocks {
    idt_reactor_t *reactor;
    TAILQ_HEAD (, usock) list;
    uint32_t first;                           /* the rank that came first */
    char *path;                               /* where its socket is; NULL: none has come */
    bool several;                             /* others have come */
    struct door *main;                        /* of the first; NULL: there is no rank now */
    TAILQ_HEAD (caller_list, caller) callers; /* the oldest first */
    uint32_t ncallers;
    int reserve[LOCAL_RESERVE]; /* descriptors that are given up for clients when there are no others */
    int reserved;
    size_t clients; /* and callers */
    uint32_t most;
    struct msg_spare spare;
    uint64_t input; /* bytes reserved for long messages, and of output */
    uint64_t output;
    LIST_HEAD (, local_user) users; /* that have clients */
};

struct usock {
    struct usocks *all;
    TAILQ_ENTRY (usock) link;
    uint32_t rank;
    idt_reactor_t *reactor;
    struct router *router;
    struct log *log;
    struct authz admit; /* who is let in */
    const struct usock_ops *ops;
    void *arg;
    struct door *door;   /* its own, unless that is the process's; NULL: it has none */
    idt_watcher_t *tick; /* runs while a client is not read */
    zlistx_t *clients;
    struct client *dirty;
    TAILQ_HEAD (client_list, client) turns; /* the round of those to serve */
    struct client_list newcomers;           /* who was not in it */
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

/* By which patience with clients is judged: some milliseconds do not matter. */
static inline uint64_t usock_now_us (void)
{
    return clock_us (CLOCK_MONOTONIC_COARSE);
}

/* 'stream': with what came so far; NULL: a new one.  NULL with errno set (then both stay the caller's). */
struct client *client_create (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream);
void client_destroy (struct client *c);

/* Messages of a client, with the limits of a rank; NULL with errno ENOMEM. */
struct msg_stream *usock_stream (struct usock *l, int fd);

/* It has said something already: perhaps 'first' (stolen; may be NULL), and what its stream has. */
void client_begin (struct client *c, idt_msg_t *first);

/* Say that the rank that it named is (0), or is not, the one that serves it: at once, nobody may wake that broker. */
void client_answer (struct client *c, int errnum);

/* End it, in usock_flush (); 'why' (may be NULL) is logged. */
void client_break (struct client *c, int errnum, const char *why);

/* Let it bring some requests.  Returns whether it has more. */
bool client_serve (struct client *c);

/* Write what it gets. */
void client_flush (struct client *c);

/* Look whether it may go on.  Returns whether it is to be looked at again. */
bool client_tick (struct client *c, uint64_t now_us);

/* Forget what it holds of what all share. */
void client_let_go (struct client *c);

/* --- usock_listen.c -------------------------------------------------------------------------- */

/* Listen, with 'path' as usock_create () says.  Returns 0, or -1 with errno set and 'errp' filled. */
int usock_listen (struct usock *l, const char *path, struct attrs *attrs, idt_error_t *errp);

/* When it is not in the list any more. */
void usock_unlisten (struct usock *l);

/* NULL with errno EHOSTUNREACH: it is not here. */
struct usock *usocks_find (struct usocks *all, uint32_t rank);

/* Whose limits and log are for what concerns a rank, or all: its own, or those of the first that is here. */
struct usock *usocks_host (struct usocks *all, uint32_t rank);
struct log *usocks_log (struct usocks *all, uint32_t rank);

/* A client of this rank, where there is room for it.  As client_create (). */
struct client *usock_admit (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream);

/* Hear whom a connection to the socket of 'rank' means; where there are as many as may be, another one is closed for
 * it.  Returns 0, or -1 with errno set ('fd' stays the caller's).
 */
int caller_create (struct usocks *all, uint32_t rank, int fd, struct idt_cred cred);
void caller_destroy (struct caller *g);

/* Keep descriptors for clients, whatever else takes them all. */
void usocks_fill_reserve (struct usocks *all);

#endif /* BROKER_USOCK_PRIVATE_H */
