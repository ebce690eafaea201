/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_relay_test.c - parcels are combined, and each gets its own verdicts */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/ingest/node/job_relay.h"

#define NOW UINT64_C (1000000)

/* The sender of a parcel, and the ids it was answered with: answer () gives each job a verdict SAME with its own id. */
struct owner {
    int answers;
    uint64_t id[8];
    uint32_t n;
    struct job_relay *relay; /* the reply function adds a parcel here, or NULL */
};

static bool add (struct job_relay *r, struct owner *o, uint64_t id, uint32_t count, uint32_t spec_size);

static void reply_cb (void *arg, struct jobwire_reader *verdicts)
{
    struct owner *o = arg;
    struct verdict v;

    o->answers++;
    for (o->n = 0; o->n < 8 && jobwire_next_verdict (verdicts, &v); o->n++)
        o->id[o->n] = v.id;
    if (o->relay)
        tap_must (add (o->relay, o, 1000, 1, 2));
    o->relay = NULL;
}

/* Add a parcel of 'count' jobs with ids from 'id' on. */
static bool add (struct job_relay *r, struct owner *o, uint64_t id, uint32_t count, uint32_t spec_size)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader jobs;
    char *spec = calloc (1, spec_size);

    tap_must (spec != NULL);
    for (uint32_t i = 0; i < count; i++)
        tap_must (jobwire_add_job (&b, &(struct job){ .id = id + i, .spec = spec, .spec_size = spec_size }) == 0);
    jobwire_buf_reader (&b, &jobs);
    bool added = job_relay_add (r, &jobs, reply_cb, o) == 0;
    jobwire_buf_fini (&b);
    free (spec);
    return added;
}

struct sent {
    uint32_t tag;
    uint64_t first, last; /* ids */
    uint32_t count;
    const void *data;
    size_t size;
};

static bool next (struct job_relay *r, uint64_t now_ms, struct sent *s)
{
    struct jobwire_reader jobs;
    struct job job;

    if (!job_relay_next (r, now_ms, &s->data, &s->size, &s->tag))
        return false;
    tap_must (jobwire_read_batch (&jobs, s->data, s->size, NULL) == 0);
    s->count = jobs.count;
    s->first = 0;
    while (jobwire_next_job (&jobs, &job)) {
        s->first = s->first ? s->first : job.id;
        s->last = job.id;
    }
    return true;
}

/* Answer each job of a batch with its own id, followed by 'more' surplus verdicts. */
static bool answer (struct job_relay *r, uint64_t now_ms, const struct sent *s, int more)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader jobs, verdicts;
    struct job job;

    tap_must (jobwire_read_batch (&jobs, s->data, s->size, NULL) == 0);
    while (jobwire_next_job (&jobs, &job))
        tap_must (jobwire_add_verdict (&b, &(struct verdict){ .kind = VERDICT_SAME, .id = job.id }) == 0);
    for (int i = 0; i < more; i++)
        tap_must (jobwire_add_verdict (&b, &(struct verdict){ .kind = VERDICT_STORED }) == 0);
    jobwire_buf_reader (&b, &verdicts);
    bool good = job_relay_answered (r, now_ms, s->tag, &verdicts);
    jobwire_buf_fini (&b);
    return good;
}

static void test_together (void)
{
    struct job_relay *r = job_relay_create (100000, JOB_RELAY_UNDER_WAY);
    struct owner a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, more[JOB_RELAY_UNDER_WAY] = { { 0 } };
    struct sent s[JOB_RELAY_UNDER_WAY + 1];
    uint32_t count = 2;

    tap_must (r != NULL);
    ok (!next (r, NOW, &s[0]) && job_relay_due (r) == UINT64_MAX, "a relay without parcels sends nothing");
    tap_must (add (r, &a, 1, 1, 2));
    ok (job_relay_due (r) == 0 && next (r, NOW, &s[0]) && s[0].count == 1,
        "a parcel of a single job is sent immediately");
    tap_must (add (r, &b, 2, 1, 2));
    ok (next (r, NOW, &s[1]) && s[1].first == 2, "a second parcel is sent immediately, too");
    for (; count < JOB_RELAY_UNDER_WAY; count++)
        tap_must (add (r, &more[count], 10 + count, 1, 2) && next (r, NOW, &s[count]));
    tap_must (add (r, &c, 3, 3, 2) && add (r, &d, 6, 2, 2));
    ok (!next (r, NOW, &s[count]) && job_relay_due (r) == UINT64_MAX,
        "parcels wait while as many batches as the limit are under way");
    ok (job_relay_stats (r).parcels == 2 && job_relay_stats (r).under_way == JOB_RELAY_UNDER_WAY,
        "the counters show the waiting parcels and the batches under way");
    ok (answer (r, NOW, &s[1], 0) && b.answers == 1 && b.n == 1 && b.id[0] == 2 && a.answers == 0,
        "the second of two batches may be answered first");
    ok (next (r, NOW, &s[count]) && s[count].first == 3 && s[count].last == 7 && s[count].count == 5,
        "the parcels that wait are sent in one batch");
    ok (answer (r, NOW, &s[count], 0) && c.n == 3 && c.id[0] == 3 && c.id[2] == 5 && d.n == 2 && d.id[0] == 6,
        "each parcel gets the verdicts of its own jobs from the answer to the batch");
    ok (answer (r, NOW, &s[0], 0) && a.id[0] == 1, "a batch may be answered after batches that were sent later");
    for (uint32_t i = 2; i < count; i++)
        tap_must (answer (r, NOW, &s[i], 0));
    ok (job_relay_stats (r).bytes == 0 && job_relay_stats (r).batches == count + 1
            && job_relay_stats (r).jobs == count + 5,
        "after all answers a relay holds no parcel");
    job_relay_failed (r, NOW, s[0].tag);
    ok (!next (r, NOW, &s[0]), "a relay ignores the failure of an unknown tag");
    job_relay_destroy (r);
}

static void test_root (void)
{
    struct job_relay *r = job_relay_create (100000, JOB_RELAY_ROOT_UNDER_WAY);
    struct owner o[JOB_RELAY_ROOT_UNDER_WAY + 2] = { { 0 } };
    struct sent s;
    uint64_t i = 0;

    tap_must (r != NULL);
    for (; i < JOB_RELAY_ROOT_UNDER_WAY; i++)
        tap_must (add (r, &o[i], 10 + i, 1, 2) && next (r, NOW, &s));
    tap_must (add (r, &o[i], 10 + i, 1, 2) && add (r, &o[i + 1], 11 + i, 1, 2));
    ok (!next (r, NOW, &s), "at most %d batches of a relay are under way at rank 0", JOB_RELAY_ROOT_UNDER_WAY);
    tap_must (answer (r, NOW, &s, 0));
    ok (next (r, NOW, &s) && s.count == 2, "parcels that arrive while batches are under way are combined");
    job_relay_destroy (r);
}

static void test_failed (void)
{
    struct job_relay *r = job_relay_create (100000, JOB_RELAY_UNDER_WAY);
    struct owner a = { 0 }, b = { 0 }, c = { 0 };
    struct sent s[3], again[3];

    tap_must (r != NULL);
    tap_must (add (r, &a, 1, 1, 2) && next (r, NOW, &s[0]));
    tap_must (add (r, &b, 2, 1, 2) && next (r, NOW, &s[1]));
    tap_must (add (r, &c, 3, 1, 2));
    job_relay_failed (r, NOW, s[1].tag);
    job_relay_failed (r, NOW, s[0].tag);
    ok (job_relay_due (r) == NOW + JOB_RELAY_PAUSE_MS && !next (r, NOW + JOB_RELAY_PAUSE_MS - 1, &again[0]),
        "after a failed batch there is a pause");
    ok (next (r, NOW + JOB_RELAY_PAUSE_MS, &again[0]) && again[0].first == 1 && again[0].count == 1
            && next (r, NOW + JOB_RELAY_PAUSE_MS, &again[1]) && again[1].first == 2 && again[1].count == 1,
        "after the pause the failed batches are sent again, unchanged and in order");
    ok (!answer (r, NOW + 20, &again[1], 1) && b.answers == 0,
        "an answer with more verdicts than the batch has jobs is refused");
    ok (job_relay_due (r) == NOW + 20 + 2 * JOB_RELAY_PAUSE_MS, "after a second failure the pause is twice as long");
    ok (!answer (r, NOW + 20, &s[0], 0) || a.answers == 0,
        "an answer to the first sending of a batch is ignored after the second");
    ok (answer (r, NOW + 21, &again[0], 0) && a.answers == 1, "an answer to the second sending of a batch counts");
    uint64_t now = NOW + 20 + 2 * JOB_RELAY_PAUSE_MS, pause = 0;
    ok (!next (r, now - 1, &again[1]) && next (r, now, &again[1]) && again[1].first == 2,
        "another failed batch is sent when the pause is over");
    ok (next (r, now, &again[2]) && again[2].first == 3, "a batch that was made later is sent after the failed ones");
    now = NOW + 100;
    for (int i = 0; i < 12; i++) {
        job_relay_failed (r, now, again[1].tag);
        pause = job_relay_due (r) - now;
        now += pause;
        tap_must (next (r, now, &again[1]));
    }
    ok (pause == JOB_RELAY_PAUSE_MAX_MS, "a pause of a relay is at most JOB_RELAY_PAUSE_MAX_MS");
    tap_must (answer (r, now, &again[1], 0));
    job_relay_failed (r, now, again[2].tag);
    ok (job_relay_due (r) == now + JOB_RELAY_PAUSE_MS, "after an answer the pause of a relay is short again");
    ok (job_relay_stats (r).failed == 2 + 1 + 12 + 1, "a relay counts failures");
    job_relay_destroy (r);
}

static void test_limits (void)
{
    struct job_relay *r = job_relay_create (4u << 20, JOB_RELAY_UNDER_WAY);
    struct owner o = { 0 };
    struct sent s;

    tap_must (r != NULL);
    ok (add (r, &o, 1, 1, 5u << 20), "a parcel larger than the limit is accepted if the relay holds no other");
    ok (!add (r, &o, 2, 1, 2) && errno == EAGAIN, "a parcel above the limit is refused with EAGAIN");
    tap_must (next (r, NOW, &s));
    ok (!add (r, &o, 2, 1, 2) && errno == EAGAIN,
        "a parcel above the limit is refused while the first is under way, too");
    tap_must (answer (r, NOW, &s, 0));
    tap_must (add (r, &o, 1, 1, JOB_RELAY_BATCH_BYTES / 2) && add (r, &o, 2, 1, JOB_RELAY_BATCH_BYTES / 2)
              && add (r, &o, 3, 1, 9));
    ok (next (r, NOW, &s) && s.count == 1 && next (r, NOW, &s) && s.count == 2,
        "parcels are combined up to JOB_RELAY_BATCH_BYTES");
    job_relay_set_batch (r, JOB_RELAY_STORE_BYTES);
    tap_must (add (r, &o, 4, 1, JOB_RELAY_STORE_BYTES / 2) && add (r, &o, 5, 1, JOB_RELAY_STORE_BYTES / 3));
    ok (next (r, NOW, &s) && s.count == 2, "parcels are combined up to the size that job_relay_set_batch () set");
    job_relay_destroy (r);

    tap_must ((r = job_relay_create (16u << 20, JOB_RELAY_UNDER_WAY)) != NULL);
    tap_must (add (r, &o, 1, JOBWIRE_BATCH_JOBS - 1, 2) && add (r, &o, 9000, 1, 2) && add (r, &o, 9001, 1, 2));
    ok (next (r, NOW, &s) && s.count == JOBWIRE_BATCH_JOBS && next (r, NOW, &s) && s.count == 1,
        "parcels are combined up to JOBWIRE_BATCH_JOBS");
    job_relay_destroy (r);
}

static void test_more (void)
{
    struct job_relay *r = job_relay_create (100000, JOB_RELAY_UNDER_WAY);
    struct owner a = { 0 }, b = { 0 };
    struct sent t;

    tap_must (r != NULL);
    a.relay = r;
    tap_must (add (r, &a, 1, 1, 2) && add (r, &b, 2, 1, 2) && next (r, NOW, &t));
    ok (answer (r, NOW, &t, 0) && a.answers == 1 && b.answers == 1 && next (r, NOW, &t) && t.first == 1000,
        "a reply function may add a parcel to the relay");
    job_relay_failed (r, NOW, t.tag);
    tap_must (add (r, &b, 2, 1, 2));
    ok (next (r, NOW + 1000, &t) && t.count == 1,
        "a parcel that arrives after a failure is not put into the failed batch");
    job_relay_destroy (r);
    job_relay_destroy (NULL);
}

int main (void)
{
    test_together ();
    test_root ();
    test_failed ();
    test_limits ();
    test_more ();
    return done_testing ();
}
