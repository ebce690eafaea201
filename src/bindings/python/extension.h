/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.h - what the files of the Python extension idtree._idtree share
 *
 * Built on the stable ABI of Python 3.11: one file serves each Python from there on.  Errors of calls to the instance
 * are OSError with errno and a sentence, so that Python makes TimeoutError, ConnectionRefusedError, ... of them;
 * arguments that are wrong are ValueError, OverflowError, TypeError.
 */
#ifndef PYTHON_EXTENSION_H
#define PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>

/* In a table of methods. */
#define WITH_KEYWORDS(function) ((PyCFunction)(void (*) (void)) (function)), METH_VARARGS | METH_KEYWORDS

/* Set OSError, unless there is an exception already.  Returns NULL. */
PyObject *raise_errno (int errnum, const char *text);

/* A new type of connections. */
PyObject *connection_type_create (PyObject *module);

enum generator_kind { GENERATOR_FLAX, GENERATOR_SNO, GENERATOR_UID, GENERATOR_FLUID };

/* A new type of generators in this process. */
PyObject *generator_type_create (PyObject *module, enum generator_kind kind);

/* Functions of ids as values. */
extern PyMethodDef fluid_methods[], flake_methods[];

#endif /* PYTHON_EXTENSION_H */
