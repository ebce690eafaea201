/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sqlite.h - SQLite, loaded when it is needed: that is at rank 0 alone, and the other brokers start without it
 *
 * sqlite->open_v2 (...) is sqlite3_open_v2 (...), and so on.
 */
#ifndef SQLITE_SQLITE_H
#define SQLITE_SQLITE_H

#include <sqlite3.h>

#define SQLITE_CALLS(CALL)                                                                                             \
    CALL (open_v2)                                                                                                     \
    CALL (close)                                                                                                       \
    CALL (exec) CALL (prepare_v2) CALL (step) CALL (reset) CALL (finalize) CALL (bind_int64) CALL (bind_text)          \
        CALL (bind_blob64) CALL (column_int64) CALL (column_text) CALL (column_blob) CALL (column_bytes) CALL (errmsg) \
            CALL (extended_errcode) CALL (system_errno)

struct sqlite {
    void *dso;
#define SQLITE_MEMBER(name) __typeof__ (sqlite3_##name) *name;
    SQLITE_CALLS (SQLITE_MEMBER)
#undef SQLITE_MEMBER
};

/* Load the library.  Returns 0, or -1 with errno ENOENT and dlerror () telling why. */
int sqlite_load (struct sqlite *sqlite);
void sqlite_unload (struct sqlite *sqlite);

#endif /* SQLITE_SQLITE_H */
