/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wait.c - wait for a descriptor, a deadline or a stop */
#include <errno.h>
#include <poll.h>

#include "libpg/wait.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

int pg_wait (int fd, short events, int stop_fd, uint64_t deadline_ms)
{
    struct pollfd fds[] = { { .fd = fd, .events = events }, { .fd = stop_fd, .events = POLLIN } };

    for (;;) {
        uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);
        int rc = poll (fds, 2, now_ms < deadline_ms ? (int)(deadline_ms - now_ms) : 0);

        if (rc > 0 && (fds[1].revents & POLLIN))
            return errset (ECANCELED);
        if (rc > 0)
            return 0;
        if (rc == 0 && now_ms >= deadline_ms)
            return errset (ETIMEDOUT);
        if (rc < 0 && errno != EINTR)
            return -1;
    }
}
