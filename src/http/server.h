/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* server.h - HTTP on one thread: requests come in, and are answered at once or when the broker has answered
 *
 * libmicrohttpd reads and writes; the handle's reactor waits for both, its sockets and the broker's.  A request that
 * has to wait is suspended meanwhile, which costs no thread.  Each request is answered exactly once, with
 * exchange_reply () or exchange_fail ().
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <idtree/idtree.h>

#include "http/feed.h"
#include "http/guests.h"
#include "http/pool.h"
#include "http/tls.h"

#define HTTP_MAX_BODY 4096   /* bytes of a request's, which say nothing */
#define HTTP_WAIT_MS 5000.   /* for the broker */
#define HTTP_METRICS_MS 1000 /* figures that are younger are told again */
#define HTTP_SMALL 1024      /* bytes: such an answer finds always room */
#define HTTP_MIN_TOKEN 16    /* characters */
#define HTTP_CONNECTION_S 30 /* a connection that says nothing, or takes nothing, ends */

struct server_conf {
    int fd;            /* that listens; the server's from success on */
    bool loopback;     /* only this host reaches it, by TCP: browsers do, too */
    const char *token; /* that opens it; NULL: none */
    struct tls tls;    /* certificate NULL: none; borrowed */
    uint32_t max_connections;
    uint32_t rate;      /* ids a second; 0: any */
    size_t max_answers; /* bytes of all answers that were not taken yet, but for those of HTTP_SMALL */
    bool show_log;      /* lines of the instance's log are told */
};

struct server;
struct ids;
struct live;
struct look;
struct resource;
struct MHD_Connection;

/* A request, until it is answered. */
struct exchange {
    LIST_ENTRY (exchange) link;
    struct server *server;
    struct MHD_Connection *connection;
    struct guest *guest; /* the same; NULL: there was no memory */
    const char *url, *method;
    bool begun;     /* its headers were seen */
    size_t body;    /* bytes that came of it */
    bool suspended; /* it waits for exchange_reply () */
    bool ready;     /* the answer is below */
    unsigned status;
    char *text;  /* owned */
    size_t held; /* bytes of the answer that count */
    const char *type;
    const char *allow;               /* of status 405 */
    const struct resource *resource; /* that it asks for; NULL: none */
    /* of who wants ids */
    struct pool_client client;
    enum fluid_form form;
    fluid_t id;        /* of who wants to know what it says */
    struct ids *ids;   /* the same */
    idt_future_t *f;   /* the broker's answer, that it waits for by itself */
    struct look *look; /* of who wants figures */
    /* of who wants the tree, or reads events */
    LIST_ENTRY (exchange) stream;
    uint32_t rank, depth;
    struct live *live; /* whose reader it is; NULL: none */
    struct feed_reader reader;
    bool reading; /* on */
};

/* 'h' is borrowed.  NULL with errno set and 'errp' filled. */
struct server *server_create (idt_t *h, const struct server_conf *conf, idt_error_t *errp);
void server_destroy (struct server *s);

/* --- for handlers --------------------------------------------------------- */

idt_t *server_handle (struct server *s);

/* A parameter of the URL, or a header; NULL: there is none. */
const char *exchange_parameter (const struct exchange *x, const char *name);
const char *exchange_header (const struct exchange *x, const char *name);

/* Answer; 'text' is stolen (NULL: there was no memory), 'type' borrowed for ever. */
void exchange_reply (struct exchange *x, unsigned status, const char *type, char *text);
void exchange_reply_json (struct exchange *x, unsigned status, json_t *o); /* stolen; NULL as above */

/* Answer with a problem (RFC 9457). */
void exchange_fail (struct exchange *x, unsigned status, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* The same for what the broker said: EAGAIN and whatever time may mend is 503. */
void exchange_fail_errno (struct exchange *x, int errnum, const char *text);

/* Ask the broker: 'cb' is called with the answer in x->f, or an error.  Where it cannot be asked that is answered. */
void exchange_ask (struct exchange *x, idt_future_t *f, idt_future_f cb);

/* --- door.c --------------------------------------------------------- */

/* Whether it may ask; else it was answered. */
bool door_lets_in (struct exchange *x, const struct server_conf *conf);

/* --- ids.c: /v1/ids --------------------------------------------------------- */

struct ids *ids_create (struct server *s, uint32_t rate); /* NULL with errno ENOMEM */
void ids_destroy (struct ids *ids);
void ids_new (struct ids *ids, struct exchange *x);
void ids_show (struct ids *ids, struct exchange *x, const char *text);

/* --- look.c: /healthz, /readyz, /metrics, /v1/watermark --------------------------------------------------------- */

struct look *look_create (struct server *s); /* NULL with errno ENOMEM */
void look_destroy (struct look *l);
void look_health (struct look *l, struct exchange *x);
void look_ready (struct look *l, struct exchange *x);
void look_metrics (struct look *l, struct exchange *x);
void look_watermark (struct look *l, struct exchange *x);

#endif /* HTTP_SERVER_H */
