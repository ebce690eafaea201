/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_private.h - what the files of local clients share
 *
 *   usock.c         listen, accept, who has a turn, the end
 *   usock_client.c  one client: what it sends and gets, when it is not read
 */
#ifndef BROKER_USOCK_PRIVATE_H
#define BROKER_USOCK_PRIVATE_H

#include <sys/queue.h>

#include <czmq.h>

#include "broker/route/usock.h"
#include "libmsg/stream.h"
#include "libutil/account.h"
#include "libutil/clock.h"

#define LOCAL_RESERVE 32 /* descriptors kept for clients */

struct client {
    struct peer peer;
    struct usock *local;
    struct client *next_dirty;
    TAILQ_ENTRY (client) turn;
    int fd;
    struct idt_cred cred;
    struct msg_stream *stream;
    idt_watcher_t *w;
    int events; /* that 'w' waits for */
    /* Why it is not read: these wait; or a service has no room for 'held'; or the pool has none for its long message. */
    struct account asks;
    struct account out;
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
    bool unready; /* its requests wait at the modules */
    int broken;   /* errno that ends it; 0: fine */
};

struct usock {
    idt_reactor_t *reactor;
    struct router *router;
    struct log *log;
    const struct usock_ops *ops;
    void *arg;
    char *path;
    int fd;
    int reserve[LOCAL_RESERVE]; /* descriptors that are given up for clients when there are no others */
    int reserved;
    idt_watcher_t *w;
    idt_watcher_t *tick; /* runs while a client is not read */
    zlistx_t *clients;
    struct client *dirty;
    TAILQ_HEAD (client_list, client) turns; /* the round of those to serve */
    struct client_list newcomers;           /* who was not in it */
    struct msg_spare spare;
    uint64_t input; /* bytes reserved for long messages, and of output */
    uint64_t output;
    uint32_t owner;
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

/* NULL with errno set ('fd' stays the caller's). */
struct client *client_create (struct usock *l, int fd, struct idt_cred cred);
void client_destroy (struct client *c);

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

#endif /* BROKER_USOCK_PRIVATE_H */
