/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* setting.c - set PRAGMAs that are needed: if SQLite ignores one it returns no error, but the value that it kept */
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "libsqlite/database.h"
#include "libutil/errprintf.h"

/* Run a statement that returns one row.  Returns 0 with its first column in 'text', "" if it returns none. */
static int answer_of (struct database *d, const char *sql, char *text, size_t size, idt_error_t *errp)
{
    sqlite3_stmt *stmt = database_prepare (d, sql, errp);
    int rc = stmt ? database_step (d, stmt, errp) : -1, saved = errno;
    const char *column = rc > 0 ? (const char *)sqlite3_column_text (stmt, 0) : NULL;

    snprintf (text, size, "%s", column ? column : "");
    sqlite3_finalize (stmt);
    errno = saved;
    return rc < 0 ? -1 : 0;
}

int database_expect (struct database *d, const char *pragma, const char *value, idt_error_t *errp)
{
    char sql[64], text[32];

    snprintf (sql, sizeof (sql), "PRAGMA %s;", pragma);
    if (answer_of (d, sql, text, sizeof (text), errp) < 0)
        return -1;
    if (strcasecmp (text, value) == 0)
        return 0;
    return errsetf (
        errp, ENOTSUP,
        "%s: SQLite answers \"%s\" to PRAGMA %s, and \"%s\" is needed: use a library of SQLite that can do this",
        d->path, text, pragma, value);
}
