/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock.h - local clients: a UNIX socket server (protocol.md section 2)
 *
 * Each connection is a peer of the router.  SO_PEERCRED and SO_PEERGROUPS give the user and the groups of the
 * connecting process; authz_user () decides whether this user may connect.  While a client has too many unanswered
 * requests or too much unread output, the broker does not read from it.  A client is disconnected if it sends malformed
 * data, if it sends a long message too slowly, or if its output queue is full and it does not read.  Other clients are
 * not affected.
 *
 * Brokers of one process need not have a socket each: at the socket of one rank, a client may name another rank of the
 * process.  In a process that has had several ranks, a connection belongs to no rank until it has sent something.
 * Until then it does not count for the limits of any rank, and it is served even if no rank runs.
 */
#ifndef BROKER_USOCK_H
#define BROKER_USOCK_H

#include <sys/types.h>

#include <idtree/reactor.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"
#include "broker/route/router.h"

/* Which local users may connect, and in which role (doc/design/access.md).  Only authz_init () does I/O, to look up the
 * name of a group.
 */
struct authz {
    uid_t owner;
    bool guests;    /* access.allow-guest-user */
    bool root;      /* access.allow-root-owner */
    bool has_group; /* access.group */
    gid_t group;
};

/* Read the attributes.  The user of this process is the instance owner.  Returns 0, or -1 with errno set and 'errp'
 * filled.
 */
int authz_init (struct authz *a, struct attrs *attrs, idt_error_t *errp);

/* Store in '*cred' the user id and the roles of a process that has user 'uid' and the groups 'gid'.  Returns 0, or -1
 * with errno EPERM if this user may not connect ('*cred' stays untouched).
 */
int authz_user (const struct authz *a, uid_t uid, const gid_t *gid, size_t ngids, struct idt_cred *cred);

/* The permissions that the socket needs, and that the folder of the socket needs, so that the users of 'a' can connect.
 */
mode_t authz_socket_mode (const struct authz *a);
mode_t authz_folder_mode (const struct authz *a);

struct usock;
struct usocks;

struct usock_ops {
    /* A request, response or event from a client (steals the reference). */
    void (*message) (void *arg, struct peer *from, idt_msg_t *msg);
    void (*gone) (void *arg, struct peer *p); /* the client is removed; called before the router forgets it */
    void (*ready) (void *arg, struct peer *p, bool ready); /* takes responses now, or not; may be NULL */
    void (*woke) (void *arg);                              /* usock_turn () has work to do; may be NULL */
};

/* The state that the brokers of a process share: sockets, spare descriptors, and limits of the whole process.  'r' is
 * the reactor of the process, which runs even if a rank is stopped.  Returns NULL with errno ENOMEM.
 */
struct usocks *usocks_create (idt_reactor_t *r);
void usocks_destroy (struct usocks *all); /* after all brokers of the process; NULL is allowed */

/* Serve clients of 'rank': clients that connect to a socket at 'path', and clients that name the rank at another socket
 * of the process.  The first rank that the process ever had, and each rank of the attribute local.sockets, has a
 * socket; other ranks need no descriptor.  The socket of the first rank exists while the process has any rank.  A
 * socket at 'path' that no process serves is replaced; a socket that is served is an error.  Returns NULL with errno
 * and 'errp' set.
 */
struct usock *usock_create (struct usocks *all, idt_reactor_t *r, const char *path, uint32_t rank, struct attrs *attrs,
                            struct router *router, struct log *log, const struct usock_ops *ops, void *arg,
                            idt_error_t *errp);

/* Close all connections of the rank and its socket.  The socket of the first rank stays open while other ranks are
 * left.
 */
void usock_destroy (struct usock *l);

/* Write the URI for clients: local://PATH, or local://PATH?rank=RANK if the rank uses the first rank's socket.
 * Truncated to 'size' bytes.
 */
void usock_uri (const struct usock *l, char *buf, size_t size);

/* Serve clients that have sent something, in turns, for a limited time. */
void usock_turn (struct usock *l);
bool usock_pending (const struct usock *l); /* whether clients wait to be served */

/* Write queued output to clients.  Called before the reactor sleeps. */
void usock_flush (struct usock *l);

size_t usock_count (const struct usock *l); /* number of clients */

/* Whether a client has not yet read all that was written to it. */
bool usock_unread (const struct usock *l);

#endif /* BROKER_USOCK_H */
