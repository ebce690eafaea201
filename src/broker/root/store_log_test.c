/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store_log_test.c - a store that fails by turns makes a bounded number of lines, and the last state is logged */
#include <errno.h>

#include "broker/root/store_log.h"
#include "test/tap.h"

#define SECOND UINT64_C (1000000)

int main (void)
{
    struct store_log l = { 0 };
    uint64_t now_us = 1000 * SECOND, left_out = 99;
    int lines = 0;

    ok (!store_log_take (&l, now_us, 0, &left_out), "a store that works from the beginning makes no line");
    ok (store_log_take (&l, now_us, ECONNREFUSED, &left_out) && left_out == 0
            && !store_log_take (&l, now_us, ECONNREFUSED, &left_out),
        "failures of one kind make one line, though their words differ");
    ok (store_log_take (&l, now_us, EROFS, &left_out) && store_log_take (&l, now_us, 0, &left_out),
        "so does a failure of another kind, and a store that works again");
    for (int i = 0; i < 3590; i++, now_us += SECOND / 4)
        lines += store_log_take (&l, now_us, i % 2 ? 0 : ETIMEDOUT, &left_out);
    ok (lines == STORE_LOG_LINES - 3 + 14, "in a quarter of an hour of failures by turns there are %d lines", lines);
    ok (!store_log_take (&l, now_us, l.told ? 0 : EROFS, &left_out), "then a change makes no line at once");
    int last = l.seen;
    while (!store_log_take (&l, now_us += SECOND / 4, last, &left_out))
        ;
    ok (l.told == last && left_out > 100, "but within a minute, which counts what was left out: %d", (int)left_out);
    now_us += 3600 * SECOND;
    for (lines = 0; lines < 100 && store_log_take (&l, now_us, 1000 + lines, &left_out); lines++)
        ;
    ok (lines == STORE_LOG_LINES && left_out == 0, "after an hour as many lines as at first are allowed: %d", lines);
    return done_testing ();
}
