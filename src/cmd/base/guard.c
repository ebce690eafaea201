/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* guard.c - a bound on what waits for a broker inside of a library
 *
 * A thread waits for the end, or for the time to be over.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "cmd/base/guard.h"

static void expire (const struct cmd *cmd)
{
    cmd_die (cmd, "no answer within %g s: the broker at %s says nothing: is it stopped, or overloaded?",
             cmd->timeout_ms / 1000, cmd_uri (cmd));
}

static void *watch (void *arg)
{
    struct guard *g = arg;
    int rc = 0;

    pthread_mutex_lock (&g->lock);
    while (!g->over && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait (&g->ended, &g->lock, &g->until);
    bool expired = !g->over;
    pthread_mutex_unlock (&g->lock);
    if (expired)
        expire (g->cmd);
    return NULL;
}

static void set_until (struct guard *g, double timeout_ms)
{
    clock_gettime (CLOCK_MONOTONIC, &g->until);
    int64_t ns = g->until.tv_nsec + (int64_t)((timeout_ms - (double)(int64_t)(timeout_ms / 1000) * 1000) * 1e6);
    g->until.tv_sec += (time_t)(timeout_ms / 1000) + ns / 1000000000;
    g->until.tv_nsec = (long)(ns % 1000000000);
}

void guard_begin (struct guard *g, const struct cmd *cmd)
{
    pthread_condattr_t attr;

    *g = (struct guard){ .cmd = cmd, .lock = PTHREAD_MUTEX_INITIALIZER };
    if (cmd->timeout_ms < 0)
        return;
    set_until (g, cmd->timeout_ms);
    pthread_condattr_init (&attr);
    pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
    pthread_cond_init (&g->ended, &attr);
    pthread_condattr_destroy (&attr);
    int rc = pthread_create (&g->thread, NULL, watch, g);
    if (rc != 0)
        cmd_die (cmd, "cannot start a thread: %s", strerror (rc));
    g->armed = true;
}

void guard_end (struct guard *g)
{
    int saved_errno = errno;

    if (g->armed) {
        pthread_mutex_lock (&g->lock);
        g->over = true;
        pthread_cond_signal (&g->ended);
        pthread_mutex_unlock (&g->lock);
        pthread_join (g->thread, NULL);
        pthread_cond_destroy (&g->ended);
    }
    g->armed = false;
    errno = saved_errno;
}
