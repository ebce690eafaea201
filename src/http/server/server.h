/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.h - HTTP on one thread: requests come in, and are answered at once or when somebody knows
 *
 * libmicrohttpd reads and writes; the reactor waits for its sockets and for all else.
 */
#ifndef HTTP_SERVER_SERVER_H
#define HTTP_SERVER_SERVER_H

#include <idtree/idtree.h>

#include "http/server/auth.h"
#include "http/server/exchange.h"

struct server_conf {
    int fd;           /* that listens; the server's from success on */
    struct auth door; /* its texts are borrowed */
    uint32_t max_connections;
    size_t max_answers; /* bytes of all answers that were not taken yet, but for small ones */
};

/* Called with each request once it is there; it, or whoever it hands that to, answers. */
typedef void server_run_f (struct exchange *x, void *arg);

struct server;

/* NULL with errno set and 'errp' filled. */
struct server *server_create (idt_reactor_t *reactor, const struct server_conf *conf, server_run_f *run, void *arg,
                              idt_error_t *errp);

/* Those who wait are told that it ends: nobody else may answer them any more. */
void server_destroy (struct server *s);

#endif /* HTTP_SERVER_SERVER_H */
