/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* accept.h - which media type a client wants (RFC 9110, 12.5.1); decides, and does no I/O */
#ifndef HTTP_SERVER_ACCEPT_H
#define HTTP_SERVER_ACCEPT_H

#include <stddef.h>

#define ACCEPT_TYPES 4 /* that may be offered at most */

/* What the client said of one offered type. */
struct accept_weight {
    int specific; /* how exactly the range names it; -1: no range does */
    int q;        /* 0 to 1000 */
};

struct accept {
    const char *const *types; /* borrowed; the default comes first */
    size_t n;
    int fields; /* that were read */
    struct accept_weight weights[ACCEPT_TYPES];
};

/* Offer 'n' types, such as "text/plain; version=0.0.4". */
void accept_init (struct accept *a, const char *const *types, size_t n);

/* Read one Accept field.  A range that breaks the grammar is ignored. */
void accept_read (struct accept *a, const char *value);

/* The index of the type that the client wants most: of equal ones the one that it names more exactly, then the one that
 * is offered first.  Without a type that it takes, the default: refusing would help nobody.
 */
size_t accept_choose (const struct accept *a);

#endif /* HTTP_SERVER_ACCEPT_H */
