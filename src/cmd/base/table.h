/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* table.h - tables and trees on a terminal (libsmartcols) */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <stddef.h>

#include <jansson.h>
#include <libsmartcols.h>

enum table_flag {
    TABLE_RIGHT = 1,  /* aligned right, for numbers */
    TABLE_TREE = 2,   /* the column that shows the tree */
    TABLE_NUMBER = 4, /* a number in JSON too */
};

struct table_column {
    const char *title;
    const char *key; /* key of the member that it shows, for table_print_json () */
    int flags;
};

/* Create a table without rows, for table_print () or scols_unref_table ().  Ends the program if memory is short. */
struct libscols_table *table_create (const struct table_column *columns, size_t n);

/* Add a row below 'parent' (NULL: at the top) with a text for each column (copied; NULL: empty). */
struct libscols_line *table_add (struct libscols_table *t, struct libscols_line *parent, const char *const *texts,
                                 size_t n);

/* Print to stdout and free. */
void table_print (struct libscols_table *t);

/* Return the table as an object with the one member 'name', and free the table.  Ends the program if memory is short.
 */
json_t *table_json_new (struct libscols_table *t, const char *name);

/* Print an array of objects, one a row. */
void table_print_json (const struct table_column *columns, size_t n, const json_t *rows);

#endif /* CMD_TABLE_H */
