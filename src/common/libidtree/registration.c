/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* registration.c - registrations: event subscriptions and service names that a broker keeps for a connection. When a
 * client reconnects, its registrations are repeated.
 *
 * The broker filters events: each connection receives the events that it subscribed to. Only rank 0 numbers and
 * publishes events.
 *
 * A registration is stored as the request that made it. While that request is unanswered, the caller is responsible for
 * it: if the connection is lost, the request fails and the registration is dropped. A completed registration is
 * requested again over each new connection, before any other message is sent (connector.h).
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/handle.h"
#include "libutil/base64.h"

#define SUBSCRIBE "event.subscribe"

struct registration {
    idt_msg_t *request;
    idt_future_t *f;     /* the unanswered request; NULL: the registration is complete */
    unsigned connection; /* number of the connection over which the registration was requested; 0: not requested */
    TAILQ_ENTRY (registration) link;
};

/* --- one registration ----------------------------------------------------------------------- */

static void registration_destroy (idt_t *h, struct registration *b)
{
    if (b->f)
        b->f->ended = NULL;
    TAILQ_REMOVE (&h->registrations, b, link);
    idt_msg_unref (b->request);
    free (b);
}

static struct registration *registration_create (idt_t *h, const char *topic, const char *text)
{
    struct registration *b = calloc (1, sizeof (*b));

    if (!b)
        return NULL;
    if ((b->request = idt_msg_create (IDT_MSGTYPE_REQUEST)) && idt_msg_set_topic (b->request, topic) == 0
        && idt_msg_set_string (b->request, text) == 0) {
        TAILQ_INSERT_TAIL (&h->registrations, b, link);
        return b;
    }
    idt_msg_unref (b->request);
    free (b);
    return NULL;
}

static struct registration *registration_find (const idt_t *h, const char *topic, const char *text)
{
    struct registration *b;

    TAILQ_FOREACH (b, &h->registrations, link)
        if (strcmp (idt_msg_topic (b->request), topic) == 0 && strcmp (idt_msg_string (b->request), text) == 0)
            return b;
    return NULL;
}

/* Called when the request succeeded or failed, or when its future is destroyed unanswered. */
static void request_ended (idt_future_t *f)
{
    struct registration *b = f->registration;

    assert (b->f == f);
    b->f = NULL;
    if (f->errnum != 0)
        registration_destroy (f->h, b);
    else if (!f->ready && f->h->lost) /* the message still waits for a connection, and is not sent without its future */
        b->connection = 0;
}

/* --- all registrations of a handle ---------------------------------------------------------- */

int registration_repeat (idt_t *h, struct connector *attempt)
{
    struct registration *b;

    TAILQ_FOREACH (b, &h->registrations, link) {
        if (b->f)
            continue;
        if (connector_ask (attempt, b->request) < 0)
            return -1;
        b->connection = h->connections;
    }
    return 0;
}

void registration_repeat_late (idt_t *h)
{
    struct registration *b;

    TAILQ_FOREACH (b, &h->registrations, link) {
        if (b->f || b->connection == h->connections)
            continue;
        b->connection = h->connections;
        idt_future_destroy (idt_rpc (h, idt_msg_topic (b->request), idt_msg_string (b->request), IDT_NODEID_ANY, 0));
    }
}

bool registration_subscribed (const idt_t *h)
{
    struct registration *b;

    TAILQ_FOREACH (b, &h->registrations, link)
        if (strcmp (idt_msg_topic (b->request), SUBSCRIBE) == 0)
            return true;
    return false;
}

void registration_fini (idt_t *h)
{
    while (!TAILQ_EMPTY (&h->registrations))
        registration_destroy (h, TAILQ_FIRST (&h->registrations));
}

/* --- add and remove ------------------------------------------------------------------------- */

static char *name_text (const char *key, const char *name)
{
    json_t *o = json_pack ("{s:s}", key, name);
    char *text = o ? json_dumps (o, JSON_COMPACT) : NULL;

    json_decref (o);
    if (!text)
        errno = EINVAL;
    return text;
}

static idt_future_t *begin (idt_t *h, const char *topic, const char *text)
{
    bool lasting = handle_may_follow (h);
    struct registration *b = lasting ? registration_create (h, topic, text) : NULL;

    if (lasting && !b)
        return NULL;
    idt_future_t *f = idt_rpc (h, topic, text, IDT_NODEID_ANY, RPC_TYPED);
    if (f && b) {
        b->f = f;
        b->connection = f->connection;
        f->registration = b;
        f->ended = request_ended;
    }
    else if (b)
        registration_destroy (h, b);
    return f;
}

/* Remove a registration while the handle is not connected. No broker knows it, with one exception: a connection attempt
 * in progress may already have sent it. Then the attempt is started again.
 */
static void end_unconnected (idt_t *h, struct registration *b)
{
    bool current = b->connection == h->connections;

    if (b->f && current)
        future_cancel (b->f); /* this also drops the registration */
    else {
        registration_destroy (h, b);
        if (current)
            connection_restart (h->connection);
    }
}

static idt_future_t *end (idt_t *h, const char *begun, const char *topic, const char *text)
{
    struct registration *b = registration_find (h, begun, text);

    if (!b || !h->lost) {
        if (b)
            registration_destroy (h, b);
        return idt_rpc (h, topic, text, IDT_NODEID_ANY, 0);
    }
    idt_future_t *f = future_create (h);
    if (f) {
        f->ready = true;
        end_unconnected (h, b);
    }
    return f;
}

static idt_future_t *change (idt_t *h, const char *begun, const char *ended, const char *key, const char *name)
{
    char *text = name_text (key, name);
    idt_future_t *f = NULL;

    if (text)
        f = ended ? end (h, begun, ended, text) : begin (h, begun, text);
    int saved_errno = errno;
    free (text);
    errno = saved_errno;
    return f;
}

idt_future_t *idt_event_subscribe (idt_t *h, const char *prefix)
{
    return change (h, SUBSCRIBE, NULL, "topic", prefix);
}

idt_future_t *idt_event_unsubscribe (idt_t *h, const char *prefix)
{
    return change (h, SUBSCRIBE, "event.unsubscribe", "topic", prefix);
}

idt_future_t *idt_service_add (idt_t *h, const char *name)
{
    return change (h, "service.add", NULL, "service", name);
}

idt_future_t *idt_service_remove (idt_t *h, const char *name)
{
    return change (h, "service.add", "service.remove", "service", name);
}

/* --- publish -------------------------------------------------------------------------------- */

idt_future_t *idt_event_publish (idt_t *h, const char *topic, int flags, const char *s)
{
    if (!s)
        return idt_rpc_pack (h, "event.publish", 0, RPC_TYPED, "{s:s s:i}", "topic", topic, "flags", flags);
    size_t size = strlen (s) + 1; /* with its NUL */
    char *text = malloc (BASE64_ENCODED_SIZE (size) + 1);
    if (!text)
        return NULL;
    base64_encode (s, size, text);
    idt_future_t *f = idt_rpc_pack (h, "event.publish", 0, RPC_TYPED, "{s:s s:i s:s}", "topic", topic, "flags", flags,
                                    "payload", text);
    free (text);
    return f;
}
