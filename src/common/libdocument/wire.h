/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.h - payloads of the compressor service (doc/design/compressor.md), for rank 0 and for those who ask it */
#ifndef LIBDOCUMENT_WIRE_H
#define LIBDOCUMENT_WIRE_H

#include <jansson.h>
#include <stdbool.h>

#include <idtree/error.h>
#include <idtree/idcomp.h>

#define DOCWIRE_NAME_MAX 100                      /* characters of a document's name */
#define DOCWIRE_EVENT_PREFIX "compressor.ranges." /* the document's name follows */

/* Returns 0, or -1 with errno EINVAL and a sentence in 'errp' where 'name' can't be a document's. */
int docwire_check_name (const char *name, idt_error_t *errp);

/* Make a random UUID, of a document or a session.  Returns 0, or -1 with errno set. */
int docwire_random_uuid (char text[IDCOMP_UUID_TEXT_MAX]);

/* Read a range; it belongs to the caller.  Returns 0, or -1 with errno EINVAL or ENOMEM and a sentence in 'errp'. */
int docwire_get_range (const json_t *o, struct idcomp_range *range, idt_error_t *errp);

/* Text of {"document":s,"uuid":s,"seq":n,"digest":s,"ranges":[range]}; for the caller to free.  NULL with errno ENOMEM,
 * like all below.
 */
char *docwire_element (const char *document, const char *uuid, uint64_t digest, int64_t seq,
                       const struct idcomp_range *range);

/* Text of ranges [first, first + n) as {"document":s,"uuid":s,"newest":n,"seq":first,"digest":s,"ranges":[...]};
 * without "newest" where that is negative, and without "digest" where that is NULL.  text (arg, seq) tells each.
 */
char *docwire_ranges (const char *document, const char *uuid, const uint64_t *digest, int64_t newest, int64_t first,
                      size_t n, const char *(*text) (void *arg, int64_t seq), void *arg);

/* Text of {"document":s,"uuid":s,"name":s}: the event of a document that was renamed; or of one that was deleted,
 * {"document":s,"uuid":s,"deleted":true} ('name' is "").
 */
char *docwire_edit (const char *document, const char *uuid, const char *name);

/* Bytes of a stored form that go into one answer; what is larger is sent in pieces. */
#define DOCWIRE_PIECE \
    ((size_t)192 << 10) /* 256 KiB of base64: divisible by 3, so that pieces are the text when joined */

/* Text of {"document":s,"uuid":s,"newest":n,"seq":n,"state":s}: the stored form at 'seq' of a document that has
 * 'newest' ranges; of its 'size' bytes at most DOCWIRE_PIECE from 'offset' on, with "size":n for the characters of the
 * whole text where that is not all.
 */
char *docwire_state (const char *document, const char *uuid, int64_t newest, int64_t seq, const void *form, size_t size,
                     size_t offset);
#define DOCWIRE_WHOLE SIZE_MAX /* as the offset: all of it, at any size */

/* --- a form that is read, in one piece or several ---------------------------------------------------------
 *
 * Whoever asks for a large form has its first piece, and how long the text is, with the answer; then each piece is
 * asked for when the one before it is there.
 */

#define PIECES_MAX ((int64_t)64 << 20) /* characters of a form */

/* An all-zero struct has no pieces. */
struct pieces {
    unsigned char *form;
    size_t size; /* bytes that are there */
    size_t room;
    int64_t text;  /* characters that are there: where the next piece begins */
    int64_t whole; /* characters of all */
    int64_t seq;   /* of the form */
};

/* Begin with the first piece of a text of 'whole' characters (0: it is all) that is the form at 'seq'; add the next
 * one.  Return 0, or -1 with errno set:
 *   EFBIG                   over PIECES_MAX
 *   EPROTO                  it is no piece: empty, beyond the end, of another form
 *   IDCOMP_ECORRUPT_BASE64, ENOMEM
 */
int pieces_begin (struct pieces *p, int64_t seq, const char *text, int64_t whole);
int pieces_add (struct pieces *p, int64_t seq, const char *text);

/* Whether all are there: then 'form' and 'size' are the stored form. */
bool pieces_whole (const struct pieces *p);

/* Keeps errno. */
void pieces_fini (struct pieces *p);

/* The stored form in "state", whole; for the caller to free.  NULL with errno as pieces_begin (). */
void *docwire_get_form (const char *state, size_t *size);

#endif /* LIBDOCUMENT_WIRE_H */
