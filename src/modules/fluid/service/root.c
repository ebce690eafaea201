/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root.c - the adapter of the authority at rank 0: the store, the wall clock to which the authority slews its time, the
 * children
 *
 * Each call into the authority is followed by node_tick (). In it the node of rank 0 takes over what the call changed
 * in the authority.
 *
 * The reactor waits for the store only at the start and at the end. At other times only the thread of the store waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "libsqlite/database.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/duration.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/wire.h"

#define WALL_PERIOD_MS 1000
#define CLOCKS_DIFFER_US 10000000 /* a larger difference of two wall clocks is logged */

/* Must follow each call into the authority. */
static void go_on (struct service *sv, uint64_t now_us)
{
    node_tick (sv->node, now_us);
    service_set_timer (sv);
}

/* --- the clocks ---------------------------------------------------------------------------------------- */

static void wall_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct service *sv = arg;
    uint64_t now_us = service_now_us (sv);

    authority_wall (sv->authority, now_us, (int64_t)clock_us (CLOCK_REALTIME));
    service_watermark_look (sv, now_us);
    go_on (sv, now_us);
}

/* --- the store ----------------------------------------------------------------------------------------------- */

static void horizon_store_cb (void *arg, const struct lease_record *record)
{
    struct service *sv = arg;

    horizon_store_write (sv->store, record);
}

static void stored_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct service *sv = arg;
    idt_error_t why = { "" };
    uint64_t horizon_ms;
    int rc = horizon_store_result (sv->store, &horizon_ms, &why);

    if (rc == 0)
        return;
    if (rc < 0 && strcmp (sv->store_why.text, why.text) != 0) /* once, not at each retry */
        idt_log (sv->h, LOG_CRIT, "%s: no leases are granted beyond the stored horizon", why.text);
    sv->store_why = why;
    uint64_t now_us = service_now_us (sv);
    if (rc > 0)
        authority_stored (sv->authority, now_us, horizon_ms);
    else
        authority_store_failed (sv->authority, now_us);
    go_on (sv, now_us);
}

/* --- reports about the store ------------------------------------------------------------------------------------- */

static void describe_foreign_lease (const struct service *sv, const struct authority_status *s, char *buf, size_t size)
{
    const char *name = sv->options.place.store ? "root.store" : sv->options.place.dir;
    char ours[DATE_SIZE], theirs[DATE_SIZE];

    if (s->foreign.has_epoch)
        snprintf (buf, size, "wrong: %s has the epoch %s, and brokers hold leases of an instance with %s", name,
                  format_date (s->epoch_ms, ours), format_date (s->foreign.epoch_ms, theirs));
    else
        snprintf (buf, size, "wrong: %s knows of leases until %s, and brokers hold leases until %s", name,
                  format_date (s->epoch_ms + (int64_t)s->horizon_ms, ours),
                  format_date (s->epoch_ms + (int64_t)s->foreign.hi_ms, theirs));
}

static void describe_slow_store (const struct service *sv, char *buf, size_t size)
{
    idt_error_t why;

    if (horizon_store_is_unsure (sv->store, &why))
        snprintf (buf, size, "slow: the horizon is not stored yet: %s", why.text);
    else
        snprintf (buf, size, "slow: the horizon is not stored yet");
}

void service_describe_store (const struct service *sv, const struct authority_status *s, char *buf, size_t size)
{
    if (s->fenced_by_foreign)
        describe_foreign_lease (sv, s, buf, size);
    else if (s->store == AUTHORITY_STORE_FAILING)
        snprintf (buf, size, "failing: %s", sv->store_why.text);
    else if (s->store == AUTHORITY_STORE_SLOW)
        describe_slow_store (sv, buf, size);
    else
        snprintf (buf, size, "good");
}

/* Log, once, that a broker of the subtree holds a lease that this store did not grant. */
static void log_foreign_lease (struct service *sv, uint64_t now_us)
{
    struct authority_status s;
    char text[512];

    authority_status (sv->authority, now_us, &s);
    if (!s.fenced_by_foreign || sv->logged_foreign_lease)
        return;
    sv->logged_foreign_lease = true;
    describe_foreign_lease (sv, &s, text, sizeof (text));
    if (sv->options.place.store)
        idt_log (sv->h, LOG_CRIT,
                 "root.store is %s: no leases are granted; stop this instance, and start it with the database that it "
                 "had before: this one has lost commits, or belongs to another instance",
                 text);
    else
        idt_log (sv->h, LOG_CRIT,
                 "statedir is %s: no leases are granted; stop this instance, and start it with the statedir that it "
                 "had before",
                 text);
}

/* --- children ----------------------------------------------------------------------------------------------------- */

void service_answer_lease (struct service *sv, const idt_msg_t *msg, const struct lease_request *req)
{
    uint64_t now_us = service_now_us (sv);
    struct lease_answer answer;

    sv->lease_requests++;
    authority_answer (sv->authority, now_us, req, &answer);
    module_respond_object (sv->h, msg, wire_pack_lease_answer (&answer));
    log_foreign_lease (sv, now_us);
    go_on (sv, now_us);
}

/* --- callbacks of the authority (struct authority_ops) ------------------ */

static void positions_cb (void *arg, uint64_t now_us, struct report *all)
{
    struct service *sv = arg;

    node_positions (sv->node, now_us, all);
}

static const struct authority_ops authority_ops = { horizon_store_cb, positions_cb, service_log_cb };

/* --- start and end ------------------------------------------------------------------------------------------------ */

/* Rename the damaged file and create a new one, because fluid.recover-horizon was given. */
static struct horizon_store *recover_store (struct service *sv, const char *holder,
                                            struct horizon_store_content *content, idt_error_t *errp)
{
    const struct fluid_options *o = &sv->options;
    char path[PATH_MAX];

    if (!o->has_epoch) {
        errprintf (errp, "%s: damaged: fluid.recover-horizon needs the instance's fluid.epoch", o->place.dir);
        return errset_null (EINVAL);
    }
    if (horizon_store_set_aside (o->place.dir, path, sizeof (path), errp) < 0)
        return NULL;
    idt_log (sv->h, LOG_WARNING, "fluid.recover-horizon=%s: the damaged file is kept as %s", o->recover, path);
    return horizon_store_open_anew (&o->place, holder, content, errp);
}

static struct horizon_store *open_store (struct service *sv, struct horizon_store_content *content, idt_error_t *errp)
{
    char who[32], holder[DATABASE_HOLDER_MAX];
    const struct fluid_options *o = &sv->options;
    struct horizon_store *st;

    snprintf (who, sizeof (who), "broker %.8s", o->node.incarnation);
    database_holder (holder, who);
    if (!o->recover)
        return horizon_store_open (&o->place, holder, content, errp);
    if (!(st = horizon_store_open_anew (&o->place, holder, content, errp)) && errno == EBADMSG && !o->place.store)
        st = recover_store (sv, holder, content, errp);
    return st;
}

static int64_t start_wall_us (const struct horizon_store_content *content)
{
    return fluid_options_wall_us (content, (int64_t)clock_us (CLOCK_REALTIME));
}

/* Log a wrong clock. A clock before the epoch is one of a place with a clock (fluid_options_epoch ()), or is allowed by
 * fluid.max-jump.
 */
static void log_clocks (struct service *sv, const struct horizon_store_content *content, int64_t epoch_ms)
{
    int64_t us = content->clock_us, wall_ms = start_wall_us (content) / 1000;
    char wall[DATE_SIZE], epoch[DATE_SIZE];

    if (content->has_clock && (us > CLOCKS_DIFFER_US || us < -CLOCKS_DIFFER_US))
        idt_log (
            sv->h, LOG_WARNING,
            "the wall clock of this host is %.3f s %s that of the database in root.store: set the one that is wrong",
            (double)(us < 0 ? -us : us) / 1e6, us < 0 ? "ahead of" : "behind");
    if (content->has_clock && wall_ms < epoch_ms)
        idt_log (sv->h, LOG_WARNING,
                 "the clock says %s, the epoch is %s: set the clock; ids begin at the stored horizon",
                 format_date (wall_ms, wall), format_date (epoch_ms, epoch));
}

/* Open the store, and fill it if it is new. '*record' and '*epoch_ms' are what rank 0 starts with. */
static int load_store (struct service *sv, struct horizon_store_content *content, int64_t *epoch_ms,
                       struct lease_record *record, idt_error_t *errp)
{
    if (!(sv->store = open_store (sv, content, errp)))
        return -1;
    int64_t wall_ms = start_wall_us (content) / 1000;
    if (fluid_options_epoch (&sv->options, content, wall_ms, epoch_ms, errp) < 0
        || fluid_options_record (&sv->options, content, wall_ms, *epoch_ms, record, errp) < 0
        || (content->is_new && horizon_store_init (sv->store, *epoch_ms, record, errp) < 0))
        return -1;
    log_clocks (sv, content, *epoch_ms);
    return 0;
}

/* Log what is needed to recover the instance if its state is lost. If this life continues with the leases of the
 * previous life, the logged horizon is already ahead of the time.
 */
static void log_start (struct service *sv, const struct lease_record *record, int64_t epoch_ms, uint64_t now_us)
{
    const char *uuid = idt_attr_get (sv->h, "instance.uuid"), *name = idt_attr_get (sv->h, "instance.name");
    int64_t horizon_ms = epoch_ms + (int64_t)record->horizon_ms;
    struct authority_status status;
    char epoch[DATE_SIZE], horizon[DATE_SIZE];

    authority_status (sv->authority, now_us, &status);
    idt_log (sv->h, LOG_NOTICE, "instance %s (%s): epoch %s, horizon %s, its time %.3f s ahead of the clock",
             uuid ? uuid : "-", name ? name : "-", format_date (epoch_ms, epoch), format_date (horizon_ms, horizon),
             status.ahead_us > 0 ? (double)status.ahead_us / 1e6 : 0.);
}

static int start_authority (struct service *sv, const void *past, size_t size, idt_error_t *errp)
{
    const struct node_config *node = &sv->options.node;
    struct authority_config config = { .max_generators = node->max_generators,
                                       .lease_ms = node->lease_ms,
                                       .size = node->size };
    struct horizon_store_content content;
    struct lease_record record;
    struct authority_start start = { .stored = &record, .past = past, .past_size = size };

    if (sv->options.place.store) /* another rank 0 may take over */
        config.reach_max_ms = LEASE_USE_MS (node->lease_ms);
    if (load_store (sv, &content, &config.epoch_ms, &record, errp) < 0)
        return -1;
    uint64_t now_us = service_look (sv, &start.off_us, &start.sure_us);
    start.wall_us = start_wall_us (&content);
    if (content.has_clock)
        start.limit_us = (int64_t)clock_us (CLOCK_REALTIME) + content.clock_us;
    if (!(sv->authority = authority_create (&config, &authority_ops, sv, now_us, &start)))
        return errprintf (errp, "cannot start the authority: %s", strerror (errno));
    node_start_root (sv->node, now_us, sv->authority);
    log_start (sv, &record, config.epoch_ms, now_us);
    return 0;
}

int service_start_root (struct service *sv, const void *past, size_t size, idt_error_t *errp)
{
    idt_reactor_t *r = idt_get_reactor (sv->h);

    if (start_authority (sv, past, size, errp) < 0)
        return -1;
    if (!(sv->store_watcher = idt_fd_watcher_create (r, horizon_store_fd (sv->store), IDT_POLLIN, stored_cb, sv))
        || !(sv->wall_timer = idt_timer_watcher_create (r, WALL_PERIOD_MS, WALL_PERIOD_MS, wall_cb, sv)))
        return errprintf (errp, "cannot start the authority: %s", strerror (errno));
    idt_watcher_start (sv->store_watcher);
    idt_watcher_start (sv->wall_timer);
    return 0;
}

void service_stop_root (struct service *sv)
{
    idt_error_t err;

    idt_watcher_destroy (sv->wall_timer);
    idt_watcher_destroy (sv->store_watcher);
    if (sv->authority)
        authority_close (sv->authority, service_now_us (sv), &sv->last);
    sv->stored = sv->store && horizon_store_close (sv->store, sv->authority ? &sv->last : NULL, &err) == 0
                 && sv->authority;
    if (sv->store && sv->authority && !sv->stored)
        idt_log (sv->h, LOG_ERR, "%s: the instance's time will be a little ahead of the clock after the next start",
                 err.text);
    sv->store = NULL;
}

void *service_leave_root (const struct service *sv, size_t *size)
{
    *size = 0;
    return sv->authority ? authority_leave (sv->authority, sv->stored ? &sv->last : NULL, size) : NULL;
}
