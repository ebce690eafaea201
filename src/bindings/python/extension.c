/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* extension.c - the module idtree._idtree, which the Python package idtree uses */
#include "extension.h"

#include <idtree/generate.h>

/* Add a new object (NULL: it could not be made) to the module under 'name'. Returns 0, or -1 with an exception set. */
static int add_new (PyObject *module, const char *name, PyObject *object)
{
    int rc = object ? PyModule_AddObjectRef (module, name, object) : -1;

    Py_XDECREF (object);
    return rc;
}

/* The order is the order of enum generator_kind. */
static const char *const generators[] = { "FlaxGenerator", "SnoGenerator", "UidGenerator", "FluidGenerator" };

static int execute (PyObject *module)
{
    if (add_new (module, "Connection", connection_type_create (module)) < 0
        || add_new (module, "Document", document_type_create (module)) < 0
        || add_new (module, "Compressor", compressor_type_create (module)) < 0)
        return -1;
    for (size_t i = 0; i < sizeof (generators) / sizeof (generators[0]); i++)
        if (add_new (module, generators[i], generator_type_create (module, (enum generator_kind)i)) < 0)
            return -1;
    if (PyModule_AddFunctions (module, values_methods) < 0 || PyModule_AddIntConstant (module, "MAX_IDS", IDS_MAX) < 0)
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
    .m_doc = "The part of libidtree that the package idtree uses.",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__idtree (void);
PyMODINIT_FUNC PyInit__idtree (void)
{
    return PyModuleDef_Init (&definition);
}
