/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* session.h - one session of a document: what it asks rank 0 for, and what it makes of answers and events
 *
 * libcompressor/replica.h thinks about ids and numbers of ranges; this object reads and writes the messages that feed
 * it.  Programs have sessions (idtree/document.h), and each rank has one that its clients share (modules/compressor).
 * Who owns one sends its requests, waits, and decides what a failure means.
 *
 * 1. It joins first: the stored form in the answer, in one piece or several, makes its replica.
 * 2. From then on it hears events; what they leave out it asks for, and gets ranges or a newer form.
 * 3. One request is under way at most.  It ends with docsession_take (), or with docsession_failed ().
 * 4. It is of a UUID, whatever its document is called.  What is told of another document of its name changes nothing, nor does
 *    news of its end: rank 0 is asked, and its answer counts.
 */
#ifndef LIBDOCUMENT_SESSION_H
#define LIBDOCUMENT_SESSION_H

#include <stdbool.h>

#include "libcompressor/replica.h"
#include "libdocument/wire.h"

struct docsession {
    char name[DOCWIRE_NAME_MAX + 1]; /* changes where it was renamed, with docsession_take () */
    char uuid[IDCOMP_UUID_TEXT_MAX]; /* of the document; "": not known yet */
    struct replica *replica;         /* NULL: it has not joined yet */
    struct pieces pieces;            /* of a form that is on its way */
    bool ask;                        /* for what is newest, also where nothing is known to be missing */
    uint64_t ranges;                 /* taken, one by one */
    uint64_t forms;                  /* taken over after the first */
};

/* Begin the session of a document.  Returns 0, or -1 with errno EINVAL and a sentence in 'errp': the name is none. */
int docsession_init (struct docsession *s, const char *name, idt_error_t *errp);
void docsession_fini (struct docsession *s); /* keeps errno */

/* --- what is asked ---------------------------------------------------------------------------------- */

/* The topic of the request to send now.  NULL: there is nothing to ask for, or the replica is broken. */
const char *docsession_topic (const struct docsession *s);

/* Its payload, for free ().  NULL with errno ENOMEM: it failed. */
char *docsession_request (struct docsession *s);

/* Take its answer.  Returns 0, or -1 with errno set and a sentence in 'errp':
 *   ESTALE          it is about another document of this name
 *   EPROTO, EFBIG, IDCOMP_E...  it is not understood
 *   EPIPE           the replica is broken
 *   EAGAIN, ENOMEM  it could not be taken as far as it goes
 * docsession_failed () follows where it is to be asked again.
 */
int docsession_take (struct docsession *s, const json_t *answer, idt_error_t *errp);

/* Whether some pieces of a form are there, and others are not. */
bool docsession_in_pieces (const struct docsession *s);

/* The request was in vain: begin anew, with the newest. */
void docsession_failed (struct docsession *s);

/* Whether an error that rank 0 answers is its last word: the same request, repeated, would get it again. */
bool docsession_is_final (int errnum);

/* --- what is heard and told ------------------------------------------------------------------------- */

/* Take an event: ranges that were ordered, or what became of a document.  Ranges that do not go on where we are, or cannot be
 * taken, are asked for.  Returns 0, or -1 with errno set and a sentence in 'errp': EPROTO (it is not understood), ENOMEM,
 * EPIPE.
 */
int docsession_hear (struct docsession *s, const json_t *event, idt_error_t *errp);

/* What announces a range of ours: docwire_element (). */
char *docsession_announcement (const struct docsession *s, const struct idcomp_range *range);

#endif /* LIBDOCUMENT_SESSION_H */
