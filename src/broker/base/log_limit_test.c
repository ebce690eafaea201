/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log_limit_test.c - what others can cause does not fill the log, and is counted */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/base/log.h"
#include "broker/base/log_limit.h"
#include "test/tap.h"

static void test_periods (void)
{
    struct log_limit l = { 0 };
    unsigned said = 0;

    for (int i = 0; i < 1000; i++)
        said += log_limit_take (&l, 5.);
    ok (said == LOG_LIMIT_LINES, "the first of a period are said");
    ok (log_limit_left_out (&l, 5 + LOG_LIMIT_PERIOD_S / 2) == 0, "what was left out is not told before its end");
    ok (!log_limit_take (&l, 6 + LOG_LIMIT_PERIOD_S), "nor is more said before that is told");
    ok (log_limit_left_out (&l, 6 + LOG_LIMIT_PERIOD_S) == 1001 - LOG_LIMIT_LINES
            && log_limit_left_out (&l, 6 + LOG_LIMIT_PERIOD_S) == 0,
        "then it is, once");
    ok (log_limit_take (&l, 7 + LOG_LIMIT_PERIOD_S), "and a new period begins");
}

/* Lines and tellings at random times: each line is said or counted. */
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
    ok (said + counted == 100000, "each of 100,000 lines is said or counted");
    ok (most == LOG_LIMIT_LINES, "never more of them than a period may have");
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
    ok (lines == LOG_LIMIT_LINES, "of 500 refusals the first are logged");
    log_refusal (log, LOG_REFUSED_HELLO, "another kind");
    ok (lines == LOG_LIMIT_LINES + 1 && strstr (last, " overlay "), "another kind has a limit of its own");
    log_tell_left_out (log, 0);
    ok (lines == LOG_LIMIT_LINES + 1, "nothing is told too soon");
    log_tell_left_out (log, 1e12);
    ok (lines == LOG_LIMIT_LINES + 2 && strstr (last, " local ") && strstr (last, "480 more"),
        "then how many were left out: %s", last);
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
