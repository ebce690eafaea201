/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guard.c - limit the time that a library function waits for a broker
 *
 * A thread waits until the call has ended or the time is over.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cmd/base/guard.h"
#include "libutil/clock.h"
#include "libutil/minmax.h"

#define POLL_MAX_MS 86400000

static void expire (const struct cmd *cmd)
{
    cmd_die (cmd, "no answer within %g s: the broker at %s does not answer: is it stopped, or overloaded?",
             cmd->timeout_ms / 1000, cmd_uri (cmd));
}

static void *watch (void *arg)
{
    struct guard *g = arg;
    struct pollfd ended = { .fd = g->ended_fd, .events = POLLIN };
    uint64_t now_ms;

    while ((now_ms = clock_ms (CLOCK_MONOTONIC)) < g->until_ms)
        if (poll (&ended, 1, (int)min_u64 (g->until_ms - now_ms, POLL_MAX_MS)) == 1)
            return NULL;
    expire (g->cmd);
    return NULL;
}

void guard_begin (struct guard *g, const struct cmd *cmd)
{
    int rc;

    *g = (struct guard){ .cmd = cmd };
    if (cmd->timeout_ms < 0)
        return;
    g->until_ms = clock_ms (CLOCK_MONOTONIC) + (uint64_t)cmd->timeout_ms;
    if ((g->ended_fd = eventfd (0, EFD_CLOEXEC)) < 0)
        cmd_die (cmd, "cannot create an eventfd: %s", strerror (errno));
    if ((rc = pthread_create (&g->thread, NULL, watch, g)) != 0)
        cmd_die (cmd, "cannot start a thread: %s", strerror (rc));
    g->armed = true;
}

void guard_end (struct guard *g)
{
    int saved_errno = errno;

    if (g->armed) {
        eventfd_write (g->ended_fd, 1);
        pthread_join (g->thread, NULL);
        close (g->ended_fd);
    }
    g->armed = false;
    errno = saved_errno;
}
