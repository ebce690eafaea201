/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generators.c - generators of flax, sno, uid and FLUID ids in this process, without a broker
 *
 * The generators of flax, sno and uid are one Python type that makes bytes; they differ in a table of functions. If a
 * generator has to wait, the wait is cut into slices, so that other threads run and Ctrl-C ends the call.
 */
#include "extension.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <idtree/flax.h>
#include <idtree/fluid.h>
#include <idtree/sno.h>
#include <idtree/uid.h>

#define SLICE_NS 50000000
#define ID_MAX 16 /* most bytes of an id */

struct generator;

struct kind {
    /* Make an id of at most ID_MAX bytes. Returns its size, or -1 with errno set. If errno is EAGAIN or ESTALE,
     * '*wait_ns' is the time to wait before the next attempt.
     */
    int (*make) (struct generator *g, int option, void *id, int64_t *wait_ns);
    void (*destroy) (void *gen);
    const char *one_format, *many_format; /* formats of the arguments of id () and ids () */
    char *option;                         /* name of the argument that both functions may have; NULL: none */
    int option_max;
};

struct generator {
    PyObject_HEAD const struct kind *kind;
    void *gen; /* NULL: __init__ failed, or was not called */
    int drift; /* used only for uid */
};

/* --- ids ------------------------------------------------------------------------------------------------ */

/* Wait for 'ns', at most for a slice. Returns false with an exception set. */
static bool wait_ns (int64_t ns)
{
    int64_t slice = ns < SLICE_NS ? ns : SLICE_NS;
    struct timespec t = { .tv_nsec = slice > 0 ? (long)slice : 0 };

    PyThreadState *state = PyEval_SaveThread ();
    nanosleep (&t, NULL);
    PyEval_RestoreThread (state);
    return PyErr_CheckSignals () == 0;
}

static PyObject *make_one (struct generator *g, int option)
{
    char id[ID_MAX];
    int64_t ns = 0;
    int size;

    while ((size = g->kind->make (g, option, id, &ns)) < 0) {
        if (errno != EAGAIN && errno != ESTALE)
            return raise_errno (errno, errno == EPERM ? "the generator belongs to the parent process: a child makes "
                                                        "its own"
                                                      : strerror (errno));
        if (!wait_ns (ns))
            return NULL;
    }
    return PyBytes_FromStringAndSize (id, size);
}

/* Whether the generator was made, and 'option' is valid. Returns false with an exception set. */
static bool is_usable (const struct generator *g, int option)
{
    if (!g->gen)
        PyErr_SetString (PyExc_ValueError, "the generator was not made");
    else if (option < 0 || option > g->kind->option_max)
        PyErr_Format (PyExc_ValueError, "%s is 0 to %d", g->kind->option, g->kind->option_max);
    else
        return true;
    return false;
}

static PyObject *generator_id (PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct generator *g = (struct generator *)self;
    char *names[] = { g->kind ? g->kind->option : NULL, NULL };
    int option = 0;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, g->kind ? g->kind->one_format : "", names, &option)
        || !is_usable (g, option))
        return NULL;
    return make_one (g, option);
}

static PyObject *generator_ids (PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct generator *g = (struct generator *)self;
    char *names[] = { "n", g->kind ? g->kind->option : NULL, NULL };
    int option = 0;
    Py_ssize_t n;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, g->kind ? g->kind->many_format : "n", names, &n, &option)
        || !is_usable (g, option) || !is_list_size (n, "ask for the others in another call"))
        return NULL;
    PyObject *list = PyList_New (n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *id = make_one (g, option);
        if (!id || PyList_SetItem (list, i, id) < 0)
            Py_CLEAR (list);
    }
    return list;
}

static void generator_dealloc (PyObject *self)
{
    struct generator *g = (struct generator *)self;
    PyTypeObject *type = Py_TYPE (self);

    if (g->gen)
        g->kind->destroy (g->gen);
    ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
    Py_DECREF (type);
}

/* Replace the old generator of 'self' by 'gen' (NULL: it could not be made). Returns 0, or -1 with an exception set. */
static int take (PyObject *self, const struct kind *kind, void *gen)
{
    struct generator *g = (struct generator *)self;

    if (!gen) {
        (void)raise_errno (errno, strerror (errno));
        return -1;
    }
    if (g->gen)
        g->kind->destroy (g->gen);
    g->kind = kind;
    g->gen = gen;
    return 0;
}

#define IDS_METHODS(arguments)                                                                      \
    { "id", WITH_KEYWORDS (generator_id), "id($self, /" arguments ")\n--\n\nA new id, as bytes." }, \
    {                                                                                               \
        "ids", WITH_KEYWORDS (generator_ids),                                                       \
            "ids($self, /, n" arguments                                                             \
            ")\n--\n\nA list of new ids, in the order in which they were made, at most MAX_IDS."    \
    }

/* --- flax ----------------------------------------------------------------------------------------------- */

static int make_flax (struct generator *g, int option, void *id, int64_t *wait)
{
    return flax_gen_make (g->gen, id) == 0 ? FLAX_SIZE : -1;
}

static void destroy_flax (void *gen)
{
    flax_gen_destroy (gen);
}

static const struct kind flax = { make_flax, destroy_flax, "", "n", NULL, 0 };

static int init_flax (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "increasing", NULL };
    int increasing = 1;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|p", names, &increasing))
        return -1;
    return take (self, &flax,
                 flax_gen_create (&(struct flax_gen_config){ .mode = increasing ? FLAX_INCREASING : FLAX_RANDOM }));
}

static PyMethodDef flax_methods[] = { IDS_METHODS (""), { NULL, NULL, 0, NULL } };

/* --- sno ------------------------------------------------------------------------------------------------ */

static int make_sno (struct generator *g, int option, void *id, int64_t *wait)
{
    return sno_gen_try (g->gen, (uint8_t)option, id, wait) == 0 ? SNO_SIZE : -1;
}

static void destroy_sno (void *gen)
{
    sno_gen_destroy (gen);
}

static const struct kind sno = { make_sno, destroy_sno, "|i", "n|i", "meta", SNO_META_MAX };

static int init_sno (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "partition", "start", NULL };
    struct sno_gen_config config = { 0 };
    const char *start = NULL;
    Py_ssize_t len = 0;
    int partition = -1;
    size_t at;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "|iz#", names, &partition, &start, &len))
        return -1;
    if (start && sno_snapshot_parse (start, (size_t)len, &config.start, &at) < 0) {
        PyErr_Format (PyExc_ValueError, "not a snapshot of a generator: see byte %zu", at);
        return -1;
    }
    if (partition > UINT16_MAX || (partition < 0 && !start)) {
        PyErr_Format (PyExc_ValueError, "a generator needs a partition of 0 to %d, or a snapshot that it starts from",
                      UINT16_MAX);
        return -1;
    }
    if (partition >= 0)
        config.start.partition = (uint16_t)partition;
    return take (self, &sno, sno_gen_create (&config));
}

static PyObject *sno_snapshot (PyObject *self, PyObject *unused)
{
    struct generator *g = (struct generator *)self;
    char text[SNO_SNAPSHOT_TEXT_MAX];
    struct sno_snapshot s;

    if (!is_usable (g, 0))
        return NULL;
    sno_gen_snapshot (g->gen, &s);
    return PyUnicode_FromStringAndSize (text, sno_snapshot_format (&s, text, sizeof (text)));
}

static PyMethodDef sno_methods[] = {
    IDS_METHODS (", meta=0"),
    { "snapshot", sno_snapshot, METH_NOARGS,
      "snapshot($self, /)\n--\n\nReturn the state of this generator, which must have stopped making ids.  "
      "Generator(start=...) continues\nfrom it." },
    { NULL, NULL, 0, NULL },
};

/* --- uid ------------------------------------------------------------------------------------------------ */

static int make_uid (struct generator *g, int option, void *bytes, int64_t *wait)
{
    const struct uid_codec codec = { .drift = g->drift };
    int64_t wait_us = 0;
    struct uid id;

    if (uid_gen_try (g->gen, option ? UID_LOCAL : UID_GLOBAL, &id, &wait_us) == 0)
        return uid_to_bytes (&id, &codec, bytes, ID_MAX);
    *wait = wait_us < SLICE_NS / 1000 ? wait_us * 1000 : SLICE_NS;
    return -1;
}

static void destroy_uid (void *gen)
{
    uid_gen_destroy (gen);
}

static const struct kind uid = { make_uid, destroy_uid, "|p", "n|p", "local", 1 };

/* Ids contain only the fingerprint of a node, so its name is not kept. */
static int init_uid (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "node", "after_us", "drift", NULL };
    struct uid_gen_config config = { 0 };
    int drift = UID_DRIFT_DEFAULT;
    long long after_us = 0;
    PyObject *node;
    Py_ssize_t len;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "O|Li", names, &node, &after_us, &drift))
        return -1;
    if (PyUnicode_Check (node)) {
        const char *name = PyUnicode_AsUTF8AndSize (node, &len);
        if (!name)
            return -1;
        config.node.fingerprint = uid_fingerprint (name, (size_t)len);
    }
    else {
        unsigned long number = PyLong_AsUnsignedLong (node);
        if (number == (unsigned long)-1 && PyErr_Occurred ())
            return -1;
        if (number > UID_NUMBER_MAX) {
            PyErr_Format (PyExc_OverflowError, "a node has a name, or a number of 0 to %lu",
                          (unsigned long)UID_NUMBER_MAX);
            return -1;
        }
        config.node = uid_node_numbered ((uint32_t)number);
    }
    if (drift < UID_DRIFT_MIN || drift > UID_DRIFT_MAX) {
        PyErr_Format (PyExc_ValueError, "a uid has %d to %d bits of drift", UID_DRIFT_MIN, UID_DRIFT_MAX);
        return -1;
    }
    config.after_us = after_us;
    ((struct generator *)self)->drift = drift;
    return take (self, &uid, uid_gen_create (&config));
}

static PyObject *uid_newest_us (PyObject *self, void *unused)
{
    struct generator *g = (struct generator *)self;

    return is_usable (g, 0) ? PyLong_FromLongLong (uid_gen_newest_us (g->gen)) : NULL;
}

static PyMethodDef uid_methods[] = { IDS_METHODS (", local=False"), { NULL, NULL, 0, NULL } };

static PyGetSetDef uid_members[] = {
    { "newest_us", uid_newest_us, NULL, "the time of the newest id: after_us of a later generator of this node", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

/* --- FLUIDs --------------------------------------------------------------------------------------------- */

struct fluid_generator {
    PyObject_HEAD struct fluid_gen gen;
    pid_t pid;  /* the process that may use the generator; 0: none */
    char *mark; /* not 0; make_mark () says why it is needed */
};

#define MARK_SIZE 4096

/* Make the mark: a byte in a page that the kernel wipes in a child. The process id does not suffice, because a child in
 * another namespace may have the same one. If the kernel cannot wipe the page, only the process id distinguishes a
 * child.
 */
static char *make_mark (void)
{
    char *mark = mmap (NULL, MARK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return NULL;
#ifdef MADV_WIPEONFORK
    madvise (mark, MARK_SIZE, MADV_WIPEONFORK);
#endif
    *mark = 1;
    return mark;
}

static int init_fluid (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "generator", "from_ms", "to_ms", NULL };
    struct fluid_generator *g = (struct fluid_generator *)self;
    uint64_t lo_ms = 0, hi_ms = FLUID_TIMESTAMP_MAX + 1;
    uint32_t generator;

    if (!PyArg_ParseTupleAndKeywords (args, kwargs, "O&|O&O&", names, take_u32, &generator, take_u64, &lo_ms, take_u64,
                                      &hi_ms))
        return -1;
    if (fluid_gen_init (&g->gen, &(struct fluid_gen_config){ generator, lo_ms, hi_ms }) < 0) {
        PyErr_Format (PyExc_ValueError, "a generator is 0 to %u; its time begins before it ends, and has 40 bits",
                      FLUID_GENERATOR_MAX);
        return -1;
    }
    if (g->mark)
        *g->mark = 1;
    else if (!(g->mark = make_mark ())) {
        PyErr_NoMemory ();
        return -1;
    }
    g->pid = getpid ();
    return 0;
}

/* Return the generator, or NULL with an exception set. */
static struct fluid_gen *fluid_of (PyObject *self)
{
    struct fluid_generator *g = (struct fluid_generator *)self;

    if (g->mark && *g->mark && g->pid == getpid ())
        return &g->gen;
    if (!g->mark)
        PyErr_SetString (PyExc_ValueError, "the generator was not made");
    else
        (void)raise_errno (EPERM, "the generator belongs to the parent process: a child makes its own");
    return NULL;
}

static const char *fluid_error (int errnum)
{
    switch (errnum) {
    case EAGAIN:
        return "the millisecond is used up, or a later one was used already";
    case ERANGE:
        return "the generator may not use this time";
    default:
        return strerror (errnum);
    }
}

static PyObject *fluid_reserve (PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "now_ms", "n", NULL };
    struct fluid_gen *gen = fluid_of (self);
    uint64_t now_ms;
    uint32_t n = 1;
    fluid_t first;

    if (!gen || !PyArg_ParseTupleAndKeywords (args, kwargs, "O&|O&", names, take_u64, &now_ms, take_u32, &n))
        return NULL;
    if (n == 0)
        return PyErr_Format (PyExc_ValueError, "the number of ids to reserve must be 1 or more");
    int got = fluid_gen_reserve (gen, now_ms, n, &first);
    if (got < 0)
        return raise_errno (errno, fluid_error (errno));
    /* the end of the range may be 2^64 */
    PyObject *from = PyLong_FromUnsignedLongLong (first), *count = PyLong_FromLong (got);
    PyObject *to = from && count ? PyNumber_Add (from, count) : NULL;
    PyObject *ids = to ? PyObject_CallFunctionObjArgs ((PyObject *)&PyRange_Type, from, to, NULL) : NULL;
    Py_XDECREF (from);
    Py_XDECREF (count);
    Py_XDECREF (to);
    return ids;
}

static PyObject *fluid_set_range (PyObject *self, PyObject *args)
{
    struct fluid_gen *gen = fluid_of (self);
    uint64_t lo_ms, hi_ms;

    if (!gen || !PyArg_ParseTuple (args, "O&O&", take_u64, &lo_ms, take_u64, &hi_ms))
        return NULL;
    if (fluid_gen_set_range (gen, lo_ms, hi_ms) < 0)
        return PyErr_Format (PyExc_ValueError, "a time begins before it ends, and has 40 bits");
    return Py_NewRef (Py_None);
}

static PyObject *fluid_follow (PyObject *self, PyObject *arg)
{
    struct fluid_gen *gen = fluid_of (self);
    unsigned long long id = gen ? PyLong_AsUnsignedLongLong (arg) : 0;

    if (!gen || (id == (unsigned long long)-1 && PyErr_Occurred ()))
        return NULL;
    fluid_gen_follow (gen, id);
    return Py_NewRef (Py_None);
}

static void fluid_dealloc (PyObject *self)
{
    PyTypeObject *type = Py_TYPE (self);
    struct fluid_generator *g = (struct fluid_generator *)self;

    if (g->mark)
        munmap (g->mark, MARK_SIZE);
    ((freefunc)PyType_GetSlot (type, Py_tp_free)) (self);
    Py_DECREF (type);
}

static PyMethodDef fluid_generator_methods[] = {
    { "reserve", WITH_KEYWORDS (fluid_reserve),
      "reserve($self, /, now_ms, n=1)\n--\n\nReturn a range of up to n ids of the millisecond now_ms, as many as are "
      "left: at most 1024.\nRaises BlockingIOError if none are left, or if a later millisecond was used already: "
      "then use a later one." },
    { "set_range", fluid_set_range, METH_VARARGS,
      "set_range($self, from_ms, to_ms, /)\n--\n\nSet the milliseconds of which ids may be made: from_ms <= ms < "
      "to_ms." },
    { "follow", fluid_follow, METH_O,
      "follow($self, id, /)\n--\n\nMake only ids above the given id from now on.  The id may be from another "
      "generator." },
    { NULL, NULL, 0, NULL },
};

/* --- types ---------------------------------------------------------------------------------------------- */

static PyType_Slot flax_slots[] = {
    { Py_tp_doc,
      "Generator(increasing=True)\n--\n\nMakes flax ids.  increasing: each id is above the previous one; otherwise "
      "all bits except the time are random." },
    { Py_tp_init, init_flax },
    { Py_tp_dealloc, generator_dealloc },
    { Py_tp_methods, flax_methods },
    { 0, NULL },
};
static PyType_Slot sno_slots[] = {
    { Py_tp_doc,
      "Generator(partition=-1, start=None)\n--\n\nMakes sno ids.  No two generators that run at the same time may "
      "have the same partition.\nstart: the snapshot() of the generator that had the partition before; partition=-1 "
      "is that of the snapshot." },
    { Py_tp_init, init_sno },
    { Py_tp_dealloc, generator_dealloc },
    { Py_tp_methods, sno_methods },
    { 0, NULL },
};
static PyType_Slot uid_slots[] = {
    { Py_tp_doc, "Generator(node, after_us=0, drift=8)\n--\n\nMakes uids.  No two generators that run at the same "
                 "time may have the same node.\nnode: a name, or a number from 0 to 2**26 - 1.  after_us: newest_us "
                 "of the generator that had the node before." },
    { Py_tp_init, init_uid },
    { Py_tp_dealloc, generator_dealloc },
    { Py_tp_methods, uid_methods },
    { Py_tp_getset, uid_members },
    { 0, NULL },
};
static PyType_Slot fluid_slots[] = {
    { Py_tp_doc,
      "Generator(generator, from_ms=0, to_ms=1099511627776)\n--\n\nMakes FLUIDs with the generator number "
      "'generator'\nand timestamps from_ms <= ms < to_ms, in milliseconds since an epoch that you choose.  No two "
      "objects with the same\ngenerator number may have ranges of time that overlap." },
    { Py_tp_init, init_fluid },
    { Py_tp_dealloc, fluid_dealloc },
    { Py_tp_methods, fluid_generator_methods },
    { 0, NULL },
};

static PyType_Spec specs[] = {
    { "idtree.flax.Generator", sizeof (struct generator), 0, Py_TPFLAGS_DEFAULT, flax_slots },
    { "idtree.sno.Generator", sizeof (struct generator), 0, Py_TPFLAGS_DEFAULT, sno_slots },
    { "idtree.uid.Generator", sizeof (struct generator), 0, Py_TPFLAGS_DEFAULT, uid_slots },
    { "idtree.fluid.Generator", sizeof (struct fluid_generator), 0, Py_TPFLAGS_DEFAULT, fluid_slots },
};

PyObject *generator_type_create (PyObject *module, enum generator_kind kind)
{
    return PyType_FromModuleAndSpec (module, &specs[kind], NULL);
}
