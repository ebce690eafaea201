/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pieces.c - a stored form that comes as base64 text in pieces
 *
 * All pieces but the last are whole groups of four characters, so that each is decoded as it comes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idcomp.h>

#include "libdocument/pieces.h"
#include "libutil/errprintf.h"

void pieces_fini (struct pieces *p)
{
    int saved = errno;

    free (p->form);
    *p = (struct pieces){ 0 };
    errno = saved;
}

int pieces_add (struct pieces *p, int64_t seq, const char *text)
{
    size_t len = strlen (text);

    if (seq != p->seq || (int64_t)len > p->whole - p->text || (len == 0 && p->whole > 0))
        return errset (EPROTO);
    ssize_t n = idcomp_base64_parse (text, len, p->form + p->size, p->room - p->size, NULL);
    if (n < 0)
        return -1;
    p->size += (size_t)n;
    p->text += (int64_t)len;
    return 0;
}

int pieces_begin (struct pieces *p, int64_t seq, const char *text, int64_t whole)
{
    pieces_fini (p);
    if (whole == 0)
        whole = (int64_t)strlen (text);
    if (whole < 0 || whole > PIECES_MAX)
        return errset (EFBIG);
    p->room = (size_t)whole / 4 * 3 + 3;
    if (!(p->form = malloc (p->room)))
        return -1;
    p->seq = seq;
    p->whole = whole;
    return pieces_add (p, seq, text);
}

bool pieces_whole (const struct pieces *p)
{
    return p->form && p->text == p->whole;
}
