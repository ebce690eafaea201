/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* screen.h - a terminal that shows a board (ncurses) */
#ifndef CMD_TOP_SCREEN_H
#define CMD_TOP_SCREEN_H

#include "cmd/base/color.h"
#include "cmd/top/view.h"

/* Take the terminal.  Returns 0, or -1 where TERM names none that can move its cursor. */
int screen_begin (bool color);

/* The terminal has another size, or shows something else. */
void screen_fit (void);

/* Give it back as it was; as often as one likes. */
void screen_end (void);

/* The next key of enum view_key or a letter that was typed; 0: none. */
int screen_key (void);

struct screen_text {
    const char *uri;
    const char *note; /* what was logged last; empty: nothing */
};

void screen_draw (struct view *v, const struct screen_text *t);

#endif /* CMD_TOP_SCREEN_H */
