/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* screen.h - show a top_model on a terminal (ncurses) */
#ifndef CMD_TOP_SCREEN_H
#define CMD_TOP_SCREEN_H

#include "cmd/base/table.h"
#include "cmd/top/top_model.h"

/* Take over the terminal.  Returns 0, or -1 if TERM names a terminal that is unknown or cannot move its cursor. */
int screen_begin (bool color);

/* Redraw after a change of the terminal's size, or of the view. */
void screen_fit (void);

/* Restore the terminal; may be called repeatedly. */
void screen_end (void);

/* The next key: an enum view_key, or a typed letter; 0: no key. */
int screen_key (void);

struct screen_text {
    const char *uri;
    const char *note; /* last line of the log; empty: nothing */
};

void screen_draw (struct view *v, const struct screen_text *t);

#endif /* CMD_TOP_SCREEN_H */
