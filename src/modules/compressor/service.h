/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - shared by the files of the service: one object, in several files
 *
 *   compressor.c  start, end, the timer; the table of topics
 *   service.c     time, answers, and requests to rank 0
 *   document*.c   a document that is open on this rank: document_private.h
 *   methods.c     generate, normalize, decompress, recompress, save, stats
 *   submit.c      submit, order: ranges on their way up
 *   stats.c       stats-get, metrics
 *   root/         rank 0: root/private.h
 *
 * compressor.c calls all other files, and none of them calls it. The files of a document, submit.c and methods.c call
 * each other. The files of rank 0 call each other and service.c.
 */
#ifndef COMPRESSOR_SERVICE_H
#define COMPRESSOR_SERVICE_H

#include <stdbool.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libcompressor/replica.h"
#include "libmetrics/metrics.h"
#include "libmodule/module.h"
#include "libutil/queue/fifo.h"
#include "modules/compressor/compressor_options.h"
#include "modules/compressor/order/range_relay.h"
#include "libdocument/wire.h"

#define SERVICE_STOPPING "the compressor of this broker is stopping" /* the error text for EHOSTUNREACH */
#define SERVICE_PAUSE_MS 100                                         /* pause before a retry */

struct compressor;
struct document_root;

struct service_counters {
    uint64_t generated; /* ids */
    uint64_t applied;   /* ranges */
    uint64_t events;    /* received */
    uint64_t fetches;   /* sent */
    uint64_t loads;     /* stored forms loaded */
    uint64_t orders;    /* sent up */
    uint64_t orders_failed;
};

struct compressor {
    idt_t *h;
    struct compressor_options options;
    struct upcalls ups;
    idt_watcher_t *timer;
    bool armed;
    struct service_counters counters;

    LIST_HEAD (, document) documents;
    uint32_t ndocuments;

    struct range_relay *relay;
    idt_future_t *order;              /* the request under way, or NULL */
    bool order_paused;                /* ends with the timer */
    LIST_HEAD (, submit_asked) asked; /* requests whose elements the relay holds */

    struct document_root *root; /* rank 0 only */
};

/* --- time, answers and requests: service.c -------------------------------------------------------------- */

uint64_t compressor_now_ms (void); /* CLOCK_MONOTONIC */

/* Run the timer after SERVICE_PAUSE_MS, which retries all that is paused. */
void service_arm (struct compressor *sv);

/* Like module_respond_error (), but maps errors of the id compressor to errno values. */
void service_respond_error (struct compressor *sv, const idt_msg_t *msg, int errnum, const char *text);

/* Answer all requests in a queue with the same string or error, and drop the references to them. */
void service_respond_all (struct compressor *sv, struct fifo *q, int errnum, const char *s);

/* Add a request to a queue, with a reference. Returns 0, or -1 if it was answered with an error instead: EAGAIN if
 * compressor.max-waiting requests wait already.
 */
int service_queue (struct compressor *sv, struct fifo *q, const idt_msg_t *msg);

/* Drop the requests of the client that 'disconnect' names from a queue. */
void compressor_forget (struct fifo *q, const idt_msg_t *disconnect);

/* Call 'cb' when 'f' is fulfilled, or after compressor.timeout. 'f' is taken over; NULL means that the request could
 * not be sent. 'cb' must end with upcall_destroy (). A reference to 'msg' (may be NULL) is kept until then. Returns 0,
 * or -1 with errno set, and 'cb' is not called.
 */
int service_upcall (struct compressor *sv, idt_future_t *f, idt_future_f cb, const idt_msg_t *msg);

/* The error text of a failed future: the text of rank 0, or that rank 0 did not answer or has no compressor. Borrowed.
 */
const char *service_future_error (const idt_future_t *f);

/* Forward a request to rank 0 with its user, and forward the response. */
void service_pass_on (struct compressor *sv, const idt_msg_t *msg);

/* Forget the forwarded requests of a client that has gone. */
void service_forget_ups (struct compressor *sv, const idt_msg_t *disconnect);

/* --- documents open on this rank: document.c ------------------------------------------------------------ */

struct document;

/* Find the document that a request names: by its UUID, or if that is NULL by its name. Returns NULL if the document is
 * not open; then the request was answered.
 */
struct document *document_asked (struct compressor *sv, const idt_msg_t *msg, const char *name, const char *uuid);

/* Announce ids that were made. If 'msg' is not NULL, it is answered when all ids are final, with 'runs' in op space.
 * May destroy the document.
 */
void document_made (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns);

void document_open_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_close_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_lost_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* Retry what was paused. / Close all documents. */
void documents_tick (struct compressor *sv);
void documents_destroy (struct compressor *sv);

/* Forget the requests of a client that has gone. */
void documents_forget (struct compressor *sv, const idt_msg_t *disconnect);

/* The number of requests that wait for a document to be opened or closed, or for final ids. */
size_t documents_awaited (const struct compressor *sv);

/* --- methods.c ------------------------------------------------------------------------------------------ */

void methods_generate_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_normalize_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_decompress_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_recompress_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_save_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void methods_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* The answer to generate: {"session":s,"runs":[[first,count],...]}. Returns NULL if memory is short. */
json_t *methods_pack_ids (const struct idcomp *c, const struct idcomp_run *runs, size_t n);

/* --- ranges on their way up: submit.c ------------------------------------------------------------------- */

void uplink_submit_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void uplink_order_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* Send waiting elements, if no request is under way. / End the pause, and answer elements that are too late. */
void submit_turn (struct compressor *sv);
void uplink_tick (struct compressor *sv);

/* The number of requests for submit and order that are not answered yet. */
size_t uplink_asked (const struct compressor *sv);

/* Do not answer a client that has gone. Its ranges are ordered all the same. */
void uplink_forget (struct compressor *sv, const idt_msg_t *disconnect);

/* --- stats.c -------------------------------------------------------------------------------------------- */

void compressor_stats_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void compressor_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* --- rank 0: root/ --------------------------------------------------------------------------------------- */

struct document_root *document_root_create (struct compressor *sv, idt_error_t *errp);
void document_root_destroy (struct document_root *root);

/* Handle a request for order, join, fetch, state, create, delete, rename or list. */
void document_root_request (struct document_root *root, const idt_msg_t *msg);

/* Forget the requests of a client that has gone. */
void document_root_forget (struct document_root *root, const idt_msg_t *disconnect);
void document_root_tick (struct document_root *root);
json_t *document_root_stats (const struct document_root *root);
void document_root_report (const struct document_root *root, struct metrics *m);

#endif /* COMPRESSOR_SERVICE_H */
