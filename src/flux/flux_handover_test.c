/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_handover_test.c - a handover can be read once, and only by the owner */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/ending.h"
#include "test/tap.h"

static bool holds (const char *path, const char *text)
{
    size_t size = 0;
    char *data = flux_handover_take (path, 100, &size);
    bool good = data && size == strlen (text) && memcmp (data, text, size) == 0;

    free (data);
    return good;
}

int main (void)
{
    char dir[] = "/tmp/handover-XXXXXX", path[64], other[64];
    struct stat st;
    size_t size = 77;

    if (!mkdtemp (dir))
        bail_out ("cannot make a folder");
    snprintf (path, sizeof (path), "%s/past", dir);
    snprintf (other, sizeof (other), "%s/other", dir);
    ok (!flux_handover_take (path, 100, &size) && size == 77, "the first load of a module has no handover");
    ok (flux_handover_write (path, "first", 5) == 0 && stat (path, &st) == 0 && (st.st_mode & 0777) == 0600,
        "only the owner may read the file of a handover");
    ok (flux_handover_write (path, "second", 6) == 0 && holds (path, "second"), "a second handover replaces the first");
    ok (!flux_handover_take (path, 100, &size) && access (path, F_OK) < 0, "a handover can be read once");
    ok (flux_handover_write (path, "too long", 8) == 0 && !flux_handover_take (path, 7, &size)
            && access (path, F_OK) < 0,
        "a file of a handover that is too long is removed and not read");
    if (flux_handover_write (other, "theirs", 6) < 0 || symlink (other, path) < 0)
        bail_out ("cannot write");
    ok (!flux_handover_take (path, 100, &size),
        "a symbolic link in place of the file of a handover is not followed when it is read");
    ok (flux_handover_write (path, "ours", 4) == 0 && holds (path, "ours") && holds (other, "theirs"),
        "a symbolic link in place of the file of a handover is not followed when it is written");
    unlink (other);
    rmdir (dir);
    errno = 0;
    ok (flux_handover_write (path, "x", 1) < 0 && errno == ENOENT,
        "if the file of a handover cannot be written, errno is set");
    return done_testing ();
}
