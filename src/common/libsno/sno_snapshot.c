/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_snapshot.c - the state of a generator as a value and as JSON
 *
 * The JSON form is an object of eight whole numbers, one of them as a pair of bytes; reading takes
 * those names and nothing else, because a state that is misread makes ids twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "idtree/sno.h"

static int refuse (const char *text, const char **why)
{
    if (why)
        *why = text;
    errno = EINVAL;
    return -1;
}

int sno_snapshot_sanitize (const struct sno_snapshot *in, struct sno_snapshot *out, const char **why)
{
    struct sno_snapshot s = *in;

    if (s.sequence_max == 0 && s.sequence_min != SNO_SEQUENCE_MAX)
        s.sequence_max = SNO_SEQUENCE_MAX;
    if (s.sequence_min == s.sequence_max)
        return refuse ("the sequence bounds are identical: a pool of at least 6 is needed", why);
    if (s.sequence_max < s.sequence_min) {
        uint16_t low = s.sequence_max;
        s.sequence_max = s.sequence_min;
        s.sequence_min = low;
    }
    if (s.sequence_max - s.sequence_min + 1U < SNO_POOL_MIN)
        return refuse ("the sequence bounds are too close: a pool of at least 6 is needed", why);
    if (s.sequence == 0)
        s.sequence = s.sequence_min;
    if (s.sequence < s.sequence_min)
        return refuse ("the sequence is below its lower bound", why);
    *out = s;
    return 0;
}

int sno_snapshot_raise (struct sno_snapshot *snapshot, uint64_t unit)
{
    if (unit == 0 || unit > SNO_UNIT_MAX) {
        errno = EOVERFLOW;
        return -1;
    }
    snapshot->wall_hi = snapshot->wall_safe = (int64_t)unit - 1;
    snapshot->sequence = SNO_SEQUENCE_MAX + 1;
    return 0;
}

int sno_snapshot_format (const struct sno_snapshot *s, char *buf, size_t size)
{
    char json[SNO_SNAPSHOT_TEXT_MAX];
    int len = snprintf (json, sizeof (json),
                        "{\"partition\":[%u,%u],\"sequenceMin\":%u,\"sequenceMax\":%u,"
                        "\"sequence\":%" PRIu32 ",\"now\":%" PRId64 ",\"wallHi\":%" PRId64 ",\"wallSafe\":%" PRId64
                        ",\"drifts\":%" PRIu32 "}",
                        s->partition >> 8, s->partition & 255U, s->sequence_min, s->sequence_max, s->sequence, s->now,
                        s->wall_hi, s->wall_safe, s->drifts);

    if ((size_t)len >= size) {
        errno = ENOSPC;
        return -1;
    }
    memcpy (buf, json, (size_t)len + 1);
    return len;
}

/* --- reading: a cursor, and functions that move it and return false where they cannot ---- */

struct cursor {
    const char *at;
    const char *end;
    int errnum;
};

static void skip_blanks (struct cursor *c)
{
    while (c->at < c->end && *c->at && strchr (" \t\r\n", *c->at))
        c->at++;
}

/* Take 'token' (one character) and the blanks around it. */
static bool take (struct cursor *c, char token)
{
    skip_blanks (c);
    if (c->at == c->end || *c->at != token)
        return false;
    c->at++;
    skip_blanks (c);
    return true;
}

/* Digits to a magnitude of at most 'max'; no leading zeros (RFC 8259 6). */
static bool take_magnitude (struct cursor *c, uint64_t max, uint64_t *value)
{
    const char *start = c->at;
    uint64_t v = 0;

    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        unsigned digit = (unsigned)(*c->at - '0');
        if (c->at == start + 1 && *start == '0')
            return false;
        if (v > (max - digit) / 10) {
            c->errnum = ERANGE;
            return false;
        }
        v = v * 10 + digit;
    }
    *value = v;
    return c->at > start;
}

static bool take_unsigned (struct cursor *c, uint64_t max, uint64_t *value)
{
    skip_blanks (c);
    return take_magnitude (c, max, value);
}

static bool take_signed (struct cursor *c, int64_t *value)
{
    uint64_t magnitude;

    skip_blanks (c);
    bool negative = c->at < c->end && *c->at == '-';
    c->at += negative;
    if (!take_magnitude (c, (uint64_t)INT64_MAX + negative, &magnitude))
        return false;
    *value = (int64_t)(negative ? -magnitude : magnitude);
    return true;
}

enum { PARTITION, SEQUENCE_MIN, SEQUENCE_MAX, SEQUENCE, NOW, WALL_HI, WALL_SAFE, DRIFTS, MEMBERS };

static const char *const member_names[MEMBERS] = {
    "partition", "sequenceMin", "sequenceMax", "sequence", "now", "wallHi", "wallSafe", "drifts",
};

static bool take_name (struct cursor *c, int *member)
{
    for (int i = 0; i < MEMBERS; i++) {
        size_t len = strlen (member_names[i]);
        if ((size_t)(c->end - c->at) >= len + 2 && c->at[0] == '"' && c->at[len + 1] == '"'
            && !memcmp (c->at + 1, member_names[i], len)) {
            c->at += len + 2;
            *member = i;
            return true;
        }
    }
    return false;
}

static bool take_partition (struct cursor *c, uint16_t *partition)
{
    uint64_t high, low;

    if (!take (c, '[') || !take_unsigned (c, 255, &high) || !take (c, ',') || !take_unsigned (c, 255, &low)
        || !take (c, ']'))
        return false;
    *partition = (uint16_t)(high << 8 | low);
    return true;
}

static bool take_u16 (struct cursor *c, uint16_t *field)
{
    uint64_t value;
    if (!take_unsigned (c, UINT16_MAX, &value))
        return false;
    *field = (uint16_t)value;
    return true;
}

static bool take_u32 (struct cursor *c, uint32_t *field)
{
    uint64_t value;
    if (!take_unsigned (c, UINT32_MAX, &value))
        return false;
    *field = (uint32_t)value;
    return true;
}

static bool take_value (struct cursor *c, int member, struct sno_snapshot *s)
{
    switch (member) {
    case PARTITION:
        return take_partition (c, &s->partition);
    case SEQUENCE_MIN:
        return take_u16 (c, &s->sequence_min);
    case SEQUENCE_MAX:
        return take_u16 (c, &s->sequence_max);
    case SEQUENCE:
        return take_u32 (c, &s->sequence);
    case NOW:
        return take_signed (c, &s->now);
    case WALL_HI:
        return take_signed (c, &s->wall_hi);
    case WALL_SAFE:
        return take_signed (c, &s->wall_safe);
    default:
        return take_u32 (c, &s->drifts);
    }
}

static bool take_members (struct cursor *c, struct sno_snapshot *s)
{
    unsigned seen = 0;
    int member;

    if (take (c, '}'))
        return true;
    do {
        if (!take_name (c, &member) || seen >> member & 1)
            return false;
        seen |= 1U << member;
        if (!take (c, ':') || !take_value (c, member, s))
            return false;
    } while (take (c, ','));
    return take (c, '}');
}

int sno_snapshot_parse (const char *json, size_t len, struct sno_snapshot *snapshot, size_t *errpos)
{
    struct cursor c = { .at = json, .end = json + len, .errnum = EINVAL };
    struct sno_snapshot read = { 0 };

    if (!take (&c, '{') || !take_members (&c, &read) || c.at != c.end) {
        if (errpos)
            *errpos = (size_t)(c.at - json);
        errno = c.errnum;
        return -1;
    }
    *snapshot = read;
    return 0;
}
