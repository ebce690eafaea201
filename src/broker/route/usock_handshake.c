/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_handshake.c - which rank of a process a connection means (protocol.md section 2)
 *
 * A caller is no rank's client yet, and is served by the loop of the process.  With its first message it goes over to a
 * rank, descriptor and all: to the one that it names, else to the one whose socket it is.
 *
 * A socket has at most as many callers as its rank may have clients (local.max-clients), and all have at most half of
 * the connections of the process: those who say nothing keep nobody out.  For one more the oldest is closed that never
 * said anything, else the oldest, and others before the owner.
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

/* What it hears in place of an answer; NULL: nothing. */
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
        why = "too many are connected (local.max-clients)";
    else if (errnum == EHOSTDOWN)
        why = "the rank of this socket has ended, and it named no other";
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

/* 'msg' (stolen) came first; NULL: a long one, that has not come yet. */
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

/* Returns whether it is to stay a caller. */
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

/* --- how many ---------------------------------------------------------------------------------- */

static uint32_t count_at (const struct usocks *all, uint32_t rank)
{
    const struct caller *g;
    uint32_t n = 0;

    TAILQ_FOREACH (g, &all->callers, link)
        n += g->rank == rank;
    return n;
}

/* Who goes first: others than the owner, and of these who said nothing. */
static int worth (const struct caller *g)
{
    return (g->cred.rolemask & IDT_ROLE_OWNER ? 2 : 0) + (g->heard ? 1 : 0);
}

/* The oldest of those that are worth least, at the socket of 'rank'; TOPO_NONE: at all. */
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
    if (hear (g)) /* perhaps it has just said it */
        log_refusal (host->log, LOG_REFUSED_CLIENT,
                     "a client is disconnected that has not said whom it means: %" PRIu32 " have not (%s)",
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
