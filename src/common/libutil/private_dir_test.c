/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private_dir_test.c - which folders others can put something into */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libutil/private_dir.h"
#include "test/tap.h"

/* Whether 'path' is refused with 'errnum' (0: it is not) and a sentence that names it. */
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
    ok (bad == 0, "of 1,024 modes those are refused that let others write");
    ok (bad_sticky == 0, "... or those without a sticky bit, where that will do");
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
    ok (is_refused (dir, 0), "a folder of ours is fine");
    test_modes (dir);
    ok (is_refused (link, ELOOP) && is_refused (slash, ELOOP), "a link to it is not, however it is written");
    ok (is_refused (file, ENOTDIR) && is_refused ("no-such-folder", ENOENT), "nor a file, or nothing");
    ok (geteuid () == 0 ? chown (dir, 1, 1) == 0 && is_refused (dir, EPERM) : is_refused ("/", EPERM),
        "nor the folder of somebody else");
    unlink (file);
    unlink (link);
    rmdir (dir);
    return done_testing ();
}
