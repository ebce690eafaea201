/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attach.c - a client that makes ids without a message, from the page that its broker shares with it (idtree/page.h)
 *
 * The page is requested together with the second request for ids, so that a program that needs one id has no overhead.
 * No call waits for it: it is used from the moment it arrives. It belongs to the broker of this connection and to this
 * instance. Without a page, or if the page has no ids, ids are requested by message.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libidtree/private.h"
#include "libpage/page_client.h"
#include "libutil/clock.h"

#define MOST FLUID_PER_MS   /* ids of one call; larger calls go to the broker, which shares ids fairly */
#define RETRY_US 1000000    /* microseconds to wait after a refusal */
#define PATIENCE_US 5000000 /* microseconds without an answer, after which the page is requested again */

struct attach {
    idt_page_t *page;    /* NULL: no page */
    int fd;              /* of the request in progress; -1: none */
    unsigned connection; /* number of the connection that the page belongs to */
    unsigned requests;   /* for ids, over that connection */
    uint64_t wait_us;    /* CLOCK_MONOTONIC: do not request before; end of a request in progress */
};

static void drop (struct attach *a)
{
    idt_page_close (a->page);
    a->page = NULL;
    if (a->fd >= 0)
        close (a->fd);
    a->fd = -1;
}

void attach_fini (idt_t *h)
{
    if (!h->attach)
        return;
    drop (h->attach);
    free (h->attach);
    h->attach = NULL;
}

/* Drop what belongs to an earlier connection, which may have been to another broker. */
static void renew (struct attach *a, unsigned connection)
{
    if (a->connection == connection)
        return;
    drop (a);
    *a = (struct attach){ .fd = -1, .connection = connection };
}

static void ask (idt_t *h, struct attach *a, uint64_t now_us)
{
    a->fd = page_call (idt_get_uri (h));
    a->wait_us = now_us + (a->fd < 0 ? RETRY_US : PATIENCE_US);
}

/* Use the page if it has arrived. */
static void take (idt_t *h, struct attach *a, uint64_t now_us)
{
    idt_page_t *page = page_answer (a->fd);

    if (!page && errno == EAGAIN)
        return;
    a->fd = -1;
    a->wait_us = now_us + RETRY_US;
    if (page && connection_is_of (h, idt_page_instance (page)))
        a->page = page;
    else
        idt_page_close (page);
}

static void go_on (idt_t *h, struct attach *a)
{
    uint64_t now_us = clock_us (CLOCK_MONOTONIC);

    if (a->fd >= 0)
        take (h, a, now_us);
    else if (now_us >= a->wait_us)
        ask (h, a, now_us);
    if (a->fd >= 0 && now_us >= a->wait_us)
        drop (a);
}

void attach_work (idt_t *h)
{
    int saved_errno = errno;

    if (!connection_may_attach (h) || h->lost)
        return;
    if (!h->attach && (h->attach = calloc (1, sizeof (*h->attach))))
        h->attach->fd = -1;
    if (h->attach) {
        renew (h->attach, h->connections);
        if (!h->attach->page && ++h->attach->requests > 1)
            go_on (h, h->attach);
    }
    errno = saved_errno;
}

/* While asynchronous requests are unanswered, their ids must be below the ids of this call but do not exist yet. So the
 * page is not used then, and this call becomes a request, too.
 */
bool attach_generate (idt_t *h, uint32_t n, fluid_t *ids)
{
    struct attach *a = h->attach;
    int got = -1;

    if (h->fluids_asked > 0)
        return false;
    if (!a || !a->page || n == 0 || n > MOST || a->connection != h->connections)
        return false;
    int saved_errno = errno;
    if ((got = idt_page_generate (a->page, h->last_fluid, n, ids)) < 0 && errno == ESTALE) {
        drop (a); /* the module may have been reloaded: request another page */
        a->wait_us = 0;
    }
    if (got > 0)
        h->last_fluid = ids[got - 1];
    errno = saved_errno;
    return got == (int)n;
}
