/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_attr.c - attributes from untrusted sources: each line is a source (g, d, D, s, u), a name, '=' and a value
 *
 * Afterwards the value of each attribute must be valid in JSON. If an attribute is read as a number, the number must be
 * in its range.
 */
#include <errno.h>
#include <jansson.h>

#include "broker/base/attr.h"
#include "fuzz.h"
#include "libutil/errprintf.h"

static void check_one (const char *name, const char *value, void *arg)
{
    json_t *o = json_pack ("{s:s s:s}", "name", name, "value", value);

    must (o != NULL);
    json_decref (o);
    must (*name != '\0' && strlen (name) <= ATTR_NAME_MAX);
    ++*(size_t *)arg;
}

static void check_numbers (struct attrs *a, const char *name)
{
    uint32_t n = 7;
    uint64_t size = 700;
    double s = 7;
    idt_error_t err = { "" };

    must (attr_u32 (a, name, "700", 5, 5000, &n, &err) == 0 ? n >= 5 && n <= 5000
                                                            : errno == EINVAL && n == 7 && err.text[0]);
    must (attr_size (a, name, "700", 500, 1 << 20, &size, &err) == 0 ? size >= 500 && size <= 1 << 20 : size == 700);
    must (attr_seconds (a, name, "700", 0.5, 3600, &s, &err) == 0 ? s >= 0.5 && s <= 3600 : s == 7);
}

static int refuse_some (const char *value, void *arg, idt_error_t *errp)
{
    return *value == 'x' ? errsetf (errp, EINVAL, "must not begin with x") : 0;
}

static void take (const char *name, const char *value, void *arg)
{
    must (*value != 'x');
}

static bool is_good (const char *name, const char *value)
{
    struct attrs *a = attrs_create ();
    bool good = attr_give (a, name, value, NULL) == 0;

    attrs_destroy (a);
    return good;
}

static void set (struct attrs *a, char how, const char *name, const char *value)
{
    bool good = is_good (name, value);
    int rc = 0;

    if (how == 'g')
        must ((rc = attr_give (a, name, value, NULL)) == (good ? 0 : -1));
    else if (how == 'd')
        must (attr_default (a, name, value, NULL) || !good);
    else if (how == 'D')
        rc = attr_define (a, name, value, ATTR_SETTABLE, NULL);
    else if (how == 'I')
        rc = attr_define (a, name, value, ATTR_IMMUTABLE, NULL);
    else if (how == 'o')
        rc = attr_own (a, name, refuse_some, take, NULL, NULL);
    else if (how == 's')
        must ((rc = attr_set (a, name, value, NULL)) == -1 || good);
    else
        rc = attr_update (a, name, value, NULL);
    if (rc == 0 && good && strchr ("gsu", how))
        must (strcmp (attr_get (a, name, NULL), value) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct input in = { data, size };
    struct attrs *a = attrs_create ();
    size_t len, n = 0;
    char *line;

    must (a != NULL);
    while ((line = input_line (&in, &len))) {
        char *equal = strchr (line, '=');

        if (len > 0 && equal && equal > line) {
            *equal = '\0';
            set (a, line[0], line + 1, equal + 1);
            check_numbers (a, line + 1);
        }
        free (line);
    }
    attr_foreach (a, check_one, &n);
    (void)attr_unclaimed (a, NULL, NULL);
    attrs_destroy (a);
    return 0;
}
