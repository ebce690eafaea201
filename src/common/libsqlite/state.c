/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.c - what is in a state folder: read a store from outside, and check that the folder has all of its stores and
 * no others
 *
 * A store is read without a lock, and without playing back a log or journal beside it. Some bytes are read without
 * SQLite (sqlite.org/fileformat.html). For the mark SQLite opens the file as immutable. That is correct, because the
 * mark never changes, and is in the file itself before the store is listed. A file that a crash left half written may
 * look damaged when it is read in this way. Its application id then says whether it is a file of idtree.
 */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsqlite/state.h"
#include "libutil/errprintf.h"

/* --- without SQLite -------------------------------------------------------------------------------------------- */

/* A log has a head, then frames. A frame has a head and a page. */
#define LOG_HEAD 32
#define LOG_PAGE_SIZE_OFFSET 8
#define FRAME_HEAD 24   /* bytes; the first four are the number of the page */
#define FRAMES_MAX 4096 /* maximum number of frames that are read: the first commit made the tables and the id */

static uint32_t read_u32 (int fd, off_t offset)
{
    uint32_t n;

    return fd >= 0 && pread (fd, &n, sizeof (n), offset) == sizeof (n) ? ntohl (n) : 0;
}

static int open_beside (const char *path, const char *suffix)
{
    char beside[PATH_MAX];

    if (snprintf (beside, sizeof (beside), "%s%s", path, suffix) >= (int)sizeof (beside))
        return -1;
    return open (beside, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static void end (int fd)
{
    if (fd >= 0)
        close (fd);
}

uint32_t state_peek (const char *path, off_t offset)
{
    int fd = open_beside (path, "");
    uint32_t n = read_u32 (fd, offset);

    end (fd);
    return n;
}

bool state_is_torn (const char *path)
{
    static const char *const suffixes[] = { "-wal", "-journal" };
    bool torn = false;

    for (size_t i = 0; i < sizeof (suffixes) / sizeof (suffixes[0]); i++) {
        int fd = open_beside (path, suffixes[i]);
        struct stat sb;

        torn |= fd >= 0 && fstat (fd, &sb) == 0 && sb.st_size > 0;
        end (fd);
    }
    return torn;
}

/* The application id in the log. It is in the first copy of page 1 that has an application id. */
static uint32_t find_id (int fd)
{
    off_t frame = FRAME_HEAD + (off_t)read_u32 (fd, LOG_PAGE_SIZE_OFFSET), at = LOG_HEAD;
    uint32_t id = 0, page;

    for (int i = 0; i < FRAMES_MAX && !id && (page = read_u32 (fd, at)) != 0; i++, at += frame)
        if (page == 1)
            id = read_u32 (fd, at + FRAME_HEAD + STATE_ID_OFFSET);
    return id;
}

/* The application id of the file. If the file has none, the application id in the log beside the file; 0: neither has
 * one.
 */
static uint32_t application_id (const char *path)
{
    uint32_t id = state_peek (path, STATE_ID_OFFSET);
    int fd = id ? -1 : open_beside (path, "-wal");

    if (fd >= 0)
        id = find_id (fd);
    end (fd);
    return id;
}

/* --- the mark ---------------------------------------------------------------------------------------------------- */

#define OURS 0x696474 /* "idt", the first three bytes of our application ids */

/* Make a URI. '%', '?' and '#' are written as %XX, which SQLite decodes. */
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

/* The first column of the first row, or NULL. */
static const unsigned char *first (sqlite3 *db, const char *sql, sqlite3_stmt **stmt)
{
    if (sqlite3_prepare_v2 (db, sql, -1, stmt, NULL) != SQLITE_OK || sqlite3_step (*stmt) != SQLITE_ROW)
        return NULL;
    return sqlite3_column_text (*stmt, 0);
}

void state_mark_of (sqlite3 *db, char uuid[STATE_UUID_SIZE])
{
    sqlite3_stmt *stmt = NULL;
    const unsigned char *text = first (db, "SELECT uuid FROM instance;", &stmt);

    uuid[0] = '\0';
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

/* Whether the file is a file of idtree that has tables. If a log or journal lies beside the file, the file may be
 * damaged, and its application id alone decides.
 */
static bool is_ours (sqlite3 *db, const char *path)
{
    return application_id (path) >> 8 == OURS && (has_tables (db) || state_is_torn (path));
}

bool state_read_mark (const char *path, char uuid[STATE_UUID_SIZE])
{
    char *uri = make_uri (path);
    sqlite3 *db = NULL;
    bool ours = false;

    uuid[0] = '\0';
    if (uri && sqlite3_open_v2 (uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK
        && is_ours (db, path)) {
        state_mark_of (db, uuid);
        ours = true;
    }
    sqlite3_close (db);
    free (uri);
    return ours;
}

/* --- the folder ------------------------------------------------------------------------------------------------- */

#define SUFFIX ".sqlite"

static bool is_store (const char *name)
{
    size_t len = strlen (name);

    return len > strlen (SUFFIX) && strcmp (name + len - strlen (SUFFIX), SUFFIX) == 0;
}

/* Call 'cb' for each store until a call returns -1. */
static int each_store (const char *dir, int (*cb) (const char *dir, const char *name, void *arg, idt_error_t *errp),
                       void *arg, idt_error_t *errp)
{
    DIR *d = opendir (dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return errprintf (errp, "statedir %s: %s", dir, strerror (errno));
    while (rc == 0 && (errno = 0, entry = readdir (d)))
        if (is_store (entry->d_name))
            rc = cb (dir, entry->d_name, arg, errp);
    if (rc == 0 && errno != 0)
        rc = errprintf (errp, "statedir %s: %s", dir, strerror (errno));
    int saved = errno;
    closedir (d);
    errno = saved;
    return rc;
}

/* --- check -------------------------------------------------------------------------------------------- */

int state_missing (const char *dir, const char *name, const char *uuid, idt_error_t *errp)
{
    return errsetf (errp, STATE_REFUSED, "%s/%s: is missing: put it back, or %s; it belongs to the instance %s", dir,
                    name,
                    strcmp (name, STATE_HORIZON_STORE) == 0
                        ? "start once with --recover-horizon=DATE-or-ID, above all ids made"
                        : "give up what was in it by idtree state forget",
                    uuid);
}

int state_orphaned (const char *path, const char *uuid, idt_error_t *errp)
{
    return errsetf (
        errp, STATE_REFUSED,
        "%s: of the instance %s, whose file 'instance' is gone: put the one of a backup beside it, or one that "
        "idtree init --uuid makes",
        path, uuid);
}

static int check_listed (const char *dir, const struct statefile *s, const struct state_store *store,
                         const char *excused, idt_error_t *errp)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, store->name);
    if (access (path, F_OK) == 0 || errno != ENOENT || (excused && strcmp (store->name, excused) == 0))
        return 0;
    return state_missing (dir, store->name, s->uuid, errp);
}

static int check_found (const char *dir, const char *name, void *arg, idt_error_t *errp)
{
    const struct statefile *s = arg;
    const struct state_store *store = state_find_store (s, name);
    char path[PATH_MAX], uuid[STATE_UUID_SIZE];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    bool ours = state_read_mark (path, uuid);
    if (strcmp (uuid, s->uuid) == 0 || (!uuid[0] && (!ours || (store && store->unmarked) || state_is_torn (path))))
        return 0; /* opening this store reports other problems */
    return errsetf (
        errp, STATE_REFUSED,
        "%s: of %s%s, but the folder is of the instance %s (%s): put back what belongs to it, and this aside", path,
        uuid[0] ? "the instance " : "no instance", uuid, s->uuid, s->name);
}

int state_check (const char *dir, const struct statefile *s, const char *excused, idt_error_t *errp)
{
    for (unsigned i = 0; i < s->nstores; i++)
        if (check_listed (dir, s, &s->stores[i], excused, errp) < 0)
            return -1;
    return each_store (dir, check_found, (void *)s, errp);
}

/* --- what an earlier version left --------------------------------------------------------------------- */

static int adopt_one (const char *dir, const char *name, void *arg, idt_error_t *errp)
{
    char path[PATH_MAX], uuid[STATE_UUID_SIZE];
    struct statefile *fresh = arg;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (!state_read_mark (path, uuid) && strcmp (name, STATE_HORIZON_STORE) != 0)
        return 0; /* opening this store reports what is wrong with it */
    if (uuid[0])
        return state_orphaned (path, uuid, errp);
    if (state_list_store (fresh, name, true) < 0)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    return 0;
}

int state_survey (const char *dir, struct statefile *fresh, idt_error_t *errp)
{
    if (each_store (dir, adopt_one, fresh, errp) < 0)
        return -1;
    if (fresh->nstores == 0)
        return 0;
    if (!state_find_store (fresh, STATE_HORIZON_STORE))
        return errsetf (errp, STATE_REFUSED,
                        "%s/%s is there, but " STATE_HORIZON_STORE
                        " is not: part of the state is missing; put it back, or the rest aside",
                        dir, fresh->stores[0].name);
    return 1;
}

int state_adopt (const char *dir, struct statefile *fresh, idt_error_t *errp)
{
    int rc = state_survey (dir, fresh, errp);

    return rc > 0 && state_create (dir, fresh, errp) < 0 ? -1 : rc;
}
