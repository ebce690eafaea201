/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* top_model.h - the data of idtree top about ranks, which ranks it shows in which order, and the effect of keys.  Does
 * no I/O.
 *
 * The caller passes in answers and the time.  A round visits one rank and all ranks below it.  Ranks that a round did
 * not see are removed.
 */
#ifndef CMD_TOP_TOP_MODEL_H
#define CMD_TOP_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define TOP_MODEL_RANKS_MAX 512 /* ranks of a round; more ranks would take longer than an interval */
#define TOP_MODEL_TEXT_MAX 64   /* bytes */
#define TOP_MODEL_NONE (-1)

struct top_model_row {
    uint32_t rank, parent;
    unsigned depth; /* levels below the first rank */
    char host[TOP_MODEL_TEXT_MAX];
    char status[TOP_MODEL_TEXT_MAX]; /* full, partial, degraded, lost, offline, no answer */
    char fluid[TOP_MODEL_TEXT_MAX];  /* empty: not reported */
    int64_t from;                    /* the rank that makes ids for this rank; or TOP_MODEL_NONE */
    int64_t lease_ms;                /* remaining time of its lease; or TOP_MODEL_NONE */
    double ids_s, requests_s;        /* rates since the previous round */
    /* used only by top_model.c: */
    uint64_t ids, requests;
    double counted_s; /* when the counters were read; 0: never */
    uint64_t round;   /* the last round that saw this rank */
    uint64_t asked;   /* the last round that sent a request to this rank; used by poll.c */
};

enum top_model_sort {
    SORT_TREE,
    SORT_RANK,
    SORT_HOST,
    SORT_STATUS,
    SORT_FLUID,
    SORT_LEASE,
    SORT_IDS,
    SORT_REQUESTS,
    SORTS
};

struct top_model {
    struct top_model_row *rows; /* ordered by rank */
    size_t n, room;
    uint32_t root; /* the first rank of the round; the others are below it */
    uint64_t round;
    size_t left_out; /* number of ranks that got no request in the round, because there are too many */
    enum top_model_sort sort;
    bool reverse;
    char filter[TOP_MODEL_TEXT_MAX];     /* empty: all */
    uint32_t shown[TOP_MODEL_RANKS_MAX]; /* ranks in the order in which they are shown; valid after top_model_end () */
    size_t nshown;
};

void top_model_init (struct top_model *b);
void top_model_fini (struct top_model *b);

/* --- a round --------------------------------------------------------------------------------------- */

void top_model_begin (struct top_model *b, uint32_t root);

/* Add a rank below 'parent', with its state.  The parent of the root is the root itself.  Returns the rank's row, which
 * is borrowed until the next rank is added; NULL: out of memory, or too many ranks.
 */
struct top_model_row *top_model_add (struct top_model *b, uint32_t rank, uint32_t parent, const char *status);

/* Return the row of a rank; NULL: the rank was not added. */
struct top_model_row *top_model_row (const struct top_model *b, uint32_t rank);

/* Take the answers of a rank to fluid.info and fluid.stats-get. */
void top_model_take_info (struct top_model_row *row, const json_t *info);
void top_model_take_stats (struct top_model_row *row, const json_t *stats, double now_s);

/* End a round: remove the ranks that the round did not see, and sort. */
void top_model_end (struct top_model *b);

/* --- what is shown --------------------------------------------------------------------------------- */

extern const char *const top_model_sort_names[SORTS];

/* Sort again, because the order or the filter has changed. */
void top_model_arrange (struct top_model *b);

/* Return the sum of the ids a second that the shown ranks made. */
double top_model_ids_s (const struct top_model *b);

/* Return an object with all shown data, a new reference. */
json_t *top_model_json_new (const struct top_model *b);

/* --- the view: what keys change -------------------------------------------------------------------- */

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
    VIEW_DRAW, /* the screen must be redrawn */
    VIEW_ASK,  /* a round must begin, because 'root' has changed */
    VIEW_QUIT,
};

struct view {
    struct top_model *board;
    uint32_t root;
    uint32_t selected; /* the selected rank */
    size_t first;      /* index in the model's shown ranks of the first line on the screen */
    size_t lines;      /* number of lines on the screen for ranks */
    bool typing;       /* keys are appended to the filter */
    bool help;
    bool paused;
};

enum view_action view_key (struct view *v, int key);

/* Return the index of the selected rank in the shown ranks.  If the selected rank is not shown, select one that is, and
 * scroll to it.
 */
size_t view_place (struct view *v);

#endif /* CMD_TOP_TOP_MODEL_H */
