/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - FLUIDs as values: text, fields, bounds of times */
#include "extension.h"

#include <errno.h>
#include <string.h>

#include <idtree/fluid.h>

/* Without keywords, because parsing those takes longer than the work. */
static PyObject *format (PyObject *module, PyObject *const *args, Py_ssize_t nargs)
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

static PyObject *parse (PyObject *module, PyObject *text)
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

static PyObject *split (PyObject *module, PyObject *arg)
{
    fluid_t id;

    if (!take_u64 (arg, &id))
        return NULL;
    struct fluid_fields f = fluid_split (id);
    return Py_BuildValue ("(KII)", (unsigned long long)f.timestamp_ms, (unsigned)f.generator, (unsigned)f.sequence);
}

static PyObject *join (PyObject *module, PyObject *args)
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

static PyObject *range (PyObject *module, PyObject *args)
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

PyMethodDef fluid_methods[] = {
    { "fluid_format", (PyCFunction)(void (*) (void))format, METH_FASTCALL,
      "fluid_format($module, id, form='f58', /)\n--\n\nThe text of an id, in a form of FORMS." },
    { "fluid_parse", parse, METH_O,
      "fluid_parse($module, text, /)\n--\n\nThe id of a text in any form; ValueError if it is not an id." },
    { "fluid_split", split, METH_O, NULL },
    { "fluid_join", join, METH_VARARGS, NULL },
    { "fluid_range", range, METH_VARARGS,
      "fluid_range($module, from_ms, to_ms, /)\n--\n\nThe bounds (lower, upper) of the ids of a time of the "
      "epoch:\nlower <= id < upper." },
    { NULL, NULL, 0, NULL },
};
