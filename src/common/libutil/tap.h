/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tap.h - print test results in the Test Anything Protocol
 *
 * One test program is one translation unit, so the counters are static here: nothing but tests includes
 * this file.  ok () takes a format that reads as a sentence of a specification.
 */
#ifndef UTIL_TAP_H
#define UTIL_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failed;

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

#endif /* UTIL_TAP_H */
