/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tap.h - prints test results in the Test Anything Protocol
 *
 * A test program is one translation unit, so the counters here are static. Only test programs, and programs that they
 * run, include this file. The format of ok () is a sentence of a specification.
 */
#ifndef TEST_TAP_H
#define TEST_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Shared libraries must find these functions, too, because they call the functions of libc that a test replaces. */
#pragma GCC visibility push(default)

static int tap_count, tap_failed;

/* How often to repeat work of a single thread that is normally done 'n' times. ThreadSanitizer makes such work thirty
 * times slower, and cannot find errors in it.
 */
#if defined(__SANITIZE_THREAD__)
#define tap_turns(n) ((n) / 8 + 1)
#else
#define tap_turns(n) (n)
#endif

/* Report one assertion. Returns 'good', so that a test may stop early. */
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

/* Print a comment line for readers of the log. */
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

/* Report an assertion that cannot be checked here, and the reason. */
__attribute__ ((unused)) static void skip (const char *what, const char *why)
{
    printf ("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

/* Call this at the end of main (). It prints the plan and returns the exit status. */
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

/* Check a step that a test needs, such as an allocation. If the step has failed, stop the program. */
__attribute__ ((unused)) static void tap_must (bool good)
{
    if (!good)
        bail_out ("no memory");
}

/* A limit that is far longer than any wait of a test, even on a busy machine and with sanitizers. */
#define TAP_WAIT_S 300

__attribute__ ((unused)) static time_t tap_now_s (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

/* Returns true. If TAP_WAIT_S have passed since 'began_s', it ends the program with a message instead. */
__attribute__ ((unused)) static bool tap_wait (time_t began_s, const char *what, const char *file, int line)
{
    if (tap_now_s () - began_s < TAP_WAIT_S)
        return true;
    printf ("Bail out! %s:%d: gave up after %d s of waiting until %s\n", file, line, TAP_WAIT_S, what);
    exit (EXIT_FAILURE);
}

/* Repeat the statement that follows, like while (), until 'condition' is true. After TAP_WAIT_S the program ends. */
#define wait_until(condition) \
    for (time_t tap_began = tap_now_s (); !(condition) && tap_wait (tap_began, #condition, __FILE__, __LINE__);)

#endif /* TEST_TAP_H */
