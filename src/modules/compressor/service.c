/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - time, answers, and requests to rank 0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/clock.h"
#include "modules/compressor/service.h"

uint64_t compressor_now_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}

void service_arm (struct compressor *sv)
{
    if (sv->armed)
        return;
    sv->armed = true;
    idt_timer_watcher_reset (sv->timer, SERVICE_PAUSE_MS, 0);
    idt_watcher_start (sv->timer);
}

void service_respond_error (struct compressor *sv, const idt_msg_t *msg, int errnum, const char *text)
{
    module_respond_error (sv->h, msg, idcomp_errno (errnum), text);
}

void service_respond_all (struct compressor *sv, struct fifo *q, int errnum, const char *s)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q))) {
        if (errnum)
            service_respond_error (sv, msg, errnum, s);
        else
            module_respond (sv->h, msg, s);
        idt_msg_unref (msg);
    }
}

int service_queue (struct compressor *sv, struct fifo *q, const idt_msg_t *msg)
{
    if (q->count >= sv->options.max_waiting) {
        service_respond_error (sv, msg, EAGAIN, "compressor.max-waiting requests wait already: try again later");
        return -1;
    }
    if (fifo_push (q, msg) < 0) {
        service_respond_error (sv, msg, errno, NULL);
        return -1;
    }
    idt_msg_ref (msg);
    return 0;
}

void compressor_forget (struct fifo *q, const idt_msg_t *disconnect)
{
    for (size_t n = q->count; n > 0; n--) {
        const idt_msg_t *msg = fifo_pop (q);

        if (module_same_client (msg, disconnect) || fifo_push (q, msg) < 0)
            idt_msg_unref (msg);
    }
}

/* --- requests to rank 0 --------------------------------------------------------------------------------- */

int service_upcall (struct compressor *sv, idt_future_t *f, idt_future_f cb, const idt_msg_t *msg)
{
    struct upcall *up = upcall_create (&sv->ups, f, (double)sv->options.timeout_ms, cb, sv);

    if (!up)
        return -1;
    up->msg = msg ? idt_msg_ref (msg) : NULL;
    return 0;
}

const char *service_future_error (const idt_future_t *f)
{
    const char *text = idt_future_error (f);

    if (idt_future_errnum (f) == ENOSYS)
        return "rank 0 has no compressor: load it there with idtree module load -r 0 compressor";
    if (idt_future_errnum (f) == ETIMEDOUT && strcmp (text, strerror (ETIMEDOUT)) == 0)
        return "rank 0 did not answer in time (compressor.timeout)";
    return text;
}

static void passed_on_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;
    struct compressor *sv = up->owner;
    const char *s = NULL;

    if (idt_rpc_get (f, &s) == 0)
        module_respond (sv->h, up->msg, s);
    else
        service_respond_error (sv, up->msg, idt_future_errnum (f), service_future_error (f));
    upcall_destroy (up);
}

void service_pass_on (struct compressor *sv, const idt_msg_t *msg)
{
    idt_future_t *f = idt_rpc_message (sv->h, msg, 0, 0);

    if (service_upcall (sv, f, passed_on_cb, msg) < 0)
        service_respond_error (sv, msg, errno, NULL);
}

void service_forget_ups (struct compressor *sv, const idt_msg_t *disconnect)
{
    struct upcall *up, *next;

    for (up = LIST_FIRST (&sv->ups.calls); up; up = next) {
        next = LIST_NEXT (up, link);
        if (up->msg && module_same_client (up->msg, disconnect))
            upcall_destroy (up);
    }
}
