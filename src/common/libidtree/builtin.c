/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* builtin.c - the methods that every module has without code of its own (RFC 5) */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libidtree/private.h"
#include "libutil/errprintf.h"

#define ROUTE_SHOWN 8 /* characters of each hop's UUID in the response to a ping */

/* The hops of a request, oldest first: "98f3bf69!ae4a1b51!7bd090de". */
static json_t *route_text (const idt_msg_t *msg)
{
    char text[IDT_MSG_MAX_ROUTES * (ROUTE_SHOWN + 1) + 1];
    size_t len = 0;

    /* This fits: a message has at most IDT_MSG_MAX_ROUTES hops. */
    for (unsigned i = idt_msg_route_count (msg); i > 0; i--) {
        if (len > 0)
            text[len++] = '!';
        memcpy (text + len, idt_msg_route_at (msg, i - 1), ROUTE_SHOWN);
        len += ROUTE_SHOWN;
    }
    return json_stringn (text, len);
}

/* The text of an object with the members of 'more' added; the two must have no key in common. NULL: out of memory. */
static char *join_objects (const char *text, const json_t *o, const json_t *more)
{
    char *end = json_dumps (more, JSON_COMPACT), *joined = NULL;
    size_t len = (size_t)(strrchr (text, '}') - text);

    if (end && (joined = malloc (len + strlen (end) + 1))) {
        memcpy (joined, text, len);
        joined[len] = json_object_size (o) > 0 ? ',' : ' ';
        strcpy (joined + len + 1, end + 1);
    }
    free (end);
    return joined;
}

static bool have_common (json_t *a, json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach (a, key, value)
        if (json_object_get (b, key))
            return true;
    return false;
}

/* Respond with the request's object and 'more'. Unless both have a key in common, the request's text is not formatted
 * again.
 */
static void send_back (idt_t *h, const idt_msg_t *msg, json_t *o, json_t *more)
{
    char *text = NULL;

    if (more && have_common (more, o))
        text = json_object_update (o, more) == 0 ? json_dumps (o, JSON_COMPACT) : NULL;
    else if (more)
        text = join_objects (idt_msg_string (msg), o, more);
    if (text)
        (void)idt_respond (h, msg, text);
    else
        (void)idt_respond_error (h, msg, ENOMEM, NULL);
    free (text);
}

/* Respond with the request's object, and with its route, sender and this broker's rank. */
static void ping_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct idt_cred cred = idt_msg_cred (msg);
    idt_error_t error;
    uint32_t rank;
    json_t *o, *more;

    if (!(o = idt_msg_json (msg, &error)))
        (void)idt_respond_error (h, msg, EPROTO, error.text);
    else if (idt_get_rank (h, &rank) < 0)
        (void)idt_respond_error (h, msg, errno, "the rank of this broker is not known");
    else {
        more = json_pack ("{s:o s:I s:I s:I}", "route", route_text (msg), "userid", (json_int_t)cred.userid, "rolemask",
                          (json_int_t)cred.rolemask, "rank", (json_int_t)rank);
        send_back (h, msg, o, more);
        json_decref (more);
    }
    json_decref (o);
}

static double seconds (struct timeval tv)
{
    return tv.tv_sec + tv.tv_usec * 1e-6;
}

/* Whose usage is requested: {"who":s} as in Flux. The default is "thread", the module's thread. */
static int parse_who (const char *name, int *who)
{
    static const struct {
        const char *name;
        int who;
    } all[] = { { "self", RUSAGE_SELF }, { "children", RUSAGE_CHILDREN }, { "thread", RUSAGE_THREAD } };

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        if (strcmp (name, all[i].name) == 0) {
            *who = all[i].who;
            return 0;
        }
    return -1;
}

static int read_who (idt_t *h, const idt_msg_t *msg, int *who)
{
    const char *name = "thread";
    idt_error_t error;
    json_t *o = NULL;
    int rc;

    if (idt_msg_string (msg) && idt_msg_unpack (msg, &o, &error, "{s?s}", "who", &name) < 0) {
        (void)idt_respond_error (h, msg, EPROTO, error.text);
        return -1;
    }
    if ((rc = parse_who (name, who)) < 0) {
        errsetf (&error, EINVAL, "who must be self, children or thread, not \"%.64s\"", name);
        (void)idt_respond_error (h, msg, EINVAL, error.text);
    }
    json_decref (o);
    return rc;
}

/* An inline module runs in the broker's thread, so its usage includes the broker's. */
static void rusage_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct rusage ru;
    int who;

    if (read_who (h, msg, &who) < 0)
        return;
    if (getrusage (who, &ru) < 0) {
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

/* No figures that are added up over ranks. */
static void metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, "{}");
}

static void stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, NULL);
}

/* A client disconnected. A module that keeps state for its clients has its own handler. */
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
