/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* table.c - tables, trees and colors on a terminal */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/base/table.h"

#define COLUMNS_MAX 16

static void no_memory (void)
{
    out_error ("idtree: out of memory\n");
    exit (1);
}

struct libscols_table *table_create (const struct table_column *columns, size_t n)
{
    struct libscols_table *t = scols_new_table ();

    if (!t)
        no_memory ();
    for (size_t i = 0; i < n; i++) {
        int flags = (columns[i].flags & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0)
                    | (columns[i].flags & TABLE_TREE ? SCOLS_FL_TREE : 0);

        struct libscols_column *c = scols_table_new_column (t, columns[i].title, 0, flags);

        if (!c)
            no_memory ();
        if (columns[i].flags & TABLE_NUMBER)
            scols_column_set_json_type (c, SCOLS_JSON_NUMBER);
    }
    return t;
}

struct libscols_line *table_add (struct libscols_table *t, struct libscols_line *parent, const char *const *texts,
                                 size_t n)
{
    struct libscols_line *line = scols_table_new_line (t, parent);

    if (!line)
        no_memory ();
    for (size_t i = 0; i < n; i++)
        if (scols_line_set_data (line, i, texts[i]) < 0)
            no_memory ();
    return line;
}

void table_print (struct libscols_table *t)
{
    scols_print_table (t);
    scols_unref_table (t);
}

json_t *table_json_new (struct libscols_table *t, const char *name)
{
    char *text = NULL;

    scols_table_enable_json (t, 1);
    scols_table_set_name (t, name);
    if (scols_print_table_to_string (t, &text) < 0)
        no_memory ();
    scols_unref_table (t);
    json_t *o = json_loads (text, 0, NULL);
    free (text);
    if (!o)
        no_memory ();
    return o;
}

/* Return the value of a member as text.  Numbers are written into 'buf'. */
static const char *member (const json_t *row, const char *key, char *buf, size_t size)
{
    const json_t *value = json_object_get (row, key);

    if (json_is_string (value))
        return json_string_value (value);
    if (json_is_integer (value))
        snprintf (buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
    else if (json_is_real (value))
        snprintf (buf, size, "%g", json_real_value (value));
    else
        snprintf (buf, size, "%s", json_is_true (value) ? "yes" : json_is_false (value) ? "no" : "-");
    return buf;
}

void table_print_rows (const struct cmd *cmd, const struct table_column *columns, size_t n, const json_t *rows)
{
    size_t i;
    json_t *row;

    assert (n <= COLUMNS_MAX);
    if (cmd->json) {
        ask_print_lines (cmd, rows);
        return;
    }
    struct libscols_table *t = table_create (columns, n);
    json_array_foreach ((json_t *)rows, i, row) {
        char bufs[COLUMNS_MAX][32];
        const char *texts[COLUMNS_MAX];

        for (size_t c = 0; c < n; c++)
            texts[c] = member (row, columns[c].key, bufs[c], sizeof (bufs[c]));
        table_add (t, NULL, texts, n);
    }
    table_print (t);
}

/* --- colors ------------------------------------------------------------------------------------- */

const struct mood_color mood_colors[] = {
    [MOOD_GOOD] = { NULL, NULL },
    [MOOD_WARNING] = { "yellow", "\033[33m" },
    [MOOD_BAD] = { "red", "\033[31m" },
};

void color_take_when (struct cmd *cmd, const char *arg, void *to)
{
    static const char *const names[] = { [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never" };
    struct color *color = to;

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (!strcmp (arg, names[i])) {
            color->when = (int)i;
            return;
        }
    cmd_usage (cmd, "color '%.64s': auto, always or never is needed", arg);
}

void color_take_never (struct cmd *cmd, const char *arg, void *to)
{
    struct color *color = to;

    color->when = COLOR_NEVER;
}

bool color_wanted (const struct cmd *cmd, const struct color *color)
{
    if (color->when != COLOR_AUTO)
        return color->when == COLOR_ALWAYS;
    return !cmd->env.no_color && isatty (STDOUT_FILENO);
}
