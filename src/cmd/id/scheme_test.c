/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme_test.c - the schemes of ids, as commands use them */
#include <errno.h>
#include <string.h>

#include "cmd/id/scheme.h"
#include "test/tap.h"

#define NOW_MS INT64_C (1795300000000) /* 2026-11-21 */

/* The schemes that 's' may belong to, as "fluid sno". */
static const char *guess (const char *s)
{
    static char names[64];
    struct candidate candidate[SCHEME_COUNT];
    int n = scheme_guess (s, strlen (s), NOW_MS, candidate);

    names[0] = '\0';
    for (int i = 0; i < n; i++) {
        strcat (names, i > 0 ? " " : "");
        strcat (names, candidate[i].scheme->name);
    }
    return names;
}

static bool is_guess (const char *s, const char *expect)
{
    const char *names = guess (s);

    if (strcmp (names, expect))
        diag ("'%s' may be: %s", s, names);
    return !strcmp (names, expect);
}

/* Whether each form of the id 's' is parsed as the same id, and 's' is one of these forms. */
static bool round_trips (const char *name, const char *s)
{
    const struct scheme *scheme = scheme_find (name);
    struct ident id, again;
    char text[SCHEME_TEXT_MAX];

    if (scheme->read (s, strlen (s), &id) < 0)
        return false;
    for (int i = 0; scheme->forms[i]; i++) {
        int len = scheme->write (&id, i, text);

        if (len != (int)strlen (text) || scheme->read (text, len, &again) < 0 || ident_compare (&id, &again))
            return false;
    }
    scheme->write (&id, scheme->usual, text);
    return !strcmp (s, text);
}

static void test_forms (void)
{
    struct ident id;

    ok (round_trips ("fluid", "fuZZybuNNy") && round_trips ("flax", "0RdKJcxqVBiAiQr0")
            && round_trips ("sno", "brpk4q72xwf2m63l") && round_trips ("uid", ".5.tXVEf8n4vPN.0")
            && round_trips ("uid", "zzzzzzzzzzw") && round_trips ("uid", "zzzzzzzzzzzzzzzz"),
        "each form of an id parses to the same id");
    ok (scheme_find ("sno")->read ("0x4e6f2160a0ff9a0a1033", 22, &id) == 0 && scheme_find ("snow") == NULL,
        "hex has two digits for each byte");
    for (int i = 0; i < SCHEME_COUNT; i++) {
        const struct scheme *s = &schemes[i];

        ok (s->read ("", 0, &id) < 0 && errno == EINVAL && s->read ("0x", 2, &id) < 0
                && s->read ("0x4g6f2160a0ff9a0a1033", 22, &id) < 0 && s->read ("brpk4q72xwf2m63!", 16, &id) < 0
                && errno == EINVAL,
            "%s refuses texts that are not its ids", s->name);
    }
}

static void test_guess (void)
{
    ok (is_guess ("fuZZybuNNy", "fluid") && is_guess ("0x17e9fb8df16c2e", "fluid") && is_guess ("7", "fluid"),
        "a text that only one scheme can parse has one candidate scheme");
    ok (is_guess ("6731191091817518", "fluid") && is_guess ("99999999999", "fluid"), "a text of digits is a fluid");
    ok (is_guess ("0x4e6f2160a0ff9a0a1033", "") && is_guess ("0x3e0b71df8e07efda0000", "sno")
            && is_guess ("0x05ca55528f7680cb8bb9bdc1", "flax") && is_guess ("0x0060398a03eb27317b698001", "flax uid"),
        "the number of hex digits selects the scheme");
    ok (is_guess ("0RdKJcxqVBiAiQr0", "flax"),
        "a text with capitals is a flax, because a sno has no capitals, and a uid of this form would be from after "
        "the year 30000");
    ok (is_guess (".5.tXVEf8n4vPN.0", "uid") && is_guess (".5.tXVEf8n3", "uid"), "a text with a full stop is a uid");
    ok (is_guess ("9q7p5pug2xpvm222", "flax sno"), "a text of small letters may be a flax or a sno");
    ok (is_guess ("brpk4q72xwf2m63l", "") && errno == EINVAL,
        "a text is refused if its date is in the future in each scheme");
    ok (is_guess ("18446744073709551616", "") && errno == ERANGE,
        "a number above the largest id is refused with ERANGE");
    ok (is_guess ("xyz", "") && errno == EINVAL, "a text that is an id of no scheme is refused with EINVAL");
}

/* Whether the keys of the range of time enclose 'inside', but not 'behind'. */
static bool encloses (const char *name, enum uid_kind kind, const char *inside, const char *behind)
{
    const struct scheme *scheme = scheme_find (name);
    const struct scheme_key key = { .epoch_ms = 1000, .drift = UID_DRIFT_DEFAULT, .kind = kind };
    struct ident in, out, lower, upper;

    if (scheme->read (inside, strlen (inside), &in) < 0 || scheme->read (behind, strlen (behind), &out) < 0)
        return false;
    int64_t ms = scheme->unix_ms (&in) < 0 ? 401210253 + key.epoch_ms : scheme->unix_ms (&in);
    return scheme->range (&key, ms, ms + 4, &lower, &upper) == 0 && ident_compare (&lower, &in) <= 0
           && ident_compare (&in, &upper) < 0 && ident_compare (&out, &upper) >= 0;
}

static void test_range (void)
{
    const struct scheme_key key = { .epoch_ms = 5, .drift = UID_DRIFT_DEFAULT, .kind = UID_GLOBAL };
    struct ident lower, upper;
    bool bad = true;

    ok (encloses ("fluid", 0, "fuZZybuNNy", "fuZZzbuNNy"),
        "a range of fluid times has keys that enclose the fluids of these times");
    ok (encloses ("flax", 0, "0RdKJcxqVBiAiQr0", "0RdKJhxqVBiAiQr0"),
        "a range of flax times has keys that enclose the flax ids of these times");
    ok (encloses ("sno", 0, "brpk4q72xwf2m63l", "brpk4q92xwf2m63l"),
        "a range of sno times has keys that enclose the sno ids of these times");
    ok (encloses ("uid", UID_LOCAL, ".5.tXVEf8n3", ".5.tXVFf8n3"),
        "a range of times has keys that enclose the local uids of these times");
    ok (encloses ("uid", UID_GLOBAL, ".5.tXVEf8n4vPN.0", ".5.zXVEf8n4vPN.0"),
        "a range of times has keys that enclose the global uids of these times");
    for (int i = 0; i < SCHEME_COUNT; i++)
        bad = bad
              && schemes[i].range (&key, INT64_C (253402300799999) * (i == 3 ? 5 : 1), INT64_MAX, &lower, &upper) < 0
              && errno == EOVERFLOW;
    ok (bad, "the keys of dates that the scheme cannot store fail with EOVERFLOW");
    ok (scheme_find ("fluid")->range (&key, 4, 6, &lower, &upper) < 0 && errno == EOVERFLOW,
        "the keys of dates before the scheme's epoch fail with EOVERFLOW");
}

int main (void)
{
    test_forms ();
    test_guess ();
    test_range ();
    return done_testing ();
}
