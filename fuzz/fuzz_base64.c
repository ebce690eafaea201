/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_base64.c - each text is refused, or equals the encoding of its decoded bytes; vector and plain code have the
 * same results
 */
#include "fuzz.h"
#include "libutil/base64.c" /* both implementations are tested */

/* base64_decode () with the plain code only. */
static bool reads_plain (const unsigned char *text, size_t len, unsigned char *out)
{
    size_t pad = padding ((const char *)text, len), full = pad > 0 ? len - 4 : len;

    return decode_plain (text, full, out) == full
           && (pad == 0 || decode_tail (text + full, pad, out + full / 4 * 3) == 0);
}

static void read_text (const uint8_t *text, size_t len)
{
    unsigned char *data = malloc (BASE64_DECODED_SIZE (len) + 1), *plain = malloc (BASE64_DECODED_SIZE (len) + 1);
    char *again = malloc (BASE64_ENCODED_SIZE (BASE64_DECODED_SIZE (len)) + 1);

    must (data && plain && again);
    ssize_t size = base64_decode ((const char *)text, len, data, BASE64_DECODED_SIZE (len));
    must (size >= 0 || errno == EINVAL);
    must ((len % 4 == 0 && reads_plain (text, len, plain)) == (size >= 0));
    if (size >= 0) {
        must (memcmp (data, plain, size) == 0);
        must (base64_encode (data, size, again) == len && memcmp (again, text, len) == 0 && again[len] == '\0');
    }
    free (again);
    free (plain);
    free (data);
}

static void write_text (const uint8_t *data, size_t size)
{
    char *text = malloc (BASE64_ENCODED_SIZE (size) + 1), *plain = malloc (BASE64_ENCODED_SIZE (size) + 1);

    must (text && plain && base64_encode (data, size, text) == BASE64_ENCODED_SIZE (size));
    must (memcmp (text, plain, encode_plain (data, size, plain) / 3 * 4) == 0);
    read_text ((const uint8_t *)text, BASE64_ENCODED_SIZE (size));
    free (plain);
    free (text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    read_text (data, size);
    write_text (data, size);
    return 0;
}
