/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* waiting.c - requests for ids that wait, by turns over those who asked
 *
 * 'missing' is the sum of count - got over the entries, of all and of each asker, whatever is done to them here.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/fluid/node/waiting.h"

/* --- askers ---------------------------------------------------------------------------------- */

/* FNV-1a */
static size_t bucket_of (const char *name, enum asker_kind kind)
{
    uint64_t h = UINT64_C (0xcbf29ce484222325) ^ kind;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C (0x100000001b3);
    return (h ^ h >> 32) % QUEUE_BUCKETS;
}

static struct asker *find (const struct queue *q, size_t bucket, const char *name, enum asker_kind kind)
{
    struct asker *a = q->bucket[bucket];

    while (a && (a->kind != kind || strcmp (a->name, name) != 0))
        a = a->next;
    return a;
}

struct asker *queue_asker (const struct queue *q, const char *name, enum asker_kind kind)
{
    return q->naskers > 0 ? find (q, bucket_of (name, kind), name, kind) : NULL;
}

static struct asker *add_asker (struct queue *q, size_t bucket, const char *name, enum asker_kind kind)
{
    struct asker *a = TAILQ_FIRST (&q->spare_askers);

    if (a)
        TAILQ_REMOVE (&q->spare_askers, a, link);
    else if (!(a = malloc (sizeof (*a))))
        return NULL;
    *a = (struct asker){ .next = q->bucket[bucket], .turn = QUEUE_TURN, .kind = kind };
    snprintf (a->name, sizeof (a->name), "%s", name);
    TAILQ_INIT (&a->waiting);
    TAILQ_INSERT_TAIL (&q->round, a, link);
    q->bucket[bucket] = a;
    q->naskers++;
    return a;
}

static void remove_asker (struct queue *q, struct asker *a)
{
    struct asker **link = &q->bucket[bucket_of (a->name, a->kind)];

    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    TAILQ_REMOVE (&q->round, a, link);
    TAILQ_INSERT_HEAD (&q->spare_askers, a, link);
    q->naskers--;
}

uint64_t queue_ahead (const struct queue *q, const char *name, enum asker_kind kind, uint32_t count)
{
    const struct asker *own = queue_asker (q, name, kind), *a;
    uint64_t mine = (own ? own->missing : 0) + count, sum = mine;

    TAILQ_FOREACH (a, &q->round, link)
        if (a != own)
            sum += a->missing < mine ? a->missing : mine;
    return sum;
}

void queue_end_turn (struct queue *q, struct asker *a)
{
    a->turn = a->turn + QUEUE_TURN < 2 * QUEUE_TURN ? a->turn + QUEUE_TURN : 2 * QUEUE_TURN;
    TAILQ_REMOVE (&q->round, a, link);
    TAILQ_INSERT_TAIL (&q->round, a, link);
}

void queue_use_turn (struct queue *q, struct asker *a, uint32_t used)
{
    assert (used <= a->turn);
    a->turn -= used;
    if (a->turn == 0)
        queue_end_turn (q, a);
}

/* --- entries --------------------------------------------------------------------------------- */

void queue_init (struct queue *q)
{
    *q = (struct queue){ .length = 0 };
    TAILQ_INIT (&q->all);
    TAILQ_INIT (&q->round);
    TAILQ_INIT (&q->spare);
    TAILQ_INIT (&q->spare_askers);
}

void queue_fini (struct queue *q)
{
    struct pending *p;
    struct asker *a;

    while ((p = TAILQ_FIRST (&q->all)))
        queue_remove (q, p);
    while ((p = TAILQ_FIRST (&q->spare))) {
        TAILQ_REMOVE (&q->spare, p, link);
        free (p->run);
        free (p);
    }
    while ((a = TAILQ_FIRST (&q->spare_askers))) {
        TAILQ_REMOVE (&q->spare_askers, a, link);
        free (a);
    }
}

static struct pending *get_spare (struct queue *q)
{
    struct pending *p = TAILQ_FIRST (&q->spare);

    if (!p)
        return calloc (1, sizeof (*p));
    TAILQ_REMOVE (&q->spare, p, link);
    *p = (struct pending){ .run = p->run, .size = p->size };
    return p;
}

static void enter (struct queue *q, struct asker *a, struct pending *p)
{
    p->asker = a;
    TAILQ_INSERT_TAIL (&q->all, p, link);
    TAILQ_INSERT_TAIL (&a->waiting, p, turn);
    q->length++;
    a->length++;
    q->missing += p->count;
    a->missing += p->count;
}

struct pending *queue_add (struct queue *q, const char *name, enum asker_kind kind, uint32_t count)
{
    size_t bucket = bucket_of (name, kind);
    struct asker *a = find (q, bucket, name, kind);
    struct pending *p = get_spare (q);

    if (p && !a)
        a = add_asker (q, bucket, name, kind);
    if (p && !a)
        TAILQ_INSERT_HEAD (&q->spare, p, link);
    if (!p || !a)
        return NULL;
    p->count = count;
    p->from_broker = kind != ASKER_CLIENT;
    enter (q, a, p);
    return p;
}

void queue_remove (struct queue *q, struct pending *p)
{
    struct asker *a = p->asker;

    TAILQ_REMOVE (&q->all, p, link);
    TAILQ_REMOVE (&a->waiting, p, turn);
    q->length--;
    q->missing -= p->count - p->got;
    a->missing -= p->count - p->got;
    if (--a->length == 0)
        remove_asker (q, a);
    TAILQ_INSERT_HEAD (&q->spare, p, link);
}

void queue_begun (struct queue *q, struct pending *p)
{
    TAILQ_REMOVE (&p->asker->waiting, p, turn);
    TAILQ_INSERT_HEAD (&p->asker->waiting, p, turn);
}

/* --- their ids ------------------------------------------------------------------------------- */

static int grow (struct pending *p)
{
    size_t size = p->size > 0 ? 2 * p->size : p->count / FLUID_PER_MS + 2;
    struct run *run = realloc (p->run, size * sizeof (*run));

    if (!run)
        return -1;
    p->run = run;
    p->size = size;
    return 0;
}

static bool continues (const struct pending *p, fluid_t first)
{
    const struct run *last = p->nruns > 0 ? &p->run[p->nruns - 1] : NULL;

    return last && last->first + last->n == first && (first & FLUID_SEQUENCE_MAX) != 0;
}

int queue_add_run (struct queue *q, struct pending *p, fluid_t first, uint32_t n)
{
    assert (n <= p->count - p->got);
    if (continues (p, first))
        p->run[p->nruns - 1].n += n;
    else {
        if (p->nruns == p->size && grow (p) < 0)
            return -1;
        p->run[p->nruns++] = (struct run){ first, n };
    }
    p->got += n;
    q->missing -= n;
    p->asker->missing -= n;
    return 0;
}
