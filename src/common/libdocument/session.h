/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* session.h - one session of a document: its requests to rank 0, and how it processes responses and events
 *
 * libcompressor/replica.h decides about ids and numbers of ranges; this object reads and writes the messages of a
 * replica. Programs have sessions (idtree/document.h), and each rank has one that its clients share
 * (modules/compressor). The owner of a session sends its requests, waits for responses, and decides what a failure
 * means.
 *
 * 1. A session joins first: the stored form in the response, in one piece or several, makes its replica.
 * 2. From then on it receives events. If they leave out ranges, it requests these, and receives the ranges or a newer
 *    form.
 * 3. At most one request is in progress. It ends with docsession_take () or docsession_failed ().
 * 4. A session belongs to the UUID of its document, not to the document's name. An event about another document of the
 *    same name, or about the end of this one, changes nothing: the session asks rank 0 and follows its response.
 */
#ifndef LIBDOCUMENT_SESSION_H
#define LIBDOCUMENT_SESSION_H

#include <stdbool.h>

#include "libcompressor/replica.h"
#include "libdocument/wire.h"

struct docsession {
    char name[DOCWIRE_NAME_MAX + 1]; /* changed by docsession_take () after a rename */
    char uuid[IDCOMP_UUID_TEXT_MAX]; /* of the document; "": not known yet */
    struct replica *replica;         /* NULL: not joined yet */
    struct pieces pieces;            /* of a form that is being received */
    bool ask;                        /* request the latest ranges, even if no range is known to be missing */
    uint64_t ranges;                 /* number of ranges processed */
    uint64_t forms;                  /* number of forms loaded after the first */
};

/* Begin the session of a document. Returns 0, or -1 with errno EINVAL and an error text in 'errp' if the name is not
 * valid.
 */
int docsession_init (struct docsession *s, const char *name, idt_error_t *errp);
void docsession_fini (struct docsession *s); /* keeps errno */

/* --- requests --------------------------------------------------------------------------------------- */

/* The topic of the request to send now; NULL: no request is needed, or the replica is broken. */
const char *docsession_topic (const struct docsession *s);

/* The payload of that request, for free (). NULL with errno ENOMEM. */
char *docsession_request (struct docsession *s);

/* Process the response. Returns 0, or -1 with errno set and an error text in 'errp':
 *   ESTALE          it is about another document of this name
 *   EPROTO, EFBIG, IDCOMP_E...  it is not valid
 *   EPIPE           the replica is broken
 *   EAGAIN, ENOMEM  temporary: it was processed only in part
 * If the request is to be repeated, call docsession_failed ().
 */
int docsession_take (struct docsession *s, const json_t *answer, idt_error_t *errp);

/* Whether some pieces of a form have arrived, and others have not. */
bool docsession_in_pieces (const struct docsession *s);

/* The request failed: drop the pieces of a form, and request the latest state again. */
void docsession_failed (struct docsession *s);

/* Whether an error of rank 0 is final: repeating the request would return it again. */
bool docsession_is_final (int errnum);

/* --- events and announcements ----------------------------------------------------------------------- */

/* Process an event: ordered ranges, or the renaming or end of a document. Ranges that do not continue from the
 * replica's state, or cannot be processed, will be requested. Returns 0, or -1 with errno set and an error text in
 * 'errp': EPROTO (not valid), ENOMEM, EPIPE.
 */
int docsession_hear (struct docsession *s, const json_t *event, idt_error_t *errp);

/* The payload that announces a range of this session: docwire_element (). */
char *docsession_announcement (const struct docsession *s, const struct idcomp_range *range);

#endif /* LIBDOCUMENT_SESSION_H */
