/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_parent.c - whether the fluid service of the parent answers, and its clock
 *
 * At most one hello is under way. The parent counts as connected from an answer until a failure. A failure that means
 * only that the service is not loaded is not logged.
 */
#include <errno.h>
#include <stdlib.h>
#include <syslog.h>
#include <time.h>

#include <idtree/rpc.h>

#include "flux/flux_parent.h"
#include "libutil/clock.h"

#define PERIOD_MS 1000
#define SOON_MS 100 /* while the parent does not answer, or does not know the time */
#define ANSWER_MS 5000

struct flux_parent {
    idt_t *h;
    uint32_t rank;
    const struct idt_overlay_ops *ops;
    void *arg;
    idt_watcher_t *timer;
    idt_future_t *f; /* the hello under way, or NULL */
    uint64_t sent_us;
    bool up;
    int logged_errnum; /* the errno that was logged last */
};

static void plan (struct flux_parent *p, double after_ms)
{
    idt_watcher_stop (p->timer);
    idt_timer_watcher_reset (p->timer, after_ms, 0);
    idt_watcher_start (p->timer);
}

static void set_up (struct flux_parent *p, bool up)
{
    if (p->up == up)
        return;
    p->up = up;
    p->ops->parent (p->arg, up);
}

static bool is_expected (int errnum)
{
    return errnum == ENOSYS || errnum == EHOSTUNREACH || errnum == ECONNRESET || errnum == EBUSY;
}

static void fail (struct flux_parent *p, int errnum, const char *text)
{
    if (!is_expected (errnum) && errnum != p->logged_errnum) {
        idt_log (p->h, LOG_WARNING, "the fluid service of the parent broker: %s", text);
        p->logged_errnum = errnum;
    }
    set_up (p, false);
    plan (p, SOON_MS);
}

/* Pass the clock of an answer on as a sample. Returns false if the answer has none. */
static bool take_clock (struct flux_parent *p, idt_future_t *f)
{
    struct idt_clock_sample s = { .sent_us = p->sent_us, .received_us = clock_us (CLOCK_BOOTTIME) };
    json_int_t received, sent, bound;

    if (idt_rpc_get_unpack (f, "{s:[I,I] s:I}", "clock_us", &received, &sent, "bound_us", &bound) < 0 || received < 0
        || sent < 0 || bound < 0)
        return false;
    s.peer_received_us = (uint64_t)received;
    s.peer_sent_us = (uint64_t)sent;
    s.peer_bound_us = (uint64_t)bound;
    p->ops->sample (p->arg, &s);
    return true;
}

static void answered_cb (idt_future_t *f, void *arg)
{
    struct flux_parent *p = arg;

    p->f = NULL;
    if (idt_future_errnum (f))
        fail (p, idt_future_errnum (f), idt_future_error (f));
    else {
        bool has_clock = take_clock (p, f);

        p->logged_errnum = 0;
        set_up (p, true);
        plan (p, has_clock ? PERIOD_MS : SOON_MS);
    }
    idt_future_destroy (f);
}

static void hello_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct flux_parent *p = arg;

    p->sent_us = clock_us (CLOCK_BOOTTIME);
    p->f = idt_rpc_pack (p->h, FLUX_PARENT_HELLO, IDT_NODEID_UPSTREAM, 0, "{s:I}", "rank", (json_int_t)p->rank);
    if (p->f && idt_future_then (p->f, ANSWER_MS, answered_cb, p) == 0)
        return;
    idt_future_destroy (p->f);
    p->f = NULL;
    plan (p, SOON_MS);
}

void flux_parent_destroy (struct flux_parent *p)
{
    if (!p)
        return;
    idt_future_destroy (p->f);
    idt_watcher_destroy (p->timer);
    free (p);
}

struct flux_parent *flux_parent_create (idt_t *h, uint32_t rank, const struct idt_overlay_ops *ops, void *arg)
{
    struct flux_parent *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    *p = (struct flux_parent){ .h = h, .rank = rank, .ops = ops, .arg = arg };
    if (!(p->timer = idt_timer_watcher_create (idt_get_reactor (h), 0, 0, hello_cb, p))) {
        free (p);
        return NULL;
    }
    idt_watcher_start (p->timer);
    return p;
}
