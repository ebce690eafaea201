/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.h - a connection: one object that connection.c (its handle, its calls), events.c (its events) and
 * document.c (its documents) share
 *
 * Call connection_enter (), then use the handle, then call connection_leave (). If a call with the handle may wait, put
 * it between connection_unlock () and connection_relock (), so that other Python threads run.
 */
#ifndef PYTHON_CONNECTION_H
#define PYTHON_CONNECTION_H

#include "extension.h"

#include <stdbool.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#define CONNECTION_SLICE_MS 50. /* how long the reactor runs until Python is asked whether to continue */

struct py_document;
struct events;
LIST_HEAD (document_list, py_document);

struct py_connection {
    PyObject_HEAD idt_t *h; /* NULL: the connection is closed */
    PyThread_type_lock lock;
    unsigned long owner;  /* the thread that holds the lock; 0: none */
    PyThreadState *state; /* state of this thread while other threads run */
    bool forked;
    bool closed;      /* no new call may begin */
    bool interrupted; /* the current call must end */
    unsigned closing; /* number of threads that wait for the lock to close the connection */
    struct document_list documents;
    struct events *events; /* NULL: no subscriptions */
};

/* connection_enter (): begin a call with the handle. Returns false with an exception set. connection_leave (): end the
 * call.
 */
bool connection_enter (struct py_connection *c);
void connection_leave (struct py_connection *c);

/* Whether a waiting call must continue. Returns false, with an exception set, if a signal handler or another thread has
 * ended the call.
 */
bool connection_goes_on (const struct py_connection *c);

static inline void connection_unlock (struct py_connection *c)
{
    c->state = PyEval_SaveThread ();
}

static inline void connection_relock (struct py_connection *c)
{
    PyEval_RestoreThread (c->state);
}

/* Set an exception for 'errnum', the errno of a call with the handle. Returns NULL. */
PyObject *connection_raise (struct py_connection *c, int errnum);

double connection_now_ms (void); /* CLOCK_MONOTONIC */

/* Wait for the answer to 'f', at most 'left_ms' (below 0: no limit). 'f' is NULL if the request could not be sent;
 * errno then says why. Returns the text of the answer, None if the answer is empty, or NULL with an exception set.
 */
PyObject *connection_wait_for (struct py_connection *c, idt_future_t *f, double left_ms);

/* Like connection_wait_for (), but destroys the future, too. */
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
