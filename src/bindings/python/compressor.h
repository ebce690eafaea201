/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.h - the common part of a local compressor and a document of the instance: ids of a session */
#ifndef PYTHON_COMPRESSOR_H
#define PYTHON_COMPRESSOR_H

#include "extension.h"

#include <idtree/idcomp.h>

/* The head of both objects. */
struct session {
    PyObject_HEAD
        /* Begin a call with the compressor.  NULL with an exception set. / End it. */
        struct idcomp *(*enter) (PyObject *self);
    void (*leave) (PyObject *self);
};

PyObject *session_generate (PyObject *self, PyObject *unused);
PyObject *session_to_op (PyObject *self, PyObject *id);
PyObject *session_to_session (PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *session_uuid (PyObject *self, PyObject *id);
PyObject *session_id_of (PyObject *self, PyObject *uuid);

/* For a table of methods. */
#define SESSION_METHODS                                                                                                \
    { "generate", session_generate, METH_NOARGS, "generate($self, /)\n--\n\nA new id in the space of this session." }, \
        { "to_op", session_to_op, METH_O, "to_op($self, id, /)\n--\n\nThe form to send to other sessions." },          \
        { "to_session", WITH_KEYWORDS (session_to_session),                                                            \
          "to_session($self, /, op, origin=None)\n--\n\nAn id of session 'origin', in the space of this one." },       \
        { "uuid", session_uuid, METH_O, "uuid($self, id, /)\n--\n\nThe UUID of an id of this session." },              \
    {                                                                                                                  \
        "id_of", session_id_of, METH_O, "id_of($self, uuid, /)\n--\n\nThe id of a UUID; ValueError if it has none."    \
    }

/* Make the type of compressors. */
PyObject *compressor_type_create (PyObject *module);

#endif /* PYTHON_COMPRESSOR_H */
