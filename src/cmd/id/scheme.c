/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme.c - the schemes of ids, as commands use them
 *
 * flax, sno and uid have two forms: the text of the scheme, and 0x followed by two hex digits for each byte.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/id/scheme.h"
#include "libutil/errprintf.h"

#define DAY_MS INT64_C (86400000)
#define FORM_TEXT 0

static const char *const text_forms[] = { "text", "hex", NULL };

/* --- hex ---------------------------------------------------------------------------------------- */

static int write_hex (const struct ident *id, char *buf)
{
    static const char digits[] = "0123456789abcdef";
    char *p = buf;

    *p++ = '0';
    *p++ = 'x';
    for (int i = 0; i < id->size; i++) {
        *p++ = digits[id->bytes[i] >> 4];
        *p++ = digits[id->bytes[i] & 15];
    }
    *p = '\0';
    return p - buf;
}

static int hex_value (char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Read an id of exactly 'size' bytes. */
static int read_hex (const char *s, size_t len, size_t size, struct ident *id)
{
    struct ident got = { .size = size };

    if (len != 2 + 2 * size || s[0] != '0' || (s[1] | 0x20) != 'x')
        return -1;
    for (size_t i = 0; i < size; i++) {
        int high = hex_value (s[2 + 2 * i]), low = hex_value (s[3 + 2 * i]);

        if (high < 0 || low < 0)
            return -1;
        got.bytes[i] = high << 4 | low;
    }
    *id = got;
    return 0;
}

/* --- fluid --------------------------------------------------------------------------------------- */

/* The index of a form equals its value in enum fluid_form. */
static const char *const fluid_forms[] = { "dec", "hex", "dothex", "f58", "ƒ58", "words", "emoji", NULL };

fluid_t ident_fluid (const struct ident *id)
{
    uint64_t n;

    memcpy (&n, id->bytes, sizeof (n));
    return be64toh (n);
}

struct ident ident_of_fluid (fluid_t id)
{
    uint64_t n = htobe64 (id);
    struct ident ident = { .size = sizeof (n) };

    memcpy (ident.bytes, &n, sizeof (n));
    return ident;
}

static int read_fluid (const char *s, size_t len, struct ident *id)
{
    fluid_t n;

    if (fluid_parse (s, len, &n, NULL) < 0)
        return -1;
    *id = ident_of_fluid (n);
    return 0;
}

static int write_fluid (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX])
{
    return fluid_format (ident_fluid (id), form, buf, SCHEME_TEXT_MAX);
}

static int64_t unix_ms_fluid (const struct ident *id)
{
    return -1;
}

static int range_fluid (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                        struct ident *upper)
{
    fluid_t a, b;

    if (from_ms > to_ms)
        return errset (EINVAL);
    if (from_ms < key->epoch_ms)
        return errset (EOVERFLOW);
    if (fluid_range (from_ms - key->epoch_ms, to_ms - key->epoch_ms, &a, &b) < 0)
        return -1;
    *lower = ident_of_fluid (a);
    *upper = ident_of_fluid (b);
    return 0;
}

/* --- flax ---------------------------------------------------------------------------------------- */

static int read_flax (const char *s, size_t len, struct ident *id)
{
    if (flax_parse (s, len, &id->flax, NULL) < 0)
        return read_hex (s, len, FLAX_SIZE, id) < 0 ? errset (EINVAL) : 0;
    id->size = FLAX_SIZE;
    return 0;
}

static int write_flax (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX])
{
    return form == FORM_TEXT ? flax_format (&id->flax, buf, SCHEME_TEXT_MAX) : write_hex (id, buf);
}

static int64_t unix_ms_flax (const struct ident *id)
{
    return flax_unix_ms (&id->flax);
}

static json_t *fields_flax (const struct ident *id, int drift)
{
    struct flax_fields f = flax_split (&id->flax);
    char random[24];

    /* The 56 random bits are a text, because programs that read numbers of JSON as doubles would lose some bits. */
    snprintf (random, sizeof (random), "0x%014llx", (unsigned long long)f.random);
    return json_pack ("{s:o s:s}", "timestamp_ms", json_sprintf ("%" PRIu64, f.ms), "random", random);
}

static int range_flax (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                       struct ident *upper)
{
    lower->size = upper->size = FLAX_SIZE;
    return flax_range (from_ms, to_ms, &lower->flax, &upper->flax);
}

/* --- sno ----------------------------------------------------------------------------------------- */

static int read_sno (const char *s, size_t len, struct ident *id)
{
    if (sno_parse (s, len, &id->sno, NULL) < 0)
        return read_hex (s, len, SNO_SIZE, id) < 0 ? errset (EINVAL) : 0;
    id->size = SNO_SIZE;
    return 0;
}

static int write_sno (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX])
{
    return form == FORM_TEXT ? sno_format (&id->sno, buf, SCHEME_TEXT_MAX) : write_hex (id, buf);
}

static int64_t unix_ms_sno (const struct ident *id)
{
    return sno_unix_ns (&id->sno) / 1000000;
}

static json_t *fields_sno (const struct ident *id, int drift)
{
    struct sno_fields f = sno_split (&id->sno);

    return json_pack ("{s:I s:i s:i s:i s:i}", "unit", (json_int_t)f.unit, "tick", (int)f.tick, "meta", (int)f.meta,
                      "partition", (int)f.partition, "sequence", (int)f.sequence);
}

static int range_sno (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                      struct ident *upper)
{
    if (from_ms > INT64_MAX / 1000000 || to_ms > INT64_MAX / 1000000)
        return errset (EOVERFLOW);
    lower->size = upper->size = SNO_SIZE;
    return sno_range (from_ms * 1000000, to_ms * 1000000, &lower->sno, &upper->sno);
}

/* --- uid ----------------------------------------------------------------------------------------- */

/* The text is made of the bytes of the id.  It is parsed twice, because the function that reads the values is stricter.
 */
static int read_uid (const char *s, size_t len, struct ident *id)
{
    struct uid uid;

    if (uid_parse (s, len, NULL, &uid, NULL) < 0) {
        if (read_hex (s, len, UID_GLOBAL_SIZE, id) < 0 && read_hex (s, len, UID_LOCAL_SIZE, id) < 0)
            return errset (EINVAL);
        return 0;
    }
    id->size = uid.kind == UID_LOCAL ? UID_LOCAL_SIZE : UID_GLOBAL_SIZE;
    return uid_base64_parse (s, len, id->bytes, sizeof (id->bytes), NULL) < 0 ? -1 : 0;
}

static int write_uid (const struct ident *id, int form, char buf[SCHEME_TEXT_MAX])
{
    if (form != FORM_TEXT)
        return write_hex (id, buf);
    return (int)uid_base64_format (id->bytes, id->size, buf, SCHEME_TEXT_MAX);
}

static struct uid uid_of (const struct ident *id, int drift)
{
    const struct uid_codec codec = { .drift = drift };
    struct uid uid = { 0 };

    if (uid_from_bytes (id->bytes, id->size, &codec, &uid) < 0)
        assert (false);
    return uid;
}

/* The drift of the id is not known here.  A wrong drift changes the time by at most some minutes, which does not matter
 * here.
 */
static int64_t unix_ms_uid (const struct ident *id)
{
    struct uid uid = uid_of (id, UID_DRIFT_DEFAULT);

    return uid_unix_ms (&uid);
}

static json_t *fields_uid (const struct ident *id, int drift)
{
    struct uid uid = uid_of (id, drift);
    char node[16];
    json_t *o = json_pack ("{s:s s:I s:I s:I s:I}", "kind", uid.kind == UID_LOCAL ? "local" : "global", "a",
                           (json_int_t)uid.a, "b", (json_int_t)uid.b, "c", (json_int_t)uid.c, "sequence",
                           (json_int_t)uid.sequence);

    if (o && uid.kind == UID_GLOBAL) {
        snprintf (node, sizeof (node), "0x%08x", uid.node.fingerprint);
        json_object_set_new (o, "node", json_string (node));
        json_object_set_new (o, "drift", json_integer (drift));
    }
    return o;
}

static int range_uid (const struct scheme_key *key, int64_t from_ms, int64_t to_ms, struct ident *lower,
                      struct ident *upper)
{
    size_t size = key->kind == UID_LOCAL ? UID_LOCAL_SIZE : UID_GLOBAL_SIZE;
    const struct uid_codec codec = { .drift = key->drift };

    if (from_ms > UID_UNIX_US_MAX / 1000 || to_ms > UID_UNIX_US_MAX / 1000)
        return errset (EOVERFLOW);
    if (uid_range (size, &codec, from_ms * 1000, to_ms * 1000, lower->bytes, upper->bytes) < 0)
        return -1;
    lower->size = upper->size = size;
    return 0;
}

/* --- all ----------------------------------------------------------------------------------------- */

const struct scheme schemes[SCHEME_COUNT] = {
    { "fluid", fluid_forms, FLUID_F58, read_fluid, write_fluid, unix_ms_fluid, NULL, range_fluid, "the epoch",
      "34.8 years later" },
    { "flax", text_forms, FORM_TEXT, read_flax, write_flax, unix_ms_flax, fields_flax, range_flax, "2015-01-01",
      "2049-11-03T19:53:47.775Z" },
    { "sno", text_forms, FORM_TEXT, read_sno, write_sno, unix_ms_sno, fields_sno, range_sno, "2010-01-01",
      "2079-09-07T15:47:35.548Z" },
    { "uid", text_forms, FORM_TEXT, read_uid, write_uid, unix_ms_uid, fields_uid, range_uid, "1970-01-01",
      "year 35198" },
};

const struct scheme *scheme_find (const char *name)
{
    for (int i = 0; i < SCHEME_COUNT; i++)
        if (!strcmp (schemes[i].name, name))
            return &schemes[i];
    return NULL;
}

int scheme_form (const struct scheme *scheme, const char *name)
{
    for (int i = 0; scheme->forms[i]; i++)
        if (!strcmp (scheme->forms[i], name))
            return i;
    return -1;
}

int ident_compare (const struct ident *a, const struct ident *b)
{
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    int order = memcmp (a->bytes, b->bytes, a->size);
    return order < 0 ? -1 : order > 0;
}

/* Whether a text is digits, or 0x and hex digits.  Of the texts of other schemes, only one in a hundred million looks
 * like that.
 */
static bool is_number (const char *s, size_t len)
{
    bool hex = len > 2 && s[0] == '0' && (s[1] | 0x20) == 'x';

    return hex ? strspn (s + 2, "0123456789abcdefABCDEF") == len - 2 : strspn (s, "0123456789") == len;
}

int scheme_guess (const char *s, size_t len, int64_t now_ms, struct candidate candidate[SCHEME_COUNT])
{
    bool number = is_number (s, len);
    int n = 0, errnum = EINVAL;

    for (int i = 0; i < SCHEME_COUNT; i++) {
        struct candidate *c = &candidate[n];

        c->scheme = &schemes[i];
        if (c->scheme->read (s, len, &c->id) < 0) {
            errnum = i == 0 ? errno : errnum;
            continue;
        }
        bool as_text = i > 0 && len != 2 + 2 * (size_t)c->id.size;
        if (c->scheme->unix_ms (&c->id) <= now_ms + DAY_MS && !(as_text && number))
            n++;
    }
    errno = errnum;
    return n;
}
