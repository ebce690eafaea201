/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64_test.c - the examples of RFC 4648, all lengths, one text for each content, and equal results of vector and
 * plain code
 */

#include <errno.h>
#include <string.h>

#include "libutil/base64.c" /* both implementations are tested */
#include "test/tap.h"

static const struct {
    const char *data;
    const char *text;
} examples[] = {
    /* RFC 4648 section 10 */
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
};

static const char *const refused[] = {
    "Z",    "Zg",   "Zg=",  "Zm9vY", "Zm9v=",      "====", "Zg=a",    "=Zg=",   "Z===",     "Zm9v====",
    "Zh==", "Zm9=", "Zm-_", "Zm 9v", "Zm9v\nZm9v", " Zm9", "Zm\x80v", "Zm9v\n", "Zg==Zm9v",
};

static bool refuses (const char *text)
{
    char buf[64];

    errno = 0;
    return base64_decode (text, strlen (text), buf, sizeof (buf)) < 0 && errno == EINVAL;
}

static bool round_trip (size_t size)
{
    unsigned char data[300];
    unsigned char back[300];
    char text[BASE64_ENCODED_SIZE (sizeof (data)) + 1];

    for (size_t i = 0; i < size; i++)
        data[i] = i * 37 + size;
    size_t len = base64_encode (data, size, text);
    return len == BASE64_ENCODED_SIZE (size) && strlen (text) == len
           && base64_decode (text, len, back, size) == (ssize_t)size && memcmp (data, back, size) == 0
           && (size == 0 || (base64_decode (text, len, back, size - 1) < 0 && errno == ENOSPC));
}

/* The decoder accepts only what the encoder writes: try all last groups of some letters. */
static bool is_canonical (void)
{
    static const char letters[] = "AQgwBZz09+/=";
    bool good = true;

    for (size_t n = 0; n < 12 * 12 * 12 * 12; n++) {
        char text[5] = { letters[n % 12], letters[n / 12 % 12], letters[n / 144 % 12], letters[n / 1728], '\0' };
        char again[5];
        unsigned char data[3];
        long size = base64_decode (text, 4, data, sizeof (data));
        if (size < 0)
            continue;
        base64_encode (data, size, again);
        good &= strcmp (text, again) == 0;
    }
    return good;
}

#ifdef VECTOR_FORMS
/* Each value of each byte, at each place of a vector and of the vector behind it. */
static bool encodes_like_plain (void)
{
    unsigned char data[60] = { 0 };
    char text[80], expected[80];
    bool good = true;

    for (size_t at = 0; at < sizeof (data); at++)
        for (int c = 0; c < 256; c++) {
            for (size_t i = 0; i < sizeof (data); i++)
                data[i] = i * 41 + c;
            data[at] = c;
            size_t done = encode_vector (data, sizeof (data), text);
            encode_plain (data, sizeof (data), expected);
            good &= done == 48 && memcmp (text, expected, done / 3 * 4) == 0;
        }
    return good;
}

/* The same for decoding. Both implementations refuse the same groups, and neither writes beyond its output. */
static bool decodes_like_plain (void)
{
    char text[64];
    unsigned char data[49], expected[48];
    bool good = true;

    for (size_t at = 0; at < sizeof (text); at++)
        for (int c = 0; c < 256; c++) {
            for (size_t i = 0; i < sizeof (text); i++)
                text[i] = digits[(i * 29 + c) % 64];
            text[at] = c;
            data[48] = 77;
            size_t done = decode_vector ((unsigned char *)text, sizeof (text), data);
            size_t plain = decode_plain ((unsigned char *)text, sizeof (text), expected);
            good &= done == (plain == 64 ? 64 : plain / 32 * 32) && memcmp (data, expected, done / 4 * 3) == 0;
            good &= data[48] == 77 && (strchr (digits, c) && c != 0) == (plain == 64);
        }
    return good;
}

static void compare_forms (void)
{
    if (!__builtin_cpu_supports ("avx2")) {
        skip ("the vector form agrees with the plain one", "this machine has no AVX2");
        return;
    }
    ok (encodes_like_plain (), "the vector form encodes each byte at each place as the plain one does");
    ok (decodes_like_plain (),
        "the vector form decodes and refuses each character at each place as the plain one does");
}
#else
static void compare_forms (void)
{
}
#endif

int main (void)
{
    char buf[64];
    bool good = true;

    for (size_t i = 0; i < sizeof (examples) / sizeof (examples[0]); i++) {
        base64_encode (examples[i].data, strlen (examples[i].data), buf);
        ok (strcmp (buf, examples[i].text) == 0, "'%s' is encoded as '%s'", examples[i].data, buf);
    }
    for (size_t size = 0; size <= 300; size++)
        good &= round_trip (size);
    ok (good, "data of all lengths up to 300 is decoded to the original, and never beyond its buffer");
    good = true;
    for (size_t i = 0; i < sizeof (refused) / sizeof (refused[0]); i++)
        good &= refuses (refused[i]);
    ok (good, "wrong lengths, letters, padding and unused bits are refused");
    ok (is_canonical (), "no two texts decode to the same data");
    compare_forms ();
    return done_testing ();
}
