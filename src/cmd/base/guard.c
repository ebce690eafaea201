/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guard.c - a bound on what waits for a broker inside of a library */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cmd/base/guard.h"

/* In a thread of the timer's. */
static void expired_cb (union sigval value)
{
    const struct cmd *cmd = value.sival_ptr;

    cmd_die (cmd, "no answer within %g s: the broker at %s says nothing: is it stopped, or overloaded?",
             cmd->timeout_ms / 1000, cmd_uri (cmd));
}

void guard_begin (struct guard *g, const struct cmd *cmd)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = expired_cb };
    struct itimerspec once = { .it_value = { .tv_sec = (time_t)(cmd->timeout_ms / 1000),
                                             .tv_nsec = (long)((int64_t)(cmd->timeout_ms * 1e6) % 1000000000) } };

    *g = (struct guard){ .cmd = cmd };
    if (cmd->timeout_ms < 0)
        return;
    event.sigev_value.sival_ptr = (void *)cmd;
    if (timer_create (CLOCK_MONOTONIC, &event, &g->timer) < 0 || timer_settime (g->timer, 0, &once, NULL) < 0)
        cmd_die (cmd, "timer: %s", strerror (errno));
    g->armed = true;
}

void guard_end (struct guard *g)
{
    int saved_errno = errno;

    if (g->armed)
        timer_delete (g->timer);
    g->armed = false;
    errno = saved_errno;
}
