/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - what the parts of the service share: one object in several subjects
 *
 *   compressor.c  life, the timer; the table of topics
 *   service.c     time, answers, and requests that went up
 *   document*.c   a document that is open on this rank: document_private.h
 *   methods.c     generate, normalize, decompress, recompress, save, stats
 *   submit.c      submit, order: ranges on their way up
 *   stats.c       stats-get, metrics
 *   root/         rank 0: root/private.h
 *
 * compressor.c calls all of them, and none calls it; those of a document, submit.c and methods.c call each other, and
 * rank 0's call each other and service.c.
 */
#ifndef COMPRESSOR_SERVICE_H
#define COMPRESSOR_SERVICE_H

#include <stdbool.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libcompressor/replica.h"
#include "libmetrics/metrics.h"
#include "libmodule/respond.h"
#include "libmodule/upcall.h"
#include "libutil/queue/fifo.h"
#include "modules/compressor/options.h"
#include "modules/compressor/order/relay.h"
#include "libdocument/wire.h"

#define SERVICE_STOPPING "the compressor of this broker is stopping" /* the text of EHOSTUNREACH then */
#define SERVICE_PAUSE_MS 100                                         /* before what failed is tried again */

struct service;
struct root;

struct service_counters {
    uint64_t generated; /* ids */
    uint64_t applied;   /* ranges */
    uint64_t events;    /* heard */
    uint64_t fetches;   /* sent */
    uint64_t loads;     /* stored forms taken over */
    uint64_t orders;    /* sent up */
    uint64_t orders_failed;
};

struct service {
    idt_t *h;
    struct options options;
    struct upcalls ups;
    idt_watcher_t *timer;
    bool armed;
    struct service_counters counters;

    LIST_HEAD (, document) documents;
    uint32_t ndocuments;

    struct relay *relay;
    idt_future_t *order;       /* under way; NULL: none */
    bool order_paused;         /* until the timer */
    LIST_HEAD (, asked) asked; /* requests whose elements are with the relay */

    struct root *root; /* rank 0 alone */
};

/* --- time, answers and requests: service.c -------------------------------------------------------------- */

uint64_t service_now_ms (void); /* CLOCK_MONOTONIC */

/* Have what was paused tried again after SERVICE_PAUSE_MS. */
void service_arm (struct service *sv);

/* As module_respond_error (), with the errno of the id compressor's errors. */
void service_respond_error (struct service *sv, const idt_msg_t *msg, int errnum, const char *text);

/* Answer all requests in a queue with the same string, or error, and drop the references to them. */
void service_respond_all (struct service *sv, struct fifo *q, int errnum, const char *s);

/* Keep a reference to a request in a queue.  Returns 0, or -1 where it was answered with an error instead: EAGAIN for
 * more than compressor.max-waiting.
 */
int service_queue (struct service *sv, struct fifo *q, const idt_msg_t *msg);

/* Drop the requests of the client whose end 'disconnect' tells from a queue. */
void service_forget (struct fifo *q, const idt_msg_t *disconnect);

/* Keep 'f' (stolen; NULL: it could not be sent) until it is fulfilled, compressor.timeout at most: then 'cb' is called
 * with the result and ends with upcall_destroy ().  'msg' (may be NULL) is kept with it.  Returns -1 with errno set
 * where it is not kept.
 */
int service_upcall (struct service *sv, idt_future_t *f, idt_future_f cb, const idt_msg_t *msg);

/* The text of a failed future: what rank 0 said, that it said nothing, or that nobody is there.  Borrowed. */
const char *service_future_error (const idt_future_t *f);

/* Pass a request on to rank 0 as its user's, and its answer back. */
void service_pass_on (struct service *sv, const idt_msg_t *msg);

/* Forget what a client that is gone had passed on. */
void service_forget_ups (struct service *sv, const idt_msg_t *disconnect);

/* --- documents open on this rank: document.c ------------------------------------------------------------ */

struct document;

/* Find the document that a request names: by its UUID where that is not NULL, else by its name.  Returns NULL where it
 * is not open; then the request is answered.
 */
struct document *document_asked (struct service *sv, const idt_msg_t *msg, const char *name, const char *uuid);

/* Ids were made: announce them.  'msg' not NULL: answer it when all are final, with 'runs' in op space.  The document
 * may be gone afterwards.
 */
void document_made (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns);

void document_open_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_close_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_lost_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* Try again what was paused. */
void documents_tick (struct service *sv);
void documents_destroy (struct service *sv);

/* Forget what a client that is gone had asked for. */
void documents_forget (struct service *sv, const idt_msg_t *disconnect);

/* Requests that wait for a document to be open, or closed, or for ids to be final. */
size_t documents_awaited (const struct service *sv);

/* --- methods.c ------------------------------------------------------------------------------------------ */

void methods_generate_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_normalize_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_decompress_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_recompress_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_save_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* The answer to generate: {"session":s,"runs":[[first,count],...]}; NULL: no memory. */
json_t *methods_pack_ids (const struct idcomp *c, const struct idcomp_run *runs, size_t n);

/* --- ranges on their way up: submit.c ------------------------------------------------------------------- */

void uplink_submit_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void uplink_order_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* Send what waits, if nothing is under way. */
void uplink_turn (struct service *sv);
void uplink_tick (struct service *sv);

/* How many wait for an answer to submit or order. */
size_t uplink_asked (const struct service *sv);

/* Answer a client that is gone no more; what it sent is ordered all the same. */
void uplink_forget (struct service *sv, const idt_msg_t *disconnect);

/* --- stats.c -------------------------------------------------------------------------------------------- */

void stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void stats_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* --- rank 0: root/ --------------------------------------------------------------------------------------- */

struct root *root_create (struct service *sv, idt_error_t *errp);
void root_destroy (struct root *root);

/* Take a request of order, join, fetch, state, create, delete, rename or list. */
void root_request (struct root *root, const idt_msg_t *msg);

/* Forget what a client that is gone had asked for. */
void root_forget (struct root *root, const idt_msg_t *disconnect);
void root_tick (struct root *root);
json_t *root_stats (const struct root *root);
void root_report (const struct root *root, struct metrics *m);

#endif /* COMPRESSOR_SERVICE_H */
