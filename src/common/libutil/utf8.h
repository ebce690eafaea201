/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* utf8.h - check that text is UTF-8 (RFC 3629), and printable */
#ifndef UTIL_UTF8_H
#define UTIL_UTF8_H

#include <stddef.h>

/* How many bytes at the start of 's' are complete, well-formed characters: 'size' if all are. */
size_t utf8_span (const char *s, size_t size);

/* Like utf8_span (), but also stops at a control character (U+0000 to U+001F, U+007F to U+009F). */
size_t utf8_span_printable (const char *s, size_t size);

/* Replace each byte that is not part of a well-formed character by '?'. */
void utf8_clean (char *s, size_t size);

/* Like utf8_clean (), but also replaces each byte of a control character. */
void utf8_clean_printable (char *s, size_t size);

#endif /* UTIL_UTF8_H */
