/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* table.h - tables and trees on a terminal (libsmartcols), and the colors of states */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <jansson.h>
#include <libsmartcols.h>

#include "cmd/base/cmd.h"

enum table_flag {
    TABLE_RIGHT = 1,  /* aligned right, for numbers */
    TABLE_TREE = 2,   /* the column that shows the tree */
    TABLE_NUMBER = 4, /* a number in JSON too, not a string */
};

struct table_column {
    const char *title;
    const char *key; /* table_print_rows () shows the member with this key */
    int flags;
};

/* Create a table without rows, for table_print () or scols_unref_table ().  Ends the program if memory is short. */
struct libscols_table *table_create (const struct table_column *columns, size_t n);

/* Add a row below 'parent' (NULL: at the top) with a text for each column (copied; NULL: empty). */
struct libscols_line *table_add (struct libscols_table *t, struct libscols_line *parent, const char *const *texts,
                                 size_t n);

/* Print the table to stdout, and free it. */
void table_print (struct libscols_table *t);

/* Return the table as an object with the one member 'name', and free the table.  Ends the program if memory is short.
 */
json_t *table_json_new (struct libscols_table *t, const char *name);

/* Print an array of objects as a table with a row for each object; with --json print one object a line. */
void table_print_rows (const struct cmd *cmd, const struct table_column *columns, size_t n, const json_t *rows);

/* --- colors: good states have none ---- */

/* When to use color.  COLOR_AUTO: on a terminal, unless NO_COLOR is set or TERM is dumb. */
struct color {
    enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } when;
};

enum mood { MOOD_GOOD, MOOD_WARNING, MOOD_BAD };

/* Option entries, for the table of a command that has a 'struct color' at 'offset'. */
#define COLOR_OPTIONS(offset)                                                                          \
    { 0, "color", "WHEN", "auto (default: on a terminal), always or never", color_take_when, offset }, \
    {                                                                                                  \
        0, "no-color", NULL, "the same as --color=never", color_take_never, offset                     \
    }
void color_take_when (struct cmd *cmd, const char *arg, void *to);
void color_take_never (struct cmd *cmd, const char *arg, void *to);

/* Whether to print to stdout in color. */
bool color_wanted (const struct cmd *cmd, const struct color *color);

/* For each mood, the name of its color for libsmartcols, and the escape sequence that begins this color on a terminal;
 * NULL: no color.
 */
extern const struct mood_color {
    const char *name, *begin;
} mood_colors[];
#define COLOR_END "\033[0m"

#endif /* CMD_TABLE_H */
