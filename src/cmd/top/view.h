/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* view.h - what keys do to what idtree top shows; it knows no terminal */
#ifndef CMD_TOP_VIEW_H
#define CMD_TOP_VIEW_H

#include "cmd/top/top_model.h"

/* Keys that are no letters. */
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
    VIEW_DRAW, /* it looks otherwise now */
    VIEW_ASK,  /* of other ranks, those below 'root' */
    VIEW_QUIT,
};

struct view {
    struct top_model *board;
    uint32_t root;
    uint32_t selected; /* a rank */
    size_t first;      /* of the board's shown ones, on the first line */
    size_t lines;      /* for ranks */
    bool typing;       /* keys go to the filter */
    bool help;
    bool paused;
};

enum view_action view_key (struct view *v, int key);

/* The place of the selected rank among those shown, which is moved to one that is, and on the screen. */
size_t view_place (struct view *v);

#endif /* CMD_TOP_VIEW_H */
