/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* args.c - read the arguments of calls from Python, and raise the exceptions of these calls */
#include "extension.h"

PyObject *raise_errno (int errnum, const char *text)
{
    if (PyErr_Occurred ())
        return NULL;
    PyObject *error = PyObject_CallFunction (PyExc_OSError, "is", errnum, text);
    if (error)
        PyErr_SetObject ((PyObject *)Py_TYPE (error), error);
    Py_XDECREF (error);
    return NULL;
}

int take_u64 (PyObject *object, void *to)
{
    unsigned long long number = PyLong_AsUnsignedLongLong (object);

    if (number == (unsigned long long)-1 && PyErr_Occurred ())
        return 0;
    *(uint64_t *)to = number;
    return 1;
}

int take_u32 (PyObject *object, void *to)
{
    uint64_t number;

    if (!take_u64 (object, &number))
        return 0;
    if (number > UINT32_MAX) {
        PyErr_Format (PyExc_OverflowError, "%R does not fit into 32 bits", object);
        return 0;
    }
    *(uint32_t *)to = (uint32_t)number;
    return 1;
}

int take_timeout (PyObject *object, void *to)
{
    double seconds = PyFloat_AsDouble (object);

    if (seconds == -1 && PyErr_Occurred ())
        return 0;
    if (seconds != seconds) {
        PyErr_Format (PyExc_ValueError, "a timeout must be a number of seconds, and not %R", object);
        return 0;
    }
    *(double *)to = seconds;
    return 1;
}

bool is_list_size (Py_ssize_t n, const char *instead)
{
    if (n >= 0 && n <= IDS_MAX)
        return true;
    if (n < 0)
        PyErr_SetString (PyExc_ValueError, "the number of ids must be 0 or more");
    else
        PyErr_Format (PyExc_ValueError, "a list of %zd ids is too long, the maximum is %d: %s", n, IDS_MAX, instead);
    return false;
}

PyObject *return_self (PyObject *self, PyObject *unused)
{
    return Py_NewRef (self);
}
