/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64_test.c - the examples of RFC 4648 section 10, all short inputs, and what must be refused */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "libutil/base64.h"
#include "libutil/tap.h"

static const char *examples[][2] = {
    { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" }, { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
};

static const char *bad[] = {
    "Z", "Zg", "Zg=", "=", "====", "Z===", "Zg==Zg==", "Zm9=", "Zh==", "Zm9v\n", "Zm 9v", "Zm-_", "Zm9v=",
    "=m9v", "Z=9v", "\xff\xff\xff\xff",
};

static bool round_trip (const uint8_t *data, size_t size)
{
    char text[64];
    uint8_t back[64];

    base64_encode (data, size, text);
    return strlen (text) == BASE64_ENCODED_SIZE (size)
           && BASE64_DECODED_SIZE (strlen (text)) >= size
           && base64_decode (text, strlen (text), back) == (ssize_t)size
           && memcmp (data, back, size) == 0;
}

int main (int argc, char *argv[])
{
    bool good = true;
    char text[64];

    for (size_t i = 0; i < sizeof (examples) / sizeof (examples[0]); i++) {
        base64_encode (examples[i][0], strlen (examples[i][0]), text);
        ok (strcmp (text, examples[i][1]) == 0, "\"%s\" is \"%s\"", examples[i][0], examples[i][1]);
    }
    for (uint32_t n = 0; n < 1 << 16; n++)
        good = good && round_trip ((uint8_t[]){ n & 0xff, n >> 8 }, 1 + (n > 255));
    ok (good, "all inputs of one and two bytes come back");
    for (uint32_t n = 0; n < 1 << 24; n += 251)
        good = good && round_trip ((uint8_t[]){ n & 0xff, n >> 8 & 0xff, n >> 16, n & 0xff }, 3 + n % 2);
    ok (good, "so do longer ones");
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        errno = 0;
        good = good && base64_decode (bad[i], strlen (bad[i]), text) < 0 && errno == EINVAL;
    }
    ok (good, "what encoding does not make is refused: EINVAL");
    return done_testing ();
}
