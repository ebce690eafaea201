/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* logline.h - lines of the brokers' log (RFC 5424 text) for people */
#ifndef CMD_LOGLINE_H
#define CMD_LOGLINE_H

#include <stddef.h>

/* Names of severities, emerg (0) to debug (7). */
#define LOGLINE_LEVELS 8
const char *logline_level (int level);      /* NULL: no such level */
int logline_level_parse (const char *name); /* -1: no such level */

/* Write "TIME NAME.LEVEL[RANK]: TEXT" of the line <PRI>1 TIME RANK NAME PID - - TEXT to 'buf';
 * PRI is the severity times
 * 8.  Returns 0, or -1 with errno EINVAL where it is no such line.
 */
int logline_format (const char *line, char *buf, size_t size);

#endif /* CMD_LOGLINE_H */
