/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uris.h - where brokers are: a list of URIs, which is tried in its order
 *
 * A URI is local://PATH, or local://PATH?rank=RANK for one rank of those that a process hosts (protocol.md section 2).
 * Blanks and commas separate URIs where the next one begins behind them, so a path may hold either.
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
    char *text; /* as it was written */
    struct sockaddr_un socket;
    bool has_rank;
    uint32_t rank;
};

struct uris {
    struct uri uri[URIS_MAX];
    size_t count; /* at least 1 */
};

/* Read a list into '*u', for uris_fini ().  Returns 0, or -1 with nothing left in '*u' and errno EINVAL (what is wrong
 * is in 'errp') or ENOMEM.
 */
int uris_parse (struct uris *u, const char *text, idt_error_t *errp);

/* Keeps errno. */
void uris_fini (struct uris *u);

#endif /* LIBIDTREE_CONNECT_URIS_H */
