/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - answers, and requests that went up */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "modules/compressor/service.h"

static void log_unanswered (struct service *sv, const idt_msg_t *msg)
{
    idt_log (sv->h, LOG_ERR, "%s: cannot answer: %s", idt_msg_topic (msg), strerror (errno));
}

void service_respond (struct service *sv, const idt_msg_t *msg, const char *s)
{
    if (idt_respond (sv->h, msg, s) < 0)
        log_unanswered (sv, msg);
}

void service_respond_error (struct service *sv, const idt_msg_t *msg, int errnum, const char *text)
{
    if (idt_respond_error (sv->h, msg, idcomp_errno (errnum), text) < 0)
        log_unanswered (sv, msg);
}

void service_respond_new (struct service *sv, const idt_msg_t *msg, char *s)
{
    if (s)
        service_respond (sv, msg, s);
    else
        service_respond_error (sv, msg, ENOMEM, NULL);
    free (s);
}

void service_respond_object (struct service *sv, const idt_msg_t *msg, json_t *o)
{
    service_respond_new (sv, msg, o ? json_dumps (o, JSON_COMPACT) : NULL);
    json_decref (o);
}

void service_respond_all (struct service *sv, struct fifo *q, int errnum, const char *s)
{
    const idt_msg_t *msg;

    while ((msg = fifo_pop (q))) {
        if (errnum)
            service_respond_error (sv, msg, errnum, s);
        else
            service_respond (sv, msg, s);
        idt_msg_unref (msg);
    }
}

int service_queue (struct service *sv, struct fifo *q, const idt_msg_t *msg)
{
    if (q->count >= sv->options.max_waiting) {
        service_respond_error (sv, msg, EAGAIN, "compressor.max-waiting requests wait already: ask again later");
        return -1;
    }
    if (fifo_push (q, msg) < 0) {
        service_respond_error (sv, msg, errno, NULL);
        return -1;
    }
    idt_msg_ref (msg);
    return 0;
}

bool service_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect)
{
    const char *a = idt_msg_route_oldest (msg), *b = idt_msg_route_oldest (disconnect);

    return a && b && strcmp (a, b) == 0;
}

void service_forget (struct fifo *q, const idt_msg_t *disconnect)
{
    for (size_t n = q->count; n > 0; n--) {
        const idt_msg_t *msg = fifo_pop (q);

        if (service_same_client (msg, disconnect) || fifo_push (q, msg) < 0)
            idt_msg_unref (msg);
    }
}

/* --- requests that went up ------------------------------------------------------------------------------ */

void up_destroy (struct up *up)
{
    if (!up)
        return;
    LIST_REMOVE (up, link);
    idt_future_destroy (up->f);
    idt_msg_unref (up->msg);
    free (up);
}

int up_create (struct service *sv, idt_future_t *f, idt_future_f cb, const idt_msg_t *msg)
{
    struct up *up = f ? calloc (1, sizeof (*up)) : NULL;

    if (!up) {
        idt_future_destroy (f);
        return -1;
    }
    *up = (struct up){ .service = sv, .f = f, .msg = msg ? idt_msg_ref (msg) : NULL };
    LIST_INSERT_HEAD (&sv->ups, up, link);
    if (idt_future_then (f, (double)sv->options.timeout_ms, cb, up) < 0) {
        up_destroy (up);
        return -1;
    }
    return 0;
}

const char *service_future_error (const idt_future_t *f)
{
    const char *text = idt_future_error (f);

    if (idt_future_errnum (f) == ETIMEDOUT && strcmp (text, strerror (ETIMEDOUT)) == 0)
        return "rank 0 did not answer in time (compressor.timeout)";
    return text;
}

static void passed_on_cb (idt_future_t *f, void *arg)
{
    struct up *up = arg;
    const char *s = NULL;

    if (idt_rpc_get (f, &s) == 0)
        service_respond (up->service, up->msg, s);
    else if (errno == ENOSYS)
        service_respond_error (up->service, up->msg, ENOSYS,
                               "rank 0 has no compressor: load it there with idtree module load -r 0 compressor");
    else
        service_respond_error (up->service, up->msg, idt_future_errnum (f), service_future_error (f));
    up_destroy (up);
}

void service_pass_on (struct service *sv, const idt_msg_t *msg)
{
    idt_future_t *f = idt_rpc (sv->h, idt_msg_topic (msg), idt_msg_string (msg), 0, 0);

    if (up_create (sv, f, passed_on_cb, msg) < 0)
        service_respond_error (sv, msg, errno, NULL);
}

void service_forget_ups (struct service *sv, const idt_msg_t *disconnect)
{
    struct up *up, *next;

    for (up = LIST_FIRST (&sv->ups); up; up = next) {
        next = LIST_NEXT (up, link);
        if (up->msg && service_same_client (up->msg, disconnect))
            up_destroy (up);
    }
}
