/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox.c - messages from one thread to another
 *
 * Under the lock this holds: if the queue is not empty, or the mailbox is closed, the counter of the eventfd is above
 * 0. The counter is written when it is 0 and the first message arrives, or the mailbox is closed. The counter is read
 * when the reader pops from an empty queue, not when the reader takes the last message. Otherwise, if the reader is as
 * fast as its writer, both would need a system call for each message.
 *
 * In the same way, the counter of a bell is above 0 if a mailbox is in the bell's list. A mailbox with messages is in
 * the list, unless the reader is popping from it or has muted it. bell_next () removes a mailbox from the list. If
 * messages are left, mailbox_pop () appends it to the list again.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/queue/fifo.h"
#include "broker/module/mailbox.h"

/* An eventfd that a reader polls. */
struct flag {
    int fd;
    bool up;
};

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t came; /* for mailbox_wait () */
    struct fifo queue;
    size_t limit;
    bool closed;
    struct flag flag; /* fd -1: the mailbox uses a bell */
    void (*drop) (const idt_msg_t *msg);
    struct bell *bell; /* NULL: no bell, or muted */
    void *arg;
    bool rings; /* whether it is in the bell's list */
    TAILQ_ENTRY (mailbox) link;
};

struct bell {
    pthread_mutex_t lock;
    TAILQ_HEAD (, mailbox) ringing;
    struct flag flag;
};

/* The counter is 0 or 1, so neither the write nor the read can block. */
static void flag_raise (struct flag *f)
{
    if (!f->up)
        (void)!write (f->fd, &(uint64_t){ 1 }, sizeof (uint64_t));
    f->up = true;
}

static void flag_lower (struct flag *f)
{
    if (f->up)
        (void)!read (f->fd, &(uint64_t){ 0 }, sizeof (uint64_t));
    f->up = false;
}

/* --- bells ----------------------------------------------------------------------------------- */

static void ring (struct mailbox *mb)
{
    struct bell *b = mb->bell;

    if (!b)
        return;
    pthread_mutex_lock (&b->lock);
    flag_raise (&b->flag);
    if (!mb->rings)
        TAILQ_INSERT_TAIL (&b->ringing, mb, link);
    mb->rings = true;
    pthread_mutex_unlock (&b->lock);
}

static void stop_ringing (struct bell *b, struct mailbox *mb)
{
    TAILQ_REMOVE (&b->ringing, mb, link);
    mb->rings = false;
}

void *bell_next (struct bell *b)
{
    pthread_mutex_lock (&b->lock);
    struct mailbox *mb = TAILQ_FIRST (&b->ringing);
    if (mb)
        stop_ringing (b, mb);
    else
        flag_lower (&b->flag);
    assert (b->flag.up || TAILQ_EMPTY (&b->ringing));
    pthread_mutex_unlock (&b->lock);
    return mb ? mb->arg : NULL;
}

void mailbox_mute (struct mailbox *mb)
{
    pthread_mutex_lock (&mb->lock);
    struct bell *b = mb->bell;
    mb->bell = NULL;
    pthread_mutex_unlock (&mb->lock);
    if (!b)
        return;
    pthread_mutex_lock (&b->lock);
    if (mb->rings)
        stop_ringing (b, mb);
    pthread_mutex_unlock (&b->lock);
}

int bell_fd (const struct bell *b)
{
    return b->flag.fd;
}

struct bell *bell_create (void)
{
    struct bell *b = calloc (1, sizeof (*b));

    if (!b)
        return NULL;
    if ((b->flag.fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        int errnum = errno;
        free (b);
        return errset_null (errnum);
    }
    pthread_mutex_init (&b->lock, NULL);
    TAILQ_INIT (&b->ringing);
    return b;
}

void bell_destroy (struct bell *b)
{
    if (!b)
        return;
    int saved_errno = errno;
    assert (TAILQ_EMPTY (&b->ringing));
    pthread_mutex_destroy (&b->lock);
    close (b->flag.fd);
    free (b);
    errno = saved_errno;
}

/* --- mailboxes --------------------------------------------------------------------------------- */

/* Call this when the queue got its first message, or the mailbox was closed. The caller holds the lock. */
static void tell_reader (struct mailbox *mb)
{
    if (mb->flag.fd >= 0)
        flag_raise (&mb->flag);
    else
        ring (mb);
    pthread_cond_signal (&mb->came);
}

int mailbox_push_new (struct mailbox *mb, const idt_msg_t *msg, bool limited)
{
    int errnum = 0;

    pthread_mutex_lock (&mb->lock);
    if (mb->closed)
        errnum = EPIPE;
    else if (limited && mb->queue.count >= mb->limit)
        errnum = ENOBUFS;
    else if (fifo_push (&mb->queue, msg) < 0)
        errnum = ENOMEM;
    else if (mb->queue.count == 1)
        tell_reader (mb);
    pthread_mutex_unlock (&mb->lock);
    return errnum == 0 ? 0 : errset (errnum);
}

const idt_msg_t *mailbox_pop (struct mailbox *mb)
{
    pthread_mutex_lock (&mb->lock);
    const idt_msg_t *msg = fifo_pop (&mb->queue);
    bool closed = mb->closed;
    if (!msg && !closed)
        flag_lower (&mb->flag);
    if (msg && mb->flag.fd < 0 && (mb->queue.count > 0 || closed))
        ring (mb);
    assert (mb->flag.fd < 0 || mb->flag.up == (msg || closed));
    pthread_mutex_unlock (&mb->lock);
    if (!msg)
        errno = closed ? EPIPE : EAGAIN;
    return msg;
}

void mailbox_close (struct mailbox *mb)
{
    pthread_mutex_lock (&mb->lock);
    if (!mb->closed && mb->queue.count == 0)
        tell_reader (mb);
    mb->closed = true;
    pthread_mutex_unlock (&mb->lock);
}

int mailbox_pollfd (const struct mailbox *mb)
{
    return mb->flag.fd;
}

bool mailbox_wait (struct mailbox *mb, double seconds)
{
    struct timespec until;

    clock_gettime (CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)((seconds > 0 ? seconds : 0) * CLOCK_SECOND_NS);
    until.tv_sec += (time_t)(ns / CLOCK_SECOND_NS);
    until.tv_nsec = (long)(ns % CLOCK_SECOND_NS);
    pthread_mutex_lock (&mb->lock);
    int rc = 0;
    while (rc == 0 && mb->queue.count == 0 && !mb->closed)
        rc = pthread_cond_clockwait (&mb->came, &mb->lock, CLOCK_MONOTONIC, &until);
    bool came = mb->queue.count > 0 || mb->closed;
    pthread_mutex_unlock (&mb->lock);
    return came;
}

size_t mailbox_count (struct mailbox *mb)
{
    pthread_mutex_lock (&mb->lock);
    size_t count = mb->queue.count;
    pthread_mutex_unlock (&mb->lock);
    return count;
}

void mailbox_destroy (struct mailbox *mb)
{
    if (!mb)
        return;
    int saved_errno = errno;
    const idt_msg_t *msg;
    while ((msg = fifo_pop (&mb->queue)))
        mb->drop (msg);
    fifo_fini (&mb->queue);
    mailbox_mute (mb);
    assert (!mb->rings && mb->queue.count == 0);
    pthread_cond_destroy (&mb->came);
    pthread_mutex_destroy (&mb->lock);
    if (mb->flag.fd >= 0)
        close (mb->flag.fd);
    free (mb);
    errno = saved_errno;
}

struct mailbox *mailbox_create_at (struct bell *bell, void *arg, size_t limit, void (*drop) (const idt_msg_t *msg))
{
    struct mailbox *mb = calloc (1, sizeof (*mb));

    if (!mb)
        return NULL;
    pthread_mutex_init (&mb->lock, NULL);
    pthread_cond_init (&mb->came, NULL);
    mb->flag.fd = -1;
    mb->bell = bell;
    mb->arg = arg;
    mb->limit = limit;
    mb->drop = drop;
    return mb;
}

struct mailbox *mailbox_create (size_t limit, void (*drop) (const idt_msg_t *msg))
{
    struct mailbox *mb = mailbox_create_at (NULL, NULL, limit, drop);

    if (!mb || (mb->flag.fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0)
        return mb;
    mailbox_destroy (mb);
    return NULL;
}
