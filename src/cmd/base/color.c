/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* color.c - colors for the states of things on a terminal */
#include <string.h>
#include <unistd.h>

#include "cmd/base/color.h"

static const struct {
    const char *name, *begin;
} colors[] = {
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

const char *color_name (enum mood mood)
{
    return colors[mood].name;
}

const char *color_begin (enum mood mood)
{
    return colors[mood].begin;
}
