/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.c - a compressor without a broker, for programs that order ranges themselves; and its common part with
 * documents
 */
#include "compressor.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

struct py_compressor {
    struct session session; /* must be first */
    struct idcomp *c;       /* NULL: __init__ failed, or was not called */
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

/* End the call, and return the result of a conversion. */
static PyObject *leave_with (PyObject *self, int rc, int64_t id)
{
    PyObject *number = rc < 0 ? raise_compressor (errno) : PyLong_FromLongLong (id);

    ((struct session *)self)->leave (self);
    return number;
}

/* Begin a call. NULL with an exception set. */
static struct idcomp *enter (PyObject *self)
{
    struct session *s = (struct session *)self;

    if (s->enter)
        return s->enter (self);
    PyErr_SetString (PyExc_ValueError, "the session was not made");
    return NULL;
}

PyObject *session_generate (PyObject *self, PyObject *unused)
{
    struct idcomp *c = enter (self);
    int64_t id = 0;

    if (!c)
        return NULL;
    int rc = idcomp_generate (c, &id);
    return leave_with (self, rc, id);
}

/* Arguments are read before the call begins, because other Python code may run meanwhile. */
static struct idcomp *enter_with (PyObject *self, PyObject *arg, long long *id)
{
    *id = PyLong_AsLongLong (arg);
    return *id == -1 && PyErr_Occurred () ? NULL : enter (self);
}

PyObject *session_to_op (PyObject *self, PyObject *arg)
{
    long long id;
    struct idcomp *c = enter_with (self, arg, &id);
    int64_t op = 0;

    if (!c)
        return NULL;
    int rc = idcomp_to_op (c, id, &op);
    return leave_with (self, rc, op);
}

PyObject *session_to_session (PyObject *self, PyObject *args, PyObject *kwargs)
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

PyObject *session_uuid (PyObject *self, PyObject *arg)
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

PyObject *session_id_of (PyObject *self, PyObject *arg)
{
    const char *text = PyUnicode_AsUTF8AndSize (arg, NULL);
    struct idcomp *c = text ? enter (self) : NULL;
    int64_t id = 0;

    if (!c)
        return NULL;
    int rc = idcomp_recompress_text (c, text, &id);
    return leave_with (self, rc, id);
}

/* --- ranges ---------------------------------------------------------------------------------------------- */

static PyObject *done (int rc)
{
    return rc < 0 ? raise_compressor (errno) : Py_NewRef (Py_None);
}

/* The JSON text of a range, which is destroyed; None if it is empty. */
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

static PyObject *get_session (PyObject *self, void *unused)
{
    struct idcomp *c = enter (self);

    return c ? PyUnicode_FromString (idcomp_session (c)) : NULL;
}

static PyMethodDef methods[] = {
    SESSION_METHODS,
    { "generate_unique", compressor_unique, METH_NOARGS,
      "generate_unique($self, /)\n--\n\nAn id that means the same in the whole document immediately: a final one, or "
      "a UUID." },
    { "take", WITH_KEYWORDS (compressor_take),
      "take($self, /, unfinalized=False)\n--\n\nThe ids made since the last call, as the JSON text of a range, which "
      "all\nsessions must finalize in the same order; None if there are no new ids.  unfinalized: all that are not "
      "finalized, if\nthe ranges taken before are certainly lost." },
    { "finalize", compressor_finalize, METH_O,
      "finalize($self, range, /)\n--\n\nFinalize the next range of the order, including ranges of this "
      "session.\nRaises ValueError if it is invalid or collides." },
    { "ghost_begin", compressor_ghost_begin, METH_O,
      "ghost_begin($self, session, /)\n--\n\nUntil ghost_end() new ids belong to this session, and are final "
      "immediately." },
    { "ghost_end", compressor_ghost_end, METH_NOARGS,
      "ghost_end($self, /)\n--\n\nNew ids belong to this "
      "compressor's own session again." },
    { "save", WITH_KEYWORDS (compressor_save),
      "save($self, /, local=False)\n--\n\nThe stored form, from which other sessions can begin; local: including "
      "this session,\nwhich may be continued once." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "session", get_session, NULL, "the UUID of this session", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "Compressor(session=None, stored=None, local=False, cluster_size=512)\n--\n\nA session in a document whose "
      "order another program decides; no broker is needed.\nsession: its UUID, by default a new one.  stored: the "
      "result of save(), or a form that another\ncompressor of Fluid Framework 2 stored; local: continue the session "
      "in it." },
    { Py_tp_init, compressor_init },
    { Py_tp_dealloc, compressor_dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "idtree.idcomp.Compressor",
    .basicsize = sizeof (struct py_compressor),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

PyObject *compressor_type_create (PyObject *module)
{
    return PyType_FromModuleAndSpec (module, &spec, NULL);
}
