/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peek.h - read some bytes of an SQLite file without SQLite (sqlite.org/fileformat.html): without a lock or a playback
 */
#ifndef SQLITE_PEEK_H
#define SQLITE_PEEK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PEEK_ID_OFFSET 68 /* offset of the application id in the file */

/* A number of 32 bits in a file; 0 if the file is too short. */
uint32_t peek_u32 (const char *path, off_t offset);

/* Whether a log or journal with content lies beside the file: then only some pages of a commit may be in the file. */
bool peek_is_torn (const char *path);

/* The application id of the file, or, if the file has none, the one in the log beside it; 0: none. */
uint32_t peek_application_id (const char *path);

#endif /* SQLITE_PEEK_H */
