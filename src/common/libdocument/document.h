/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* document.h - two things: the payloads of the compressor service (doc/design/compressor.md), for rank 0 and for its
 * clients; and a session of a document
 */
#ifndef LIBDOCUMENT_DOCUMENT_H
#define LIBDOCUMENT_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>

#include <idtree/error.h>

#include "libcompressor/replica.h"

#define DOCWIRE_NAME_MAX 100                      /* characters of a document's name */
#define DOCWIRE_EVENT_PREFIX "compressor.ranges." /* the document's name follows this prefix */

/* Returns 0 if 'name' can be the name of a document, or -1 with errno EINVAL and an error text in 'errp'. */
int docwire_check_name (const char *name, idt_error_t *errp);

/* Make a random UUID for a document or a session. Returns 0, or -1 with errno set. */
int docwire_random_uuid (char text[IDCOMP_UUID_TEXT_MAX]);

/* Read a range. The caller owns '*range' afterwards. Returns 0, or -1 with errno EINVAL or ENOMEM and an error text in
 * 'errp'.
 */
int docwire_get_range (const json_t *o, struct idcomp_range *range, idt_error_t *errp);

/* Text of {"document":s,"uuid":s,"seq":n,"digest":s,"ranges":[range]}. Like all texts of the functions below, it is
 * allocated and the caller frees it. NULL with errno ENOMEM.
 */
char *docwire_element (const char *document, const char *uuid, uint64_t digest, int64_t seq,
                       const struct idcomp_range *range);

/* Text of ranges seq ... seq + n - 1, where 'seq' is 'first':
 * {"document":s,"uuid":s,"newest":n,"seq":first,"digest":s,"ranges":[...]}. "newest" is left out if 'newest' is
 * negative, "digest" if 'digest' is NULL. text (arg, seq) returns the text of each range.
 */
char *docwire_ranges (const char *document, const char *uuid, const uint64_t *digest, int64_t newest, int64_t first,
                      size_t n, const char *(*text) (void *arg, int64_t seq), void *arg);

/* Text of an event about a document. If 'name' is not "", the document was renamed: {"document":s,"uuid":s,"name":s}.
 * If 'name' is "", the document was deleted: {"document":s,"uuid":s,"deleted":true}.
 */
char *docwire_edit (const char *document, const char *uuid, const char *name);

/* Bytes of a stored form that fit into one response; a larger form is sent in pieces. */
#define DOCWIRE_PIECE \
    ((size_t)192 << 10) /* 256 KiB of base64: divisible by 3, so that joined pieces are the whole text */

/* Text of {"document":s,"uuid":s,"newest":n,"seq":n,"state":s}: the stored form at 'seq' of a document that has
 * 'newest' ranges. "state" has at most DOCWIRE_PIECE of the form's 'size' bytes, from 'offset' on. If "state" is not
 * the whole form, "size":n is added: the number of characters of the whole form's text.
 */
char *docwire_state (const char *document, const char *uuid, int64_t newest, int64_t seq, const void *form, size_t size,
                     size_t offset);
#define DOCWIRE_WHOLE SIZE_MAX /* an offset that means: the whole form, of any size */

/* --- reading a form, in one piece or several -------------------------------------------------------------
 *
 * A response with a large form contains the first piece of the form, and the length of the whole text. Each further
 * piece is requested when the previous piece has arrived.
 */

#define PIECES_MAX ((int64_t)64 << 20) /* maximum characters of a form */

/* An all-zero struct has no pieces. */
struct pieces {
    unsigned char *form;
    size_t size; /* bytes that have arrived */
    size_t room;
    int64_t text;  /* characters that have arrived; the next piece begins at this offset */
    int64_t whole; /* characters of the whole text */
    int64_t seq;   /* number of the last range that the form includes */
};

/* pieces_begin () begins a form with its first piece. 'whole' is the number of characters of the whole text (0: the
 * piece is the whole text). 'seq' is the number of the last range that the form includes. pieces_add () adds the next
 * piece. Return 0, or -1 with errno set:
 *   EFBIG                   over PIECES_MAX
 *   EPROTO                  not a valid piece: empty, beyond the end, or of another form
 *   IDCOMP_ECORRUPT_BASE64, ENOMEM
 */
int pieces_begin (struct pieces *p, int64_t seq, const char *text, int64_t whole);
int pieces_add (struct pieces *p, int64_t seq, const char *text);

/* Whether all pieces have arrived, so that 'form' and 'size' are the stored form. */
bool pieces_whole (const struct pieces *p);

/* Keeps errno. */
void pieces_fini (struct pieces *p);

/* Decode the text "state" of a whole stored form. The caller frees the result. NULL with errno as pieces_begin (). */
void *docwire_get_form (const char *state, size_t *size);

/* --- one session of a document: its requests to rank 0, and how it processes responses and events ----------
 *
 * libcompressor/replica.h decides about ids and numbers of ranges. This object reads and writes the messages for a
 * replica. Programs have sessions (idtree/document.h), and each rank has one session that its clients share
 * (modules/compressor). The owner of a session sends its requests, waits for responses, and decides what a failure
 * means.
 *
 * 1. A session joins first: the stored form in the response, in one piece or several, makes its replica.
 * 2. From then on the session receives events. If events leave out ranges, the session requests these ranges. It
 *    receives them, or a newer stored form.
 * 3. At most one request is in progress. The request ends with docsession_take () or docsession_failed ().
 * 4. A session belongs to the UUID of its document, not to the document's name. An event may be about another document
 *    of the same name, or report that this document was renamed or deleted. Such an event does not change the replica:
 *    the session sends a request to rank 0, and follows the response.
 */
struct docsession {
    char name[DOCWIRE_NAME_MAX + 1]; /* changed by docsession_take () after a rename */
    char uuid[IDCOMP_UUID_TEXT_MAX]; /* UUID of the document; "": not known yet */
    struct replica *replica;         /* NULL: not joined yet */
    struct pieces pieces;            /* a form of which more pieces are to be received */
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

/* The payload of the request that docsession_topic () names, for free (). NULL with errno ENOMEM. */
char *docsession_request (struct docsession *s);

/* Process the response to the request. Returns 0, or -1 with errno set and an error text in 'errp':
 *   ESTALE          the response is about another document of this name
 *   EPROTO, EFBIG, IDCOMP_E...  the response is not valid
 *   EPIPE           the replica is broken
 *   EAGAIN, ENOMEM  temporary: the response was processed only in part
 * To repeat the request, call docsession_failed ().
 */
int docsession_take (struct docsession *s, const json_t *answer, idt_error_t *errp);

/* Whether some pieces of a form have arrived, and others have not. */
bool docsession_in_pieces (const struct docsession *s);

/* Report that the request failed: drop the pieces of a form, and request the latest state again. */
void docsession_failed (struct docsession *s);

/* Whether an error of rank 0 is permanent: rank 0 would answer a repeated request with the same error. */
bool docsession_is_final (int errnum);

/* --- events and announcements ----------------------------------------------------------------------- */

/* Process an event: ordered ranges, or the renaming or deletion of a document. If ranges do not continue from the
 * replica's state, or cannot be processed, the session requests ranges from rank 0. Returns 0, or -1 with errno set and
 * an error text in 'errp': EPROTO (the event is not valid), ENOMEM, EPIPE (the replica is broken).
 */
int docsession_hear (struct docsession *s, const json_t *event, idt_error_t *errp);

/* The payload that announces a range of this session, made by docwire_element (). */
char *docsession_announcement (const struct docsession *s, const struct idcomp_range *range);

#endif /* LIBDOCUMENT_DOCUMENT_H */
