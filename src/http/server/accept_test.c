/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

#include <string.h>

#include "http/server/header.h"
#include "test/tap.h"

static const char *const metrics[] = { "text/plain; version=0.0.4; charset=utf-8",
                                       "application/openmetrics-text; version=1.0.0; charset=utf-8" };
static const char *const ids[] = { "application/json", "text/plain" };

static size_t choose (const char *const types[2], const char *first, const char *second)
{
    struct accept a;

    accept_init (&a, types, 2);
    if (first)
        accept_read (&a, first);
    if (second)
        accept_read (&a, second);
    return accept_choose (&a);
}

static size_t m (const char *value)
{
    size_t i = choose (metrics, value, NULL);

    diag ("%s: %s", value, metrics[i]);
    return i;
}

static size_t n (const char *value)
{
    size_t i = choose (ids, value, NULL);

    diag ("%s: %s", value, ids[i]);
    return i;
}

static void test_weights (void)
{
    ok (m ("text/plain;q=0.6, application/openmetrics-text;q=0.5") == 0
            && m ("text/plain;q=0.5, application/openmetrics-text;q=0.6") == 1
            && m ("application/openmetrics-text;q=0.501,text/plain;q=0.5") == 1,
        "the type with the greater weight wins, in any order");
    ok (m ("application/openmetrics-text;q=0") == 0
            && m ("application/openmetrics-text;q=0.000, text/plain;q=0.001") == 0
            && m ("text/plain;q=0, application/openmetrics-text;q=0.001") == 1 && n ("text/plain;q=0") == 0
            && n ("application/json;q=0, */*") == 1,
        "a type with weight 0 is not accepted");
    ok (m ("application/openmetrics-text") == 1 && m ("text/plain") == 0 && n ("text/plain") == 1
            && n ("text/plain;q=0.1, application/json") == 0,
        "the default weight of a type is 1");
    ok (m ("application/openmetrics-text;q=2, text/plain;q=0.1") == 0 && m ("application/openmetrics-text;q=1.001") == 0
            && m ("application/openmetrics-text;q=.5") == 0 && m ("application/openmetrics-text;q=") == 0
            && m ("application/openmetrics-text;q=0.5000") == 0 && m ("application/openmetrics-text;q=1.000") == 1
            && m ("application/openmetrics-text;q=1.") == 1 && m ("application/openmetrics-text;q") == 0,
        "a range of types with a malformed weight is ignored");
}

static void test_ranges (void)
{
    ok (m ("*/*") == 0 && n ("*/*") == 0 && n ("text/*") == 1 && m ("text/*") == 0 && m ("application/*") == 1,
        "a range of types may match all types, or all subtypes of a type");
    ok (m ("application/openmetrics-text, */*") == 1 && n ("text/plain, */*") == 1 && n ("*/*, text/plain") == 1,
        "among types of equal weight one that is named wins");
    ok (n ("application/json, text/plain, */*") == 0 && m ("text/plain, application/openmetrics-text") == 0,
        "among types of equal weight that are not named the default wins");
    ok (m ("*/*;q=0.9, application/openmetrics-text;q=0.1") == 0 && n ("text/*;q=1, text/plain;q=0, */*;q=0.5") == 0
            && n ("*/*;q=1, application/json;q=0.2") == 1,
        "a type has the weight of the most specific range that matches");
    ok (m ("application/openmetrics-textual") == 0 && m ("xapplication/openmetrics-text") == 0
            && m ("application*") == 0 && m ("text/plain+application/openmetrics-text;q=0") == 0 && m ("*") == 0,
        "a type is not found inside of another name");
    ok (m ("APPLICATION/OpenMetrics-Text") == 1 && m (" \tapplication/openmetrics-text\t; Q=1 ") == 1
            && m (",, application/openmetrics-text ,") == 1,
        "letter case, blanks and empty ranges in Accept do not matter");
}

static void test_parameters (void)
{
    ok (m ("application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
           "text/plain;version=0.0.4;q=0.3,*/*;q=0.2")
                == 1
            && m ("application/openmetrics-text;version=0.0.1;q=0.9,text/plain;version=0.0.4;q=0.3") == 0
            && m ("text/plain;version=1.0.0;q=0.9,application/openmetrics-text; version=\"1.0.0\";q=0.3") == 1,
        "a range of types with another version does not match");
    ok (m ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3") == 1,
        "an unknown parameter of a range of types does not matter");
    ok (m ("application/openmetrics-text;q=0.9;version=0.0.1") == 1,
        "parameters after the weight of a range of types do not matter");
    ok (m ("x/y;a=\"b, application/openmetrics-text\"") == 0 && m ("x/y;a=\"\\\", application/openmetrics-text") == 0
            && m ("application/openmetrics-text;a=\"b;q=0\"") == 1 && m ("application/openmetrics-text;version") == 0,
        "separators in quotes are ignored; a parameter without a value makes a range malformed");
}

int main (void)
{
    test_weights ();
    test_ranges ();
    test_parameters ();
    ok (choose (metrics, NULL, NULL) == 0 && choose (ids, "", NULL) == 0 && choose (ids, "image/png", NULL) == 0,
        "a client that accepts none of the offered types gets the default");
    ok (choose (metrics, "text/plain;q=0.5", "application/openmetrics-text") == 1
            && choose (metrics, "application/openmetrics-text;q=0.5", "text/plain") == 0,
        "two Accept fields are read as one list");
    return done_testing ();
}
