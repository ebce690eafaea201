/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir_test.c - which folders other users can write to, and locks that other users cannot take */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/private_dir.h"
#include "test/tap.h"

/* Whether 'path' is refused with 'errnum' (0: accepted) and a text that names the path. */
static bool is_refused (const char *path, int errnum)
{
    idt_error_t err = { "" };

    errno = 0;
    if (private_dir_check ("statedir", path, PRIVATE_DIR_STRICT, &err) == 0)
        return errnum == 0;
    diag ("%s", err.text);
    return errno == errnum && strncmp (err.text, "statedir ", 9) == 0 && strstr (err.text, path);
}

static void test_modes (const char *dir)
{
    int bad = 0, bad_sticky = 0;

    for (mode_t mode = 0; mode < 02000; mode++) {
        bool is_safe = (mode & 022) == 0;

        chmod (dir, mode);
        bad += (private_dir_check ("statedir", dir, PRIVATE_DIR_STRICT, NULL) == 0) != is_safe;
        bad_sticky += (private_dir_check ("statedir", dir, PRIVATE_DIR_STICKY, NULL) == 0)
                      != (is_safe || (mode & 01000));
    }
    chmod (dir, 0700);
    ok (bad == 0, "of 1,024 modes each that lets other users write is refused");
    ok (bad_sticky == 0, "with PRIVATE_DIR_STICKY only a mode without the sticky bit is refused");
}

static bool lock_is_refused (const char *dir, int errnum, const char *word)
{
    idt_error_t err = { "" };
    int fd = private_lock (dir, "a.lock", 1, &err);

    if (fd >= 0)
        private_unlock (fd, dir, "a.lock");
    return fd < 0 && errno == errnum && strstr (err.text, "/a.lock: ") && strstr (err.text, word);
}

static void test_lock (const char *dir)
{
    char path[64];
    int folder = open (dir, O_RDONLY | O_DIRECTORY), fd = -1;

    snprintf (path, sizeof (path), "%s/a.lock", dir);
    alarm (60); /* ends this test if a call waits for a lock without a bound */
    ok (flock (folder, LOCK_EX) == 0 && (fd = private_lock (dir, "a.lock", 1, NULL)) >= 0,
        "a lock on the folder itself does not block a lock file in it");
    ok (lock_is_refused (dir, EBUSY, "another process has held this lock for 1 ms"),
        "taking a lock that another process holds fails after the given time");
    private_unlock (fd, dir, "a.lock");
    ok (access (path, F_OK) < 0 && (fd = private_lock (dir, "a.lock", 1, NULL)) >= 0,
        "a released lock leaves no file, and can be taken again");
    unlink (path);
    int other = private_lock (dir, "a.lock", 1, NULL);
    ok (other >= 0, "a lock whose file was removed can be taken by another process");
    private_unlock (fd, dir, "a.lock");
    ok (access (path, F_OK) == 0 && lock_is_refused (dir, EBUSY, "has held this lock"),
        "the process whose lock file was removed does not remove the second lock at its end");
    close (other);
    ok ((fd = private_lock (dir, "a.lock", 1, NULL)) >= 0, "the lock of a killed process can be taken");
    ok (fchmod (fd, 0644) == 0 && lock_is_refused (dir, EPERM, "remove it"),
        "a lock file that other users may open is refused");
    private_unlock (fd, dir, "a.lock");
    ok (mkfifo (path, 0600) == 0 && lock_is_refused (dir, EPERM, "remove it") && unlink (path) == 0
            && symlink ("file", path) == 0 && lock_is_refused (dir, ELOOP, "symbolic") && unlink (path) == 0,
        "a lock path that is not a regular file is refused");
    close (folder);
    alarm (0);
}

int main (int argc, char *argv[])
{
    char dir[] = "private_dir_test-XXXXXX", link[64], slash[64], file[64];

    if (!mkdtemp (dir))
        bail_out ("no folder");
    snprintf (link, sizeof (link), "%s/link", dir);
    snprintf (slash, sizeof (slash), "%s/link//", dir);
    snprintf (file, sizeof (file), "%s/file", dir);
    fclose (fopen (file, "w"));
    if (symlink (".", link) < 0)
        bail_out ("no link");
    ok (is_refused (dir, 0), "a private folder that belongs to this user is accepted");
    test_modes (dir);
    test_lock (dir);
    ok (is_refused (link, ELOOP) && is_refused (slash, ELOOP),
        "a link to a private folder is refused, with and without a slash at its end");
    ok (is_refused (file, ENOTDIR) && is_refused ("no-such-folder", ENOENT),
        "a file or a missing folder in place of a private folder is refused");
    ok (geteuid () == 0 ? chown (dir, 1, 1) == 0 && is_refused (dir, EPERM) : is_refused ("/", EPERM),
        "a private folder that belongs to another user is refused");
    unlink (file);
    unlink (link);
    rmdir (dir);
    return done_testing ();
}
