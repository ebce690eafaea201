/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64_test.c - the examples of RFC 4648, all lengths, one text for each content, each wrong character */

#include <errno.h>
#include <string.h>

#include "libutil/base64.h"
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

/* Each character at each place of two groups: digits are decoded to the same text again, others are refused, and
 * nothing is written behind the buffer.
 */
static bool knows_its_digits (void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bool good = true;

    for (size_t at = 0; at < 8; at++)
        for (int c = 0; c < 256; c++) {
            char text[] = "abcdEFGH", again[9] = "";
            unsigned char data[7];

            text[at] = (char)c;
            data[6] = 77;
            if (c == '=' && at == 7)
                continue; /* padding */
            bool decoded = base64_decode (text, 8, data, 6) == 6;
            good &= data[6] == 77 && decoded == (c != 0 && strchr (digits, c));
            if (decoded)
                base64_encode (data, 6, again);
            good &= !decoded || memcmp (text, again, 8) == 0;
        }
    return good;
}

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
    ok (good, "encoded data of all lengths up to 300 is decoded to the same data, and never written beyond the buffer");
    good = true;
    for (size_t i = 0; i < sizeof (refused) / sizeof (refused[0]); i++)
        good &= refuses (refused[i]);
    ok (good, "base64 of a wrong length, with wrong letters, padding or unused bits is refused");
    ok (is_canonical (), "no two base64 texts decode to the same data");
    ok (knows_its_digits (), "each base64 digit is decoded at each place, and each other character is refused");
    return done_testing ();
}
