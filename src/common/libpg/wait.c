/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wait.c - wait for descriptors, a deadline or a stop */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "libpg/wait.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/minmax.h"

int pg_wait_all (struct pollfd *fds, nfds_t n, int stop_fd, uint64_t deadline_ms)
{
    struct pollfd all[PG_WAIT_MAX + 1];

    assert (n <= PG_WAIT_MAX);
    memcpy (all, fds, n * sizeof (*fds));
    all[n] = (struct pollfd){ .fd = stop_fd, .events = POLLIN };
    for (;;) {
        uint64_t now_ms = clock_ms (CLOCK_MONOTONIC);
        int rc = poll (all, n + 1, now_ms < deadline_ms ? (int)min_u64 (deadline_ms - now_ms, INT_MAX) : 0);

        if (rc > 0 && (all[n].revents & POLLIN))
            return errset (ECANCELED);
        if (rc > 0) {
            memcpy (fds, all, n * sizeof (*fds));
            return 0;
        }
        if (rc == 0 && now_ms >= deadline_ms)
            return errset (ETIMEDOUT);
        if (rc < 0 && errno != EINTR)
            return -1;
    }
}

int pg_wait (int fd, short events, int stop_fd, uint64_t deadline_ms)
{
    struct pollfd one = { .fd = fd, .events = events };

    return pg_wait_all (&one, 1, stop_fd, deadline_ms);
}
