/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* method.c - what all methods share: key pairs derived from a secret, and bizcards as text */
#include "config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "broker/boot/method.h"
#include "libflax/flax_random.h"
#include "libutil/errprintf.h"

#define CHACHA_ROUNDS 20
#define CHACHA_BLOCKS 8 /* blocks of the key stream for each rank */

int boot_derive_keys (const uint8_t secret[ZAP_KEY_SIZE], uint32_t rank, char public_key[BOOT_KEY_TEXT],
                      char secret_key[BOOT_KEY_TEXT], idt_error_t *errp)
{
    uint8_t stream[FLAX_CHACHA_CHUNK];
    int rc;

    flax_chacha (secret, CHACHA_BLOCKS * rank, CHACHA_ROUNDS, stream, 1);
    zmq_z85_encode (secret_key, stream, ZAP_KEY_SIZE);
    explicit_bzero (stream, sizeof (stream));
    rc = zmq_curve_public (public_key, secret_key);
    return rc < 0 ? errprintf (errp, "cannot make a key pair: libzmq was built without CURVE") : 0;
}

/* --- bizcards -------------------------------------------------------------------------------------- */

int card_fill (struct bizcard *card, uint32_t rank, const char *endpoint, const char *host, const char *public_key,
               const char *topology, uint32_t size)
{
    memset (card, 0, sizeof (*card));
    card->rank = rank;
    snprintf (card->endpoint, sizeof (card->endpoint), "%s", endpoint ? endpoint : "-");
    snprintf (card->host, sizeof (card->host), "%s", host);
    snprintf (card->topology, sizeof (card->topology), "%s", topology);
    card->size = size;
    return zmq_z85_decode (card->key, public_key) ? 0 : errset (EINVAL);
}

/* --- as text ---------------------------------------------------------------------------------------- */

/* Whether a byte is written unchanged. Separators of fields, and bytes that a launcher may interpret (blanks, quotes, ;
 * and =), are written as %XX.
 */
static bool is_plain (char c, const char *others)
{
    return c > ' ' && c <= '~' && c != '%' && !strchr (others, c);
}

/* Returns the length of the complete result, like snprintf (), even if 'buf' is too small. */
static size_t escape (char *buf, size_t size, const char *s, const char *others)
{
    size_t n = 0;

    if (size > 0)
        buf[0] = '\0';
    for (; *s; s++) {
        char code[4] = { *s, '\0' };

        if (!is_plain (*s, others))
            snprintf (code, sizeof (code), "%%%02X", (unsigned char)*s);
        if (n + strlen (code) < size)
            memcpy (buf + n, code, strlen (code) + 1);
        n += strlen (code);
    }
    return n;
}

static int unescape (char *s)
{
    char *to = s;
    unsigned byte;

    for (; *s; s++, to++) {
        *to = *s;
        if (*s != '%')
            continue;
        if (!isxdigit ((unsigned char)s[1]) || !isxdigit ((unsigned char)s[2]) || sscanf (s + 1, "%2x", &byte) != 1
            || byte == 0)
            return -1;
        *to = (char)byte;
        s += 2;
    }
    *to = '\0';
    return 0;
}

void card_host (char host[CARD_HOST], const char *name)
{
    if (escape (host, CARD_HOST, name, "[],") == 0)
        snprintf (host, CARD_HOST, "localhost");
}

int card_encode (char text[CARD_TEXT], const struct bizcard *card, idt_error_t *errp)
{
    static const char others[] = ",;=\"'\\";
    size_t n = 0, size = CARD_TEXT - 2 * ZAP_KEY_SIZE - TOPO_NAME_SIZE * 3 - 16; /* for endpoint and host */

    n += escape (text, size, card->endpoint, others);
    if (n + 1 < size)
        n += snprintf (text + n, size - n, ",") + escape (text + n + 1, size - n - 1, card->host, others);
    if (n + 1 >= size)
        return errsetf (errp, ENAMETOOLONG,
                        "rank %u: the endpoint %s and the host name %s are together too long for "
                        "a bizcard",
                        card->rank, card->endpoint, card->host);
    n += snprintf (text + n, CARD_TEXT - n, ",");
    for (int i = 0; i < ZAP_KEY_SIZE; i++)
        n += snprintf (text + n, CARD_TEXT - n, "%02x", card->key[i]);
    n += snprintf (text + n, CARD_TEXT - n, ",");
    n += escape (text + n, CARD_TEXT - n, card->topology, others);
    n += snprintf (text + n, CARD_TEXT - n, ",%u", card->size);
    assert (n < CARD_TEXT);
    return 0;
}

static int decode_hex (const char *s, uint8_t *key, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned byte;

        if (strspn (s + 2 * i, "0123456789abcdef") < 2 || sscanf (s + 2 * i, "%2x", &byte) != 1)
            return -1;
        key[i] = byte;
    }
    return s[2 * size] ? -1 : 0;
}

/* Whether a name is valid in lists (RFC 29) and in JSON. */
static bool is_host (const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr ("[],", *p))
            return false;
    return *name != '\0';
}

/* Take the next field from '*rest', and replace its %XX. */
static int take (char **rest, char *buf, size_t size)
{
    char *field = strsep (rest, ",");

    if (!field || unescape (field) < 0 || strlen (field) >= size)
        return -1;
    strcpy (buf, field);
    return 0;
}

static int decode (char *text, struct bizcard *card)
{
    char key[2 * ZAP_KEY_SIZE + 2], size[16] = "0", *rest = text;

    if (take (&rest, card->endpoint, sizeof (card->endpoint)) < 0 || !card->endpoint[0]
        || take (&rest, card->host, sizeof (card->host)) < 0 || !is_host (card->host)
        || take (&rest, key, sizeof (key)) < 0 || decode_hex (key, card->key, ZAP_KEY_SIZE) < 0
        || take (&rest, card->topology, sizeof (card->topology)) < 0 || !card->topology[0]
        || (rest && take (&rest, size, sizeof (size)) < 0))
        return -1;
    return sscanf (size, "%" SCNu32, &card->size) == 1 ? 0 : -1;
}

int card_decode (const char *text, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    char copy[CARD_TEXT];

    memset (card, 0, sizeof (*card));
    if (snprintf (copy, sizeof (copy), "%s", text) >= (int)sizeof (copy) || decode (copy, card) < 0)
        return errsetf (errp, EPROTO, "rank %u: malformed bizcard '%s'", rank, text);
    card->rank = rank;
    return 0;
}
