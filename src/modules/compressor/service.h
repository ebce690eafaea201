/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - shared by the files of the service: one object, in several files
 *
 *   compressor.c  start, end, the timer; the table of topics; options, figures
 *   document.c    a document that is open on this rank
 *   methods.c     generate, normalize, decompress, recompress, save, stats
 *   service.c     time, answers, requests to rank 0, ranges on their way up
 *   root/         rank 0: root/private.h
 *
 * compressor.c calls all other files, and no file calls compressor.c. methods.c calls document.c. All files call
 * service.c, and service.c calls no other file.
 */
#ifndef COMPRESSOR_SERVICE_H
#define COMPRESSOR_SERVICE_H

#include <idtree/handle.h>
#include <idtree/idtree.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "libcompressor/replica.h"
#include "libdocument/document.h"
#include "libmetrics/metrics.h"
#include "libmodule/module.h"
#include "libutil/queue/fifo.h"
#include "modules/compressor/order/orderer.h"
#include "modules/compressor/order/range_relay.h"

#define SERVICE_STOPPING "the compressor of this broker is stopping" /* the error text for EHOSTUNREACH */
#define SERVICE_PAUSE_MS 100                                         /* pause before a retry */

struct document_root;

/* The compressor.* attributes of a broker, which doc/design/compressor.md describes. */
struct compressor_options {
    uint32_t rank;
    uint32_t max_documents;
    uint32_t max_count;   /* the most ids of a request */
    uint32_t max_waiting; /* the most ranges that wait at a rank, and the most requests that wait at rank 0 */
    uint32_t compact;     /* number of stored ranges after which the form is written again */
    uint64_t timeout_ms;
    struct orderer_limits limits;
    struct module_place place; /* rank 0 only */
};

struct service_counters {
    uint64_t generated; /* ids made */
    uint64_t applied;   /* ranges applied */
    uint64_t events;    /* events received */
    uint64_t fetches;   /* fetches sent */
    uint64_t loads;     /* stored forms loaded */
    uint64_t orders;    /* requests with ranges that were sent up */
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
    bool order_paused;                /* until the timer fires */
    LIST_HEAD (, submit_asked) asked; /* requests whose elements the relay holds */

    struct document_root *root; /* rank 0 only */
};

enum document_state { OPENING, OPEN, CLOSING };

/* A pause before a retry, which doubles with each failure. */
struct pause {
    uint64_t until_ms; /* 0: no pause */
    uint64_t last_ms;  /* length of the last pause */
};

/* A document that is open on this rank. */
struct document {
    LIST_ENTRY (document) link;
    struct compressor *service;
    struct docsession session; /* has no replica while OPENING */
    enum document_state state;
    struct idt_cred opener; /* the first user who opened it */
    struct fifo openers;
    struct fifo closers;
    uint64_t deadline_ms;                 /* when the openers, or the closers, are answered with an error */
    TAILQ_HEAD (, document_final) finals; /* in order of the ids that they wait for */
    uint32_t nfinals;
    idt_future_t *opening; /* a subscription, then joins */
    idt_future_t *fetching;
    struct range_relay_element *announced; /* the announced range that the relay holds, or NULL */
    struct pause announcing;               /* pause after a failed announcement */
    struct pause missing;
    char refused[sizeof (((idt_error_t *)0)->text)]; /* why rank 0 refuses the document at present; "": it does not */
};

/* --- time, answers and requests: service.c -------------------------------------------------------------- */

/* Start the timer, unless it runs. After SERVICE_PAUSE_MS it retries the paused work that is due. */
void service_arm (struct compressor *sv);

/* Like module_respond_error (), but maps errors of the id compressor to errno values. */
void service_respond_error (struct compressor *sv, const idt_msg_t *msg, int errnum, const char *text);

/* Answer all requests in a queue with the same string or error, and drop the references to them. */
void service_respond_all (struct compressor *sv, struct fifo *q, int errnum, const char *s);

/* Add a request to a queue, and take a reference to it. Returns 0. If the request cannot be added, it is answered with
 * an error, and -1 is returned. The error is EAGAIN if compressor.max-waiting requests wait already.
 */
int service_queue (struct compressor *sv, struct fifo *q, const idt_msg_t *msg);

/* Drop from a queue the requests of the client that 'disconnect' names. */
void compressor_forget (struct fifo *q, const idt_msg_t *disconnect);

/* Call 'cb' when 'f' is fulfilled, or after compressor.timeout. 'f' is taken over; NULL means that the request could
 * not be sent. 'cb' must end with upcall_destroy (). A reference to 'msg' (may be NULL) is kept until then. Returns 0.
 * If it fails, it returns -1 with errno set, and 'cb' is not called.
 */
int service_upcall (struct compressor *sv, idt_future_t *f, idt_future_f cb, const idt_msg_t *msg);

/* The error text of a failed future. It is the text of rank 0, or says that rank 0 did not answer or has no compressor.
 * Borrowed.
 */
const char *service_future_error (const idt_future_t *f);

/* Forward a request to rank 0 with the user who sent it, and forward the response. */
void service_pass_on (struct compressor *sv, const idt_msg_t *msg);

/* Drop the forwarded requests of the client that 'disconnect' names. */
void service_forget_ups (struct compressor *sv, const idt_msg_t *disconnect);

/* --- ranges on their way up: service.c ------------------------------------------------------------------ */

void uplink_submit_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void uplink_order (struct compressor *sv, const idt_msg_t *msg); /* below rank 0 */

/* submit_turn () sends waiting elements, if no request is under way. uplink_tick () ends the pause, and answers
 * elements whose deadline is over.
 */
void submit_turn (struct compressor *sv);
void uplink_tick (struct compressor *sv);

/* The number of submit and order requests that are not answered yet. */
size_t uplink_asked (const struct compressor *sv);

/* Let the requests of the client that 'disconnect' names end without an answer. Their ranges are ordered all the same.
 */
void uplink_forget (struct compressor *sv, const idt_msg_t *disconnect);

/* --- requests for final ids, which are answered when the range with these ids is ordered: service.c ------- */

/* Keep a request until its ids are final. If it cannot be kept, it is answered with an error. */
void finals_await (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns);

/* Answer the requests whose ids are all final. */
void finals_answer (struct document *doc);

/* Fail the requests whose deadline is at or before 'now_ms'; UINT64_MAX: all. */
void finals_fail (struct document *doc, uint64_t now_ms, int errnum, const char *text);

/* Drop the requests of the client that 'disconnect' names. */
void finals_forget (struct document *doc, const idt_msg_t *disconnect);

/* The answer to generate: {"session":s,"runs":[[first,count],...]}. Returns NULL if memory is short. */
json_t *finals_pack_ids (const struct idcomp *c, const struct idcomp_run *runs, size_t n);

/* --- documents open on this rank: document.c ------------------------------------------------------------ */

/* Find the document that a request names. It is looked up by 'uuid', or by 'name' if 'uuid' is NULL. If the document is
 * not open, the request is answered with an error, and NULL is returned.
 */
struct document *document_asked (struct compressor *sv, const idt_msg_t *msg, const char *name, const char *uuid);

/* Announce ids that were made. If 'msg' is not NULL, it is answered when all these ids are final: the answer has them
 * in op space. May destroy the document.
 */
void document_made (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns);

void document_open_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_close_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_ranges_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void document_lost_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* documents_tick () ends pauses and deadlines that are over, and retries. documents_destroy () closes all documents. */
void documents_tick (struct compressor *sv);
void documents_destroy (struct compressor *sv);

/* Drop the requests of the client that 'disconnect' names. */
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

/* --- rank 0: root/ --------------------------------------------------------------------------------------- */

struct document_root *document_root_create (struct compressor *sv, idt_error_t *errp);
void document_root_destroy (struct document_root *root);

/* Handle a request for order, join, fetch, state, create, delete, rename or list. */
void document_root_request (struct document_root *root, const idt_msg_t *msg);

/* Drop the waiting requests of the client that 'disconnect' names. */
void document_root_forget (struct document_root *root, const idt_msg_t *disconnect);
void document_root_tick (struct document_root *root);
json_t *document_root_stats (const struct document_root *root);
void document_root_report (const struct document_root *root, struct metrics *m);

#endif /* COMPRESSOR_SERVICE_H */
