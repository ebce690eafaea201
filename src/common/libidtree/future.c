/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* future.c - results of requests, pending or available, and the matchtags by which responses find them
 *
 * A future is fulfilled ('ready') by a response or by an error. While 'tag' is not 0, more responses may arrive.
 * Responses that arrive before a streaming future is reset wait in 'later'. An error that follows them is in
 * 'later_errnum'.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/handle.h"
#include "libutil/errprintf.h"

#define MATCHTAG_TABLE_FIRST_SIZE 16

/* --- matchtags ------------------------------------------------------------------------------- */

/* The table uses open addressing with linear probing, and is at most half full. Tags are given in sequence. Fibonacci
 * hashing spreads their home slots evenly; without it adjacent home slots would form one long run, and each removal
 * must walk to the end of a run. There are no tombstones: a removal moves back the entries that the gap would separate
 * from their home slots.
 */
static size_t home_of (const struct matchtag_table *t, uint32_t tag)
{
    return (size_t)((tag * UINT64_C (0x9e3779b97f4a7c15)) >> 32) & (t->size - 1);
}

/* The slot of a tag, or the free slot where it would be stored. */
static size_t probe (const struct matchtag_table *t, uint32_t tag)
{
    size_t i = home_of (t, tag);

    while (t->slots[i].tag != 0 && t->slots[i].tag != tag)
        i = (i + 1) & (t->size - 1);
    return i;
}

static int grow (struct matchtag_table *t)
{
    struct matchtag_table old = *t;
    size_t size = old.size ? 2 * old.size : MATCHTAG_TABLE_FIRST_SIZE;
    struct matchtag_table_slot *slots = calloc (size, sizeof (slots[0]));

    if (!slots)
        return -1;
    t->slots = slots;
    t->size = size;
    for (size_t i = 0; i < old.size; i++) {
        if (old.slots[i].tag != 0)
            t->slots[probe (t, old.slots[i].tag)] = old.slots[i];
    }
    free (old.slots);
    return 0;
}

uint32_t matchtag_table_add (struct matchtag_table *t, void *item)
{
    assert (item);
    if (t->count == MATCHTAG_TABLE_MAX) {
        errno = ENOBUFS;
        return 0;
    }
    if (2 * t->count >= t->size && grow (t) < 0)
        return 0;
    do
        t->last++;
    while (t->last == 0 || matchtag_table_find (t, t->last));
    t->slots[probe (t, t->last)] = (struct matchtag_table_slot){ .tag = t->last, .item = item };
    t->count++;
    return t->last;
}

void *matchtag_table_find (const struct matchtag_table *t, uint32_t tag)
{
    return t->size > 0 && tag != 0 ? t->slots[probe (t, tag)].item : NULL;
}

void matchtag_table_remove (struct matchtag_table *t, uint32_t tag)
{
    size_t mask = t->size - 1;
    size_t gap = probe (t, tag);

    assert (t->slots[gap].tag == tag);
    for (size_t i = (gap + 1) & mask; t->slots[i].tag != 0; i = (i + 1) & mask) {
        if (((i - home_of (t, t->slots[i].tag)) & mask) < ((i - gap) & mask))
            continue; /* the home slot of this entry comes after the gap */
        t->slots[gap] = t->slots[i];
        gap = i;
    }
    t->slots[gap] = (struct matchtag_table_slot){ 0 };
    t->count--;
}

void *matchtag_table_next (const struct matchtag_table *t, size_t *cursor)
{
    while (*cursor < t->size) {
        const struct matchtag_table_slot *slot = &t->slots[(*cursor)++];
        if (slot->tag != 0)
            return slot->item;
    }
    return NULL;
}

void matchtag_table_fini (struct matchtag_table *t)
{
    int saved_errno = errno;

    free (t->slots);
    *t = (struct matchtag_table){ 0 };
    errno = saved_errno;
}

idt_future_t *future_find (idt_t *h, const idt_msg_t *response)
{
    return matchtag_table_find (&h->tags, idt_msg_matchtag (response));
}

/* Stop expecting a response. */
static void retire (idt_future_t *f)
{
    if (f->tag == 0)
        return;
    matchtag_table_remove (&f->h->tags, f->tag);
    f->tag = 0;
    if (f->cb)
        handle_interest (f->h, -1);
}

/* --- the ready list ------------------------------------------------------------------------- */

static void list (idt_future_t *f)
{
    assert (!f->listed);
    TAILQ_INSERT_TAIL (&f->h->ready, f, link);
    f->h->ready_count++;
    f->listed = true;
    handle_wake (f->h);
}

static void unlist (idt_future_t *f)
{
    if (!f->listed)
        return;
    TAILQ_REMOVE (&f->h->ready, f, link);
    f->h->ready_count--;
    f->listed = false;
}

void future_run_ready (idt_t *h)
{
    /* Run only the callbacks of the futures that are ready at the start. If a callback makes another future ready, that
     * future waits for the next turn, so that this loop ends.
     */
    for (unsigned n = h->ready_count; n > 0 && h->ready_count > 0; n--) {
        idt_future_t *f = TAILQ_FIRST (&h->ready);
        unlist (f);
        f->cb (f, f->arg);
    }
}

/* The error number of a response, as an errno. A number that does not fit becomes EPROTO, never 0 or negative. */
static int response_errnum (const idt_msg_t *response)
{
    uint32_t errnum = idt_msg_errnum (response);

    return errnum <= INT_MAX ? (int)errnum : EPROTO;
}

/* --- fulfilment ----------------------------------------------------------------------------- */

static void clear_result (idt_future_t *f)
{
    idt_msg_unref (f->response);
    json_decref (f->json);
    f->response = NULL;
    f->json = NULL;
    f->errnum = 0;
    f->ready = false;
}

static void call_ended (idt_future_t *f)
{
    void (*ended) (idt_future_t * f) = f->ended;

    f->ended = NULL;
    if (ended)
        ended (f);
}

static void fulfill (idt_future_t *f, const idt_msg_t *response, int errnum)
{
    assert (!f->ready && (response || errnum != 0));
    f->response = response;
    f->errnum = errnum;
    f->ready = true;
    call_ended (f);
    if (f->timer)
        idt_watcher_stop (f->timer);
    if (f->cb)
        list (f);
}

void future_fail (idt_future_t *f, int errnum)
{
    if (f->ready)
        f->later_errnum = errnum;
    else
        fulfill (f, NULL, errnum);
}

void future_cancel (idt_future_t *f)
{
    retire (f);
    future_fail (f, ECANCELED);
}

void future_deliver (idt_future_t *f, const idt_msg_t *response)
{
    int errnum = response_errnum (response);

    if (!f->streaming || errnum != 0)
        retire (f);
    if (!f->ready)
        fulfill (f, idt_msg_ref (response), errnum);
    else if (f->later.count < HANDLE_MAX_INBOX && fifo_push (&f->later, response) == 0)
        idt_msg_ref (response);
    else {
        retire (f);
        f->later_errnum = ENOBUFS;
    }
}

void idt_future_reset (idt_future_t *f)
{
    const idt_msg_t *response;
    int errnum = f->later_errnum;
    bool more = f->later.count > 0 || errnum != 0;

    if (!f->ready || (!more && (f->tag == 0 || f->lost)))
        return;
    clear_result (f);
    unlist (f);
    if ((response = fifo_pop (&f->later)))
        fulfill (f, response, response_errnum (response));
    else if (errnum != 0) {
        f->later_errnum = 0;
        fulfill (f, NULL, errnum);
    }
    else if (f->timer) {
        idt_timer_watcher_reset (f->timer, f->timeout_ms, 0);
        idt_watcher_start (f->timer);
    }
}

/* --- waiting -------------------------------------------------------------------------------- */

int idt_future_wait (idt_future_t *f, double timeout_ms)
{
    if (!f->ready && f->cb)
        return errset (EINVAL);
    if (!f->ready && handle_wait (f->h, &f->ready, timeout_ms) < 0)
        return -1;
    return f->lost && !f->response ? errset (f->errnum) : 0;
}

static void timeout_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_future_t *f = arg;

    retire (f);
    future_fail (f, ETIMEDOUT);
}

int idt_future_then (idt_future_t *f, double timeout_ms, idt_future_f cb, void *arg)
{
    idt_reactor_t *r = idt_get_reactor (f->h);

    if (!r)
        return -1;
    if (f->cb || !cb)
        return errset (EINVAL);
    if (timeout_ms >= 0) {
        if (!(f->timer = idt_timer_watcher_create (r, timeout_ms, 0, timeout_cb, f)))
            return -1;
        if (!f->ready)
            idt_watcher_start (f->timer);
    }
    f->timeout_ms = timeout_ms;
    f->cb = cb;
    f->arg = arg;
    if (f->tag != 0)
        handle_interest (f->h, 1);
    if (f->ready)
        list (f);
    return 0;
}

/* --- results -------------------------------------------------------------------------------- */

bool idt_future_is_ready (const idt_future_t *f)
{
    return f->ready;
}

int idt_future_errnum (const idt_future_t *f)
{
    return f->errnum;
}

const char *idt_future_error (const idt_future_t *f)
{
    int saved_errno = errno; /* idt_msg_string () sets errno if a response has no text */
    const char *text = f->response ? idt_msg_string (f->response) : NULL;

    errno = saved_errno;
    if (!text && f->lost && f->h->lost == f->errnum)
        text = idt_lost_error (f->h);
    return text && *text ? text : strerror (f->errnum);
}

idt_t *idt_future_handle (const idt_future_t *f)
{
    return f->h;
}

/* --- life ----------------------------------------------------------------------------------- */

void idt_future_destroy (idt_future_t *f)
{
    if (!f)
        return;
    int saved_errno = errno;
    unlist (f);
    retire (f);
    call_ended (f);
    clear_result (f);
    msg_fifo_fini (&f->later);
    idt_watcher_destroy (f->timer);
    f->h->future_count--;
    freelist_put (&f->h->futures, f);
    errno = saved_errno;
}

idt_future_t *future_create (idt_t *h)
{
    idt_future_t *f = freelist_get (&h->futures);

    if (!f)
        return NULL;
    *f = (idt_future_t){ .h = h };
    h->future_count++;
    return f;
}
