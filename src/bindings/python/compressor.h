/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* compressor.h - what a compressor of one's own and a document of the instance have in common: ids of a session */
#ifndef PYTHON_COMPRESSOR_H
#define PYTHON_COMPRESSOR_H

#include "extension.h"

#include <idtree/idcomp.h>

/* What such an object begins with. */
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

/* In a table of methods. */
#define SESSION_METHODS                                                                                                \
    { "generate", session_generate, METH_NOARGS, "generate($self, /)\n--\n\nA new id, as this session uses it." },     \
        { "to_op", session_to_op, METH_O,                                                                              \
          "to_op($self, id, /)\n--\n\nThe form to send to others, along with the session." },                          \
        { "to_session", WITH_KEYWORDS (session_to_session),                                                            \
          "to_session($self, /, op, origin=None)\n--\n\nWhat came from session 'origin', as this one uses it." },      \
        { "uuid", session_uuid, METH_O, "uuid($self, id, /)\n--\n\nThe UUID that an id of this session stands for." }, \
    {                                                                                                                  \
        "id_of", session_id_of, METH_O, "id_of($self, uuid, /)\n--\n\nThe id of a UUID; ValueError: it has none here." \
    }

/* A new type of compressors. */
PyObject *compressor_type_create (PyObject *module);

#endif /* PYTHON_COMPRESSOR_H */
