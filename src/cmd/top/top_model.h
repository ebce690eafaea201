/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* top_model.h - the data of idtree top about ranks, which ranks it shows in which order, and the effect of keys.  Does
 * no I/O.
 *
 * The caller passes in answers and the time.  A round visits each rank below one rank; a rank that a round did not see
 * is removed.
 */
#ifndef CMD_TOP_TOP_MODEL_H
#define CMD_TOP_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define TOP_MODEL_RANKS_MAX 512 /* ranks of a round: more would take longer than the interval between two rounds */
#define TOP_MODEL_TEXT_MAX 64   /* bytes */
#define TOP_MODEL_NONE (-1)

struct top_model_row {
    uint32_t rank, parent;
    unsigned depth; /* below the first one */
    char host[TOP_MODEL_TEXT_MAX];
    char status[TOP_MODEL_TEXT_MAX]; /* full, partial, degraded, lost, offline, no answer */
    char fluid[TOP_MODEL_TEXT_MAX];  /* empty: not reported */
    int64_t from;                    /* the rank that makes its ids, or TOP_MODEL_NONE */
    int64_t lease_ms;                /* rest of its lease, or TOP_MODEL_NONE */
    double ids_s, requests_s;        /* since the previous round */
    /* For top_model.c: */
    uint64_t ids, requests;
    double counted_s; /* time of the counters; 0: never */
    uint64_t round;   /* the last round that saw it */
    uint64_t asked;   /* the last round with a request to it; for poll.c */
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
    struct top_model_row *rows; /* in order of ranks */
    size_t n, room;
    uint32_t root; /* the first rank of the round */
    uint64_t round;
    size_t left_out; /* ranks without a request in the round, as there are too many */
    enum top_model_sort sort;
    bool reverse;
    char filter[TOP_MODEL_TEXT_MAX];     /* empty: all */
    uint32_t shown[TOP_MODEL_RANKS_MAX]; /* after top_model_end (): ranks in display order */
    size_t nshown;
};

void top_model_init (struct top_model *b);
void top_model_fini (struct top_model *b);

/* --- a round --------------------------------------------------------------------------------------- */

void top_model_begin (struct top_model *b, uint32_t root);

/* Add a rank below 'parent' (the root: below itself), with its state.  Returns its row, borrowed until the next one is
 * added; NULL: out of memory, or too many ranks.
 */
struct top_model_row *top_model_add (struct top_model *b, uint32_t rank, uint32_t parent, const char *status);

/* The row of a rank that was added; NULL: unknown rank. */
struct top_model_row *top_model_row (const struct top_model *b, uint32_t rank);

/* Take the answers of fluid.info and fluid.stats-get. */
void top_model_take_info (struct top_model_row *row, const json_t *info);
void top_model_take_stats (struct top_model_row *row, const json_t *stats, double now_s);

/* End a round: remove the ranks that it did not see, and sort. */
void top_model_end (struct top_model *b);

/* --- what is shown --------------------------------------------------------------------------------- */

extern const char *const top_model_sort_names[SORTS];

/* Sort again, after the order or the filter was changed. */
void top_model_arrange (struct top_model *b);

/* Sum of the ids a second of the shown ranks. */
double top_model_ids_s (const struct top_model *b);

/* An object with all shown data: a new reference. */
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

#endif /* CMD_TOP_TOP_MODEL_H */
