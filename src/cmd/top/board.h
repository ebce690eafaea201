/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* board.h - what idtree top knows of ranks, and which of them it shows in what order
 *
 * It is told answers and the time, and has neither sockets nor a terminal.  A round asks each rank below one; a rank
 * that a round did not see is not there any more.
 */
#ifndef CMD_TOP_BOARD_H
#define CMD_TOP_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#define BOARD_RANKS_MAX 512 /* of a round: more would take longer than what is between two */
#define BOARD_TEXT_MAX 64   /* bytes */
#define BOARD_NONE (-1)

struct board_row {
    uint32_t rank, parent;
    unsigned depth; /* below the first one */
    char host[BOARD_TEXT_MAX];
    char status[BOARD_TEXT_MAX]; /* full, partial, degraded, lost, offline, no answer */
    char fluid[BOARD_TEXT_MAX];  /* empty: it did not tell */
    int64_t from;                /* the rank that makes its ids, or BOARD_NONE */
    int64_t lease_ms;            /* left of its lease, or BOARD_NONE */
    double ids_s, requests_s;    /* since the round before */
    /* Its own: */
    uint64_t ids, requests;
    double counted_s; /* when they were told; 0: never */
    uint64_t round;   /* that saw it last */
    uint64_t asked;   /* the round that asked it last: for who asks */
};

enum board_sort {
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

struct board {
    struct board_row *rows; /* in order of their ranks */
    size_t n, room;
    uint32_t root; /* the round's first one */
    uint64_t round;
    size_t left_out; /* ranks that the round did not ask, as there are too many */
    enum board_sort sort;
    bool reverse;
    char filter[BOARD_TEXT_MAX];     /* empty: all */
    uint32_t shown[BOARD_RANKS_MAX]; /* after board_end (): ranks in the order in which they are shown */
    size_t nshown;
};

void board_init (struct board *b);
void board_fini (struct board *b);

/* --- a round --------------------------------------------------------------------------------------- */

void board_begin (struct board *b, uint32_t root);

/* There is a rank below another one (the root: below itself), in this state.  Returns its row, borrowed until the next
 * one is added; NULL: without memory, or it is one too many.
 */
struct board_row *board_add (struct board *b, uint32_t rank, uint32_t parent, const char *status);

/* The row of a rank that was added; NULL: there is none. */
struct board_row *board_row (const struct board *b, uint32_t rank);

/* The answers of fluid.info and fluid.stats-get. */
void board_take_info (struct board_row *row, const json_t *info);
void board_take_stats (struct board_row *row, const json_t *stats, double now_s);

/* All were asked: forget who is gone, and make the order. */
void board_end (struct board *b);

/* --- what is shown --------------------------------------------------------------------------------- */

const char *board_sort_name (enum board_sort sort);

/* Make the order again, after it was changed, or the filter. */
void board_arrange (struct board *b);

/* Ids made a second, of those shown. */
double board_ids_s (const struct board *b);

/* An object with all that is shown: a new reference. */
json_t *board_json_new (const struct board *b);

#endif /* CMD_TOP_BOARD_H */
