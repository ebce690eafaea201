/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.h - an HTTP server on one thread: requests are answered immediately or later
 *
 * libmicrohttpd reads and writes. The reactor waits for libmicrohttpd's sockets and for everything else.
 *
 * Each request is answered exactly once, immediately or later: with exchange_reply (), exchange_fail (),
 * exchange_stream () or exchange_reply_resource (). Until then the request is suspended, which needs no thread.
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

/* Static files are compiled into the program: embed.sh writes resource.c for the files that Makemodule.am lists. Each
 * client that can connect may read them without a token or a certificate.
 */
struct resource {
    const char *path, *type;
    const char *etag; /* the entity tag, with its quotes */
    const unsigned char *bytes;
    size_t size;
};

/* Return the resource at 'path', or NULL. */
const struct resource *resource_find (const char *path);

/* --- a request and its answer --------------------------------------------------------- */

#define EXCHANGE_WAIT_MS 5000. /* how long a request waits for an answer of the broker */
#define EXCHANGE_SMALL 1024    /* bytes: an answer up to this size is always accepted */

struct MHD_Connection;
struct exchange;

/* The bytes of all answers that clients have not read yet, and the limit of these bytes. Answers of at most
 * EXCHANGE_SMALL bytes are accepted above the limit, too.
 */
struct room {
    size_t held, max;
};

/* Write up to 'size' bytes of the stream to 'buf'. Returns their number; 0 if the stream has no new bytes yet. In this
 * case the server calls the function again after exchange_resume ().
 */
typedef size_t exchange_read_f (struct exchange *x, char *buf, size_t size);

/* A request, until it has ended. */
struct exchange {
    LIST_ENTRY (exchange) link;
    struct MHD_Connection *connection;
    struct guest *guest; /* state of the connection; NULL: there was no memory */
    struct room *room;
    const char *target; /* the target as the client sent it, and its size */
    size_t target_size;
    struct framing framing;
    const char *url, *method; /* NULL: the header is not complete yet */
    size_t body;              /* bytes of the body received so far */
    bool suspended;           /* the request waits for its answer, or for more bytes of its stream */
    bool last;                /* the connection must end after this answer */
    bool ready;               /* the members below hold the answer */
    unsigned status;
    const char *type;
    char *text;                      /* owned */
    size_t held;                     /* bytes of 'text' that are counted in 'room' */
    const char *allow;               /* the allowed methods, for status 405 */
    const struct resource *resource; /* the requested resource; NULL: none */
    bool streams;                    /* the answer to GET is a stream, also if the method is HEAD */
    exchange_read_f *read;           /* source of the stream; NULL: not a stream */
    bool over;                       /* end of the stream */
    /* for the function that answers the request */
    idt_future_t *f;                    /* the request to the broker */
    void *state;                        /* the result of exchange_state_new () */
    void (*leave) (struct exchange *x); /* called when the request ends; may be NULL */
};

/* Allocate 'size' zero bytes for the function that answers the request; they are freed with the exchange. Returns NULL
 * if memory is short; the request was then answered with an error.
 */
void *exchange_state_new (struct exchange *x, size_t size);

/* Return a parameter of the URL ("" if it has no '='), or a field of the header; NULL if the request does not have it.
 */
const char *exchange_parameter (const struct exchange *x, const char *name);
const char *exchange_header (const struct exchange *x, const char *name);

/* Return the index of the media type that the client prefers by its Accept fields. 'n' types are offered; the default
 * is first.
 */
size_t exchange_wants (const struct exchange *x, const char *const *types, size_t n);

/* Wait for the broker's answer: 'cb' is called with 'f', which holds the answer or an error, and is stored in x->f. If
 * the request could not be sent ('f' NULL), the exchange is answered with an error.
 */
void exchange_ask (struct exchange *x, idt_future_t *f, idt_future_f cb);

/* --- answers --------------------------------------------------------- */

/* Answer with 'text', which is then owned by the exchange (NULL: there was no memory). 'type' is static. */
void exchange_reply (struct exchange *x, unsigned status, const char *type, char *text);
void exchange_reply_json (struct exchange *x, unsigned status, json_t *o); /* steals 'o'; NULL: there was no memory */

/* Return a line of JSON, which the caller frees. Steals 'o'. Returns NULL if 'o' is NULL or memory is short. */
char *exchange_json_text (json_t *o);

/* Answer with a problem document (RFC 9457). */
void exchange_fail (struct exchange *x, unsigned status, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Like exchange_fail (), for an error of a request to the broker: the status is 500 for EPROTO, EOVERFLOW and EINVAL,
 * and 503 for all other errors.
 */
void exchange_fail_errno (struct exchange *x, int errnum, const char *text);

/* Send x->resource, or status 304 to a client that has this resource already. */
void exchange_reply_resource (struct exchange *x);

/* Answer with a stream of the bytes that 'read' returns. The stream ends when the server ends. */
void exchange_stream (struct exchange *x, const char *type, exchange_read_f *read);
void exchange_resume (struct exchange *x);

/* --- the server --------------------------------------------------------- */

struct server_conf {
    int fd;           /* listening socket; owned by the server after success */
    struct auth door; /* its texts are borrowed */
    uint32_t max_connections;
    size_t max_answers; /* limit of 'room': bytes of answers that clients have not read */
};

/* Called with each complete request. This function answers the request, or arranges that it is answered later. */
typedef void server_run_f (struct exchange *x, void *arg);

struct server;

/* Returns NULL with errno set and 'errp' filled. */
struct server *server_create (idt_reactor_t *reactor, const struct server_conf *conf, server_run_f *run, void *arg,
                              idt_error_t *errp);

/* Waiting requests are answered with 503 and the reason that the server ends. No other function may answer them
 * afterwards.
 */
void server_destroy (struct server *s);

#endif /* HTTP_SERVER_SERVER_H */
