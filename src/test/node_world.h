/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node_world.h - for tests of the id service's node: records the messages that the node sends, and plays all of its
 * surroundings
 */
#ifndef TEST_NODE_WORLD_H
#define TEST_NODE_WORLD_H

#include <string.h>
#include <syslog.h>

#include "modules/fluid/node/node.h"

#define WORLD_UUID "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa" /* the leases of this incarnation are recorded separately */
#define WORLD_REQUESTS 256
#define WORLD_LEASES 8

/* The last answer to a request for ids. */
struct record {
    int answers; /* number of replies and failures */
    int errnum;
    uint32_t ids;
    size_t nruns;
    fluid_t first, last;
    bool sound; /* the ids increase */
};

/* The surroundings of a node. If all members except 'n' are zero, messages that the node sends are dropped. */
struct world {
    struct node *n;
    struct authority *a;               /* NULL: the node is not rank 0 */
    struct record req[WORLD_REQUESTS]; /* index: cookie of the request */
    fluid_t newest;                    /* the last id in the last answer */
    bool disorder;                     /* an answer was not above all earlier answers */
    int forwards, cancels;
    int forward_result;
    uint32_t tag, count; /* tag and count of the last forward */
    fluid_t after;
    int lease_result;
    int lease_ups; /* requests for whole generators; what follows is about the last one */
    uint32_t lease_tag;
    struct want want[WORLD_LEASES];
    size_t nwant;
    uint64_t own_number; /* number of the last want of WORLD_UUID for a whole generator */
    int part_ups;        /* requests for a part, and returns; what follows is about the last one */
    uint32_t part_tag;
    struct want part;
    int lease_replies;
    int lease_answers[WORLD_REQUESTS]; /* index: cookie of the request */
    struct lease_answer answer;        /* the last answer; its boxes are in 'grant' */
    struct grant grant[WORLD_LEASES];
    int reports;
    struct report report;
    int logs;   /* warnings and errors */
    int stores; /* number of records that the authority stored */
    struct lease_record record;
};

static inline void world_reply_cb (void *arg, void *cookie, const struct id_run *run, size_t nruns)
{
    struct world *w = arg;
    struct record *r = &w->req[(size_t)cookie];

    *r = (struct record){ .answers = r->answers + 1, .nruns = nruns, .first = run[0].first, .sound = true };
    w->disorder = w->disorder || run[0].first <= w->newest;
    for (size_t i = 0; i < nruns; i++) {
        r->sound = r->sound && (i == 0 || run[i].first > r->last);
        r->last = run[i].first + run[i].n - 1;
        r->ids += run[i].n;
    }
    w->disorder = w->disorder || !r->sound;
    w->newest = r->last;
}

static inline void world_fail_cb (void *arg, void *cookie, int errnum, const char *text)
{
    struct record *r = &((struct world *)arg)->req[(size_t)cookie];

    r->answers++;
    r->errnum = errnum;
}

static inline int world_forward_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after)
{
    struct world *w = arg;

    w->forwards++;
    w->tag = tag;
    w->count = count;
    w->after = after;
    return w->forward_result;
}

static inline void world_cancel_cb (void *arg)
{
    ((struct world *)arg)->cancels++;
}

static inline void world_note_part (struct world *w, uint32_t tag, const struct want *want)
{
    w->part_ups++;
    w->part_tag = tag;
    w->part = *want;
}

static inline int world_lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req)
{
    struct world *w = arg;

    if (req->is_part) {
        world_note_part (w, tag, &req->want[0]);
        return w->lease_result;
    }
    w->lease_ups++;
    w->lease_tag = tag;
    w->nwant = req->nwant < WORLD_LEASES ? req->nwant : WORLD_LEASES;
    if (w->nwant > 0)
        memcpy (w->want, req->want, w->nwant * sizeof (w->want[0]));
    for (size_t i = 0; i < req->nwant; i++)
        if (strcmp (req->want[i].incarnation, WORLD_UUID) == 0)
            w->own_number = req->want[i].number;
    return w->lease_result;
}

static inline void world_lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer)
{
    struct world *w = arg;
    size_t n = answer->ngrant < WORLD_LEASES ? answer->ngrant : WORLD_LEASES;

    w->lease_replies++;
    w->lease_answers[(size_t)cookie]++;
    w->answer = *answer;
    w->answer.grant = w->grant;
    if (n > 0)
        memcpy (w->grant, answer->grant, n * sizeof (w->grant[0]));
}

static inline void world_report_up_cb (void *arg, const struct report *report)
{
    struct world *w = arg;

    w->reports++;
    w->report = *report;
}

static inline void world_log_cb (void *arg, int level, const char *text)
{
    ((struct world *)arg)->logs += level <= LOG_WARNING;
}

static const struct node_ops world_ops = { .reply = world_reply_cb,
                                           .fail = world_fail_cb,
                                           .forward = world_forward_cb,
                                           .cancel = world_cancel_cb,
                                           .lease_up = world_lease_up_cb,
                                           .lease_reply = world_lease_reply_cb,
                                           .report_up = world_report_up_cb,
                                           .log = world_log_cb };

/* --- for rank 0's authority ------------------------------------------------------------------------- */

static inline void world_store_cb (void *arg, const struct lease_record *record)
{
    struct world *w = arg;

    w->stores++;
    w->record = *record;
}

static inline void world_positions_cb (void *arg, uint64_t now_us, struct report *all)
{
    struct world *w = arg;

    if (w->n)
        node_positions (w->n, now_us, all);
}

static const struct authority_ops world_root_ops = { world_store_cb, world_positions_cb, world_log_cb };

#endif /* TEST_NODE_WORLD_H */
