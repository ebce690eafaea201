/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* entry_test.c - each submitted job is answered once */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/ingest/node/entry.h"

#define NOW UINT64_C (1000000)
#define TIMEOUT_MS 1000
#define COOKIES 64

/* The entry of a rank, its ids, and the answers to its submitters. */
struct rig {
    struct entry *e;
    struct job_block ids;
    struct {
        int answers, errnum;
        uint64_t id;
        char text[64];
    } of[COOKIES];
    struct jobwire_reader batch;
    struct entry_batch *out[ENTRY_BATCHES];
    int nout;
    struct jobwire_buf verdicts;
    int cookie[COOKIES];
    bool more; /* add a job in the next reply */
};

static int add_sized (struct rig *r, uint64_t now_ms, int cookie, uint32_t spec_size, idt_error_t *errp)
{
    struct job job = {
        .userid = (uint32_t)cookie, .flags = 7, .urgency = 16, .key = "key", .key_size = 3, .spec_size = spec_size
    };
    char *spec = malloc (spec_size);

    tap_must (spec != NULL);
    memset (spec, 'x', spec_size);
    return entry_add (r->e, now_ms, &job, spec, &r->cookie[cookie], errp);
}

static int add (struct rig *r, uint64_t now_ms, int cookie)
{
    return add_sized (r, now_ms, cookie, 2, NULL);
}

static void reply_cb (void *arg, void *cookie, uint64_t id, int errnum, const char *text)
{
    struct rig *r = arg;
    long c = (int *)cookie - r->cookie;

    r->of[c].answers++;
    r->of[c].errnum = errnum;
    r->of[c].id = id;
    snprintf (r->of[c].text, sizeof (r->of[c].text), "%s", text ? text : "");
    if (r->more)
        (void)add (r, NOW, COOKIES - 1);
    r->more = false;
}

static void start (struct rig *r, uint32_t max_jobs, size_t max_bytes)
{
    memset (r, 0, sizeof (*r));
    r->e = entry_create (max_jobs, max_bytes, TIMEOUT_MS, reply_cb, r);
    tap_must (r->e != NULL);
    job_block_init (&r->ids);
}

static void stop (struct rig *r)
{
    entry_destroy (r->e);
    job_block_fini (&r->ids);
    jobwire_buf_fini (&r->verdicts);
}

/* Add 'count' ids from 'first' on, requested now. */
static void fill (struct rig *r, uint64_t now_ms, uint64_t first, uint32_t count)
{
    tap_must (job_block_ask (&r->ids, now_ms, JOB_BLOCK_MAX_IDS) > 0
              && job_block_filled (&r->ids, &(struct job_block_run){ first, count }, 1) == 0);
}

/* Put the next batch out, behind the batches that are out. */
static bool next_batch (struct rig *r, uint64_t now_ms)
{
    struct entry_batch *b = entry_batch (r->e, now_ms, &r->ids, &r->batch);

    if (b)
        r->out[r->nout++] = b;
    return b != NULL;
}

/* Whether the next batch has the jobs of these cookies (-1 ends the list), with ids from 'first' on. */
static bool batch_is (struct rig *r, uint64_t now_ms, uint64_t first, const int *cookie)
{
    struct job job;

    if (!next_batch (r, now_ms))
        return false;
    for (; *cookie >= 0; cookie++, first++)
        if (!jobwire_next_job (&r->batch, &job) || job.id != first || job.userid != (uint32_t)*cookie || job.flags != 7
            || job.urgency != 16 || job.key_size != 3 || memcmp (job.key, "key", 3) != 0 || job.spec[0] != 'x')
            return false;
    return r->batch.count == 0;
}

/* Apply verdicts to the batch that has been out longest. */
static void judge (struct rig *r, uint64_t now_ms, const struct verdict *v, int n)
{
    struct entry_batch *b = r->out[0];
    struct jobwire_reader verdicts;

    tap_must (r->nout > 0);
    memmove (r->out, r->out + 1, sizeof (r->out[0]) * (size_t)--r->nout);
    jobwire_buf_clear (&r->verdicts);
    for (int i = 0; i < n; i++)
        tap_must (jobwire_add_verdict (&r->verdicts, &v[i]) == 0);
    jobwire_buf_reader (&r->verdicts, &verdicts);
    entry_verdicts (b, now_ms, &verdicts);
}

static const struct verdict stored = { .kind = VERDICT_STORED }, late = { .kind = VERDICT_LATE };

static void test_verdicts (void)
{
    static const struct verdict v[] = {
        { .kind = VERDICT_STORED },
        { .kind = VERDICT_SAME, .id = 7 },
        { .kind = VERDICT_REFUSED, .errnum = ENOSPC, .text = "full!", .text_size = 4 },
        { .kind = VERDICT_FORGOTTEN },
        { .kind = VERDICT_REFUSED, .errnum = EIO },
    };
    struct rig r;

    start (&r, 100, 100000);
    ok (entry_wants (r.e) == 0 && !next_batch (&r, NOW) && entry_due (r.e) == UINT64_MAX,
        "an entry without jobs makes no batch, and has no deadline");
    for (int i = 0; i < 5; i++)
        tap_must (add (&r, NOW, i) == 0);
    ok (entry_wants (r.e) == 5 && !next_batch (&r, NOW),
        "an entry with jobs wants ids for them, and waits for these ids");
    fill (&r, NOW, 100, 5);
    ok (batch_is (&r, NOW, 100, (int[]){ 0, 1, 2, 3, 4, -1 }),
        "a batch has the jobs in the order in which they arrived");
    ok (entry_wants (r.e) == 0, "jobs in a batch do not want ids");
    tap_must (add (&r, NOW, 5) == 0);
    ok (!next_batch (&r, NOW), "a job for which there is no id waits");
    judge (&r, NOW, v, 5);
    ok (r.of[0].answers == 1 && r.of[0].errnum == 0 && r.of[0].id == 100 && !r.of[0].text[0],
        "the submitter of a stored job gets its id");
    ok (r.of[1].answers == 1 && r.of[1].errnum == 0 && r.of[1].id == 7 && r.of[1].text[0],
        "the submitter of a job with a known key gets the id of the stored job, and a text");
    ok (r.of[2].errnum == ENOSPC && strcmp (r.of[2].text, "full") == 0,
        "the submitter of a refused job gets the errno and the reason");
    ok (r.of[3].errnum == ETIMEDOUT && r.of[3].text[0], "the submitter of a forgotten job gets ETIMEDOUT");
    ok (r.of[4].errnum == EIO && !r.of[4].text[0], "a refusal may have no text");
    ok (r.of[5].answers == 0 && entry_stats (r.e).jobs == 1, "a job that arrived after a batch was made still waits");
    fill (&r, NOW, 200, 5);
    ok (batch_is (&r, NOW, 200, (int[]){ 5, -1 }), "a job that arrived after a batch was made is in the next batch");
    judge (&r, NOW, v, 1);
    struct entry_stats s = entry_stats (r.e);
    ok (s.jobs == 0 && s.bytes == 0 && s.stored == 2 && s.same == 1 && s.refused == 2 && s.forgotten == 1,
        "the counters of an entry have all verdicts");
    stop (&r);
}

static void test_late (void)
{
    struct rig r;

    start (&r, 100, 100000);
    for (int i = 0; i < 3; i++)
        tap_must (add (&r, NOW, i) == 0);
    fill (&r, NOW, 100, 10);
    tap_must (batch_is (&r, NOW, 100, (int[]){ 0, 1, 2, -1 }));
    tap_must (add (&r, NOW, 3) == 0);
    judge (&r, NOW, (struct verdict[]){ late, late, stored }, 3);
    ok (r.of[2].answers == 1 && r.of[0].answers == 0, "the submitter of a late job is not answered yet");
    ok (batch_is (&r, NOW, 103, (int[]){ 0, 1, 3, -1 }), "late jobs get new ids, before jobs that arrived later");
    judge (&r, NOW, (struct verdict[]){ stored, stored, late }, 3);
    ok (r.of[1].id == 104 && entry_wants (r.e) == 0 && !next_batch (&r, NOW),
        "if the job with the newest id was late there is a pause");
    ok (entry_due (r.e) == NOW + ENTRY_PAUSE_MS, "the pause after a late job ends after ENTRY_PAUSE_MS");
    ok (job_block_take (&r.ids, NOW) == 0, "in the pause after a late job prefetched ids are thrown away");
    entry_expire (r.e, NOW + ENTRY_PAUSE_MS, "");
    ok (entry_wants (r.e) == 1 && entry_due (r.e) == NOW + TIMEOUT_MS,
        "after the pause the entry wants ids for late jobs");
    uint64_t now = NOW + ENTRY_PAUSE_MS, pause = 0;
    for (int i = 0; i < 6; i++) {
        fill (&r, now, 1000 * (uint64_t)(i + 1), 10);
        tap_must (next_batch (&r, now));
        judge (&r, now, &late, 1);
        (void)next_batch (&r, now);
        pause = entry_due (r.e) - now;
        now += pause;
    }
    ok (pause == ENTRY_PAUSE_MAX_MS, "the pauses after late jobs become longer, up to a limit (%d)", (int)pause);
    fill (&r, now, 10000, 10);
    ok (batch_is (&r, now, 10000, (int[]){ 3, -1 }), "a pause may end with the batch after a late one");
    entry_expire (r.e, NOW + TIMEOUT_MS, "");
    judge (&r, now, &late, 1);
    ok (entry_stats (r.e).jobs == 0 && r.of[3].answers == 1,
        "a late job whose submitter was answered already is dropped");
    ok (entry_stats (r.e).late == 10, "an entry counts late jobs");
    stop (&r);
}

/* Put out as many batches as allowed, of two jobs each. */
static void put_out_all (struct rig *r, uint64_t now_ms, uint64_t first)
{
    for (int i = 0; i < ENTRY_BATCHES; i++) {
        fill (r, now_ms, first + 2 * (uint64_t)i, 2);
        tap_must (add (r, now_ms, 2 * i) == 0 && add (r, now_ms, 2 * i + 1) == 0);
        tap_must (batch_is (r, now_ms, first + 2 * (uint64_t)i, (int[]){ 2 * i, 2 * i + 1, -1 }));
    }
}

static void test_several (void)
{
    const struct verdict other = { .kind = VERDICT_LATE, .id = 77 };
    const int last = 2 * ENTRY_BATCHES; /* the job behind these */
    struct rig r;

    start (&r, 100, 100000);
    put_out_all (&r, NOW, 100);
    tap_must (add (&r, NOW, last) == 0);
    fill (&r, NOW, 200, 5);
    ok (!next_batch (&r, NOW) && r.nout == ENTRY_BATCHES, "at most %d batches of an entry are out", ENTRY_BATCHES);
    struct entry_batch *third = r.out[2];
    r.out[2] = r.out[0];
    r.out[0] = third;
    judge (&r, NOW, (struct verdict[]){ stored, stored }, 2);
    ok (r.of[4].id == 104 && r.of[5].id == 105 && r.of[0].answers == 0, "batches may get their verdicts in any order");
    ok (batch_is (&r, NOW, 200, (int[]){ last, -1 }), "after the verdicts of a batch the next one is made");
    judge (&r, NOW, (struct verdict[]){ late, late }, 2);
    ok (entry_due (r.e) == NOW + ENTRY_PAUSE_MS, "a batch of late jobs causes a pause");
    for (int i = 2; i < ENTRY_BATCHES; i++)
        judge (&r, NOW, (struct verdict[]){ late, late }, 2);
    ok (entry_due (r.e) == NOW + ENTRY_PAUSE_MS, "several batches of late jobs that were out together cause one pause");
    judge (&r, NOW, &stored, 1);
    ok (r.of[last].id == 200 && entry_wants (r.e) == 0 && entry_stats (r.e).late == 2 * (ENTRY_BATCHES - 1),
        "while an entry pauses, jobs of other batches are stored");
    entry_stop (r.e, EAGAIN, NULL);
    stop (&r);

    start (&r, 100, 100000);
    put_out_all (&r, NOW, 100);
    for (int i = 0; i < ENTRY_BATCHES; i++)
        judge (&r, NOW, (struct verdict[]){ other, other }, 2);
    fill (&r, NOW, 300, last);
    ok (next_batch (&r, NOW) && r.batch.count == (uint32_t)last,
        "jobs that were sent to an earlier life of rank 0 are sent again without a pause");
    stop (&r);
}

static void test_more (void)
{
    struct rig r;

    start (&r, 1000, 100000);
    tap_must (add (&r, NOW, 0) == 0 && add (&r, NOW, 1) == 0);
    fill (&r, NOW, 100, 10);
    tap_must (batch_is (&r, NOW, 100, (int[]){ 0, 1, -1 }));
    r.more = true;
    judge (&r, NOW, (struct verdict[]){ stored, late }, 2);
    ok (r.of[0].answers == 1 && entry_stats (r.e).jobs == 2 && entry_wants (r.e) == 0,
        "a job that a reply function adds during a pause waits together with the late one");
    entry_expire (r.e, NOW + ENTRY_PAUSE_MS, "");
    ok (entry_wants (r.e) == 2, "after the pause the late job and the added job want ids");
    entry_stop (r.e, EAGAIN, NULL);
    stop (&r);
}

static void test_expire (void)
{
    struct rig r;

    start (&r, 100, 100000);
    tap_must (add (&r, NOW, 0) == 0 && add (&r, NOW + 1, 1) == 0);
    fill (&r, NOW, 100, 1);
    tap_must (batch_is (&r, NOW, 100, (int[]){ 0, -1 }));
    ok (entry_due (r.e) == NOW + TIMEOUT_MS, "the oldest job is due first");
    entry_expire (r.e, NOW + TIMEOUT_MS - 1, "");
    ok (r.of[0].answers == 0, "before its deadline a job is not answered");
    entry_expire (r.e, NOW + TIMEOUT_MS, "");
    ok (r.of[0].answers == 1 && r.of[0].errnum == ETIMEDOUT && r.of[1].answers == 0,
        "at its deadline the submitter of a job gets ETIMEDOUT");
    entry_expire (r.e, NOW + TIMEOUT_MS + 1, "");
    ok (r.of[1].errnum == ETIMEDOUT && entry_wants (r.e) == 0 && entry_stats (r.e).jobs == 1,
        "a job that was never sent is dropped at its deadline");
    judge (&r, NOW + 2000, &stored, 1);
    ok (r.of[0].answers == 1 && entry_stats (r.e).jobs == 0 && entry_stats (r.e).expired == 2,
        "a verdict for a job after its deadline is ignored");
    ok (entry_due (r.e) == UINT64_MAX, "an entry whose jobs were all answered has no deadline");
    stop (&r);
}

static void test_stop (void)
{
    struct rig r;

    start (&r, 100, 100000);
    tap_must (add (&r, NOW, 0) == 0 && add (&r, NOW, 1) == 0 && add (&r, NOW, 2) == 0);
    fill (&r, NOW, 100, 2);
    tap_must (batch_is (&r, NOW, 100, (int[]){ 0, 1, -1 }));
    entry_stop (r.e, ENOSYS, "it ends");
    ok (r.of[0].errnum == ETIMEDOUT && r.of[1].errnum == ETIMEDOUT && r.of[2].errnum == ENOSYS,
        "at the end of an entry the submitters of jobs that are out get ETIMEDOUT, and the others get the given errno");
    ok (strcmp (r.of[0].text, "it ends") == 0 && strcmp (r.of[2].text, "it ends") == 0,
        "the answers at the end of an entry have the given text");
    stop (&r);
    ok (r.of[0].answers == 1 && r.of[2].answers == 1, "at the end of an entry each submitter is answered once");
    entry_destroy (NULL);
}

static void test_limits (void)
{
    struct rig r;
    idt_error_t err;

    start (&r, 2, 1000);
    tap_must (add (&r, NOW, 0) == 0 && add (&r, NOW, 1) == 0);
    ok (add_sized (&r, NOW, 2, 2, &err) < 0 && errno == EAGAIN, "jobs above the limit of an entry are refused: %s",
        err.text);
    stop (&r);
    start (&r, 100, 1000);
    ok (add_sized (&r, NOW, 0, 2000, NULL) == 0,
        "a job larger than the limit of an entry is accepted if no other is held");
    ok (add_sized (&r, NOW, 1, 2, &err) < 0 && errno == EAGAIN,
        "a second job beside one larger than the limit is refused: %s", err.text);
    ok (entry_stats (r.e).jobs == 1 && r.of[1].answers == 0, "the reply function is not called for a refused job");
    stop (&r);

    start (&r, 10000, 100u << 20);
    for (int i = 0; i < 3; i++)
        tap_must (add_sized (&r, NOW, i, ENTRY_BATCH_BYTES / 5 * 2, NULL) == 0);
    tap_must (add_sized (&r, NOW, 3, 5u << 20, NULL) == 0);
    fill (&r, NOW, 100, 4096);
    ok (batch_is (&r, NOW, 100, (int[]){ 0, 1, -1 }) && batch_is (&r, NOW, 102, (int[]){ 2, -1 }),
        "a batch has at most ENTRY_BATCH_BYTES");
    ok (batch_is (&r, NOW, 103, (int[]){ 3, -1 }), "a batch of a single job may have more than ENTRY_BATCH_BYTES");
    judge (&r, NOW, (struct verdict[]){ stored, stored }, 2);
    judge (&r, NOW, &stored, 1);
    judge (&r, NOW, &stored, 1);
    for (int i = 0; i < JOBWIRE_BATCH_JOBS + 1; i++)
        tap_must (add (&r, NOW, 5) == 0);
    fill (&r, NOW, 10000, 4096);
    ok (next_batch (&r, NOW) && r.batch.count > 1000 && r.batch.count <= JOBWIRE_BATCH_JOBS,
        "a batch has at most JOBWIRE_BATCH_JOBS, even if jobs are short");
    stop (&r);
}

int main (void)
{
    test_verdicts ();
    test_late ();
    test_several ();
    test_more ();
    test_expire ();
    test_stop ();
    test_limits ();
    return done_testing ();
}
