/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* poll.c - get the state and the counters of each rank of a subtree
 *
 * Each rank knows its children, so the tree is walked from its root.  When a rank has named its children, requests are
 * sent to all of them immediately.  A rank that does not answer within ANSWER_MS is shown as such, and does not delay
 * other ranks.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top/poll.h"
#include "libutil/clock.h"

#define ANSWER_MS 2000.

enum what { HEALTH, INFO, STATS, HOST };

struct poll_question {
    struct round *round;
    uint32_t rank;
    enum what what;
};

static void ask_rank (struct round *r, struct top_model_row *row);

static void take_children (struct round *r, uint32_t rank, const json_t *children)
{
    size_t i;
    json_t *child;

    json_array_foreach ((json_t *)children, i, child) {
        const char *status;
        json_int_t below;

        if (json_unpack (child, "{s:I s:s}", "rank", &below, "status", &status) < 0)
            continue;
        struct top_model_row *row = top_model_add (r->board, (uint32_t)below, rank, status);
        if (row && strcmp (status, "lost") != 0 && strcmp (status, "offline") != 0)
            ask_rank (r, row);
    }
}

static void set_text (char *to, const char *from)
{
    snprintf (to, TOP_MODEL_TEXT_MAX, "%s", from ? from : "");
}

static void take_health (struct round *r, uint32_t rank, const json_t *o)
{
    struct top_model_row *row = top_model_row (r->board, rank);
    const char *status = json_string_value (json_object_get (o, "status"));

    if (row)
        set_text (row->status, o ? status : "no answer");
    take_children (r, rank, json_object_get (o, "children"));
}

static void take (const struct poll_question *q, const json_t *o)
{
    struct top_model_row *row = top_model_row (q->round->board, q->rank);

    if (q->what == HEALTH)
        take_health (q->round, q->rank, o);
    else if (row && o && q->what == INFO)
        top_model_take_info (row, o);
    else if (row && o && q->what == STATS)
        top_model_take_stats (row, o, clock_s (CLOCK_MONOTONIC));
    else if (row && o)
        set_text (row->host, json_string_value (json_object_get (o, "value")));
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct poll_question *q = arg;
    struct round *r = q->round;
    json_t *o = NULL;

    if (idt_rpc_get_unpack (f, "o", &o) < 0)
        o = NULL;
    take (q, o);
    idt_future_destroy (f);
    free (q);
    assert (r->waiting > 0);
    if (--r->waiting > 0)
        return;
    top_model_end (r->board);
    r->done (r->arg);
}

static void ask (struct round *r, uint32_t rank, enum what what, const char *topic, const char *request)
{
    struct poll_question *q = malloc (sizeof (*q));
    idt_future_t *f = q ? idt_rpc (r->cmd->h, topic, request, rank, 0) : NULL;

    if (q)
        *q = (struct poll_question){ .round = r, .rank = rank, .what = what };
    if (!f || idt_future_then (f, ANSWER_MS, answer_cb, q) < 0)
        cmd_die (r->cmd, "cannot ask rank %u: %s", rank, strerror (errno));
    r->waiting++;
}

/* Send the requests to a rank once in a round, even if two ranks report it as their child.  A rank that has just moved
 * may have two such parents, and each of these may be below the other.
 */
static void ask_rank (struct round *r, struct top_model_row *row)
{
    uint32_t rank = row->rank; /* adding rows may move this row */
    bool named = row->host[0];

    if (row->asked == r->board->round)
        return;
    row->asked = r->board->round;
    ask (r, rank, HEALTH, "overlay.health", NULL);
    ask (r, rank, INFO, "fluid.info", "{}");
    ask (r, rank, STATS, "fluid.stats-get", NULL);
    if (!named)
        ask (r, rank, HOST, "attr.get", "{\"name\":\"hostname\"}");
}

void round_begin (struct round *r, uint32_t root)
{
    assert (r->waiting == 0);
    top_model_begin (r->board, root);
    struct top_model_row *row = top_model_add (r->board, root, root, "unknown");
    if (!row)
        cmd_die (r->cmd, "out of memory");
    ask_rank (r, row);
}
