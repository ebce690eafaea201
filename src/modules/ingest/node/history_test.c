/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history_test.c - random histories of a small tree
 *
 * Jobs are submitted at seven ranks. Rank 0 has the line, consumers, and a store that is an array and keeps the rules
 * of root/job_store.h. Batches and answers are delayed or lost; ranks get another parent while copies of their batches
 * are on the way; ranks and rank 0 restart; commits fail; consumers acknowledge, and acknowledged jobs are forgotten.
 * Clocks differ. In all histories:
 *
 *   a submission is answered once, unless its rank or its submitter has gone
 *   a job that was answered as stored is stored, under that id only
 *   a job that was refused is never stored
 *   no job is stored twice; of jobs with the same key only one is stored, while the key is remembered
 *   no job is stored below a job that a consumer was shown, and each consumer gets all jobs
 *
 * As a check of the test, a root that breaks one of its rules must be detected.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "test/tap.h"
#include "libutil/minmax.h"
#include "modules/ingest/node/entry.h"
#include "modules/ingest/node/job_relay.h"
#include "modules/ingest/root/visibility.h"

enum { RANKS = 7, MAX_EVENTS = 1024, MAX_SUBS = 512, MAX_JOBS = 512, CONSUMERS = 2, KEYS = 256 };
#define T0_MS 100000
#define SKEW_MS 60      /* the largest difference of clocks */
#define CHAOS_MS 700    /* until then faults happen */
#define CALM_MS 1000    /* from then on new ids are above all forgotten ids */
#define LAST_MS 1100    /* the last submission */
#define END_MS 4500     /* end; all submissions are answered */
#define PATIENT_MS 3500 /* a timeout that no submission after CALM_MS reaches */
#define HISTORIES 3000

/* The rule that a root breaks. */
enum breach {
    NONE,
    LATE_FIRST,     /* checks the line before it checks whether a job is stored */
    NOT_RAISED,     /* does not raise the line over refused jobs */
    NO_LIFE,        /* stores jobs that name another life */
    STORED_REFUSED, /* refuses all jobs of a failed group, also those stored before */
    NO_FLOOR,       /* does not know which ids it has forgotten */
    SHOWN_EARLY,    /* shows jobs below the watermark while a group is under way */
    NO_KEYS,
    BREACHES
};

enum event_type { EV_BATCH, EV_ANSWER, EV_FAILED, EV_IDS, EV_COMMIT, EV_SUBMIT, EV_WATERMARK, EV_CONSUME, EV_CHAOS };

struct event {
    uint64_t at_ms;
    enum event_type type;
    int rank, life;      /* the receiver */
    int from, from_life; /* of EV_BATCH: the sender */
    uint32_t tag;
    char *data;
    size_t size;
    struct job_block_run run; /* of EV_IDS; empty: the request failed */
};

struct submission {
    struct history *h;
    int rank, life;
    int key; /* 0: no key */
    uint64_t at_ms;
    int answers;
    int errnum;
    bool gone;   /* the submitter has gone */
    uint64_t id; /* under which it is stored; 0: not stored */
};

struct stored {
    uint64_t id;
    int sub, key;
    enum { STORED, REMEMBERED, FORGOTTEN } state;
};

/* A batch of another rank that this rank holds. */
struct uplink_child {
    LIST_ENTRY (uplink_child) link;
    struct rank *rank;
    int from, from_life;
    uint32_t tag;
};

struct rank {
    struct history *h;
    int number, life, parent;
    uint64_t skew_ms, newest_id;
    struct entry *entry;
    struct job_block ids;
    struct job_relay *relay;
    LIST_HEAD (children, uplink_child) children;
    struct entry_batch *out;
    struct jobwire_reader out_jobs;
    uint32_t pending[JOB_RELAY_UNDER_WAY]; /* tags of batches that the parent has; 0: unused */
};

struct consumer {
    uint64_t has, confirmed;
    uint32_t got;
    struct watcher *watcher; /* of this life of the root */
};

struct history {
    uint64_t random, now_ms, seed;
    enum breach breach;
    const char *wrong;
    uint64_t timeout_ms, max_stored, lag_ms; /* delay of the watermark */
    struct rank rank[RANKS];
    struct event event[MAX_EVENTS];
    int nevents;
    struct submission sub[MAX_SUBS];
    int nsubs, keys;
    struct stored stored[MAX_JOBS];
    int nstored;
    uint64_t floor, told; /* told: the highest job that any consumer was shown */
    uint64_t life;        /* of the root */
    struct visibility line;
    struct job_watch *watch;
    struct consumer consumer[CONSUMERS];
    struct {
        uint32_t tag;
        char *data;
        size_t size;
    } queue[JOB_RELAY_UNDER_WAY];
    int nqueue, ngroup; /* ngroup: how many of the queue are in the current group */
    uint64_t group_line;
    struct {
        uint64_t answers[4], refused, unknown, late, copies, restarts, moves, failures;
    } seen;
};

/* --- the world ----------------------------------------------------------------------------------------------- */

static uint64_t below (struct history *h, uint64_t n)
{
    h->random ^= h->random << 13;
    h->random ^= h->random >> 7;
    h->random ^= h->random << 17;
    return (h->random * UINT64_C (0x2545f4914f6cdd1d) >> 16) % n;
}

static bool chance (struct history *h, uint64_t percent)
{
    return below (h, 100) < percent;
}

static bool chaos (const struct history *h)
{
    return h->now_ms < T0_MS + CHAOS_MS;
}

static void wrong (struct history *h, const char *what)
{
    if (!h->wrong)
        h->wrong = what;
}

static void post (struct history *h, uint64_t in_ms, struct event e)
{
    if (h->nevents == MAX_EVENTS) {
        wrong (h, "messages do not end");
        free (e.data);
        return;
    }
    e.at_ms = h->now_ms + in_ms;
    h->event[h->nevents++] = e;
}

static char *copy_of (const void *data, size_t size)
{
    char *copy = malloc (size);

    tap_must (copy != NULL);
    memcpy (copy, data, size);
    return copy;
}

/* Make 'count' ids of a rank's generator, above all ids that it made before, and never below the watermark. */
static uint64_t make_ids (struct rank *rk, uint32_t count)
{
    uint64_t now = (rk->h->now_ms + rk->skew_ms) << 24 | (uint64_t)rk->number << 16;
    uint64_t first = max_u64 (now, rk->newest_id + 1);

    rk->newest_id = first + count - 1;
    return first;
}

static uint64_t watermark (struct history *h)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < RANKS; i++)
        least = min_u64 (least, h->now_ms + h->rank[i].skew_ms);
    return (least - h->lag_ms) << 24;
}

/* --- checks -------------------------------------------------------------------------------------------------- */

static void check_stored (struct history *h, const struct submission *s, uint64_t id)
{
    for (int i = 0; i < h->nstored; i++)
        if (h->stored[i].id == id) {
            if (&h->sub[h->stored[i].sub] != s && (s->key == 0 || h->stored[i].key != s->key))
                wrong (h, "a submission is answered with the id of another");
            return;
        }
    wrong (h, "a submission is answered with an id that is not stored");
}

static void check_refused (struct history *h, const struct submission *s)
{
    if (s->errnum != 0 && s->errnum != ETIMEDOUT && s->id != 0)
        wrong (h, "a submission that was refused is stored");
}

static struct stored *find (struct history *h, uint64_t id)
{
    for (int i = 0; i < h->nstored; i++)
        if (h->stored[i].id == id && h->stored[i].state != FORGOTTEN)
            return &h->stored[i];
    return NULL;
}

static struct stored *find_key (struct history *h, int key)
{
    for (int i = 0; key > 0 && i < h->nstored; i++)
        if (h->stored[i].key == key && h->stored[i].state != FORGOTTEN)
            return &h->stored[i];
    return NULL;
}

static void store (struct history *h, uint64_t id, int sub, int key)
{
    struct submission *s = &h->sub[sub];

    if (h->nstored == MAX_JOBS) {
        wrong (h, "too many jobs are stored");
        return;
    }
    if (s->id != 0)
        wrong (h, "a submission is stored twice");
    if (find_key (h, key))
        wrong (h, "two jobs with the same key are stored");
    if (id <= h->told)
        wrong (h, "a job is stored below a job that a consumer was shown");
    s->id = id;
    if (s->answers > 0)
        check_refused (h, s);
    h->stored[h->nstored++] = (struct stored){ .id = id, .sub = sub, .key = key };
}

/* --- submissions --------------------------------------------------------------------------------------------- */

static void submit (struct history *h, int rank, int key)
{
    struct rank *rk = &h->rank[rank];
    char text[16], key_text[16];

    if (h->nsubs == MAX_SUBS || !rk->entry)
        return;
    struct submission *s = &h->sub[h->nsubs];
    struct job job = { .userid = (uint32_t)h->nsubs, .key = key_text };
    snprintf (text, sizeof (text), "%d", h->nsubs);
    if (key > 0)
        job.key_size = (uint8_t)snprintf (key_text, sizeof (key_text), "%d", key);
    job.spec_size = (uint32_t)strlen (text);
    *s = (struct submission){ .h = h, .rank = rank, .life = rk->life, .key = key, .at_ms = h->now_ms };
    h->nsubs++;
    if (entry_add (rk->entry, h->now_ms, &job, copy_of (text, sizeof (text)), s, NULL) < 0) {
        s->answers++;
        s->errnum = EAGAIN;
    }
}

/* On ETIMEDOUT a submitter may submit the job again with the same key, at the same rank or another one. */
static void reply_cb (void *arg, void *cookie, uint64_t id, int errnum, const char *text)
{
    struct submission *s = cookie;
    struct history *h = s->h;

    if (s->answers++ > 0 || s->gone)
        wrong (h, s->gone ? "a submitter that has gone is answered" : "a submission is answered twice");
    s->errnum = errnum;
    if (errnum == 0) {
        check_stored (h, s, id);
        if (!text && id != s->id)
            wrong (h, "a submission is answered with another id than it is stored under");
        h->seen.answers[text ? 1 : 0]++;
    }
    else {
        check_refused (h, s);
        h->seen.answers[errnum == ETIMEDOUT ? 2 : 3]++;
        if (errnum == ETIMEDOUT && s->at_ms >= T0_MS + CALM_MS && h->timeout_ms == PATIENT_MS)
            wrong (h, "a submission after the faults is answered ETIMEDOUT");
    }
    if (errnum == ETIMEDOUT && s->key > 0 && chaos (h) && chance (h, 60))
        submit (h, chance (h, 50) ? s->rank : (int)below (h, RANKS), s->key);
}

static void submit_some (struct history *h)
{
    int rank = (int)below (h, RANKS);

    for (uint64_t n = chance (h, 10) ? 1 + below (h, 10) : 1; n > 0; n--) {
        int key = 0;

        if (h->keys > 0 && chance (h, 15))
            key = 1 + (int)below (h, (uint64_t)h->keys);
        else if (h->keys < KEYS && chance (h, 30))
            key = ++h->keys;
        submit (h, rank, key);
    }
}

/* --- rank 0 -------------------------------------------------------------------------------------------------- */

/* The number in a text that is not terminated. */
static int number_in (const void *text, size_t size)
{
    const char *p = text;
    int n = 0;

    for (size_t i = 0; i < size; i++)
        n = 10 * n + p[i] - '0';
    return n;
}

/* Apply the rules of root/job_store.h, in their order. 'full': refuse jobs that are not stored yet. */
static struct verdict judge (struct history *h, const struct job *job, bool full)
{
    const struct stored *s = find (h, job->id);
    int key = number_in (job->key, job->key_size);
    uint64_t stored = 0;

    for (int i = 0; i < h->nstored; i++)
        stored += h->stored[i].state == STORED;
    if (full && h->breach == STORED_REFUSED)
        return (struct verdict){ .kind = VERDICT_REFUSED, .errnum = EIO };
    if (h->breach == LATE_FIRST && job->id <= h->group_line)
        return (struct verdict){ .kind = VERDICT_LATE, .id = h->life };
    if (s) {
        h->seen.copies++;
        return (struct verdict){ .kind = VERDICT_STORED };
    }
    if (job->id < h->floor && h->breach != NO_FLOOR)
        return (struct verdict){ .kind = VERDICT_FORGOTTEN };
    if (job->id <= h->group_line && job->life == h->life)
        visibility_late (&h->line, job->id, h->now_ms + h->rank[0].skew_ms);
    if (job->id <= h->group_line || (job->life != h->life && h->breach != NO_LIFE))
        return (struct verdict){ .kind = VERDICT_LATE, .id = h->life };
    if ((s = find_key (h, key)) && h->breach != NO_KEYS)
        return (struct verdict){ .kind = VERDICT_SAME, .id = s->id };
    if (full || stored >= h->max_stored)
        return (
            struct verdict){ .kind = VERDICT_REFUSED, .errnum = full ? EIO : ENOSPC, .text = "full", .text_size = 4 };
    store (h, job->id, (int)job->userid, key);
    return (struct verdict){ .kind = VERDICT_STORED };
}

static void judge_batch (struct history *h, int i, bool fails, struct jobwire_buf *verdicts, uint64_t *refused)
{
    struct jobwire_reader r;
    struct job job;
    idt_error_t error;

    if (jobwire_read_batch (&r, h->queue[i].data, h->queue[i].size, &error) < 0) {
        wrong (h, "a batch cannot be read");
        return;
    }
    while (jobwire_next_job (&r, &job)) {
        if (number_in (job.spec, job.spec_size) != (int)job.userid)
            wrong (h, "a job has the jobspec of another");
        struct verdict v = judge (h, &job, fails);
        if (v.kind == VERDICT_REFUSED || v.kind == VERDICT_SAME)
            *refused = max_u64 (*refused, job.id);
        h->seen.refused += v.kind == VERDICT_REFUSED;
        h->seen.late += v.kind == VERDICT_LATE;
        tap_must (jobwire_add_verdict (verdicts, &v) == 0);
    }
}

static void begin_group (struct history *h)
{
    if (h->ngroup > 0 || h->nqueue == 0)
        return;
    h->ngroup = h->nqueue;
    h->group_line = visibility_begin (&h->line);
    post (h, below (h, chance (h, 5) ? 100 : 10), (struct event){ .type = EV_COMMIT, .life = h->rank[0].life });
}

/* Read the batches, which are borrowed from the relay, before the relay is answered. */
static void end_group (struct history *h)
{
    struct jobwire_buf verdicts[JOB_RELAY_UNDER_WAY] = { { 0 } };
    bool fails = chaos (h) && chance (h, 10);
    uint32_t tag[JOB_RELAY_UNDER_WAY];
    uint64_t refused = 0;
    int n = h->ngroup;

    h->seen.failures += fails;
    for (int i = 0; i < n; i++) {
        judge_batch (h, i, fails, &verdicts[i], &refused);
        tag[i] = h->queue[i].tag;
        free (h->queue[i].data);
    }
    memmove (h->queue, h->queue + n, (size_t)(h->nqueue - n) * sizeof (h->queue[0]));
    h->nqueue -= n;
    h->ngroup = 0;
    visibility_end (&h->line, h->breach == NOT_RAISED ? 0 : refused);
    for (int i = 0; i < n; i++) {
        struct jobwire_reader r;

        jobwire_buf_reader (&verdicts[i], &r);
        if (!job_relay_answered (h->rank[0].relay, h->now_ms, tag[i], &r))
            wrong (h, "the verdicts of rank 0 do not match the jobs of a batch");
        jobwire_buf_fini (&verdicts[i]);
    }
}

/* The root is killed: the current group is committed or lost, and no batch is answered. */
static void root_stop (struct history *h)
{
    struct jobwire_buf verdicts = { 0 };
    uint64_t refused = 0;
    bool done = chance (h, 50);

    for (int i = 0; i < h->nqueue; i++) {
        if (i < h->ngroup && done)
            judge_batch (h, i, false, &verdicts, &refused);
        free (h->queue[i].data);
    }
    jobwire_buf_fini (&verdicts);
    h->nqueue = h->ngroup = 0;
    job_watch_destroy (h->watch);
    h->watch = NULL;
}

static void root_start (struct history *h)
{
    uint64_t newest = 0;

    for (int i = 0; i < h->nstored; i++)
        newest = max_u64 (newest, h->stored[i].id);
    h->life = make_ids (&h->rank[0], 1);
    visibility_init (&h->line, newest, 20 + below (h, 100));
    tap_must ((h->watch = job_watch_create ()) != NULL);
    for (int i = 0; i < CONSUMERS; i++)
        tap_must ((h->consumer[i].watcher = job_watch_add (h->watch, h->consumer[i].has, 1 + (uint32_t)below (h, 9),
                                                           &h->consumer[i])));
}

/* --- consumers ----------------------------------------------------------------------------------------------- */

static const struct stored *next_stored (const struct history *h, uint64_t after, uint64_t upto)
{
    const struct stored *next = NULL;

    for (int i = 0; i < h->nstored; i++) {
        const struct stored *s = &h->stored[i];

        if (s->state == STORED && s->id > after && s->id <= upto && (!next || s->id < next->id))
            next = s;
    }
    return next;
}

static void deliver (struct history *h, struct consumer *c, uint64_t after, uint64_t upto, uint32_t max_jobs)
{
    struct jobwire_buf b = { 0 };
    struct jobwire_reader r;
    const struct stored *s;

    if (after < c->has)
        wrong (h, "a consumer is sent a job again");
    while (b.count < max_jobs && (s = next_stored (h, after, upto))) {
        after = s->id;
        tap_must (jobwire_add_job (&b, &(struct job){ .id = s->id, .spec = "{}", .spec_size = 2 }) == 0);
    }
    c->got += b.count;
    c->has = b.count > 0 ? after : c->has;
    h->told = max_u64 (h->told, c->has);
    jobwire_buf_reader (&b, &r);
    job_watch_sent (h->watch, c->watcher, upto, &r);
    jobwire_buf_fini (&b);
}

static void acknowledge (struct history *h)
{
    uint64_t all = UINT64_MAX;

    for (int i = 0; i < CONSUMERS; i++)
        all = min_u64 (all, h->consumer[i].confirmed);
    for (int i = 0; i < h->nstored; i++)
        if (h->stored[i].id <= all && h->stored[i].state == STORED)
            h->stored[i].state = REMEMBERED;
    if (!chaos (h) || !chance (h, 30))
        return;
    all -= min_u64 (all, below (h, 50) << 24);
    for (int i = 0; i < h->nstored; i++)
        if (h->stored[i].id <= all && h->stored[i].state == REMEMBERED) {
            h->stored[i].state = FORGOTTEN;
            h->floor = max_u64 (h->floor, h->stored[i].id + 1);
        }
}

/* The consumer confirms all jobs, or, unless its window is full, some of them. */
static void confirm (struct history *h, struct consumer *c)
{
    struct watcher_stats s = watcher_stats (c->watcher);
    uint64_t upto = c->has;

    if (s.jobs > s.window)
        wrong (h, "a consumer is sent more jobs than its window");
    if (chaos (h) && s.jobs < s.window && chance (h, 50)) {
        const struct stored *job = next_stored (h, c->confirmed, c->has);

        upto = job ? job->id : c->confirmed;
    }
    if (job_watch_confirm (h->watch, c->watcher, upto) < 0)
        wrong (h, "a consumer cannot confirm the jobs that it has");
    c->confirmed = max_u64 (c->confirmed, upto);
}

/* Returns whether any consumer was sent jobs. */
static bool deliver_all (struct history *h)
{
    uint64_t shown = h->breach == SHOWN_EARLY ? h->line.at : h->line.shown, after;
    struct watcher *w;
    uint32_t max_jobs;
    size_t max_bytes;
    bool any = false;

    while ((w = job_watch_next (h->watch, shown, &after, &max_jobs, &max_bytes))) {
        any = true;
        if (chaos (h) && chance (h, 10)) {
            job_watch_sent (h->watch, w, 0, &(struct jobwire_reader){ 0 }); /* no jobs were read */
            break;
        }
        deliver (h, watcher_owner (w), after, shown, max_jobs);
    }
    return any;
}

/* Let consumers read and confirm; after the faults until each has all jobs. */
static void consume (struct history *h)
{
    bool any;

    do {
        any = deliver_all (h);
        for (int i = 0; i < CONSUMERS; i++)
            if (!chaos (h) || chance (h, 60))
                confirm (h, &h->consumer[i]);
        acknowledge (h);
    } while (any && !chaos (h));
}

/* --- ranks --------------------------------------------------------------------------------------------------- */

static void child_destroy (struct uplink_child *c)
{
    LIST_REMOVE (c, link);
    free (c);
}

static void child_reply_cb (void *arg, struct jobwire_reader *verdicts)
{
    struct uplink_child *c = arg;
    struct history *h = c->rank->h;
    struct jobwire_buf b = { 0 };

    tap_must (jobwire_add_verdicts (&b, verdicts->body, verdicts->size, verdicts->count) == 0);
    if (chaos (h) && chance (h, 5))
        jobwire_buf_fini (&b); /* lost: the sender is notified of a fault, or sends again to its next parent */
    else
        post (h, below (h, 4),
              (struct event){ .type = EV_ANSWER,
                              .rank = c->from,
                              .life = c->from_life,
                              .tag = c->tag,
                              .data = b.data,
                              .size = b.size });
    if (!b.data)
        post (h, 20, (struct event){ .type = EV_FAILED, .rank = c->from, .life = c->from_life, .tag = c->tag });
    child_destroy (c);
}

static void own_reply_cb (void *arg, struct jobwire_reader *verdicts)
{
    const struct rank *rk = entry_batch_owner (arg);

    entry_verdicts (arg, rk->h->now_ms, verdicts);
}

static void rank_start (struct rank *rk)
{
    rk->life++;
    rk->entry = entry_create (40, 100000, rk->h->timeout_ms, reply_cb, rk);
    rk->relay = job_relay_create (2000, rk->number == 0 ? JOB_RELAY_ROOT_UNDER_WAY : JOB_RELAY_UNDER_WAY);
    tap_must (rk->entry && rk->relay);
    job_block_init (&rk->ids);
    LIST_INIT (&rk->children);
    rk->out = NULL;
    memset (rk->pending, 0, sizeof (rk->pending));
    if (rk->number == 0)
        root_start (rk->h);
}

static void fail_pending (struct rank *rk)
{
    struct history *h = rk->h;

    for (int i = 0; i < JOB_RELAY_UNDER_WAY; i++)
        if (rk->pending[i] != 0)
            post (h, below (h, 20),
                  (struct event){ .type = EV_FAILED, .rank = rk->number, .life = rk->life, .tag = rk->pending[i] });
}

/* A rank is killed, or ends normally. */
static void rank_stop (struct rank *rk)
{
    struct history *h = rk->h;
    struct entry *e = rk->entry;

    rk->entry = NULL; /* submitters do not retry here */
    if (chance (h, 50))
        entry_stop (e, ENOSYS, "this rank ends");
    for (int i = 0; i < h->nsubs; i++)
        if (h->sub[i].rank == rk->number && h->sub[i].life == rk->life && h->sub[i].answers == 0)
            h->sub[i].gone = true;
    if (rk->number == 0)
        root_stop (h);
    job_relay_destroy (rk->relay);
    entry_destroy (e);
    job_block_fini (&rk->ids);
    while (!LIST_EMPTY (&rk->children))
        child_destroy (LIST_FIRST (&rk->children));
    for (int i = 1; i < RANKS; i++)
        if (h->rank[i].parent == rk->number)
            fail_pending (&h->rank[i]);
}

static bool is_above (const struct history *h, int rank, int other)
{
    while (other != 0 && other != rank)
        other = h->rank[other].parent;
    return other == rank;
}

/* Give a rank another parent, or the same once more. */
static void move (struct history *h, int rank)
{
    struct rank *rk = &h->rank[rank];
    int parent = (int)below (h, 3);

    if (parent == rank || is_above (h, rank, parent))
        parent = 0;
    fail_pending (rk);
    rk->parent = parent;
    h->seen.moves++;
}

/* Send a batch. It may be lost, or its sender may take it for lost while it is under way. */
static void send (struct rank *rk, const void *data, size_t size, uint32_t tag)
{
    struct history *h = rk->h;
    bool fails = chaos (h) && chance (h, 8);

    if (rk->number == 0) {
        h->queue[h->nqueue].tag = tag;
        h->queue[h->nqueue].data = copy_of (data, size);
        h->queue[h->nqueue++].size = size;
        begin_group (h);
        return;
    }
    for (int i = 0; i < JOB_RELAY_UNDER_WAY; i++)
        if (rk->pending[i] == 0) {
            rk->pending[i] = tag;
            break;
        }
    if (!fails || chance (h, 70))
        post (h, below (h, fails || (chaos (h) && chance (h, 8)) ? 250 : 4),
              (struct event){ .type = EV_BATCH,
                              .rank = rk->parent,
                              .from = rk->number,
                              .from_life = rk->life,
                              .tag = tag,
                              .data = copy_of (data, size),
                              .size = size });
    if (fails)
        post (h, below (h, 20), (struct event){ .type = EV_FAILED, .rank = rk->number, .life = rk->life, .tag = tag });
}

static void ask_for_ids (struct rank *rk)
{
    struct history *h = rk->h;
    struct event e = { .type = EV_IDS, .rank = rk->number, .life = rk->life };
    uint32_t n = job_block_ask (&rk->ids, h->now_ms, entry_wants (rk->entry));

    if (n == 0)
        return;
    if (!chaos (h) || !chance (h, 5))
        e.run = (struct job_block_run){ make_ids (rk, n), n };
    post (h, below (h, chaos (h) && chance (h, 10) ? 60 : 3), e);
}

/* Do what the adapter does after each event. */
static void turn (struct rank *rk)
{
    struct history *h = rk->h;
    const void *data;
    size_t size;
    uint32_t tag;

    entry_expire (rk->entry, h->now_ms, "");
    while (rk->out || (rk->out = entry_batch (rk->entry, h->now_ms, &rk->ids, &rk->out_jobs))) {
        if (job_relay_add (rk->relay, &rk->out_jobs, own_reply_cb, rk->out) < 0)
            break;
        rk->out = NULL;
    }
    ask_for_ids (rk);
    while (job_relay_next (rk->relay, h->now_ms, &data, &size, &tag))
        send (rk, data, size, tag);
}

static uint64_t due (struct rank *rk)
{
    uint64_t ms = min_u64 (min_u64 (entry_due (rk->entry), job_relay_due (rk->relay)), job_block_due (&rk->ids));

    return max_u64 (ms, rk->h->now_ms + 1);
}

/* --- events -------------------------------------------------------------------------------------------------- */

static void batch_came (struct history *h, const struct event *e)
{
    struct rank *rk = &h->rank[e->rank];
    struct jobwire_reader jobs;
    struct uplink_child *c = calloc (1, sizeof (*c));

    tap_must (c != NULL);
    if (jobwire_read_batch (&jobs, e->data, e->size, NULL) < 0) {
        wrong (h, "a batch cannot be read");
        free (c);
        return;
    }
    *c = (struct uplink_child){ .rank = rk, .from = e->from, .from_life = e->from_life, .tag = e->tag };
    LIST_INSERT_HEAD (&rk->children, c, link);
    if (job_relay_add (rk->relay, &jobs, child_reply_cb, c) < 0) {
        post (h, below (h, 4),
              (struct event){ .type = EV_FAILED, .rank = e->from, .life = e->from_life, .tag = e->tag });
        child_destroy (c);
    }
}

static bool take_pending (struct rank *rk, uint32_t tag)
{
    for (int i = 0; i < JOB_RELAY_UNDER_WAY; i++)
        if (rk->pending[i] == tag) {
            rk->pending[i] = 0;
            return true;
        }
    return false;
}

static void answer_came (struct history *h, const struct event *e)
{
    struct rank *rk = &h->rank[e->rank];
    struct jobwire_reader verdicts;

    if (jobwire_read_verdicts (&verdicts, e->data, e->size, NULL) < 0)
        wrong (h, "an answer cannot be read");
    else if (take_pending (rk, e->tag) && !job_relay_answered (rk->relay, h->now_ms, e->tag, &verdicts))
        wrong (h, "an answer has not as many verdicts as the batch has jobs");
}

static void ids_came (struct history *h, const struct event *e)
{
    struct rank *rk = &h->rank[e->rank];

    if (e->run.count == 0)
        job_block_failed (&rk->ids);
    else if (job_block_filled (&rk->ids, &e->run, 1) < 0)
        wrong (h, "ids are refused");
}

static void something_breaks (struct history *h)
{
    uint64_t n = below (h, 100);
    int rank = n < 15 ? 0 : (int)below (h, RANKS);

    if (n < 35) {
        rank_stop (&h->rank[rank]);
        rank_start (&h->rank[rank]);
        h->seen.restarts++;
    }
    else if (rank != 0)
        move (h, rank);
}

static void handle (struct history *h, const struct event *e)
{
    bool alive = e->life == h->rank[e->rank].life;

    if (e->type == EV_BATCH)
        batch_came (h, e); /* in any life of the receiver */
    else if (e->type == EV_ANSWER && alive)
        answer_came (h, e);
    else if (e->type == EV_FAILED && alive && take_pending (&h->rank[e->rank], e->tag))
        job_relay_failed (h->rank[e->rank].relay, h->now_ms, e->tag);
    else if (e->type == EV_IDS && alive)
        ids_came (h, e);
    else if (e->type == EV_COMMIT && alive) {
        end_group (h);
        begin_group (h);
    }
    else if (e->type == EV_SUBMIT)
        submit_some (h);
    else if (e->type == EV_WATERMARK) {
        visibility_watermark (&h->line, watermark (h));
        visibility_time (&h->line, h->now_ms + h->rank[0].skew_ms);
    }
    else if (e->type == EV_CONSUME)
        consume (h);
    else if (e->type == EV_CHAOS)
        something_breaks (h);
}

/* Schedule a periodic event again. The last submissions are made without faults, some time before the end. */
static void again (struct history *h, enum event_type type)
{
    uint64_t until = END_MS, in_ms = 40;

    if (type == EV_SUBMIT)
        until = LAST_MS, in_ms = 12;
    else if (type == EV_CHAOS)
        until = CHAOS_MS, in_ms = 40;
    else if (type == EV_BATCH || type == EV_ANSWER || type == EV_FAILED || type == EV_IDS || type == EV_COMMIT)
        return;
    if (h->now_ms < T0_MS + until)
        post (h, 1 + below (h, chaos (h) ? in_ms : 2 * in_ms), (struct event){ .type = type });
}

static struct event next_event (struct history *h)
{
    int first = 0;

    for (int i = 1; i < h->nevents; i++)
        if (h->event[i].at_ms < h->event[first].at_ms)
            first = i;
    struct event e = h->event[first];
    h->event[first] = h->event[--h->nevents];
    return e;
}

static uint64_t next_at (const struct history *h)
{
    uint64_t at = UINT64_MAX;

    for (int i = 0; i < h->nevents; i++)
        at = min_u64 (at, h->event[i].at_ms);
    return at;
}

static void step (struct history *h)
{
    uint64_t at = next_at (h), timer = UINT64_MAX;

    for (int i = 0; i < RANKS; i++)
        timer = min_u64 (timer, due (&h->rank[i]));
    h->now_ms = max_u64 (h->now_ms, min_u64 (at, timer));
    if (at <= timer) {
        struct event e = next_event (h);

        handle (h, &e);
        again (h, e.type);
        free (e.data);
    }
    for (int i = RANKS - 1; i >= 0; i--)
        turn (&h->rank[i]);
}

/* --- histories ----------------------------------------------------------------------------------------------- */

static void start (struct history *h, uint64_t seed, enum breach breach)
{
    static const uint64_t timeouts[] = { 60, 300, PATIENT_MS };

    *h = (struct history){
        .seed = seed, .random = seed * UINT64_C (0x9e3779b97f4a7c15) | 1, .now_ms = T0_MS, .breach = breach
    };
    h->timeout_ms = timeouts[below (h, 3)];
    h->lag_ms = below (h, 150);
    h->max_stored = chance (h, 30) ? 5 + below (h, 20) : MAX_JOBS;
    for (int i = 0; i < RANKS; i++) {
        h->rank[i] = (struct rank){ .h = h, .number = i, .parent = (i - 1) / 2 };
        h->rank[i].skew_ms = chance (h, 50) ? 0 : below (h, SKEW_MS + 1);
        rank_start (&h->rank[i]);
    }
    for (enum event_type type = EV_SUBMIT; type <= EV_CHAOS; type++)
        again (h, type);
}

static void check_end (struct history *h)
{
    uint64_t room = h->max_stored;

    for (int i = 0; i < h->nsubs; i++) {
        if (!h->sub[i].gone && h->sub[i].answers != 1)
            wrong (h, "a submission is not answered");
        check_refused (h, &h->sub[i]);
    }
    for (int i = 0; i < CONSUMERS; i++)
        if (room == MAX_JOBS && h->consumer[i].got != (uint32_t)h->nstored)
            wrong (h, "a consumer did not get all jobs");
}

static void stop (struct history *h)
{
    for (int i = 0; i < RANKS; i++)
        rank_stop (&h->rank[i]);
    while (h->nevents > 0)
        free (next_event (h).data);
}

/* Returns the first violation, or NULL. */
static const char *run (struct history *h, uint64_t seed, enum breach breach)
{
    start (h, seed, breach);
    while (h->now_ms < T0_MS + END_MS && !h->wrong)
        step (h);
    if (!h->wrong)
        check_end (h);
    const char *what = h->wrong;
    stop (h);
    return what;
}

static void test_histories (struct history *h, uint64_t first, uint64_t count)
{
    uint64_t stored = 0, same = 0, unknown = 0, refused = 0, late = 0, copies = 0, restarts = 0, moves = 0,
             failures = 0;
    uint64_t bad = 0;

    for (uint64_t seed = first; seed < first + count; seed++) {
        const char *what = run (h, seed, NONE);

        if (what) {
            bad++;
            diag ("seed %" PRIu64 ": %s", seed, what);
        }
        stored += h->seen.answers[0];
        same += h->seen.answers[1];
        unknown += h->seen.answers[2];
        refused += h->seen.answers[3];
        late += h->seen.late;
        copies += h->seen.copies;
        restarts += h->seen.restarts;
        moves += h->seen.moves;
        failures += h->seen.failures;
    }
    ok (bad == 0, "%" PRIu64 " random histories keep all promises of job ingest", count);
    diag ("answers: %" PRIu64 " stored, %" PRIu64 " same, %" PRIu64 " unknown, %" PRIu64 " refused", stored, same,
          unknown, refused);
    diag ("%" PRIu64 " late, %" PRIu64 " copies of stored jobs, %" PRIu64 " restarts, %" PRIu64 " moves, %" PRIu64
          " failed commits",
          late, copies, restarts, moves, failures);
    ok (stored && same && unknown && refused && late && copies && restarts && moves && failures,
        "all kinds of answers and faults occur in the histories");
}

static void test_breaches (struct history *h)
{
    static const char *name[BREACHES] = {
        [LATE_FIRST] = "answers LATE for stored jobs",
        [NOT_RAISED] = "does not raise the line over refused jobs",
        [NO_LIFE] = "stores jobs that were sent to an earlier life",
        [STORED_REFUSED] = "refuses jobs that were stored before",
        [NO_FLOOR] = "does not know which ids it has forgotten",
        [SHOWN_EARLY] = "shows jobs before the current group is committed",
        [NO_KEYS] = "does not look up keys",
    };

    for (enum breach b = NONE + 1; b < BREACHES; b++) {
        const char *what = NULL;
        uint64_t seed = 0;

        while (!what && seed < HISTORIES)
            what = run (h, ++seed, b);
        ok (what != NULL, "a root is detected that %s (%" PRIu64 ": %s)", name[b], seed, what ? what : "not detected");
    }
}

/* Arguments: the first seed, and the number of histories; for long searches. */
int main (int argc, char **argv)
{
    struct history *h = malloc (sizeof (*h));
    uint64_t first = argc > 1 ? strtoull (argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull (argv[2], NULL, 10) : tap_turns (HISTORIES);

    tap_must (h != NULL);
    test_histories (h, first, count);
    test_breaches (h);
    free (h);
    return done_testing ();
}
