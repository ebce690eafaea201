/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stdfds.h - stdin, stdout and stderr are what they are called, also for who was started without them
 *
 * Else the next file or socket that is opened would be stdout, and get what is printed.
 */
#ifndef UTIL_STDFDS_H
#define UTIL_STDFDS_H

#include <fcntl.h>

/* To be called first.  What was closed fails as before: it is opened the wrong way round.  Returns 0, or -1 with errno
 * set.
 */
static inline int stdfds_occupy (void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl (fd, F_GETFD) < 0 && open ("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return -1;
    return 0;
}

#endif /* UTIL_STDFDS_H */
