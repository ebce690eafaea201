/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root.c - rank 0: the disk under the node, and the wall clock that its time is slewed to
 *
 * The disk is waited for at the start and at the end only; in between the store's thread does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/duration.h"
#include "modules/fluid/service/service.h"

#define WALL_PERIOD_MS 1000

/* --- the wall clock ---------------------------------------------------------------------------------------- */

static void wall_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct service *sv = arg;

    node_wall (sv->node, service_now_us (sv), (int64_t)clock_us (CLOCK_REALTIME));
    service_set_timer (sv);
}

/* --- the disk ------------------------------------------------------------------------------------------------ */

void service_store_cb (void *arg, const struct lease_record *record)
{
    struct service *sv = arg;

    store_write (sv->store, record);
}

static void stored_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct service *sv = arg;
    idt_error_t why = { "" };
    uint64_t horizon_ms;
    bool good;

    if (!store_result (sv->store, &good, &horizon_ms, &why))
        return;
    if (!good && strcmp (sv->store_why.text, why.text) != 0) /* not at each of its retries */
        idt_log (sv->h, LOG_CRIT, "%s: no leases are given beyond the horizon that is stored", why.text);
    sv->store_why = why;
    if (good)
        node_stored (sv->node, service_now_us (sv), horizon_ms);
    else
        node_store_failed (sv->node, service_now_us (sv));
    service_set_timer (sv);
}

/* --- what to tell of the disk ---------------------------------------------------------------------------------- */

static void describe_stranger (const struct service *sv, const struct node_status *s, char *buf, size_t size)
{
    const char *dir = sv->options.statedir;
    char ours[DATE_SIZE], theirs[DATE_SIZE];

    if (s->has_their_epoch)
        snprintf (buf, size, "wrong: %s has the epoch %s, and brokers hold leases of an instance with %s", dir,
                  format_date (s->epoch_ms, ours), format_date (s->their_epoch_ms, theirs));
    else
        snprintf (buf, size, "wrong: %s knows of leases until %s, and brokers hold some until %s", dir,
                  format_date (s->epoch_ms + (int64_t)s->horizon_ms, ours),
                  format_date (s->epoch_ms + (int64_t)s->their_hi_ms, theirs));
}

void service_describe_store (const struct service *sv, const struct node_status *s, char *buf, size_t size)
{
    if (s->distrusted)
        describe_stranger (sv, s, buf, size);
    else if (s->store == NODE_STORE_FAILING)
        snprintf (buf, size, "failing: %s", sv->store_why.text);
    else if (s->store == NODE_STORE_SLOW)
        snprintf (buf, size, "slow: the horizon is not stored yet");
    else
        snprintf (buf, size, "good");
}

void service_tell_stranger (struct service *sv)
{
    struct node_status s;
    char text[512];

    node_status (sv->node, service_now_us (sv), &s);
    if (!s.distrusted || sv->told_stranger)
        return;
    sv->told_stranger = true;
    describe_stranger (sv, &s, text, sizeof (text));
    idt_log (
        sv->h, LOG_CRIT,
        "statedir is %s: no more leases are given; stop this instance, and start it with the statedir that it had before",
        text);
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

/* fluid.recover-horizon was given for a damaged file: put that away and begin a new one. */
static struct store *recover_store (struct service *sv, const char *lessee, struct store_content *content,
                                    idt_error_t *errp)
{
    const struct options *o = &sv->options;
    char path[PATH_MAX];

    if (!o->has_epoch) {
        errprintf (errp, "%s: damaged: fluid.recover-horizon needs the instance's fluid.epoch", o->statedir);
        errno = EINVAL;
        return NULL;
    }
    if (store_set_aside (o->statedir, path, sizeof (path), errp) < 0)
        return NULL;
    idt_log (sv->h, LOG_WARNING, "fluid.recover-horizon=%s: the damaged file is kept as %s", o->recover, path);
    return store_open (o->statedir, lessee, content, errp);
}

static struct store *open_store (struct service *sv, struct store_content *content, idt_error_t *errp)
{
    char host[64] = "?", lessee[128];
    const struct options *o = &sv->options;
    struct store *st;

    gethostname (host, sizeof (host) - 1);
    snprintf (lessee, sizeof (lessee), "broker %.8s, process %d on %s", o->node.incarnation, (int)getpid (), host);
    if (!(st = store_open (o->statedir, lessee, content, errp)) && errno == EBADMSG && o->recover)
        st = recover_store (sv, lessee, content, errp);
    return st;
}

/* Open the store, and fill it where it is new.  '*record' and '*epoch_ms' are what the root runs with. */
static int load_store (struct service *sv, int64_t wall_ms, int64_t *epoch_ms, struct lease_record *record,
                       idt_error_t *errp)
{
    struct store_content content;

    if (!(sv->store = open_store (sv, &content, errp))
        || options_epoch (&sv->options, &content, wall_ms, epoch_ms, errp) < 0
        || options_record (&sv->options, &content, wall_ms, *epoch_ms, record, errp) < 0
        || (content.is_new && store_init (sv->store, *epoch_ms, record, errp) < 0))
        return -1;
    return 0;
}

int service_start_root (struct service *sv, idt_error_t *errp)
{
    idt_reactor_t *r = idt_get_reactor (sv->h);
    struct lease_record record;
    int64_t epoch_ms, now_wall_us = (int64_t)clock_us (CLOCK_REALTIME);

    if (load_store (sv, now_wall_us / 1000, &epoch_ms, &record, errp) < 0)
        return -1;
    if (!(sv->store_watcher = idt_fd_watcher_create (r, store_fd (sv->store), IDT_POLLIN, stored_cb, sv))
        || !(sv->wall_timer = idt_timer_watcher_create (r, WALL_PERIOD_MS, WALL_PERIOD_MS, wall_cb, sv))
        || node_start_root (sv->node, service_now_us (sv), now_wall_us, epoch_ms, &record) < 0)
        return errprintf (errp, "cannot start: %s", strerror (errno));
    idt_watcher_start (sv->store_watcher);
    idt_watcher_start (sv->wall_timer);
    sv->started = true;
    return 0;
}

void service_stop_root (struct service *sv, const struct lease_record *last)
{
    idt_error_t err;

    idt_watcher_destroy (sv->wall_timer);
    idt_watcher_destroy (sv->store_watcher);
    sv->stored = sv->store && store_close (sv->store, sv->started ? last : NULL, &err) == 0 && sv->started;
    if (sv->store && sv->started && !sv->stored)
        idt_log (sv->h, LOG_ERR, "%s: the next start goes on a little ahead of the clock", err.text);
    sv->store = NULL;
}
