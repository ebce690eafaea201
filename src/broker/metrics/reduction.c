/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reduction.c - decides which ranks are asked for the figures of a subtree, and adds up the answers
 *
 * A stack has the parents whose children must be asked from here, each with the index of the next child. So memory
 * grows only with the number of ranks that cannot be reached or do not know the request.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "broker/metrics/reduction.h"

struct family {
    uint32_t parent;
    uint32_t next; /* next child to ask */
};

struct reduction {
    struct reduction_conf conf;
    struct metrics *metrics;
    double deadline_ms;
    uint32_t asked; /* ranks that have not answered yet */
    struct family *families;
    size_t nfamilies, room;
};

/* --- ranks without a report ----------------------------------------------------------------------- */

static void mark (struct reduction *s, uint32_t rank, const char *status)
{
    metrics_put_rank (s->metrics, REDUCTION_STATUS, status, rank);
}

static void mark_all (struct reduction *s, uint32_t rank, const char *status)
{
    const struct topo *topo = s->conf.topo;

    mark (s, rank, status);
    for (uint32_t i = 0; !s->conf.alone && i < topo_child_count (topo, rank); i++)
        mark_all (s, topo_child (topo, rank, i), status);
}

/* The children of 'parent' must be asked from here. If there is no memory for the stack, they count as silent. */
static void add_family (struct reduction *s, uint32_t parent)
{
    size_t room = s->room ? 2 * s->room : 4;
    struct family *families = s->families;

    if (s->conf.alone || topo_child_count (s->conf.topo, parent) == 0)
        return;
    if (s->nfamilies == s->room) {
        if (!(families = realloc (families, room * sizeof (families[0])))) {
            for (uint32_t i = 0; i < topo_child_count (s->conf.topo, parent); i++)
                mark_all (s, topo_child (s->conf.topo, parent, i), "no answer");
            return;
        }
        s->families = families;
        s->room = room;
    }
    families[s->nfamilies++] = (struct family){ .parent = parent };
}

static void in_its_stead (struct reduction *s, uint32_t rank, const char *status)
{
    mark (s, rank, status);
    add_family (s, rank);
}

static void give_up (struct reduction *s, uint32_t rank, int errnum)
{
    switch (errnum) {
    case EHOSTUNREACH:
        in_its_stead (s, rank, s->conf.ops->status (s->conf.arg, rank));
        break;
    case ENOSYS:
    case EPERM: /* an old broker reserves unknown requests for the instance owner */
        in_its_stead (s, rank, "older");
        break;
    case ETIMEDOUT:
        mark_all (s, rank, "no answer");
        break;
    case EPROTO:
    case EMSGSIZE:
        mark_all (s, rank, "malformed");
        break;
    default:
        mark_all (s, rank, "busy");
    }
}

/* --- asking -------------------------------------------------------------------------------------------- */

double reduction_left_ms (const struct reduction *s, double now_ms)
{
    double left_ms = s->deadline_ms - now_ms, margin_ms = left_ms / 8;

    return left_ms - (margin_ms < REDUCTION_MARGIN_MS ? margin_ms : REDUCTION_MARGIN_MS);
}

static void ask (struct reduction *s, uint32_t rank, double now_ms)
{
    double left_ms = reduction_left_ms (s, now_ms);
    const char *known = s->conf.ops->known (s->conf.arg, rank);

    if (known)
        mark (s, rank, known);
    else if (left_ms <= 0)
        mark_all (s, rank, "no answer");
    else if (s->conf.ops->ask (s->conf.arg, rank, left_ms) == 0)
        s->asked++;
    else
        give_up (s, rank, errno);
}

void reduction_turn (struct reduction *s, double now_ms)
{
    while (s->nfamilies > 0 && s->asked < REDUCTION_WINDOW) {
        struct family *f = &s->families[s->nfamilies - 1];
        uint32_t rank = topo_child (s->conf.topo, f->parent, f->next++);

        if (f->next == topo_child_count (s->conf.topo, f->parent))
            s->nfamilies--;
        ask (s, rank, now_ms); /* may push onto the stack */
    }
    assert (s->asked <= REDUCTION_WINDOW);
}

void reduction_answered (struct reduction *s, uint32_t rank, const json_t *report)
{
    assert (s->asked > 0);
    s->asked--;
    if (metrics_merge (s->metrics, report) < 0)
        give_up (s, rank, errno);
}

void reduction_failed (struct reduction *s, uint32_t rank, int errnum)
{
    assert (s->asked > 0);
    s->asked--;
    give_up (s, rank, errnum);
}

bool reduction_is_over (const struct reduction *s)
{
    return s->asked == 0 && s->nfamilies == 0;
}

struct metrics *reduction_metrics (struct reduction *s)
{
    return s->metrics;
}

/* --- life ---------------------------------------------------------------------------------------------- */

struct reduction *reduction_create (const struct reduction_conf *conf, double now_ms, double timeout_ms)
{
    struct reduction *s = calloc (1, sizeof (*s));

    assert (conf->own < conf->topo->size && conf->root < conf->topo->size);
    if (!s || !(s->metrics = metrics_create (conf->topo->size))) {
        free (s);
        return NULL;
    }
    s->conf = *conf;
    s->deadline_ms = now_ms + timeout_ms;
    if (conf->root == conf->own)
        add_family (s, conf->own);
    else
        ask (s, conf->root, now_ms);
    return s;
}

void reduction_destroy (struct reduction *s)
{
    if (!s)
        return;
    metrics_destroy (s->metrics);
    free (s->families);
    free (s);
}
