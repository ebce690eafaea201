/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pieces.h - a stored form that comes as base64 text in pieces
 *
 * Whoever asks for a large form has its first piece, and how long the text is, with the answer; then each piece is asked
 * for when the one before it is there.
 */
#ifndef LIBDOCUMENT_PIECES_H
#define LIBDOCUMENT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Begin with the first piece of a text of 'whole' characters (0: it is all) that is the form at 'seq'; add the next one.
 * Return 0, or -1 with errno set:
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

#endif /* LIBDOCUMENT_PIECES_H */
