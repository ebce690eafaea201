/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* view.c - the effect of keys on the view of idtree top */
#include <string.h>

#include "cmd/top/view.h"

static size_t find_selected (const struct view *v)
{
    for (size_t i = 0; i < v->board->nshown; i++)
        if (v->board->shown[i] == v->selected)
            return i;
    return 0;
}

size_t view_place (struct view *v)
{
    size_t place = find_selected (v), lines = v->lines > 0 ? v->lines : 1;

    if (v->board->nshown > 0)
        v->selected = v->board->shown[place];
    if (place < v->first)
        v->first = place;
    if (place >= v->first + lines)
        v->first = place - lines + 1;
    return place;
}

static enum view_action move (struct view *v, long by)
{
    long last = (long)v->board->nshown - 1, place = (long)find_selected (v) + by;

    if (last < 0)
        return VIEW_NOTHING;
    v->selected = v->board->shown[place < 0 ? 0 : place > last ? last : place];
    return VIEW_DRAW;
}

static enum view_action sort_by (struct view *v, int step)
{
    v->board->sort = (enum top_model_sort) (((int)v->board->sort + step + SORTS) % SORTS);
    top_model_arrange (v->board);
    return VIEW_DRAW;
}

static enum view_action go_to (struct view *v, uint32_t root)
{
    if (root == v->root)
        return VIEW_NOTHING;
    v->root = v->selected = root;
    v->first = 0;
    return VIEW_ASK;
}

static enum view_action set_filter (struct view *v, size_t len)
{
    v->board->filter[len] = '\0';
    top_model_arrange (v->board);
    return VIEW_DRAW;
}

static enum view_action type (struct view *v, int key)
{
    size_t len = strlen (v->board->filter);

    if (key == VIEW_ENTER || key == VIEW_ESCAPE) {
        v->typing = false;
        return key == VIEW_ESCAPE ? set_filter (v, 0) : VIEW_DRAW;
    }
    if (key == VIEW_BACK)
        return set_filter (v, len > 0 ? len - 1 : 0);
    if (key < ' ' || key > '~' || len + 1 >= sizeof (v->board->filter))
        return VIEW_NOTHING;
    v->board->filter[len] = (char)key;
    return set_filter (v, len + 1);
}

static enum view_action toggle (bool *what)
{
    *what = !*what;
    return VIEW_DRAW;
}

enum view_action view_key (struct view *v, int key)
{
    if (v->typing)
        return type (v, key);
    switch (key) {
    case 'q':
        return VIEW_QUIT;
    case 'k':
    case VIEW_UP:
        return move (v, -1);
    case 'j':
    case VIEW_DOWN:
        return move (v, 1);
    case VIEW_PAGE_UP:
        return move (v, -(long)v->lines);
    case VIEW_PAGE_DOWN:
        return move (v, (long)v->lines);
    case VIEW_HOME:
        return move (v, -TOP_MODEL_RANKS_MAX);
    case VIEW_END:
        return move (v, TOP_MODEL_RANKS_MAX);
    case 's':
    case '>':
        return sort_by (v, 1);
    case 'S':
    case '<':
        return sort_by (v, -1);
    case 'r':
        v->board->reverse = !v->board->reverse;
        top_model_arrange (v->board);
        return VIEW_DRAW;
    case '/':
        return toggle (&v->typing);
    case VIEW_ENTER:
        return go_to (v, v->selected);
    case 'u':
    case VIEW_BACK:
        return go_to (v, 0);
    case VIEW_ESCAPE:
        return set_filter (v, 0);
    case ' ':
        return toggle (&v->paused);
    case 'h':
    case '?':
        return toggle (&v->help);
    default:
        return VIEW_NOTHING;
    }
}
