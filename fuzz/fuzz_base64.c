/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_base64.c - each text is refused, or is the encoding of the bytes that it decodes to; any bytes can be encoded
 * and decoded
 */
#include <errno.h>

#include "fuzz.h"
#include "libutil/base64.h"

static void read_text (const uint8_t *text, size_t len)
{
    unsigned char *data = malloc (BASE64_DECODED_SIZE (len) + 1);
    char *again = malloc (BASE64_ENCODED_SIZE (BASE64_DECODED_SIZE (len)) + 1);

    must (data && again);
    ssize_t size = base64_decode ((const char *)text, len, data, BASE64_DECODED_SIZE (len));
    must (size >= 0 || errno == EINVAL);
    if (size >= 0)
        must (base64_encode (data, size, again) == len && memcmp (again, text, len) == 0 && again[len] == '\0');
    free (again);
    free (data);
}

static void write_text (const uint8_t *data, size_t size)
{
    char *text = malloc (BASE64_ENCODED_SIZE (size) + 1);
    unsigned char *again = malloc (size + 1);

    must (text && again && base64_encode (data, size, text) == BASE64_ENCODED_SIZE (size));
    must (base64_decode (text, BASE64_ENCODED_SIZE (size), again, size) == (ssize_t)size);
    must (memcmp (again, data, size) == 0);
    free (again);
    free (text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    read_text (data, size);
    write_text (data, size);
    return 0;
}
