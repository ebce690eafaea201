/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection.c - a connection to a broker, for all threads of a Python program
 *
 * Only one thread at a time may use a handle, so each call takes a lock. Other Python threads run while a call waits. A
 * call that waits regularly asks Python whether to continue: Ctrl-C ends the call, and so does another thread that
 * closes the connection. In a forked child the connection can only be closed; the package calls a function in the child
 * that ensures this.
 */
#include "connection.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* --- one call at a time --------------------------------------------------------------------- */

void connection_leave (struct py_connection *c)
{
    c->owner = 0;
    PyThread_release_lock (c->lock);
}

static bool lock (struct py_connection *c)
{
    unsigned long me = PyThread_get_thread_ident ();

    if (c->owner == me) {
        PyErr_SetString (PyExc_RuntimeError, "a handler of a signal can't use the connection that it interrupted");
        return false;
    }
    PyLockStatus status = PyThread_acquire_lock_timed (c->lock, 0, 0);
    while (status != PY_LOCK_ACQUIRED) {
        PyThreadState *state = PyEval_SaveThread ();
        status = PyThread_acquire_lock_timed (c->lock, -1, 1);
        PyEval_RestoreThread (state);
        if (status == PY_LOCK_INTR && PyErr_CheckSignals () < 0)
            return false;
    }
    c->owner = me;
    return true;
}

static bool raise_closed (void)
{
    PyErr_SetString (PyExc_ValueError, "the connection is closed");
    return false;
}

bool connection_goes_on (const struct py_connection *c)
{
    if (PyErr_CheckSignals () < 0)
        return false;
    if (c->closing)
        return raise_closed ();
    if (c->interrupted)
        (void)raise_errno (EINTR, "the call was ended before its answer came");
    return !c->interrupted;
}

/* libidtree calls this while a call waits, with the connection unlocked between connection_unlock () and
 * connection_relock ().
 */
static bool ask_python (void *arg)
{
    struct py_connection *c = arg;

    connection_relock (c);
    bool go_on = connection_goes_on (c);
    connection_unlock (c);
    return go_on;
}

bool connection_enter (struct py_connection *c)
{
    if (c->forked) {
        PyErr_SetString (PyExc_ValueError, "the connection belongs to the parent process: a child opens its own");
        return false;
    }
    if (!lock (c))
        return false;
    if (c->h)
        return true;
    connection_leave (c);
    return raise_closed ();
}

double connection_now_ms (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

PyObject *connection_raise (struct py_connection *c, int errnum)
{
    const char *lost = idt_lost_error (c->h);

    return raise_errno (errnum, lost ? lost : strerror (errnum));
}

/* --- ids ------------------------------------------------------------------------------------ */

/* Fill 'ids' with new ids. Returns 0, or -1 with an exception set. */
static int generate (struct py_connection *c, fluid_t *ids, size_t count)
{
    int rc = 0;

    if (!connection_enter (c))
        return -1;
    connection_unlock (c);
    while (rc == 0 && count > 0) {
        uint32_t n = count < IDT_FLUID_MAX_COUNT ? (uint32_t)count : IDT_FLUID_MAX_COUNT;
        rc = idt_fluid_generate (c->h, n, ids);
        ids += n;
        count -= n;
        if (rc == 0 && count > 0 && !ask_python (c))
            rc = -1;
    }
    int errnum = errno;
    connection_relock (c);
    if (rc < 0)
        (void)connection_raise (c, errnum);
    connection_leave (c);
    return rc;
}

static PyObject *connection_id (PyObject *self, PyObject *unused)
{
    fluid_t id;

    return generate ((struct py_connection *)self, &id, 1) == 0 ? PyLong_FromUnsignedLongLong (id) : NULL;
}

static PyObject *list_of (const fluid_t *ids, Py_ssize_t n)
{
    PyObject *list = PyList_New (n);

    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *id = PyLong_FromUnsignedLongLong (ids[i]);
        if (!id || PyList_SetItem (list, i, id) < 0)
            Py_CLEAR (list);
    }
    return list;
}

static PyObject *connection_ids (PyObject *self, PyObject *arg)
{
    Py_ssize_t n = PyLong_AsSsize_t (arg);

    if (n == -1 && PyErr_Occurred ())
        return NULL;
    if (!is_list_size (n, "iter_ids() returns any number of ids, fill() fills a buffer"))
        return NULL;
    fluid_t *ids = PyMem_Malloc (n > 0 ? (size_t)n * sizeof (*ids) : 1);
    if (!ids)
        return PyErr_NoMemory ();
    PyObject *list = generate ((struct py_connection *)self, ids, (size_t)n) == 0 ? list_of (ids, n) : NULL;
    PyMem_Free (ids);
    return list;
}

/* Whether the items of a buffer are 64-bit unsigned numbers in native order, or bytes whose number is a multiple of 8.
 */
static bool holds_ids (const Py_buffer *view)
{
    const char *format = view->format ? view->format : "B";
    /* buffers of ctypes have the byte order in the format */
    const char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';

    if (*format == '@' || *format == '=' || *format == native)
        format++;
    if (view->len % (Py_ssize_t)sizeof (fluid_t) != 0 || (uintptr_t)view->buf % sizeof (fluid_t) != 0)
        return false;
    return view->itemsize == 1 || (view->itemsize == sizeof (fluid_t) && strchr ("QLN", *format) != NULL);
}

static PyObject *connection_fill (PyObject *self, PyObject *arg)
{
    Py_buffer view;

    if (PyObject_GetBuffer (arg, &view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return NULL;
    int rc = -1;
    if (holds_ids (&view))
        rc = generate ((struct py_connection *)self, view.buf, (size_t)view.len / sizeof (fluid_t));
    else
        PyErr_SetString (PyExc_ValueError,
                         "ids go to a buffer of unsigned 64-bit numbers (array 'Q', NumPy uint64), or of 8 "
                         "bytes for each, aligned");
    PyBuffer_Release (&view);
    return rc == 0 ? Py_NewRef (arg) : NULL;
}

static PyObject *connection_prefetch (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "n", "max_age", NULL };
    struct py_connection *c = (struct py_connection *)self;
    double max_age_s = 1;
    Py_ssize_t n;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "n|d", names, &n, &max_age_s))
        return NULL;
    if (n < 0 || n > (Py_ssize_t)IDT_FLUID_MAX_COUNT || !(max_age_s >= 0.001 && max_age_s <= UINT32_MAX / 1e3)) {
        PyErr_Format (PyExc_ValueError,
                      "at most %u ids are prefetched, for a millisecond at least and 49 days at "
                      "most",
                      IDT_FLUID_MAX_COUNT);
        return NULL;
    }
    if (!connection_enter (c))
        return NULL;
    int rc = idt_fluid_prefetch (c->h, (uint32_t)n, (uint32_t)(max_age_s * 1e3));
    if (rc < 0)
        (void)connection_raise (c, errno);
    connection_leave (c);
    return rc == 0 ? Py_NewRef (Py_None) : NULL;
}

/* --- requests, attributes ------------------------------------------------------------------- */

static PyObject *text_or_none (const char *text)
{
    return text ? PyUnicode_FromString (text) : Py_NewRef (Py_None);
}

/* Return the text of the answer, or NULL with an exception set. */
static PyObject *answer (struct py_connection *c, idt_future_t *f, int rc, int errnum)
{
    const char *text = NULL;

    if (!f)
        return connection_raise (c, errnum);
    if (rc < 0 && !idt_future_is_ready (f))
        return raise_errno (errnum, errnum == ETIMEDOUT ? "no answer within the timeout" : strerror (errnum));
    if (idt_future_errnum (f) != 0)
        return raise_errno (idt_future_errnum (f), idt_future_error (f));
    if (idt_rpc_get (f, &text) < 0)
        return raise_errno (errno, "the answer is not a text");
    return text_or_none (text);
}

/* The wait is cut into slices, to notice if another thread closes the connection. */
PyObject *connection_wait_for (struct py_connection *c, idt_future_t *f, double left_ms)
{
    int errnum = errno, rc = -1;

    while (f) {
        double ms = left_ms < 0 || left_ms > CONNECTION_SLICE_MS ? CONNECTION_SLICE_MS : left_ms;
        connection_unlock (c);
        rc = idt_future_wait (f, ms);
        errnum = errno;
        connection_relock (c);
        if (left_ms >= 0)
            left_ms -= ms;
        if (rc == 0 || errnum != ETIMEDOUT || left_ms == 0 || !connection_goes_on (c))
            break;
    }
    return answer (c, f, rc, errnum);
}

PyObject *connection_await (struct py_connection *c, idt_future_t *f, double left_ms)
{
    PyObject *text = connection_wait_for (c, f, left_ms);

    idt_future_destroy (f);
    return text;
}

static PyObject *connection_call (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "topic", "payload", "rank", "timeout", NULL };
    struct py_connection *c = (struct py_connection *)self;
    const char *topic, *payload = NULL;
    uint32_t rank = IDT_NODEID_ANY;
    double timeout_s = -1;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "s|zO&O&", names, &topic, &payload, take_u32, &rank, take_timeout,
                                      &timeout_s)
        || !connection_enter (c))
        return NULL;
    PyObject *text = connection_await (c, idt_rpc (c->h, topic, payload, rank, 0), timeout_s * 1e3);
    connection_leave (c);
    return text;
}

static PyObject *connection_attr (PyObject *self, PyObject *arg)
{
    struct py_connection *c = (struct py_connection *)self;
    const char *name = PyUnicode_AsUTF8AndSize (arg, NULL);

    if (!name || !connection_enter (c))
        return NULL;
    connection_unlock (c);
    const char *value = idt_attr_get (c->h, name);
    int errnum = errno;
    connection_relock (c);
    PyObject *text = value ? PyUnicode_FromString (value) : NULL;
    if (!value && errnum == ENOENT)
        PyErr_SetObject (PyExc_KeyError, arg);
    else if (!value)
        (void)connection_raise (c, errnum);
    connection_leave (c);
    return text;
}

/* --- life ----------------------------------------------------------------------------------- */

static PyObject *connection_new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct py_connection *c = (struct py_connection *)((allocfunc)PyType_GetSlot (type, Py_tp_alloc)) (type, 0);

    if (c && !(c->lock = PyThread_allocate_lock ())) {
        Py_DECREF (c);
        return PyErr_NoMemory ();
    }
    return (PyObject *)c;
}

static int connection_init (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "uri", "reconnect", "timeout", NULL };
    struct py_connection *c = (struct py_connection *)self;
    const char *uri = NULL;
    double timeout_s = 30;
    int reconnect = 0;
    idt_error_t error;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|zpO&", names, &uri, &reconnect, take_timeout, &timeout_s)
        || !lock (c))
        return -1;
    if (c->h || c->forked || c->closed) {
        PyErr_SetString (PyExc_ValueError,
                         c->closed ? "the connection is closed" : "a connection can be made only once");
        connection_leave (c);
        return -1;
    }
    connection_unlock (c);
    /* 0: connecting must not wait */
    const struct idt_open_options options = { .flags = reconnect ? IDT_O_RECONNECT : 0,
                                              .timeout_ms = timeout_s == 0 ? 1e-3 : timeout_s * 1e3,
                                              .interrupt = ask_python,
                                              .arg = c };
    idt_t *h = idt_open_ex (uri, &options, &error);
    int errnum = errno;
    connection_relock (c);
    if (!(c->h = h))
        (void)raise_errno (errnum, error.text);
    connection_leave (c);
    return h ? 0 : -1;
}

/* Close the handle. The caller holds the lock, or is the only user of the connection. A child cannot close the
 * documents of its parent. So in a child the objects that documents use are kept, and so are all objects that a thread
 * of the parent was using when it forked.
 */
static void end (struct py_connection *c)
{
    bool used = c->forked && c->owner != 0, stays = used || (c->forked && !LIST_EMPTY (&c->documents));

    documents_close (c);
    if (!used)
        events_destroy (c);
    if (!stays)
        idt_close (c->h);
    c->h = NULL;
    c->closed = true;
}

static PyObject *connection_close (PyObject *self, PyObject *unused)
{
    struct py_connection *c = (struct py_connection *)self;

    c->closing++;
    bool locked = !c->forked && lock (c);
    c->closing--;
    if (!c->forked && !locked)
        return NULL;
    end (c);
    if (!c->forked)
        connection_leave (c);
    return Py_NewRef (Py_None);
}

/* Set the flag that makes calls end. While it is True, the waiting call of another thread ends, and later calls end,
 * too.
 */
static PyObject *connection_interrupt (PyObject *self, PyObject *on)
{
    int interrupted = PyObject_IsTrue (on);

    if (interrupted < 0)
        return NULL;
    ((struct py_connection *)self)->interrupted = interrupted;
    return Py_NewRef (Py_None);
}

static PyObject *connection_set_forked (PyObject *self, PyObject *unused)
{
    ((struct py_connection *)self)->forked = true;
    return Py_NewRef (Py_None);
}

static void connection_dealloc (PyObject *self)
{
    struct py_connection *c = (struct py_connection *)self;
    PyTypeObject *type = Py_TYPE (self);

    end (c);
    if (c->lock)
        PyThread_free_lock (c->lock);
    ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
    Py_DECREF (type);
}

static PyObject *connection_end_with (PyObject *self, PyObject *args)
{
    return connection_close (self, NULL);
}

static PyObject *get_uri (PyObject *self, void *unused)
{
    struct py_connection *c = (struct py_connection *)self;

    return c->h ? text_or_none (idt_get_uri (c->h)) : Py_NewRef (Py_None);
}

static PyObject *get_closed (PyObject *self, void *unused)
{
    return PyBool_FromLong (!((struct py_connection *)self)->h);
}

static PyMethodDef methods[] = {
    { "id", connection_id, METH_NOARGS,
      "id($self, /)\n--\n\nReturn a new FLUID, an int above all earlier ones of this connection." },
    { "ids", connection_ids, METH_O,
      "ids($self, n, /)\n--\n\nReturn a list of n new FLUIDs in increasing order; n is at most MAX_IDS." },
    { "fill", connection_fill, METH_O,
      "fill($self, buffer, /)\n--\n\nFill an array('Q'), a NumPy array of uint64, or any writable buffer, with new\n"
      "FLUIDs in increasing order." },
    { "prefetch", WITH_KEYWORDS (connection_prefetch),
      "prefetch($self, /, n, max_age=1.0)\n--\n\nKeep up to n ids prefetched, so that id() and ids() need no "
      "message.  Ids that are older\nthan max_age seconds are not used.  n=0: stop prefetching." },
    { "call", WITH_KEYWORDS (connection_call),
      "call($self, /, topic, payload=None, rank=4294967295, timeout=-1.0)\n--\n\nSend a request with a text, "
      "and\nreturn the text of the answer, or None if the answer is empty.  rank: 4294967295 is the nearest rank "
      "that has the\nservice.  timeout: seconds; below 0: no limit." },
    { "attr", connection_attr, METH_O,
      "attr($self, name, /)\n--\n\nReturn the value of an attribute of the broker; KeyError if the broker does not "
      "have the attribute." },
    { "subscribe", connection_subscribe, METH_O,
      "subscribe($self, prefix, /)\n--\n\nReceive events whose topic begins with the prefix." },
    { "unsubscribe", connection_unsubscribe, METH_O,
      "unsubscribe($self, prefix, /)\n--\n\nStop receiving events of "
      "subscribe(prefix)." },
    { "_event", WITH_KEYWORDS (connection_event), NULL },
    { "close", connection_close, METH_NOARGS,
      "close($self, /)\n--\n\nClose the connection.  Further calls of close() have no effect." },
    { "_interrupt", connection_interrupt, METH_O, NULL },
    { "_set_forked", connection_set_forked, METH_NOARGS, NULL },
    { "__enter__", return_self, METH_NOARGS, NULL },
    { "__exit__", connection_end_with, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef members[] = {
    { "uri", get_uri, NULL, "the address of the last connected broker", NULL },
    { "closed", get_closed, NULL, "whether close() was called", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_new, connection_new }, { Py_tp_init, connection_init }, { Py_tp_dealloc, connection_dealloc },
    { Py_tp_methods, methods },    { Py_tp_getset, members },       { 0, NULL },
};

static PyType_Spec spec = {
    .name = "idtree._idtree.Connection",
    .basicsize = sizeof (struct py_connection),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

PyObject *connection_type_create (PyObject *module)
{
    return PyType_FromModuleAndSpec (module, &spec, NULL);
}
