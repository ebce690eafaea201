/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.h - an HTTP server on one thread: requests are answered immediately or later
 *
 * libmicrohttpd reads and writes; the reactor waits for its sockets and for everything else.
 *
 * Each request is answered exactly once: with exchange_reply (), exchange_fail (), exchange_stream () or a resource,
 * immediately or later. Until then it is suspended, which needs no thread.
 */
#ifndef HTTP_SERVER_SERVER_H
#define HTTP_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <idtree/idtree.h>
#include <jansson.h>

#include "http/server/auth.h"
#include "http/server/conn_limits.h"
#include "http/server/header.h"

/* --- static files --------------------------------------------------------- */

/* Static files are compiled in: embed.sh writes resource.c for the files that Makemodule.am lists. Each client that can
 * connect may read them, with or without a token.
 */
struct resource {
    const char *path, *type;
    const char *etag; /* with quotes */
    const unsigned char *bytes;
    size_t size;
};

/* NULL if no resource is at this path. */
const struct resource *resource_find (const char *path);

/* --- a request and its answer --------------------------------------------------------- */

#define EXCHANGE_WAIT_MS 5000. /* for the broker */
#define EXCHANGE_SMALL 1024    /* bytes: an answer up to this size is always accepted */

struct MHD_Connection;
struct exchange;

/* Bytes of all answers that clients have not read yet, and their limit, which does not apply to small ones. */
struct room {
    size_t held, max;
};

/* Write up to 'size' bytes of the stream. Returns 0 if there is nothing yet; exchange_resume () makes the server call
 * this again.
 */
typedef size_t exchange_read_f (struct exchange *x, char *buf, size_t size);

/* A request, until it has ended. */
struct exchange {
    LIST_ENTRY (exchange) link;
    struct MHD_Connection *connection;
    struct guest *guest; /* of its connection; NULL: there was no memory */
    struct room *room;
    const char *target; /* as sent, and its size */
    size_t target_size;
    struct framing framing;
    const char *url, *method; /* NULL: the header is not complete */
    size_t body;              /* bytes of the body received so far */
    bool suspended;           /* it waits for the answer, or for more of a stream */
    bool last;                /* the connection ends with the answer */
    bool ready;               /* the members below hold the answer */
    unsigned status;
    const char *type;
    char *text;                      /* owned */
    size_t held;                     /* bytes of 'text' that count for 'room' */
    const char *allow;               /* methods, for status 405 */
    const struct resource *resource; /* the requested resource; NULL: none */
    bool streams;                    /* the answer is a stream, or would be one for GET */
    exchange_read_f *read;           /* source of the stream; NULL: not a stream */
    bool over;                       /* end of the stream */
    /* used by the function that answers */
    idt_future_t *f;                    /* the request to the broker */
    void *state;                        /* exchange_state_new () */
    void (*leave) (struct exchange *x); /* called when the request ends; may be NULL */
};

/* Allocate 'size' zero bytes for the function that answers; they are freed with the exchange. NULL: no memory, and the
 * request was answered with an error.
 */
void *exchange_state_new (struct exchange *x, size_t size);

/* A parameter of the URL ("" if it has no '='), or a header. NULL if it does not exist. */
const char *exchange_parameter (const struct exchange *x, const char *name);
const char *exchange_header (const struct exchange *x, const char *name);

/* The index of the media type, of 'n' (the default first), that the client prefers by its Accept fields. */
size_t exchange_wants (const struct exchange *x, const char *const *types, size_t n);

/* Ask the broker: 'cb' is called with the answer or an error in x->f. If the request cannot be sent, the exchange is
 * answered with an error.
 */
void exchange_ask (struct exchange *x, idt_future_t *f, idt_future_f cb);

/* --- answers --------------------------------------------------------- */

/* 'text' is owned by the exchange afterwards (NULL: there was no memory); 'type' is static. */
void exchange_reply (struct exchange *x, unsigned status, const char *type, char *text);
void exchange_reply_json (struct exchange *x, unsigned status, json_t *o); /* takes the reference; NULL as above */

/* A line of JSON that the caller frees; takes the reference of 'o'. NULL: 'o' is NULL, or no memory. */
char *exchange_json_text (json_t *o);

/* Answer with a problem document (RFC 9457). */
void exchange_fail (struct exchange *x, unsigned status, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Like exchange_fail () for an error of the broker: EAGAIN and other temporary errors are 503. */
void exchange_fail_errno (struct exchange *x, int errnum, const char *text);

/* Send x->resource, or 304 to a client that has it already. */
void exchange_reply_resource (struct exchange *x);

/* Answer with what 'read' returns, until the server ends. */
void exchange_stream (struct exchange *x, const char *type, exchange_read_f *read);
void exchange_resume (struct exchange *x);

/* --- the server --------------------------------------------------------- */

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
