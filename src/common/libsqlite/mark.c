/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mark.c - read the mark of a file from outside
 *
 * SQLite opens the file as immutable: it takes no lock, and reads, plays back and removes no log or journal beside it.
 * The mark never changes, and is in the file itself before the file is listed. A file that a crash left half written
 * may look damaged when it is read this way; its application id then says whether it is a file of idtree.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsqlite/database.h"
#include "libsqlite/peek.h"

#define OURS 0x696474 /* "idt", the first three bytes of our application ids */

/* Make a URI: SQLite decodes %XX in it. */
static char *make_uri (const char *path)
{
    size_t size = 3 * strlen (path) + sizeof ("file:?immutable=1"), n;
    char *uri = malloc (size);

    if (!uri)
        return NULL;
    n = snprintf (uri, size, "file:");
    for (; *path; path++)
        n += snprintf (uri + n, size - n, strchr ("%?#", *path) ? "%%%02x" : "%c", *path);
    snprintf (uri + n, size - n, "?immutable=1");
    return uri;
}

/* The first column of the first row; NULL if there is none. */
static const unsigned char *first (sqlite3 *db, const char *sql, sqlite3_stmt **stmt)
{
    if (sqlite3_prepare_v2 (db, sql, -1, stmt, NULL) != SQLITE_OK || sqlite3_step (*stmt) != SQLITE_ROW)
        return NULL;
    return sqlite3_column_text (*stmt, 0);
}

static void read_uuid (sqlite3 *db, char uuid[STATE_UUID_SIZE])
{
    sqlite3_stmt *stmt = NULL;
    const unsigned char *text = first (db, "SELECT uuid FROM instance;", &stmt);

    if (text && state_uuid_is_good ((const char *)text))
        memcpy (uuid, text, STATE_UUID_SIZE);
    sqlite3_finalize (stmt);
}

static bool has_tables (sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    bool some = first (db, "SELECT count(*) FROM sqlite_master;", &stmt) && sqlite3_column_int (stmt, 0) > 0;

    sqlite3_finalize (stmt);
    return some;
}

/* For a damaged file the application id alone decides. */
static bool is_ours (sqlite3 *db, const char *path)
{
    return peek_application_id (path) >> 8 == OURS && (has_tables (db) || peek_is_torn (path));
}

bool database_mark (const char *path, char uuid[STATE_UUID_SIZE])
{
    char *uri = make_uri (path);
    sqlite3 *db = NULL;
    bool ours = false;

    uuid[0] = '\0';
    if (uri && sqlite3_open_v2 (uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK
        && is_ours (db, path)) {
        read_uuid (db, uuid);
        ours = true;
    }
    sqlite3_close (db);
    free (uri);
    return ours;
}
