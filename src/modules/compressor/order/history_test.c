/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history_test.c - random histories of a document: replicas, the orderer, a network and machines that fail
 *
 * Messages are lost, duplicated and reordered; replicas end and new ones join; rank 0 stops, loses all data that it has
 * not stored, and restarts. At the end all messages are delivered. Then all replicas must agree, every id that a living
 * session made must have its original UUID, and an id that was final on any replica must be the same on all.
 *
 * history_test.t [FIRST-SEED [COUNT]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libcompressor/replica.h"
#include "libcompressor/compressor.h"
#include "test/tap.h"
#include "modules/compressor/order/orderer.h"

#define REPLICAS 8
#define STEPS 600
#define MESSAGES_MAX 4096
#define RANGES_MAX 8192
#define IDS_MAX 512 /* the most ids of a session */
#define FINALS_MAX 200000
#define EMPTY_FORM_SIZE 32

enum kind { SUBMIT, FETCH, RANGE, FORM, NEWEST };

struct message {
    enum kind kind;
    int replica; /* sender of SUBMIT and FETCH, receiver of the others */
    int life;
    int64_t seq;
    char *data; /* text of a range, or a stored form */
    size_t size;
};

struct node {
    struct replica *r;
    int life;
    int64_t id[IDS_MAX];
    struct idcomp_uuid uuid[IDS_MAX];
    int nids;
};

struct world {
    uint64_t random;
    struct orderer *o;
    char *stored[RANGES_MAX]; /* on disk: all ranges, and a form with ranges up to 'form_seq' */
    int64_t nstored;
    void *form;
    size_t form_size;
    int64_t form_seq;
    struct node node[REPLICAS];
    int lives;
    struct message message[MESSAGES_MAX];
    int nmessages;
    struct idcomp_uuid *final; /* UUIDs of ids that were final on any replica */
    bool is_final[FINALS_MAX];
    bool reliable;
    const char *wrong;
};

static const struct orderer_limits limits = { .sessions = 1000, .clusters = 100000, .window = 6 };

static void check (struct world *w, bool good, const char *what)
{
    if (!good && !w->wrong)
        w->wrong = what;
}

static uint32_t pick (struct world *w, uint32_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 20) % n;
}

/* --- the network --- */

static void post (struct world *w, struct message m)
{
    if (w->nmessages == MESSAGES_MAX || (!w->reliable && pick (w, 5) == 0)) { /* lost */
        free (m.data);
        return;
    }
    w->message[w->nmessages++] = m;
}

static void post_copy (struct world *w, enum kind kind, int replica, int64_t seq, const void *data, size_t size)
{
    char *copy = size > 0 ? malloc (size) : NULL;

    if (size > 0)
        memcpy (copy, data, size);
    post (w, (struct message){ kind, replica, w->node[replica].life, seq, copy, size });
}

/* --- rank 0 --- */

static void start_root (struct world *w)
{
    struct idcomp_range range;

    w->o = orderer_create (&limits, w->form, w->form_size, w->form_seq);
    for (int64_t i = w->form_seq; w->o && i < w->nstored; i++) {
        check (w,
               idcomp_range_parse (w->stored[i], strlen (w->stored[i]), &range, NULL) == 0
                   && orderer_add (w->o, &range, NULL) == 1,
               "stored ranges are ordered again with the same numbers");
        idcomp_range_fini (&range);
    }
    orderer_stored (w->o);
}

static void kill_root (struct world *w)
{
    orderer_destroy (w->o);
    start_root (w);
}

/* Store new ranges, then publish them. */
static void commit (struct world *w)
{
    int64_t from = orderer_stored_seq (w->o) + 1, to = orderer_seq (w->o);

    for (int64_t seq = from; seq <= to; seq++)
        w->stored[w->nstored++] = strdup (orderer_range (w->o, seq));
    if (pick (w, 8) == 0) {
        free (w->form);
        w->form = orderer_save (w->o, &w->form_size);
        w->form_seq = to;
    }
    orderer_stored (w->o);
    for (int64_t seq = from; seq <= to; seq++)
        for (int i = 0; i < REPLICAS; i++)
            if (w->node[i].r)
                post_copy (w, RANGE, i, seq, w->stored[seq - 1], strlen (w->stored[seq - 1]) + 1);
}

static void take_submit (struct world *w, const struct message *m)
{
    idt_error_t error = { "" };
    struct idcomp_range range;

    if (idcomp_range_parse (m->data, strlen (m->data), &range, NULL) < 0 || orderer_add (w->o, &range, &error) < 0) {
        diag ("%s", error.text);
        check (w, false, "a replica's range is not refused");
    }
    idcomp_range_fini (&range);
    if (pick (w, 2) == 0)
        commit (w);
    if (orderer_stored_seq (w->o) == orderer_seq (w->o))
        post_copy (w, NEWEST, m->replica, orderer_seq (w->o), NULL, 0);
}

static void take_fetch (struct world *w, const struct message *m)
{
    size_t size;

    commit (w);
    if (m->seq > orderer_seq (w->o))
        return;
    if (!orderer_range (w->o, m->seq)) {
        void *form = orderer_save (w->o, &size);
        post_copy (w, FORM, m->replica, orderer_seq (w->o), form, size);
        free (form);
    }
    for (int64_t seq = m->seq; seq < m->seq + 3 && orderer_range (w->o, seq); seq++)
        post_copy (w, RANGE, m->replica, seq, orderer_range (w->o, seq), strlen (orderer_range (w->o, seq)) + 1);
    post_copy (w, NEWEST, m->replica, orderer_seq (w->o), NULL, 0);
}

/* --- replicas --- */

/* Start a new session, from the newest stored form or, as on other ranks, from an older one. */
static void join (struct world *w, int i)
{
    struct node *node = &w->node[i];
    unsigned char random[16];
    char session[IDCOMP_UUID_TEXT_MAX];
    struct idcomp_uuid uuid;
    size_t size;

    for (int k = 0; k < 16; k++)
        random[k] = pick (w, 256);
    uuid = idcomp_uuid_random (random);
    idcomp_uuid_format (&uuid, session, sizeof (session));
    replica_destroy (node->r);
    *node = (struct node){ .life = ++w->lives };
    if (w->form && pick (w, 3) == 0)
        node->r = replica_create (session, w->form, w->form_size, w->form_seq);
    else {
        commit (w);
        void *form = orderer_save (w->o, &size);
        node->r = replica_create (session, form, size, orderer_seq (w->o));
        free (form);
    }
    check (w, node->r, "a replica is created from a stored form");
}

static void make_ids (struct world *w, struct node *node, int n)
{
    while (n-- > 0 && node->nids < IDS_MAX) {
        int64_t *id = &node->id[node->nids];
        check (w,
               idcomp_generate (replica_ids (node->r), id) == 0
                   && idcomp_decompress (replica_ids (node->r), *id, &node->uuid[node->nids]) == 0,
               "a replica makes ids");
        node->nids++;
    }
}

static void announce (struct world *w, int i)
{
    const struct idcomp_range *range = replica_announce (w->node[i].r);
    char text[4096];

    if (range && idcomp_range_format (range, text, sizeof (text)) >= 0)
        post_copy (w, SUBMIT, i, 0, text, strlen (text) + 1);
}

static void fetch (struct world *w, int i)
{
    const struct replica *r = w->node[i].r;

    if (replica_missing (r))
        post_copy (w, FETCH, i, replica_seq (r) + 1, NULL, 0);
}

static void hear (struct world *w, const struct message *m)
{
    struct replica *r = w->node[m->replica].r;
    struct idcomp_range range;

    if (m->kind == NEWEST)
        replica_heard (r, m->seq);
    else if (m->kind == FORM)
        check (w, replica_load (r, m->data, m->size, m->seq) == 0, "a stored form is loaded");
    else if (idcomp_range_parse (m->data, strlen (m->data), &range, NULL) == 0) {
        check (w, replica_apply (r, m->seq, &range) == 0 || errno == EAGAIN, "a range of the order is finalized");
        idcomp_range_fini (&range);
    }
    if (replica_broken (r))
        diag ("%s", replica_broken (r));
    uint64_t digest;
    check (w, orderer_digest (w->o, replica_seq (r), &digest) < 0 || digest == compressor_digest (replica_ids (r)),
           "replicas that finalized the same number of ranges have the same digest");
}

/* --- checks --- */

static bool same (const struct idcomp_uuid *a, const struct idcomp_uuid *b)
{
    return memcmp (a, b, sizeof (*a)) == 0;
}

static void check_own_ids (struct world *w, const struct node *node)
{
    const struct idcomp *c = replica_ids (node->r);
    struct idcomp_uuid uuid;
    int64_t id;

    for (int i = 0; i < node->nids; i++) {
        check (w, idcomp_decompress (c, node->id[i], &uuid) == 0 && same (&uuid, &node->uuid[i]),
               "an id that was made keeps its UUID");
        check (w, idcomp_recompress (c, &uuid, &id) == 0 && id == node->id[i], "the UUID of an id gives that id");
    }
}

/* The final ids of a replica must be the same as on every other replica. */
static void check_finals (struct world *w, const struct node *node)
{
    const struct idcomp *c = replica_ids (node->r);
    int64_t limit = idcomp_stats (c).allocated_finals;
    struct idcomp_uuid uuid;
    int64_t id;

    for (int64_t final = 0; final < limit && final < FINALS_MAX; final++) {
        if (idcomp_to_session (c, final, NULL, &id) < 0 || idcomp_decompress (c, id, &uuid) < 0)
            continue;
        if (w->is_final[final])
            check (w, same (&uuid, &w->final[final]), "a final id keeps its UUID, on all replicas");
        w->final[final] = uuid;
        w->is_final[final] = true;
    }
}

static void check_end (struct world *w)
{
    for (int i = 0; i < REPLICAS; i++) {
        const struct replica *r = w->node[i].r;
        check (w, idcomp_equal (replica_ids (r), orderer_ids (w->o), IDCOMP_WITHOUT_LOCAL),
               "all final spaces are equal");
        check (w, replica_settled (r) && !replica_broken (r), "all ranges of living sessions are ordered");
        check_own_ids (w, &w->node[i]);
        check_finals (w, &w->node[i]);
    }
}

/* --- histories --- */

static void deliver (struct world *w)
{
    if (w->nmessages == 0)
        return;
    int i = w->reliable ? 0 : (int)pick (w, w->nmessages);
    struct message m = w->message[i];
    if (!w->reliable && pick (w, 8) == 0) /* duplicate: it is delivered again later */
        m.data = m.size > 0 ? memcpy (malloc (m.size), m.data, m.size) : NULL;
    else
        memmove (&w->message[i], &w->message[i + 1], (--w->nmessages - i) * sizeof (m));
    if (m.kind == SUBMIT)
        take_submit (w, &m);
    else if (m.life == w->node[m.replica].life && m.kind == FETCH)
        take_fetch (w, &m);
    else if (m.life == w->node[m.replica].life)
        hear (w, &m);
    free (m.data);
}

static void step (struct world *w)
{
    int i = pick (w, REPLICAS);
    uint32_t what = pick (w, 100);

    if (what < 25)
        make_ids (w, &w->node[i], 1 + pick (w, 9));
    else if (what < 40)
        announce (w, i);
    else if (what < 45)
        replica_announce_again (w->node[i].r);
    else if (what < 50)
        fetch (w, i);
    else if (what == 50)
        join (w, i);
    else if (what == 51)
        kill_root (w);
    else if (what == 52)
        check_finals (w, &w->node[i]);
    else
        deliver (w);
}

/* Deliver all messages, without faults. */
static void settle (struct world *w)
{
    w->reliable = true;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < REPLICAS; i++) {
            replica_announce_again (w->node[i].r);
            announce (w, i);
            post_copy (w, FETCH, i, replica_seq (w->node[i].r) + 1, NULL, 0);
            fetch (w, i);
        }
        while (w->nmessages > 0)
            deliver (w);
        commit (w);
    }
}

static void end (struct world *w)
{
    for (int i = 0; i < REPLICAS; i++)
        replica_destroy (w->node[i].r);
    for (int64_t i = 0; i < w->nstored; i++)
        free (w->stored[i]);
    while (w->nmessages > 0)
        free (w->message[--w->nmessages].data);
    orderer_destroy (w->o);
    free (w->form);
    free (w->final);
    free (w);
}

/* Returns the violated condition, or NULL. */
static const char *play (uint64_t seed)
{
    struct world *w = calloc (1, sizeof (*w));

    w->random = seed * UINT64_C (0x9e3779b97f4a7c15) | 1;
    w->final = calloc (FINALS_MAX, sizeof (w->final[0]));
    start_root (w);
    for (int i = 0; i < REPLICAS; i++)
        join (w, i);
    for (int i = 0; i < STEPS && !w->wrong; i++)
        step (w);
    if (!w->wrong)
        settle (w);
    if (!w->wrong)
        check_end (w);
    const char *wrong = w->wrong;
    end (w);
    return wrong;
}

int main (int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull (argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull (argv[2], NULL, 10) : 100;
    uint64_t seed = first;
    const char *wrong = NULL;

    while (seed < first + count && !(wrong = play (seed)))
        seed++;
    ok (!wrong, "%llu random histories from seed %llu end in agreement", (unsigned long long)count,
        (unsigned long long)first);
    if (wrong)
        diag ("seed %llu: violated: %s", (unsigned long long)seed, wrong);
    return done_testing ();
}
