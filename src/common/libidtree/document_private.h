/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document_private.h - what the files of a client's document share
 *
 *   document.c       life, looking at it, waiting
 *   document_work.c  what goes on while the reactor runs
 */
#ifndef LIBIDTREE_DOCUMENT_PRIVATE_H
#define LIBIDTREE_DOCUMENT_PRIVATE_H

#include <idtree/document.h>

#include "libdocument/session.h"
#include "libidtree/private.h"

/* The documents of a handle: what it has once for all of them. */
struct siblings {
    idt_t *h;
    TAILQ_HEAD (, idt_document) documents;
    struct observer observer;
    bool hear_lost; /* subscribed to event.lost */
};

struct idt_document {
    idt_t *h; /* NULL: none */
    struct siblings *siblings;
    TAILQ_ENTRY (idt_document) link;
    struct docsession session;
    char topic[sizeof (DOCWIRE_EVENT_PREFIX) + IDT_DOCUMENT_NAME_MAX];

    bool subscribed;            /* to the topic */
    idt_future_t *subscription; /* requests under way; NULL: none */
    idt_future_t *fetch;
    idt_future_t *submit;
    idt_watcher_t *prepare; /* work () */
    idt_watcher_t *pause;   /* started: nothing is sent */
    bool paused;
    double pause_ms; /* of the next failure */

    int errnum;
    idt_error_t error;
    idt_document_f changed_cb;
    void *arg;
};

/* --- document_work.c -------------------------------------------------------------------------- */

/* The topic to subscribe to next; NULL: all are.  The second says that it succeeded. */
const char *docwork_subscription (const idt_document_t *d);
void docwork_subscribed (idt_document_t *d);

/* Send what the session asks for next.  NULL with errno set. */
idt_future_t *docwork_ask (idt_document_t *d);

/* Take the answer.  Returns 0, or -1 with errno set: that of the answer, or as docsession_take (). */
int docwork_take (idt_document_t *d, idt_future_t *f, idt_error_t *errp);

/* errno of a lost connection, as the caller is told: EPIPE says that a document is broken. */
int docwork_of_connection (int errnum);

/* Leave the handle, where there is one. */
void docwork_detach (idt_document_t *d);

#endif /* LIBIDTREE_DOCUMENT_PRIVATE_H */
