/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tap.h - print test results in the Test Anything Protocol
 *
 * One test program is one translation unit, so the counters are static here: nothing but tests includes
 * this file, and what they run.  ok () takes a format that reads as a sentence of a specification.
 */
#ifndef TEST_TAP_H
#define TEST_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int tap_count, tap_failed;

/* How many turns to make of 'n' of what one thread does alone: ThreadSanitizer makes each thirty times as long, and has
 * nothing to find there.
 */
#if defined(__SANITIZE_THREAD__)
#define tap_turns(n) ((n) / 8 + 1)
#else
#define tap_turns(n) (n)
#endif

/* Report one assertion.  Returns 'good' so that a test may stop early. */
__attribute__ ((format (printf, 2, 3), unused)) static bool ok (bool good, const char *fmt, ...)
{
    va_list ap;

    tap_count++;
    if (!good)
        tap_failed++;
    printf ("%sok %d - ", good ? "" : "not ", tap_count);
    va_start (ap, fmt);
    vprintf (fmt, ap);
    va_end (ap);
    printf ("\n");
    fflush (stdout);
    return good;
}

/* Print a comment line, for a person who reads the log. */
__attribute__ ((format (printf, 1, 2), unused)) static void diag (const char *fmt, ...)
{
    va_list ap;

    printf ("# ");
    va_start (ap, fmt);
    vprintf (fmt, ap);
    va_end (ap);
    printf ("\n");
    fflush (stdout);
}

/* Report one assertion that cannot be made here, and why. */
__attribute__ ((unused)) static void skip (const char *what, const char *why)
{
    printf ("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

/* End of main (): prints the plan, returns the exit status. */
__attribute__ ((unused)) static int done_testing (void)
{
    printf ("1..%d\n", tap_count);
    return tap_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

__attribute__ ((unused, noreturn)) static void bail_out (const char *why)
{
    printf ("Bail out! %s\n", why);
    exit (EXIT_FAILURE);
}

/* Far above what anything takes that a test waits for, on a machine that is busy with something else, under sanitizers.
 */
#define TAP_WAIT_S 300

__attribute__ ((unused)) static time_t tap_now_s (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

/* One more try?  Ends the program, and says what was awaited, where there were enough. */
__attribute__ ((unused)) static bool tap_wait (time_t began_s, const char *what, const char *file, int line)
{
    if (tap_now_s () - began_s < TAP_WAIT_S)
        return true;
    printf ("Bail out! %s:%d: gave up after %d s of waiting until %s\n", file, line, TAP_WAIT_S, what);
    exit (EXIT_FAILURE);
}

/* Do what follows, as after while (), until 'condition' holds: but not for ever. */
#define wait_until(condition) \
    for (time_t tap_began = tap_now_s (); !(condition) && tap_wait (tap_began, #condition, __FILE__, __LINE__);)

#endif /* TEST_TAP_H */
