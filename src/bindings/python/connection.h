/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.h - a connection, for what else uses its handle: its documents and events
 *
 * connection_enter (), then what is done with the handle, then connection_leave ().  What may wait is done between
 * connection_unlock () and connection_relock (), with other threads of Python running.
 */
#ifndef PYTHON_CONNECTION_H
#define PYTHON_CONNECTION_H

#include "extension.h"

#include <stdbool.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#define CONNECTION_SLICE_MS 50. /* that the reactor runs before Python is asked whether to go on */

struct py_document;
struct events;
LIST_HEAD (document_list, py_document);

struct py_connection {
    PyObject_HEAD idt_t *h; /* NULL: closed */
    PyThread_type_lock lock;
    unsigned long owner;  /* thread that holds the lock; 0: none */
    PyThreadState *state; /* of that thread, while other threads run */
    bool forked;
    bool closed;      /* nothing is begun any more */
    bool interrupted; /* the call under way is to end */
    unsigned closing; /* threads that wait for the lock to close it */
    struct document_list documents;
    struct events *events; /* NULL: none were subscribed to */
};

/* Begin a call with the handle.  Returns false with an exception set. */
bool connection_enter (struct py_connection *c);
void connection_leave (struct py_connection *c);

/* Whether a call that waits goes on: no handler of a signal and no other thread ends it.  Else an exception is set. */
bool connection_goes_on (const struct py_connection *c);

static inline void connection_unlock (struct py_connection *c)
{
    c->state = PyEval_SaveThread ();
}

static inline void connection_relock (struct py_connection *c)
{
    PyEval_RestoreThread (c->state);
}

/* Set an exception for an errno value of a call with the handle.  Returns NULL. */
PyObject *connection_raise (struct py_connection *c, int errnum);

double connection_now_ms (void); /* CLOCK_MONOTONIC */

/* Wait for an empty answer to what was asked; NULL: it was not, and errno says why.  Returns None, or NULL with an
 * exception set.
 */
PyObject *connection_wait (struct py_connection *c, idt_future_t *f);

/* The same, which destroys what was asked. */
PyObject *connection_await (struct py_connection *c, idt_future_t *f);

/* --- document.c ----------------------------------------------------------------------------- */

PyObject *document_type_create (PyObject *module);

/* Close those of a connection. */
void documents_close (struct py_connection *c);

/* --- events.c ------------------------------------------------------------------------------- */

PyObject *connection_subscribe (PyObject *self, PyObject *prefix);
PyObject *connection_unsubscribe (PyObject *self, PyObject *prefix);
PyObject *connection_event (PyObject *self, PyObject *args, PyObject *kwargs);
void events_destroy (struct py_connection *c);

#endif /* PYTHON_CONNECTION_H */
