/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fluid.c - the type fluid: text and binary form, order, casts, fields, times, ranges, and new ids */
#include "extension.h"

#include <errno.h>

#include "access/hash.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "port/pg_bitutils.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/rangetypes.h"
#include "utils/sortsupport.h"
#include "utils/timestamp.h"

#if PG_VERSION_NUM < 160000 /* before PostgreSQL 16, errors are always thrown */
#define ereturn(soft, dummy, ...) ereport (ERROR, __VA_ARGS__)
#endif
#if PG_VERSION_NUM >= 160000
#define make_range(type, begin, end, empty) make_range (type, begin, end, empty, NULL)
#endif

#define UNIX_TO_POSTGRES_MS ((int64)(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000)

PG_FUNCTION_INFO_V1 (pg_fluid_next);
Datum pg_fluid_next (PG_FUNCTION_ARGS)
{
    PG_RETURN_FLUID (source_next ());
}

/* The planner calls this to ask whether a call can be simplified. It is called before the parallel workers of the query
 * start, so it prepares the source of ids for them.
 */
PG_FUNCTION_INFO_V1 (pg_fluid_support);
Datum pg_fluid_support (PG_FUNCTION_ARGS)
{
    Node *request = (Node *)PG_GETARG_POINTER (0);

    if (IsA (request, SupportRequestSimplify)) {
        PlannerInfo *root = ((SupportRequestSimplify *)request)->root;
        if (root && root->glob->parallelModeOK)
            source_prepare ();
    }
    PG_RETURN_POINTER (NULL);
}

/* --- text, bytes ----------------------------------------------------------------------------------- */

/* Read an id. If a text is malformed and the caller handles errors (pg_input_is_valid ()), the error is noted in
 * 'soft'; otherwise the error is thrown.
 */
static fluid_t read_text (const char *text, Node *soft)
{
    char *utf8 = pg_server_to_any (text, (int)strlen (text), PG_UTF8);
    fluid_t id;

    if (fluid_parse (utf8, strlen (utf8), &id, NULL) == 0)
        return id;
    if (errno == ERANGE)
        ereturn (soft, 0,
                 (errcode (ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                  errmsg ("\"%s\" is not a fluid: it is a number of more than 64 bits", text),
                  errhint ("A fluid is 0 to %s.", "18446744073709551615")));
    ereturn (soft, 0,
             (errcode (ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg ("\"%s\" is not a fluid", text),
              errhint ("Write it as 6731191091817518, 0x17e9fb8df16c2e, 0017.e9fb.8df1.6c2e, fuZZybuNNy, words or "
                       "emoji.")));
}

static char *write_text (fluid_t id, enum fluid_form form)
{
    char utf8[FLUID_TEXT_MAX];
    int len = fluid_format (id, form, utf8, sizeof (utf8));
    char *text = pg_any_to_server (utf8, len, PG_UTF8);

    return text == utf8 ? pstrdup (utf8) : text;
}

PG_FUNCTION_INFO_V1 (pg_fluid_in);
Datum pg_fluid_in (PG_FUNCTION_ARGS)
{
    PG_RETURN_FLUID (read_text (PG_GETARG_CSTRING (0), fcinfo->context));
}

PG_FUNCTION_INFO_V1 (pg_fluid_out);
Datum pg_fluid_out (PG_FUNCTION_ARGS)
{
    PG_RETURN_CSTRING (write_text (PG_GETARG_FLUID (0), settings_form ()));
}

PG_FUNCTION_INFO_V1 (pg_fluid_recv);
Datum pg_fluid_recv (PG_FUNCTION_ARGS)
{
    PG_RETURN_FLUID (pq_getmsgint64 ((StringInfo)PG_GETARG_POINTER (0)));
}

PG_FUNCTION_INFO_V1 (pg_fluid_send);
Datum pg_fluid_send (PG_FUNCTION_ARGS)
{
    StringInfoData buf;

    pq_begintypsend (&buf);
    pq_sendint64 (&buf, PG_GETARG_FLUID (0));
    PG_RETURN_BYTEA_P (pq_endtypsend (&buf));
}

PG_FUNCTION_INFO_V1 (pg_fluid_format);
Datum pg_fluid_format (PG_FUNCTION_ARGS)
{
    char *name = text_to_cstring (PG_GETARG_TEXT_PP (1));
    enum fluid_form form;

    if (!form_find (pg_server_to_any (name, (int)strlen (name), PG_UTF8), &form))
        ereport (ERROR, (errcode (ERRCODE_INVALID_PARAMETER_VALUE), errmsg ("unknown form \"%s\" of a fluid", name),
                         errhint ("The forms are dec, hex, dothex, f58, f58-utf8, words and emoji.")));
    PG_RETURN_TEXT_P (cstring_to_text (write_text (PG_GETARG_FLUID (0), form)));
}

/* --- order ------------------------------------------------------------------------------------------ */

#define COMPARISON(name, op)                                         \
    PG_FUNCTION_INFO_V1 (name);                                      \
    Datum name (PG_FUNCTION_ARGS)                                    \
    {                                                                \
        PG_RETURN_BOOL (PG_GETARG_FLUID (0) op PG_GETARG_FLUID (1)); \
    }

COMPARISON (pg_fluid_lt, <)
COMPARISON (pg_fluid_le, <=)
COMPARISON (pg_fluid_eq, ==)
COMPARISON (pg_fluid_ne, !=)
COMPARISON (pg_fluid_ge, >=)
COMPARISON (pg_fluid_gt, >)

static int compare (fluid_t a, fluid_t b)
{
    return (a > b) - (a < b);
}

PG_FUNCTION_INFO_V1 (pg_fluid_cmp);
Datum pg_fluid_cmp (PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32 (compare (PG_GETARG_FLUID (0), PG_GETARG_FLUID (1)));
}

#if SIZEOF_DATUM < 8
static int compare_datums (Datum a, Datum b, SortSupport sort)
{
    return compare (DatumGetFluid (a), DatumGetFluid (b));
}
#else
#define compare_datums ssup_datum_unsigned_cmp /* PostgreSQL sorts faster with this function */
#endif

PG_FUNCTION_INFO_V1 (pg_fluid_sortsupport);
Datum pg_fluid_sortsupport (PG_FUNCTION_ARGS)
{
    ((SortSupport)PG_GETARG_POINTER (0))->comparator = compare_datums;
    PG_RETURN_VOID ();
}

PG_FUNCTION_INFO_V1 (pg_fluid_hash);
Datum pg_fluid_hash (PG_FUNCTION_ARGS)
{
    return hashint8 (fcinfo);
}

PG_FUNCTION_INFO_V1 (pg_fluid_hash_extended);
Datum pg_fluid_hash_extended (PG_FUNCTION_ARGS)
{
    return hashint8extended (fcinfo);
}

PG_FUNCTION_INFO_V1 (pg_fluid_smaller);
Datum pg_fluid_smaller (PG_FUNCTION_ARGS)
{
    PG_RETURN_FLUID (Min (PG_GETARG_FLUID (0), PG_GETARG_FLUID (1)));
}

PG_FUNCTION_INFO_V1 (pg_fluid_larger);
Datum pg_fluid_larger (PG_FUNCTION_ARGS)
{
    PG_RETURN_FLUID (Max (PG_GETARG_FLUID (0), PG_GETARG_FLUID (1)));
}

/* --- other types, fields ------------------------------------------------------------------------------ */

PG_FUNCTION_INFO_V1 (pg_fluid_to_bigint);
Datum pg_fluid_to_bigint (PG_FUNCTION_ARGS)
{
    fluid_t id = PG_GETARG_FLUID (0);

    if (id > PG_INT64_MAX)
        ereport (ERROR, (errcode (ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                         errmsg ("fluid %s does not fit into a bigint", write_text (id, FLUID_DEC)),
                         errhint ("Fluids of the first 17 years fit; numeric holds all.")));
    PG_RETURN_INT64 ((int64)id);
}

PG_FUNCTION_INFO_V1 (pg_fluid_of_bigint);
Datum pg_fluid_of_bigint (PG_FUNCTION_ARGS)
{
    int64 n = PG_GETARG_INT64 (0);

    if (n < 0)
        ereport (ERROR, (errcode (ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg (INT64_FORMAT " is not a fluid", n),
                         errhint ("No fluid is negative.")));
    PG_RETURN_FLUID (n);
}

PG_FUNCTION_INFO_V1 (pg_fluid_to_numeric);
Datum pg_fluid_to_numeric (PG_FUNCTION_ARGS)
{
    char *text = write_text (PG_GETARG_FLUID (0), FLUID_DEC);

    return DirectFunctionCall3 (numeric_in, CStringGetDatum (text), ObjectIdGetDatum (InvalidOid), Int32GetDatum (-1));
}

/* Convert a numeric to an id. Its text must be a decimal number; other forms of ids are refused. */
PG_FUNCTION_INFO_V1 (pg_fluid_of_numeric);
Datum pg_fluid_of_numeric (PG_FUNCTION_ARGS)
{
    Datum n = DirectFunctionCall1 (numeric_trim_scale, PG_GETARG_DATUM (0)); /* without this, 5.0 would be refused */
    char *text = DatumGetCString (DirectFunctionCall1 (numeric_out, n));

    if (strspn (text, "0123456789") != strlen (text))
        ereport (ERROR, (errcode (ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg ("%s is not a fluid", text),
                         errhint ("A fluid is a whole number, and not negative.")));
    PG_RETURN_FLUID (read_text (text, NULL));
}

PG_FUNCTION_INFO_V1 (pg_fluid_generator);
Datum pg_fluid_generator (PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32 ((int32)fluid_split (PG_GETARG_FLUID (0)).generator);
}

PG_FUNCTION_INFO_V1 (pg_fluid_sequence);
Datum pg_fluid_sequence (PG_FUNCTION_ARGS)
{
    PG_RETURN_INT32 ((int32)fluid_split (PG_GETARG_FLUID (0)).sequence);
}

/* --- times ------------------------------------------------------------------------------------------ */

/* Return the Unix milliseconds of a finite time, rounded up. */
static int64 unix_ms_of (TimestampTz at)
{
    int64 ms = at / 1000;

    return ms + (at % 1000 > 0) + UNIX_TO_POSTGRES_MS;
}

static TimestampTz time_of (int64 unix_ms)
{
    return (unix_ms - UNIX_TO_POSTGRES_MS) * 1000;
}

PG_FUNCTION_INFO_V1 (pg_fluid_epoch);
Datum pg_fluid_epoch (PG_FUNCTION_ARGS)
{
    PG_RETURN_TIMESTAMPTZ (time_of (source_epoch_ms ()));
}

PG_FUNCTION_INFO_V1 (pg_fluid_time);
Datum pg_fluid_time (PG_FUNCTION_ARGS)
{
    int64 ms = (int64)fluid_split (PG_GETARG_FLUID (0)).timestamp_ms;

    PG_RETURN_TIMESTAMPTZ (time_of (source_epoch_ms () + ms));
}

/* Find the smallest id that was not made before a time. Returns false if all ids are made before this time. */
static bool bound_of (TimestampTz at, fluid_t *bound)
{
    struct fluid_fields f = { .timestamp_ms = 0 };

    if (TIMESTAMP_IS_NOEND (at))
        return false;
    if (!TIMESTAMP_IS_NOBEGIN (at)) {
        int64 ms = unix_ms_of (at) - source_epoch_ms ();
        f.timestamp_ms = ms > 0 ? (uint64)ms : 0;
    }
    return fluid_join (&f, bound) == 0;
}

PG_FUNCTION_INFO_V1 (pg_fluid_from);
Datum pg_fluid_from (PG_FUNCTION_ARGS)
{
    fluid_t bound;

    if (!bound_of (PG_GETARG_TIMESTAMPTZ (0), &bound))
        ereport (ERROR,
                 (errcode (ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                  errmsg ("no fluid is of %s or later: their time ends on %s",
                          timestamptz_to_str (PG_GETARG_TIMESTAMPTZ (0)),
                          pstrdup (timestamptz_to_str (time_of (source_epoch_ms () + (int64)FLUID_TIMESTAMP_MAX)))),
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
    if (begin.infinite) /* no id can be made at or after the beginning */
        PG_RETURN_RANGE_P (make_empty_range (type));
    PG_RETURN_RANGE_P (make_range (type, &begin, &end, false));
}

/* Find the first and the last id of a range. If the range is empty, 'first' becomes greater than 'last'. */
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
