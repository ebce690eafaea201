/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sign.c - HEADER.PAYLOAD.SIGNATURE with the mechanism "none" (RFC 39; RFC 15 calls it J)
 *
 * The decoded header is a list of keys and values, each ended by a NUL. The first byte of a value is its type (RFC 38).
 * A key may appear only once. If it appeared twice, readers that take the first value and readers that take the last
 * one would see different users.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libjob/sign.h"
#include "libutil/base64.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define HEADER_MAX 3072             /* bytes of the decoded header */
#define USERID_MAX (UINT32_MAX - 1) /* UINT32_MAX means no user (RFC 3) */
#define SHOWN 40                    /* bytes of a value that a message shows */

struct part {
    const char *text;
    size_t size;
};

struct sign {
    struct part header, payload, signature;
};

/* The values of the header, each with its type byte; NULL: missing. */
struct header {
    const char *version, *mechanism, *userid;
    const char *other; /* an unknown key; NULL: none */
};

/* Take from 'rest' the part before the next '.', and that '.'. */
static int take_part (struct part *rest, struct part *part)
{
    const char *dot = memchr (rest->text, '.', rest->size);

    if (!dot)
        return -1;
    *part = (struct part){ rest->text, (size_t)(dot - rest->text) };
    *rest = (struct part){ dot + 1, rest->size - part->size - 1 };
    return 0;
}

static int split (const char *j, size_t size, struct sign *sign, idt_error_t *errp)
{
    struct part rest = { j, size };

    if (take_part (&rest, &sign->header) < 0 || take_part (&rest, &sign->payload) < 0
        || memchr (rest.text, '.', rest.size))
        return errsetf (errp, EINVAL, "J: must be HEADER.PAYLOAD.SIGNATURE, three parts separated by two periods");
    sign->signature = rest;
    return 0;
}

/* Take a string from 'pairs' into '*s'. Returns false if there is no string, or an empty one. */
static bool take_string (struct part *pairs, const char **s)
{
    const char *end = memchr (pairs->text, '\0', pairs->size);

    if (!end || end == pairs->text)
        return false;
    *s = pairs->text;
    *pairs = (struct part){ end + 1, pairs->size - (size_t)(end + 1 - pairs->text) };
    return true;
}

static const char **slot_of (struct header *h, const char *key)
{
    if (strcmp (key, "version") == 0)
        return &h->version;
    if (strcmp (key, "mechanism") == 0)
        return &h->mechanism;
    return strcmp (key, "userid") == 0 ? &h->userid : NULL;
}

static int read_pairs (struct part pairs, struct header *h, idt_error_t *errp)
{
    const char *key, *value;

    while (pairs.size > 0) {
        if (!take_string (&pairs, &key) || !take_string (&pairs, &value))
            return errsetf (errp, EINVAL, "J: header: must be pairs of a key and a typed value, each ended by a NUL");
        const char **slot = slot_of (h, key);
        if (slot && *slot)
            return errsetf (errp, EINVAL, "J: header: %s: must appear only once", key);
        *(slot ? slot : &h->other) = slot ? value : key;
    }
    return 0;
}

static int refuse_value (const char *key, const char *must, const char *value, idt_error_t *errp)
{
    if (!value)
        return errsetf (errp, EINVAL, "J: header: %s: must be %s, and is missing", key, must);
    return errsetf (errp, EINVAL, "J: header: %s: must be %s, and is \"%.*s\"", key, must, SHOWN, value);
}

static int check_version (const struct header *h, idt_error_t *errp)
{
    if (!h->version || strcmp (h->version, "i1") != 0)
        return refuse_value ("version", "the integer 1 (\"i1\")", h->version, errp);
    return 0;
}

/* Check the mechanism. Unknown keys are refused only for the mechanism "none", because other mechanisms have further
 * keys.
 */
static int check_mechanism (const struct header *h, idt_error_t *errp)
{
    if (!h->mechanism || h->mechanism[0] != 's')
        return refuse_value ("mechanism", "a string (\"snone\")", h->mechanism, errp);
    const char *name = h->mechanism + 1;
    if (strcmp (name, "none") != 0)
        return errsetf (errp, ENOTSUP, "J: header: mechanism: must be none, and is %.*s", SHOWN, name);
    if (h->other)
        return errsetf (errp, EINVAL, "J: header: %.*s: is not a key of the mechanism none", SHOWN, h->other);
    return 0;
}

static int check_userid (const struct header *h, uint32_t *userid, idt_error_t *errp)
{
    uint64_t n;

    if (!h->userid || h->userid[0] != 'i' || parse_number (h->userid + 1, 0, USERID_MAX, &n) < 0)
        return refuse_value ("userid", "an integer (\"i\" and a number from 0 to 4294967294)", h->userid, errp);
    *userid = n;
    return 0;
}

static int read_header (const struct part *part, uint32_t *userid, idt_error_t *errp)
{
    char decoded[HEADER_MAX];
    struct header h = { NULL };
    ssize_t size = base64_decode (part->text, part->size, decoded, sizeof (decoded));

    if (size < 0)
        return errno == ENOSPC ? errsetf (errp, EINVAL, "J: header: must have at most %d bytes", HEADER_MAX)
                               : errsetf (errp, EINVAL, "J: header: must be base64");
    if (read_pairs ((struct part){ decoded, size }, &h, errp) < 0 || check_version (&h, errp) < 0
        || check_mechanism (&h, errp) < 0)
        return -1;
    return check_userid (&h, userid, errp);
}

/* The number of bytes that well-formed base64 decodes to. */
static size_t decoded_size (const struct part *part)
{
    if (part->size < 4)
        return 0;
    const char *last = part->text + part->size - 1;
    return BASE64_DECODED_SIZE (part->size) - (last[0] == '=' ? 1 + (last[-1] == '=') : 0);
}

static int decode_payload (const struct part *part, size_t max, char **payload, size_t *payload_size, idt_error_t *errp)
{
    size_t size = decoded_size (part);
    char *data;

    if (size > max)
        return errsetf (errp, EMSGSIZE, "J: payload: must have at most %zu bytes, and has %zu", max, size);
    if (!(data = malloc (size + 1)))
        return errsetf (errp, ENOMEM, "J: payload: out of memory");
    if (base64_decode (part->text, part->size, data, size) < 0) {
        free (data);
        return errsetf (errp, EINVAL, "J: payload: must be base64");
    }
    data[size] = '\0';
    *payload = data;
    *payload_size = size;
    return 0;
}

int job_sign_unwrap (const char *j, size_t size, size_t max, char **payload, size_t *payload_size, uint32_t *userid,
                     idt_error_t *errp)
{
    struct sign sign = { .header.size = 0 };
    uint32_t signer = 0;

    if (split (j, size, &sign, errp) < 0 || read_header (&sign.header, &signer, errp) < 0)
        return -1;
    if (sign.signature.size != 4 || memcmp (sign.signature.text, "none", 4) != 0)
        return errsetf (errp, EINVAL, "J: signature: must be none");
    if (decode_payload (&sign.payload, max, payload, payload_size, errp) < 0)
        return -1;
    *userid = signer;
    return 0;
}

char *job_sign_wrap (const char *payload, size_t size, uint32_t userid)
{
    char header[80];
    int n = snprintf (header, sizeof (header), "version%ci1%cuserid%ci%u%cmechanism%csnone%c", 0, 0, 0, userid, 0, 0,
                      0);
    char *j = malloc (BASE64_ENCODED_SIZE ((size_t)n) + BASE64_ENCODED_SIZE (size) + sizeof ("..none"));

    if (!j)
        return errset_null (ENOMEM);
    size_t at = base64_encode (header, (size_t)n, j);
    j[at++] = '.';
    at += base64_encode (payload, size, j + at);
    memcpy (j + at, ".none", sizeof (".none"));
    return j;
}
