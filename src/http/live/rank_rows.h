/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rank_rows.h - what ranks.c keeps and ranks_json.c shows; of these two only */
#ifndef HTTP_LIVE_RANK_ROWS_H
#define HTTP_LIVE_RANK_ROWS_H

#include <stdbool.h>

#include "http/live/ranks.h"

/* Words are numbers of tables, so that they can be counted and compared; 0: not known. */
#define RANK_STATUSES 10
#define RANK_FLUIDS 5
extern const char *const rank_statuses[RANK_STATUSES];
extern const char *const rank_fluids[RANK_FLUIDS];

/* What changes are told of. */
struct rank_state {
    unsigned char status, fluid;
    int32_t attached; /* RANKS_NONE: to nobody */
    int32_t ids_from;
};

struct rank_row {
    int32_t parent;
    struct rank_state now, told; /* told: status 0: nothing was */
    int32_t generator;
    char *host, *lends_to;         /* owned; NULL: not known, none */
    double lease_end_s;            /* below 0: none */
    double told_lease_end_s;       /* of the last rates */
    double info_s, stats_s;        /* when they came; 0: never */
    uint64_t ids, above, requests; /* counters */
    double ids_s, above_s, requests_s;
    bool fresh;     /* it has told since the last rates */
    bool moved;     /* and what it told was something, or had been */
    bool due;       /* something must have changed */
    bool elsewhere; /* the host may be another: it is asked for again */
};

struct live_ranks {
    struct rank_row *rows;
    uint32_t n;
    uint32_t turn; /* who is asked next */
};

static inline bool rank_is_gone (const struct rank_row *row)
{
    return row->now.attached == RANKS_NONE && row->parent != RANKS_NONE;
}

#endif /* HTTP_LIVE_RANK_ROWS_H */
