/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.c - payloads of the compressor service
 *
 * Large payloads are assembled as text: names and UUIDs have no character that JSON would escape, and ranges are
 * already text.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libcompressor/replica.h"
#include "libutil/errprintf.h"
#include "libdocument/wire.h"

static const char name_characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

int docwire_check_name (const char *name, idt_error_t *errp)
{
    size_t n = strlen (name);

    if (n >= 1 && n <= DOCWIRE_NAME_MAX && strspn (name, name_characters) == n && *name != '.' && *name != '-')
        return 0;
    return errsetf (
        errp, EINVAL,
        "'%.110s' is not a valid name of a document: 1 to 100 letters, digits, '.', '_', '-', not beginning with '.' or '-'",
        name);
}

int docwire_random_uuid (char text[IDCOMP_UUID_TEXT_MAX])
{
    unsigned char random[16];

    if (getrandom (random, sizeof (random), 0) != sizeof (random))
        return -1;
    struct idcomp_uuid uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, text, IDCOMP_UUID_TEXT_MAX);
    return 0;
}

int docwire_get_range (const json_t *o, struct idcomp_range *range, idt_error_t *errp)
{
    char *text = json_dumps (o, JSON_COMPACT | JSON_ENCODE_ANY);
    int rc = text ? idcomp_range_parse (text, strlen (text), range, NULL) : -1;

    if (!text)
        errno = ENOMEM;
    if (rc < 0) {
        errprintf (errp, "%s: %.80s", idcomp_strerror (errno), text ? text : "a range");
        errno = errno == ENOMEM ? ENOMEM : EINVAL;
    }
    free (text);
    return rc;
}

/* --- writing ------------------------------------------------------------------------------------------ */

/* Close a text. NULL if it could not be written completely. */
static char *end_text (FILE *f, char **text)
{
    if (!f || fclose (f) != 0) {
        if (f)
            free (*text);
        return errset_null (ENOMEM);
    }
    return *text;
}

char *docwire_ranges (const char *document, const char *uuid, const uint64_t *digest, int64_t newest, int64_t first,
                      size_t n, const char *(*text_of) (void *arg, int64_t seq), void *arg)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",", document, uuid);
        if (newest >= 0)
            fprintf (f, "\"newest\":%lld,", (long long)newest);
        fprintf (f, "\"seq\":%lld,", (long long)first);
        if (digest)
            fprintf (f, "\"digest\":\"" REPLICA_DIGEST "\",", *digest);
        fputs ("\"ranges\":[", f);
        for (size_t i = 0; i < n; i++)
            fprintf (f, "%s%s", i > 0 ? "," : "", text_of (arg, first + (int64_t)i));
        fputs ("]}", f);
    }
    return end_text (f, &text);
}

char *docwire_edit (const char *document, const char *uuid, const char *name)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f && *name)
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"name\":\"%s\"}", document, uuid, name);
    else if (f)
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"deleted\":true}", document, uuid);
    return end_text (f, &text);
}

static const char *given_text (void *arg, int64_t seq)
{
    return arg;
}

char *docwire_element (const char *document, const char *uuid, uint64_t digest, int64_t seq,
                       const struct idcomp_range *range)
{
    size_t size = idcomp_range_format_size (range);
    char *text = malloc (size), *element = NULL;

    if (text && idcomp_range_format (range, text, size) >= 0)
        element = docwire_ranges (document, uuid, &digest, -1, seq, 1, given_text, text);
    free (text);
    return element;
}

char *docwire_state (const char *document, const char *uuid, int64_t newest, int64_t seq, const void *form, size_t size,
                     size_t offset)
{
    size_t from = offset == DOCWIRE_WHOLE ? 0 : offset, left = size - from;
    size_t n = offset == DOCWIRE_WHOLE || left < DOCWIRE_PIECE ? left : DOCWIRE_PIECE;
    assert (from <= size);
    char *base64 = malloc (IDCOMP_BASE64_TEXT_SIZE (n));
    char *text = NULL;
    size_t text_size;
    FILE *f = base64 ? open_memstream (&text, &text_size) : NULL;

    if (f) {
        idcomp_base64_format ((const char *)form + from, n, base64, IDCOMP_BASE64_TEXT_SIZE (n));
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"newest\":%lld,\"seq\":%lld,\"state\":\"%s\"", document,
                 uuid, (long long)newest, (long long)seq, base64);
        if (n < size)
            fprintf (f, ",\"size\":%zu", IDCOMP_BASE64_TEXT_SIZE (size) - 1);
        fputc ('}', f);
    }
    free (base64);
    return end_text (f, &text);
}

/* --- reading a form ----------------------------------------------------------------------------------- */

/* Each piece except the last is whole groups of four characters, so it is decoded when it arrives. */

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
    assert (p->text <= p->whole && p->size <= p->room);
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

void *docwire_get_form (const char *state, size_t *size)
{
    struct pieces p = { 0 };

    if (pieces_begin (&p, 0, state, 0) < 0)
        pieces_fini (&p);
    *size = p.size;
    return p.form;
}
