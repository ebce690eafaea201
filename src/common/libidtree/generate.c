/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate.c - FLUIDs for a program: made from a shared page, prefetched, or requested by message (fluid.block)
 *
 * Ids increase from call to call, for three reasons:
 * 1. Each request requires ids above all ids that were received before, and the broker answers requests in their order.
 * 2. While asynchronous requests are unanswered, the page is not used.
 * 3. Prefetched ids are discarded when ids above them were made from the page or requested. A request for other ids
 *    also cancels the request that is to refill the prefetched ids.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libfluid/block.h"
#include "libidtree/handle.h"
#include "libidtree/id_block.h"
#include "libpage/page_client.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define PAGE_MOST FLUID_PER_MS /* most ids of one call; larger calls go to the broker, which shares ids fairly */
#define RETRY_US 1000000       /* microseconds to wait before the page is requested again */
#define PATIENCE_US 5000000    /* microseconds after which an unanswered request for the page is given up */

struct prefetch {
    struct id_block block;
    idt_future_t *f;  /* the request that refills the prefetched ids; NULL: none */
    uint32_t *parent; /* points to 1; the kernel changes it to 0 in a forked child */
};

/* --- messages -------------------------------------------------------------------------------- */

/* Write the ids of a valid response to 'ids'. Returns the last id. */
static fluid_t expand (const uint8_t *p, size_t size, fluid_t *ids)
{
    for (const uint8_t *end = p + size; p < end; p += BLOCK_RUN_SIZE) {
        struct id_run run = block_get_run (p);
        for (uint32_t i = 0; i < run.n; i++)
            *ids++ = run.first + i;
    }
    return ids[-1];
}

static void raise_last (idt_t *h, fluid_t last)
{
    if (last > h->ids.last)
        h->ids.last = last;
}

/* A request has ended. The ids of its response count even if the caller has not read them: ids that are requested from
 * now on must be above them. The broker alone does not ensure this, since another broker may serve the next request.
 */
static void request_ended (idt_future_t *f)
{
    const void *data;
    size_t size;

    assert (f->nids > 0 && (!f->ordered || f->h->ids.asked > 0));
    if (f->ordered)
        f->h->ids.asked--;
    if (!f->response || f->errnum != 0 || idt_msg_payload (f->response, &data, &size) < 0
        || !block_is_answer (data, size, f->nids, f->after))
        return;
    struct id_run run = block_get_run ((const uint8_t *)data + size - BLOCK_RUN_SIZE);
    raise_last (f->h, run.first + (run.n - 1));
}

/* Like idt_fluid_generate_async (), but does not discard the prefetched ids. */
static idt_future_t *ask (idt_t *h, uint32_t n)
{
    uint8_t request[BLOCK_REQUEST_SIZE];
    fluid_t last = h->ids.last;

    if (n == 0 || n > IDT_FLUID_MAX_COUNT)
        return errset_null (EINVAL);
    block_put_request (request, n, last);
    idt_future_t *f = idt_rpc_raw (h, "fluid.block", request, sizeof (request), IDT_NODEID_ANY, RPC_TYPED);
    if (f) {
        f->nids = n;
        f->after = last;
        f->ended = request_ended;
    }
    return f;
}

static void learned (idt_future_t *f)
{
    const char *value;
    json_t *o = NULL;

    if (f->response && f->errnum == 0 && idt_msg_unpack (f->response, &o, NULL, "{s:s}", "value", &value) == 0)
        connection_set_instance (f->h->connection, value);
    json_decref (o);
}

/* Request the instance's UUID if it is unknown, once for each connection. The broker knows it now: the broker made ids,
 * so it has joined an instance.
 */
static void learn (idt_t *h)
{
    if (!handle_may_follow (h) || *connection_instance (h->connection) != '\0'
        || (h->ids.learn && h->ids.learn->connection == h->connections))
        return;
    idt_future_destroy (h->ids.learn);
    if ((h->ids.learn = idt_rpc (h, "attr.get", "{\"name\":\"instance.uuid\"}", IDT_NODEID_ANY, 0)))
        h->ids.learn->ended = learned;
}

int idt_fluid_generate_get (idt_future_t *f, uint32_t n, fluid_t *ids)
{
    const void *data;
    size_t size;

    if (idt_rpc_get_raw (f, &data, &size) < 0)
        return -1;
    if (!block_is_answer (data, size, n, f->after))
        return errset (EPROTO);
    fluid_t last = n > 0 ? expand (data, size, ids) : 0;
    raise_last (f->h, last);
    learn (f->h);
    return 0;
}

/* --- the page -------------------------------------------------------------------------------- */

/* A client makes ids without a message from the page that its broker shares with it (idtree/page.h). The page is
 * requested together with the second request for ids, so that a program that needs only one id has no overhead. No call
 * waits for the page: the first call after it has arrived uses it. A page belongs to the broker of this connection, and
 * must belong to this instance. Without a page, or if the page has no ids left, ids are requested by message.
 */
static void page_drop (struct id_source *s)
{
    idt_page_close (s->page);
    s->page = NULL;
    if (s->page_fd >= 0)
        close (s->page_fd);
    s->page_fd = -1;
}

/* Use the page if it has arrived. */
static void page_take (idt_t *h, uint64_t now_us)
{
    idt_page_t *page = page_answer (h->ids.page_fd);

    if (!page && errno == EAGAIN)
        return;
    h->ids.page_fd = -1;
    h->ids.page_wait_us = now_us + RETRY_US;
    if (page && connection_is_of (h->connection, idt_page_instance (page)))
        h->ids.page = page;
    else
        idt_page_close (page);
}

/* Called when ids are requested by message: try to get the broker's page, so that later ids need no message. Does not
 * block; keeps errno.
 */
static void page_ask (idt_t *h)
{
    struct id_source *s = &h->ids;
    int saved_errno = errno;

    if ((h->flags & IDT_O_NOSHM) || h->lost)
        return;
    if (s->page_connection != h->connections) { /* an earlier connection may have been to another broker */
        page_drop (s);
        s->page_connection = h->connections;
        s->page_requests = 0;
        s->page_wait_us = 0;
    }
    if (!s->page && ++s->page_requests > 1) {
        uint64_t now_us = clock_us (CLOCK_MONOTONIC);

        if (s->page_fd >= 0)
            page_take (h, now_us);
        else if (now_us >= s->page_wait_us) {
            s->page_fd = page_call (idt_get_uri (h));
            s->page_wait_us = now_us + (s->page_fd < 0 ? RETRY_US : PATIENCE_US);
        }
        if (s->page_fd >= 0 && now_us >= s->page_wait_us)
            page_drop (s);
    }
    errno = saved_errno;
}

/* Make 'n' ids of the page in 'ids', without a message. Returns whether that was possible; if it was not, the content
 * of 'ids' is undefined. The page is not used while asynchronous requests are unanswered. The ids of those requests do
 * not exist yet and must be below the ids of this call, so this call must become a request, too.
 */
static bool page_generate (idt_t *h, uint32_t n, fluid_t *ids)
{
    struct id_source *s = &h->ids;

    if (!s->page || s->asked > 0 || n == 0 || n > PAGE_MOST || s->page_connection != h->connections)
        return false;
    int saved_errno = errno, got = idt_page_generate (s->page, s->last, n, ids);
    if (got < 0 && errno == ESTALE) {
        page_drop (s); /* the broker's module may have been reloaded: request another page */
        s->page_wait_us = 0;
    }
    if (got > 0)
        s->last = ids[got - 1];
    errno = saved_errno;
    return got == (int)n;
}

/* --- prefetching ----------------------------------------------------------------------------- */

/* id_block.h decides which ids may be given out, when to request more, and how many. There is no thread and no timer: a
 * call sends the request for more ids before it returns. The response stays in the socket until a call needs its ids,
 * unless the reactor reads it earlier.
 */
static uint64_t now (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

/* A word that the kernel sets to 0 in a forked child. NULL with errno ENOTSUP or ENOMEM. */
static uint32_t *parent_create (void)
{
    uint32_t *word = mmap (NULL, sizeof (*word), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (word == MAP_FAILED)
        return NULL;
    if (madvise (word, sizeof (*word), MADV_WIPEONFORK) < 0) {
        munmap (word, sizeof (*word));
        return errset_null (ENOTSUP);
    }
    *word = 1;
    return word;
}

static void cancel (struct prefetch *p)
{
    idt_future_destroy (p->f);
    p->f = NULL;
    id_block_cancel (&p->block);
}

static void fail (struct prefetch *p, int errnum)
{
    id_block_failed (&p->block, now (), errnum == EPERM);
    cancel (p);
}

/* Request more ids to prefetch, if id_block.h says so. */
static void renew (idt_t *h, uint64_t now_us)
{
    struct prefetch *p = h->ids.prefetch;
    uint32_t n = id_block_wants (&p->block, now_us);

    if (n == 0)
        return;
    int saved_errno = errno;
    page_ask (h);
    id_block_asked (&p->block, now_us, n);
    if (!(p->f = ask (h, n)))
        fail (p, errno);
    errno = saved_errno;
}

/* The request for more ids to prefetch has ended: take its result. The loss of a connection does not count as a
 * failure, since the next connection may work.
 */
static void receive (struct prefetch *p)
{
    if (p->f->lost)
        cancel (p);
    else if (idt_fluid_generate_get (p->f, p->block.asked, id_block_place (&p->block)) == 0) {
        id_block_got (&p->block);
        cancel (p);
    }
    else
        fail (p, errno);
}

/* If a request for more ids is in progress, and will bring enough ids for a call for 'n', wait for it. Returns 1 if
 * there may be more prefetched ids now, 0 if not, or -1 with errno EINTR.
 */
static int wait_for (struct prefetch *p, uint32_t n)
{
    uint64_t now_us = now ();

    if (!id_block_will_do (&p->block, now_us, n))
        return 0;
    int rc = idt_future_wait (p->f, (double)(id_block_until_us (&p->block) - now_us) * 1e-3);
    if (p->f->ready)
        receive (p);
    else if (rc < 0 && errno == EINTR)
        return -1;
    else
        fail (p, ETIMEDOUT);
    return 1;
}

/* Request 'n' ids by message, and directly after that more ids to prefetch. */
static int generate_now (idt_t *h, uint32_t n, fluid_t *ids)
{
    struct prefetch *p = h->ids.prefetch;

    cancel (p);
    page_ask (h);
    idt_future_t *f = ask (h, n);
    if (!f)
        return -1;
    renew (h, now ());
    int rc = idt_fluid_generate_get (f, n, ids);
    if (rc == 0)
        id_block_skip (&p->block);
    idt_future_destroy (f);
    return rc;
}

/* Like idt_fluid_generate (), but takes prefetched ids. Only for a handle that prefetches. */
static int prefetch_generate (idt_t *h, uint32_t n, fluid_t *ids)
{
    struct prefetch *p = h->ids.prefetch;
    uint64_t now_us = now ();

    if (!*p->parent)
        return errset (ENOTCONN);
    if (n == 0 || n > IDT_FLUID_MAX_COUNT)
        return errset (EINVAL);
    while (!id_block_take (&p->block, now_us, n, ids)) {
        int rc = wait_for (p, n);
        if (rc <= 0)
            return rc < 0 ? -1 : generate_now (h, n, ids);
        now_us = now ();
    }
    renew (h, now_us);
    return 0;
}

/* Discard the prefetched ids and cancel the request that refills them, because ids above them were requested or made.
 */
static void prefetch_pass (idt_t *h)
{
    if (!h->ids.prefetch)
        return;
    cancel (h->ids.prefetch);
    id_block_skip (&h->ids.prefetch->block);
}

static void prefetch_fini (idt_t *h)
{
    struct prefetch *p = h->ids.prefetch;

    if (!p)
        return;
    cancel (p);
    id_block_fini (&p->block);
    munmap (p->parent, sizeof (*p->parent));
    free (p);
    h->ids.prefetch = NULL;
}

static struct prefetch *prefetch_create (uint32_t n, uint32_t max_age_ms)
{
    struct prefetch *p = calloc (1, sizeof (*p));

    if (p && (p->parent = parent_create ())) {
        if (id_block_init (&p->block, n, UINT64_C (1000) * max_age_ms, now ()) == 0)
            return p;
        munmap (p->parent, sizeof (*p->parent));
    }
    free (p);
    return NULL;
}

int idt_fluid_prefetch (idt_t *h, uint32_t n, uint32_t max_age_ms)
{
    struct prefetch *p = NULL;

    if (n > IDT_FLUID_MAX_COUNT || (n > 0 && max_age_ms == 0))
        return errset (EINVAL);
    if (handle_is_inline (h))
        return errset (EDEADLK);
    if (h->ids.prefetch && !*h->ids.prefetch->parent)
        return errset (ENOTCONN);
    if (n > 0 && !(p = prefetch_create (n, max_age_ms)))
        return -1;
    prefetch_fini (h);
    if ((h->ids.prefetch = p))
        renew (h, now ());
    return 0;
}

/* --- calls ----------------------------------------------------------------------------------- */

idt_future_t *idt_fluid_generate_async (idt_t *h, uint32_t n)
{
    prefetch_pass (h);
    idt_future_t *f = ask (h, n);
    if (f && !f->ready) {
        f->ordered = true;
        h->ids.asked++;
    }
    return f;
}

int idt_fluid_generate (idt_t *h, uint32_t n, fluid_t *ids)
{
    if (page_generate (h, n, ids)) {
        prefetch_pass (h);
        return 0;
    }
    if (h->ids.prefetch)
        return prefetch_generate (h, n, ids);
    page_ask (h);
    idt_future_t *f = ask (h, n);
    if (!f)
        return -1;
    int rc = idt_fluid_generate_get (f, n, ids);
    idt_future_destroy (f);
    return rc;
}

void generate_init (idt_t *h)
{
    h->ids.page_fd = -1;
}

void generate_fini (idt_t *h)
{
    idt_future_destroy (h->ids.learn);
    prefetch_fini (h);
    page_drop (&h->ids);
}
