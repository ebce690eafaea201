/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* alloc_test.c - fail the 1st, 2nd, 3rd ... allocation of each call until the call succeeds: a failed call changes
 * nothing
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/tap.h"
#include "modules/ingest/node/entry.h"
#include "modules/ingest/node/job_relay.h"
#include "modules/ingest/root/visibility.h"
#include "test/failing_alloc.h"

#define ROUNDS 300
#define NOW UINT64_C (1000000)

/* The objects of one rank, and a consumer. */
struct rig {
    struct entry *entry;
    struct job_block ids;
    struct job_relay *relay;
    struct job_watch *watch;
    struct jobwire_buf buf;
    uint64_t next_id;
    int answers;
    int cookie;
};

static struct jobwire_buf parcel; /* made before allocations fail */

typedef int (*call_f) (struct rig *r, int n);

static int call_entry (struct rig *r, int n)
{
    struct job job = { .key = "key", .key_size = (uint8_t)(n % 4), .spec_size = 2 };
    char *spec = malloc (2);

    if (!spec)
        return -1;
    memcpy (spec, "{}", 2);
    return entry_add (r->entry, NOW, &job, spec, &r->cookie, NULL);
}

static int call_ids (struct rig *r, int n)
{
    struct job_block_run run[2] = { { r->next_id, 1 }, { r->next_id + 2, 1 } };

    (void)job_block_ask (&r->ids, NOW + (uint64_t)n * JOB_BLOCK_PAUSE_MS, UINT32_MAX);
    if (job_block_filled (&r->ids, run, 2) < 0)
        return -1;
    r->next_id += 3;
    return 0;
}

static int call_relay (struct rig *r, int n)
{
    struct jobwire_reader jobs;
    const void *data;
    size_t size;
    uint32_t tag;

    jobwire_buf_reader (&parcel, &jobs);
    if (job_relay_add (r->relay, &jobs, NULL, NULL) < 0)
        return -1;
    if (n % 100 == 50)
        (void)job_relay_next (r->relay, NOW, &data, &size, &tag);
    return 0;
}

static int call_watch (struct rig *r, int n)
{
    return n >= JOB_WATCH_MAX || job_watch_add (r->watch, 0, 0, NULL) ? 0 : -1;
}

static int call_verdict (struct rig *r, int n)
{
    return jobwire_add_verdict (&r->buf, &(struct verdict){
                                             .kind = VERDICT_REFUSED, .errnum = 1, .text = "no", .text_size = 2 });
}

static void reply_cb (void *arg, void *cookie, uint64_t id, int errnum, const char *text)
{
    struct rig *r = arg;

    r->answers++;
}

/* The visible state of a rig. */
struct view {
    struct entry_stats entry;
    struct job_relay_stats relay;
    uint64_t left, top;
    size_t size;
    uint32_t count, wants;
};

static struct view view_of (const struct rig *r)
{
    struct view v;

    memset (&v, 0, sizeof (v));
    v.entry = entry_stats (r->entry);
    v.relay = job_relay_stats (r->relay);
    v.left = r->ids.left;
    v.top = r->ids.top;
    v.size = r->buf.size;
    v.count = r->buf.count;
    v.wants = entry_wants (r->entry);
    return v;
}

static bool same_view (const struct view *a, const struct view *b)
{
    return a->entry.jobs == b->entry.jobs && a->entry.bytes == b->entry.bytes && a->relay.parcels == b->relay.parcels
           && a->relay.bytes == b->relay.bytes && a->left == b->left && a->top == b->top && a->size == b->size
           && a->count == b->count && a->wants == b->wants;
}

static void test_call (struct rig *r, const char *name, call_f call)
{
    int failed = 0;
    bool good = true;

    for (int n = 0; n < ROUNDS; n++)
        for (int nth = 0;; nth++) {
            struct view before = view_of (r);

            countdown = nth;
            int rc = call (r, n);
            countdown = -1;
            if (rc == 0)
                break;
            struct view now = view_of (r);
            good = good && errno == ENOMEM && same_view (&before, &now);
            failed++;
        }
    ok (good && failed > 0, "%s: each of %d calls that failed with ENOMEM changed nothing", name, failed);
}

/* Without memory entry_batch () makes no batch, and job_watch_next () passes the turn to the next consumer. */
static void test_later (struct rig *r)
{
    struct jobwire_reader batch;
    struct watcher *c;
    uint64_t after;
    uint32_t max_jobs, wants = entry_wants (r->entry);
    size_t max_bytes;
    uint64_t now = NOW + ROUNDS * JOB_BLOCK_PAUSE_MS;

    countdown = 0;
    bool any = entry_batch (r->entry, now, &r->ids, &batch) != NULL;
    countdown = 0;
    c = job_watch_next (r->watch, 1, &after, &max_jobs, &max_bytes);
    countdown = -1;
    ok (!any && entry_wants (r->entry) == wants, "without memory no batch is made");
    struct watcher *first = job_watch_find (r->watch, 1);
    ok (c != first && job_watch_next (r->watch, 1, &after, &max_jobs, &max_bytes) == first,
        "a turn that failed for lack of memory is given to the same consumer again");
    ok (entry_batch (r->entry, now, &r->ids, &batch) && entry_wants (r->entry) == wants - batch.count,
        "when memory is available again a batch is made");
}

static bool create (struct rig *r)
{
    r->next_id = 1;
    job_block_init (&r->ids);
    r->entry = entry_create (100000, 1u << 30, 1000, reply_cb, r);
    r->relay = r->entry ? job_relay_create (1u << 30, JOB_RELAY_UNDER_WAY) : NULL;
    r->watch = r->relay ? job_watch_create () : NULL;
    return r->watch != NULL;
}

static void destroy (struct rig *r)
{
    entry_destroy (r->entry);
    job_relay_destroy (r->relay);
    job_watch_destroy (r->watch);
    job_block_fini (&r->ids);
    jobwire_buf_fini (&r->buf);
}

int main (void)
{
    struct rig r = { 0 };
    int tries = 0;

    do {
        destroy (&r);
        memset (&r, 0, sizeof (r));
        countdown = tries++;
    } while (!create (&r));
    countdown = -1;
    ok (tries == 4, "each object of the module needs one allocation");
    if (jobwire_add_job (&parcel, &(struct job){ .id = 1, .spec = "{}", .spec_size = 2 }) < 0)
        bail_out ("no memory");
    test_call (&r, "submitted jobs", call_entry);
    test_call (&r, "ids", call_ids);
    test_call (&r, "parcels", call_relay);
    test_call (&r, "consumers", call_watch);
    test_call (&r, "verdicts", call_verdict);
    test_later (&r);
    ok (r.answers == 0, "an entry without memory answers no submitter");
    destroy (&r);
    jobwire_buf_fini (&parcel);
    return done_testing ();
}
