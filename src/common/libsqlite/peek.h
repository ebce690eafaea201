/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peek.h - what bytes of a file of SQLite say, without SQLite (sqlite.org/fileformat.html): nothing is locked or played back */
#ifndef SQLITE_PEEK_H
#define SQLITE_PEEK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PEEK_ID_OFFSET 68 /* in the file: the application id */

/* A number of 32 bits in a file; 0 where there is none. */
uint32_t peek_u32 (const char *path, off_t offset);

/* Whether a log or a journal with something in it lies beside the file: some of its pages may be of a commit, and others not. */
bool peek_is_torn (const char *path);

/* The application id that the file has, or, where it has none, gets from the log beside it; 0: none. */
uint32_t peek_application_id (const char *path);

#endif /* SQLITE_PEEK_H */
