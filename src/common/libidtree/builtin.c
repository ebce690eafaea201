/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* builtin.c - what every module answers without doing anything for it (RFC 5) */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "libidtree/private.h"

#define ROUTE_SHOWN 8 /* characters of each hop's UUID in the answer to a ping */

/* The hops of a request, oldest first: "98f3bf69!ae4a1b51!7bd090de". */
static json_t *route_text (const idt_msg_t *msg)
{
    char text[IDT_MSG_MAX_ROUTES * (ROUTE_SHOWN + 1) + 1];
    size_t len = 0;

    /* There is room: no message has more than IDT_MSG_MAX_ROUTES. */
    for (unsigned i = idt_msg_route_count (msg); i > 0; i--) {
        if (len > 0)
            text[len++] = '!';
        memcpy (text + len, idt_msg_route_at (msg, i - 1), ROUTE_SHOWN);
        len += ROUTE_SHOWN;
    }
    return json_stringn (text, len);
}

/* Send back what came, with how it came here. */
static void ping_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct idt_cred cred = idt_msg_cred (msg);
    idt_error_t error;
    uint32_t rank;
    json_t *o;

    if (!(o = idt_msg_json (msg, &error)))
        (void)idt_respond_error (h, msg, EPROTO, error.text);
    else if (idt_get_rank (h, &rank) < 0)
        (void)idt_respond_error (h, msg, errno, "rank of this broker is not known");
    else if (json_object_update_new (o, json_pack ("{s:o s:I s:I s:I}", "route", route_text (msg), "userid",
                                                   (json_int_t)cred.userid, "rolemask", (json_int_t)cred.rolemask,
                                                   "rank", (json_int_t)rank))
             < 0)
        (void)idt_respond_error (h, msg, ENOMEM, NULL);
    else
        (void)idt_respond_pack (h, msg, "O", o);
    json_decref (o);
}

static double seconds (struct timeval tv)
{
    return tv.tv_sec + tv.tv_usec * 1e-6;
}

/* What the module's thread used; an inline module's is the broker's. */
static void rusage_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct rusage ru;

    if (getrusage (RUSAGE_THREAD, &ru) < 0) {
        (void)idt_respond_error (h, msg, errno, NULL);
        return;
    }
    (void)idt_respond_pack (h, msg, "{s:f s:f s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I s:I}", "utime",
                            seconds (ru.ru_utime), "stime", seconds (ru.ru_stime), "maxrss", (json_int_t)ru.ru_maxrss,
                            "ixrss", (json_int_t)ru.ru_ixrss, "idrss", (json_int_t)ru.ru_idrss, "isrss",
                            (json_int_t)ru.ru_isrss, "minflt", (json_int_t)ru.ru_minflt, "majflt",
                            (json_int_t)ru.ru_majflt, "nswap", (json_int_t)ru.ru_nswap, "inblock",
                            (json_int_t)ru.ru_inblock, "oublock", (json_int_t)ru.ru_oublock, "msgsnd",
                            (json_int_t)ru.ru_msgsnd, "msgrcv", (json_int_t)ru.ru_msgrcv, "nsignals",
                            (json_int_t)ru.ru_nsignals, "nvcsw", (json_int_t)ru.ru_nvcsw, "nivcsw",
                            (json_int_t)ru.ru_nivcsw);
}

static void stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, "{}");
}

/* Nothing to be summed up over ranks. */
static void metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, "{}");
}

static void stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, NULL);
}

/* A client went away: a module that keeps something for its clients has a handler of its own. */
static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "ping", ping_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "rusage", rusage_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "stats-get", stats_get_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "stats-clear", stats_clear_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "metrics", metrics_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "disconnect", disconnect_cb, 0 },
    IDT_HANDLERS_END,
};

const struct idt_handler_spec *builtin_find (const char *method)
{
    for (const struct idt_handler_spec *row = handlers; row->topic; row++) {
        if (strcmp (row->topic, method) == 0)
            return row;
    }
    return NULL;
}
