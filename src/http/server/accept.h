/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* accept.h - choose the media type that a client prefers (RFC 9110, 12.5.1); no I/O */
#ifndef HTTP_SERVER_ACCEPT_H
#define HTTP_SERVER_ACCEPT_H

#include <stddef.h>

#define ACCEPT_TYPES 4 /* largest number of offered types */

/* The best range that matches one offered type. */
struct accept_weight {
    int specific; /* specificity of the best range that matches; -1: no range does */
    int q;        /* 0 to 1000 */
};

struct accept {
    const char *const *types; /* borrowed; the default comes first */
    size_t n;
    int fields; /* Accept fields that were read */
    struct accept_weight weights[ACCEPT_TYPES];
};

/* Offer 'n' types, such as "text/plain; version=0.0.4". */
void accept_init (struct accept *a, const char *const *types, size_t n);

/* Read one Accept field.  A range that breaks the grammar is ignored. */
void accept_read (struct accept *a, const char *value);

/* The index of the type with the greatest weight; among equal weights the one with the more specific range, then the
 * one that is offered first. If the client accepts no offered type, the default is returned, because an error would not
 * help the client.
 */
size_t accept_choose (const struct accept *a);

#endif /* HTTP_SERVER_ACCEPT_H */
