/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* utf8.h - is text UTF-8 (RFC 3629), and fit to be shown? */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>

/* Bytes at the start of 's' that are whole, well-formed characters; 'size' where all are. */
size_t utf8_span (const char *s, size_t size);

/* The same, without control characters (U+0000 to U+001F, U+007F to U+009F). */
size_t utf8_span_printable (const char *s, size_t size);

/* Replace each byte that is no part of a well-formed character by '?'. */
void utf8_clean (char *s, size_t size);

/* The same, and each byte of a control character. */
void utf8_clean_printable (char *s, size_t size);

#endif /* UTIL_UTF8_H */
