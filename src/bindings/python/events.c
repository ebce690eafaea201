/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* events.c - the events that a connection subscribed to, stored until the program reads them
 *
 * Events arrive while the reactor runs: in _event (), and while documents wait. Events that only documents have
 * subscribed to are not stored. If EVENTS_MAX events are stored, new ones are dropped, and their number is reported.
 */
#include "connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 4096
#define LOST_TOPIC "event.lost" /* the connection was lost and made again, which all subscribers must know */

struct prefix {
    LIST_ENTRY (prefix) link;
    size_t len;
    char text[];
};

struct events {
    LIST_HEAD (, prefix) prefixes; /* one for each subscription */
    const idt_msg_t *msg[EVENTS_MAX];
    unsigned head, count;
    unsigned lost;        /* number of events that were dropped since the last report */
    idt_watcher_t *slice; /* a timer that makes the reactor return */
};

/* --- which ones ----------------------------------------------------------------------------- */

/* Add a prefix. Returns it, or NULL with errno set. */
static struct prefix *prefix_add (struct events *e, const char *text)
{
    size_t len = strlen (text);
    struct prefix *p = malloc (sizeof (*p) + len + 1);

    if (!p)
        return NULL;
    p->len = len;
    memcpy (p->text, text, len + 1);
    LIST_INSERT_HEAD (&e->prefixes, p, link);
    return p;
}

static void prefix_remove (struct prefix *p)
{
    if (!p)
        return;
    LIST_REMOVE (p, link);
    free (p);
}

static struct prefix *prefix_find (const struct events *e, const char *text)
{
    struct prefix *p;

    LIST_FOREACH (p, &e->prefixes, link)
        if (strcmp (p->text, text) == 0)
            return p;
    return NULL;
}

static bool is_wanted (const struct events *e, const idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    const struct prefix *p;

    if (strcmp (topic, LOST_TOPIC) == 0)
        return true;
    LIST_FOREACH (p, &e->prefixes, link)
        if (strncmp (topic, p->text, p->len) == 0)
            return true;
    return false;
}

/* Drop the stored events that no subscription matches any longer. */
static void sift (struct events *e)
{
    unsigned count = e->count;

    e->count = 0;
    for (unsigned i = 0; i < count; i++) {
        const idt_msg_t *msg = e->msg[(e->head + i) % EVENTS_MAX];
        if (is_wanted (e, msg))
            e->msg[(e->head + e->count++) % EVENTS_MAX] = msg;
        else
            idt_msg_unref (msg);
    }
}

/* --- life ----------------------------------------------------------------------------------- */

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct events *e = arg;

    if (!is_wanted (e, msg))
        return;
    if (e->count < EVENTS_MAX)
        e->msg[(e->head + e->count++) % EVENTS_MAX] = idt_msg_ref (msg);
    else
        e->lost++;
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    IDT_HANDLERS_END,
};

/* Make the reactor return. */
static void slice_cb (idt_watcher_t *w, int revents, void *arg)
{
}

/* Begin to store events. Returns 0, or -1 with errno set. */
static int begin (struct py_connection *c)
{
    struct events *e = c->events ? c->events : calloc (1, sizeof (*e));

    if (c->events || !e)
        return e ? 0 : -1;
    idt_reactor_t *r = idt_get_reactor (c->h);
    if ((e->slice = idt_timer_watcher_create (r, 0, 0, slice_cb, NULL)) && idt_handlers_add (c->h, handlers, e) == 0) {
        c->events = e;
        return 0;
    }
    idt_watcher_destroy (e->slice);
    free (e);
    return -1;
}

void events_destroy (struct py_connection *c)
{
    struct events *e = c->events;

    if (!e)
        return;
    idt_handlers_remove (c->h, handlers);
    while (!LIST_EMPTY (&e->prefixes))
        prefix_remove (LIST_FIRST (&e->prefixes));
    idt_watcher_destroy (e->slice);
    for (; e->count > 0; e->count--)
        idt_msg_unref (e->msg[e->head++ % EVENTS_MAX]);
    free (e);
    c->events = NULL;
}

/* Subscribe at the broker. If a signal or another thread ends the call before the answer, the call unsubscribes again.
 * The broker only counts the subscriptions of a prefix, so it does not matter which of several equal subscriptions
 * ends.
 */
static PyObject *ask (struct py_connection *c, const char *text)
{
    idt_future_t *f = idt_event_subscribe (c->h, text);
    PyObject *done = connection_wait_for (c, f, -1);
    bool unanswered = f && !idt_future_is_ready (f);

    idt_future_destroy (f);
    if (unanswered)
        idt_future_destroy (idt_event_unsubscribe (c->h, text));
    return done;
}

PyObject *connection_subscribe (PyObject *self, PyObject *prefix)
{
    struct py_connection *c = (struct py_connection *)self;
    const char *text = PyUnicode_AsUTF8AndSize (prefix, NULL);
    PyObject *done = NULL;

    struct prefix *p = NULL;

    if (!text || !connection_enter (c))
        return NULL;
    if (begin (c) < 0 || !(p = prefix_add (c->events, text)))
        (void)connection_raise (c, errno);
    else if (!(done = ask (c, text)))
        prefix_remove (p);
    connection_leave (c);
    return done;
}

PyObject *connection_unsubscribe (PyObject *self, PyObject *prefix)
{
    struct py_connection *c = (struct py_connection *)self;
    const char *text = PyUnicode_AsUTF8AndSize (prefix, NULL);

    if (!text || !connection_enter (c))
        return NULL;
    PyObject *done = connection_await (c, idt_event_unsubscribe (c->h, text), -1);
    if (done && c->events) {
        prefix_remove (prefix_find (c->events, text));
        sift (c->events);
    }
    connection_leave (c);
    return done;
}

/* --- waiting -------------------------------------------------------------------------------- */

/* Run the reactor until something arrives, or for 'ms'. Other messages than events end the wait, too. Returns 0, or -1
 * with an exception set.
 */
static int run (struct py_connection *c, double ms)
{
    connection_unlock (c);
    idt_timer_watcher_reset (c->events->slice, ms, 0);
    idt_watcher_start (c->events->slice);
    int rc = idt_reactor_run (idt_get_reactor (c->h), IDT_REACTOR_ONCE);
    int errnum = errno;
    idt_watcher_stop (c->events->slice);
    connection_relock (c);
    if (rc < 0)
        (void)connection_raise (c, errnum);
    return rc < 0 || !connection_goes_on (c) ? -1 : 0;
}

/* Remove the oldest event, and return it. */
static PyObject *pop (struct events *e)
{
    const idt_msg_t *msg = e->msg[e->head++ % EVENTS_MAX];
    const char *text = idt_msg_has_flag (msg, IDT_MSGFLAG_PAYLOAD) ? idt_msg_string (msg) : NULL;
    PyObject *event = Py_BuildValue ("(szI)", idt_msg_topic (msg), text, (unsigned)idt_msg_seq (msg));

    e->head %= EVENTS_MAX;
    e->count--;
    idt_msg_unref (msg);
    return event;
}

PyObject *connection_event (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "timeout", NULL };
    struct py_connection *c = (struct py_connection *)self;
    double timeout_s = -1;
    int rc = 0;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|O&", names, take_timeout, &timeout_s) || !connection_enter (c))
        return NULL;
    const double end_ms = connection_now_ms () + timeout_s * 1e3;
    if (!c->events) {
        PyErr_SetString (PyExc_ValueError, "no events were subscribed to");
        rc = -1;
    }
    while (rc == 0 && c->events->count == 0 && c->events->lost == 0) {
        double left_ms = timeout_s < 0 ? CONNECTION_SLICE_MS : end_ms - connection_now_ms ();
        rc = run (c, left_ms < 0 ? 0 : left_ms < CONNECTION_SLICE_MS ? left_ms : CONNECTION_SLICE_MS);
        if (left_ms <= 0)
            break;
    }
    PyObject *event = NULL;
    if (rc == 0 && c->events->count > 0)
        event = pop (c->events);
    else if (rc == 0 && c->events->lost > 0) {
        c->events->lost = 0;
        (void)raise_errno (ENOBUFS, "events were lost: read them more often");
    }
    else if (rc == 0)
        (void)raise_errno (ETIMEDOUT, "no event within the timeout");
    connection_leave (c);
    return event;
}
