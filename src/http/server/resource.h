/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* resource.h - static files that are compiled in: embed.sh writes resource.c for the files that Makemodule.am lists */
#ifndef HTTP_SERVER_RESOURCE_H
#define HTTP_SERVER_RESOURCE_H

#include <stddef.h>

/* Resources are public: each client that can connect may read them, with or without a token. */
struct resource {
    const char *path, *type;
    const char *etag; /* with quotes */
    const unsigned char *bytes;
    size_t size;
};

/* NULL if no resource is at this path. */
const struct resource *resource_find (const char *path);

#endif /* HTTP_SERVER_RESOURCE_H */
