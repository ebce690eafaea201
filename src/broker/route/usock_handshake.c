/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_handshake.c - which rank of a process a connection is for (protocol.md section 2)
 *
 * A caller is a connection that belongs to no rank yet.  The loop of the process serves it.  With its first message it
 * is passed to a rank with its descriptor: to the rank that it names, or to the rank whose socket it connected to.
 *
 * A socket has at most as many callers as its rank may have clients (local.max-clients), and all sockets together have
 * callers for at most half of the connections of the process.  So silent connections do not keep clients out.  At the
 * limit one caller is closed for each new one: guests before the instance owner, among these the ones that have sent
 * nothing first, and among these the oldest.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/route/usock_private.h"
#include "libutil/errprintf.h"

void caller_destroy (struct caller *g)
{
    struct usocks *all = g->all;

    TAILQ_REMOVE (&all->callers, g, link);
    all->ncallers--;
    idt_watcher_destroy (g->w);
    msg_stream_destroy (g->stream);
    if (g->fd >= 0)
        close (g->fd);
    free (g);
    all->clients--;
    if (all->reserved < LOCAL_RESERVE)
        usocks_fill_reserve (all);
}

static bool names_rank (const idt_msg_t *msg)
{
    return msg && idt_msg_type (msg) == IDT_MSGTYPE_CONTROL && idt_msg_control_type (msg) == MSG_CONTROL_RANK;
}

/* The response to a refused caller, or NULL if it gets none. */
static idt_msg_t *make_refusal (const idt_msg_t *msg, int errnum)
{
    idt_msg_t *refusal;

    if (!names_rank (msg))
        return msg && idt_msg_type (msg) == IDT_MSGTYPE_REQUEST ? idt_msg_respond (msg, errnum) : NULL;
    if ((refusal = idt_msg_create (IDT_MSGTYPE_CONTROL)))
        idt_msg_set_control (refusal, MSG_CONTROL_RANK, (uint32_t)errnum);
    return refusal;
}

static void refuse (struct caller *g, const idt_msg_t *msg, int errnum)
{
    idt_msg_t *refusal = make_refusal (msg, errnum);
    const char *why = strerror (errnum);

    if (refusal && msg_stream_put (g->stream, refusal) == 0)
        msg_stream_flush (g->stream);
    idt_msg_unref (refusal);
    if (errnum == EMFILE)
        why = "too many clients are connected (local.max-clients)";
    else if (errnum == EHOSTDOWN)
        why = "the rank of this socket has ended, and the client named no other";
    log_refusal (usocks_log (g->all, g->rank), LOG_REFUSED_CLIENT, "a client is refused: %s", why);
}

static struct client *make_client (struct caller *g, struct usock *l)
{
    struct client *c = usock_admit (l, g->fd, g->cred, g->stream);

    if (!c)
        return NULL;
    g->fd = -1;
    g->stream = NULL;
    return c;
}

/* Pass the caller to its rank.  'msg' (stolen) is its first message; NULL: that is a long one and not yet complete. */
static void introduce (struct caller *g, idt_msg_t *msg)
{
    bool names = names_rank (msg);
    struct usock *l = usocks_find (g->all, names ? (uint32_t)idt_msg_control_status (msg) : g->rank);
    struct client *c = l ? make_client (g, l) : NULL;

    if (!c)
        refuse (g, msg, l || names ? errno : EHOSTDOWN);
    else if (names) {
        c->heard = true;
        client_answer (c, 0);
        client_begin (c, NULL);
    }
    else {
        client_begin (c, msg);
        msg = NULL;
    }
    idt_msg_unref (msg);
}

/* Read the caller's first message.  Returns whether it stays a caller. */
static bool hear (struct caller *g)
{
    idt_msg_t *msg = NULL;
    idt_error_t err;
    bool eof = false;

    if (msg_stream_fill (g->stream, &eof) < 0)
        return errno == EAGAIN || errno == EINTR;
    g->heard = true;
    if ((msg = msg_stream_next (g->stream, &err)) || msg_stream_wants (g->stream) > 0)
        introduce (g, msg);
    else if (errno == EAGAIN)
        return !eof;
    else
        log_refusal (usocks_log (g->all, g->rank), LOG_REFUSED_CLIENT, "a client is disconnected: %s", err.text);
    return false;
}

static void caller_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct caller *g = arg;

    if (!hear (g))
        caller_destroy (g);
}

/* --- limits ------------------------------------------------------------------------------------ */

static uint32_t count_at (const struct usocks *all, uint32_t rank)
{
    const struct caller *g;
    uint32_t n = 0;

    TAILQ_FOREACH (g, &all->callers, link)
        n += g->rank == rank;
    return n;
}

/* The order in which callers are closed, lowest first: guests before the owner, silent ones before others. */
static int worth (const struct caller *g)
{
    return (g->cred.rolemask & IDT_ROLE_OWNER ? 2 : 0) + (g->heard ? 1 : 0);
}

/* The oldest caller of the lowest worth at the socket of 'rank'; TOPO_NONE: at any socket. */
static struct caller *find_oldest (const struct usocks *all, uint32_t rank)
{
    struct caller *g, *oldest = NULL;

    TAILQ_FOREACH (g, &all->callers, link)
        if ((rank == TOPO_NONE || g->rank == rank) && (!oldest || worth (g) < worth (oldest)))
            oldest = g;
    return oldest;
}

static void make_room (struct usocks *all, uint32_t rank)
{
    const struct usock *host = usocks_host (all, rank);
    bool many = all->ncallers >= host->max_clients && count_at (all, rank) >= host->max_clients;

    if (!many && all->ncallers < all->most / 2)
        return;
    struct caller *g = find_oldest (all, many ? rank : TOPO_NONE);
    if (hear (g)) /* it may have named its rank just now */
        log_refusal (host->log, LOG_REFUSED_CLIENT,
                     "a client is disconnected before it named a rank: %" PRIu32 " such clients are connected (%s)",
                     all->ncallers, many ? "local.max-clients" : "ulimit -n");
    caller_destroy (g);
}

int caller_create (struct usocks *all, uint32_t rank, int fd, struct idt_cred cred)
{
    struct caller *g = calloc (1, sizeof (*g));

    if (!g)
        return -1;
    *g = (struct caller){ .all = all, .rank = rank, .fd = fd, .cred = cred };
    if (!(g->stream = usock_stream (TAILQ_FIRST (&all->list), fd))
        || !(g->w = idt_fd_watcher_create (all->reactor, fd, IDT_POLLIN, caller_cb, g))) {
        msg_stream_destroy (g->stream);
        free (g);
        return errset (ENOMEM);
    }
    make_room (all, rank);
    TAILQ_INSERT_TAIL (&all->callers, g, link);
    all->ncallers++;
    all->clients++;
    idt_watcher_start (g->w);
    return 0;
}
