/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - documents of the id compressor: a session in a document that the instance shares
 *
 * A document uses the handle of its connection. Therefore it uses the connection's lock, keeps the connection alive,
 * and ends when the connection is closed.
 */
#include "compressor.h"
#include "connection.h"

#include <errno.h>
#include <string.h>

struct py_document {
    struct session session; /* must be first */
    struct py_connection *c;
    idt_document_t *d; /* NULL: closed */
    unsigned closing;  /* threads that wait for the connection's lock to close it */
    LIST_ENTRY (py_document) link;
};

/* --- one call at a time --------------------------------------------------------------------- */

static bool raise_closed (void)
{
    PyErr_SetString (PyExc_ValueError, "the document is closed");
    return false;
}

static bool goes_on (const struct py_document *d)
{
    return connection_goes_on (d->c) && (!d->closing || raise_closed ());
}

static bool enter (struct py_document *d)
{
    if (d->c && d->d) {
        if (!connection_enter (d->c))
            return false;
        if (d->d)
            return true;
        connection_leave (d->c);
    }
    return raise_closed ();
}

static struct idcomp *document_begin (PyObject *self)
{
    struct py_document *d = (struct py_document *)self;

    return enter (d) ? idt_document_ids (d->d) : NULL;
}

static void document_end (PyObject *self)
{
    connection_leave (((struct py_document *)self)->c);
}

/* Raise the document's own error if it has one. */
static PyObject *raise_document (struct py_document *d, int errnum)
{
    const char *text = errnum == EPIPE ? idt_document_error (d->d) : NULL;

    return text ? raise_errno (errnum, text) : connection_raise (d->c, errnum);
}

/* --- waiting -------------------------------------------------------------------------------- */

static PyObject *wait_with (PyObject *self, PyObject *args, PyObject *kwargs,
                            int (*wait) (idt_document_t *d, double timeout_ms))
{
    static char *names[] = { "timeout", NULL };
    struct py_document *d = (struct py_document *)self;
    double left_ms = -1;
    int rc, errnum;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|O&", names, take_timeout, &left_ms) || !enter (d))
        return NULL;
    left_ms *= 1e3;
    do {
        double ms = left_ms < 0 || left_ms > CONNECTION_SLICE_MS ? CONNECTION_SLICE_MS : left_ms;
        connection_unlock (d->c);
        rc = wait (d->d, ms);
        errnum = errno;
        connection_relock (d->c);
        if (left_ms >= 0)
            left_ms = left_ms > ms ? left_ms - ms : 0;
    } while (rc < 0 && errnum == ETIMEDOUT && left_ms != 0 && goes_on (d));
    PyObject *done = rc == 0 ? Py_NewRef (Py_None) : PyErr_Occurred () ? NULL : raise_document (d, errnum);
    connection_leave (d->c);
    return done;
}

static PyObject *settle (PyObject *self, PyObject *args, PyObject *kwargs)
{
    return wait_with (self, args, kwargs, idt_document_settle);
}

static PyObject *sync_ (PyObject *self, PyObject *args, PyObject *kwargs)
{
    return wait_with (self, args, kwargs, idt_document_sync);
}

/* --- life ----------------------------------------------------------------------------------- */

/* The caller holds the lock, or is the only user of the connection. */
static void end (struct py_document *d)
{
    if (!d->d)
        return;
    LIST_REMOVE (d, link);
    if (!d->c->forked) /* otherwise it would send a message over the parent's connection */
        idt_document_close (d->d);
    d->d = NULL;
}

void documents_close (struct py_connection *c)
{
    while (!LIST_EMPTY (&c->documents))
        end (LIST_FIRST (&c->documents));
}

static int document_init (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "connection", "name", "timeout", NULL };
    struct py_document *d = (struct py_document *)self;
    double timeout_s = 30;
    PyObject *connection;
    idt_error_t error;
    const char *name;

    PyObject *module = PyType_GetModule (Py_TYPE (self)); /* borrowed */
    PyObject *type = module ? PyObject_GetAttrString (module, "Connection") : NULL;
    if (!type
        || !PyArg_ParseTupleAndKeywords (args, kwargs, "O!s|O&", names, type, &connection, &name, take_timeout,
                                         &timeout_s)) {
        Py_XDECREF (type);
        return -1;
    }
    Py_DECREF (type);
    if (d->c) {
        PyErr_SetString (PyExc_ValueError, "a document can be opened only once");
        return -1;
    }
    d->c = (struct py_connection *)Py_NewRef (connection);
    d->session.enter = document_begin;
    d->session.leave = document_end;
    if (!connection_enter (d->c))
        return -1;
    connection_unlock (d->c);
    d->d = idt_document_open (d->c->h, name, timeout_s * 1e3, &error);
    int errnum = errno;
    connection_relock (d->c);
    if (d->d)
        LIST_INSERT_HEAD (&d->c->documents, d, link);
    else
        (void)raise_errno (errnum, error.text);
    connection_leave (d->c);
    return d->d ? 0 : -1;
}

static PyObject *document_close (PyObject *self, PyObject *unused)
{
    struct py_document *d = (struct py_document *)self;

    if (!d->d || d->c->forked)
        return Py_NewRef (Py_None);
    d->closing++;
    bool entered = connection_enter (d->c);
    d->closing--;
    if (!entered)
        return NULL;
    end (d);
    connection_leave (d->c);
    return Py_NewRef (Py_None);
}

/* The attributes of a connection may refer to it. */
static int document_traverse (PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT (Py_TYPE (self));
    Py_VISIT ((PyObject *)((struct py_document *)self)->c);
    return 0;
}

/* This is the last reference, but another thread may be using the connection. */
static void document_dealloc (PyObject *self)
{
    struct py_document *d = (struct py_document *)self;
    PyTypeObject *type = Py_TYPE (self);
    PyObject *kind, *error, *trace; /* of the interrupted code */

    PyObject_GC_UnTrack (self);
    PyErr_Fetch (&kind, &error, &trace);
    if (d->d && !d->c->forked && connection_enter (d->c)) {
        end (d);
        connection_leave (d->c);
    }
    else if (d->d)
        LIST_REMOVE (d, link);
    PyErr_Restore (kind, error, trace);
    Py_XDECREF ((PyObject *)d->c);
    ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
    Py_DECREF (type);
}

static PyObject *document_enter (PyObject *self, PyObject *unused)
{
    return Py_NewRef (self);
}

static PyObject *document_exit (PyObject *self, PyObject *args)
{
    return document_close (self, NULL);
}

/* --- looking at it -------------------------------------------------------------------------- */

static PyObject *get_name (PyObject *self, void *unused)
{
    struct py_document *d = (struct py_document *)self;

    return d->d ? PyUnicode_FromString (idt_document_name (d->d)) : Py_NewRef (Py_None);
}

static PyObject *get_session (PyObject *self, void *unused)
{
    struct py_document *d = (struct py_document *)self;

    return d->d ? PyUnicode_FromString (idcomp_session (idt_document_ids (d->d))) : Py_NewRef (Py_None);
}

static PyObject *get_settled (PyObject *self, void *unused)
{
    struct py_document *d = (struct py_document *)self;

    return PyBool_FromLong (d->d && idt_document_settled (d->d));
}

static PyObject *document_repr (PyObject *self)
{
    struct py_document *d = (struct py_document *)self;

    return d->d ? PyUnicode_FromFormat ("<idtree.Document '%s'>", idt_document_name (d->d))
                : PyUnicode_FromString ("<idtree.Document, closed>");
}

static PyMethodDef methods[] = {
    SESSION_METHODS,
    { "settle", WITH_KEYWORDS (settle),
      "settle($self, /, timeout=-1.0)\n--\n\nWait until all ids that were made are final." },
    { "sync", WITH_KEYWORDS (sync_),
      "sync($self, /, timeout=-1.0)\n--\n\nWait until all ranges that were ordered before the call are known here." },
    { "close", document_close, METH_NOARGS,
      "close($self, /)\n--\n\nEnd it; other sessions never learn ids that are not settled." },
    { "__enter__", document_enter, METH_NOARGS, NULL },
    { "__exit__", document_exit, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "name", get_name, NULL, "of the document", NULL },
    { "session", get_session, NULL, "the UUID of this session", NULL },
    { "settled", get_settled, NULL, "whether all ids that were made are final", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "Document(connection, name, timeout=30.0)\n--\n\nA session in a document that the instance shares." },
    { Py_tp_init, document_init },
    { Py_tp_traverse, document_traverse },
    { Py_tp_dealloc, document_dealloc },
    { Py_tp_repr, document_repr },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "idtree.Document",
    .basicsize = sizeof (struct py_document),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

PyObject *document_type_create (PyObject *module)
{
    return PyType_FromModuleAndSpec (module, &spec, NULL);
}
