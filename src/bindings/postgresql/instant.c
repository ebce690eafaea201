/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instant.c - times of ids: the epoch, the date of an id, the bounds of ids of a time */
#include "instant.h"

#include <errno.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/rangetypes.h"
#include "utils/timestamp.h"

#include "extension.h"
#include "source.h"

#if PG_VERSION_NUM >= 160000
#define make_range(type, begin, end, empty) make_range (type, begin, end, empty, NULL)
#endif

#define UNIX_TO_POSTGRES_MS ((int64)(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000)

int64 instant_to_unix_ms (TimestampTz at)
{
    int64 ms = at / 1000;

    return ms + (at % 1000 > 0) + UNIX_TO_POSTGRES_MS;
}

TimestampTz instant_of_unix_ms (int64 unix_ms)
{
    return (unix_ms - UNIX_TO_POSTGRES_MS) * 1000;
}

/* --- dates as text --------------------------------------------------------------------------------- */

static bool skip (const char **p, char c)
{
    bool is = **p == c;

    *p += is;
    return is;
}

/* Read 'n' digits, up to a value of 'most'. */
static bool read_number (const char **p, int n, int most, int *value)
{
    *value = 0;
    for (; n > 0; n--, ++*p) {
        if (**p < '0' || **p > '9')
            return false;
        *value = *value * 10 + (**p - '0');
    }
    return *value <= most;
}

static bool read_day (const char **p, int64 *days)
{
    int year, month, day;

    if (!read_number (p, 4, 9999, &year) || !skip (p, '-') || !read_number (p, 2, 12, &month) || !skip (p, '-')
        || !read_number (p, 2, 31, &day))
        return false;
    if (month < 1 || day < 1 || day > day_tab[isleap (year)][month - 1])
        return false;
    *days = date2j (year, month, day) - UNIX_EPOCH_JDATE;
    return true;
}

static bool read_time (const char **p, int64 *ms)
{
    int hour, minute, second = 0, fraction = 0, digit;

    if (!read_number (p, 2, 23, &hour) || !skip (p, ':') || !read_number (p, 2, 59, &minute))
        return false;
    if (skip (p, ':') && !read_number (p, 2, 59, &second))
        return false;
    if (skip (p, '.'))
        for (int unit = 100; **p >= '0' && **p <= '9'; unit /= 10) {
            if (!read_number (p, 1, unit > 0 ? 9 : 0, &digit)) /* no microseconds */
                return false;
            fraction += digit * unit;
        }
    *ms = ((hour * 60 + minute) * 60 + second) * 1000LL + fraction;
    return true;
}

static bool read_zone (const char **p, int64 *ms)
{
    int hour, minute = 0;
    bool west = **p == '-';

    *ms = 0;
    if (!**p || skip (p, 'Z'))
        return true;
    if ((!skip (p, '+') && !skip (p, '-')) || !read_number (p, 2, 15, &hour))
        return false;
    (void)skip (p, ':');
    if (**p && !read_number (p, 2, 59, &minute))
        return false;
    *ms = (hour * 60 + minute) * (west ? -60000LL : 60000LL);
    return true;
}

bool instant_read (const char *text, int64 *unix_ms)
{
    int64 days, time_ms = 0, zone_ms;

    if (!read_day (&text, &days))
        return false;
    if ((skip (&text, 'T') || skip (&text, ' ')) && !read_time (&text, &time_ms))
        return false;
    if (!read_zone (&text, &zone_ms) || *text)
        return false;
    *unix_ms = days * SECS_PER_DAY * 1000 + time_ms - zone_ms;
    return true;
}

/* --- in SQL -------------------------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1 (pg_fluid_epoch);
Datum pg_fluid_epoch (PG_FUNCTION_ARGS)
{
    PG_RETURN_TIMESTAMPTZ (instant_of_unix_ms (source_epoch_ms ()));
}

PG_FUNCTION_INFO_V1 (pg_fluid_time);
Datum pg_fluid_time (PG_FUNCTION_ARGS)
{
    int64 ms = (int64)fluid_split (PG_GETARG_FLUID (0)).timestamp_ms;

    PG_RETURN_TIMESTAMPTZ (instant_of_unix_ms (source_epoch_ms () + ms));
}

/* The smallest id that is not made before a time. Returns false if all ids are before it. */
static bool bound_of (TimestampTz at, fluid_t *bound)
{
    struct fluid_fields f = { .timestamp_ms = 0 };

    if (TIMESTAMP_IS_NOEND (at))
        return false;
    if (!TIMESTAMP_IS_NOBEGIN (at)) {
        int64 ms = instant_to_unix_ms (at) - source_epoch_ms ();
        f.timestamp_ms = ms > 0 ? (uint64)ms : 0;
    }
    return fluid_join (&f, bound) == 0;
}

PG_FUNCTION_INFO_V1 (pg_fluid_from);
Datum pg_fluid_from (PG_FUNCTION_ARGS)
{
    fluid_t bound;

    if (!bound_of (PG_GETARG_TIMESTAMPTZ (0), &bound))
        ereport (ERROR, (errcode (ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                         errmsg ("no fluid is of %s or later: their time ends on %s",
                                 timestamptz_to_str (PG_GETARG_TIMESTAMPTZ (0)),
                                 pstrdup (timestamptz_to_str (
                                     instant_of_unix_ms (source_epoch_ms () + (int64)FLUID_TIMESTAMP_MAX)))),
                         errhint ("Leave the bound out if possible: MAXVALUE of a partition, or fluid_range (..., "
                                  "'infinity').")));
    PG_RETURN_FLUID (bound);
}

/* --- ranges --------------------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1 (pg_fluid_range);
Datum pg_fluid_range (PG_FUNCTION_ARGS)
{
    TypeCacheEntry *type = range_get_typcache (fcinfo, get_fn_expr_rettype (fcinfo->flinfo));
    RangeBound begin = { .inclusive = true, .lower = true }, end = { .lower = false };
    fluid_t from = 0, to = 0;

    begin.infinite = !bound_of (PG_GETARG_TIMESTAMPTZ (0), &from);
    end.infinite = !bound_of (PG_GETARG_TIMESTAMPTZ (1), &to);
    begin.val = FluidGetDatum (from);
    end.val = FluidGetDatum (to);
    if (begin.infinite) /* no id is as late */
        PG_RETURN_RANGE_P (make_empty_range (type));
    PG_RETURN_RANGE_P (make_range (type, &begin, &end, false));
}

/* The first and the last id of a range. If the range is empty, the first is greater than the last. */
static void ends (FunctionCallInfo fcinfo, fluid_t *first, fluid_t *last)
{
    RangeType *range = PG_GETARG_RANGE_P (0);
    RangeBound lower, upper;
    bool empty;

    range_deserialize (range_get_typcache (fcinfo, RangeTypeGetOid (range)), range, &lower, &upper, &empty);
    *first = empty || lower.infinite ? 0 : DatumGetFluid (lower.val);
    *last = empty || upper.infinite ? UINT64_MAX : DatumGetFluid (upper.val);
    bool behind = !lower.infinite && !lower.inclusive, before = !upper.infinite && !upper.inclusive;
    if (empty || (behind && *first == UINT64_MAX) || (before && *last == 0)) {
        *first = UINT64_MAX;
        *last = 0;
        return;
    }
    *first += behind;
    *last -= before;
}

PG_FUNCTION_INFO_V1 (pg_fluid_first);
Datum pg_fluid_first (PG_FUNCTION_ARGS)
{
    fluid_t first, last;

    ends (fcinfo, &first, &last);
    PG_RETURN_FLUID (first);
}

PG_FUNCTION_INFO_V1 (pg_fluid_last);
Datum pg_fluid_last (PG_FUNCTION_ARGS)
{
    fluid_t first, last;

    ends (fcinfo, &first, &last);
    PG_RETURN_FLUID (last);
}
