/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_jsonview.c - jsonview reads each text as the same value as jansson, or both refuse it; jsonview keeps its limits
 */
#include "fuzz.h"
#include "libutil/text.h"
#include "test/jsonview_same.h"

static void check_bounds (struct jv_reader *r, const char *text, size_t size)
{
    struct jv_error few, error;
    const struct jv *v = jv_read (r, text, size, 3, 8, &few);

    if (v) {
        must (r->used <= 16);
        must (jv_read (r, text, size, 1000, 100000, &error) != NULL);
        return;
    }
    must (errno == EINVAL && few.line >= 1 && few.line + few.column <= size + 1);
    must (utf8_span (few.text, strlen (few.text)) == strlen (few.text));
    if (few.fault == JV_SYNTAX || few.fault == JV_UTF8)
        must (!jv_read (r, text, size, 1000, 100000, &error) && error.line == few.line && error.column == few.column);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct jv_reader r = JV_READER_INIT;

    must (jsonview_same (&r, (const char *)data, size));
    check_bounds (&r, (const char *)data, size);
    jv_reader_fini (&r);
    return 0;
}
