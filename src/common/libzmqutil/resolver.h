/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* resolver.h - resolve the host of an endpoint (IPv4 and IPv6) without waiting for a name server
 *
 * ZeroMQ would resolve the name in the thread that serves all connections, and would serve none of them until the name
 * server answers. This object resolves the name in a thread of its own, and uses the last result until the next result
 * arrives.
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
void resolver_destroy (struct resolver *a); /* NULL is allowed */

/* Returns 'endpoint' ("tcp://HOST:PORT") with a numeric address in place of HOST; borrowed until the next call. An
 * endpoint whose host is not a name is returned unchanged. If the name has several addresses, the first one in the
 * order of getaddrinfo () is used until resolver_next () is called. If the result of the last lookup is older than
 * RESOLVER_FRESH_MS, it is still used, and the name is looked up again meanwhile. NULL: no address is known yet; 'errp'
 * says why. HOST may be a list of names and addresses with commas between them (an IPv6 address in brackets): then it
 * has the addresses of all of them, in this order. Names that cannot be resolved are left out.
 */
#define RESOLVER_FRESH_MS 5000
const char *resolver_resolve (struct resolver *a, const char *endpoint, idt_error_t *errp);

/* Call this if the last returned address failed. From now on the next address of the name is returned, and after the
 * last address the first. Returns false when each address has failed once since this function last returned false, else
 * true.
 */
bool resolver_next (struct resolver *a);

size_t resolver_count (const struct resolver *a); /* addresses of the name; 0: none known, or the host is numeric */

/* Wait until all running lookups have ended, but at most for 'timeout_ms'. Entries of the list may be NULL. */
void resolver_wait (struct resolver *const *list, size_t n, int timeout_ms);

/* --- numbers ------------------------------------------------------------------------------------- */

#define RESOLVER_TEXT 64 /* bytes of an address as text */

/* Write the address of a socket as text, without brackets. Returns false if it has no address that other hosts on the
 * network can use (its address is link-local, or of another family than IPv4 and IPv6).
 */
bool resolver_text (const struct sockaddr *sa, char text[RESOLVER_TEXT]);

/* resolver_number (): read the numeric host of an endpoint. resolver_of (): read the address of a socket. An IPv4
 * address is stored as a mapped IPv6 address. Return false if there is no such address.
 */
bool resolver_number (const char *endpoint, struct in6_addr *number);
bool resolver_of (const struct sockaddr *sa, struct in6_addr *number);

/* Write "tcp://HOST:PORT", with brackets around HOST if it contains colons and is no list. Returns 0, or -1 with errno
 * ENAMETOOLONG.
 */
int resolver_endpoint (char *buf, size_t size, const char *host, const char *port);

#endif /* LIBZMQUTIL_RESOLVER_H */
