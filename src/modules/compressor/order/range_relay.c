/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range_relay.c - combines elements on their way up
 *
 * Elements are in two lists in order of arrival: those under way, then those that wait. If a request fails, its
 * elements return to the front of the waiting list, so that ranges of a session never overtake each other.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "modules/compressor/order/range_relay.h"

TAILQ_HEAD (list, range_relay_element);

struct range_relay {
    size_t limit;
    struct list under_way;
    struct list waiting;
    struct range_relay_stats stats;
    size_t nunder_way;
};

struct range_relay *range_relay_create (size_t limit)
{
    struct range_relay *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    r->limit = limit;
    TAILQ_INIT (&r->under_way);
    TAILQ_INIT (&r->waiting);
    return r;
}

/* Answer an element that was removed from its list, and free the element. */
static void answer (struct range_relay *r, struct range_relay_element *e, const struct range_relay_result *result)
{
    assert (r->stats.elements > 0 && r->stats.ranges >= e->nranges);
    r->stats.elements--;
    r->stats.ranges -= e->nranges;
    if (e->arg)
        e->reply (e->arg, e->index, result);
    free (e->text);
    free (e);
}

void range_relay_destroy (struct range_relay *r)
{
    struct range_relay_element *e;

    if (!r)
        return;
    int saved = errno;
    range_relay_failed (r);
    while ((e = TAILQ_FIRST (&r->waiting))) {
        TAILQ_REMOVE (&r->waiting, e, link);
        answer (r, e, &(struct range_relay_result){ .errnum = ECANCELED });
    }
    free (r);
    errno = saved;
}

struct range_relay_element *range_relay_add_new (struct range_relay *r, struct range_relay_element element)
{
    bool full = element.text && r->stats.elements > 0 && r->stats.ranges + element.nranges > r->limit;
    struct range_relay_element *e = element.text && !full ? malloc (sizeof (*e)) : NULL;

    if (!e) {
        free (element.text);
        return errset_null (full ? EAGAIN : ENOMEM);
    }
    *e = element;
    TAILQ_INSERT_TAIL (&r->waiting, e, link);
    r->stats.elements++;
    r->stats.ranges += e->nranges;
    return e;
}

/* The first waiting element is sent in any case. Further elements are sent while they fit into the limits of a batch.
 */
const struct range_relay_element *range_relay_next (struct range_relay *r)
{
    size_t ranges = 0, bytes = 0;
    struct range_relay_element *e;

    if (r->nunder_way > 0)
        return NULL;
    while ((e = TAILQ_FIRST (&r->waiting))) {
        ranges += e->nranges;
        bytes += strlen (e->text) + 1;
        if (r->nunder_way > 0 && (ranges > RANGE_RELAY_BATCH_RANGES || bytes > RANGE_RELAY_BATCH_BYTES))
            break;
        TAILQ_REMOVE (&r->waiting, e, link);
        TAILQ_INSERT_TAIL (&r->under_way, e, link);
        r->nunder_way++;
    }
    r->stats.batches += r->nunder_way > 0;
    r->stats.sent += r->nunder_way;
    return TAILQ_FIRST (&r->under_way);
}

const struct range_relay_element *range_relay_following (const struct range_relay_element *e)
{
    return TAILQ_NEXT (e, link);
}

size_t range_relay_under_way (const struct range_relay *r)
{
    return r->nunder_way;
}

/* The elements are moved to a private list first, because a reply function may add elements. */
void range_relay_answered (struct range_relay *r, const struct range_relay_result *results)
{
    struct list done = TAILQ_HEAD_INITIALIZER (done);
    struct range_relay_element *e;

    TAILQ_CONCAT (&done, &r->under_way, link);
    r->nunder_way = 0;
    while ((e = TAILQ_FIRST (&done))) {
        TAILQ_REMOVE (&done, e, link);
        answer (r, e, results++);
    }
}

void range_relay_failed (struct range_relay *r)
{
    TAILQ_CONCAT (&r->under_way, &r->waiting, link);
    TAILQ_CONCAT (&r->waiting, &r->under_way, link);
    r->nunder_way = 0;
}

void range_relay_expire (struct range_relay *r, uint64_t now_ms)
{
    const struct range_relay_result late = { .errnum = EHOSTUNREACH,
                                             .text = "rank 0 was not reached in time: send it again" };
    struct list expired = TAILQ_HEAD_INITIALIZER (expired);
    struct range_relay_element *e, *next;

    for (e = TAILQ_FIRST (&r->waiting); e; e = next) {
        next = TAILQ_NEXT (e, link);
        if (e->deadline_ms <= now_ms) {
            TAILQ_REMOVE (&r->waiting, e, link);
            TAILQ_INSERT_TAIL (&expired, e, link);
        }
    }
    while ((e = TAILQ_FIRST (&expired))) {
        TAILQ_REMOVE (&expired, e, link);
        answer (r, e, &late);
    }
}

struct range_relay_stats range_relay_stats (const struct range_relay *r)
{
    return r->stats;
}
