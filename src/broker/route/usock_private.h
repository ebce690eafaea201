/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_private.h - what the files of local clients share
 *
 *   usock.c         clients of a rank: their limits, the order in which they are served, their removal
 *   usock_client.c  one client: its input, its output, and when the broker does not read from it
 *   usock_listen.c  sockets of the process, accepting connections, finding the rank of a connection
 */
#ifndef BROKER_USOCK_PRIVATE_H
#define BROKER_USOCK_PRIVATE_H

#include <sys/queue.h>

#include "broker/route/usock.h"
#include "libmsg/stream.h"
#include "libutil/queue/budget.h"
#include "libutil/clock.h"

#define LOCAL_RESERVE 32 /* descriptors of the process kept for clients */

/* How much one guest uses: the sum over all of the guest's connections. */
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
    struct local_user *user; /* NULL: the client is the instance owner's */
    struct client *next_dirty;
    TAILQ_ENTRY (client) link, turn;
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    int events; /* events that 'w' waits for */
    /* The broker does not read from the client while a budget waits, while a service has no room for 'held', or while
     * the input pool has no space for the client's long message ('stalled').
     */
    struct budget asks;
    struct budget out;
    idt_msg_t *first; /* message that arrived before the client joined this rank */
    idt_msg_t *held;
    uint64_t held_us; /* time of the first check since 'held' was set; 0: not checked yet */
    bool stalled;
    size_t reserved;                                  /* bytes reserved in the input pool for a long message */
    uint64_t frame_us;                                /* start of the current speed check */
    size_t frame_got;                                 /* bytes read since 'frame_us' */
    bool readable;                                    /* the socket may have input */
    enum { TURN_NONE, TURN_NEW, TURN_ROUND } turn_in; /* list of clients to serve in which this client is */
    bool dirty;                                       /* the client is in the list of clients to flush */
    bool want_write;                                  /* the socket is full: wait for POLLOUT */
    bool eof;
    bool heard;   /* the client has sent a message */
    bool unready; /* the client takes no responses now, so its requests to modules wait */
    int broken;   /* errno with which the client is disconnected; 0: connected */
};

struct usocks {
    idt_reactor_t *reactor;
    TAILQ_HEAD (, usock) list;
    uint32_t first;                           /* first rank of the process */
    char *path;                               /* path of the first rank's socket; NULL until the first rank listens */
    bool several;                             /* the process has also had a rank other than 'first' */
    struct door *main;                        /* the first rank's socket; NULL while the process has no rank */
    TAILQ_HEAD (caller_list, caller) callers; /* oldest first */
    uint32_t ncallers;
    int reserve[LOCAL_RESERVE]; /* descriptors to close when a client needs one and no other is free */
    int reserved;
    size_t clients; /* clients of all ranks, and callers */
    uint32_t most;  /* limit of 'clients' */
    struct msg_spare spare;
    uint64_t input;                 /* bytes reserved for long messages */
    uint64_t output;                /* bytes of queued output */
    LIST_HEAD (, local_user) users; /* guests that have clients */
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
    struct door *door;   /* the rank's own socket; NULL: the rank has none, or its socket is 'all->main' */
    idt_watcher_t *tick; /* runs while the broker does not read from some client */
    struct client *dirty;
    TAILQ_HEAD (client_list, client) clients;
    uint32_t nclients;
    struct client_list turns;     /* clients to serve, in turns */
    struct client_list newcomers; /* clients to serve that were not in 'turns' when they sent something */
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

/* The clock for timeouts of clients.  The clock is coarse, because an error of some milliseconds is harmless. */
static inline uint64_t usock_now_us (void)
{
    return clock_us (CLOCK_MONOTONIC_COARSE);
}

/* Create a client.  'stream' contains the input so far; NULL: make a new stream.  Returns NULL with errno set; the
 * caller then still owns 'fd' and 'stream'.
 */
struct client *client_create (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream);
void client_destroy (struct client *c);

/* A message stream for a client with the limits of rank 'l'.  Returns NULL with errno ENOMEM. */
struct msg_stream *usock_stream (struct usock *l, int fd);

/* Start to serve a client that has sent something.  'first' (stolen, may be NULL) is its first message; its stream may
 * contain more.
 */
void client_begin (struct client *c, idt_msg_t *first);

/* Make the message that tells a client the status of the rank that it named: 0, or an errno.  NULL without memory. */
idt_msg_t *usock_rank_answer (int errnum);

/* Send a client the status of the rank that it named: 0, or an errno.  The message is written immediately, because this
 * broker's reactor may not run now.
 */
void client_answer (struct client *c, int errnum);

/* Mark a client as broken; usock_flush () removes it.  'why' is logged unless it is NULL. */
void client_break (struct client *c, int errnum, const char *why);

/* Handle some messages of a client.  Returns whether the client has more. */
bool client_serve (struct client *c);

/* Write the client's output, as much as the socket takes. */
void client_flush (struct client *c);

/* Check whether the broker may read from the client again.  Returns whether to check again later. */
bool client_tick (struct client *c, uint64_t now_us);

/* Remove the client from shared lists, and return its part of shared pools. */
void client_let_go (struct client *c);

/* --- usock.c ------------------------------------------------------------------------------------- */

/* Make a connection a client of this rank.  At a limit of clients it returns NULL with errno EMFILE.  Arguments and
 * other errors are the same as for client_create ().
 */
struct client *usock_admit (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream);

/* --- usock_listen.c -------------------------------------------------------------------------- */

/* Listen at 'path', as usock_create () describes.  Returns 0, or -1 with errno set and 'errp' filled. */
int usock_listen (struct usock *l, const char *path, struct attrs *attrs, idt_error_t *errp);

/* Close the rank's own socket.  If no rank is left in the list of the process, close the first rank's socket and all
 * callers, too.  Rank 'l' must no longer be in that list.
 */
void usock_unlisten (struct usock *l);

/* Open the reserve of descriptors.  If all other descriptors are in use, a client gets one from the reserve. */
void usocks_fill_reserve (struct usocks *all);

#endif /* BROKER_USOCK_PRIVATE_H */
