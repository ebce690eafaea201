/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* text.h - texts that come from other programs and people: UTF-8, sets of numbers, log lines */
#ifndef UTIL_TEXT_H
#define UTIL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* --- UTF-8 (RFC 3629) ------------------------------------------------------------------------------------------- */

/* How many bytes at the start of 's' are complete, well-formed characters; 'size' if all bytes are. */
size_t utf8_span (const char *s, size_t size);

/* Like utf8_span (), but also stops at a control character (U+0000 to U+001F, U+007F to U+009F). */
size_t utf8_span_printable (const char *s, size_t size);

/* Replace each byte that is not part of a well-formed character by '?'. */
void utf8_clean (char *s, size_t size);

/* Like utf8_clean (), but also replaces each byte of a control character. */
void utf8_clean_printable (char *s, size_t size);

/* --- sets of numbers as text: "3", "0-7", "[0-7,9]" (Flux RFC 22) ----------------------------------------------- */

/* Whether 'text' contains 'n'. Returns 1 or 0, or -1 with errno EINVAL if 'text' is not such a set. "" and "[]" are
 * empty sets.
 */
int ranges_have (const char *text, uint32_t n);

/* Store the greatest number of the set in '*last'. Returns 1, 0 if the set is empty, or -1 with errno EINVAL if 'text'
 * is not such a set.
 */
int ranges_last (const char *text, uint32_t *last);

/* Call 'each' for each range of 'text', in the order of the text. Returns 1, 0 if the set is empty, or -1 with errno
 * EINVAL if 'text' is not such a set; then 'each' was called for the ranges before the first wrong character.
 */
typedef void (*ranges_each_f) (uint64_t first, uint64_t last, void *arg);
int ranges_each (const char *text, ranges_each_f each, void *arg);

/* How many numbers of the text are below 'end'; a number that occurs in several ranges counts several times. 0 if
 * 'text' is not such a set.
 */
uint64_t ranges_count (const char *text, uint32_t end);

/* The text of 'count' numbers. The function sorts the array. A single range has no brackets; the empty set is "". The
 * caller frees the result. NULL with errno ENOMEM.
 */
char *ranges_format (uint32_t *numbers, size_t count);

/* --- lines of the brokers' log (RFC 5424) ----------------------------------------------------------------------- */

/* Names of severities, emerg (0) to debug (7). */
#define LOGLINE_LEVELS 8
const char *logline_level (int level);      /* NULL: no such level */
int logline_level_parse (const char *name); /* -1: no such level */

struct logline {
    char time[64];
    char rank[32];
    char name[64];
    int level;
    const char *text; /* borrowed from the line */
};

/* Read the line <PRI>1 TIME RANK NAME PID - - TEXT; PRI is the severity times 8. Returns 0, or -1 with errno EINVAL if
 * the line has another form.
 */
int logline_parse (const char *line, struct logline *l);

/* Write "TIME NAME.LEVEL[RANK]: TEXT" for such a line to 'buf'. Returns 0, or -1 with errno EINVAL if the line has
 * another form.
 */
int logline_format (const char *line, char *buf, size_t size);

#endif /* UTIL_TEXT_H */
