/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - the fluid service: messages, time and disk around a node, which decides
 *
 * The module runs on the broker's reactor. It blocks only at its start and end, and only at rank 0. The service passes
 * each message to the node together with the time. Then it sets the timer to the node's deadline, an absolute time of
 * CLOCK_BOOTTIME. The node acts through node_ops.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libmodule/module.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/ticks.h"

/* --- the timer ------------------------------------------------------------------------------------------ */

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct service *sv = arg;

    sv->armed_us = SERVICE_NEVER;
    uint64_t now_us = service_now_us (sv);
    if (sv->authority)
        authority_tick (sv->authority, now_us);
    node_tick (sv->node, now_us);
    service_set_timer (sv);
}

static int start_timer (struct service *sv, idt_error_t *errp)
{
    if (!(sv->timer = idt_alarm_watcher_create (idt_get_reactor (sv->h), timer_cb, sv)))
        return errprintf (errp, "cannot create a timer: %s", strerror (errno));
    return 0;
}

/* --- the overlay ------------------------------------------------------------------------------------ */

static bool read_clock_cb (void *arg, uint64_t *inst_us, uint64_t *bound_us)
{
    struct service *sv = arg;

    return node_clock (sv->node, service_now_us (sv), inst_us, bound_us);
}

static void sample_cb (void *arg, const struct idt_clock_sample *sample)
{
    struct service *sv = arg;

    node_sample (sv->node, service_now_us (sv), sample);
    sv->armed_us = SERVICE_NEVER; /* the node has done all that was due: no earlier wakeup is needed */
    service_set_timer (sv);
}

static void parent_cb (void *arg, bool up)
{
    struct service *sv = arg;

    sv->traces.refused = false;
    node_parent (sv->node, service_now_us (sv), up);
    service_set_timer (sv);
}

static const struct idt_overlay_ops overlay_ops = {
    .read_clock = read_clock_cb,
    .sample = sample_cb,
    .parent = parent_cb,
};

/* A module that runs in its own thread receives no calls from the overlay (ENOTSUP). Such a module assumes that the
 * parent is connected, and takes the time from the answers to lease requests.
 */
static int attach (struct service *sv, idt_error_t *errp)
{
    if (idt_overlay_attach (sv->h, &overlay_ops, sv) == 0)
        return 0;
    if (errno != ENOTSUP)
        return errprintf (errp, "cannot attach to the overlay: %s", strerror (errno));
    node_parent (sv->node, service_now_us (sv), sv->options.node.rank > 0);
    return 0;
}

/* --- tables of callbacks and handlers ----------------------------------------------------------------- */

static uint64_t now_us_cb (void *arg)
{
    return clock_us (CLOCK_BOOTTIME);
}

static const struct node_ops node_ops = {
    .reply = service_reply_cb,
    .fail = service_fail_cb,
    .forward = service_forward_up_cb,
    .cancel = service_cancel_up_cb,
    .lease_up = service_lease_up_cb,
    .lease_reply = service_lease_reply_cb,
    .report_up = service_report_up_cb,
    .log = service_log_cb,
    .goes_up = service_goes_up_cb,
    .now_us = now_us_cb,
};

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "fluid.block", service_block_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.generate", service_generate_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.trace", service_trace_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.lease", service_lease_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.time", service_time_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.position", service_position_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.watermark", service_watermark_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.cancel", service_cancel_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.disconnect", service_disconnect_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.info", service_info_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.metrics", service_metrics_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.stats-get", service_stats_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "fluid.stats-clear", service_stats_clear_cb, 0 },
    { IDT_MSGTYPE_EVENT, "fluid.stats-clear", service_stats_clear_cb, 0 },
    IDT_HANDLERS_END,
};

/* --- start and end --------------------------------------------------------------------------------------- */

struct service_handover {
    size_t size; /* size of this struct, because the next load may be another version */
    struct clock_check clock_check;
    /* followed by the data of service_leave_root () */
};

static struct service_handover *leave_own (const struct service *sv, size_t *size)
{
    size_t root_size;
    void *root = service_leave_root (sv, &root_size);
    struct service_handover *p = calloc (1, sizeof (*p) + root_size);

    *size = 0;
    if (p) {
        *p = (struct service_handover){ .size = sizeof (*p), .clock_check = sv->clock_check };
        if (root_size > 0)
            memcpy (p + 1, root, root_size);
        *size = sizeof (*p) + root_size;
    }
    free (root);
    return p;
}

/* Leave a handover to the next life on this broker. It keeps ids in order, and rank 0's table of leases. It also lets
 * the next life detect time that CLOCK_BOOTTIME misses meanwhile.
 */
static void leave (struct service *sv)
{
    size_t size, own_size;
    struct service_handover *own = leave_own (sv, &own_size);
    void *past = node_leave (sv->node, own, own_size, &size);

    if (!past || idt_module_keep (sv->h, past, size) < 0)
        idt_log (sv->h, LOG_WARNING, "the fluid module leaves no handover to its next start: %s", strerror (errno));
    free (own);
    free (past);
}

static void fluid_fini (idt_t *h, void *ctx)
{
    struct service *sv = ctx;
    int saved = errno;

    idt_handlers_remove (h, handlers);
    page_door_shut (sv->page);
    if (sv->node)
        node_stop (sv->node, service_now_us (sv));
    service_watermark_stop (sv);
    upcalls_stop (&sv->ups, sv->h, SERVICE_STOPPING);
    idt_watcher_destroy (sv->timer);
    service_stop_root (sv);
    if (sv->running)
        leave (sv);
    service_forget (sv);
    page_door_destroy (sv->page);
    node_destroy (sv->node);
    authority_destroy (sv->authority);
    rate_limit_destroy (sv->rate_limit);
    jv_reader_fini (&sv->reader);
    quota_fini (&sv->traces.quota);
    free (sv);
    errno = saved;
}

/* Start the node, and at rank 0 the authority, from the handover of the previous life. */
static int start_node (struct service *sv, idt_error_t *errp)
{
    size_t size = 0, own_size, root_size = 0;
    const void *past = idt_module_kept (sv->h, &size), *root = NULL;
    const struct service_handover *own;

    if (!(sv->node = node_create (&sv->options.node, &node_ops, sv)))
        return errprintf (errp, "cannot start the node: %s", strerror (errno));
    own = node_remember (sv->node, past, size, &own_size);
    if (own && own_size >= sizeof (*own) && own->size == sizeof (*own)) {
        sv->clock_check = own->clock_check;
        root = own + 1;
        root_size = own_size - sizeof (*own);
    }
    return sv->options.node.rank == 0 ? service_start_root (sv, root, root_size, errp) : 0;
}

static int add_handlers (struct service *sv, idt_error_t *errp)
{
    return idt_handlers_add (sv->h, handlers, sv) < 0 ? errprintf (errp, "out of memory") : 0;
}

static int start (struct service *sv, idt_error_t *errp)
{
    if (fluid_options_read (sv->h, &sv->options, errp) < 0)
        return -1;
    service_watermark_start (sv);
    if (!(sv->rate_limit = rate_limit_configure (sv->h, errp)) || start_timer (sv, errp) < 0
        || start_node (sv, errp) < 0 || add_handlers (sv, errp) < 0 || attach (sv, errp) < 0
        || page_door_open (sv, &sv->page, errp) < 0)
        return -1;
    service_set_timer (sv);
    sv->running = true;
    return 0;
}

static int fluid_init (idt_t *h, int argc, char **argv, void **ctx, idt_error_t *errp)
{
    struct service *sv;

    if (module_option_none (argc, argv, errp) < 0)
        return -1;
    if (!(sv = calloc (1, sizeof (*sv))))
        return errprintf (errp, "out of memory");
    *sv = (struct service){ .h = h, .armed_us = SERVICE_NEVER, .has_ticks = processor_has_ticks () };
    quota_init (&sv->traces.quota, QUOTA_TRACES);
    if (start (sv, errp) < 0) {
        fluid_fini (h, sv);
        return -1;
    }
    *ctx = sv;
    return 0;
}

IDT_MODULE ("fluid", fluid_init, fluid_fini)
