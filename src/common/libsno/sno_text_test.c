/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_text_test.c - all implementations of the conversion agree, on valid and on invalid input */
#include <string.h>

#include "libsno/sno.c" /* each form by itself */
#include "test/tap.h"

static void encode_chosen (const sno_t *id, char *text)
{
    char buf[SNO_TEXT_MAX];

    sno_format (id, buf, sizeof (buf));
    memcpy (text, buf, SNO_TEXT_LEN);
}

static bool decode_chosen (const char *text, sno_t *id)
{
    return sno_parse (text, SNO_TEXT_LEN, id, NULL) == 0;
}

static const struct form {
    const char *name;
    void (*encode) (const sno_t *id, char *text);
    bool (*decode) (const char *text, sno_t *id);
} chosen = { "the implementation chosen here", encode_chosen, decode_chosen },
  second = { "the implementation chosen without AVX2", encode_second, decode_second };
#ifdef VECTOR_FORMS
static const struct form ssse3 = { "SSSE3", encode_ssse3, decode_ssse3 };
#endif

static uint64_t next_random (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

static sno_t random_id (uint64_t *state)
{
    sno_t id;
    uint64_t head = next_random (state), tail = next_random (state);
    memcpy (id.bytes, &head, 8);
    memcpy (id.bytes + 8, &tail, 2);
    return id;
}

static bool encodes_like_plain (const struct form *form, const sno_t *id)
{
    char expected[SNO_TEXT_LEN], text[SNO_TEXT_LEN];
    sno_t read;

    encode_plain (id, expected);
    form->encode (id, text);
    return !memcmp (text, expected, sizeof (text)) && form->decode (text, &read) && !memcmp (&read, id, sizeof (read));
}

/* Each single bit set, each single bit cleared, and random ids. */
static void test_encode (const struct form *form)
{
    uint64_t state = 1;
    unsigned good = 0, n = 0;

    for (int bit = 0; bit < 80; bit++) {
        sno_t one = { { 0 } }, all;
        one.bytes[bit / 8] = (uint8_t)(1 << bit % 8);
        for (int i = 0; i < SNO_SIZE; i++)
            all.bytes[i] = (uint8_t)~one.bytes[i];
        good += encodes_like_plain (form, &one) + encodes_like_plain (form, &all);
        n += 2;
    }
    for (int i = 0; i < 100000; i++, n++) {
        sno_t id = random_id (&state);
        good += encodes_like_plain (form, &id);
    }
    ok (good == n, "%s writes and reads %u ids with the same result as the plain form", form->name, n);
}

/* Each of the 256 bytes at each of the 16 positions. */
static void test_decode (const struct form *form)
{
    unsigned agreed = 0, taken = 0;

    for (int place = 0; place < SNO_TEXT_LEN; place++)
        for (int c = 0; c < 256; c++) {
            char text[SNO_TEXT_MAX] = "brpk4q72xwf2m63l";
            sno_t expected, id, untouched;
            memset (&expected, 0x5a, sizeof (expected));
            untouched = id = expected;
            text[place] = (char)c;
            bool good = decode_plain (text, &expected);
            bool same = form->decode (text, &id) == good && !memcmp (&id, &expected, sizeof (id));
            agreed += same && (good || !memcmp (&id, &untouched, sizeof (id)));
            taken += good;
        }
    ok (agreed == 16 * 256, "%s accepts and refuses each byte at each position as the plain form does", form->name);
    ok (taken == 16 * 32, "the function accepts exactly 32 bytes at each position");
}

static void test_form (const struct form *form)
{
    test_encode (form);
    test_decode (form);
}

typedef int (*format_f) (const sno_t *id, char *buf, size_t size);
typedef int (*parse_f) (const char *text, size_t len, sno_t *id, size_t *errpos);

static void test_room (format_f format, const char *name)
{
    const sno_t id = { { 1, 2, 3 } };
    char text[SNO_TEXT_MAX], untouched[SNO_TEXT_MAX];
    size_t refused = 0;

    memset (untouched, '#', sizeof (untouched));
    memcpy (text, untouched, sizeof (text));
    for (size_t size = 0; size < SNO_TEXT_MAX; size++)
        refused += format (&id, text, size) < 0 && errno == ENOSPC && !memcmp (text, untouched, sizeof (text));
    ok (refused == SNO_TEXT_MAX, "%s: a buffer that is too small fails with ENOSPC and is not changed", name);
    ok (format (&id, text, sizeof (text)) == SNO_TEXT_LEN && strlen (text) == SNO_TEXT_LEN,
        "a sufficient buffer gets the text of an id and its NUL");
}

static void test_fault (parse_f parse, const char *name)
{
    char text[] = "brpk4q72xwf2m63lx";
    const sno_t untouched = { { 1, 2, 3 } };
    sno_t id = untouched;
    unsigned good = 0;
    size_t pos = 99;

    for (size_t place = 0; place < SNO_TEXT_LEN; place++) {
        text[place] ^= 0x80;
        good += parse (text, SNO_TEXT_LEN, &id, &pos) < 0 && errno == EINVAL && pos == place;
        text[place] ^= 0x80;
    }
    ok (good == SNO_TEXT_LEN, "%s: a wrong character fails with EINVAL at its position", name);
    ok (parse (text, 17, &id, &pos) < 0 && errno == EMSGSIZE && pos == 16 && parse (text, 3, &id, &pos) < 0
            && errno == EMSGSIZE && pos == 3 && !memcmp (&id, &untouched, sizeof (id)),
        "%s: a text of another length fails with EMSGSIZE", name);
    ok (parse (text, 16, &id, NULL) == 0 && memcmp (&id, &untouched, sizeof (id)),
        "a text of 16 valid characters is an id");
}

int main (void)
{
    test_form (&chosen);
    test_form (&second);
#ifdef VECTOR_FORMS
    if (__builtin_cpu_supports ("ssse3"))
        test_form (&ssse3);
    else
        skip (ssse3.name, "not on this processor");
#endif
    test_room (sno_format, "the public function");
    test_room (format_elsewhere, "its fallback");
    test_fault (sno_parse, "the public function");
    test_fault (parse_elsewhere, "its fallback");
    char text[SNO_TEXT_MAX];
    memset (text, '#', sizeof (text));
    sno_format (&(sno_t){ { 0 } }, text, sizeof (text));
    ok (!strcmp (text, "2222222222222222"), "the text of the zero id is sixteen 2s and a NUL");
    return done_testing ();
}
