/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher_orders.c - messages between the launcher of idtree and a process with several brokers */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "broker/launcher_orders.h"
#include "libpmi/pmi_wire.h"
#include "libutil/errprintf.h"

#define OUTPUT_SIZE 4096 /* bytes that are sent with one call */
#define LINE_SIZE 96     /* longest line that is sent */

/* Changes of a rank that are not sent yet. If a rank came up and then stopped, both are reported, in this order. If a
 * rank stopped and continued, both are reported, too. Otherwise a program that waits for the first of the two would
 * wait forever.
 */
struct news {
    enum rank_state life;   /* up or down; RANK_UNTOLD: already reported */
    enum rank_state before; /* stopped or going, the state before 'pause'; RANK_UNTOLD: there was none */
    enum rank_state pause;  /* stopped or going; RANK_UNTOLD: already reported */
    int status;
    bool queued;
    TAILQ_ENTRY (news) link;
};

struct launcher_orders {
    const struct boot *boot;
    int fd;
    order_f cb;
    void *arg;
    idt_watcher_t *r;
    idt_watcher_t *w;
    struct pmi_lines lines;
    struct news *news; /* one for each broker, by its index */
    TAILQ_HEAD (, news) queue;
    char out[OUTPUT_SIZE]; /* output of which a part is sent */
    size_t begin, end;
};

static const char *const orders[] = {
    [ORDER_RUN] = "run", [ORDER_KILL] = "kill", [ORDER_STOP] = "stop", [ORDER_CONT] = "cont", [ORDER_END] = "end"
};
static const char *const states[] = {
    [RANK_UP] = "up", [RANK_STOPPED] = "stopped", [RANK_GOING] = "going", [RANK_DOWN] = "down"
};

/* The launcher has closed the connection. The process continues until the program that started it ends it. */
static void give_up (struct launcher_orders *o)
{
    idt_watcher_stop (o->r);
    idt_watcher_stop (o->w);
}

/* --- out ------------------------------------------------------------------------------------------ */

static void add_line (struct launcher_orders *o, const struct news *n, enum rank_state state)
{
    if (state != RANK_UNTOLD)
        o->end += snprintf (o->out + o->end, LINE_SIZE, "cmd=idtree_rank rank=%u state=%s status=%d\n",
                            boot_rank (o->boot, n - o->news), states[state], n->status);
}

static void fill (struct launcher_orders *o)
{
    struct news *n;

    o->begin = o->end = 0;
    while (o->end + 3 * LINE_SIZE <= sizeof (o->out) && (n = TAILQ_FIRST (&o->queue))) {
        TAILQ_REMOVE (&o->queue, n, link);
        add_line (o, n, n->life);
        add_line (o, n, n->before);
        add_line (o, n, n->pause);
        *n = (struct news){ .queued = false };
    }
    assert (o->end <= sizeof (o->out));
}

static void write_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct launcher_orders *o = arg;
    ssize_t n;

    if (o->begin == o->end)
        fill (o);
    if (o->begin == o->end) {
        idt_watcher_stop (o->w);
        return;
    }
    n = send (o->fd, o->out + o->begin, o->end - o->begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        o->begin += n;
    else if (errno != EAGAIN && errno != EINTR)
        give_up (o);
}

void launcher_orders_tell (struct launcher_orders *o, uint32_t i, enum rank_state state, int status)
{
    struct news *n = &o->news[i];

    assert (i < o->boot->count && state != RANK_UNTOLD);
    if (!n->queued)
        TAILQ_INSERT_TAIL (&o->queue, n, link);
    n->queued = true;
    if (state == RANK_STOPPED || state == RANK_GOING) {
        if (n->pause != state)
            n->before = n->pause;
        n->pause = state;
    }
    else
        n->life = state;
    if (state == RANK_DOWN)
        n->before = n->pause = RANK_UNTOLD;
    n->status = status;
    idt_watcher_start (o->w);
}

/* --- in ------------------------------------------------------------------------------------------- */

static void take_line (struct launcher_orders *o, const char *line)
{
    char name[16];
    int rank, signum = 0;

    if (!pmi_is (line, "idtree_order") || pmi_word_int (line, "rank", &rank) < 0
        || pmi_word (line, "order", name, sizeof (name)) < 0)
        return;
    pmi_word_int (line, "signal", &signum);
    for (size_t i = 0; i < sizeof (orders) / sizeof (orders[0]); i++)
        if (strcmp (orders[i], name) == 0)
            o->cb (o->arg, rank, i, signum);
}

static void read_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct launcher_orders *o = arg;
    char buf[PMI_LINE_MAX];
    ssize_t n = recv (o->fd, buf, sizeof (buf), MSG_DONTWAIT);
    const char *data = buf, *line;
    size_t size = n > 0 ? n : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    while (n > 0 && (line = pmi_lines_add (&o->lines, &data, &size)))
        take_line (o, line);
    if (n <= 0 || errno != EAGAIN)
        give_up (o);
}

/* --- life ----------------------------------------------------------------------------------------- */

struct launcher_orders *launcher_orders_create (idt_reactor_t *r, const struct boot *boot, order_f cb, void *arg,
                                                idt_error_t *errp)
{
    int fd = boot_fd (boot);
    struct launcher_orders *o = calloc (1, sizeof (*o));

    if (!o || !(o->news = calloc (boot->count, sizeof (o->news[0])))
        || !(o->r = idt_fd_watcher_create (r, fd, IDT_POLLIN, read_cb, o))
        || !(o->w = idt_fd_watcher_create (r, fd, IDT_POLLOUT, write_cb, o))) {
        errprintf (errp, "out of memory");
        launcher_orders_destroy (o);
        return NULL;
    }
    o->boot = boot;
    o->fd = fd;
    o->cb = cb;
    o->arg = arg;
    TAILQ_INIT (&o->queue);
    o->end = snprintf (o->out, sizeof (o->out), "cmd=idtree_ready\n");
    idt_watcher_start (o->r);
    idt_watcher_start (o->w);
    return o;
}

void launcher_orders_destroy (struct launcher_orders *o)
{
    if (!o)
        return;
    idt_watcher_destroy (o->r);
    idt_watcher_destroy (o->w);
    free (o->news);
    free (o);
}
