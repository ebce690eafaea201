/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* card.c - a bizcard as text */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "broker/boot/card.h"
#include "libutil/errprintf.h"

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

void card_encode (char text[CARD_TEXT], const struct bizcard *card)
{
    int n = snprintf (text, CARD_TEXT, "%s,%s,", card->endpoint, card->host);

    for (int i = 0; i < ZAP_KEY_SIZE; i++)
        n += snprintf (text + n, CARD_TEXT - n, "%02x", card->key[i]);
    snprintf (text + n, CARD_TEXT - n, ",%s,%u", card->topology, card->size);
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

/* Names are told in lists (RFC 29), and in JSON. */
static bool is_host (const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr ("[],", *p))
            return false;
    return true;
}

int card_decode (const char *text, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    char key[2 * ZAP_KEY_SIZE + 2];

    memset (card, 0, sizeof (*card));
    if (sscanf (text, "%255[^,],%255[^,],%65[^,],%31[^,],%" SCNu32, card->endpoint, card->host, key, card->topology,
                &card->size)
            < 4
        || decode_hex (key, card->key, ZAP_KEY_SIZE) < 0 || !is_host (card->host))
        return errsetf (errp, EPROTO, "rank %u: malformed bizcard '%s'", rank, text);
    card->rank = rank;
    return 0;
}
