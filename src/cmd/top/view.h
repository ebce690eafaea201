/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* view.h - the effect of keys on the view of idtree top; independent of the terminal */
#ifndef CMD_TOP_VIEW_H
#define CMD_TOP_VIEW_H

#include "cmd/top/top_model.h"

/* Keys that are not letters. */
enum view_key {
    VIEW_UP = 1000,
    VIEW_DOWN,
    VIEW_PAGE_UP,
    VIEW_PAGE_DOWN,
    VIEW_HOME,
    VIEW_END,
    VIEW_ENTER,
    VIEW_BACK,
    VIEW_ESCAPE
};

enum view_action {
    VIEW_NOTHING,
    VIEW_DRAW, /* redraw */
    VIEW_ASK,  /* send requests to the ranks below 'root' */
    VIEW_QUIT,
};

struct view {
    struct top_model *board;
    uint32_t root;
    uint32_t selected; /* a rank */
    size_t first;      /* index of the first displayed line in the model's shown ranks */
    size_t lines;      /* lines available for ranks */
    bool typing;       /* keys are added to the filter */
    bool help;
    bool paused;
};

enum view_action view_key (struct view *v, int key);

/* The index of the selected rank in the shown ranks.  Moves the selection to a shown rank, and scrolls to it. */
size_t view_place (struct view *v);

#endif /* CMD_TOP_VIEW_H */
