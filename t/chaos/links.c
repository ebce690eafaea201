/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* links.c - the links between brokers
 *
 * A connection is two pipes. A pipe holds the bytes that were read at one end and not yet written at the other end. It
 * reads when it is empty, and writes when it is not empty. A pipe that is cut does neither. So bytes that are sent
 * meanwhile wait in the kernel and arrive late, as after a partition. When one end closes, the other end is closed as
 * soon as its pipe is empty.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "die.h"
#include "links.h"
#include "rng.h"

#define BUFFER_SIZE 65536
#define PAUSE_MS 20. /* pause of a slow link */

struct conn;

struct end {
    struct conn *conn;
    int fd;
    idt_watcher_t *w, *pause; /* 'pause' is a timer that is made when it is first needed */
    bool pausing;
    /* Bytes that were read at this end, and will be written at the other end. */
    size_t off, len;
    uint8_t buf[BUFFER_SIZE];
};

struct conn {
    struct link *link;
    struct end child, parent;
    LIST_ENTRY (conn) entry;
};

/* The link from one rank to one ancestor. */
struct link {
    struct links *links;
    uint32_t from, to;
    enum link_mode mode;
    uint32_t amount;
    int fd;
    idt_watcher_t *w;
    LIST_HEAD (, conn) conns;
};

struct links {
    idt_reactor_t *r;
    const char *rundir;
    struct rng rng;
    struct link *link;
    size_t n;
    uint64_t connections, corrupted, pauses;
};

/* --- connections ---------------------------------------------------------------------------------- */

static void close_conn (struct conn *c)
{
    LIST_REMOVE (c, entry);
    idt_watcher_destroy (c->child.w);
    idt_watcher_destroy (c->parent.w);
    idt_watcher_destroy (c->child.pause);
    idt_watcher_destroy (c->parent.pause);
    close (c->child.fd);
    close (c->parent.fd);
    free (c);
}

static bool is_cut (const struct end *from)
{
    enum link_mode mode = from->conn->link->mode;

    return mode <= LINK_CUT && (mode & (from == &from->conn->child ? LINK_CUT_UP : LINK_CUT_DOWN));
}

static struct end *other (struct end *e)
{
    return e == &e->conn->child ? &e->conn->parent : &e->conn->child;
}

/* Watch this end for the work that is possible: reading if its pipe is empty, writing if the other pipe is not empty.
 */
static void watch (struct end *e)
{
    struct end *o = other (e);
    int events = (e->len == 0 && !is_cut (e) && !e->pausing ? IDT_POLLIN : 0)
                 | (o->len > 0 && !is_cut (o) ? IDT_POLLOUT : 0);

    if (events) {
        idt_fd_watcher_set_events (e->w, events);
        idt_watcher_start (e->w);
    }
    else
        idt_watcher_stop (e->w);
}

static void watch_both (struct conn *c)
{
    watch (&c->child);
    watch (&c->parent);
}

static void pause_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct end *e = arg;

    e->pausing = false;
    watch_both (e->conn);
}

static void pause_if_slow (struct end *e)
{
    struct link *link = e->conn->link;

    if (link->mode != LINK_SLOW)
        return;
    if (!e->pause && !(e->pause = idt_timer_watcher_create (link->links->r, 0, 0, pause_cb, e)))
        die ("a slow link");
    e->pausing = true;
    link->links->pauses++;
    idt_timer_watcher_reset (e->pause, PAUSE_MS, 0);
    idt_watcher_start (e->pause);
}

static void corrupt (struct end *e)
{
    struct link *link = e->conn->link;
    struct rng *rng = &link->links->rng;

    if (link->mode != LINK_CORRUPT || rng_below (rng, link->amount) != 0)
        return;
    e->buf[rng_below (rng, e->len)] ^= 1U << rng_below (rng, 8);
    link->links->corrupted++;
}

/* Read at one end. Returns -1 if the connection has ended. */
static int read_end (struct end *e)
{
    const struct link *link = e->conn->link;
    size_t most = link->mode == LINK_SLOW && link->amount < sizeof (e->buf) ? link->amount : sizeof (e->buf);
    ssize_t n = recv (e->fd, e->buf, most, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    e->off = 0;
    e->len = n;
    corrupt (e);
    pause_if_slow (e);
    return 0;
}

static int write_end (struct end *e)
{
    struct end *o = other (e);
    ssize_t n = send (e->fd, o->buf + o->off, o->len, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    o->off += n;
    o->len -= n;
    return 0;
}

static void end_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct end *e = arg;
    struct conn *c = e->conn;

    if (((revents & IDT_POLLOUT) && other (e)->len > 0 && write_end (e) < 0)
        || ((revents & IDT_POLLIN) && e->len == 0 && !is_cut (e) && !e->pausing && read_end (e) < 0)) {
        close_conn (c);
        return;
    }
    watch_both (c);
}

static int connect_to (const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if ((size_t)snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", path) >= sizeof (addr.sun_path)) {
        errno = ENAMETOOLONG;
        die (path);
    }
    if (fd >= 0 && connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0) {
        close (fd);
        return -1;
    }
    return fd;
}

static void init_end (struct end *e, struct conn *c, int fd)
{
    e->conn = c;
    e->fd = fd;
    if (!(e->w = idt_fd_watcher_create (c->link->links->r, fd, IDT_POLLIN, end_cb, e)))
        die ("a link");
}

static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct link *link = arg;
    char path[256];
    int parent_fd = -1, fd = accept4 (link->fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    snprintf (path, sizeof (path), "%s/tbon-%u", link->links->rundir, link->to);
    if (link->mode == LINK_RESET || (parent_fd = connect_to (path)) < 0) {
        close (fd);
        return;
    }
    struct conn *c = calloc (1, sizeof (*c));
    if (!c)
        die ("a link");
    c->link = link;
    LIST_INSERT_HEAD (&link->conns, c, entry);
    link->links->connections++;
    init_end (&c->child, c, fd);
    init_end (&c->parent, c, parent_fd);
    watch_both (c);
}

/* --- change ---------------------------------------------------------------------------------------- */

static void set_link (struct link *link, enum link_mode mode, uint32_t amount)
{
    struct conn *c, *next;

    link->mode = mode;
    link->amount = amount;
    for (c = LIST_FIRST (&link->conns); c; c = next) {
        next = LIST_NEXT (c, entry);
        if (mode == LINK_RESET)
            close_conn (c);
        else
            watch_both (c);
    }
}

void links_set (struct links *l, uint32_t rank, enum link_mode mode, uint32_t amount)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->link[i].from == rank)
            set_link (&l->link[i], mode, amount);
}

uint64_t links_connections (const struct links *l)
{
    return l->connections;
}

uint64_t links_corrupted (const struct links *l)
{
    return l->corrupted;
}

uint64_t links_pauses (const struct links *l)
{
    return l->pauses;
}

/* --- life -------------------------------------------------------------------------------------------- */

static void listen_for (struct links *l, const char *dir, uint32_t from, uint32_t to)
{
    struct link *link = &l->link[l->n++];
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    link->links = l;
    link->from = from;
    link->to = to;
    LIST_INIT (&link->conns);
    link->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if ((size_t)snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/%u-%u", dir, from, to) >= sizeof (addr.sun_path))
        errno = ENAMETOOLONG;
    else if (link->fd >= 0 && bind (link->fd, (struct sockaddr *)&addr, sizeof (addr)) == 0
             && listen (link->fd, 64) == 0
             && (link->w = idt_fd_watcher_create (l->r, link->fd, IDT_POLLIN, accept_cb, link))) {
        idt_watcher_start (link->w);
        return;
    }
    die (dir);
}

struct links *links_create (idt_reactor_t *r, const char *dir, const char *rundir, uint32_t size, uint32_t fanout,
                            uint64_t seed)
{
    struct links *l = calloc (1, sizeof (*l));

    if (!l || !(l->link = calloc ((size_t)size * size, sizeof (l->link[0]))))
        die ("links");
    l->r = r;
    l->rundir = rundir;
    l->rng.state = seed;
    for (uint32_t from = 1; from < size; from++)
        for (uint32_t to = from; to > 0;)
            listen_for (l, dir, from, to = (to - 1) / fanout);
    return l;
}

void links_destroy (struct links *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->n; i++) {
        set_link (&l->link[i], LINK_RESET, 0);
        idt_watcher_destroy (l->link[i].w);
        close (l->link[i].fd);
    }
    free (l->link);
    free (l);
}
