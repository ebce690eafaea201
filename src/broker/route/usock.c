/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock.c - local clients: a UNIX socket server (protocol.md section 2)
 *
 * Clients that have sent something are served in turns.  The output for a client is collected and written once, before
 * the reactor sleeps.  Only reap () destroys a client, and never while messages of that client are being handled; other
 * functions only mark a client as broken.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/route/usock_private.h"
#include "libmsg/message.h"
#include "libutil/errprintf.h"

#define MIN_SIZE 4096 /* lowest value of attributes in bytes */
#define MAX_SIZE (1U << 31)
#define TURN_US 50     /* time for clients before the reactor handles other events */
#define ALONE_TURNS 16 /* turns that a client gets within TURN_US while no other client waits */
#define KEPT_FILES 256 /* descriptors of the process that clients may not use */
#define TICK_MS 5      /* between two checks of clients from which the broker does not read */

/* --- turns ------------------------------------------------------------------------------------- */

/* The client to serve next.  A client that was idle is served before the clients in the round, as in fq_codel. */
static struct client *next_turn (struct usock *l)
{
    struct client *c = TAILQ_FIRST (&l->newcomers);

    if (c)
        TAILQ_REMOVE (&l->newcomers, c, turn);
    else if ((c = TAILQ_FIRST (&l->turns)))
        TAILQ_REMOVE (&l->turns, c, turn);
    return c;
}

bool usock_pending (const struct usock *l)
{
    return !TAILQ_EMPTY (&l->newcomers) || !TAILQ_EMPTY (&l->turns);
}

/* Serve a client.  A client that was idle joins the round after its turn, even if it has sent nothing more.  So a
 * client that pauses between requests is not served more often than a client that keeps sending.  If no other client
 * waits, it does not join, because a turn without messages would only take time.
 */
static void serve (struct usock *l, struct client *c)
{
    bool was_new = c->turn_in == TURN_NEW;

    c->turn_in = TURN_NONE;
    if ((client_serve (c) || (was_new && usock_pending (l))) && c->turn_in == TURN_NONE) {
        TAILQ_INSERT_TAIL (&l->turns, c, turn);
        c->turn_in = TURN_ROUND;
    }
}

/* Exactly one client waits, and it is in the round. */
static bool is_alone (const struct usock *l)
{
    const struct client *c = TAILQ_FIRST (&l->turns);

    return TAILQ_EMPTY (&l->newcomers) && c && !TAILQ_NEXT (c, turn);
}

/* Give each waiting client one turn.  If only one client waits, it gets several turns, so that many of its requests are
 * answered with one write.
 */
void usock_turn (struct usock *l)
{
    int alone = 0;
    struct client *c, *last = TAILQ_LAST (&l->turns, client_list);
    uint64_t since_us = 0;

    while ((c = next_turn (l))) {
        serve (l, c);
        bool all_had = c == last || (!last && TAILQ_EMPTY (&l->newcomers));
        if ((all_had && (!is_alone (l) || ++alone == ALONE_TURNS)) || clock_is_over (&since_us, TURN_US))
            break;
    }
}

static void tick_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct usock *l = arg;
    uint64_t now_us = usock_now_us ();
    bool again = false;
    struct client *c;

    TAILQ_FOREACH (c, &l->clients, link)
        again = client_tick (c, now_us) || again;
    if (!again)
        idt_watcher_stop (w);
}

/* --- beginning and ending ----------------------------------------------------------------------- */

/* Whether rank 'l' accepts another client of this user.  Guests together get at most half of local.max-clients, and one
 * guest gets an eighth, so that the instance owner always finds room.
 */
static bool has_room (const struct usock *l, struct idt_cred cred)
{
    uint32_t others = 0, same = 0;
    const struct client *c;

    if (l->nclients >= l->max_clients)
        return false;
    if (cred.rolemask & IDT_ROLE_OWNER)
        return true;
    TAILQ_FOREACH (c, &l->clients, link) {
        others += !(c->cred.rolemask & IDT_ROLE_OWNER);
        same += c->cred.userid == cred.userid;
    }
    return others < (l->max_clients + 1) / 2 && same < (l->max_clients + 7) / 8;
}

struct client *usock_admit (struct usock *l, int fd, struct idt_cred cred, struct msg_stream *stream)
{
    struct client *c;

    if (!has_room (l, cred))
        return errset_null (EMFILE);
    if (!(c = client_create (l, fd, cred, stream)))
        return NULL;
    TAILQ_INSERT_TAIL (&l->clients, c, link);
    l->nclients++;
    l->all->clients++;
    idt_watcher_start (c->w);
    return c;
}

static void reap (struct usock *l, struct client *c)
{
    assert (l->nclients > 0 && l->all->clients >= l->nclients);
    TAILQ_REMOVE (&l->clients, c, link);
    l->nclients--;
    l->all->clients--;
    client_let_go (c);
    l->ops->gone (l->arg, &c->peer);
    router_peer_remove (l->router, &c->peer);
    client_destroy (c);
    usocks_fill_reserve (l->all);
}

/* When a client is removed, other clients may get output, so repeat until no client has output. */
void usock_flush (struct usock *l)
{
    while (l->dirty) {
        struct client *c = l->dirty;

        l->dirty = c->next_dirty;
        c->dirty = false;
        if (!c->broken)
            client_flush (c);
        if (c->broken && !c->dirty)
            reap (l, c);
    }
}

/* --- life -------------------------------------------------------------------------------------- */

static int get_limits (struct usock *l, struct attrs *attrs, idt_error_t *errp)
{
    double patience, frame_time;

    if (attr_size (attrs, "local.max-message", "64M", MIN_SIZE, MAX_SIZE, &l->max_message, errp) < 0
        || attr_size (attrs, "local.max-queue", "64M", MIN_SIZE, MAX_SIZE, &l->max_queue, errp) < 0
        || attr_size (attrs, "local.input-pool", "256M", MIN_SIZE, MAX_SIZE, &l->input_pool, errp) < 0
        || attr_size (attrs, "local.output-pool", "512M", MIN_SIZE, MAX_SIZE, &l->output_pool, errp) < 0
        || attr_u32 (attrs, "local.max-clients", "4096", 1, 1000000, &l->max_clients, errp) < 0
        || attr_u32 (attrs, "local.max-unanswered", "1024", 1, 1000000, &l->max_asks, errp) < 0
        || attr_seconds (attrs, "local.stall-timeout", "1s", 0.001, 3600, &patience, errp) < 0
        || attr_seconds (attrs, "local.frame-time", "10s", 0.001, 3600, &frame_time, errp) < 0)
        return -1;
    l->patience_us = patience * 1E6;
    l->frame_time_us = frame_time * 1E6;
    return 0;
}

/* The largest number of clients.  Clients may not use all descriptors: if a child connects over ipc and no descriptor
 * is left, ZeroMQ aborts the process.
 */
static uint32_t most_clients (void)
{
    struct rlimit files;

    if (getrlimit (RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= UINT32_MAX)
        return UINT32_MAX;
    return files.rlim_cur > 2 * KEPT_FILES ? files.rlim_cur - KEPT_FILES : files.rlim_cur / 2;
}

static void check_most (const struct usock *l)
{
    if (l->max_clients > l->all->most && TAILQ_EMPTY (&l->all->list))
        log_printf (l->log, LOG_NOTICE, "broker",
                    "%u clients may connect, not %u (local.max-clients): a process may open few files (ulimit -n)",
                    l->all->most, l->max_clients);
}

struct usocks *usocks_create (idt_reactor_t *r)
{
    struct usocks *all = calloc (1, sizeof (*all));

    if (!all)
        return NULL;
    all->reactor = r;
    all->spare.pool = msg_pool_create (); /* without a pool, messages come from malloc () */
    TAILQ_INIT (&all->list);
    TAILQ_INIT (&all->callers);
    LIST_INIT (&all->users);
    all->most = most_clients ();
    usocks_fill_reserve (all);
    return all;
}

void usocks_destroy (struct usocks *all)
{
    int saved_errno = errno;

    if (!all)
        return;
    while (all->reserved > 0)
        close (all->reserve[--all->reserved]);
    msg_spare_fini (&all->spare);
    free (all->path);
    free (all);
    errno = saved_errno;
}

struct usock *usock_create (struct usocks *all, idt_reactor_t *r, const char *path, uint32_t rank, struct attrs *attrs,
                            struct router *router, struct log *log, const struct usock_ops *ops, void *arg,
                            idt_error_t *errp)
{
    struct usock *l = calloc (1, sizeof (*l));

    if (!l)
        return NULL;
    *l = (struct usock){ .all = all, .rank = rank, .reactor = r, .router = router, .log = log, .ops = ops, .arg = arg };
    TAILQ_INIT (&l->clients);
    TAILQ_INIT (&l->newcomers);
    TAILQ_INIT (&l->turns);
    if (get_limits (l, attrs, errp) < 0 || authz_init (&l->admit, attrs, errp) < 0
        || usock_listen (l, path, attrs, errp) < 0)
        goto error;
    check_most (l);
    if (!(l->tick = idt_timer_watcher_create (r, TICK_MS, TICK_MS, tick_cb, l))) {
        errprintf (errp, "out of memory");
        goto error;
    }
    TAILQ_INSERT_TAIL (&all->list, l, link);
    return l;
error:
    usock_destroy (l);
    return NULL;
}

void usock_destroy (struct usock *l)
{
    int saved_errno = errno;
    struct client *c;

    if (!l)
        return;
    if (l->tick)
        TAILQ_REMOVE (&l->all->list, l, link);
    usock_unlisten (l); /* before the connections: a client whose connection ends must not find the socket again */
    while ((c = TAILQ_FIRST (&l->clients))) {
        client_break (c, ESHUTDOWN, NULL);
        c->next_dirty = NULL;
        client_flush (c); /* write the last responses, as far as the socket takes them */
        reap (l, c);
    }
    idt_watcher_destroy (l->tick);
    free (l);
    errno = saved_errno;
}

size_t usock_count (const struct usock *l)
{
    return l->nclients;
}

bool usock_unread (const struct usock *l)
{
    const struct client *c;
    int size;

    TAILQ_FOREACH (c, &l->clients, link)
        if (ioctl (c->fd, SIOCOUTQ, &size) == 0 && size > 0)
            return true;
    return false;
}
