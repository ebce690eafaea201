/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - answers, and requests that went up
 *
 * An answer that cannot be made is an error to who asked (idt_respond ()), and is logged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "modules/fluid/service/service.h"

/* --- answers ------------------------------------------------------------------------------------------- */

static void sent (struct service *sv, const idt_msg_t *msg, int rc)
{
    if (rc < 0)
        idt_log (sv->h, LOG_ERR, "%s: cannot answer: %s", idt_msg_topic (msg), strerror (errno));
}

void service_respond (struct service *sv, const idt_msg_t *msg, const char *s)
{
    sent (sv, msg, idt_respond (sv->h, msg, s));
}

void service_respond_raw (struct service *sv, const idt_msg_t *msg, const void *data, size_t size)
{
    sent (sv, msg, idt_respond_raw (sv->h, msg, data, size));
}

void service_respond_error (struct service *sv, const idt_msg_t *msg, int errnum, const char *text)
{
    sent (sv, msg, idt_respond_error (sv->h, msg, errnum, text));
}

void service_respond_object (struct service *sv, const idt_msg_t *msg, json_t *o)
{
    char *s = o ? json_dumps (o, JSON_COMPACT) : NULL;

    if (s)
        service_respond (sv, msg, s);
    else
        service_respond_error (sv, msg, ENOMEM, NULL);
    free (s);
    json_decref (o);
}

/* --- requests that went up ------------------------------------------------------------------------------- */

void up_destroy (struct up *up)
{
    if (!up)
        return;
    LIST_REMOVE (up, link);
    idt_future_destroy (up->f);
    idt_msg_unref (up->msg);
    free (up);
}

struct up *up_create (struct service *sv, idt_future_t *f, idt_future_f cb)
{
    struct up *up = f ? calloc (1, sizeof (*up)) : NULL;

    if (!up) {
        idt_future_destroy (f);
        return NULL;
    }
    up->service = sv;
    up->f = f;
    LIST_INSERT_HEAD (&sv->ups, up, link);
    if (idt_future_then (f, -1, cb, up) < 0) {
        up_destroy (up);
        return NULL;
    }
    return up;
}

int service_tell_up (struct service *sv, const char *topic, json_t *o)
{
    idt_future_t *f = idt_rpc_pack (sv->h, topic, IDT_NODEID_UPSTREAM, IDT_RPC_NORESPONSE, "o", o);

    if (!f)
        return -1;
    idt_future_destroy (f);
    return 0;
}
