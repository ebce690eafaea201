/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log_limit_test.c - log lines that other programs can cause do not fill the log, and those left out are counted */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/log.h"
#include "test/tap.h"

static void test_periods (void)
{
    struct log_limit l = { 0 };
    unsigned said = 0;

    for (int i = 0; i < 1000; i++)
        said += log_limit_take (&l, 5.);
    ok (said == LOG_LIMIT_LINES, "the first lines of a period are logged, up to the limit");
    ok (log_limit_left_out (&l, 5 + LOG_LIMIT_PERIOD_S / 2) == 0,
        "the number of lines left out is not reported before the end of the period");
    ok (!log_limit_take (&l, 6 + LOG_LIMIT_PERIOD_S),
        "no further line is logged before the number of lines left out is reported");
    ok (log_limit_left_out (&l, 6 + LOG_LIMIT_PERIOD_S) == 1001 - LOG_LIMIT_LINES
            && log_limit_left_out (&l, 6 + LOG_LIMIT_PERIOD_S) == 0,
        "after the period the number of lines left out is reported once");
    ok (log_limit_take (&l, 7 + LOG_LIMIT_PERIOD_S),
        "a new period begins after the number of lines left out was reported");
}

/* Lines and reports at random times: each line is either logged or counted. */
static void test_random (void)
{
    struct log_limit l = { 0 };
    unsigned long said = 0, counted = 0, in_period = 0, most = 0;
    double now = 0;

    srand (1);
    for (int i = 0; i < 100000; i++) {
        unsigned long n;

        now += (rand () % 1000) * LOG_LIMIT_PERIOD_S / 20000;
        in_period = log_limit_take (&l, now) ? in_period + (said++, 1) : in_period;
        if (rand () % 10 == 0 && (n = log_limit_left_out (&l, now)) > 0) {
            counted += n;
            most = in_period > most ? in_period : most;
            in_period = 0;
        }
    }
    counted += log_limit_left_out (&l, now + LOG_LIMIT_PERIOD_S);
    ok (said + counted == 100000, "each of 100,000 lines is logged or counted");
    ok (most == LOG_LIMIT_LINES, "the lines logged in a period never exceed the limit");
}

static int lines;
static char last[LOG_LINE_MAX + 1];

static bool take_line (const char *line, void *arg)
{
    lines++;
    snprintf (last, sizeof (last), "%s", line);
    return true;
}

static void test_log (void)
{
    struct attrs *attrs = attrs_create ();
    idt_error_t err;
    struct log *log = log_create (attrs, 0, &err);

    log_set_forward (log, take_line, NULL);
    for (int i = 0; i < 500; i++)
        log_refusal (log, LOG_REFUSED_CLIENT, "refusal %d", i);
    ok (lines == LOG_LIMIT_LINES, "the first of 500 logged refusals are written to the log");
    log_refusal (log, LOG_REFUSED_HELLO, "another kind");
    ok (lines == LOG_LIMIT_LINES + 1 && strstr (last, " overlay "),
        "each kind of refusal has its own limit in the log");
    log_tell_left_out (log, 0);
    ok (lines == LOG_LIMIT_LINES + 1, "the number of refusals left out is not reported before the end of the period");
    log_tell_left_out (log, 1e12);
    ok (lines == LOG_LIMIT_LINES + 2 && strstr (last, " local ") && strstr (last, "480 more"),
        "the number of refusals left out is logged: %s", last);
    log_destroy (log);
    attrs_destroy (attrs);
}

int main (int argc, char *argv[])
{
    test_periods ();
    test_random ();
    test_log ();
    return done_testing ();
}
