/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* mark.c - whose mark a file carries, seen from outside
 *
 * SQLite is told that nobody changes the file: it then takes no lock, and reads, plays back and removes nothing that lies
 * beside it.  The mark never changes, and is in the file itself before the file is listed.  What a crash left half written may
 * be no database at all when it is read so: then its application id tells whose it is.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsqlite/database.h"
#include "libsqlite/peek.h"

#define OURS 0x696474 /* "idt", the first three bytes of our application ids */

/* As a URI: SQLite decodes %XX in it. */
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

/* The first column of the first row; NULL: there is none. */
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

/* Of one that is damaged nobody knows whose it was. */
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
