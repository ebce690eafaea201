/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - the clocks, the next deadline, the log, the check of the rank that a request names */
#include <errno.h>
#include <time.h>

#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/fluid/service/service.h"
#include "modules/fluid/service/ticks.h"

#define MAX_READINGS 10 /* attempts to read all clocks without an interruption */

/* Read all clocks. Returns false if this took a quarter of CLOCK_CHECK_GRAIN_US or more: the thread was interrupted
 * between two of them.
 */
static bool read_together (const struct service *sv, struct clock_check_reading *r)
{
    r->boot_us = clock_us (CLOCK_BOOTTIME);
    r->raw_us = clock_us (CLOCK_MONOTONIC_RAW);
    r->wall_us = clock_us (CLOCK_REALTIME);
    r->ticks = sv->has_ticks ? processor_ticks () : 0;
    return clock_us (CLOCK_BOOTTIME) - r->boot_us < CLOCK_CHECK_GRAIN_US / 4;
}

/* Readings that were interrupted are not compared. A later call detects the time that a clock missed. */
uint64_t service_look (struct service *sv, int64_t *off_us, int64_t *sure_us)
{
    struct clock_check_reading now;
    bool together = false;

    for (int i = 0; i < MAX_READINGS && !together; i++)
        together = read_together (sv, &now);
    *sure_us = 0;
    *off_us = together ? clock_check_look (&sv->witness, &now, sure_us) : 0;
    return now.boot_us;
}

uint64_t service_now_us (struct service *sv)
{
    int64_t off_us, sure_us;
    uint64_t now_us = service_look (sv, &off_us, &sure_us);

    if (off_us != 0 && sv->authority) {
        authority_lost_time (sv->authority, now_us, off_us, sure_us);
        node_tick (sv->node, now_us);
    }
    else if (off_us != 0)
        node_lost_time (sv->node, now_us, off_us);
    return now_us;
}

/* The timer is only ever moved to an earlier time; if the deadline has moved to a later one, the timer fires too early.
 * Each request that waits sets a deadline, and few are reached, so this saves most of the system calls. clock_moment ()
 * rounds the time, so that the ranks of a process wake up together.
 */
void service_set_timer (struct service *sv)
{
    if (sv->page)
        page_door_publish (sv->page);
    uint64_t at_us = node_deadline (sv->node);

    if (sv->authority)
        at_us = min_u64 (at_us, authority_deadline (sv->authority));
    if (at_us >= sv->armed_us)
        return;
    sv->armed_us = clock_moment (clock_us (CLOCK_BOOTTIME), at_us);
    idt_alarm_watcher_reset (sv->timer, sv->armed_us);
}

void service_log_cb (void *arg, int level, const char *text)
{
    struct service *sv = arg;

    idt_log (sv->h, level, "%s", text);
}

int service_check_rank (idt_t *h, const idt_msg_t *msg, uint32_t rank, idt_error_t *errp)
{
    if ((idt_msg_cred (msg).rolemask & IDT_ROLE_LOCAL) || !idt_overlay_covers (h, msg, rank))
        return errsetf (errp, EPERM, "rank %u is neither the broker that sent the request nor a descendant of it",
                        (unsigned)rank);
    return 0;
}
