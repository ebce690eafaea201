/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_private.h - what the files of an open document share, and methods.c, which looks at it
 *
 *   document.c        life: open, close, what time brings
 *   document_order.c  the order that is heard, what is missing of it, and the ranges that are announced
 *   document_final.c  requests for ids that are final
 */
#ifndef COMPRESSOR_DOCUMENT_PRIVATE_H
#define COMPRESSOR_DOCUMENT_PRIVATE_H

#include "libdocument/session.h"
#include "modules/compressor/service.h"

enum document_state { OPENING, OPEN, CLOSING };

/* What failed is tried again after a pause that doubles from failure to failure. */
struct pause {
    uint64_t until_ms; /* 0: none */
    uint64_t last_ms;  /* how long it was */
};

/* A request for final ids. */
struct final;

struct document {
    LIST_ENTRY (document) link;
    struct service *service;
    struct docsession session; /* without a replica while OPENING */
    enum document_state state;
    struct idt_cred opener; /* the first */
    struct fifo openers;
    struct fifo closers;
    uint64_t deadline_ms;        /* of openers, or closers */
    TAILQ_HEAD (, final) finals; /* in order of the ids that they wait for */
    uint32_t nfinals;
    idt_future_t *opening; /* subscribe, then join */
    idt_future_t *fetching;
    struct relay_element *announced; /* what is announced is with the relay */
    struct pause announcing;         /* until the timer */
    struct pause missing;
    char refused[sizeof (((idt_error_t *)0)->text)]; /* why rank 0 refuses it, which may end; "": it does not */
};

/* --- document.c ------------------------------------------------------------------------------------ */

/* Do what is due.  The document may be gone afterwards. */
void document_turn (struct document *doc);

/* Whoever waits is answered with the error (0: those who close it, with success). */
void document_destroy (struct document *doc, int errnum, const char *text);

/* Tell those who wait for its end why there is none now: the session goes on. */
void document_stay_open (struct document *doc, int errnum, const char *text);

/* It has another name than before: whoever else is known by that asks for his own. */
void document_renamed (struct document *doc, const char *before);

/* Try again after a pause; at once. */
void document_pause (struct document *doc, struct pause *pause);
void document_resume (struct pause *pause);

/* --- document_order.c -------------------------------------------------------------------------------- */

/* Send what the session asks for now.  NULL with errno set. */
idt_future_t *document_ask (struct document *doc);

/* Take the answer.  Returns 0, or -1 with errno set: that of the answer, or as docsession_take (). */
int document_take (struct document *doc, idt_future_t *f);

/* Fetch what is missing, announce what was made. */
void document_exchange (struct document *doc);

/* --- document_final.c -------------------------------------------------------------------------------- */

/* Answer those whose ids are final. */
void document_answer_finals (struct document *doc);

/* Fail those whose deadline has come; all of them: UINT64_MAX. */
void document_fail_finals (struct document *doc, uint64_t now_ms, int errnum, const char *text);

/* Keep a request until its ids are final, or answer it with an error. */
void document_await_final (struct document *doc, const idt_msg_t *msg, const struct idcomp_run *runs, int nruns);

/* Forget those of a client that is gone. */
void document_forget_finals (struct document *doc, const idt_msg_t *disconnect);

#endif /* COMPRESSOR_DOCUMENT_PRIVATE_H */
