/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* date.h - dates as people and brokers write them (RFC 3339, UTC) */
#ifndef CMD_DATE_H
#define CMD_DATE_H

#include <stddef.h>
#include <stdint.h>

#include "libutil/duration.h"

#define DATE_STRING_MAX DATE_SIZE /* bytes that hold what date_format () writes */

/* Milliseconds since 1970 of 'YYYY-MM-DD' or 'YYYY-MM-DDTHH:MM:SS[.mmm]Z', from year 1970 on.
 * Returns 0, or -1 with errno EINVAL and '*ms' untouched.
 */
int date_parse (const char *s, int64_t *ms);

/* Write 'ms' (0 ... year 9999) as YYYY-MM-DDTHH:MM:SS.mmmZ.  Returns 'buf'. */
const char *date_format (int64_t ms, char buf[DATE_STRING_MAX]);

#endif /* CMD_DATE_H */
