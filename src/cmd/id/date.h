/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* date.h - dates as people and brokers write them (RFC 3339, UTC) */
#ifndef CMD_DATE_H
#define CMD_DATE_H

#include <stdint.h>

#include "libutil/duration.h"

/* Milliseconds since 1970 of 'YYYY-MM-DD' or 'YYYY-MM-DDTHH:MM:SS[.mmm]Z', from year 1970 on.
 * Returns 0, or -1 with errno EINVAL and '*ms' untouched.
 */
int date_parse (const char *s, int64_t *ms);

#endif /* CMD_DATE_H */
