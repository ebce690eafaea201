/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* duration.h - lengths of time, dates, numbers and switches as people write them in options */
#ifndef UTIL_PARSE_DURATION_H
#define UTIL_PARSE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read a length of time: digits with an optional decimal fraction and a unit: ms, s, m, h or d (default s), as in 60,
 * 1.5s, 250ms. The result is exact to the millisecond; further digits are cut off. Returns 0 with milliseconds in
 * '*ms', or -1 with errno set and '*ms' untouched:
 *   EINVAL  's' is not such a text
 *   ERANGE  the length is more than 'max_ms'
 */
int parse_duration (const char *s, uint64_t max_ms, uint64_t *ms);

/* Read a number that consists of digits only, from 'min' to 'max'. Fails with EINVAL or ERANGE like parse_duration ().
 */
int parse_number (const char *s, uint64_t min, uint64_t max, uint64_t *n);

/* Read a switch: true, on, yes and 1 are true; false, off, no and 0 are false. Returns 0, or -1 with errno EINVAL and
 * '*on' untouched. SWITCH_WORDS names the accepted words in error messages.
 */
int parse_switch (const char *s, bool *on);
#define SWITCH_WORDS "true or false (on, off, yes, no, 1 and 0 are taken, too)"

/* Read a date of RFC 3339, as 2026-01-01T00:00:00Z or 2026-01-01T01:30:00.250+01:30, or a day without a time, which
 * means its first millisecond in UTC. The year must be 1970 to 9999 in UTC. Returns 0 with Unix milliseconds in
 * '*unix_ms', or -1 with errno EINVAL and '*unix_ms' untouched.
 */
int parse_date (const char *s, int64_t *unix_ms);

/* The accepted forms of a date, for error messages. */
#define DATE_EXAMPLE "2026-01-01 or 2026-01-01T00:00:00Z"

#define DATE_SIZE 64

/* Write Unix milliseconds as 2026-01-01T00:00:00.000Z.  Returns 'buf'. */
char *format_date (int64_t unix_ms, char buf[DATE_SIZE]);

#endif /* UTIL_PARSE_DURATION_H */
