/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ask.c - one request, its answer, or the end of the program with a sentence */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/table.h"

idt_future_t *ask_wait (const struct cmd *cmd, idt_future_t *f, const char *what)
{
    if (!f || idt_future_wait (f, -1) < 0)
        cmd_die (cmd, "%s: %s", what, strerror (errno));
    if (idt_future_errnum (f))
        cmd_die (cmd, "%s: %s", what, idt_future_error (f));
    return f;
}

json_t *ask_take_new (const struct cmd *cmd, idt_future_t *f, const char *what)
{
    const char *answer;
    json_error_t error;
    json_t *o;

    if (idt_rpc_get (ask_wait (cmd, f, what), &answer) < 0)
        cmd_die (cmd, "%s: %s", what, strerror (errno));
    if (!(o = answer ? json_loads (answer, 0, &error) : json_object ()))
        cmd_die (cmd, "%s: the answer is no JSON object: %s", what, error.text);
    idt_future_destroy (f);
    return o;
}

idt_future_t *ask_send (idt_t *h, const char *topic, uint32_t nodeid, json_t *request)
{
    char *s = request ? json_dumps (request, JSON_COMPACT) : NULL;
    idt_future_t *f = idt_rpc (h, topic, s, nodeid, 0);

    json_decref (request);
    free (s);
    return f;
}

json_t *ask_new (struct cmd *cmd, const char *topic, uint32_t nodeid, json_t *request, const char *what)
{
    return ask_take_new (cmd, ask_send (cmd_connect_for (cmd, nodeid), topic, nodeid, request), what);
}

void ask_print (const struct cmd *cmd, const json_t *answer)
{
    if (json_dumpf (answer, stdout, JSON_COMPACT) < 0 || putchar ('\n') == EOF)
        cmd_die (cmd, "cannot write: %s", strerror (errno));
}

void ask_print_members (const json_t *o, const char *prefix, int columns, size_t flags)
{
    const char *key;
    json_t *value;
    char label[64];

    json_object_foreach ((json_t *)o, key, value) {
        char *s = json_is_string (value) ? strdup (json_string_value (value))
                                         : json_dumps (value, JSON_ENCODE_ANY | flags);

        snprintf (label, sizeof (label), "%s%s", prefix, key);
        printf ("%-*s %s\n", table_width (label, columns - 1), label, s ? s : "?");
        free (s);
    }
}
