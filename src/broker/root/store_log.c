/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store_log.c - when to log that the store fails, or works again */
#include "config.h"

#include "broker/root/store_log.h"

/* One line is allowed again each minute. */
static void make_up (struct store_log *l, uint64_t now_us)
{
    uint64_t n = (now_us - l->since_us) / STORE_LOG_US;

    l->lines = n < l->lines ? l->lines - (uint32_t)n : 0;
    l->since_us = l->lines > 0 ? l->since_us + n * STORE_LOG_US : now_us;
}

bool store_log_take (struct store_log *l, uint64_t now_us, int errnum, uint64_t *left_out)
{
    make_up (l, now_us);
    if (errnum == l->told || l->lines == STORE_LOG_LINES) {
        l->left_out += errnum != l->seen;
        l->seen = errnum;
        return false;
    }
    *left_out = l->left_out;
    l->told = l->seen = errnum;
    l->left_out = 0;
    l->lines++;
    return true;
}
