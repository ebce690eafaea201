/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_private.h - shared by the files of an open document, and read by methods.c
 *
 *   document.c        open, close, timeouts
 *   document_order.c  ranges that are received, fetched and announced
 *   document_final.c  requests for final ids
 */
#ifndef COMPRESSOR_DOCUMENT_PRIVATE_H
#define COMPRESSOR_DOCUMENT_PRIVATE_H

#include "libdocument/session.h"
#include "modules/compressor/service.h"

enum document_state { OPENING, OPEN, CLOSING };

/* A pause before a retry, which doubles with each failure. */
struct pause {
    uint64_t until_ms; /* 0: no pause */
    uint64_t last_ms;  /* length of the last pause */
};

/* A request for final ids. */
struct document_final;

struct document {
    LIST_ENTRY (document) link;
    struct compressor *service;
    struct docsession session; /* has no replica while OPENING */
    enum document_state state;
    struct idt_cred opener; /* the first user who opened it */
    struct fifo openers;
    struct fifo closers;
    uint64_t deadline_ms;                 /* deadline of openers, or of closers */
    TAILQ_HEAD (, document_final) finals; /* in order of the ids that they wait for */
    uint32_t nfinals;
    idt_future_t *opening; /* a subscription, then joins */
    idt_future_t *fetching;
    struct range_relay_element *announced; /* the announced range that the relay holds, or NULL */
    struct pause announcing;               /* ends with the timer */
    struct pause missing;
    char refused[sizeof (((idt_error_t *)0)->text)]; /* why rank 0 refuses the document at present; "": it does not */
};

/* --- document.c ------------------------------------------------------------------------------------ */

/* Do all work that is due. May destroy the document. */
void document_turn (struct document *doc);

/* Destroy the document. Waiting requests are answered with the error; with errnum 0, closers are answered with success.
 */
void document_destroy (struct document *doc, int errnum, const char *text);

/* Answer requests to close the document with the reason why it stays open. The session continues. */
void document_stay_open (struct document *doc, int errnum, const char *text);

/* The document was renamed; 'before' is its old name. Sessions of other documents under the new name ask rank 0 for
 * theirs.
 */
void document_renamed (struct document *doc, const char *before);

/* document_pause () begins a pause, twice as long as the last. document_resume () ends it and resets its length. */
void document_pause (struct document *doc, struct pause *pause);
void document_resume (struct pause *pause);

/* --- document_order.c -------------------------------------------------------------------------------- */

/* Send the request that the session needs now. Returns NULL with errno set. */
idt_future_t *document_ask (struct document *doc);

/* Apply an answer of rank 0. Returns 0, or -1 with errno set: the errno of the answer, or as by docsession_take (). */
int document_take (struct document *doc, idt_future_t *f);

/* Fetch missing ranges, and announce new ids, as needed. */
void document_exchange (struct document *doc);

/* --- document_final.c -------------------------------------------------------------------------------- */

/* Answer the requests whose ids are final. */
void document_answer_finals (struct document *doc);

/* Fail the requests whose deadline is at or before 'now_ms'; UINT64_MAX: all. */
void document_fail_finals (struct document *doc, uint64_t now_ms, int errnum, const char *text);

/* Keep a request until its ids are final. If it cannot be kept, it is answered with an error. */
void document_await_final (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns);

/* Forget the requests of a client that has gone. */
void document_forget_finals (struct document *doc, const idt_msg_t *disconnect);

#endif /* COMPRESSOR_DOCUMENT_PRIVATE_H */
