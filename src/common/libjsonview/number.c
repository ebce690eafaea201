/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* number.c - the values of numbers */
#include <stdio.h>
#include <stdlib.h>

#include "libjsonview/private.h"
#include "libutil/minmax.h"

#define DIGITS_MAX 800 /* significant digits of a real: of further digits it matters only whether any is not 0 */
#define EXPONENT 99999 /* largest exponent with 1 to 800 digits: all beyond are 0 or infinite */

int64_t jv_integer (const struct jv *v)
{
    if (!jv_is (v, JV_INTEGER))
        return 0;
    bool negative = *v->text == '-';
    uint64_t n = 0;
    for (uint32_t i = negative; i < v->size; i++)
        n = n * 10 + (uint64_t)(v->text[i] - '0');
    return (int64_t)(negative ? 0 - n : n);
}

/* Read an exponent up to a limit above which its value does not matter. */
static int64_t read_exponent (const char *p, const char *end)
{
    static const int64_t most = INT64_C (1) << 40; /* more than the digits that a text can have */
    bool negative = *p == '-';
    int64_t n = 0;

    for (p += *p == '-' || *p == '+'; p < end; p++)
        n = min_i64 (n * 10 + (*p - '0'), most);
    return negative ? -n : n;
}

/* Copy the significant digits and an exponent to a buffer: strtod () needs a NUL behind them, and the locale might need
 * another decimal separator than a period.
 */
static double read_real (const char *text, uint32_t size)
{
    char buf[DIGITS_MAX + 32];
    const char *p = text, *end = text + size;
    int64_t exponent = 0;
    size_t n = 0;
    bool behind = false, more = false;

    for (p += *p == '-'; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            behind = true;
            continue;
        }
        exponent -= behind;
        if (n == DIGITS_MAX) {
            more |= *p != '0';
            exponent++;
        }
        else if (n > 0 || *p != '0')
            buf[n++] = *p;
    }
    if (n == 0)
        return *text == '-' ? -0.0 : 0.0;
    if (more && buf[n - 1] == '0')
        buf[n - 1] = '1';
    if (p < end)
        exponent += read_exponent (p + 1, end);
    snprintf (buf + n, sizeof (buf) - n, "e%d", (int)(exponent < -EXPONENT ? -EXPONENT : min_i64 (exponent, EXPONENT)));
    double d = strtod (buf, NULL);
    return *text == '-' ? -d : d;
}

double jv_number (const struct jv *v)
{
    return jv_is (v, JV_REAL) ? read_real (v->text, v->size) : (double)jv_integer (v);
}
