/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pieces_test.c - pieces are joined to the form that was cut, and invalid pieces are refused */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idcomp.h>

#include "test/tap.h"
#include "libdocument/document.h"

#define SIZE 1000

static unsigned char data[SIZE];
static char text[IDCOMP_BASE64_TEXT_SIZE (SIZE)];

/* At most 'n' characters from 'offset' on, valid until the next call. */
static const char *cut (size_t offset, size_t n)
{
    static char piece[sizeof (text)];

    strcpy (piece, text + offset);
    if (n < strlen (piece))
        piece[n] = '\0';
    return piece;
}

static bool is_form (const struct pieces *p)
{
    return pieces_whole (p) && p->size == SIZE && memcmp (p->form, data, SIZE) == 0;
}

static void check_cuts (void)
{
    bool good = true;

    for (size_t step = 4; step < sizeof (text) + 4; step += 4) {
        struct pieces p = { 0 };
        bool taken = pieces_begin (&p, 7, cut (0, step), (int64_t)strlen (text)) == 0;

        while (taken && !pieces_whole (&p))
            taken = pieces_add (&p, 7, cut ((size_t)p.text, step)) == 0;
        good = good && taken && is_form (&p);
        pieces_fini (&p);
    }
    ok (good, "pieces of any size are joined to the form");
}

static void check_whole (void)
{
    struct pieces p = { 0 };

    ok (!pieces_whole (&p) && pieces_begin (&p, 7, text, 0) == 0 && is_form (&p),
        "a piece that is the whole form completes it");
    ok (pieces_begin (&p, 8, "", 0) == 0 && pieces_whole (&p) && p.size == 0,
        "pieces of another form may be added after a completed one, even if it is empty");
    pieces_fini (&p);
}

static void check_refused (void)
{
    int64_t all = (int64_t)strlen (text);
    struct pieces p = { 0 };

    ok (pieces_begin (&p, 7, cut (0, 8), PIECES_MAX + 1) < 0 && errno == EFBIG,
        "a form whose text is too long fails with EFBIG");
    ok (pieces_begin (&p, 7, cut (0, 8), -1) < 0 && errno == EFBIG,
        "a form whose text has a negative length fails with EFBIG");
    ok (pieces_begin (&p, 7, text, 8) < 0 && errno == EPROTO,
        "a piece that is longer than the whole text fails with EPROTO");
    ok (pieces_begin (&p, 7, cut (0, 8), all) == 0 && pieces_add (&p, 8, cut (8, 8)) < 0 && errno == EPROTO,
        "a piece of another form fails with EPROTO");
    ok (pieces_add (&p, 7, "") < 0 && errno == EPROTO, "an empty piece fails with EPROTO");
    ok (pieces_add (&p, 7, "****") < 0 && errno == IDCOMP_ECORRUPT_BASE64, "a piece that is not base64 is refused");
    ok (!pieces_whole (&p), "after refused pieces the form is not complete");
    errno = EINTR;
    pieces_fini (&p);
    ok (errno == EINTR, "pieces_fini keeps errno");
}

int main (void)
{
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 31 + i / 7);
    idcomp_base64_format (data, SIZE, text, IDCOMP_BASE64_TEXT_SIZE (SIZE));
    check_cuts ();
    check_whole ();
    check_refused ();
    return done_testing ();
}
