/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* resolver.h - where the host of an endpoint is, found out without waiting for a name server; IPv4 and IPv6
 *
 * ZeroMQ would ask in the thread that serves all connections: while a name server does not answer, none of them would
 * be served.  Here a thread of its own asks; the last answer is used until there is another one.
 */
#ifndef LIBZMQUTIL_RESOLVER_H
#define LIBZMQUTIL_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <idtree/error.h>

struct resolver;

struct resolver *resolver_create (void);    /* NULL with errno ENOMEM */
void resolver_destroy (struct resolver *a); /* NULL is fine */

/* 'endpoint' ("tcp://HOST:PORT"), with a number in HOST's place; borrowed until the next call.  One that has no name is
 * returned as it is.  Of several numbers it is the first in the order of getaddrinfo (), until resolver_next ().
 * What was found out more than RESOLVER_FRESH_MS ago is used, and asked for anew.  NULL: not known
 * (yet); 'errp' says why.
 */
#define RESOLVER_FRESH_MS 5000
const char *resolver_resolve (struct resolver *a, const char *endpoint, idt_error_t *errp);

/* What was returned last did not do: from now on the next number of the name is returned, after the last the first.
 * Returns whether there is one that had no turn since this returned false.
 */
bool resolver_next (struct resolver *a);

size_t resolver_count (const struct resolver *a); /* numbers of the name; 0: it is not known, or is a number itself */

/* Wait until all that is asked is answered, or for so long.  Some of the list may be NULL. */
void resolver_wait (struct resolver *const *list, size_t n, int timeout_ms);

/* --- numbers ------------------------------------------------------------------------------------- */

#define RESOLVER_TEXT 64 /* bytes of a number as text */

/* The number of a socket's address as text, without brackets.  Returns false: it has none that others on the network
 * know (of this link alone, another family).
 */
bool resolver_text (const struct sockaddr *sa, char text[RESOLVER_TEXT]);

/* The number in the place of an endpoint's host, or of a socket's address; one of IPv4 as IPv6 maps it.  Return false:
 * there is none.
 */
bool resolver_number (const char *endpoint, struct in6_addr *number);
bool resolver_of (const struct sockaddr *sa, struct in6_addr *number);

/* "tcp://HOST:PORT", HOST in brackets where it is a number that needs them.  Returns 0, or -1 with errno ENAMETOOLONG.
 */
int resolver_endpoint (char *buf, size_t size, const char *host, const char *port);

#endif /* LIBZMQUTIL_RESOLVER_H */
