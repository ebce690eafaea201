/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* job_store_history_test.c - random histories of a store with lives that end: verdicts, counts and reads are those of a
 * model
 */
#include <errno.h>

#include "test/store_world.h"

#define IDS 200   /* jobs have ids 1 ... IDS above 'base', which rises */
#define KEYS 12   /* few, so that the same keys recur */
#define GROUP 8   /* the most jobs of a group */
#define STEPS 400 /* groups of a history */
#ifdef WORLD_PG
#define HISTORIES 3
#else
#define HISTORIES 12
#endif
#define MAX_JOBS 40
#define MAX_BYTES 400

/* A job in the model. The jobs are in order of id. */
struct known {
    uint64_t id;
    uint32_t userid;
    char key[4]; /* "": no key */
    uint32_t size;
    bool acked;
    int64_t acked_s;
};

struct model {
    struct known known[STEPS * GROUP];
    size_t n;
    uint64_t acked, floor, newest;
};

struct history {
    struct world w;
    struct model m, next; /* before the group, and after it */
    uint64_t random;
    uint64_t base; /* the current ids are above it */
    int64_t now_s;
    struct job job[GROUP];
    char key[GROUP][4];
    struct verdict verdict[GROUP], wanted[GROUP];
    struct job_store_group group;
    bool sound;
};

static const char spec[64] = "0123456789012345678901234567890123456789012345678901234567890123";

static uint32_t pick (struct history *h, uint32_t n)
{
    h->random ^= h->random << 13;
    h->random ^= h->random >> 7;
    h->random ^= h->random << 17;
    return (uint32_t)(h->random >> 20) % n;
}

static bool expect (struct history *h, bool good, const char *what)
{
    if (!good && h->sound)
        diag ("%s (acked %llu, floor %llu, newest %llu)", what, (unsigned long long)h->m.acked,
              (unsigned long long)h->m.floor, (unsigned long long)h->m.newest);
    h->sound = h->sound && good;
    return good;
}

/* --- the model ---------------------------------------------------------------------------------------------- */

static void count (const struct model *m, struct job_store_counts *c)
{
    *c = (struct job_store_counts){ .acked = m->acked, .floor = m->floor, .newest = m->newest };
    for (size_t i = 0; i < m->n; i++) {
        c->remembered += m->known[i].acked;
        c->jobs += !m->known[i].acked;
        c->bytes += m->known[i].acked ? 0 : m->known[i].size;
    }
}

static void model_ack (struct model *m, const struct job_store_group *g)
{
    bool rises = g->ack > m->acked;

    for (size_t i = 0; rises && i < m->n; i++)
        if (m->known[i].id <= g->ack && !m->known[i].acked) {
            m->known[i].acked = true;
            m->known[i].acked_s = g->now_s;
        }
    if (rises)
        m->acked = g->ack;
    for (size_t i = 0; (rises || g->forget_s != 0) && i < m->n; i++)
        if (m->known[i].acked && m->known[i].acked_s > g->now_s)
            m->known[i].acked_s = g->now_s;
}

static struct verdict model_put (struct model *m, const struct job_store_group *g, const struct job *job,
                                 const char *key)
{
    struct job_store_counts c;
    size_t at = 0;
    uint32_t size = job->spec_size + job->key_size;

    for (size_t i = 0; i < m->n; i++)
        if (m->known[i].id == job->id)
            return (struct verdict){ .kind = VERDICT_STORED };
    if (job->id < m->floor)
        return (struct verdict){ .kind = VERDICT_FORGOTTEN };
    if (job->id <= g->line || job->id <= m->acked)
        return (struct verdict){ .kind = VERDICT_LATE };
    for (size_t i = 0; i < m->n; i++)
        if (key[0] && m->known[i].userid == job->userid && strcmp (m->known[i].key, key) == 0)
            return (struct verdict){ .kind = VERDICT_SAME, .id = m->known[i].id };
    count (m, &c);
    if (c.jobs + 1 > g->max_jobs || c.bytes + size > g->max_bytes)
        return (struct verdict){ .kind = VERDICT_REFUSED, .errnum = ENOSPC };
    while (at < m->n && m->known[at].id < job->id)
        at++;
    memmove (&m->known[at + 1], &m->known[at], (m->n++ - at) * sizeof (m->known[0]));
    m->known[at] = (struct known){ .id = job->id, .userid = job->userid, .size = size };
    strcpy (m->known[at].key, key);
    m->newest = job->id > m->newest ? job->id : m->newest;
    return (struct verdict){ .kind = VERDICT_STORED };
}

static void model_forget (struct model *m, int64_t forget_s)
{
    size_t n = 0;

    while (forget_s != 0 && n < m->n && m->known[n].acked && m->known[n].acked_s < forget_s)
        n++;
    if (n == 0)
        return;
    m->floor = m->known[n - 1].id + 1;
    m->n -= n;
    memmove (m->known, &m->known[n], m->n * sizeof (m->known[0]));
}

static void model_group (struct history *h)
{
    h->next = h->m;
    model_ack (&h->next, &h->group);
    for (size_t i = 0; i < h->group.n; i++)
        h->wanted[i] = model_put (&h->next, &h->group, &h->job[i], h->key[i]);
    model_forget (&h->next, h->group.forget_s);
}

/* --- comparing with the store ------------------------------------------------------------------------------- */

/* Whether the counts of the store are those of the model. */
static bool counts_match (const struct world *w, const struct model *m)
{
    struct job_store_counts c;

    count (m, &c);
    return c.jobs == w->counts.jobs && c.bytes == w->counts.bytes && c.remembered == w->counts.remembered
           && c.acked == w->counts.acked && c.floor == w->counts.floor && c.newest == w->counts.newest;
}

static bool is_known (const struct known *k, const struct job *job, uint32_t spec_size)
{
    size_t key_size = strlen (k->key);

    return job->id == k->id && job->userid == k->userid && job->key_size == key_size
           && (key_size == 0 || memcmp (job->key, k->key, key_size) == 0) && job->spec_size == spec_size
           && (spec_size == 0 || memcmp (job->spec, spec, spec_size) == 0);
}

/* Whether a read found the jobs of the model that it selects, up to its limits. */
static bool read_matches (const struct model *m, const struct job_store_read *read)
{
    struct jobwire_reader r;
    struct job job;
    size_t bytes = 8, n = 0;
    bool more = false;

    jobwire_buf_reader (&read->found, &r);
    for (size_t i = 0; i < m->n && !more; i++) {
        const struct known *k = &m->known[i];
        uint32_t key_size = (uint32_t)strlen (k->key), spec_size = read->specs ? k->size - key_size : 0;
        size_t size = jobwire_job_size (&(struct job){ .key_size = (uint8_t)key_size, .spec_size = spec_size });

        if (k->acked || k->id <= read->after || k->id > read->upto)
            continue;
        more = n >= read->max_jobs || (n > 0 && bytes + size > read->max_bytes);
        if (more)
            break;
        if (!jobwire_next_job (&r, &job) || !is_known (k, &job, spec_size))
            return false;
        bytes += size;
        n++;
    }
    return !jobwire_next_job (&r, &job) && more == read->more && read->errnum == 0;
}

static bool one_matches (const struct model *m, const struct job_store_read *read)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->known[i].id == read->upto)
            return read->found.count == 1 && read->acked == m->known[i].acked;
    return read->found.count == 0 && read->errnum == 0;
}

static void choose_reads (struct history *h, struct job_store_read read[2])
{
    read[0] = (struct job_store_read){ .after = h->base + pick (h, IDS),
                                       .max_jobs = 1 + pick (h, 20),
                                       .specs = pick (h, 2) };
    read[0].upto = read[0].after + pick (h, IDS);
    read[0].max_bytes = 1 + pick (h, 600);
    if (pick (h, 3) == 0)
        read[0].after = 0;
    read[1] = (struct job_store_read){ .upto = h->base + pick (h, IDS), .one = true, .specs = true };
}

static void check_reads (struct history *h, struct job_store_read read[2])
{
    expect (h, read_matches (&h->m, &read[0]), "a read found other jobs");
    expect (h, one_matches (&h->m, &read[1]), "a read of one job differs");
    jobwire_buf_fini (&read[0].found);
    jobwire_buf_fini (&read[1].found);
}

/* Whether the store has all jobs of the model, and no others. */
static bool all_matches (struct world *w, const struct model *m)
{
    struct job_store_read read = { .upto = UINT64_MAX, .max_jobs = UINT32_MAX, .max_bytes = SIZE_MAX, .specs = true };
    bool good = counts_match (w, m) && world_work (w, NULL, &read, 1) == 1 && read_matches (m, &read);

    jobwire_buf_fini (&read.found);
    return good;
}

/* --- a history ---------------------------------------------------------------------------------------------- */

static void choose_job (struct history *h, size_t i)
{
    h->key[i][0] = '\0';
    if (pick (h, 2))
        snprintf (h->key[i], sizeof (h->key[i]), "k%u", pick (h, KEYS));
    h->job[i] = world_job (h->base + 1 + pick (h, IDS), h->key[i], "");
    h->job[i].userid = pick (h, 2);
    h->job[i].spec = spec;
    h->job[i].spec_size = pick (h, 32);
}

/* The clock advances, and is sometimes set back. */
static void choose_group (struct history *h)
{
    h->base += pick (h, 4) == 0 ? pick (h, 40) : 0;
    h->now_s += pick (h, 30) == 0 ? -(int64_t)pick (h, 500) : pick (h, 4);
    h->group = (struct job_store_group){ .job = h->job,
                                         .verdict = h->verdict,
                                         .n = pick (h, GROUP + 1),
                                         .line = h->base + pick (h, IDS / 2),
                                         .max_jobs = MAX_JOBS,
                                         .max_bytes = MAX_BYTES,
                                         .now_s = h->now_s };
    if (pick (h, 3) == 0)
        h->group.ack = h->base + pick (h, IDS / 2);
    if (pick (h, 4) == 0)
        h->group.forget_s = h->now_s - pick (h, 40);
    for (size_t i = 0; i < h->group.n; i++)
        choose_job (h, i);
}

static void check_verdicts (struct history *h)
{
    for (size_t i = 0; i < h->group.n; i++)
        expect (h,
                h->verdict[i].kind == h->wanted[i].kind && h->verdict[i].errnum == h->wanted[i].errnum
                    && h->verdict[i].id == h->wanted[i].id,
                "a verdict differs");
}

/* In PostgreSQL a statement of the group, or its answer, may be lost, or the statement comes late. */
static void choose_fault (struct history *h)
{
#ifdef WORLD_PG
    pg_proxy_fault (world_proxy, pick (h, 6) == 0 ? 1 + pick (h, 3) : PG_FAULT_NONE);
#endif
}

static void end_faults (struct history *h)
{
#ifdef WORLD_PG
    pg_proxy_fault (world_proxy, PG_FAULT_NONE);
    if (pick (h, 2))
        pg_proxy_deliver (world_proxy);
#endif
}

/* A read that got no answer. */
static bool is_lost (const struct job_store_read *read)
{
    return read->errnum == ECONNRESET || read->errnum == EAGAIN;
}

/* A group whose reads got no answer is tried again, like a read. */
static void work (struct history *h, struct job_store_read read[2])
{
    int tries = 0, rc = 0;

    choose_fault (h);
    do {
        for (int i = 0; i < 2 && tries > 0; i++)
            jobwire_buf_fini (&read[i].found);
        rc = world_work (&h->w, &h->group, read, 2);
    } while (++tries < 5 && ((rc < 0 && h->group.unsure) || is_lost (&read[0]) || is_lost (&read[1])));
    end_faults (h);
    expect (h, rc == 1, h->w.error.text);
}

static void step (struct history *h)
{
    struct job_store_read read[2];

    choose_reads (h, read);
    work (h, read);
    check_verdicts (h);
    h->m = h->next;
    expect (h, counts_match (&h->w, &h->m) && !h->w.counts.untidy, "counts differ");
    check_reads (h, read);
}

/* End a life before the result of the group is taken: the group is stored completely or not at all. */
static void step_killed (struct history *h)
{
    job_store_begin (h->w.st, &h->group, NULL, 0);
    if (!expect (h, world_open (&h->w), "the store cannot be opened again"))
        return;
    if (all_matches (&h->w, &h->next))
        h->m = h->next;
    else
        expect (h, all_matches (&h->w, &h->m), "the group is stored in part");
}

/* Another rank 0 takes over while the old one stores the group. The old one reports that the group is stored, or does
 * not know. Then it stores and shows nothing, and denies nothing.
 */
static void step_replaced (struct history *h)
{
#ifdef WORLD_PG
    struct world old = h->w;
    struct job_store_read read = { .upto = UINT64_MAX, .max_jobs = 1, .max_bytes = 1 };
    int rc;

    choose_fault (h);
    job_store_begin (old.st, &h->group, NULL, 0);
    h->w.term += 2 - h->w.term % 2;
    h->w.st = NULL;
    int tries = 0;
    while (!world_open_term (&h->w, 1 + h->w.term / 2) && tries++ < 5)
        ;
    h->w.term++;
    end_faults (h);
    wait_until ((rc = job_store_result (old.st, NULL, &old.error)) != 0);
    pg_proxy_deliver (world_proxy);
    expect (h, h->w.st != NULL, h->w.error.text);
    expect (h, rc > 0 || h->group.unsure, "a replaced rank 0 refuses jobs");
    if (h->sound && (rc > 0 || all_matches (&h->w, &h->next)))
        h->m = h->next;
    expect (h, h->sound && all_matches (&h->w, &h->m), "the group is stored in part, or is lost");
    choose_group (h);
    h->group.n = h->group.n ? h->group.n : 1;
    expect (h, world_work (&old, &h->group, &read, 1) < 0 && h->group.unsure && read.errnum == EAGAIN,
            "a replaced rank 0 stores or shows jobs");
    expect (h, all_matches (&h->w, &h->m), "a replaced rank 0 has changed the store");
    jobwire_buf_fini (&read.found);
    job_store_close (old.st);
#endif
}

static bool play (struct history *h, uint64_t seed)
{
    *h = (struct history){ .random = seed * UINT64_C (0x9e3779b97f4a7c15) | 1, .now_s = 1000000, .sound = true };
    world_init (&h->w);
    expect (h, world_open (&h->w), "the store cannot be opened");
    for (int i = 0; i < STEPS && h->sound; i++) {
        choose_group (h);
        model_group (h);
        if (pick (h, 20) == 0)
            step_killed (h);
        else if (pick (h, 20) == 0)
            step_replaced (h);
        else
            step (h);
        if (h->sound && pick (h, 20) == 0)
            expect (h, world_open (&h->w) && all_matches (&h->w, &h->m), "the state differs in the next life");
    }
    if (!h->sound)
        diag ("seed %llu", (unsigned long long)seed);
    return world_fini (&h->w) && h->sound;
}

int main (void)
{
    struct history *h = malloc (sizeof (*h));
    bool good = h != NULL;
    uint64_t forgotten = 0;

    world_begin ();
    for (uint64_t seed = 1; good && seed <= HISTORIES; seed++) {
        good = play (h, seed);
        forgotten += h->m.floor > 1;
    }
    ok (good, "%d random histories: verdicts, counts and reads agree with the model in every life", HISTORIES);
    ok (forgotten > HISTORIES / 2, "most of the random histories forgot jobs");
    free (h);
    world_end ();
    return done_testing ();
}
