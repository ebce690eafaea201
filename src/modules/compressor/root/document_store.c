/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_store.c - the documents of an instance: a thread, and the place in which it keeps them
 *
 * While work is under way, the backend belongs to the worker's thread, except for stop () and late ().
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"
#include "modules/compressor/root/document_backend.h"

struct document_store {
    const struct document_backend *backend;
    void *b;
    char holder[DATABASE_HOLDER_MAX];
    struct worker *worker;
    const struct document_store_reader *reader;
    void *arg;
    bool opening;                                /* the work is to open the store, else a commit */
    const struct document_store_change *changes; /* of the commit that is under way */
    size_t nchanges;
};

static int work (void *arg, idt_error_t *errp)
{
    struct document_store *st = arg;

    if (!st->opening)
        return st->backend->write (st->b, st->changes, st->nchanges, errp);
    return st->backend->open (st->b, errp) < 0 || st->backend->read (st->b, st->reader, st->arg, errp) < 0 ? -1 : 0;
}

void document_store_open (struct document_store *st)
{
    st->opening = true;
    worker_begin (st->worker);
}

void document_store_commit (struct document_store *st, const struct document_store_change *changes, size_t n)
{
    st->opening = false;
    st->changes = changes;
    st->nchanges = n;
    worker_begin (st->worker);
}

int document_store_fd (const struct document_store *st)
{
    return worker_fd (st->worker);
}

int document_store_result (struct document_store *st, idt_error_t *errp)
{
    return worker_result (st->worker, errp);
}

int document_store_wait (struct document_store *st, idt_error_t *errp)
{
    struct pollfd pfd = { .fd = document_store_fd (st), .events = POLLIN };
    int rc;

    while ((rc = document_store_result (st, errp)) == 0)
        poll (&pfd, 1, -1);
    return rc;
}

void document_store_late (const struct document_store *st, uint64_t ms, idt_error_t *why)
{
    st->backend->late (st->b, ms, why);
}

int64_t document_store_copied (const struct document_store *st)
{
    return st->backend->copied (st->b);
}

void document_store_close (struct document_store *st)
{
    if (!st)
        return;
    int saved = errno;
    if (st->b && st->backend->stop)
        st->backend->stop (st->b);
    worker_destroy (st->worker);
    if (st->b)
        st->backend->close (st->b);
    free (st);
    errno = saved;
}

struct document_store *document_store_create (const struct module_place *place, const char *holder,
                                              const struct document_store_reader *reader, void *arg, idt_error_t *errp)
{
    struct document_store *st = calloc (1, sizeof (*st));

    if (!st) {
        errprintf (errp, "documents: out of memory");
        return NULL;
    }
    st->backend = place->store ? &document_pg : &document_disk;
    st->reader = reader;
    st->arg = arg;
    snprintf (st->holder, sizeof (st->holder), "%s", holder);
    if (!(st->b = st->backend->create (place, st->holder)) || !(st->worker = worker_create (work, st))) {
        errprintf (errp, "documents: cannot start a thread: %s", strerror (errno));
        document_store_close (st);
        return NULL;
    }
    return st;
}
