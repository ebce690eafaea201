/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.c - the handlers of a handle: which one receives a request or event
 *
 * Tables are searched in the order in which they were added, and the first row that matches receives the message. Then
 * the methods that every module has (builtin.c) are searched. A request that no handler takes is answered with ENOSYS,
 * so that the requester does not wait in vain.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/private.h"
#include "libmsg/access.h"

#define LARGE_FACTOR 4             /* for IDT_HANDLER_LARGE, as documented in handle.h */
#define MAX_VALUES 2048            /* of a JSON text; reading it blocks other requests for about 1 ms */
#define FEW_BYTES (2 * MAX_VALUES) /* a text of this size cannot contain MAX_VALUES values */

struct handler_table {
    const struct idt_handler_spec *rows;
    void *arg;
    TAILQ_ENTRY (handler_table) link;
};

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

/* METHOD of a request for the module's own NAME.METHOD; NULL: the request is for another service. */
static const char *own_method (const idt_t *h, const idt_msg_t *msg, const char *topic)
{
    size_t len = h->module ? strlen (h->module) : 0;

    if (len == 0 || idt_msg_type (msg) != IDT_MSGTYPE_REQUEST)
        return NULL;
    return strncmp (topic, h->module, len) == 0 && topic[len] == '.' ? topic + len + 1 : NULL;
}

/* The row that takes a message, and the 'arg' of its table; NULL: no row takes it. */
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

/* Whether the sender has one of the wanted roles. IDT_ROLE_BROKER, if wanted, is required in addition to one of the
 * others.
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

/* A broker's request may combine many requests from its subtree, so the limit of values does not apply to it. */
static bool is_brokers (const idt_msg_t *request)
{
    return (idt_msg_cred (request).rolemask & IDT_ROLE_BROKER) != 0;
}

/* Refuse a request if its sender has no permitted role, or if its JSON text is too long to be parsed for the handler.
 * Returns whether the request was refused.
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
    else if (size > FEW_BYTES && !is_brokers (request) && msg_json_is_much (request, MAX_VALUES))
        refuse (h, request, EMSGSIZE, "a JSON text of more than %d values is too much for %s", MAX_VALUES, row->topic);
    else
        return false;
    return true;
}

/* A handler that sends one response receives a streaming request as a plain one, so that its response ends the request.
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
