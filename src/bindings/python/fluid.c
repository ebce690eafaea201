/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - FLUIDs as values: text, fields, keys of a time */
#include "extension.h"

#include <errno.h>
#include <string.h>

#include <idtree/fluid.h>

/* An id of any int from 0 to 2^64 - 1, for PyArg_Parse's O&. */
static int take_id (PyObject *object, void *to)
{
    unsigned long long id = PyLong_AsUnsignedLongLong (object);

    if (id == (unsigned long long)-1 && PyErr_Occurred ())
        return 0;
    *(fluid_t *)to = id;
    return 1;
}

/* Without keywords: these take longer than the work. */
static PyObject *format (PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const char *form_name = "f58";
    enum fluid_form form;
    char text[FLUID_TEXT_MAX];
    fluid_t id;

    if (nargs != 1 && nargs != 2)
        return PyErr_Format (PyExc_TypeError, "format() takes an id and a form");
    if (!take_id (args[0], &id) || (nargs == 2 && !(form_name = PyUnicode_AsUTF8AndSize (args[1], NULL))))
        return NULL;
    if (fluid_form_find (form_name, &form) < 0)
        return PyErr_Format (PyExc_ValueError,
                             "no form '%s': there are dec, hex, dothex, f58, \xc6\x92"
                             "58, words, emoji",
                             form_name);
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
        return PyErr_Format (PyExc_OverflowError, "%R is a number of more than 64 bits", text);
    return PyErr_Format (PyExc_ValueError, "%R is no FLUID: see byte %zu", text, at);
}

static PyObject *split (PyObject *module, PyObject *arg)
{
    fluid_t id;

    if (!take_id (arg, &id))
        return NULL;
    struct fluid_fields f = fluid_split (id);
    return Py_BuildValue ("(KII)", (unsigned long long)f.timestamp_ms, (unsigned)f.generator, (unsigned)f.sequence);
}

static PyObject *join (PyObject *module, PyObject *args)
{
    unsigned long long timestamp_ms;
    unsigned int generator, sequence;
    fluid_t id;

    if (!PyArg_ParseTuple (args, "KII", &timestamp_ms, &generator, &sequence))
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
    unsigned long long from_ms, to_ms;
    fluid_t lower, upper;

    if (!PyArg_ParseTuple (args, "KK", &from_ms, &to_ms))
        return NULL;
    if (fluid_range (from_ms, to_ms, &lower, &upper) == 0)
        return Py_BuildValue ("(KK)", (unsigned long long)lower, (unsigned long long)upper);
    if (errno == EOVERFLOW)
        return PyErr_Format (PyExc_OverflowError, "a FLUID has 40 bits of time");
    return PyErr_Format (PyExc_ValueError, "the time ends before it begins");
}

PyMethodDef fluid_methods[] = {
    { "fluid_format", (PyCFunction)(void (*) (void))format, METH_FASTCALL, NULL },
    { "fluid_parse", parse, METH_O, NULL },
    { "fluid_split", split, METH_O, NULL },
    { "fluid_join", join, METH_VARARGS, NULL },
    { "fluid_range", range, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};
