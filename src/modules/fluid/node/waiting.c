/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* waiting.c - requests for ids that wait; their requesters take turns
 *
 * Invariant: 'missing' is the sum of count - got over the entries, both in total and of each requester.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/minmax.h"
#include "modules/fluid/node/waiting.h"

/* --- requesters ------------------------------------------------------------------------------ */

/* FNV-1a */
static size_t bucket_of (const char *name, enum requester_kind kind)
{
    uint64_t h = UINT64_C (0xcbf29ce484222325) ^ kind;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C (0x100000001b3);
    return (h ^ h >> 32) % WAITING_BUCKETS;
}

static struct requester *find (const struct waiting *w, size_t bucket, const char *name, enum requester_kind kind)
{
    struct requester *a = w->bucket[bucket];

    while (a && (a->kind != kind || strcmp (a->name, name) != 0))
        a = a->next;
    return a;
}

struct requester *waiting_requester (const struct waiting *w, const char *name, enum requester_kind kind)
{
    return w->nrequesters > 0 ? find (w, bucket_of (name, kind), name, kind) : NULL;
}

static struct requester *add_requester (struct waiting *w, size_t bucket, const char *name, enum requester_kind kind)
{
    struct requester *a = TAILQ_FIRST (&w->spare_requesters);

    if (a)
        TAILQ_REMOVE (&w->spare_requesters, a, link);
    else if (!(a = malloc (sizeof (*a))))
        return NULL;
    *a = (struct requester){ .next = w->bucket[bucket], .turn = WAITING_TURN, .kind = kind };
    memcpy (a->name, name, strnlen (name, sizeof (a->name) - 1));
    TAILQ_INIT (&a->waiting);
    TAILQ_INSERT_TAIL (&w->round, a, link);
    w->bucket[bucket] = a;
    w->nrequesters++;
    return a;
}

static void remove_requester (struct waiting *w, struct requester *a)
{
    struct requester **link = &w->bucket[bucket_of (a->name, a->kind)];

    assert (TAILQ_EMPTY (&a->waiting) && a->missing == 0);
    while (*link != a)
        link = &(*link)->next;
    *link = a->next;
    TAILQ_REMOVE (&w->round, a, link);
    TAILQ_INSERT_HEAD (&w->spare_requesters, a, link);
    w->nrequesters--;
}

uint64_t waiting_ahead (const struct waiting *w, const char *name, enum requester_kind kind, uint32_t count)
{
    const struct requester *own = waiting_requester (w, name, kind), *a;
    uint64_t mine = (own ? own->missing : 0) + count, sum = mine;

    TAILQ_FOREACH (a, &w->round, link)
        if (a != own)
            sum += min_u64 (a->missing, mine);
    return sum;
}

void waiting_end_turn (struct waiting *w, struct requester *a)
{
    a->turn = (uint32_t)min_u64 (a->turn + WAITING_TURN, 2 * WAITING_TURN);
    TAILQ_REMOVE (&w->round, a, link);
    TAILQ_INSERT_TAIL (&w->round, a, link);
}

void waiting_use_turn (struct waiting *w, struct requester *a, uint32_t used)
{
    assert (used <= a->turn);
    a->turn -= used;
    if (a->turn == 0)
        waiting_end_turn (w, a);
}

/* --- entries --------------------------------------------------------------------------------- */

void waiting_init (struct waiting *w, waiting_reply_f reply, waiting_fail_f fail, void *arg,
                   struct waiting_stats *stats)
{
    *w = (struct waiting){ .reply = reply, .fail = fail, .arg = arg, .stats = stats };
    TAILQ_INIT (&w->all);
    TAILQ_INIT (&w->round);
    TAILQ_INIT (&w->spare);
    TAILQ_INIT (&w->spare_requesters);
}

/* Remove an entry, and its requester if that has no other entry. */
static void leave (struct waiting *w, struct pending *p)
{
    struct requester *a = p->requester;
    uint32_t missing = p->count - p->got;

    assert (p->got <= p->count && missing <= a->missing && a->missing <= w->missing);
    TAILQ_REMOVE (&w->all, p, link);
    TAILQ_REMOVE (&a->waiting, p, turn);
    w->length--;
    w->others -= a->kind == REQUESTER_USER;
    w->missing -= missing;
    a->missing -= missing;
    if (--a->length == 0)
        remove_requester (w, a);
    TAILQ_INSERT_HEAD (&w->spare, p, link);
}

void waiting_fini (struct waiting *w)
{
    struct pending *p;
    struct requester *a;

    while ((p = TAILQ_FIRST (&w->all)))
        leave (w, p);
    while ((p = TAILQ_FIRST (&w->spare))) {
        TAILQ_REMOVE (&w->spare, p, link);
        free (p->run);
        free (p);
    }
    while ((a = TAILQ_FIRST (&w->spare_requesters))) {
        TAILQ_REMOVE (&w->spare_requesters, a, link);
        free (a);
    }
}

static struct pending *get_spare (struct waiting *w)
{
    struct pending *p = TAILQ_FIRST (&w->spare);

    if (!p)
        return calloc (1, sizeof (*p));
    TAILQ_REMOVE (&w->spare, p, link);
    *p = (struct pending){ .run = p->run, .size = p->size };
    return p;
}

static void enter (struct waiting *w, struct requester *a, struct pending *p)
{
    p->requester = a;
    TAILQ_INSERT_TAIL (&w->all, p, link);
    TAILQ_INSERT_TAIL (&a->waiting, p, turn);
    w->length++;
    w->others += a->kind == REQUESTER_USER;
    a->length++;
    w->missing += p->count;
    a->missing += p->count;
}

struct pending *waiting_add (struct waiting *w, const char *name, enum requester_kind kind, uint32_t count,
                             uint64_t now_us, uint64_t now_ms)
{
    size_t bucket = bucket_of (name, kind);
    struct requester *a = find (w, bucket, name, kind);
    struct pending *p = get_spare (w);

    assert (count > 0);
    if (p && !a)
        a = add_requester (w, bucket, name, kind);
    if (p && !a)
        TAILQ_INSERT_HEAD (&w->spare, p, link);
    if (!p || !a)
        return NULL;
    p->count = count;
    p->from_broker = kind >= REQUESTER_BROKER;
    p->arrival_us = now_us;
    p->arrival_ms = now_ms;
    enter (w, a, p);
    w->unjudged = w->unjudged || now_ms == WAITING_UNKNOWN;
    w->has_newcomers = w->has_newcomers || count <= FOR_NEWCOMERS;
    w->stats->stalls++;
    return p;
}

void waiting_begun (struct waiting *w, struct pending *p)
{
    TAILQ_REMOVE (&p->requester->waiting, p, turn);
    TAILQ_INSERT_HEAD (&p->requester->waiting, p, turn);
}

/* --- the end of a request -------------------------------------------------------------------- */

void waiting_refuse (struct waiting *w, void *cookie, int errnum, const char *text)
{
    if (errnum == EAGAIN)
        w->stats->refused++;
    else if (errnum == EHOSTUNREACH)
        w->stats->unreachable++;
    w->fail (w->arg, cookie, errnum, text);
}

/* Forget a request that was answered or canceled. Its entry stays while ids of it are under way. */
static void forget (struct waiting *w, struct pending *p)
{
    p->cookie = NULL;
    if (p->asked == 0)
        leave (w, p);
}

void waiting_fail (struct waiting *w, struct pending *p, int errnum, const char *text)
{
    assert (p->cookie); /* it was not answered yet */
    waiting_refuse (w, p->cookie, errnum, text);
    forget (w, p);
}

void waiting_complete (struct waiting *w, uint64_t now_us, struct pending *p)
{
    assert (p->cookie && p->got == p->count);
    metrics_time (&w->stats->waits, now_us > p->arrival_us ? now_us - p->arrival_us : 0);
    w->reply (w->arg, p->cookie, p->run, p->nruns);
    forget (w, p);
}

void waiting_came (struct waiting *w, struct pending *p)
{
    p->asked = 0;
    if (!p->cookie)
        leave (w, p);
}

void waiting_fail_all (struct waiting *w, int errnum, const char *text)
{
    struct pending *p;

    while ((p = TAILQ_FIRST (&w->all))) {
        assert (p->asked == 0); /* otherwise its entry would stay */
        waiting_fail (w, p, errnum, text);
    }
}

uint64_t waiting_expire (struct waiting *w, uint64_t before_us, int errnum, const char *text)
{
    struct pending *p, *next;

    for (p = TAILQ_FIRST (&w->all); p && p->arrival_us < before_us; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->cookie)
            waiting_fail (w, p, errnum, text);
    }
    return p ? p->arrival_us : UINT64_MAX;
}

void waiting_cancel (struct waiting *w, bool (*gone) (void *cookie, void *arg), void *arg)
{
    struct pending *p, *next;

    for (p = TAILQ_FIRST (&w->all); p; p = next) {
        next = TAILQ_NEXT (p, link);
        if (p->cookie && gone (p->cookie, arg))
            forget (w, p);
    }
}

/* --- ids of a request ------------------------------------------------------------------------ */

static int grow (struct pending *p)
{
    size_t size = p->size > 0 ? 2 * p->size : p->count / FLUID_PER_MS + 2;
    struct id_run *run = realloc (p->run, size * sizeof (*run));

    if (!run)
        return -1;
    p->run = run;
    p->size = size;
    return 0;
}

static bool continues (const struct pending *p, fluid_t first)
{
    const struct id_run *last = p->nruns > 0 ? &p->run[p->nruns - 1] : NULL;

    return last && last->first + last->n == first && (first & FLUID_SEQUENCE_MAX) != 0;
}

int waiting_add_run (struct waiting *w, struct pending *p, fluid_t first, uint32_t n)
{
    const struct id_run *last = p->nruns > 0 ? &p->run[p->nruns - 1] : NULL;

    assert (n > 0 && n <= p->count - p->got);
    assert ((first & FLUID_SEQUENCE_MAX) + n <= FLUID_PER_MS);
    assert (!last || first >= last->first + last->n); /* each request gets increasing ids */
    if (continues (p, first))
        p->run[p->nruns - 1].n += n;
    else {
        if (p->nruns == p->size && grow (p) < 0)
            return -1;
        p->run[p->nruns++] = (struct id_run){ first, n };
    }
    p->got += n;
    w->missing -= n;
    p->requester->missing -= n;
    return 0;
}

/* Ids of an incomplete request count as not made yet, and milliseconds that passed while a request waited may still be
 * filled.
 */
uint64_t waiting_oldest_ms (const struct waiting *w, uint64_t now_ms, uint64_t cursor_ms)
{
    const struct pending *p;
    uint64_t ms = now_ms;

    TAILQ_FOREACH (p, &w->all, link) {
        uint64_t floor_ms = p->asked > 0 ? p->asked_ms : cursor_ms; /* ids under way may be older than cursor_ms */
        uint64_t oldest_ms = p->nruns > 0 ? fluid_split (p->run[0].first).timestamp_ms
                                          : max_u64 (p->arrival_ms, floor_ms);

        ms = min_u64 (ms, oldest_ms);
    }
    return ms;
}
