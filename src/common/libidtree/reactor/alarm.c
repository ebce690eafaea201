/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alarm.c - many alarms on CLOCK_BOOTTIME that share one timerfd
 *
 * The alarms form a binary heap whose places count from 1: the children of place i are 2i and 2i + 1. The timerfd is
 * set to the first alarm or to an earlier time: a wakeup that is too early needs less time than setting the timerfd
 * each time an alarm is postponed. If the timerfd would fire PUT_OFF_US or more too early, it is set again, so that an
 * alarm that is postponed again and again does not wake the process.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libidtree/reactor/alarm.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define MIN_ROOM 16
#define PUT_OFF_US 500000

struct alarms {
    struct alarm **heap;
    size_t room; /* places, including the unused place 0 */
    size_t members;
    size_t count;
    uint64_t armed_us; /* time of the timerfd; 0 while due alarms are being called, after which it is set */
    int fd;
    void (*due) (struct alarm *a);
};

/* --- the heap ----------------------------------------------------------------------------------- */

static void put (struct alarms *as, struct alarm *a, size_t place)
{
    as->heap[place] = a;
    a->place = place;
}

static void rise (struct alarms *as, struct alarm *a, size_t place)
{
    for (; place > 1 && as->heap[place / 2]->at_us > a->at_us; place /= 2)
        put (as, as->heap[place / 2], place);
    put (as, a, place);
}

static void sink (struct alarms *as, struct alarm *a, size_t place)
{
    size_t child;

    while ((child = 2 * place) <= as->count) {
        if (child < as->count && as->heap[child + 1]->at_us < as->heap[child]->at_us)
            child++;
        if (as->heap[child]->at_us >= a->at_us)
            break;
        put (as, as->heap[child], place);
        place = child;
    }
    put (as, a, place);
}

/* --- the descriptor ------------------------------------------------------------------------------ */

static void arm (struct alarms *as)
{
    uint64_t at_us = as->count > 0 ? as->heap[1]->at_us : ALARM_NEVER;

    if (as->armed_us == 0 || at_us == ALARM_NEVER || (at_us >= as->armed_us && at_us - as->armed_us < PUT_OFF_US))
        return;
    as->armed_us = at_us;
    struct itimerspec its = { .it_value = { (time_t)(at_us / 1000000), (long)(at_us % 1000000 * 1000) + 1 } };
    timerfd_settime (as->fd, TFD_TIMER_ABSTIME, &its, NULL);
}

/* --- alarms --------------------------------------------------------------------------------------- */

void alarm_set (struct alarms *as, struct alarm *a, uint64_t at_us)
{
    a->at_us = at_us;
    rise (as, a, ++as->count);
    arm (as);
}

void alarm_unset (struct alarms *as, struct alarm *a)
{
    size_t place = a->place;
    struct alarm *last;

    if (place == 0)
        return;
    a->place = 0;
    last = as->heap[as->count--];
    if (last == a)
        return;
    if (place > 1 && as->heap[place / 2]->at_us > last->at_us)
        rise (as, last, place);
    else
        sink (as, last, place);
}

void alarms_run (struct alarms *as)
{
    uint64_t times, now_us;

    if (read (as->fd, &times, sizeof (times)) < 0)
        return; /* the timerfd was set again meanwhile */
    as->armed_us = 0;
    now_us = clock_us (CLOCK_BOOTTIME);
    for (size_t n = as->count; n > 0 && as->count > 0 && as->heap[1]->at_us <= now_us; n--) {
        struct alarm *a = as->heap[1];

        alarm_unset (as, a);
        as->due (a);
    }
    as->armed_us = ALARM_NEVER;
    arm (as);
}

int alarms_add (struct alarms *as)
{
    if (as->members + 1 >= as->room) {
        size_t room = as->room > 0 ? 2 * as->room : MIN_ROOM;
        struct alarm **heap = reallocarray (as->heap, room, sizeof (heap[0]));

        if (!heap)
            return -1;
        as->heap = heap;
        as->room = room;
    }
    as->members++;
    return 0;
}

void alarms_remove (struct alarms *as)
{
    as->members--;
}

/* --- life ------------------------------------------------------------------------------------------ */

int alarms_fd (const struct alarms *as)
{
    return as->fd;
}

size_t alarms_set (const struct alarms *as)
{
    return as->count;
}

struct alarms *alarms_create (void (*due) (struct alarm *a))
{
    struct alarms *as = calloc (1, sizeof (*as));

    if (!as)
        return NULL;
    as->due = due;
    as->armed_us = ALARM_NEVER;
    if ((as->fd = timerfd_create (CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) >= 0)
        return as;
    int errnum = errno;
    free (as);
    return errset_null (errnum);
}

void alarms_destroy (struct alarms *as)
{
    if (!as)
        return;
    close (as->fd);
    free (as->heap);
    free (as);
}
