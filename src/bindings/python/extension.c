/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.c - the module idtree._idtree, which the package idtree makes readable */
#include "extension.h"

#include <idtree/idtree.h>

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

static int execute (PyObject *module)
{
    PyObject *type = connection_type_create (module);

    if (!type || PyModule_AddObjectRef (module, "Connection", type) < 0) {
        Py_XDECREF (type);
        return -1;
    }
    Py_DECREF (type);
    if (PyModule_AddFunctions (module, fluid_methods) < 0 || PyModule_AddFunctions (module, flake_methods) < 0)
        return -1;
    return PyModule_AddIntConstant (module, "MAX_COUNT", IDT_FLUID_MAX_COUNT);
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, execute },
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "idtree._idtree",
    .m_doc = "What the package idtree needs of libidtree.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__idtree (void);
PyMODINIT_FUNC PyInit__idtree (void)
{
    return PyModuleDef_Init (&definition);
}
