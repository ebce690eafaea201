/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* address.h - where the host of an endpoint is, found out without waiting for a name server
 *
 * ZeroMQ would ask in the thread that serves all connections: while a name server does not answer, none of them would
 * be served.  Here a thread of its own asks; the last answer is used until there is another one.
 */
#ifndef LIBZMQUTIL_ADDRESS_H
#define LIBZMQUTIL_ADDRESS_H

#include <stddef.h>

#include <idtree/error.h>

struct address;

struct address *address_create (void);    /* NULL with errno ENOMEM */
void address_destroy (struct address *a); /* NULL is fine */

/* 'endpoint' ("tcp://HOST:PORT"), with a number in HOST's place; borrowed until the next call.  One that has no name is
 * returned as it is.  What was found out more than ADDRESS_FRESH_MS ago is used, and asked for anew.  NULL: not known
 * (yet); 'errp' says why.
 */
#define ADDRESS_FRESH_MS 5000
const char *address_resolve (struct address *a, const char *endpoint, idt_error_t *errp);

/* Wait until all that is asked is answered, or for so long.  Some of the list may be NULL. */
void address_wait (struct address *const *list, size_t n, int timeout_ms);

#endif /* LIBZMQUTIL_ADDRESS_H */
