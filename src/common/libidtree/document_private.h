/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_private.h - shared by the files of a client's document
 *
 *   document.c       life, inspection, waiting
 *   document_work.c  messages sent and received while the reactor runs
 */
#ifndef LIBIDTREE_DOCUMENT_PRIVATE_H
#define LIBIDTREE_DOCUMENT_PRIVATE_H

#include <idtree/document.h>

#include "libdocument/session.h"
#include "libidtree/private.h"

/* Shared by all documents of a handle. */
struct siblings {
    idt_t *h;
    TAILQ_HEAD (, idt_document) documents;
    struct observer observer;
    bool hear_lost; /* subscribed to event.lost */
};

struct idt_document {
    idt_t *h; /* NULL: not attached to a handle */
    struct siblings *siblings;
    TAILQ_ENTRY (idt_document) link;
    struct docsession session;
    char topic[sizeof (DOCWIRE_EVENT_PREFIX) + IDT_DOCUMENT_NAME_MAX];

    bool subscribed;            /* to the topic */
    idt_future_t *subscription; /* requests in progress; NULL: none */
    idt_future_t *fetch;
    idt_future_t *submit;
    idt_watcher_t *prepare; /* calls work () */
    idt_watcher_t *pause;   /* while it is started, no request is sent */
    bool paused;
    double pause_ms; /* length of the pause after the next failure */

    int errnum;
    idt_error_t error;
    idt_document_f changed_cb;
    void *arg;
};

/* --- document_work.c -------------------------------------------------------------------------- */

/* docwork_subscription (): the topic to subscribe to next; NULL: all subscriptions are made. docwork_subscribed ():
 * that subscription succeeded.
 */
const char *docwork_subscription (const idt_document_t *d);
void docwork_subscribed (idt_document_t *d);

/* Send the session's next request. NULL with errno set. */
idt_future_t *docwork_ask (idt_document_t *d);

/* Process the response. Returns 0, or -1 with errno set to the response's error, or as docsession_take (). */
int docwork_take (idt_document_t *d, idt_future_t *f, idt_error_t *errp);

/* The errno that the caller sees for a lost connection. EPIPE becomes ECONNRESET, since EPIPE means that the document
 * is broken.
 */
int docwork_of_connection (int errnum);

/* Detach from the handle, if attached. */
void docwork_detach (idt_document_t *d);

#endif /* LIBIDTREE_DOCUMENT_PRIVATE_H */
