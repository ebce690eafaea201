/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* horizon_store.c - the durable horizon and epoch: a thread, and the place in which it keeps them
 *
 * The backend belongs to the worker's thread while a write is under way, and to the reactor's thread at all other
 * times, except for stop () and is_unsure ().
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"
#include "modules/fluid/service/horizon_backend.h"

#define CLOSE_MS 1000 /* how long a write may take when the store is closed, if the backend can stop it */

struct horizon_store {
    const struct horizon_backend *backend;
    void *b;
    struct worker *worker;
    bool writing;
    struct lease_record record; /* being written */
};

static int write_record (void *arg, idt_error_t *errp)
{
    struct horizon_store *st = arg;

    return st->backend->write (st->b, &st->record, errp);
}

/* --- writes ------------------------------------------------------------------------------------------ */

void horizon_store_write (struct horizon_store *st, const struct lease_record *record)
{
    st->record = *record;
    st->writing = true;
    worker_begin (st->worker);
}

int horizon_store_fd (const struct horizon_store *st)
{
    return worker_fd (st->worker);
}

int horizon_store_result (struct horizon_store *st, uint64_t *horizon_ms, idt_error_t *errp)
{
    int rc = worker_result (st->worker, errp);

    *horizon_ms = st->record.horizon_ms;
    if (rc != 0)
        st->writing = false;
    return rc;
}

bool horizon_store_is_unsure (struct horizon_store *st, idt_error_t *why)
{
    return st->writing && st->backend->is_unsure && st->backend->is_unsure (st->b, why);
}

/* --- open and close ----------------------------------------------------------------------------------- */

static void horizon_store_destroy (struct horizon_store *st)
{
    int saved = errno;

    worker_destroy (st->worker);
    if (st->b)
        st->backend->close (st->b);
    free (st);
    errno = saved;
}

static struct horizon_store *open_place (const struct module_place *place, const char *holder, bool anew,
                                         struct horizon_store_content *content, idt_error_t *errp)
{
    struct horizon_store *st = calloc (1, sizeof (*st));

    if (!st)
        return errsetf_null (errp, ENOMEM, "the horizon: out of memory");
    st->backend = place->store ? &horizon_pg : &horizon_disk;
    if (!(st->b = st->backend->open (place, holder, anew, content, errp)))
        goto error;
    if (!(st->worker = worker_create (write_record, st))) {
        errprintf (errp, "the horizon: cannot start a thread: %s", strerror (errno));
        goto error;
    }
    return st;
error:
    horizon_store_destroy (st);
    return NULL;
}

struct horizon_store *horizon_store_open (const struct module_place *place, const char *holder,
                                          struct horizon_store_content *content, idt_error_t *errp)
{
    return open_place (place, holder, false, content, errp);
}

struct horizon_store *horizon_store_open_anew (const struct module_place *place, const char *holder,
                                               struct horizon_store_content *content, idt_error_t *errp)
{
    return open_place (place, holder, true, content, errp);
}

int horizon_store_init (struct horizon_store *st, int64_t epoch_ms, const struct lease_record *r, idt_error_t *errp)
{
    return st->backend->init (st->b, epoch_ms, r, errp);
}

/* Wait for the write under way. After CLOSE_MS stop a backend that can be stopped. Returns like worker_result (). */
static int finish (struct horizon_store *st, uint64_t until_ms, idt_error_t *errp)
{
    struct pollfd pfd = { .fd = horizon_store_fd (st), .events = POLLIN };
    uint64_t horizon_ms;
    int rc;

    while ((rc = horizon_store_result (st, &horizon_ms, errp)) == 0 && st->writing) {
        uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);

        if (st->backend->stop && now_ms >= until_ms)
            st->backend->stop (st->b);
        poll (&pfd, 1, st->backend->stop && now_ms < until_ms ? (int)(until_ms - now_ms) : -1);
    }
    return rc;
}

int horizon_store_close (struct horizon_store *st, const struct lease_record *last, idt_error_t *errp)
{
    uint64_t until_ms = clock_ms (CLOCK_MONOTONIC) + CLOSE_MS;
    int rc = finish (st, until_ms, errp);

    if (last) {
        horizon_store_write (st, last);
        rc = finish (st, until_ms, errp);
    }
    horizon_store_destroy (st);
    return last && rc < 0 ? -1 : 0;
}
