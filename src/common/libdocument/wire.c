/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wire.c - payloads of the compressor service
 *
 * Names and UUIDs have no character that JSON would escape, and ranges are texts already: what is large is put
 * together as text.
 */
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
    errno = EINVAL;
    return errprintf (errp,
                      "'%.110s' is no name of a document: 1 to 100 letters, digits, '.', '_', '-', not beginning "
                      "with '.' or '-'",
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

/* End a text: NULL if it could not be written whole. */
static char *end_text (FILE *f, char **text)
{
    if (!f || fclose (f) != 0) {
        if (f)
            free (*text);
        errno = ENOMEM;
        return NULL;
    }
    return *text;
}

static void put_range (FILE *f, const struct idcomp_range *range)
{
    size_t size = idcomp_range_format_size (range);
    char small[512], *buf = size <= sizeof (small) ? small : malloc (size);

    if (buf) {
        idcomp_range_format (range, buf, size);
        fputs (buf, f);
    }
    if (buf != small)
        free (buf);
}

char *docwire_element (const char *document, const char *uuid, int64_t seq, const char *digest,
                       const struct idcomp_range *range)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"seq\":%lld,\"digest\":\"%s\",\"ranges\":[", document, uuid,
                 (long long)seq, digest);
        put_range (f, range);
        fputs ("]}", f);
    }
    return end_text (f, &text);
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

/* Bytes of a form from 'offset' on; 'n' of them are meant. */
static char *put_state (const char *document, const char *uuid, int64_t newest, int64_t seq, const char *bytes,
                        size_t n, size_t whole)
{
    char *base64 = malloc (IDCOMP_BASE64_TEXT_SIZE (n));
    char *text = NULL;
    size_t size;
    FILE *f = base64 ? open_memstream (&text, &size) : NULL;

    if (f) {
        idcomp_base64_format (bytes, n, base64, IDCOMP_BASE64_TEXT_SIZE (n));
        fprintf (f, "{\"document\":\"%s\",\"uuid\":\"%s\",\"newest\":%lld,\"seq\":%lld,\"state\":\"%s\"", document,
                 uuid, (long long)newest, (long long)seq, base64);
        if (n < whole)
            fprintf (f, ",\"size\":%zu", IDCOMP_BASE64_TEXT_SIZE (whole) - 1);
        fputc ('}', f);
    }
    free (base64);
    return end_text (f, &text);
}

char *docwire_state (const char *document, const char *uuid, int64_t newest, int64_t seq, const void *form, size_t size,
                     size_t offset)
{
    size_t n = size - offset < DOCWIRE_PIECE ? size - offset : DOCWIRE_PIECE;

    return put_state (document, uuid, newest, seq, (const char *)form + offset, n, size);
}

char *docwire_whole_state (const char *document, const char *uuid, int64_t seq, const void *form, size_t size)
{
    return put_state (document, uuid, seq, seq, form, size, size);
}

void *docwire_get_form (const char *state, size_t *size)
{
    size_t len = strlen (state), room = len / 4 * 3 + 1;
    void *form = malloc (room);
    ssize_t n = form ? idcomp_base64_parse (state, len, form, room, NULL) : -1;

    if (n < 0) {
        free (form);
        return NULL;
    }
    *size = (size_t)n;
    return form;
}
