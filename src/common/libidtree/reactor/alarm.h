/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alarm.h - many alarms on CLOCK_BOOTTIME that share one timerfd. Not installed.
 *
 * An alarm fires at an absolute time, with a resolution of one microsecond, and its clock includes the time in which
 * the host was suspended. The reactor's own timers have neither property.
 */
#ifndef LIBIDTREE_ALARM_H
#define LIBIDTREE_ALARM_H

#include <stddef.h>
#include <stdint.h>

#define ALARM_NEVER UINT64_MAX /* a time that never comes */

struct alarms;

struct alarm {
    uint64_t at_us;
    size_t place; /* 0: not set */
};

/* 'due' is called for each alarm whose time has come, and may set and unset any alarm. NULL with errno ENOMEM, or as
 * timerfd_create (2).
 */
struct alarms *alarms_create (void (*due) (struct alarm *a));
void alarms_destroy (struct alarms *as); /* NULL is allowed */

int alarms_fd (const struct alarms *as);     /* readable when an alarm is due */
size_t alarms_set (const struct alarms *as); /* number of alarms that are set */

/* Reserve memory for one more alarm, so that setting it cannot fail; alarms_remove () releases it. Returns 0, or -1
 * with errno ENOMEM.
 */
int alarms_add (struct alarms *as);
void alarms_remove (struct alarms *as);

/* Set an alarm that is not set. A time in the past is due immediately. */
void alarm_set (struct alarms *as, struct alarm *a, uint64_t at_us);
void alarm_unset (struct alarms *as, struct alarm *a); /* no effect if it is not set */

/* Call when the descriptor is readable: unsets each alarm that is due and calls 'due' for it. An alarm that 'due' sets
 * to a time in the past may have to wait for the next call.
 */
void alarms_run (struct alarms *as);

#endif /* LIBIDTREE_ALARM_H */
