/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - requests and events that reach a handle: which handler receives them, and responses
 *
 * Tables are searched in the order in which they were added, and the first row that matches receives the message. If no
 * row matches, the methods that every module has are searched. A request that no handler takes is answered with ENOSYS,
 * so that the requester does not wait in vain.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libidtree/handle.h"
#include "libidtree/json.h"
#include "libmsg/access.h"
#include "libutil/errprintf.h"

#define ROUTE_SHOWN 8              /* characters of each hop's UUID in the response to a ping */
#define LARGE_FACTOR 4             /* for IDT_HANDLER_LARGE, as documented in idtree/handle.h */
#define MAX_VALUES 2048            /* values of a JSON text; reading so many blocks other requests for about 1 ms */
#define FEW_BYTES (2 * MAX_VALUES) /* bytes: a text of this size has at most MAX_VALUES values */

struct handler_table {
    const struct idt_handler_spec *rows;
    void *arg;
    TAILQ_ENTRY (handler_table) link;
};

/* --- responses ------------------------------------------------------------------------------- */

/* A request with NORESPONSE gets no response. Every other request gets one: if the intended response cannot be made or
 * sent, an error response is sent instead. All responses go through answer_new ().
 */
static bool wants_response (const idt_msg_t *request)
{
    return !idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE);
}

/* Make an error response. If its text cannot be set, the response has no text. */
static idt_msg_t *make_error (const idt_msg_t *request, int errnum, const char *text)
{
    idt_msg_t *response = idt_msg_respond (request, (uint32_t)errnum);

    if (response)
        (void)idt_msg_set_string (response, text);
    return response;
}

/* Send an error response instead of the intended one. Returns -1; errno keeps its value, but 0 becomes EIO. */
static int answer_failed (idt_t *h, const idt_msg_t *request, const char *why)
{
    int errnum = errno > 0 ? errno : EIO;
    idt_error_t text;

    errprintf (&text, "the response cannot be made: %s", why);
    idt_msg_t *response = make_error (request, errnum, text.text);
    if (response)
        (void)idt_send (h, response);
    idt_msg_unref (response);
    return errset (errnum);
}

/* Send 'response' (stolen). If it is NULL because it could not be made, errno is the reason, and an error response is
 * sent.
 */
static int answer_new (idt_t *h, const idt_msg_t *request, idt_msg_t *response)
{
    int rc = response ? idt_send (h, response) : -1;

    idt_msg_unref (response);
    return rc < 0 ? answer_failed (h, request, strerror (errno)) : 0;
}

int idt_respond_raw (idt_t *h, const idt_msg_t *request, const void *data, size_t size)
{
    if (!wants_response (request))
        return 0;
    idt_msg_t *response = idt_msg_respond (request, 0);
    if (response && idt_msg_set_payload (response, data, size) < 0) {
        idt_msg_unref (response);
        response = NULL;
    }
    return answer_new (h, request, response);
}

int idt_respond (idt_t *h, const idt_msg_t *request, const char *s)
{
    return idt_respond_raw (h, request, s, s ? strlen (s) + 1 : 0);
}

int idt_respond_error (idt_t *h, const idt_msg_t *request, int errnum, const char *text)
{
    assert (errnum > 0);
    return wants_response (request) ? answer_new (h, request, make_error (request, errnum, text)) : 0;
}

int idt_respond_pack (idt_t *h, const idt_msg_t *request, const char *fmt, ...)
{
    idt_error_t error;
    va_list ap;

    va_start (ap, fmt);
    char *s = json_vpack_text (&error, fmt, ap);
    va_end (ap);
    if (!s) {
        if (errno == EINVAL) /* the requester would take EINVAL for its own mistake */
            errno = EPROTO;
        return wants_response (request) ? answer_failed (h, request, error.text) : -1;
    }
    int rc = idt_respond (h, request, s);
    free (s);
    return rc;
}

/* --- the methods that every module has without code of its own (RFC 5) ----------------------- */

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

/* Make the text of an object that has the members of 'o' and of 'more'. The text of 'o' is 'text'. 'o' and 'more' must
 * have no key in common. NULL: out of memory.
 */
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

/* Respond with the members of the request's object and of 'more'. The request's text is copied, and formatted again
 * only if both have a key in common.
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

/* Respond with the members of the request's object, and with the request's route and sender and this broker's rank. */
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

/* Read which usage is requested: {"who":s} as in Flux. The default is "thread", the module's thread. */
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

/* An inline module runs in the broker's thread, so its usage includes the broker's usage. */
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

/* The answer of a module that has no figures and no metrics. */
static void no_figures_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, "{}");
}

static void stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, NULL);
}

/* A client disconnected. Nothing is to be done: a module that keeps state for its clients has its own handler. */
static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
}

static const struct idt_handler_spec builtin[] = {
    { IDT_MSGTYPE_REQUEST, "ping", ping_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "rusage", rusage_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "stats-get", no_figures_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "stats-clear", stats_clear_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "metrics", no_figures_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "disconnect", disconnect_cb, 0 },
    IDT_HANDLERS_END,
};

/* The handler for METHOD of a module's NAME.METHOD; NULL: no built-in method has this name. */
static const struct idt_handler_spec *builtin_find (const char *method)
{
    for (const struct idt_handler_spec *row = builtin; row->topic; row++) {
        if (strcmp (row->topic, method) == 0)
            return row;
    }
    return NULL;
}

/* --- dispatch -------------------------------------------------------------------------------- */

static bool topic_matches (const char *pattern, const char *topic)
{
    size_t len = strlen (pattern);

    if (len > 0 && pattern[len - 1] == '*')
        return strncmp (pattern, topic, len - 1) == 0;
    return strcmp (pattern, topic) == 0;
}

static const struct idt_handler_spec *find_row (const struct idt_handler_spec *rows, const idt_msg_t *msg,
                                                const char *topic)
{
    for (; rows->topic; rows++) {
        if ((rows->type & idt_msg_type (msg)) && topic_matches (rows->topic, topic))
            return rows;
    }
    return NULL;
}

/* METHOD if a request is for NAME.METHOD and NAME is this module; NULL: the message is not such a request. */
static const char *own_method (const idt_t *h, const idt_msg_t *msg, const char *topic)
{
    size_t len = h->module ? strlen (h->module) : 0;

    if (len == 0 || idt_msg_type (msg) != IDT_MSGTYPE_REQUEST)
        return NULL;
    return strncmp (topic, h->module, len) == 0 && topic[len] == '.' ? topic + len + 1 : NULL;
}

/* Find the row that takes a message, and set '*arg' to the 'arg' of its table. NULL: no row takes it. */
static const struct idt_handler_spec *find_handler (const idt_t *h, const idt_msg_t *msg, void **arg)
{
    const char *topic = idt_msg_topic (msg) ? idt_msg_topic (msg) : "";
    struct handler_table *table;

    TAILQ_FOREACH (table, &h->handlers, link) {
        const struct idt_handler_spec *row = find_row (table->rows, msg, topic);
        if (row) {
            *arg = table->arg;
            return row;
        }
    }
    const char *method = own_method (h, msg, topic);
    *arg = NULL;
    return method ? builtin_find (method) : NULL;
}

/* The roles that may send to a row: its own rolemask, or if that is 0 the roles of the access table. */
static uint32_t row_roles (const struct idt_handler_spec *row)
{
    return row->rolemask ? row->rolemask : access_roles (row->topic);
}

/* Whether the sender has one of the wanted roles. If IDT_ROLE_BROKER is wanted, the sender must have it, and one of the
 * other wanted roles if there are any.
 */
static bool allowed (uint32_t wanted, const idt_msg_t *msg)
{
    uint32_t has = idt_msg_cred (msg).rolemask;

    if (wanted & IDT_ROLE_BROKER & ~has)
        return false;
    wanted &= ~(uint32_t)IDT_ROLE_BROKER;
    return wanted == 0 || (has & wanted);
}

static void refuse (idt_t *h, const idt_msg_t *request, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

static void refuse (idt_t *h, const idt_msg_t *request, int errnum, const char *fmt, ...)
{
    char text[IDT_MSG_MAX_TOPIC + 160];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    (void)idt_respond_error (h, request, errnum, text);
}

static void refuse_user (idt_t *h, const struct idt_handler_spec *row, const idt_msg_t *request)
{
    const char *topic = idt_msg_topic (request);
    uint32_t wanted = row_roles (row);

    if (wanted & IDT_ROLE_BROKER)
        refuse (h, request, EPERM, "%s is a request between %s: no client may send it", topic,
                wanted & IDT_ROLE_LOCAL ? "the modules of one broker" : "brokers");
    else if (row->rolemask)
        refuse (h, request, EPERM, "Request requires a role that the user does not have");
    else
        refuse (h, request, EPERM, "%s is for the owner of the instance%s: user %" PRIu32 " may not send it", topic,
                wanted & IDT_ROLE_GROUP ? " and members of access.group" : "", idt_msg_cred (request).userid);
}

/* Whether a broker sent the request. Such a request may combine many requests from the broker's subtree, so the limit
 * of values does not apply to it.
 */
static bool is_brokers (const idt_msg_t *request)
{
    return (idt_msg_cred (request).rolemask & IDT_ROLE_BROKER) != 0;
}

/* Refuse a request if its sender has no permitted role, or if its JSON text is too long or has too many values. Returns
 * whether the request was refused.
 */
static bool refused (idt_t *h, const struct idt_handler_spec *row, const idt_msg_t *request)
{
    size_t limit = row->type & IDT_HANDLER_LARGE ? LARGE_FACTOR * h->max_json : h->max_json, size;
    const void *data;

    if (!allowed (row_roles (row), request)) {
        refuse_user (h, row, request);
        return true;
    }
    if (limit == 0 || idt_msg_payload (request, &data, &size) < 0 || size == 0
        || ((const char *)data)[size - 1] != '\0')
        return false;
    if (size > limit)
        refuse (h, request, EMSGSIZE, "a JSON text of %zu bytes is too long for %s: the limit is %zu (broker.max-json)",
                size, row->topic, limit);
    else if (size > FEW_BYTES && !is_brokers (request) && json_msg_is_large (request, MAX_VALUES))
        refuse (h, request, EMSGSIZE, "a JSON text of more than %d values is too much for %s", MAX_VALUES, row->topic);
    else
        return false;
    return true;
}

/* Call a handler that sends one response for a streaming request. The handler receives the request without the
 * streaming flag, so that its response ends the request.
 */
static void call_handler (idt_t *h, const struct idt_handler_spec *row, const idt_msg_t *msg, void *arg)
{
    idt_msg_t *plain = idt_msg_copy (msg, true);

    if (!plain) {
        (void)idt_respond_error (h, msg, ENOMEM, NULL);
        return;
    }
    idt_msg_clear_flag (plain, IDT_MSGFLAG_STREAMING);
    row->cb (h, plain, arg);
    idt_msg_unref (plain);
}

void service_dispatch (idt_t *h, const idt_msg_t *msg)
{
    bool is_request = idt_msg_type (msg) == IDT_MSGTYPE_REQUEST;
    const char *topic = idt_msg_topic (msg);
    void *arg;
    const struct idt_handler_spec *row = find_handler (h, msg, &arg);

    if (!row && is_request)
        refuse (h, msg, ENOSYS, "Unknown service method '%s'", topic ? topic : "");
    if (!row || (is_request && refused (h, row, msg)))
        return;
    if (idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING) && !(row->type & IDT_HANDLER_STREAM))
        call_handler (h, row, msg, arg);
    else
        row->cb (h, msg, arg);
}

/* --- tables --------------------------------------------------------------------------------- */

int idt_handlers_add (idt_t *h, const struct idt_handler_spec *rows, void *arg)
{
    struct handler_table *table = calloc (1, sizeof (*table));

    if (!table)
        return -1;
    table->rows = rows;
    table->arg = arg;
    TAILQ_INSERT_TAIL (&h->handlers, table, link);
    handle_interest (h, 1);
    return 0;
}

static void table_destroy (idt_t *h, struct handler_table *table)
{
    TAILQ_REMOVE (&h->handlers, table, link);
    handle_interest (h, -1);
    free (table);
}

void idt_handlers_remove (idt_t *h, const struct idt_handler_spec *rows)
{
    struct handler_table *table;

    TAILQ_FOREACH (table, &h->handlers, link) {
        if (table->rows == rows) {
            table_destroy (h, table);
            return;
        }
    }
}

void service_fini (idt_t *h)
{
    struct handler_table *table;

    while ((table = TAILQ_FIRST (&h->handlers)))
        table_destroy (h, table);
}

void idt_handle_set_max_json (idt_t *h, size_t size)
{
    h->max_json = size;
}

int idt_handle_set_module (idt_t *h, const char *name)
{
    char *copy = strdup (name);

    if (!copy)
        return -1;
    free (h->module);
    h->module = copy;
    return 0;
}
