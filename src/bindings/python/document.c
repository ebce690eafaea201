/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.c - sessions of an id compressor: in a document that the instance shares, or without a broker, for programs
 * that order ranges themselves
 *
 * A document uses the handle of its connection. So it uses the connection's lock, keeps the connection object alive,
 * and ends when the connection is closed.
 */
#include "connection.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <idtree/idcomp.h>

/* The first member of both objects. */
struct session {
    PyObject_HEAD
        /* 'enter' begins a call, and returns the compressor, or NULL with an exception set. 'leave' ends the call. */
        struct idcomp *(*enter) (PyObject *self);
    void (*leave) (PyObject *self);
};

struct py_compressor {
    struct session session; /* must be the first member */
    struct idcomp *c;       /* NULL: __init__ failed, or was not called */
};

struct py_document {
    struct session session; /* must be the first member */
    struct py_connection *c;
    idt_document_t *d; /* NULL: closed */
    unsigned closing;  /* number of threads that wait for the connection's lock to close the document */
    LIST_ENTRY (py_document) link;
};

static PyObject *raise_compressor (int errnum)
{
    if (idcomp_error_name (errnum))
        PyErr_SetString (PyExc_ValueError, idcomp_strerror (errnum));
    else
        (void)raise_errno (errnum, errnum == EPERM ? "the session belongs to the parent process: a child makes its own"
                                                   : strerror (errnum));
    return NULL;
}

/* --- ids of a session ------------------------------------------------------------------------------------ */

/* End the call. Returns the id, or NULL with an exception set if 'rc' is not 0. */
static PyObject *leave_with (PyObject *self, int rc, int64_t id)
{
    PyObject *number = rc < 0 ? raise_compressor (errno) : PyLong_FromLongLong (id);

    ((struct session *)self)->leave (self);
    return number;
}

/* Begin a call. Returns the compressor, or NULL with an exception set. */
static struct idcomp *enter (PyObject *self)
{
    struct session *s = (struct session *)self;

    if (s->enter)
        return s->enter (self);
    PyErr_SetString (PyExc_ValueError, "the session was not made");
    return NULL;
}

static PyObject *session_generate (PyObject *self, PyObject *unused)
{
    struct idcomp *c = enter (self);
    int64_t id = 0;

    if (!c)
        return NULL;
    int rc = idcomp_generate (c, &id);
    return leave_with (self, rc, id);
}

/* Begin a call with an id. The id is read before, because reading it may run other Python code. */
static struct idcomp *enter_with (PyObject *self, PyObject *arg, long long *id)
{
    *id = PyLong_AsLongLong (arg);
    return *id == -1 && PyErr_Occurred () ? NULL : enter (self);
}

static PyObject *session_to_op (PyObject *self, PyObject *arg)
{
    long long id;
    struct idcomp *c = enter_with (self, arg, &id);
    int64_t op = 0;

    if (!c)
        return NULL;
    int rc = idcomp_to_op (c, id, &op);
    return leave_with (self, rc, op);
}

static PyObject *session_to_session (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "op", "origin", NULL };
    const char *origin = NULL;
    struct idcomp *c;
    int64_t id = 0;
    long long op;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "L|z", names, &op, &origin) || !(c = enter (self)))
        return NULL;
    int rc = idcomp_to_session (c, op, origin, &id);
    return leave_with (self, rc, id);
}

static PyObject *uuid_text (const struct idcomp_uuid *uuid)
{
    char text[IDCOMP_UUID_TEXT_MAX];

    return PyUnicode_FromStringAndSize (text, idcomp_uuid_format (uuid, text, sizeof (text)));
}

static PyObject *session_uuid (PyObject *self, PyObject *arg)
{
    long long id;
    struct idcomp *c = enter_with (self, arg, &id);
    struct idcomp_uuid uuid;

    if (!c)
        return NULL;
    PyObject *text = idcomp_decompress (c, id, &uuid) == 0 ? uuid_text (&uuid) : raise_compressor (errno);
    ((struct session *)self)->leave (self);
    return text;
}

static PyObject *session_id_of (PyObject *self, PyObject *arg)
{
    const char *text = PyUnicode_AsUTF8AndSize (arg, NULL);
    struct idcomp *c = text ? enter (self) : NULL;
    int64_t id = 0;

    if (!c)
        return NULL;
    int rc = idcomp_recompress_text (c, text, &id);
    return leave_with (self, rc, id);
}

/* The methods of both objects, for their tables of methods. */
#define SESSION_METHODS                                                                                              \
    { "generate", session_generate, METH_NOARGS,                                                                     \
      "generate($self, /)\n--\n\nReturn a new id in the space of this session." },                                   \
        { "to_op", session_to_op, METH_O,                                                                            \
          "to_op($self, id, /)\n--\n\nReturn the form of an id that other sessions can read." },                     \
        { "to_session", WITH_KEYWORDS (session_to_session),                                                          \
          "to_session($self, /, op, origin=None)\n--\n\nReturn this session's id for the op of session 'origin'." }, \
        { "uuid", session_uuid, METH_O, "uuid($self, id, /)\n--\n\nReturn the UUID of an id of this session." },     \
    {                                                                                                                \
        "id_of", session_id_of, METH_O,                                                                              \
            "id_of($self, uuid, /)\n--\n\nReturn the id of a UUID; ValueError if no id has it."                      \
    }

/* --- a session without a broker -------------------------------------------------------------------------- */

/* --- ranges ---------------------------------------------------------------------------------------------- */

static PyObject *done (int rc)
{
    return rc < 0 ? raise_compressor (errno) : Py_NewRef (Py_None);
}

/* Return the JSON text of a range; None if the range is empty. Destroys the range. */
static PyObject *range_text (struct idcomp_range *range)
{
    size_t size = idcomp_range_format_size (range);
    char *text = range->has_ids ? PyMem_Malloc (size) : NULL;
    PyObject *o = NULL;

    if (!range->has_ids)
        o = Py_NewRef (Py_None);
    else if (!text)
        PyErr_NoMemory ();
    else
        o = PyUnicode_FromStringAndSize (text, idcomp_range_format (range, text, size));
    PyMem_Free (text);
    idcomp_range_fini (range);
    return o;
}

static PyObject *compressor_take (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "unfinalized", NULL };
    struct idcomp *c;
    struct idcomp_range range;
    int unfinalized = 0;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|p", names, &unfinalized) || !(c = enter (self)))
        return NULL;
    int rc = unfinalized ? idcomp_take_unfinalized (c, &range) : idcomp_take (c, &range);
    return rc < 0 ? raise_compressor (errno) : range_text (&range);
}

static PyObject *compressor_finalize (PyObject *self, PyObject *arg)
{
    struct idcomp_range range;
    Py_ssize_t len;
    size_t at;

    const char *text = PyUnicode_AsUTF8AndSize (arg, &len);
    struct idcomp *c = text ? enter (self) : NULL;
    if (!c)
        return NULL;
    if (idcomp_range_parse (text, (size_t)len, &range, &at) < 0)
        return errno == ENOMEM ? PyErr_NoMemory ()
                               : PyErr_Format (PyExc_ValueError, "not a range of ids: see byte %zu", at);
    PyObject *none = done (idcomp_finalize (c, &range));
    idcomp_range_fini (&range);
    return none;
}

static PyObject *compressor_ghost_begin (PyObject *self, PyObject *arg)
{
    const char *session = PyUnicode_AsUTF8AndSize (arg, NULL);
    struct idcomp *c = session ? enter (self) : NULL;

    return c ? done (idcomp_ghost_begin (c, session)) : NULL;
}

static PyObject *compressor_ghost_end (PyObject *self, PyObject *unused)
{
    struct idcomp *c = enter (self);

    if (!c)
        return NULL;
    idcomp_ghost_end (c);
    return Py_NewRef (Py_None);
}

static PyObject *compressor_unique (PyObject *self, PyObject *unused)
{
    struct idcomp *c = enter (self);
    struct idcomp_uuid uuid;
    int64_t id = -1;

    if (!c)
        return NULL;
    if (idcomp_generate_unique (c, &id, &uuid) < 0)
        return raise_compressor (errno);
    return id >= 0 ? PyLong_FromLongLong (id) : uuid_text (&uuid);
}

/* --- stored forms ---------------------------------------------------------------------------------------- */

static PyObject *compressor_save (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "local", NULL };
    struct idcomp *c;
    int local = 0;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|p", names, &local) || !(c = enter (self)))
        return NULL;
    enum idcomp_state state = local ? IDCOMP_WITH_LOCAL : IDCOMP_WITHOUT_LOCAL;
    size_t size = idcomp_save_size (c, state);
    PyObject *bytes = PyBytes_FromStringAndSize (NULL, (Py_ssize_t)size);
    if (bytes && idcomp_save (c, state, PyBytes_AsString (bytes), size) < 0) {
        Py_DECREF (bytes);
        return raise_compressor (errno);
    }
    return bytes;
}

/* --- life ------------------------------------------------------------------------------------------------- */

static struct idcomp *compressor_enter (PyObject *self)
{
    return ((struct py_compressor *)self)->c;
}

static void compressor_leave (PyObject *self)
{
}

static const char *new_session (char text[IDCOMP_UUID_TEXT_MAX])
{
    unsigned char random[16];

    if (getrandom (random, sizeof (random), 0) != (ssize_t)sizeof (random))
        return NULL;
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    return idcomp_uuid_format (&uuid, text, IDCOMP_UUID_TEXT_MAX) > 0 ? text : NULL;
}

static int compressor_init (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "session", "stored", "local", "cluster_size", NULL };
    struct py_compressor *co = (struct py_compressor *)self;
    const char *session = NULL, *stored = NULL;
    char text[IDCOMP_UUID_TEXT_MAX];
    long long cluster_size = IDCOMP_CLUSTER_SIZE_DEFAULT;
    Py_ssize_t size = 0;
    int local = 0;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|zy#pL", names, &session, &stored, &size, &local, &cluster_size))
        return -1;
    if (local && (session || !stored)) {
        PyErr_SetString (PyExc_ValueError, "local: this needs the session that was stored, so no other session may "
                                           "be given");
        return -1;
    }
    if (!local && !session && !(session = new_session (text))) {
        (void)raise_errno (errno, strerror (errno));
        return -1;
    }
    struct idcomp *c = stored ? idcomp_load (stored, (size_t)size, session, IDCOMP_STRICT)
                              : idcomp_create (session, IDCOMP_STRICT);
    if (!c || idcomp_set_cluster_size (c, cluster_size) < 0) {
        (void)raise_compressor (errno);
        idcomp_destroy (c);
        return -1;
    }
    idcomp_destroy (co->c);
    co->c = c;
    co->session.enter = compressor_enter;
    co->session.leave = compressor_leave;
    return 0;
}

static void compressor_dealloc (PyObject *self)
{
    PyTypeObject *type = Py_TYPE (self);

    idcomp_destroy (((struct py_compressor *)self)->c);
    ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
    Py_DECREF (type);
}

static PyObject *compressor_session (PyObject *self, void *unused)
{
    struct idcomp *c = enter (self);

    return c ? PyUnicode_FromString (idcomp_session (c)) : NULL;
}

static PyMethodDef compressor_methods[] = {
    SESSION_METHODS,
    { "generate_unique", compressor_unique, METH_NOARGS,
      "generate_unique($self, /)\n--\n\nReturn a new id that immediately means the same in the whole document: a "
      "final id, or a UUID." },
    { "take", WITH_KEYWORDS (compressor_take),
      "take($self, /, unfinalized=False)\n--\n\nReturn the ids made since the last call, as the JSON text of a "
      "range; None if there are\nno new ids.  All sessions must finalize the ranges in the same order.  unfinalized: "
      "return all ids that are not\nfinalized; use this only if the ranges taken before are certainly lost." },
    { "finalize", compressor_finalize, METH_O,
      "finalize($self, range, /)\n--\n\nFinalize the next range in the order of ranges, which includes ranges of "
      "this\nsession.  Raises ValueError if the range is invalid, or collides with an earlier one." },
    { "ghost_begin", compressor_ghost_begin, METH_O,
      "ghost_begin($self, session, /)\n--\n\nMake all new ids belong to the given session, and be final immediately, "
      "until\nghost_end() is called." },
    { "ghost_end", compressor_ghost_end, METH_NOARGS,
      "ghost_end($self, /)\n--\n\nNew ids belong to this "
      "compressor's own session again." },
    { "save", WITH_KEYWORDS (compressor_save),
      "save($self, /, local=False)\n--\n\nReturn the stored form, from which other sessions can begin.  local: "
      "include this session,\nso that it can be continued, which may be done once." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef compressor_members[] = {
    { "session", compressor_session, NULL, "the UUID of this session", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot compressor_slots[] = {
    { Py_tp_doc,
      "Compressor(session=None, stored=None, local=False, cluster_size=512)\n--\n\nA session in a document whose "
      "order another program decides; no broker is needed.\nsession: the UUID of the session; by default a new one.  "
      "stored: the result of save(), or a form that another\ncompressor of Fluid Framework 2 stored.  local: "
      "continue the session in the stored form." },
    { Py_tp_init, compressor_init },
    { Py_tp_dealloc, compressor_dealloc },
    { Py_tp_methods, compressor_methods },
    { Py_tp_getset, compressor_members },
    { 0, NULL },
};

static PyType_Spec compressor_spec = {
    .name = "idtree.idcomp.Compressor",
    .basicsize = sizeof (struct py_compressor),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = compressor_slots,
};

PyObject *compressor_type_create (PyObject *module)
{
    return PyType_FromModuleAndSpec (module, &compressor_spec, NULL);
}

/* --- a document: one call at a time --------------------------------------------------------------------- */

static bool raise_closed (void)
{
    PyErr_SetString (PyExc_ValueError, "the document is closed");
    return false;
}

static bool goes_on (const struct py_document *d)
{
    return connection_goes_on (d->c) && (!d->closing || raise_closed ());
}

static bool document_lock (struct py_document *d)
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

    return document_lock (d) ? idt_document_ids (d->d) : NULL;
}

static void document_end (PyObject *self)
{
    connection_leave (((struct py_document *)self)->c);
}

/* Raise the document's own error if it has one, else the error 'errnum'. */
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

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|O&", names, take_timeout, &left_ms) || !document_lock (d))
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

/* Close the document. The caller holds the lock, or is the only user of the connection. */
static void end (struct py_document *d)
{
    if (!d->d)
        return;
    LIST_REMOVE (d, link);
    if (!d->c->forked) /* in a child, closing would send a message over the parent's connection */
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

/* The attributes of the connection may refer to this document, so the garbage collector must know the reference. */
static int document_traverse (PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT (Py_TYPE (self));
    Py_VISIT ((PyObject *)((struct py_document *)self)->c);
    return 0;
}

/* Free a document. No other thread has a reference to it, but another thread may be using its connection. */
static void document_dealloc (PyObject *self)
{
    struct py_document *d = (struct py_document *)self;
    PyTypeObject *type = Py_TYPE (self);
    PyObject *kind, *error, *trace; /* the exception of the code that this interrupts */

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

static PyObject *document_session (PyObject *self, void *unused)
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

static PyMethodDef document_methods[] = {
    SESSION_METHODS,
    { "settle", WITH_KEYWORDS (settle),
      "settle($self, /, timeout=-1.0)\n--\n\nWait until all ids that this session made are final." },
    { "sync", WITH_KEYWORDS (sync_),
      "sync($self, /, timeout=-1.0)\n--\n\nWait until this session knows all ranges that were ordered before the "
      "call." },
    { "close", document_close, METH_NOARGS,
      "close($self, /)\n--\n\nEnd the session.  Other sessions never learn ids that are not settled." },
    { "__enter__", return_self, METH_NOARGS, NULL },
    { "__exit__", document_exit, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef document_members[] = {
    { "name", get_name, NULL, "of the document", NULL },
    { "session", document_session, NULL, "the UUID of this session", NULL },
    { "settled", get_settled, NULL, "whether all ids that were made are final", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot document_slots[] = {
    { Py_tp_doc, "Document(connection, name, timeout=30.0)\n--\n\nA session in a document that the instance shares." },
    { Py_tp_init, document_init },
    { Py_tp_traverse, document_traverse },
    { Py_tp_dealloc, document_dealloc },
    { Py_tp_repr, document_repr },
    { Py_tp_methods, document_methods },
    { Py_tp_getset, document_members },
    { 0, NULL },
};

static PyType_Spec document_spec = {
    .name = "idtree.Document",
    .basicsize = sizeof (struct py_document),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = document_slots,
};

PyObject *document_type_create (PyObject *module)
{
    return PyType_FromModuleAndSpec (module, &document_spec, NULL);
}
