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
#include <stdint.h>

/* In a table of methods. */
#define WITH_KEYWORDS(function) ((PyCFunction)(void (*) (void)) (function)), METH_VARARGS | METH_KEYWORDS

/* Set OSError, unless there is an exception already.  Returns NULL. */
PyObject *raise_errno (int errnum, const char *text);

/* For O& of PyArg_Parse: numbers as they are.  What is below 0 or has more bits is OverflowError, where Python's own K
 * and I take its lowest bits.
 */
int take_u64 (PyObject *object, void *to); /* uint64_t */
int take_u32 (PyObject *object, void *to); /* uint32_t */

/* The same for seconds to wait, a double: what is no number would be waited for for ever. */
int take_timeout (PyObject *object, void *to);

#define IDS_MAX (1 << 24) /* ids of one call that makes a list of them */

/* Whether a list may have 'n' ids; if not, ValueError says what to do instead. */
bool is_list_size (Py_ssize_t n, const char *instead);

/* A new type of connections. */
PyObject *connection_type_create (PyObject *module);

enum generator_kind { GENERATOR_FLAX, GENERATOR_SNO, GENERATOR_UID, GENERATOR_FLUID };

/* A new type of generators in this process. */
PyObject *generator_type_create (PyObject *module, enum generator_kind kind);

/* Functions of ids as values. */
extern PyMethodDef fluid_methods[], flake_methods[];

#endif /* PYTHON_EXTENSION_H */
