/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uris.h - a list of broker URIs, which are tried in their order
 *
 * A URI is local://PATH, or local://PATH?rank=RANK for one of the ranks that a process hosts (protocol.md section 2).
 * Blanks and commas separate URIs only if another URI begins after them, so a path may contain both.
 */
#ifndef LIBIDTREE_CONNECT_URIS_H
#define LIBIDTREE_CONNECT_URIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include <idtree/error.h>

#define URIS_MAX 16 /* of one list */

struct uri {
    char *text; /* as the caller wrote it */
    struct sockaddr_un socket;
    bool has_rank;
    uint32_t rank;
};

struct uris {
    struct uri uri[URIS_MAX];
    size_t count; /* at least 1 */
};

/* Parse a list into '*u'; free it with uris_fini (). Returns 0, or -1 with '*u' empty and errno EINVAL (the reason is
 * in 'errp') or ENOMEM.
 */
int uris_parse (struct uris *u, const char *text, idt_error_t *errp);

/* Keeps errno. */
void uris_fini (struct uris *u);

#endif /* LIBIDTREE_CONNECT_URIS_H */
