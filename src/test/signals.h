/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* signals.h - for tests only: a periodic signal that interrupts sleeping system calls */
#ifndef TESTIDS_SIGNALS_H
#define TESTIDS_SIGNALS_H

#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t signals_came;

static void signals_cb (int signum)
{
    signals_came++;
}

/* Send this process a signal every 'us' microseconds (less than a second). 0 ends the signals. */
static inline void signals_every (suseconds_t us)
{
    const struct sigaction action = { .sa_handler = signals_cb };
    const struct itimerval every = { { 0, us }, { 0, us } };

    sigaction (SIGALRM, &action, NULL);
    setitimer (ITIMER_REAL, &every, NULL);
}

#endif /* TESTIDS_SIGNALS_H */
