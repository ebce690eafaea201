/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* color.h - show states of things on a terminal: good states without color, others in color */
#ifndef CMD_COLOR_H
#define CMD_COLOR_H

#include <stdbool.h>

#include "cmd/base/cmd.h"

/* When to use color.  Auto: on a terminal, unless NO_COLOR is set or TERM is dumb. */
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

/* The name of a mood's color for libsmartcols, and the escape sequence that begins it on a terminal; NULL: no color. */
const char *color_name (enum mood mood);
const char *color_begin (enum mood mood);
#define COLOR_END "\033[0m"

#endif /* CMD_COLOR_H */
