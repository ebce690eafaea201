/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* prefetch.c - ids that are at hand before they are asked for
 *
 * block.h decides what may be given out, and how many to ask for when; here it meets the handle.  Nothing here has a
 * thread or a timer: a call sends the request for more on its way out, and its answer lies in the socket, or comes by
 * the reactor, until a call needs it.
 *
 * Ids increase from call to call, for
 * 1. the request for more is for ids above all that were answered before, and is answered in its turn (generate.c);
 * 2. once others are asked for, what is under way is cancelled; once they are given out, or may be, what is at hand is
 *    skipped: both are below.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libidtree/block/block.h"
#include "libidtree/private.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

struct prefetch {
    struct block block;
    idt_future_t *f;  /* of those that are under way; NULL: none are */
    uint32_t *parent; /* 1; in a child that was forked 0 */
};

static uint64_t now (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

/* --- whose they are ------------------------------------------------------------------------- */

/* A word that the kernel sets to 0 in a child.  NULL with errno ENOTSUP or ENOMEM. */
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

/* --- asking for more ------------------------------------------------------------------------ */

static void cancel (struct prefetch *p)
{
    idt_future_destroy (p->f);
    p->f = NULL;
    block_cancel (&p->block);
}

static void fail (struct prefetch *p, int errnum)
{
    block_failed (&p->block, now (), errnum == EPERM);
    cancel (p);
}

/* Ask for more where it is time to. */
static void renew (idt_t *h, uint64_t now_us)
{
    struct prefetch *p = h->prefetch;
    uint32_t n = block_wants (&p->block, now_us);

    if (n == 0)
        return;
    int saved_errno = errno;
    attach_work (h);
    block_asked (&p->block, now_us, n);
    if (!(p->f = generate_ask (h, n)))
        fail (p, errno);
    errno = saved_errno;
}

/* Those under way came, or will not.  A connection that was lost says nothing of the next one. */
static void receive (struct prefetch *p)
{
    if (p->f->lost)
        cancel (p);
    else if (idt_fluid_generate_get (p->f, p->block.asked, block_place (&p->block)) == 0) {
        block_got (&p->block);
        cancel (p);
    }
    else
        fail (p, errno);
}

/* Wait for those under way, if they will do for 'n'.  Returns 1 when what is at hand may have changed,
 * 0 when not, or -1 with errno EINTR.
 */
static int wait_for (struct prefetch *p, uint32_t n)
{
    uint64_t now_us = now ();

    if (!block_will_do (&p->block, now_us, n))
        return 0;
    int rc = idt_future_wait (p->f, (double)(block_until_us (&p->block) - now_us) * 1e-3);
    if (p->f->ready)
        receive (p);
    else if (rc < 0 && errno == EINTR)
        return -1;
    else
        fail (p, ETIMEDOUT);
    return 1;
}

/* --- calls ---------------------------------------------------------------------------------- */

/* Ask for 'n' that are not at hand, and behind them for more. */
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
        block_skip (&p->block);
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
    while (!block_take (&p->block, now_us, n, ids)) {
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
    block_skip (&h->prefetch->block);
}

/* --- life ----------------------------------------------------------------------------------- */

void prefetch_fini (idt_t *h)
{
    struct prefetch *p = h->prefetch;

    if (!p)
        return;
    cancel (p);
    block_fini (&p->block);
    munmap (p->parent, sizeof (*p->parent));
    free (p);
    h->prefetch = NULL;
}

static struct prefetch *prefetch_create (uint32_t n, uint32_t max_age_ms)
{
    struct prefetch *p = calloc (1, sizeof (*p));

    if (p && (p->parent = parent_create ())) {
        if (block_init (&p->block, n, UINT64_C (1000) * max_age_ms, now ()) == 0)
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
