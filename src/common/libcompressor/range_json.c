/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range_json.c - creation ranges as JSON text
 *
 *   {"sessionId":TEXT}
 *   {"sessionId":TEXT,"ids":{"firstGenCount":N,"count":N,"requestedClusterSize":N,
 *                            "localIdRanges":[[N,N],...]}}
 *
 * Any other text is refused. An object has all of its members, once each, in any order; texts have no escapes; integers
 * have no fraction or exponent, and are exact in a double.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idcomp.h>

#include "libutil/errprintf.h"

/* --- writing --- */

struct writer {
    char *buf;
    size_t size;
    size_t len; /* of the whole text, including what does not fit */
};

__attribute__ ((format (printf, 2, 3))) static void put (struct writer *w, const char *fmt, ...)
{
    bool full = w->len >= w->size;
    va_list ap;

    va_start (ap, fmt);
    w->len += vsnprintf (full ? NULL : w->buf + w->len, full ? 0 : w->size - w->len, fmt, ap);
    va_end (ap);
}

static size_t write_range (const struct idcomp_range *range, char *buf, size_t size)
{
    struct writer w = { buf, size, 0 };

    put (&w, "{\"sessionId\":\"%s\"", range->session);
    if (range->has_ids) {
        put (&w,
             ",\"ids\":{\"firstGenCount\":%" PRId64 ",\"count\":%" PRId64 ",\"requestedClusterSize\":%" PRId64
             ",\"localIdRanges\":[",
             range->first, range->count, range->cluster_size);
        for (size_t i = 0; i < range->nruns; i++)
            put (&w, "%s[%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "", range->runs[i].first, range->runs[i].count);
        put (&w, "]}");
    }
    put (&w, "}");
    return w.len;
}

size_t idcomp_range_format_size (const struct idcomp_range *range)
{
    return write_range (range, NULL, 0) + 1;
}

ssize_t idcomp_range_format (const struct idcomp_range *range, char *buf, size_t size)
{
    size_t len = write_range (range, buf, size);

    if (len >= size)
        return errset (ENOSPC);
    return (ssize_t)len;
}

/* --- reading: each function returns true and advances, or returns false and stays at the error --- */

struct range_reader {
    const char *p;
    const char *end;
    bool nomem;
};

static void skip_blanks (struct range_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

/* Read the character 'mark', with blanks around it. */
static bool get_mark (struct range_reader *r, char mark)
{
    skip_blanks (r);
    if (r->p == r->end || *r->p != mark)
        return false;
    r->p++;
    skip_blanks (r);
    return true;
}

static bool get_text (struct range_reader *r, char *text, size_t size)
{
    size_t n = 0;

    if (r->p == r->end || *r->p != '"')
        return false;
    r->p++;
    while (r->p < r->end && *r->p != '"') {
        if (*r->p == '\\' || (unsigned char)*r->p < 0x20 || n + 1 >= size)
            return false;
        text[n++] = *r->p++;
    }
    text[n] = '\0';
    if (r->p == r->end)
        return false;
    r->p++;
    return true;
}

static bool get_integer (struct range_reader *r, int64_t *number)
{
    bool negative = r->p < r->end && *r->p == '-';
    int64_t x = 0;

    r->p += negative;
    const char *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        x = x * 10 + (*r->p - '0');
        if (x > IDCOMP_ID_MAX || (*start == '0' && r->p > start))
            return false;
        r->p++;
    }
    if (r->p == start)
        return false;
    *number = negative ? -x : x;
    return true;
}

/* Read an element of "localIdRanges" and append it. */
static bool get_run (struct range_reader *r, struct idcomp_range *range, size_t *room)
{
    struct idcomp_run run;

    if (!get_mark (r, '[') || !get_integer (r, &run.first) || !get_mark (r, ',') || !get_integer (r, &run.count)
        || !get_mark (r, ']') || range->nruns == IDCOMP_RANGE_RUNS_MAX)
        return false;
    if (range->nruns == *room) {
        size_t more = *room * 2 + 4;
        struct idcomp_run *v = realloc (range->runs, more * sizeof (*v));
        if (!v) {
            r->nomem = true;
            return false;
        }
        range->runs = v;
        *room = more;
    }
    range->runs[range->nruns++] = run;
    return true;
}

static bool get_runs (struct range_reader *r, struct idcomp_range *range)
{
    size_t room = 0;

    if (!get_mark (r, '['))
        return false;
    if (get_mark (r, ']'))
        return true;
    do {
        if (!get_run (r, range, &room))
            return false;
    } while (get_mark (r, ','));
    return get_mark (r, ']');
}

typedef bool (*member_f) (struct range_reader *r, int member, struct idcomp_range *range);

/* Read an object whose members are among 'names'; 'value' reads the value of a member. Bit i of '*seen' is set if
 * member i is present.
 */
static bool get_object (struct range_reader *r, const char *const names[], int n, member_f value,
                        struct idcomp_range *range, unsigned int *seen)
{
    char name[24];
    int i;

    *seen = 0;
    if (!get_mark (r, '{'))
        return false;
    do {
        const char *start = r->p;
        if (!get_text (r, name, sizeof (name)))
            return false;
        for (i = 0; i < n && strcmp (name, names[i]) != 0; i++)
            ;
        if (i == n || *seen & 1U << i) {
            r->p = start;
            return false;
        }
        if (!get_mark (r, ':') || !value (r, i, range))
            return false;
        *seen |= 1U << i;
    } while (get_mark (r, ','));
    return get_mark (r, '}');
}

enum { FIRST, COUNT, CLUSTER_SIZE, RUNS, IDS_MEMBERS };
enum { SESSION, IDS, RANGE_MEMBERS };

static const char *const ids_members[] = {
    [FIRST] = "firstGenCount",
    [COUNT] = "count",
    [CLUSTER_SIZE] = "requestedClusterSize",
    [RUNS] = "localIdRanges",
};
static const char *const range_members[] = { [SESSION] = "sessionId", [IDS] = "ids" };

static bool get_ids_member (struct range_reader *r, int member, struct idcomp_range *range)
{
    switch (member) {
    case FIRST:
        return get_integer (r, &range->first);
    case COUNT:
        return get_integer (r, &range->count);
    case CLUSTER_SIZE:
        return get_integer (r, &range->cluster_size);
    default:
        return get_runs (r, range);
    }
}

static bool get_range_member (struct range_reader *r, int member, struct idcomp_range *range)
{
    unsigned int seen;

    if (member == SESSION)
        return get_text (r, range->session, sizeof (range->session));
    range->has_ids = true;
    return get_object (r, ids_members, IDS_MEMBERS, get_ids_member, range, &seen) && seen == (1U << IDS_MEMBERS) - 1;
}

int idcomp_range_parse (const char *text, size_t len, struct idcomp_range *range, size_t *errpos)
{
    struct range_reader r = { .p = text, .end = text + len };
    struct idcomp_range x = { .has_ids = false };
    unsigned int seen;

    if (!get_object (&r, range_members, RANGE_MEMBERS, get_range_member, &x, &seen) || !(seen & 1U << SESSION)
        || r.p != r.end) {
        idcomp_range_fini (&x);
        if (errpos)
            *errpos = r.p - text;
        return errset (r.nomem ? ENOMEM : IDCOMP_ERANGE_FORM);
    }
    *range = x;
    return 0;
}
