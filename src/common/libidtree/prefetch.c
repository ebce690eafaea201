/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* prefetch.c - ids that are prefetched before the program needs them
 *
 * id_block.h decides which ids may be given out, and when to request how many more; this file connects it with the
 * handle. It has no thread and no timer: a call sends the request for more before it returns. The response stays in the
 * socket, or the reactor reads it, until a call needs the ids.
 *
 * Ids increase from call to call, because
 * 1. the request for more requires ids above all that were received before, and the broker answers requests in their
 *    order (generate.c);
 * 2. a request for other ids cancels the request for more, and ids that were made another way, or may have been,
 *    discard the prefetched ones, which are below them.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libidtree/block/id_block.h"
#include "libidtree/private.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

struct prefetch {
    struct id_block block;
    idt_future_t *f;  /* the request for more; NULL: none */
    uint32_t *parent; /* points to 1, but to 0 in a forked child */
};

static uint64_t now (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

/* --- detecting a fork ----------------------------------------------------------------------- */

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

/* --- requesting more ------------------------------------------------------------------------ */

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

/* Request more ids if it is time. */
static void renew (idt_t *h, uint64_t now_us)
{
    struct prefetch *p = h->prefetch;
    uint32_t n = id_block_wants (&p->block, now_us);

    if (n == 0)
        return;
    int saved_errno = errno;
    attach_work (h);
    id_block_asked (&p->block, now_us, n);
    if (!(p->f = generate_ask (h, n)))
        fail (p, errno);
    errno = saved_errno;
}

/* The request for more has ended. The loss of a connection does not count as a failure, since the next connection may
 * work.
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

/* Wait for the request for more, if its ids will be enough for 'n'. Returns 1 if there may be more prefetched ids now,
 * 0 if not, or -1 with errno EINTR.
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

/* --- calls ---------------------------------------------------------------------------------- */

/* Request 'n' ids that are not prefetched, and directly after them more to prefetch. */
static int generate_now (idt_t *h, uint32_t n, fluid_t *ids)
{
    struct prefetch *p = h->prefetch;

    cancel (p);
    attach_work (h);
    idt_future_t *f = generate_ask (h, n);
    if (!f)
        return -1;
    renew (h, now ());
    int rc = idt_fluid_generate_get (f, n, ids);
    if (rc == 0)
        id_block_skip (&p->block);
    idt_future_destroy (f);
    return rc;
}

int prefetch_generate (idt_t *h, uint32_t n, fluid_t *ids)
{
    struct prefetch *p = h->prefetch;
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

void prefetch_pass (idt_t *h)
{
    if (!h->prefetch)
        return;
    cancel (h->prefetch);
    id_block_skip (&h->prefetch->block);
}

/* --- life ----------------------------------------------------------------------------------- */

void prefetch_fini (idt_t *h)
{
    struct prefetch *p = h->prefetch;

    if (!p)
        return;
    cancel (p);
    id_block_fini (&p->block);
    munmap (p->parent, sizeof (*p->parent));
    free (p);
    h->prefetch = NULL;
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
    if (h->prefetch && !*h->prefetch->parent)
        return errset (ENOTCONN);
    if (n > 0 && !(p = prefetch_create (n, max_age_ms)))
        return -1;
    prefetch_fini (h);
    if ((h->prefetch = p))
        renew (h, now ());
    return 0;
}
