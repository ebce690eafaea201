/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* rank_rows.h - private data that ranks.c and ranks_json.c share */
#ifndef HTTP_LIVE_RANK_ROWS_H
#define HTTP_LIVE_RANK_ROWS_H

#include <stdbool.h>

#include "http/live/ranks.h"

/* Words are stored as indices of tables, so that they can be counted and compared; 0: not known. */
#define RANK_STATUSES 10
#define RANK_FLUIDS 5
extern const char *const rank_statuses[RANK_STATUSES];
extern const char *const rank_fluids[RANK_FLUIDS];

/* The state whose changes are reported. */
struct rank_state {
    unsigned char status, fluid;
    int32_t attached; /* RANKS_NONE: to no rank */
    int32_t ids_from;
};

struct rank_row {
    int32_t parent;
    struct rank_state now, told; /* told: as last reported; status 0: never */
    int32_t generator;
    char *host, *lends_to;         /* owned; NULL: not known, none */
    double lease_end_s;            /* below 0: no lease */
    double told_lease_end_s;       /* as in the last rates */
    double info_s, stats_s;        /* when they arrived; 0: never */
    uint64_t ids, above, requests; /* counters */
    double ids_s, above_s, requests_s;
    bool fresh;     /* it has answered since the last rates */
    bool moved;     /* its rates are not 0, or were not before */
    bool due;       /* it has probably changed */
    bool elsewhere; /* it may be on another host, which is asked for again */
};

struct live_ranks {
    struct rank_row *rows;
    uint32_t n;
    uint32_t turn; /* the next rank to ask */
};

static inline bool rank_is_gone (const struct rank_row *row)
{
    return row->now.attached == RANKS_NONE && row->parent != RANKS_NONE;
}

#endif /* HTTP_LIVE_RANK_ROWS_H */
