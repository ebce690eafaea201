/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* respond.c - a module's answers */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "libmodule/respond.h"

static void sent (idt_t *h, const idt_msg_t *msg, int rc)
{
    if (rc < 0)
        idt_log (h, LOG_ERR, "%s: cannot answer: %s", idt_msg_topic (msg), strerror (errno));
}

void module_respond (idt_t *h, const idt_msg_t *msg, const char *s)
{
    sent (h, msg, idt_respond (h, msg, s));
}

void module_respond_raw (idt_t *h, const idt_msg_t *msg, const void *data, size_t size)
{
    sent (h, msg, idt_respond_raw (h, msg, data, size));
}

void module_respond_error (idt_t *h, const idt_msg_t *msg, int errnum, const char *text)
{
    sent (h, msg, idt_respond_error (h, msg, errnum, text));
}

void module_respond_new (idt_t *h, const idt_msg_t *msg, char *s)
{
    if (s)
        module_respond (h, msg, s);
    else
        module_respond_error (h, msg, ENOMEM, NULL);
    free (s);
}

void module_respond_object (idt_t *h, const idt_msg_t *msg, json_t *o)
{
    module_respond_new (h, msg, o ? json_dumps (o, JSON_COMPACT) : NULL);
    json_decref (o);
}

bool module_same_client (const idt_msg_t *msg, const idt_msg_t *disconnect)
{
    const char *a = idt_msg_route_oldest (msg), *b = idt_msg_route_oldest (disconnect);

    return a && b && strcmp (a, b) == 0;
}
