/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alarm.h - times of CLOCK_BOOTTIME that many wait for with one timerfd.  Not installed.
 *
 * It goes off at absolute times, to the microsecond, and counts time in which the host slept: the reactor's own timers
 * do neither.
 */
#ifndef LIBIDTREE_ALARM_H
#define LIBIDTREE_ALARM_H

#include <stddef.h>
#include <stdint.h>

#define ALARM_NEVER UINT64_MAX /* a time that does not come */

struct alarms;

struct alarm {
    uint64_t at_us;
    size_t place; /* 0: it is not set */
};

/* 'due' is told of each whose time has come, and may set and unset any.  NULL with errno: ENOMEM, or what the kernel
 * said of a new descriptor.
 */
struct alarms *alarms_create (void (*due) (struct alarm *a));
void alarms_destroy (struct alarms *as); /* NULL is fine */

int alarms_fd (const struct alarms *as);     /* readable when one is due */
size_t alarms_set (const struct alarms *as); /* how many are set */

/* Make room for one more alarm, so that setting it cannot fail; the room is given back when it goes.  Returns 0, or -1
 * with errno ENOMEM.
 */
int alarms_add (struct alarms *as);
void alarms_remove (struct alarms *as);

/* Set one that is not set.  A time that has passed is due at once. */
void alarm_set (struct alarms *as, struct alarm *a, uint64_t at_us);
void alarm_unset (struct alarms *as, struct alarm *a); /* nothing, where it is not set */

/* The descriptor was seen readable: tell each that was due then, which is not set any more.  What is due again by the
 * time it is told waits for the next time.
 */
void alarms_run (struct alarms *as);

#endif /* LIBIDTREE_ALARM_H */
