/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* top_model.h - what idtree top knows of ranks, and which of them it shows in what order
 *
 * It is told answers and the time, and has neither sockets nor a terminal.  A round asks each rank below one; a rank
 * that a round did not see is not there any more.
 */
#ifndef CMD_TOP_TOP_MODEL_H
#define CMD_TOP_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define TOP_MODEL_RANKS_MAX 512 /* of a round: more would take longer than what is between two */
#define TOP_MODEL_TEXT_MAX 64   /* bytes */
#define TOP_MODEL_NONE (-1)

struct top_model_row {
    uint32_t rank, parent;
    unsigned depth; /* below the first one */
    char host[TOP_MODEL_TEXT_MAX];
    char status[TOP_MODEL_TEXT_MAX]; /* full, partial, degraded, lost, offline, no answer */
    char fluid[TOP_MODEL_TEXT_MAX];  /* empty: it did not tell */
    int64_t from;                    /* the rank that makes its ids, or TOP_MODEL_NONE */
    int64_t lease_ms;                /* left of its lease, or TOP_MODEL_NONE */
    double ids_s, requests_s;        /* since the round before */
    /* Its own: */
    uint64_t ids, requests;
    double counted_s; /* when they were told; 0: never */
    uint64_t round;   /* that saw it last */
    uint64_t asked;   /* the round that asked it last: for who asks */
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
    struct top_model_row *rows; /* in order of their ranks */
    size_t n, room;
    uint32_t root; /* the round's first one */
    uint64_t round;
    size_t left_out; /* ranks that the round did not ask, as there are too many */
    enum top_model_sort sort;
    bool reverse;
    char filter[TOP_MODEL_TEXT_MAX];     /* empty: all */
    uint32_t shown[TOP_MODEL_RANKS_MAX]; /* after top_model_end (): ranks in the order in which they are shown */
    size_t nshown;
};

void top_model_init (struct top_model *b);
void top_model_fini (struct top_model *b);

/* --- a round --------------------------------------------------------------------------------------- */

void top_model_begin (struct top_model *b, uint32_t root);

/* There is a rank below another one (the root: below itself), in this state.  Returns its row, borrowed until the next
 * one is added; NULL: without memory, or it is one too many.
 */
struct top_model_row *top_model_add (struct top_model *b, uint32_t rank, uint32_t parent, const char *status);

/* The row of a rank that was added; NULL: there is none. */
struct top_model_row *top_model_row (const struct top_model *b, uint32_t rank);

/* The answers of fluid.info and fluid.stats-get. */
void top_model_take_info (struct top_model_row *row, const json_t *info);
void top_model_take_stats (struct top_model_row *row, const json_t *stats, double now_s);

/* All were asked: forget who is gone, and make the order. */
void top_model_end (struct top_model *b);

/* --- what is shown --------------------------------------------------------------------------------- */

const char *top_model_sort_name (enum top_model_sort sort);

/* Make the order again, after it was changed, or the filter. */
void top_model_arrange (struct top_model *b);

/* Ids made a second, of those shown. */
double top_model_ids_s (const struct top_model *b);

/* An object with all that is shown: a new reference. */
json_t *top_model_json_new (const struct top_model *b);

#endif /* CMD_TOP_TOP_MODEL_H */
