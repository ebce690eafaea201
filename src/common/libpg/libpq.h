/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* libpq.h - the functions of libpq, which is loaded when the first connection is opened and then stays loaded */
#ifndef PG_LIBPQ_H
#define PG_LIBPQ_H

#include <libpq-fe.h>

#include <idtree/error.h>

#define LIBPQ_FUNCTIONS(X)        \
    X (PQclear)                   \
    X (PQconnectionNeedsPassword) \
    X (PQconnectPoll)             \
    X (PQconnectStartParams)      \
    X (PQconninfo)                \
    X (PQconninfoFree)            \
    X (PQconninfoParse)           \
    X (PQconsumeInput)            \
    X (PQerrorMessage)            \
    X (PQfinish)                  \
    X (PQflush)                   \
    X (PQfreemem)                 \
    X (PQgetisnull)               \
    X (PQgetlength)               \
    X (PQgetResult)               \
    X (PQgetvalue)                \
    X (PQhost)                    \
    X (PQisBusy)                  \
    X (PQntuples)                 \
    X (PQport)                    \
    X (PQresultErrorField)        \
    X (PQresultStatus)            \
    X (PQsendQueryParams)         \
    X (PQsetErrorVerbosity)       \
    X (PQsetnonblocking)          \
    X (PQsetNoticeReceiver)       \
    X (PQsocket)                  \
    X (PQstatus)

struct libpq {
#define LIBPQ_FUNCTION(name) __typeof__ (name) *name;
    LIBPQ_FUNCTIONS (LIBPQ_FUNCTION)
#undef LIBPQ_FUNCTION
};

/* The functions. NULL with errno ENOSYS and 'errp' filled if libpq is not installed. */
const struct libpq *libpq_load (idt_error_t *errp);

#endif /* PG_LIBPQ_H */
