/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_snapshot.c - the state of a generator as a value and as JSON
 *
 * The JSON form is an object of eight integers, one of them as a pair of bytes. Reading accepts exactly these names,
 * because a state that is read wrongly would make ids twice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "idtree/sno.h"
#include "libutil/errprintf.h"

static int refuse (const char *text, const char **why)
{
    if (why)
        *why = text;
    return errset (EINVAL);
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
    if (unit == 0 || unit > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
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

    if ((size_t)len >= size)
        return errset (ENOSPC);
    memcpy (buf, json, (size_t)len + 1);
    return len;
}

/* --- reading: functions that advance a cursor, or return false --------------------------- */

struct snapshot_cursor {
    const char *at;
    const char *end;
    int errnum;
};

static void skip_blanks (struct snapshot_cursor *c)
{
    while (c->at < c->end && *c->at && strchr (" \t\r\n", *c->at))
        c->at++;
}

/* Take 'token' (one character), and blanks around it. */
static bool take (struct snapshot_cursor *c, char token)
{
    skip_blanks (c);
    if (c->at == c->end || *c->at != token)
        return false;
    c->at++;
    skip_blanks (c);
    return true;
}

/* An integer from 0 to 'max', or any int64_t if that is INT64_MAX; no leading zeros (RFC 8259 6). */
static bool take_number (struct snapshot_cursor *c, int64_t max, int64_t *value)
{
    bool negative = max == INT64_MAX && c->at < c->end && *c->at == '-';
    const char *start = c->at += negative;
    uint64_t limit = (uint64_t)max + negative, v = 0;

    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        unsigned digit = (unsigned)(*c->at - '0');
        if (c->at == start + 1 && *start == '0')
            return false;
        if (v > (limit - digit) / 10) {
            c->errnum = ERANGE;
            return false;
        }
        v = v * 10 + digit;
    }
    *value = (int64_t)(negative ? -v : v);
    return c->at > start;
}

enum { PARTITION, SEQUENCE_MIN, SEQUENCE_MAX, SEQUENCE, NOW, WALL_HI, WALL_SAFE, DRIFTS, MEMBERS };

static const struct member {
    const char *name; /* with its quotes */
    int64_t max;
} members[MEMBERS] = {
    [PARTITION] = { "\"partition\"", UINT8_MAX }, /* of each of two bytes */
    [SEQUENCE_MIN] = { "\"sequenceMin\"", UINT16_MAX },
    [SEQUENCE_MAX] = { "\"sequenceMax\"", UINT16_MAX },
    [SEQUENCE] = { "\"sequence\"", UINT32_MAX },
    [NOW] = { "\"now\"", INT64_MAX },
    [WALL_HI] = { "\"wallHi\"", INT64_MAX },
    [WALL_SAFE] = { "\"wallSafe\"", INT64_MAX },
    [DRIFTS] = { "\"drifts\"", UINT32_MAX },
};

static bool take_name (struct snapshot_cursor *c, int *member)
{
    for (int i = 0; i < MEMBERS; i++) {
        size_t len = strlen (members[i].name);
        if ((size_t)(c->end - c->at) >= len && !memcmp (c->at, members[i].name, len)) {
            c->at += len;
            *member = i;
            return true;
        }
    }
    return false;
}

static bool take_value (struct snapshot_cursor *c, int member, int64_t *value)
{
    int64_t max = members[member].max, high, low;

    if (member != PARTITION)
        return take_number (c, max, value);
    if (!take (c, '[') || !take_number (c, max, &high) || !take (c, ',') || !take_number (c, max, &low)
        || !take (c, ']'))
        return false;
    *value = high << 8 | low;
    return true;
}

static bool take_members (struct snapshot_cursor *c, int64_t values[MEMBERS])
{
    unsigned seen = 0;
    int member;

    if (take (c, '}'))
        return true;
    do {
        if (!take_name (c, &member) || seen >> member & 1)
            return false;
        seen |= 1U << member;
        if (!take (c, ':') || !take_value (c, member, &values[member]))
            return false;
    } while (take (c, ','));
    return take (c, '}');
}

int sno_snapshot_parse (const char *json, size_t len, struct sno_snapshot *snapshot, size_t *errpos)
{
    struct snapshot_cursor c = { .at = json, .end = json + len, .errnum = EINVAL };
    int64_t v[MEMBERS] = { 0 };

    if (!take (&c, '{') || !take_members (&c, v) || c.at != c.end)
        return errset_at (c.errnum, (size_t)(c.at - json), errpos);
    *snapshot = (struct sno_snapshot){
        .partition = (uint16_t)v[PARTITION],
        .sequence_min = (uint16_t)v[SEQUENCE_MIN],
        .sequence_max = (uint16_t)v[SEQUENCE_MAX],
        .sequence = (uint32_t)v[SEQUENCE],
        .now = v[NOW],
        .wall_hi = v[WALL_HI],
        .wall_safe = v[WALL_SAFE],
        .drifts = (uint32_t)v[DRIFTS],
    };
    return 0;
}
