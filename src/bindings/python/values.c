/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* values.c - ids as values: FLUIDs as ints; flax, sno and uid ids, and UUIDs of the id compressor, as bytes */
#include "extension.h"

#include <errno.h>
#include <string.h>

#include <idtree/flax.h>
#include <idtree/fluid.h>
#include <idtree/idcomp.h>
#include <idtree/sno.h>
#include <idtree/uid.h>

#define NS_PER_MS 1000000
#define ID_MAX 16   /* most bytes of an id */
#define TEXT_MAX 64 /* most bytes of the text of an id */

/* --- FLUIDs --------------------------------------------------------------------------------- */

/* This function takes no keywords, because parsing keywords takes longer than formatting. */
static PyObject *format_fluid (PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const char *form_name = "f58";
    enum fluid_form form;
    char text[FLUID_TEXT_MAX];
    fluid_t id;

    if (nargs != 1 && nargs != 2)
        return PyErr_Format (PyExc_TypeError, "format() takes an id and a form");
    if (!take_u64 (args[0], &id) || (nargs == 2 && !(form_name = PyUnicode_AsUTF8AndSize (args[1], NULL))))
        return NULL;
    if (fluid_form_find (form_name, &form) < 0)
        return PyErr_Format (PyExc_ValueError, "unknown form %R: the forms are %s", args[1],
                             "dec, hex, dothex, f58, \xc6\x92"
                             "58, words, emoji");
    int len = fluid_format (id, form, text, sizeof (text));
    return PyUnicode_FromStringAndSize (text, len);
}

static PyObject *parse_fluid (PyObject *module, PyObject *text)
{
    Py_ssize_t len;
    const char *s = PyUnicode_AsUTF8AndSize (text, &len);
    size_t at;
    fluid_t id;

    if (!s)
        return NULL;
    if (fluid_parse (s, (size_t)len, &id, &at) == 0)
        return PyLong_FromUnsignedLongLong (id);
    if (errno == ERANGE)
        return PyErr_Format (PyExc_OverflowError, "%R does not fit into 64 bits", text);
    return PyErr_Format (PyExc_ValueError, "%R is not a FLUID: see byte %zu", text, at);
}

static PyObject *split_fluid (PyObject *module, PyObject *arg)
{
    fluid_t id;

    if (!take_u64 (arg, &id))
        return NULL;
    struct fluid_fields f = fluid_split (id);
    return Py_BuildValue ("(KII)", (unsigned long long)f.timestamp_ms, (unsigned)f.generator, (unsigned)f.sequence);
}

static PyObject *join_fluid (PyObject *module, PyObject *args)
{
    uint64_t timestamp_ms;
    uint32_t generator, sequence;
    fluid_t id;

    if (!PyArg_ParseTuple (args, "O&O&O&", take_u64, &timestamp_ms, take_u32, &generator, take_u32, &sequence))
        return NULL;
    struct fluid_fields fields = { .timestamp_ms = timestamp_ms, .generator = generator, .sequence = sequence };
    if (fluid_join (&fields, &id) == 0)
        return PyLong_FromUnsignedLongLong (id);
    return PyErr_Format (PyExc_OverflowError,
                         "a FLUID has 40 bits of time, a generator of 0 to %u and a sequence of 0 to %u",
                         FLUID_GENERATOR_MAX, FLUID_SEQUENCE_MAX);
}

static PyObject *range_fluid (PyObject *module, PyObject *args)
{
    uint64_t from_ms, to_ms;
    fluid_t lower, upper;

    if (!PyArg_ParseTuple (args, "O&O&", take_u64, &from_ms, take_u64, &to_ms))
        return NULL;
    if (fluid_range (from_ms, to_ms, &lower, &upper) == 0)
        return Py_BuildValue ("(KK)", (unsigned long long)lower, (unsigned long long)upper);
    if (errno == EOVERFLOW)
        return PyErr_Format (PyExc_OverflowError, "a FLUID has 40 bits of time");
    return PyErr_Format (PyExc_ValueError, "the time ends before it begins");
}

/* --- what ids as bytes share ------------------------------------------------------------------------ */

/* Return the bytes of an id of exactly 'size' bytes, or NULL with an exception set. */
static const void *bytes_of (PyObject *object, Py_ssize_t size, const char *kind)
{
    Py_ssize_t len;
    char *bytes;

    if (PyBytes_AsStringAndSize (object, &bytes, &len) < 0)
        return NULL;
    if (len == size)
        return bytes;
    return PyErr_Format (PyExc_ValueError, "%zd bytes are not a %s, which has %zd", len, kind, size);
}

static PyObject *to_bytes (const void *bytes, size_t size)
{
    return PyBytes_FromStringAndSize (bytes, (Py_ssize_t)size);
}

static PyObject *raise_text (PyObject *text, const char *kind, size_t at)
{
    return PyErr_Format (PyExc_ValueError, "%R is not a %s: see byte %zu", text, kind, at);
}

/* How a kind of id with a fixed size is written as text. */
struct id_text {
    const char *name;
    Py_ssize_t size;
    int (*format) (const void *id, char *buf, size_t size);
    int (*parse) (const char *text, size_t len, void *id, size_t *errpos);
};

static PyObject *format_as (const struct id_text *kind, PyObject *arg)
{
    const void *id = bytes_of (arg, kind->size, kind->name);
    char text[TEXT_MAX];

    return id ? PyUnicode_FromStringAndSize (text, kind->format (id, text, sizeof (text))) : NULL;
}

static PyObject *parse_as (const struct id_text *kind, PyObject *text)
{
    Py_ssize_t len;
    const char *s = PyUnicode_AsUTF8AndSize (text, &len);
    char id[ID_MAX];
    size_t at;

    if (!s)
        return NULL;
    return kind->parse (s, (size_t)len, id, &at) == 0 ? to_bytes (id, (size_t)kind->size)
                                                      : raise_text (text, kind->name, at);
}

/* Define NAME_text, and the Python functions format_NAME and parse_NAME. The names of the library's functions begin
 * with PREFIX.
 */
#define DEFINE_TEXT(NAME, PREFIX, TYPE, WORDS)                                                               \
    static int NAME##_format_any (const void *id, char *buf, size_t size)                                    \
    {                                                                                                        \
        return PREFIX##_format (id, buf, size);                                                              \
    }                                                                                                        \
    static int NAME##_parse_any (const char *text, size_t len, void *id, size_t *errpos)                     \
    {                                                                                                        \
        return PREFIX##_parse (text, len, id, errpos);                                                       \
    }                                                                                                        \
    static const struct id_text NAME##_text = { WORDS, sizeof (TYPE), NAME##_format_any, NAME##_parse_any }; \
    static PyObject *format_##NAME (PyObject *module, PyObject *id)                                          \
    {                                                                                                        \
        return format_as (&NAME##_text, id);                                                                 \
    }                                                                                                        \
    static PyObject *parse_##NAME (PyObject *module, PyObject *text)                                         \
    {                                                                                                        \
        return parse_as (&NAME##_text, text);                                                                \
    }

static PyObject *raise_time (void)
{
    if (errno == EOVERFLOW)
        return PyErr_Format (PyExc_OverflowError, "such an id cannot contain that time");
    return PyErr_Format (PyExc_ValueError, "the time ends before it begins");
}

/* --- flax ----------------------------------------------------------------------------------- */

DEFINE_TEXT (flax, flax, flax_t, "flax id")

static PyObject *split_flax (PyObject *module, PyObject *arg)
{
    const flax_t *id = bytes_of (arg, FLAX_SIZE, "flax id");

    if (!id)
        return NULL;
    struct flax_fields f = flax_split (id);
    return Py_BuildValue ("(LK)", (long long)flax_unix_ms (id), (unsigned long long)f.random);
}

static PyObject *join_flax (PyObject *module, PyObject *args)
{
    struct flax_fields f;
    uint64_t random;
    long long unix_ms;
    flax_t id;

    if (!PyArg_ParseTuple (args, "LO&", &unix_ms, take_u64, &random))
        return NULL;
    f.random = random;
    if (flax_ms_at (unix_ms, &f.ms) < 0)
        return raise_time ();
    if (flax_join (&f, &id) < 0)
        return PyErr_Format (PyExc_OverflowError, "a flax id has 56 random bits");
    return to_bytes (&id, sizeof (id));
}

static PyObject *range_flax (PyObject *module, PyObject *args)
{
    long long from_ms, to_ms;
    flax_t lower, upper;

    if (!PyArg_ParseTuple (args, "LL", &from_ms, &to_ms))
        return NULL;
    if (flax_range (from_ms, to_ms, &lower, &upper) < 0)
        return raise_time ();
    return Py_BuildValue ("(y#y#)", &lower, (Py_ssize_t)sizeof (lower), &upper, (Py_ssize_t)sizeof (upper));
}

/* --- sno ------------------------------------------------------------------------------------ */

DEFINE_TEXT (sno, sno, sno_t, "sno id")

static PyObject *split_sno (PyObject *module, PyObject *arg)
{
    const sno_t *id = bytes_of (arg, SNO_SIZE, "sno id");

    if (!id)
        return NULL;
    struct sno_fields f = sno_split (id);
    return Py_BuildValue ("(LIIII)", (long long)(sno_unix_ns (id) / NS_PER_MS), (unsigned)f.tick, (unsigned)f.meta,
                          (unsigned)f.partition, (unsigned)f.sequence);
}

static PyObject *join_sno (PyObject *module, PyObject *args)
{
    uint32_t tick, meta, partition, sequence;
    struct sno_fields f;
    long long unix_ms;
    sno_t id;

    if (!PyArg_ParseTuple (args, "LO&O&O&O&", &unix_ms, take_u32, &tick, take_u32, &meta, take_u32, &partition,
                           take_u32, &sequence))
        return NULL;
    f = (struct sno_fields){ .tick = tick, .meta = meta, .partition = partition, .sequence = sequence };
    errno = EOVERFLOW;
    if (unix_ms > INT64_MAX / NS_PER_MS || unix_ms < INT64_MIN / NS_PER_MS
        || sno_unit_at (unix_ms * NS_PER_MS, &f.unit) < 0)
        return raise_time ();
    if (sno_join (&f, &id) < 0)
        return PyErr_Format (PyExc_OverflowError,
                             "a sno id has a tick of 0 or 1, a byte of meta, 16 bits of partition and 16 of sequence");
    return to_bytes (&id, sizeof (id));
}

static PyObject *range_sno (PyObject *module, PyObject *args)
{
    long long from_ms, to_ms;
    sno_t lower, upper;

    if (!PyArg_ParseTuple (args, "LL", &from_ms, &to_ms))
        return NULL;
    errno = EOVERFLOW;
    if (from_ms > INT64_MAX / NS_PER_MS || from_ms < 0 || to_ms > INT64_MAX / NS_PER_MS || to_ms < 0
        || sno_range (from_ms * NS_PER_MS, to_ms * NS_PER_MS, &lower, &upper) < 0)
        return raise_time ();
    return Py_BuildValue ("(y#y#)", &lower, (Py_ssize_t)sizeof (lower), &upper, (Py_ssize_t)sizeof (upper));
}

/* --- uid ------------------------------------------------------------------------------------ */

/* Read the stored bytes of a uid. Returns 0, or -1 with an exception set. */
static int uid_of (PyObject *object, const struct uid_codec *codec, struct uid *id)
{
    Py_ssize_t len;
    char *bytes;

    if (PyBytes_AsStringAndSize (object, &bytes, &len) < 0)
        return -1;
    if (uid_from_bytes (bytes, (size_t)len, codec, id) == 0)
        return 0;
    if (errno == EMSGSIZE)
        PyErr_Format (PyExc_ValueError, "a uid has 8 bytes (local) or 12 (global), not %zd", len);
    else
        PyErr_Format (PyExc_ValueError, "a uid has %d to %d bits of drift", UID_DRIFT_MIN, UID_DRIFT_MAX);
    return -1;
}

static PyObject *format_uid (PyObject *module, PyObject *arg)
{
    char text[UID_TEXT_MAX], *bytes;
    Py_ssize_t len;

    if (PyBytes_AsStringAndSize (arg, &bytes, &len) < 0)
        return NULL;
    if (len != UID_LOCAL_SIZE && len != UID_GLOBAL_SIZE)
        return PyErr_Format (PyExc_ValueError, "a uid has 8 bytes (local) or 12 (global), not %zd", len);
    return PyUnicode_FromStringAndSize (text, uid_base64_format (bytes, (size_t)len, text, sizeof (text)));
}

static PyObject *parse_uid (PyObject *module, PyObject *text)
{
    Py_ssize_t len;
    const char *s = PyUnicode_AsUTF8AndSize (text, &len);
    uint8_t bytes[UID_GLOBAL_SIZE];
    struct uid id;
    size_t at;

    if (!s)
        return NULL;
    if (uid_parse (s, (size_t)len, NULL, &id, &at) < 0)
        return raise_text (text, "uid", at);
    ssize_t size = uid_base64_parse (s, (size_t)len, bytes, sizeof (bytes), NULL);
    return to_bytes (bytes, (size_t)size);
}

static PyObject *split_uid (PyObject *module, PyObject *args)
{
    struct uid_codec codec = { .drift = UID_DRIFT_DEFAULT };
    PyObject *bytes;
    struct uid id;

    if (!PyArg_ParseTuple (args, "O|i", &bytes, &codec.drift) || uid_of (bytes, &codec, &id) < 0)
        return NULL;
    PyObject *node = id.kind == UID_GLOBAL ? PyLong_FromUnsignedLong (id.node.fingerprint) : Py_NewRef (Py_None);
    return Py_BuildValue ("(NLLLL)", node, (long long)id.a, (long long)id.b, (long long)id.c, (long long)id.sequence);
}

static PyObject *unix_ms_uid (PyObject *module, PyObject *args)
{
    struct uid_codec codec = { .drift = UID_DRIFT_DEFAULT };
    PyObject *bytes;
    struct uid id;

    if (!PyArg_ParseTuple (args, "O|i", &bytes, &codec.drift) || uid_of (bytes, &codec, &id) < 0)
        return NULL;
    return PyLong_FromLongLong (uid_unix_ms (&id));
}

/* --- UUIDs of the id compressor ------------------------------------------------------------- */

DEFINE_TEXT (uuid, idcomp_uuid, struct idcomp_uuid, "UUID of version 4")

#define FORMAT_DOC(name) name "($module, id, /)\n--\n\nThe text of an id."
#define PARSE_DOC(name) \
    name "($module, text, /)\n--\n\nReturn the bytes of the id that the text is; ValueError if the text is malformed."
#define RANGE_DOC(name)                                                                                            \
    name "($module, from_ms, to_ms, /)\n--\n\nThe bounds (lower, upper) of ids with from_ms <= Unix ms < to_ms:\n" \
         "lower <= id < upper."

PyMethodDef values_methods[] = {
    { "fluid_format", (PyCFunction)(void (*) (void))format_fluid, METH_FASTCALL,
      "fluid_format($module, id, form='f58', /)\n--\n\nReturn the text of an id in one of the FORMS." },
    { "fluid_parse", parse_fluid, METH_O,
      "fluid_parse($module, text, /)\n--\n\nReturn the id that a text in any form is; ValueError if the text is not "
      "an id." },
    { "fluid_split", split_fluid, METH_O, NULL },
    { "fluid_join", join_fluid, METH_VARARGS, NULL },
    { "fluid_range", range_fluid, METH_VARARGS,
      "fluid_range($module, from_ms, to_ms, /)\n--\n\nReturn the bounds (lower, upper) of the ids that were made "
      "from from_ms until before to_ms, both\nmilliseconds since the epoch: lower <= id < upper." },
    { "flax_format", format_flax, METH_O, FORMAT_DOC ("flax_format") },
    { "flax_parse", parse_flax, METH_O, PARSE_DOC ("flax_parse") },
    { "flax_split", split_flax, METH_O, NULL },
    { "flax_join", join_flax, METH_VARARGS, NULL },
    { "flax_range", range_flax, METH_VARARGS, RANGE_DOC ("flax_range") },
    { "sno_format", format_sno, METH_O, FORMAT_DOC ("sno_format") },
    { "sno_parse", parse_sno, METH_O, PARSE_DOC ("sno_parse") },
    { "sno_split", split_sno, METH_O, NULL },
    { "sno_join", join_sno, METH_VARARGS, NULL },
    { "sno_range", range_sno, METH_VARARGS, RANGE_DOC ("sno_range") },
    { "uid_format", format_uid, METH_O, FORMAT_DOC ("uid_format") },
    { "uid_parse", parse_uid, METH_O, PARSE_DOC ("uid_parse") },
    { "uid_split", split_uid, METH_VARARGS, NULL },
    { "uid_unix_ms", unix_ms_uid, METH_VARARGS, NULL },
    { "uuid_format", format_uuid, METH_O, FORMAT_DOC ("uuid_format") },
    { "uuid_parse", parse_uuid, METH_O, PARSE_DOC ("uuid_parse") },
    { NULL, NULL, 0, NULL },
};
