/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_relay.c - batches that are being filled, that wait, and that are under way
 *
 * The jobs of a parcel are copied once, into the last waiting batch, so that a batch can be sent as it is. Batches keep
 * their numbers, and waiting batches are in order of number. A batch that was sent before is not filled further.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "libutil/errprintf.h"
#include "libutil/minmax.h"
#include "modules/ingest/node/job_relay.h"

TAILQ_HEAD (parcels, relay_parcel);
TAILQ_HEAD (batches, relay_batch);

struct relay_parcel {
    TAILQ_ENTRY (relay_parcel) link;
    size_t size; /* its bytes in the batch */
    uint32_t count;
    job_relay_reply_f reply;
    void *arg;
};

struct relay_batch {
    TAILQ_ENTRY (relay_batch) link;
    struct jobwire_buf jobs;
    struct parcels parcels; /* in the order of their jobs */
    uint64_t number;
    uint32_t tag; /* of the last time the batch was sent; 0: never sent */
};

struct job_relay {
    size_t max_bytes;
    size_t batch_bytes;
    uint32_t max_under_way;
    struct batches waiting, under_way;
    uint64_t number;
    uint32_t tag;
    uint64_t pause_until_ms; /* 0: no pause */
    uint64_t pause_ms;       /* length of the last pause */
    struct job_relay_stats stats;
};

struct job_relay *job_relay_create (size_t max_bytes, uint32_t max_under_way)
{
    struct job_relay *r = calloc (1, sizeof (*r));

    if (!r)
        return NULL;
    r->max_bytes = max_bytes;
    r->batch_bytes = JOB_RELAY_BATCH_BYTES;
    r->max_under_way = max_under_way;
    TAILQ_INIT (&r->waiting);
    TAILQ_INIT (&r->under_way);
    return r;
}

static void batch_destroy (struct relay_batch *b)
{
    struct relay_parcel *p;

    while ((p = TAILQ_FIRST (&b->parcels))) {
        TAILQ_REMOVE (&b->parcels, p, link);
        free (p);
    }
    jobwire_buf_fini (&b->jobs);
    free (b);
}

void job_relay_destroy (struct job_relay *r)
{
    struct relay_batch *b;
    int saved = errno;

    if (!r)
        return;
    TAILQ_CONCAT (&r->under_way, &r->waiting, link);
    while ((b = TAILQ_FIRST (&r->under_way))) {
        TAILQ_REMOVE (&r->under_way, b, link);
        batch_destroy (b);
    }
    free (r);
    errno = saved;
}

/* --- parcels ------------------------------------------------------------------------------------------------- */

void job_relay_set_batch (struct job_relay *r, size_t bytes)
{
    r->batch_bytes = bytes;
}

static bool has_room (const struct job_relay *r, const struct relay_batch *b, const struct jobwire_reader *jobs)
{
    return b->tag == 0 && b->jobs.count + jobs->count <= JOBWIRE_BATCH_JOBS
           && b->jobs.size + jobs->size <= r->batch_bytes;
}

/* The batch that takes 'jobs': the last waiting batch, or a new one that is not in the list yet. NULL if memory is
 * short.
 */
static struct relay_batch *batch_for (struct job_relay *r, const struct jobwire_reader *jobs)
{
    struct relay_batch *b = TAILQ_LAST (&r->waiting, batches);

    if (b && has_room (r, b, jobs))
        return b;
    if ((b = calloc (1, sizeof (*b))))
        TAILQ_INIT (&b->parcels);
    return b;
}

int job_relay_add (struct job_relay *r, const struct jobwire_reader *jobs, job_relay_reply_f reply, void *arg)
{
    assert (jobs->count > 0);
    if (r->stats.bytes > 0 && r->stats.bytes + jobs->size > r->max_bytes)
        return errset (EAGAIN);
    struct relay_parcel *p = malloc (sizeof (*p));
    struct relay_batch *b = p ? batch_for (r, jobs) : NULL;

    if (!b || jobwire_add_body (&b->jobs, jobs->body, jobs->size, jobs->count) < 0) {
        if (b && b->jobs.count == 0)
            batch_destroy (b);
        free (p);
        return errset (ENOMEM);
    }
    if (b->number == 0) {
        b->number = ++r->number;
        TAILQ_INSERT_TAIL (&r->waiting, b, link);
    }
    *p = (struct relay_parcel){ .size = jobs->size, .count = jobs->count, .reply = reply, .arg = arg };
    TAILQ_INSERT_TAIL (&b->parcels, p, link);
    r->stats.parcels++;
    r->stats.bytes += p->size;
    return 0;
}

/* --- batches ------------------------------------------------------------------------------------------------- */

static uint32_t parcels_of (const struct relay_batch *b)
{
    const struct relay_parcel *p;
    uint32_t n = 0;

    TAILQ_FOREACH (p, &b->parcels, link)
        n++;
    return n;
}

static void set_under_way (struct job_relay *r, struct relay_batch *b)
{
    TAILQ_REMOVE (&r->waiting, b, link);
    TAILQ_INSERT_TAIL (&r->under_way, b, link);
    r->stats.under_way++;
    r->stats.parcels -= parcels_of (b);
}

bool job_relay_next (struct job_relay *r, uint64_t now_ms, const void **data, size_t *size, uint32_t *tag)
{
    struct relay_batch *b = TAILQ_FIRST (&r->waiting);

    if (!b || r->stats.under_way == r->max_under_way || now_ms < r->pause_until_ms)
        return false;
    r->pause_until_ms = 0;
    if (++r->tag == 0)
        r->tag = 1;
    b->tag = r->tag;
    set_under_way (r, b);
    assert (r->stats.under_way <= r->max_under_way);
    r->stats.batches++;
    r->stats.jobs += b->jobs.count;
    *data = b->jobs.data;
    *size = b->jobs.size;
    *tag = b->tag;
    return true;
}

static struct relay_batch *find (struct job_relay *r, uint32_t tag)
{
    struct relay_batch *b;

    TAILQ_FOREACH (b, &r->under_way, link)
        if (b->tag == tag)
            return b;
    return NULL;
}

static void take_back (struct job_relay *r, struct relay_batch *b)
{
    TAILQ_REMOVE (&r->under_way, b, link);
    assert (r->stats.under_way > 0);
    r->stats.under_way--;
}

/* Put a batch back among the waiting batches, in order of number. The loop is short, because few waiting batches have
 * lower numbers.
 */
static void wait_again (struct job_relay *r, struct relay_batch *b)
{
    struct relay_batch *after = TAILQ_FIRST (&r->waiting);

    r->stats.parcels += parcels_of (b);
    while (after && after->number < b->number)
        after = TAILQ_NEXT (after, link);
    if (after)
        TAILQ_INSERT_BEFORE (after, b, link);
    else
        TAILQ_INSERT_TAIL (&r->waiting, b, link);
}

/* Start a pause after a failure. Batches that fail during a pause do not extend it. */
static void pause_after (struct job_relay *r, uint64_t now_ms)
{
    if (now_ms < r->pause_until_ms)
        return;
    r->pause_ms = r->pause_ms > 0 ? min_u64 (2 * r->pause_ms, JOB_RELAY_PAUSE_MAX_MS) : JOB_RELAY_PAUSE_MS;
    r->pause_until_ms = now_ms + r->pause_ms;
}

void job_relay_failed (struct job_relay *r, uint64_t now_ms, uint32_t tag)
{
    struct relay_batch *b = find (r, tag);

    if (!b)
        return;
    r->stats.failed++;
    take_back (r, b);
    wait_again (r, b);
    pause_after (r, now_ms);
}

/* Answer all parcels of a batch that was removed from both lists, and free the batch. A reply function may add parcels.
 */
static void answer (struct job_relay *r, struct relay_batch *b, struct jobwire_reader *verdicts)
{
    struct jobwire_reader own;
    struct relay_parcel *p;

    TAILQ_FOREACH (p, &b->parcels, link) {
        jobwire_split_verdicts (verdicts, p->count, &own);
        assert (own.count == p->count && r->stats.bytes >= p->size);
        r->stats.bytes -= p->size;
        p->reply (p->arg, &own);
    }
    batch_destroy (b);
}

bool job_relay_answered (struct job_relay *r, uint64_t now_ms, uint32_t tag, struct jobwire_reader *verdicts)
{
    struct relay_batch *b = find (r, tag);

    if (!b)
        return true;
    if (verdicts->count != b->jobs.count) {
        job_relay_failed (r, now_ms, tag);
        return false;
    }
    r->pause_ms = 0;
    take_back (r, b);
    answer (r, b, verdicts);
    return true;
}

uint64_t job_relay_due (const struct job_relay *r)
{
    if (TAILQ_EMPTY (&r->waiting) || r->stats.under_way == r->max_under_way)
        return UINT64_MAX;
    return r->pause_until_ms;
}

struct job_relay_stats job_relay_stats (const struct job_relay *r)
{
    return r->stats;
}
