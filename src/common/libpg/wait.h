/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* wait.h - wait for descriptors, a deadline or a stop */
#ifndef PG_WAIT_H
#define PG_WAIT_H

#include <poll.h>
#include <stdint.h>

#define PG_WAIT_MAX 16

/* Wait until 'fd' (-1: none) has 'events', at most until 'deadline_ms' (CLOCK_MONOTONIC). Returns 0, or -1 with errno
 * ETIMEDOUT, or ECANCELED if 'stop_fd' became readable.
 */
int pg_wait (int fd, short events, int stop_fd, uint64_t deadline_ms);

/* The same for several descriptors, as poll (2); at most PG_WAIT_MAX. */
int pg_wait_all (struct pollfd *fds, nfds_t n, int stop_fd, uint64_t deadline_ms);

#endif /* PG_WAIT_H */
