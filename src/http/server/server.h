/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.h - an HTTP server on one thread: requests are answered immediately or later
 *
 * libmicrohttpd reads and writes; the reactor waits for its sockets and for everything else.
 */
#ifndef HTTP_SERVER_SERVER_H
#define HTTP_SERVER_SERVER_H

#include <idtree/idtree.h>

#include "http/server/auth.h"
#include "http/server/exchange.h"

struct server_conf {
    int fd;           /* listening socket; owned by the server after success */
    struct auth door; /* its texts are borrowed */
    uint32_t max_connections;
    size_t max_answers; /* bytes of all answers that clients have not read yet, without small ones */
};

/* Called with each complete request; this function, or one that it starts, answers. */
typedef void server_run_f (struct exchange *x, void *arg);

struct server;

/* NULL with errno set and 'errp' filled. */
struct server *server_create (idt_reactor_t *reactor, const struct server_conf *conf, server_run_f *run, void *arg,
                              idt_error_t *errp);

/* Waiting requests get the answer that the server ends. No other function may answer them afterwards. */
void server_destroy (struct server *s);

#endif /* HTTP_SERVER_SERVER_H */
