/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* idtext.c - ids on the command line and on the terminal */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/idtext.h"

enum fluid_form idtext_form (const struct cmd *cmd, const char *s)
{
    char names[128] = "", quoted[CMD_QUOTE_MAX];
    enum fluid_form form;

    if (fluid_form_parse (s, &form) == 0)
        return form;
    for (int i = 0; i < FLUID_FORM_COUNT; i++) {
        size_t n = strlen (names);

        snprintf (names + n, sizeof (names) - n, "%s%s", i ? ", " : "", fluid_form_name (i));
    }
    cmd_usage (cmd, "'%s' is no form; there are %s", cmd_quote (s, strlen (s), quoted), names);
}

void idtext_warn (const struct cmd *cmd, uint64_t line, const char *s, size_t len, int errnum)
{
    char where[32] = "", quoted[CMD_QUOTE_MAX];

    if (line > 0)
        snprintf (where, sizeof (where), "line %" PRIu64 ": ", line);
    cmd_warn (cmd, "%s'%s' %s", where, cmd_quote (s, len, quoted),
              errnum == ERANGE ? "does not fit in 64 bits" : "is no id");
}

const char *idtext (fluid_t id, enum fluid_form form, char buf[FLUID_STRING_MAX])
{
    int n = fluid_encode (id, form, buf, FLUID_STRING_MAX);

    assert (n > 0);
    (void)n;
    return buf;
}
