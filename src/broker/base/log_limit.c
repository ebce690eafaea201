/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* log_limit.c - lines that other programs can cause without limit: the first of a period, then the number left out
 *
 * A period lasts until the number of its left out lines is reported, so that no number is lost.
 */
#include "broker/base/log_limit.h"

static bool has_ended (const struct log_limit *l, double now)
{
    return now - l->since >= LOG_LIMIT_PERIOD_S;
}

bool log_limit_take (struct log_limit *l, double now)
{
    if (l->lines == 0 || (has_ended (l, now) && l->left_out == 0))
        *l = (struct log_limit){ .since = now };
    if (l->lines < LOG_LIMIT_LINES) {
        l->lines++;
        return true;
    }
    l->left_out++;
    return false;
}

unsigned long log_limit_left_out (struct log_limit *l, double now)
{
    unsigned long n = l->left_out;

    if (n == 0 || !has_ended (l, now))
        return 0;
    *l = (struct log_limit){ 0 };
    return n;
}
