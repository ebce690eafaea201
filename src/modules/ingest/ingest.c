/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ingest.c - the job-ingest service: start, end, timers, the table of topics
 *
 * The module runs in a thread, because checking jobs takes longer than a broker's reactor may be blocked. It does not
 * block, except at rank 0 for the disk at start and end, so the modules of all brokers of a process share one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libutil/clock.h"
#include "libmodule/module.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/service.h"

uint64_t ingest_now_ms (void)
{
    return clock_ms (CLOCK_BOOTTIME);
}

/* --- turns --------------------------------------------------------------------------------------------- */

static void set_timer (struct ingest *sv)
{
    uint64_t now_ms = ingest_now_ms (),
             due_ms = min_u64 (job_relay_due (sv->relay), min_u64 (entry_due (sv->entry), job_block_due (&sv->ids)));

    idt_watcher_stop (sv->timer);
    if (due_ms == UINT64_MAX)
        return;
    idt_timer_watcher_reset (sv->timer, due_ms > now_ms ? (double)(due_ms - now_ms) : 0, 0);
    idt_watcher_start (sv->timer);
}

/* Runs when all messages that arrived have been handled, so that jobs that arrive together are sent together. */
static void turn_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct ingest *sv = arg;

    idt_watcher_stop (sv->idle);
    uplink_turn (sv);
    set_timer (sv);
}

void service_wake (struct ingest *sv)
{
    idt_watcher_start (sv->idle);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct ingest *sv = arg;

    idt_watcher_stop (sv->timer);
    entry_expire (sv->entry, ingest_now_ms (), *sv->no_ids ? sv->no_ids : sv->no_way);
    service_wake (sv);
}

/* --- requests -------------------------------------------------------------------------------------------- */

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ingest *sv = arg;

    checks_forget (sv->checks, msg);
    if (sv->root)
        job_root_forget (sv->root, msg);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST | IDT_HANDLER_LARGE, "job-ingest.submit", submit_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.batch", uplink_batch_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.stats-get", ingest_stats_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.metrics", ingest_metrics_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "job-ingest.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "ingest.disconnect", disconnect_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- start and end ------------------------------------------------------------------------------------------- */

static void service_destroy (struct ingest *sv)
{
    int saved = errno;

    idt_handlers_remove (sv->h, handlers);
    checks_destroy (sv->checks);
    job_root_destroy (sv->root);
    if (sv->entry)
        entry_stop (sv->entry, EAGAIN, SERVICE_ENDS);
    uplink_stop (sv);
    upcalls_stop (&sv->ups, sv->h, SERVICE_STOPPING);
    job_relay_destroy (sv->relay);
    pack_buf_fini (&sv->pack);
    entry_destroy (sv->entry);
    job_block_fini (&sv->ids);
    jv_reader_fini (&sv->reader);
    quota_fini (&sv->submissions);
    idt_watcher_destroy (sv->timer);
    idt_watcher_destroy (sv->idle);
    free (sv);
    errno = saved;
}

/* Let submissions wait in the broker for the next load of this module. The module hands over no other data. */
static void ingest_fini (idt_t *h, void *ctx)
{
    if (idt_module_keep (h, "", 1) < 0)
        idt_log (h, LOG_DEBUG, "submissions do not wait for the next load of job-ingest: %s", strerror (errno));
    service_destroy (ctx);
}

static int start (struct ingest *sv, idt_error_t *errp)
{
    const struct ingest_options *o = &sv->options;
    idt_reactor_t *r = idt_get_reactor (sv->h);

    sv->submissions_rule = (struct quota_rule){
        "submissions", QUOTA_NO_LIMIT, (o->max_waiting + 1) / 2, (o->max_waiting + 7) / 8, (o->max_waiting + 7) / 8,
        EAGAIN
    };
    quota_init_by (&sv->submissions, &sv->submissions_rule);
    if ((sv->entry = entry_create (o->max_waiting, o->max_waiting_bytes, o->timeout_ms, submit_reply, sv))
        && (sv->relay = job_relay_create (o->max_waiting_bytes,
                                          o->rank > 0 ? JOB_RELAY_UNDER_WAY : JOB_RELAY_ROOT_UNDER_WAY))
        && (sv->checks = checks_create (sv)) && (sv->timer = idt_timer_watcher_create (r, 0, 0, timer_cb, sv))
        && (sv->idle = idt_idle_watcher_create (r, turn_cb, sv))
        && (o->rank > 0 || (sv->root = job_root_create (sv, errp))) && idt_handlers_add (sv->h, handlers, sv) == 0)
        return 0;
    return *errp->text ? -1 : errprintf (errp, "cannot start: %s", strerror (errno));
}

static int ingest_init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct ingest *sv;

    if (module_option_none (argc, argv, errp) < 0)
        return -1;
    if (!(sv = calloc (1, sizeof (*sv))))
        return errprintf (errp, "out of memory");
    sv->h = h;
    job_block_init (&sv->ids);
    if (ingest_options_read (h, &sv->options, errp) < 0 || start (sv, errp) < 0) {
        service_destroy (sv);
        return -1;
    }
    *ctx = sv;
    return 0;
}

IDT_MODULE_SHARED ("job-ingest", ingest_init, ingest_fini)
