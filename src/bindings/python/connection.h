/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.h - a connection: one object in connection.c (its handle, its calls), events.c (its events) and document.c
 * (its documents)
 *
 * Call connection_enter (), then use the handle, then call connection_leave (). Calls that may wait are made between
 * connection_unlock () and connection_relock (), while other Python threads run.
 */
#ifndef PYTHON_CONNECTION_H
#define PYTHON_CONNECTION_H

#include "extension.h"

#include <stdbool.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#define CONNECTION_SLICE_MS 50. /* time that the reactor runs before Python is asked whether to continue */

struct py_document;
struct events;
LIST_HEAD (document_list, py_document);

struct py_connection {
    PyObject_HEAD idt_t *h; /* NULL: closed */
    PyThread_type_lock lock;
    unsigned long owner;  /* the thread that holds the lock; 0: none */
    PyThreadState *state; /* of that thread, while other threads run */
    bool forked;
    bool closed;      /* no new call begins */
    bool interrupted; /* the current call must end */
    unsigned closing; /* threads that wait for the lock to close it */
    struct document_list documents;
    struct events *events; /* NULL: no subscriptions */
};

/* Begin a call with the handle. Returns false with an exception set. */
bool connection_enter (struct py_connection *c);
void connection_leave (struct py_connection *c);

/* Whether a waiting call continues. False, with an exception set, if a signal handler or another thread ends it. */
bool connection_goes_on (const struct py_connection *c);

static inline void connection_unlock (struct py_connection *c)
{
    c->state = PyEval_SaveThread ();
}

static inline void connection_relock (struct py_connection *c)
{
    PyEval_RestoreThread (c->state);
}

/* Set an exception for the errno of a call with the handle. Returns NULL. */
PyObject *connection_raise (struct py_connection *c, int errnum);

double connection_now_ms (void); /* CLOCK_MONOTONIC */

/* Wait for an answer, at most 'left_ms' (below 0: no limit). NULL as future: the request was not sent, and errno says
 * why. Returns its text, None if it is empty, or NULL with an exception set.
 */
PyObject *connection_wait_for (struct py_connection *c, idt_future_t *f, double left_ms);

/* Like connection_wait_for (); destroys the future. */
PyObject *connection_await (struct py_connection *c, idt_future_t *f, double left_ms);

/* --- document.c ----------------------------------------------------------------------------- */

/* Close the documents of a connection. */
void documents_close (struct py_connection *c);

/* --- events.c ------------------------------------------------------------------------------- */

PyObject *connection_subscribe (PyObject *self, PyObject *prefix);
PyObject *connection_unsubscribe (PyObject *self, PyObject *prefix);
PyObject *connection_event (PyObject *self, PyObject *args, PyObject *kwargs);
void events_destroy (struct py_connection *c);

#endif /* PYTHON_CONNECTION_H */
