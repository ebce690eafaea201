/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* resource.h - files that are served as they are, compiled in: embed.sh writes resource.c of what Makemodule.am lists
 */
#ifndef HTTP_SERVER_RESOURCE_H
#define HTTP_SERVER_RESOURCE_H

#include <stddef.h>

/* Nothing of it is a secret: who may reach the server may read it, token or not. */
struct resource {
    const char *path, *type;
    const char *etag; /* with its quotes */
    const unsigned char *bytes;
    size_t size;
};

/* NULL: there is none at this path. */
const struct resource *resource_find (const char *path);

#endif /* HTTP_SERVER_RESOURCE_H */
