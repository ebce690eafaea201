/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.h - declarations that the files of the Python extension idtree._idtree share
 *
 * The extension is built with the stable ABI of Python 3.11: one file works with that version and all later ones.
 * Errors of calls to the instance are OSError with errno and a text. Python makes TimeoutError, ConnectionRefusedError
 * and other subclasses of it by the errno. Wrong arguments are ValueError, OverflowError or TypeError.
 */
#ifndef PYTHON_EXTENSION_H
#define PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* The function and flags of a method with keywords, for a table of methods. */
#define WITH_KEYWORDS(function) ((PyCFunction)(void (*) (void)) (function)), METH_VARARGS | METH_KEYWORDS

/* --- args.c: arguments and exceptions ---------------------------------------------------------- */

/* Raise OSError with errno and text, unless an exception is set already. Returns NULL. */
PyObject *raise_errno (int errnum, const char *text);

/* Converters for O& of PyArg_Parse. Numbers that are negative or too large raise OverflowError. Python's own K and I
 * would use the lowest bits of such numbers.
 */
int take_u64 (PyObject *object, void *to); /* uint64_t */
int take_u32 (PyObject *object, void *to); /* uint32_t */

/* Like take_u64 (), for a double: seconds to wait. NaN is refused, because it would mean to wait forever. */
int take_timeout (PyObject *object, void *to);

#define IDS_MAX (1 << 24) /* most ids of a call that makes a list */

/* Whether a list may have 'n' ids. If not, raises ValueError; its text has 'instead', an advice what to call. */
bool is_list_size (Py_ssize_t n, const char *instead);

PyObject *return_self (PyObject *self, PyObject *unused); /* the method __enter__ */

/* --- types and functions, each defined in the file of its name ----- */

/* Make the types of connections, documents, and compressors without a broker. */
PyObject *connection_type_create (PyObject *module);
PyObject *document_type_create (PyObject *module);
PyObject *compressor_type_create (PyObject *module);

enum generator_kind { GENERATOR_FLAX, GENERATOR_SNO, GENERATOR_UID, GENERATOR_FLUID };

/* Make a type of generators; they need no broker. */
PyObject *generator_type_create (PyObject *module, enum generator_kind kind);

/* Functions whose arguments and results are ids. */
extern PyMethodDef values_methods[];

#endif /* PYTHON_EXTENSION_H */
