/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid_text.c - stored forms: bytes and text of a value, of the current release and of older ones
 *
 * A global form has 96 bits. With a drift of I they are, from the top: 40 - I bits with A and the upper part of B, 32
 * bits with the node, and I + 24 bits with the rest of B, the steps of C and the sequence. So the position of the node
 * depends only on I. The bits are kept as two halves of 48 bits, each of which is eight characters.
 */
#include <string.h>

#include "idtree/uid.h"
#include "libutil/minmax.h"
#include "libutil/errprintf.h"
#include "libutil/id_text.h"

#define ZERO '.'
#define STEP_BITS 10
#define SEQUENCE_BITS 14
#define LOW_BITS (STEP_BITS + SEQUENCE_BITS)

static const struct uid_codec default_codec = { .drift = UID_DRIFT_DEFAULT };

static bool drift_fits (const struct uid_codec *codec)
{
    return codec->drift >= UID_DRIFT_MIN && codec->drift <= UID_DRIFT_MAX;
}

/* --- writing ----------------------------------------------------------------------------- */

static inline bool time_fits (const struct uid *id)
{
    return (uint64_t)id->a <= UID_A_MAX && (uint64_t)id->b <= UID_B_MAX && (uint64_t)id->c <= UID_C_MAX;
}

static inline bool sequence_fits (const struct uid *id)
{
    return (uint64_t)id->sequence <= UID_SEQUENCE_MAX;
}

/* The steps of C and the sequence, which are the lowest 24 bits of all forms. */
static inline uint64_t low_bits (const struct uid *id)
{
    return ((uint64_t)id->c >> STEP_BITS & 0x3ff) << SEQUENCE_BITS | ((uint64_t)id->sequence & 0x3fff);
}

static inline uint64_t local_bits (const struct uid *id)
{
    return ((uint64_t)id->a & 0xfffff) << 44 | ((uint64_t)id->b & 0xfffff) << LOW_BITS | low_bits (id);
}

struct halves {
    uint64_t upper, lower; /* 48 bits each; bits above them in 'lower' are ignored */
};

/* The bits of a global form. They are the bits of the local form with the node's 32 bits inserted above its lowest
 * 'tail' bits. The 'tail' bits are the drift bits, the steps and the sequence.
 */
static inline struct halves global_bits (const struct uid *id, int drift)
{
    uint64_t local = local_bits (id), node = id->node.fingerprint;
    int tail = drift + LOW_BITS; /* 29 ... 34 */

    return (struct halves){
        .upper = local >> tail << (tail - 16) | node >> (48 - tail),
        .lower = node << tail | (local & ((UINT64_C (1) << tail) - 1)),
    };
}

/* Whether an id can be written. 'room' is the space for the result, which needs 'local' bytes for a local id and
 * 'global' bytes for a global one.
 */
static inline int check_writable (const struct uid *id, const struct uid_codec *codec, size_t room, size_t local,
                                  size_t global)
{
    if (codec->version != UID_V135)
        return errset (ENOTSUP);
    if (id->kind == UID_GLOBAL && !drift_fits (codec))
        return errset (EINVAL);
    if (!(codec->flags & UID_WRAP) && !(time_fits (id) && sequence_fits (id)))
        return errset (time_fits (id) ? EINVAL : EOVERFLOW);
    if (room < (id->kind == UID_LOCAL ? local : global))
        return errset (ENOSPC);
    return 0;
}

int uid_to_bytes (const struct uid *id, const struct uid_codec *codec, uint8_t *bytes, size_t size)
{
    codec = codec ? codec : &default_codec;
    if (check_writable (id, codec, size, UID_LOCAL_SIZE, UID_GLOBAL_SIZE) < 0)
        return -1;
    if (id->kind == UID_LOCAL) {
        put_be (bytes, 8, local_bits (id));
        return UID_LOCAL_SIZE;
    }
    struct halves bits = global_bits (id, codec->drift);
    put_be (bytes, 6, bits.upper);
    put_be (bytes + 6, 6, bits.lower);
    return UID_GLOBAL_SIZE;
}

int uid_format (const struct uid *id, const struct uid_codec *codec, char *text, size_t size)
{
    codec = codec ? codec : &default_codec;
    if (check_writable (id, codec, size, UID_LOCAL_TEXT_LEN + 1, UID_GLOBAL_TEXT_LEN + 1) < 0)
        return -1;
    if (id->kind == UID_LOCAL) {
        uint64_t bits = local_bits (id);
        char chars[16]; /* 'text' may be too small for 16 characters, the last of which are padding */
        lex64_encode16 (bits >> 16, bits << 32, ZERO, chars);
        memcpy (text, chars, UID_LOCAL_TEXT_LEN);
        text[UID_LOCAL_TEXT_LEN] = '\0';
        return UID_LOCAL_TEXT_LEN;
    }
    struct halves bits = global_bits (id, codec->drift);
    lex64_encode16 (bits.upper, bits.lower, ZERO, text);
    text[UID_GLOBAL_TEXT_LEN] = '\0';
    return UID_GLOBAL_TEXT_LEN;
}

/* --- reading ----------------------------------------------------------------------------- */

/* Set a local id from its bits. Each field is stored directly in its place, because making a value elsewhere and
 * copying it takes three times as long.
 */
static inline void set_local_bits (struct uid *id, uint64_t bits)
{
    *id = (struct uid){
        .kind = UID_LOCAL,
        .a = (int64_t)(bits >> 44),
        .b = (int64_t)(bits >> LOW_BITS & 0xfffff),
        .c = (int64_t)(bits >> SEQUENCE_BITS & 0x3ff) * UID_STEP_US,
        .sequence = (int64_t)(bits & 0x3fff),
    };
}

/* Set a node from its fingerprint. If it is the reader's own node, the node also gets its name. */
static inline void set_node (struct uid *id, uint32_t fingerprint, const struct uid_codec *codec)
{
    const struct uid_node *self = codec->self;

    id->kind = UID_GLOBAL;
    id->node.fingerprint = fingerprint;
    if (self && self->name) {
        uint32_t own = self->fingerprint;
        if (codec->version != UID_V135)
            own = uid_fingerprint_legacy (self->name, strlen (self->name));
        if (fingerprint == own)
            id->node = *self;
    }
}

/* The inverse of global_bits (). */
static inline void set_global_bits (struct uid *id, struct halves bits, const struct uid_codec *codec)
{
    int tail = codec->drift + LOW_BITS;
    uint64_t head = bits.upper >> (tail - 16), low = bits.lower & ((UINT64_C (1) << tail) - 1);

    set_local_bits (id, head << tail | low);
    set_node (id, (uint32_t)(bits.upper << (48 - tail) | bits.lower >> tail), codec);
}

int uid_from_bytes (const void *bytes, size_t len, const struct uid_codec *codec, struct uid *id)
{
    codec = codec ? codec : &default_codec;
    if (len == UID_LOCAL_SIZE) {
        set_local_bits (id, get_be (bytes, 8));
        return 0;
    }
    if (len != UID_GLOBAL_SIZE)
        return errset (EMSGSIZE);
    if (codec->version == UID_V120) {
        set_local_bits (id, get_be ((const uint8_t *)bytes + 4, 8));
        set_node (id, (uint32_t)get_be (bytes, 4), codec);
        return 0;
    }
    if (!drift_fits (codec))
        return errset (EINVAL);
    struct halves bits = { get_be (bytes, 6), get_be ((const uint8_t *)bytes + 6, 6) };
    set_global_bits (id, bits, codec);
    return 0;
}

/* Convert up to 16 characters of base64url to our alphabet. Returns the number of characters before the first wrong
 * one, or 'len'.
 */
static size_t from_base64url (const char *text, size_t len, char *ours)
{
    static const char theirs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char alphabet[] = ".0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

    for (size_t i = 0; i < len; i++) {
        const char *at = text[i] ? strchr (theirs, text[i]) : NULL;
        if (!at)
            return i;
        ours[i] = alphabet[at - theirs];
    }
    return len;
}

int uid_parse (const char *text, size_t len, const struct uid_codec *codec, struct uid *id, size_t *errpos)
{
    char ours[UID_GLOBAL_TEXT_LEN];
    struct halves bits;
    size_t good;

    codec = codec ? codec : &default_codec;
    if (codec->version == UID_V120)
        return errset_at (ENOTSUP, 0, errpos);
    if (len != UID_LOCAL_TEXT_LEN && len != UID_GLOBAL_TEXT_LEN)
        return errset_at (EMSGSIZE, len < UID_GLOBAL_TEXT_LEN ? len : UID_GLOBAL_TEXT_LEN, errpos);
    if (codec->version == UID_V133) {
        if ((good = from_base64url (text, len, ours)) < len)
            return errset_at (EINVAL, good, errpos);
        text = ours;
    }
    if (!(len == UID_GLOBAL_TEXT_LEN && lex64_decode16 (text, ZERO, &bits.upper, &bits.lower))
        && ((good = lex64_decode (text, 8, ZERO, &bits.upper)) < 8
            || (good += lex64_decode (text + 8, len - 8, ZERO, &bits.lower)) < len))
        return errset_at (EINVAL, good, errpos);
    if (len == UID_LOCAL_TEXT_LEN) { /* the last three characters are 16 bits of the id and two unused ones */
        if ((bits.lower & 3) && !(codec->flags & UID_LENIENT))
            return errset_at (EINVAL, len - 1, errpos);
        set_local_bits (id, bits.upper << 16 | bits.lower >> 2);
        return 0;
    }
    if (!drift_fits (codec))
        return errset_at (EINVAL, len, errpos);
    set_global_bits (id, bits, codec);
    return 0;
}

static int format_cb (const void *id, const void *how, char *buf, size_t size)
{
    return uid_format (id, how, buf, size);
}

static int parse_cb (const char *text, size_t len, const void *how, void *id, size_t *errpos)
{
    return uid_parse (text, len, how, id, errpos);
}

int uid_format_lines (const struct uid *ids, size_t *count, const struct uid_codec *codec, char *buf, size_t size,
                      size_t *len)
{
    return lines_format (ids, sizeof (*ids), count, format_cb, codec, buf, size, len);
}

int uid_parse_lines (const char *text, size_t len, const struct uid_codec *codec, struct uid *ids, size_t *count,
                     size_t *pos)
{
    return lines_parse (text, len, UID_GLOBAL_TEXT_LEN, ids, sizeof (*ids), count, parse_cb, codec, pos);
}

/* --- the text of any bytes --------------------------------------------------------------- */

ssize_t uid_base64_format (const void *bytes, size_t len, char *text, size_t size)
{
    const uint8_t *at = bytes;
    size_t n = 0;

    if (size < (8 * len + 5) / 6 + 1)
        return errset (ENOSPC);
    while (len > 0) {
        uint8_t dozen[12] = { 0 };
        char chars[16];
        size_t part = len < 12 ? len : 12, count = (part * 8 + 5) / 6;
        memcpy (dozen, at, part);
        lex64_encode16 (get_be (dozen, 6), get_be (dozen + 6, 6), ZERO, chars);
        memcpy (text + n, chars, count);
        n += count;
        at += part;
        len -= part;
    }
    text[n] = '\0';
    return (ssize_t)n;
}

ssize_t uid_base64_parse (const char *text, size_t len, void *bytes, size_t size, size_t *errpos)
{
    uint8_t *out = bytes, six[6];
    size_t pos, part;
    uint64_t bits;

    for (pos = 0; pos < len; pos++)
        if (!lex64_value (text[pos]) && text[pos] != ZERO)
            return errset_at (EINVAL, pos, errpos);
    if (size < 6 * len / 8)
        return errset (ENOSPC);
    for (pos = 0; pos < len; pos += part, out += 6) {
        part = len - pos < 8 ? len - pos : 8;
        lex64_decode (text + pos, part, ZERO, &bits);
        put_be (six, 6, bits << (48 - 6 * part));
        memcpy (out, six, 6 * part / 8);
    }
    return (ssize_t)(6 * len / 8);
}

/* --- ranges ------------------------------------------------------------------------------ */

static void key (const struct uid *id, size_t size, const struct uid_codec *codec, uint8_t *bytes)
{
    struct uid_codec wide = *codec;
    struct uid whole = *id;

    wide.version = UID_V135;
    wide.flags |= UID_WRAP; /* the second of an upper key may be the one after the last of a megasecond */
    whole.kind = size == UID_GLOBAL_SIZE ? UID_GLOBAL : UID_LOCAL;
    uid_to_bytes (&whole, &wide, bytes, size);
}

/* Round the time of 'id' up to the beginning of a window of 2^drift seconds. */
static void to_window (struct uid *id, int drift)
{
    int64_t within = id->b & ((1 << drift) - 1);

    if (within || id->c)
        id->b += (1 << drift) - within;
    id->c = 0;
}

int uid_range (size_t size, const struct uid_codec *codec, int64_t from_us, int64_t to_us, uint8_t *lower,
               uint8_t *upper)
{
    struct uid from, to;

    codec = codec ? codec : &default_codec;
    if (uid_make (from_us, 0, &from) < 0 || uid_make (to_us, 0, &to) < 0)
        return -1;
    if (from_us > to_us || (size != UID_LOCAL_SIZE && size != UID_GLOBAL_SIZE)
        || (size == UID_GLOBAL_SIZE && !drift_fits (codec)))
        return errset (EINVAL);
    if (size == UID_GLOBAL_SIZE && from_us < to_us)
        to_window (&to, codec->drift);
    key (&from, size, codec, lower);
    key (&to, size, codec, upper);
    return 0;
}
