/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* exchange.h - a request and its answer
 *
 * Each request is answered exactly once: with exchange_reply (), exchange_fail (), exchange_stream () or a resource, at
 * once or later.  Until then it is suspended, which costs no thread.
 */
#ifndef HTTP_SERVER_EXCHANGE_H
#define HTTP_SERVER_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <jansson.h>

#include <idtree/idtree.h>

#include "http/server/framing.h"
#include "http/server/conn_limits.h"
#include "http/server/resource.h"

#define EXCHANGE_WAIT_MS 5000. /* for the broker */
#define EXCHANGE_SMALL 1024    /* bytes: such an answer finds always room */

struct MHD_Connection;
struct exchange;

/* Bytes of all answers that were not taken yet, and how many there may be but for small ones. */
struct room {
    size_t held, max;
};

/* Up to 'size' bytes of what is streamed; 0: nothing yet, exchange_resume () asks again. */
typedef size_t exchange_read_f (struct exchange *x, char *buf, size_t size);

/* A request, until it is over. */
struct exchange {
    LIST_ENTRY (exchange) link;
    struct MHD_Connection *connection;
    struct guest *guest; /* the same; NULL: there was no memory */
    struct room *room;
    const char *target; /* as it was sent; bytes of it */
    size_t target_size;
    struct framing framing;
    const char *url, *method; /* NULL: its header is not there yet */
    size_t body;              /* bytes that came of it */
    bool suspended;           /* it waits for what is below, or for more of a stream */
    bool last;                /* the connection ends with its answer */
    bool ready;               /* the answer is below */
    unsigned status;
    const char *type;
    char *text;                      /* owned */
    size_t held;                     /* bytes of it that count */
    const char *allow;               /* of status 405 */
    const struct resource *resource; /* that it asks for; NULL: none */
    bool streams;                    /* the answer is a stream, or would be to GET */
    exchange_read_f *read;           /* what it comes from; NULL: the answer is none */
    bool over;                       /* that ends */
    /* of whoever answers it */
    idt_future_t *f;                    /* what the broker is asked */
    void *state;                        /* exchange_state_new () */
    void (*leave) (struct exchange *x); /* it is over; NULL: nobody wants to know */
};

/* What whoever answers it keeps of it: 'size' bytes of 0, freed with it.  NULL: no memory, and that was answered. */
void *exchange_state_new (struct exchange *x, size_t size);

/* A parameter of the URL ("" where it has no '='), or a header; NULL: there is none. */
const char *exchange_parameter (const struct exchange *x, const char *name);
const char *exchange_header (const struct exchange *x, const char *name);

/* Which of 'n' media types (the default first) the client wants, by its Accept fields: the index. */
size_t exchange_wants (const struct exchange *x, const char *const *types, size_t n);

/* Ask the broker: 'cb' is called with the answer in x->f, or an error.  Where it cannot be asked that is answered. */
void exchange_ask (struct exchange *x, idt_future_t *f, idt_future_f cb);

/* --- answers --------------------------------------------------------- */

/* 'text' is stolen (NULL: there was no memory), 'type' borrowed for ever. */
void exchange_reply (struct exchange *x, unsigned status, const char *type, char *text);
void exchange_reply_json (struct exchange *x, unsigned status, json_t *o); /* stolen; NULL as above */

/* A line of JSON, to be freed; 'o' is stolen.  NULL: it is none, or no memory. */
char *exchange_json_text (json_t *o);

/* A problem (RFC 9457). */
void exchange_fail (struct exchange *x, unsigned status, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* The same for what the broker said: EAGAIN and whatever time may mend is 503. */
void exchange_fail_errno (struct exchange *x, int errnum, const char *text);

/* What x->resource has, or 304 to one who has it. */
void exchange_reply_resource (struct exchange *x);

/* What 'read' tells, until the server ends. */
void exchange_stream (struct exchange *x, const char *type, exchange_read_f *read);
void exchange_resume (struct exchange *x);

/* --- for the server --------------------------------------------------------- */

/* Queue the answer, which is ready.  Returns false where the connection is to end: there is no memory. */
bool exchange_answer (struct exchange *x);

/* It waits from now on. */
void exchange_suspend (struct exchange *x);

/* Free it, and all that it owns. */
void exchange_destroy (struct exchange *x);

#endif /* HTTP_SERVER_EXCHANGE_H */
