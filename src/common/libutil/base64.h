/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* base64.h - encode bytes as text (RFC 4648 section 4: with padding, without line breaks) */
#ifndef UTIL_BASE64_H
#define UTIL_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Characters of 'size' encoded bytes, without a NUL. */
#define BASE64_ENCODED_SIZE(size) (((size) + 2) / 3 * 4)

/* The maximum number of bytes that 'length' characters decode to. */
#define BASE64_DECODED_SIZE(length) ((length) / 4 * 3)

/* Encode 'size' bytes.  'text' has room for BASE64_ENCODED_SIZE (size) characters and a NUL.  Returns the length
 * without the NUL.
 */
size_t base64_encode (const void *data, size_t size, char *text);

/* Decode 'length' characters to at most 'size' bytes. Returns the number of bytes, or -1 with errno set and 'data'
 * undefined:
 *   EINVAL  a character outside the alphabet, wrong padding, or a nonzero bit that belongs to no byte
 *   ENOSPC  more than 'size' bytes; BASE64_DECODED_SIZE (length) are always enough
 */
ssize_t base64_decode (const char *text, size_t length, void *data, size_t size);

#endif /* UTIL_BASE64_H */
