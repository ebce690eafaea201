/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mailbox.c - messages on their way from one thread to another
 *
 * Under the lock holds: the eventfd's counter is above 0 if and only if the queue is not empty or
 * closed. It is written when the first message (or the close) comes and read when the last one
 * goes, so a burst costs one of each.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libutil/errprintf.h"
#include "libutil/fifo.h"
#include "broker/module/mailbox.h"

struct mailbox {
    pthread_mutex_t lock;
    struct fifo queue;
    size_t limit;
    bool closed;
    int fd;
    void (*drop) (const idt_msg_t *msg);
};

/* Raise and lower what the reader polls.  The counter is 0 or 1, so neither can fail for want of
 * room.
 */
static void raise_fd (struct mailbox *mb)
{
    (void)!write (mb->fd, &(uint64_t){ 1 }, sizeof (uint64_t));
}

static void lower_fd (struct mailbox *mb)
{
    (void)!read (mb->fd, &(uint64_t){ 0 }, sizeof (uint64_t));
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
        raise_fd (mb);
    pthread_mutex_unlock (&mb->lock);
    return errnum == 0 ? 0 : errset (errnum);
}

const idt_msg_t *mailbox_pop (struct mailbox *mb)
{
    pthread_mutex_lock (&mb->lock);
    const idt_msg_t *msg = fifo_pop (&mb->queue);
    bool closed = mb->closed;
    if (msg && mb->queue.count == 0 && !closed)
        lower_fd (mb);
    pthread_mutex_unlock (&mb->lock);
    if (!msg)
        errno = closed ? EPIPE : EAGAIN;
    return msg;
}

void mailbox_close (struct mailbox *mb)
{
    pthread_mutex_lock (&mb->lock);
    if (!mb->closed && mb->queue.count == 0)
        raise_fd (mb);
    mb->closed = true;
    pthread_mutex_unlock (&mb->lock);
}

int mailbox_pollfd (const struct mailbox *mb)
{
    return mb->fd;
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
    pthread_mutex_destroy (&mb->lock);
    close (mb->fd);
    free (mb);
    errno = saved_errno;
}

struct mailbox *mailbox_create (size_t limit, void (*drop) (const idt_msg_t *msg))
{
    struct mailbox *mb = calloc (1, sizeof (*mb));

    if (!mb)
        return NULL;
    if ((mb->fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        int errnum = errno;
        free (mb);
        return errset_null (errnum);
    }
    pthread_mutex_init (&mb->lock, NULL);
    mb->limit = limit;
    mb->drop = drop;
    return mb;
}
