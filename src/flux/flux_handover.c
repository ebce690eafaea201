/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flux_handover.c - the handover to the next load of the module: a file that is complete or absent */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/flux_handover.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

int flux_handover_write (const char *path, const void *data, size_t size)
{
    unlink (path);
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    int rc = write_all (fd, data, size), errnum = errno;
    close (fd);
    if (rc == 0)
        return 0;
    unlink (path);
    return errset (errnum);
}

static void *read_all (int fd, size_t max, size_t *size)
{
    struct stat st;
    char *data;
    size_t got = 0;

    if (fstat (fd, &st) < 0 || st.st_uid != geteuid () || st.st_size <= 0 || (size_t)st.st_size > max
        || !(data = malloc ((size_t)st.st_size)))
        return NULL;
    while (got < (size_t)st.st_size) {
        ssize_t n = read (fd, data + got, (size_t)st.st_size - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free (data);
            return NULL;
        }
        got += (size_t)n;
    }
    *size = got;
    return data;
}

void *flux_handover_take (const char *path, size_t max, size_t *size)
{
    int fd = open (path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    void *data;

    if (fd < 0)
        return NULL;
    data = unlink (path) < 0 ? NULL : read_all (fd, max, size);
    close (fd);
    return data;
}
