/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* files.h - write all of a buffer */
#ifndef UTIL_FILES_H
#define UTIL_FILES_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* Write all of 'data'. A short write sets no errno; the next write fails and says whether the disk is full or the size
 * of files is limited. Returns 0, or -1 with errno set.
 */
static inline int write_all (int fd, const void *data, size_t size)
{
    for (const char *s = data; size > 0;) {
        ssize_t n = write (fd, s, size);

        if (n < 0 && errno != EINTR)
            return -1;
        s += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

#endif /* UTIL_FILES_H */
