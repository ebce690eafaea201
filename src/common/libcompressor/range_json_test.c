/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range_json_test.c - creation ranges as JSON: only the published form is accepted */

#include <errno.h>
#include <string.h>
#include <idtree/idcomp.h>

#include "test/tap.h"

#define S "88888888-8888-4888-b088-888888888888"

static const char full[] = "{\"sessionId\":\"" S
                           "\",\"ids\":{\"firstGenCount\":3,\"count\":9,\"requestedClusterSize\":512,"
                           "\"localIdRanges\":[[3,2],[9007199254740991,1]]}}";

static const char *const accepted[] = {
    "{\"sessionId\":\"" S "\"}",
    " {\n\t\"sessionId\" : \"" S "\"\r } ",
    "{\"ids\":{\"localIdRanges\":[],\"requestedClusterSize\":1,\"count\":2,\"firstGenCount\":1},"
    "\"sessionId\":\"" S "\"}",
    "{\"sessionId\":\"\",\"ids\":{\"firstGenCount\":-1,\"count\":0,\"requestedClusterSize\":-"
    "9007199254740991,"
    "\"localIdRanges\":[ [ 1 , 2 ] , [ 4 , 1 ] ]}}",
};

#define IDS(first, runs)                                         \
    "{\"sessionId\":\"" S "\",\"ids\":{\"firstGenCount\":" first \
    ",\"count\":1,\"requestedClusterSize\":1,\"localIdRanges\":" runs "}}"

static const char *const refused[] = {
    "",
    "null",
    "[]",
    "{}",
    "{\"sessionId\":null}",
    "{\"sessionId\":1}",
    "{\"sessionid\":\"" S "\"}",
    "{\"sessionId\":\"" S "\",}",
    "{\"sessionId\":\"" S "\"}}",
    "{\"sessionId\":\"" S "\"}x",
    "{\"sessionId\":\"" S "\",\"sessionId\":\"" S "\"}",
    "{\"sessionId\":\"" S "0\"}",
    "{\"sessionId\":\"\\u0038\"}",
    "{\"sessionId\":\"a\nb\"}",
    "{\"sessionId\":\"" S "\",\"ids\":null}",
    "{\"sessionId\":\"" S "\",\"ids\":{}}",
    "{\"sessionId\":\"" S "\",\"ids\":{\"firstGenCount\":1,\"count\":1,\"requestedClusterSize\":1}}",
    "{\"sessionId\":\"" S "\",\"ids\":{\"firstGenCount\":1,\"count\":1,\"localIdRanges\":[]}}",
    "{\"sessionId\":\"" S "\",\"ids\":{\"firstGenCount\":1,\"firstGenCount\":1,\"count\":1,"
    "\"requestedClusterSize\":1,\"localIdRanges\":[]}}",
    "{\"sessionId\":\"" S "\",\"ids\":{\"firstGenCount\":1,\"count\":1,\"requestedClusterSize\":1,"
    "\"localIdRanges\":[],\"more\":1}}",
    "{\"sessionId\":\"" S "\",\"more\":1}",
    "{\"ids\":{\"firstGenCount\":1,\"count\":1,\"requestedClusterSize\":1,\"localIdRanges\":[]}}",
    IDS ("9007199254740992", "[]"),
    IDS ("99999999999999999999999", "[]"),
    IDS ("01", "[]"),
    IDS ("+1", "[]"),
    IDS ("1.0", "[]"),
    IDS ("1e3", "[]"),
    IDS ("\"1\"", "[]"),
    IDS ("-", "[]"),
    IDS ("", "[]"),
    IDS ("1", "{}"),
    IDS ("1", "[1]"),
    IDS ("1", "[[1]]"),
    IDS ("1", "[[1,2,3]]"),
    IDS ("1", "[[1,2],]"),
    IDS ("1", "[,[1,2]]"),
    IDS ("1", "[[1,2][3,1]]"),
    IDS ("1", "[[1,2]"),
};

/* Parses a copy of exactly this size, so that sanitizers find reads beyond it. */
static int decode (const char *text, size_t len, struct idcomp_range *range)
{
    char *copy = malloc (len > 0 ? len : 1);

    memcpy (copy, text, len);
    errno = 0;
    int rc = idcomp_range_parse (copy, len, range, NULL);
    free (copy);
    return rc;
}

static void check_round_trip (void)
{
    struct idcomp_range r;
    char text[512];
    bool good = true;

    ok (decode (full, strlen (full), &r) == 0, "the JSON text of a range is read");
    ok (strcmp (r.session, S) == 0 && r.has_ids && r.first == 3 && r.count == 9 && r.cluster_size == 512 && r.nruns == 2
            && r.runs[1].first == IDCOMP_ID_MAX && r.runs[1].count == 1,
        "the range that was read has all members of the text");
    size_t len = (size_t)idcomp_range_format (&r, text, sizeof (text));
    ok (len == strlen (full) && idcomp_range_format_size (&r) == len + 1 && strcmp (text, full) == 0,
        "a range that was read is written as the same text");
    for (size_t size = 0; size <= len; size++) {
        memset (text, 'x', sizeof (text));
        errno = 0;
        good &= idcomp_range_format (&r, text, size) < 0 && errno == ENOSPC && text[size] == 'x';
    }
    ok (good, "a buffer of any size that is too small gives ENOSPC, and no byte after it is written");
    idcomp_range_fini (&r);
    ok (!r.has_ids && !r.runs && r.nruns == 0, "a freed range is empty");
}

static void check_refused (void)
{
    struct idcomp_range r = { .first = 77 };
    bool good = true;

    for (size_t i = 0; i < sizeof (refused) / sizeof (refused[0]); i++)
        ok (decode (refused[i], strlen (refused[i]), &r) < 0 && errno == IDCOMP_ERANGE_FORM,
            "a malformed text of a range is refused: %s", refused[i]);
    for (size_t len = 0; len < strlen (full); len++)
        good &= decode (full, len, &r) < 0 && errno == IDCOMP_ERANGE_FORM;
    ok (good, "the text of a range that is cut after any byte is refused");
    ok (r.first == 77, "a refused text leaves the range in the caller's memory unchanged");
}

static void check_errpos (void)
{
    static const struct {
        const char *text;
        size_t pos;
    } faults[] = {
        { "", 0 },
        { "[]", 0 },
        { "{\"sessionId\":7}", 13 },
        { "{\"sessionID\":\"\"}", 1 },
        { "{\"sessionId\":\"\",\"sessionId\":\"\"}", 16 },
        { "{\"sessionId\":\"a\\n\"}", 15 },
        { "{\"sessionId\":\"a", 15 },
        { "{\"ids\":{\"count\":03}}", 17 },
        { "{\"ids\":{\"count\":1.5}}", 17 },
        { "{\"ids\":{\"localIdRanges\":[[1,x]]}}", 28 },
        { "{\"sessionId\":\"\"} x", 17 },
    };
    struct idcomp_range r;
    size_t good = 0, n = sizeof (faults) / sizeof (faults[0]), pos;

    for (size_t i = 0; i < n; i++)
        if (idcomp_range_parse (faults[i].text, strlen (faults[i].text), &r, &pos) < 0 && pos == faults[i].pos)
            good++;
        else
            diag ("%s: %zu", faults[i].text, pos);
    ok (good == n, "the position of an error in the text of a range is reported (%zu)", good);
}

/* Whether a text with 'n' runs is accepted. */
static bool takes_runs (size_t n)
{
    static const char head[] = "{\"sessionId\":\"" S "\",\"ids\":{\"firstGenCount\":1,\"count\":1,"
                               "\"requestedClusterSize\":1,\"localIdRanges\":[";
    char *text = malloc (sizeof (head) + 6 * n + 4);
    char *p = stpcpy (text, head);
    struct idcomp_range r = { .nruns = 0 };

    for (size_t i = 0; i < n; i++)
        p = stpcpy (p, i > 0 ? ",[1,1]" : "[1,1]");
    p = stpcpy (p, "]}}");
    bool good = decode (text, p - text, &r) == 0 && r.nruns == n;
    idcomp_range_fini (&r);
    free (text);
    return good;
}

int main (void)
{
    check_round_trip ();
    for (size_t i = 0; i < sizeof (accepted) / sizeof (accepted[0]); i++) {
        struct idcomp_range r;
        if (ok (decode (accepted[i], strlen (accepted[i]), &r) == 0,
                "an unusual valid text of a range is accepted: form %zu", i))
            idcomp_range_fini (&r);
    }
    check_refused ();
    check_errpos ();
    ok (takes_runs (IDCOMP_RANGE_RUNS_MAX), "a range may have IDCOMP_RANGE_RUNS_MAX runs");
    ok (!takes_runs (IDCOMP_RANGE_RUNS_MAX + 1), "a range with one more run is refused");
    return done_testing ();
}
