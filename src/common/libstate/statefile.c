/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* statefile.c - the file 'instance', which says which instance a folder belongs to
 *
 * Each line is a word and its value. The lines are in this order:
 *
 *   idtree-state 1
 *   uuid     lower case
 *   name     state_name_is_good ()
 *   epoch    a date; if this line is missing, only fluid.sqlite has the epoch
 *   created  a date
 *   moved    postgresql: the content was moved there; earlier versions refuse a file with this line
 *   below    a date: only in a memory file
 *   store    a name; any number of lines; the store is not empty, and is marked with the UUID
 *   unmarked a name; like store, but the store does not have its mark yet
 *   sum      16 digits: of all bytes before this line
 *
 * The file is good if and only if (1) its first line is the one above, (2) it has uuid, name and created, (3) no word
 * is unknown, and (4) sum is right and is the last line.
 */
#define _GNU_SOURCE

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libstate/statefile.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

#define NAME "instance"
#define LOCK_NAME "instance.lock"
#define LOCK_WAIT_MS 10000 /* time to get the lock: other processes of the owner need less time to rewrite the file */
#define HEAD "idtree-state 1\n"
#define SUM_LINE 21 /* bytes: "sum ", 16 digits, a line's end */

static const char letters[] = "abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ0123456789";

/* --- values ------------------------------------------------------------------------------------------ */

bool state_name_is_good (const char *s)
{
    size_t len = strlen (s);

    while (*s && (strchr (letters, *s) || strchr ("._-", *s)))
        s++;
    return !*s && len > 0 && len < STATE_NAME_SIZE;
}

bool state_uuid_is_good (const char *s)
{
    for (int i = 0; i < STATE_UUID_SIZE - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (!s[i] || (dash ? s[i] != '-' : !strchr ("0123456789abcdef", s[i])))
            return false;
    }
    return !s[STATE_UUID_SIZE - 1];
}

const struct state_store *state_find_store (const struct statefile *s, const char *name)
{
    for (unsigned i = 0; i < s->nstores; i++)
        if (strcmp (s->stores[i].name, name) == 0)
            return &s->stores[i];
    return NULL;
}

int state_list_store (struct statefile *s, const char *name, bool unmarked)
{
    if (s->nstores == STATE_STORES_MAX)
        return errset (ENOSPC);
    if (strlen (name) >= STATE_STORE_SIZE)
        return errset (ENAMETOOLONG);
    struct state_store *store = &s->stores[s->nstores++];
    snprintf (store->name, sizeof (store->name), "%s", name);
    store->unmarked = unmarked;
    return 0;
}

/* --- text -------------------------------------------------------------------------------------------- */

static uint64_t sum (const char *text, size_t len)
{
    uint64_t h = UINT64_C (0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C (0x100000001b3);
    return h;
}

static void encode (const struct statefile *s, char text[STATE_TEXT_MAX])
{
    char epoch[DATE_SIZE], created[DATE_SIZE];
    size_t n;

    n = snprintf (text, STATE_TEXT_MAX, HEAD "uuid %s\nname %s\n", s->uuid, s->name);
    if (s->has_epoch)
        n += snprintf (text + n, STATE_TEXT_MAX - n, "epoch %s\n", format_date (s->epoch_ms, epoch));
    n += snprintf (text + n, STATE_TEXT_MAX - n, "created %s\n", format_date (s->created_ms, created));
    if (s->moved)
        n += snprintf (text + n, STATE_TEXT_MAX - n, "moved postgresql\n");
    if (s->below_ms > 0)
        n += snprintf (text + n, STATE_TEXT_MAX - n, "below %s\n", format_date (s->below_ms, epoch));
    for (unsigned i = 0; i < s->nstores; i++)
        n += snprintf (text + n, STATE_TEXT_MAX - n, "%s %s\n", s->stores[i].unmarked ? "unmarked" : "store",
                       s->stores[i].name);
    assert (n + SUM_LINE < STATE_TEXT_MAX);
    snprintf (text + n, STATE_TEXT_MAX - n, "sum %016" PRIx64 "\n", sum (text, n));
}

static bool take_line (struct statefile *s, const char *word, const char *value)
{
    if (strcmp (word, "uuid") == 0 && state_uuid_is_good (value))
        memcpy (s->uuid, value, STATE_UUID_SIZE);
    else if (strcmp (word, "name") == 0 && state_name_is_good (value))
        snprintf (s->name, sizeof (s->name), "%s", value);
    else if (strcmp (word, "epoch") == 0 && parse_date (value, &s->epoch_ms) == 0)
        s->has_epoch = true;
    else if (strcmp (word, "created") == 0)
        return parse_date (value, &s->created_ms) == 0;
    else if (strcmp (word, "moved") == 0 && strcmp (value, "postgresql") == 0)
        s->moved = true;
    else if (strcmp (word, "below") == 0)
        return parse_date (value, &s->below_ms) == 0;
    else if (strcmp (word, "store") == 0 || strcmp (word, "unmarked") == 0)
        return state_name_is_good (value) && state_list_store (s, value, word[0] == 'u') == 0;
    else
        return false;
    return true;
}

/* Whether the sum line agrees with the text before it. */
static bool has_good_sum (const char *text, size_t len)
{
    char line[SUM_LINE + 1];

    if (len < strlen (HEAD) + SUM_LINE || strlen (text) != len)
        return false;
    snprintf (line, sizeof (line), "sum %016" PRIx64 "\n", sum (text, len - SUM_LINE));
    return strcmp (text + len - SUM_LINE, line) == 0;
}

/* Read the lines of 'text', which is cut into these lines. Returns whether the file is good. */
static bool decode (struct statefile *s, char *text, size_t len)
{
    char *save = NULL;

    if (!has_good_sum (text, len))
        return false;
    text[len - SUM_LINE] = '\0';
    for (char *line = strtok_r (text + strlen (HEAD), "\n", &save); line; line = strtok_r (NULL, "\n", &save)) {
        char *value = strchr (line, ' ');

        if (!value)
            return false;
        *value++ = '\0';
        if (!take_line (s, line, value))
            return false;
    }
    return s->uuid[0] && s->name[0] && s->created_ms != 0;
}

/* --- files ------------------------------------------------------------------------------------------- */

static int fail (const char *dir, const char *name, idt_error_t *errp)
{
    return errprintf (errp, "%s/%s: %s", dir, name, strerror (errno));
}

/* Whether a file of 'owner' is trusted. If the sticky bit of a folder is set, other users may add files. So only a file
 * of this user or of root is trusted. Root also trusts a file of the folder's owner.
 */
static bool is_trusted (uid_t owner, int dirfd)
{
    struct stat sb;

    return owner == geteuid () || owner == 0 || (geteuid () == 0 && fstat (dirfd, &sb) == 0 && sb.st_uid == owner);
}

static int read_all (int fd, int dirfd, char text[STATE_TEXT_MAX])
{
    struct stat sb;

    if (fstat (fd, &sb) < 0)
        return -1;
    if (!S_ISREG (sb.st_mode) || !is_trusted (sb.st_uid, dirfd))
        return errset (EPERM);
    ssize_t n = read (fd, text, STATE_TEXT_MAX - 1);
    if (n >= 0)
        text[n] = '\0';
    return (int)n;
}

int state_read_text (const char *dir, const char *name, char text[STATE_TEXT_MAX], idt_error_t *errp)
{
    int dirfd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dirfd >= 0 ? openat (dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    int n = fd >= 0 ? read_all (fd, dirfd, text) : -1, saved = errno;

    if (fd >= 0)
        close (fd);
    if (dirfd >= 0)
        close (dirfd);
    errno = saved;
    return n < 0 ? fail (dir, name, errp) : n;
}

static int write_new (int dirfd, const char *name, const char *text)
{
    int fd = openat (dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return -1;
    int rc = write_all (fd, text, strlen (text)) == 0 && fsync (fd) == 0 ? 0 : -1, saved = errno;
    close (fd);
    errno = saved;
    return rc;
}

/* Write a complete file with this name. After a failure or a crash the name refers to the new file, or to what it
 * referred to before.
 */
static int put (int dirfd, const char *name, const char *text, enum state_write how)
{
    char temporary[STATE_NAME_SIZE + 16];

    snprintf (temporary, sizeof (temporary), ".%s.%d", name, (int)gettid ());
    unlinkat (dirfd, temporary, 0);
    int rc = write_new (dirfd, temporary, text);
    if (rc == 0)
        rc = how == STATE_EXCLUSIVE ? linkat (dirfd, temporary, dirfd, name, 0)
                                    : renameat (dirfd, temporary, dirfd, name);
    int saved = errno;
    unlinkat (dirfd, temporary, 0);
    errno = saved;
    return rc < 0 ? rc : fsync (dirfd);
}

int state_write_text (const char *dir, const char *name, const char *text, enum state_write how, idt_error_t *errp)
{
    int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd >= 0 ? put (fd, name, text, how) : -1, saved = errno;

    if (fd >= 0)
        close (fd);
    errno = saved;
    return rc < 0 ? fail (dir, name, errp) : 0;
}

static void remove_file (const char *dir, const char *name)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/%s", dir, name) < (int)sizeof (path))
        unlink (path);
}

static int read_file (const char *dir, const char *name, struct statefile *s, idt_error_t *errp)
{
    struct statefile found = { 0 };
    char text[STATE_TEXT_MAX];
    int n = state_read_text (dir, name, text, errp);

    if (n < 0)
        return -1;
    if (strncmp (text, HEAD, strlen (HEAD)) != 0 && strncmp (text, HEAD, strlen (HEAD) - 2) == 0)
        return errsetf (errp, STATE_REFUSED, "%s/%s: of a later version of idtree: upgrade this one", dir, name);
    if (strncmp (text, HEAD, strlen (HEAD)) != 0 || !decode (&found, text, n))
        return errsetf (errp, STATE_REFUSED, "%s/%s: damaged, or changed by hand: %s", dir, name,
                        strcmp (name, NAME) == 0
                            ? "put it aside, and the one of a backup in its place, or one that idtree init --uuid makes"
                            : "remove it");
    *s = found;
    return 0;
}

int state_read_moved (const char *dir, struct statefile *s, idt_error_t *errp)
{
    return read_file (dir, NAME, s, errp);
}

int state_read (const char *dir, struct statefile *s, idt_error_t *errp)
{
    struct statefile found;

    if (read_file (dir, NAME, &found, errp) < 0)
        return -1;
    if (found.moved)
        return errsetf (errp, STATE_REFUSED,
                        "%s/" NAME
                        ": the state of instance %s was moved to PostgreSQL: set root.store instead of statedir",
                        dir, found.uuid);
    *s = found;
    return 0;
}

#define MEMORY_SIZE 32

static const char *memory_name (uint32_t rank, char name[MEMORY_SIZE])
{
    snprintf (name, MEMORY_SIZE, "memory-%" PRIu32, rank);
    return name;
}

int state_recall (const char *dir, uint32_t rank, struct statefile *s, idt_error_t *errp)
{
    char name[MEMORY_SIZE];

    return read_file (dir, memory_name (rank, name), s, errp);
}

int state_remember (const char *dir, uint32_t rank, const struct statefile *s, idt_error_t *errp)
{
    char name[MEMORY_SIZE], text[STATE_TEXT_MAX];

    encode (s, text);
    return state_write_text (dir, memory_name (rank, name), text, STATE_REPLACE, errp);
}

void state_unremember (const char *dir, uint32_t rank)
{
    char name[MEMORY_SIZE];

    remove_file (dir, memory_name (rank, name));
}

int state_create (const char *dir, const struct statefile *s, idt_error_t *errp)
{
    char text[STATE_TEXT_MAX];

    encode (s, text);
    return state_write_text (dir, NAME, text, STATE_EXCLUSIVE, errp);
}

void state_remove (const char *dir)
{
    remove_file (dir, NAME);
}

/* Change the list in 's'. Returns 1 if it has changed, 0 if nothing needs to be changed, or -1 with errno set. */
typedef int (*change_f) (struct statefile *s, const char *name);

static int add (struct statefile *s, const char *name)
{
    struct state_store *store = (struct state_store *)state_find_store (s, name);

    if (!store)
        return state_list_store (s, name, false) < 0 ? -1 : 1;
    bool unmarked = store->unmarked;
    store->unmarked = false;
    return unmarked;
}

static int drop (struct statefile *s, const char *name)
{
    struct state_store *store = (struct state_store *)state_find_store (s, name);

    if (!store)
        return errset (ENOENT);
    *store = s->stores[--s->nstores];
    return 1;
}

static int set_moved (struct statefile *s, const char *name)
{
    s->moved = true;
    return 1;
}

static int look (const char *dir, const char *name, change_f change, struct statefile *s, idt_error_t *errp)
{
    if (state_read (dir, s, errp) < 0)
        return -1;
    int rc = change (s, name);
    return rc < 0 ? fail (dir, name, errp) : rc;
}

static int rewrite (const char *dir, const char *name, change_f change, idt_error_t *errp)
{
    char text[STATE_TEXT_MAX];
    struct statefile s;
    int rc = look (dir, name, change, &s, errp);

    if (rc <= 0)
        return rc;
    encode (&s, text);
    return state_write_text (dir, NAME, text, STATE_REPLACE, errp);
}

/* Lock, read, change and write the list. If nothing needs to be changed, neither the lock file nor the list is written,
 * so that a broker can start on a full disk.
 */
static int change_list (const char *dir, const char *name, change_f change, idt_error_t *errp)
{
    struct statefile s;
    int rc = look (dir, name, change, &s, errp), fd;

    if (rc <= 0)
        return rc;
    if ((fd = private_lock (dir, LOCK_NAME, LOCK_WAIT_MS, errp)) < 0)
        return -1;
    rc = rewrite (dir, name, change, errp);
    private_unlock (fd, dir, LOCK_NAME);
    return rc;
}

int state_add_store (const char *dir, const char *name, idt_error_t *errp)
{
    return change_list (dir, name, add, errp);
}

int state_set_moved (const char *dir, idt_error_t *errp)
{
    return change_list (dir, NAME, set_moved, errp);
}

int state_drop_store (const char *dir, const char *name, idt_error_t *errp)
{
    return change_list (dir, name, drop, errp);
}

/* --- where a folder lies ----------------------------------------------------------------------------- */

/* File systems on which other hosts may not see a lock of this host, or on which a crash may lose a commit. The numbers
 * are from statfs (2). Numbers that are not in linux/magic.h come from the sources of the file systems.
 */
static const struct {
    unsigned long type;
    const char *name;
} networks[] = {
    { 0x6969, "NFS" },       { 0x0bd00bd0, "Lustre" }, { 0xff534d42, "CIFS" }, { 0xfe534d42, "SMB" },
    { 0x517b, "SMB" },       { 0x19830326, "BeeGFS" }, { 0x47504653, "GPFS" }, { 0x00c36400, "Ceph" },
    { 0x5346414f, "AFS" },   { 0x6b414653, "AFS" },    { 0x01021997, "9P" },   { 0x65735546, "FUSE" },
    { 0x7461636f, "OCFS2" }, { 0x01161970, "GFS2" },   { 0x73757245, "Coda" }, { 0x20030528, "OrangeFS" },
    { 0xaad7aaea, "PanFS" }, { 0x013111a8, "IBRIX" },
};

const char *state_network_name (unsigned long type)
{
    for (size_t i = 0; i < sizeof (networks) / sizeof (networks[0]); i++)
        if (networks[i].type == (type & 0xffffffff))
            return networks[i].name;
    return NULL;
}

int state_check_local (const char *dir, idt_error_t *errp)
{
    const char *name;
    struct statfs fs;

    if (statfs (dir, &fs) < 0)
        return errprintf (errp, "statedir %s: %s", dir, strerror (errno));
    if (!(name = state_network_name ((unsigned long)fs.f_type)))
        return 0;
    return errsetf (
        errp, STATE_REFUSED,
        "statedir %s is on %s, which other hosts may have, too: locks and commits may not hold there; use a "
        "disk of this host, or statedir.allow-network=true where only one host can ever reach it",
        dir, name);
}
