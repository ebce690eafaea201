/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* logline.h - format lines of the brokers' log (RFC 5424 text) for people */
#ifndef LIBUTIL_LOGLINE_H
#define LIBUTIL_LOGLINE_H

#include <stddef.h>

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

/* Write "TIME NAME.LEVEL[RANK]: TEXT" of such a line to 'buf'. Returns 0, or -1 with errno EINVAL as above. */
int logline_format (const char *line, char *buf, size_t size);

#endif /* LIBUTIL_LOGLINE_H */
