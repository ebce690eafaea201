/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* role_test.c - several candidates, a store, and a network that loses and delays: at most one leads in a term
 *
 * Time passes in ticks of 10 ms. A statement is carried out by the store some ticks after it was sent, or never. Its
 * answer comes back some ticks later, or never. A candidate gives a statement up after TIMEOUT; the store may carry it
 * out much later nevertheless. Candidates may be killed, stopped (and continue), and started again. The store may stand
 * still: then it carries out nothing, and all that waits afterwards, in any order.
 */
#include "config.h"

#include <string.h>

#include "broker/root/role.h"
#include "test/tap.h"

#define TICK 10000U
#define TAKEOVER 3000000U
#define POLL (TAKEOVER / ROLE_POLLS)
#define TIMEOUT (TAKEOVER / 3)
#define NODES 4
#define SENT_MAX 256
#define TERMS_MAX 4096

struct sent {
    bool used;
    enum role_act act;
    struct role_row row; /* what the statement names */
    enum role_word word;
    int node, life;
    uint64_t run_us; /* when the store carries it out */
    bool deaf;       /* its answer is lost */
};

struct answer {
    bool used;
    uint64_t at_us;
    enum role_act act;
    struct role_row row;
    bool one;
};

struct node {
    struct role role;
    struct answer answer;
    uint64_t give_up_us; /* of the pending statement */
    int life;
    bool up, stopped;
    bool led; /* was in ROLE_LEAD in this life */
};

struct world {
    uint64_t now_us;
    unsigned seed;
    struct role_row row;
    struct sent sent[SENT_MAX];
    struct node node[NODES];
    int nodes;
    uint64_t still_until_us; /* the store stands still */
    unsigned loss;           /* of 1000 statements, and of 1000 answers */
    unsigned delay_ticks;    /* at most, each way */
    int owner_of[TERMS_MAX]; /* life of the candidate that led in the term; 0: none */
    bool peers_serve;
    int faults;
};

static unsigned rnd (struct world *w, unsigned below)
{
    w->seed = w->seed * 1103515245U + 12345U;
    return (w->seed >> 8) % below;
}

static void fault (struct world *w, const char *what)
{
    if (w->faults++ == 0)
        diag ("%s at %.2f s", what, (double)w->now_us / 1E6);
}

static int lives;

static void start (struct world *w, int i)
{
    struct role_config config = { .takeover_us = TAKEOVER, .candidate = i };
    struct node *n = &w->node[i];

    *n = (struct node){ .up = true, .life = ++lives };
    snprintf (config.owner, sizeof (config.owner), "life %d", n->life);
    snprintf (config.host, sizeof (config.host), "n%d", i);
    role_init (&n->role, w->now_us, &config);
}

static void init (struct world *w, unsigned seed, int nodes)
{
    *w = (struct world){ .seed = seed, .nodes = nodes, .now_us = 1000000, .delay_ticks = 1 };
    for (int i = 0; i < nodes; i++)
        start (w, i);
}

/* --- the store ------------------------------------------------------------------------------------------------- */

static bool carry_out (struct world *w, const struct sent *s)
{
    const struct role *r = &w->node[s->node].role;

    switch (s->act) {
    case ROLE_ACT_CLAIM:
        if (w->row.term != s->row.term || w->row.beat != s->row.beat)
            return false;
        w->row = (struct role_row){ .term = s->row.term + 1, .word = ROLE_LEADS };
        snprintf (w->row.owner, sizeof (w->row.owner), "life %d", s->life);
        snprintf (w->row.host, sizeof (w->row.host), "%s", r->config.host);
        return true;
    case ROLE_ACT_BEAT:
        if (w->row.term != s->row.term)
            return false;
        w->row.beat++;
        return true;
    case ROLE_ACT_RELEASE:
        if (w->row.term != s->row.term)
            return false;
        w->row.word = s->word;
        return true;
    default:
        return true;
    }
}

static void run_store (struct world *w)
{
    for (unsigned k = 0, from = rnd (w, SENT_MAX); k < SENT_MAX; k++) {
        struct sent *s = &w->sent[(from + k) % SENT_MAX];
        struct node *n = &w->node[s->node];

        if (!s->used || w->now_us < s->run_us || w->now_us < w->still_until_us)
            continue;
        bool one = carry_out (w, s);
        s->used = false;
        if (n->up && n->life == s->life && !s->deaf && n->give_up_us > w->now_us && rnd (w, 1000) >= w->loss)
            n->answer = (struct answer){ .used = true,
                                         .at_us = w->now_us + TICK * rnd (w, w->delay_ticks + 1),
                                         .act = s->act,
                                         .row = w->row,
                                         .one = one };
    }
}

/* --- the candidates -------------------------------------------------------------------------------------------- */

static void send_statement (struct world *w, int i, enum role_act act)
{
    struct node *n = &w->node[i];

    for (int k = 0; k < SENT_MAX; k++)
        w->sent[k].deaf |= w->sent[k].node == i; /* answers on the connection before */
    n->answer.used = false;
    n->give_up_us = w->now_us + TIMEOUT;
    if (rnd (w, 1000) < w->loss)
        return;
    for (int k = 0; k < SENT_MAX; k++) {
        struct sent *s = &w->sent[k];

        if (s->used)
            continue;
        *s = (struct sent){ .used = true,
                            .act = act,
                            .row = n->role.row,
                            .word = n->role.wanted == ROLE_END_STOPPED ? ROLE_STOPPED : ROLE_RELEASED,
                            .node = i,
                            .life = n->life,
                            .run_us = w->now_us + TICK * rnd (w, w->delay_ticks + 1) };
        if (rnd (w, 1000) < w->loss) /* held up on its way */
            s->run_us += TICK * rnd (w, 1000);
        return;
    }
}

static void take_answer (struct world *w, struct node *n)
{
    n->answer.used = false;
    switch (n->answer.act) {
    case ROLE_ACT_READ:
        role_read (&n->role, w->now_us, &n->answer.row);
        break;
    case ROLE_ACT_CLAIM:
        role_claimed (&n->role, w->now_us, n->answer.one);
        break;
    case ROLE_ACT_BEAT:
        role_beaten (&n->role, w->now_us, n->answer.one);
        break;
    default:
        role_released (&n->role, w->now_us);
    }
}

static void note_lead (struct world *w, struct node *n)
{
    uint64_t term = n->role.row.term;

    if (n->role.state != ROLE_LEAD || n->led)
        return;
    n->led = true;
    if (term == 0 || term >= TERMS_MAX)
        fault (w, "a term is out of range");
    else if (w->owner_of[term] != 0)
        fault (w, "two lead in a term");
    else
        w->owner_of[term] = n->life;
}

static void run_node (struct world *w, int i)
{
    struct node *n = &w->node[i];
    enum role_act act;

    if (!n->up || n->stopped)
        return;
    if (n->answer.used && w->now_us >= n->answer.at_us)
        take_answer (w, n);
    else if (n->role.pending && !n->answer.used && w->now_us >= n->give_up_us)
        role_failed (&n->role, w->now_us);
    note_lead (w, n);
    if (w->now_us < role_due (&n->role))
        return;
    while ((act = role_next (&n->role, w->now_us)) != ROLE_ACT_NONE)
        if (act == ROLE_ACT_PEERS)
            role_peers (&n->role, w->now_us, w->peers_serve, false);
        else
            send_statement (w, i, act);
}

static void tick (struct world *w)
{
    uint64_t term = w->row.term;

    w->now_us += TICK;
    run_store (w);
    if (w->row.term < term)
        fault (w, "the term falls");
    for (int i = 0; i < w->nodes; i++)
        run_node (w, i);
}

static void pass (struct world *w, uint64_t us)
{
    for (uint64_t end_us = w->now_us + us; w->now_us < end_us;)
        tick (w);
}

/* The candidate that leads in the newest term, or -1. */
static int leader (const struct world *w)
{
    for (int i = 0; i < w->nodes; i++)
        if (w->node[i].up && w->node[i].role.state == ROLE_LEAD && w->node[i].role.row.term == w->row.term)
            return i;
    return -1;
}

/* Pass time until a candidate leads, at most for 'us'. Returns how long that took; UINT64_MAX: none leads. */
static uint64_t await_leader (struct world *w, uint64_t us)
{
    uint64_t from_us = w->now_us;

    while (w->now_us < from_us + us) {
        tick (w);
        if (leader (w) >= 0)
            return w->now_us - from_us;
    }
    return UINT64_MAX;
}

/* --- single cases ---------------------------------------------------------------------------------------------- */

static void test_first (void)
{
    struct world w;

    init (&w, 1, 3);
    ok (await_leader (&w, 1000000) < POLL && w.row.term == 1, "the first candidate leads in term 1, without a wait");
    pass (&w, 60000000);
    ok (w.row.term == 1 && w.row.beat > 100 && w.row.beat < 140, "a leader that beats keeps the role: %d beats",
        (int)w.row.beat);
}

static void test_killed (void)
{
    uint64_t took_us, worst_us = 0, best_us = UINT64_MAX;
    struct world w;

    for (unsigned seed = 1; seed <= 200; seed++) {
        init (&w, seed, 3);
        await_leader (&w, 1000000);
        pass (&w, 2000000 + TICK * rnd (&w, 100));
        int first = leader (&w);
        w.node[first].up = false;
        took_us = await_leader (&w, 10000000);
        worst_us = took_us > worst_us ? took_us : worst_us;
        best_us = took_us < best_us ? took_us : best_us;
    }
    ok (worst_us <= TAKEOVER + 2 * POLL + ROLE_STAGGER_US + 10 * TICK,
        "after a kill another candidate leads within root.takeover and two reads: %.2f s at most",
        (double)worst_us / 1E6);
    ok (best_us >= TAKEOVER - TAKEOVER / ROLE_BEATS, "no candidate leads before the beat stood still: %.2f s",
        (double)best_us / 1E6);
}

static void test_stopped_process (void)
{
    struct world w;

    init (&w, 7, 3);
    await_leader (&w, 1000000);
    pass (&w, 1000000);
    int first = leader (&w);
    w.node[first].stopped = true;
    pass (&w, 3 * TAKEOVER);
    ok (leader (&w) >= 0 && leader (&w) != first && w.row.term == 2, "a leader that is stopped is replaced");
    w.node[first].stopped = false;
    pass (&w, TAKEOVER);
    ok (w.node[first].role.state == ROLE_END && w.node[first].role.ending == ROLE_END_LOST,
        "when it continues, it finds that it lost the role");

    int second = leader (&w), third = 3 - first - second;
    for (int i = 0; i < 3; i++)
        w.node[i].stopped = true;
    pass (&w, 10 * TAKEOVER);
    w.node[second].stopped = false;
    pass (&w, 2 * TAKEOVER);
    ok (leader (&w) == second && w.row.term == 2, "of candidates that were all stopped, a leader that continues leads");
    w.node[second].stopped = true;
    w.node[third].stopped = false;
    pass (&w, 2 * POLL);
    w.node[third].stopped = true;
    pass (&w, 10 * TAKEOVER);
    w.node[third].stopped = false;
    pass (&w, TAKEOVER - 4 * POLL);
    ok (w.row.term == 2, "a candidate that continues does not count the time in which it was stopped");
    pass (&w, TAKEOVER);
    ok (w.row.term == 3, "but then it claims");
}

static void test_still_store (void)
{
    int takeovers = 0, wrong_end = 0;

    for (unsigned seed = 1; seed <= 200; seed++) {
        struct world w;

        init (&w, seed, 3);
        w.delay_ticks = 5;
        await_leader (&w, 1000000);
        for (int i = 0; i < 5; i++) {
            pass (&w, 1000000 + TICK * rnd (&w, 300));
            w.still_until_us = w.now_us + TICK * rnd (&w, 3000);
            pass (&w, w.still_until_us - w.now_us);
        }
        pass (&w, 2 * TAKEOVER);
        takeovers += w.row.term != 1;
        wrong_end += leader (&w) < 0;
    }
    ok (takeovers == 0, "a store that stands still for up to 30 s causes no takeover");
    ok (wrong_end == 0, "and the leader keeps the role");
}

/* The leader is stopped for about as long as a standby waits. */
static void test_late_beat (void)
{
    int kept = 0, taken = 0, wrong = 0;

    for (uint64_t us = TAKEOVER - 2 * POLL; us <= TAKEOVER + 2 * POLL; us += TICK)
        for (unsigned seed = 1; seed <= 10; seed++) {
            struct world w;

            init (&w, seed, 3);
            w.delay_ticks = 3;
            await_leader (&w, 1000000);
            pass (&w, 1000000 + TICK * rnd (&w, 100));
            int first = leader (&w);
            w.node[first].stopped = true;
            pass (&w, us);
            w.node[first].stopped = false;
            pass (&w, 2 * TAKEOVER);
            kept += w.row.term == 1 && leader (&w) == first;
            taken += w.row.term == 2 && leader (&w) >= 0 && w.node[first].role.ending == ROLE_END_LOST;
            wrong += w.faults > 0;
        }
    ok (kept > 0 && taken > 0 && wrong == 0 && kept + taken == 10 * (int)(4 * POLL / TICK + 1),
        "a beat that comes late by root.takeover and a few reads: %d leaders keep the role, %d are replaced once", kept,
        taken);
}

static void test_cut (void)
{
    struct world w;

    init (&w, 3, 2);
    await_leader (&w, 1000000);
    int first = leader (&w);
    w.loss = 1000;
    pass (&w, 20 * TAKEOVER);
    ok (w.node[first].role.state == ROLE_LEAD, "a leader without the store goes on while no other root serves");
    w.peers_serve = true;
    pass (&w, 2 * ROLE_PEERS_US);
    ok (w.node[first].role.state == ROLE_END && w.node[first].role.ending == ROLE_END_CUT,
        "it ends when another root serves");

    init (&w, 4, 2);
    await_leader (&w, 1000000);
    w.peers_serve = true;
    pass (&w, 2 * TAKEOVER);
    ok (leader (&w) >= 0 && w.row.term == 1, "while the store answers, another open port means nothing");
    role_peers (&w.node[leader (&w)].role, w.now_us, false, true);
    ok (leader (&w) >= 0, "and so does a horizon that is past");
    int own = leader (&w);
    w.peers_serve = false;
    w.loss = 1000;
    pass (&w, 2 * TAKEOVER);
    role_peers (&w.node[own].role, w.now_us, false, true);
    ok (w.node[own].role.ending == ROLE_END_CUT, "without the store, a leader ends when its horizon is past");
}

static void test_orderly (void)
{
    struct world w;
    uint64_t took_us;

    init (&w, 5, 3);
    await_leader (&w, 1000000);
    pass (&w, 1000000);
    int first = leader (&w);
    role_end (&w.node[first].role, w.now_us, ROLE_END_GIVEN);
    took_us = await_leader (&w, TAKEOVER);
    while (leader (&w) == first)
        tick (&w);
    took_us = await_leader (&w, TAKEOVER);
    ok (w.node[first].role.ending == ROLE_END_GIVEN && took_us <= POLL + 6 * TICK && w.row.term == 2,
        "a role that is given back is claimed at the next read: %.2f s", (double)took_us / 1E6);
    int second = leader (&w);
    role_end (&w.node[second].role, w.now_us, ROLE_END_STOPPED);
    pass (&w, TAKEOVER);
    ok (w.row.word == ROLE_STOPPED && w.row.term == 2 && w.node[second].role.ending == ROLE_END_STOPPED,
        "an instance that is shut down is claimed by none");
    int third = 3 - first - second;
    ok (w.node[third].role.state == ROLE_END && w.node[third].role.ending == ROLE_END_STOPPED, "its standbys end");
    start (&w, third);
    ok (await_leader (&w, 1000000) < POLL && w.row.term == 3, "a candidate that is started later leads");
    start (&w, first);
    pass (&w, 1000000);
    role_end (&w.node[first].role, w.now_us, ROLE_END_GIVEN);
    ok (w.node[first].role.state == ROLE_END && w.node[first].role.ending == ROLE_END_GIVEN && leader (&w) == third,
        "a standby that is told to end just ends");
    w.loss = 1000;
    role_end (&w.node[third].role, w.now_us, ROLE_END_GIVEN);
    pass (&w, TAKEOVER + TIMEOUT + POLL + 2 * TICK);
    ok (w.node[third].role.ending == ROLE_END_GIVEN, "a release that gets no answer is given up");
}

static void test_lost_claim (void)
{
    struct role_config config = { .takeover_us = TAKEOVER, .owner = "me", .host = "n0" };
    struct role_row row = { .term = 4, .beat = 9, .word = ROLE_RELEASED, .owner = "other" };
    struct role r;

    role_init (&r, 1, &config);
    ok (role_next (&r, 1) == ROLE_ACT_READ && role_next (&r, 1) == ROLE_ACT_NONE, "a candidate reads the row");
    role_read (&r, 2, &row);
    ok (role_next (&r, 2) == ROLE_ACT_CLAIM, "a released role is claimed");
    role_failed (&r, 3);
    ok (role_next (&r, role_due (&r)) == ROLE_ACT_READ, "after a claim without an answer the row is read");
    role_read (&r, POLL, &row);
    ok (role_next (&r, POLL) == ROLE_ACT_CLAIM, "if it is unchanged, the same claim is sent again");
    role_failed (&r, POLL);
    role_next (&r, 2 * POLL);
    row = (struct role_row){ .term = 5, .word = ROLE_LEADS, .owner = "me", .host = "n0" };
    role_read (&r, 2 * POLL, &row);
    ok (r.state == ROLE_CLAIM && role_next (&r, 2 * POLL) == ROLE_ACT_BEAT,
        "a claim that is only found by reading must be confirmed by a beat");
    role_failed (&r, 3 * POLL);
    ok (r.state == ROLE_CLAIM && role_next (&r, role_due (&r)) == ROLE_ACT_BEAT, "which is repeated without an answer");
    role_beaten (&r, 4 * POLL, true);
    ok (r.state == ROLE_LEAD && r.row.term == 5, "then the candidate leads");

    role_init (&r, 1, &config);
    role_next (&r, 1);
    role_read (&r, 2, &row);
    role_next (&r, 2);
    role_beaten (&r, 3, false);
    ok (r.state == ROLE_WAIT, "a claim that the store lost after it showed it counts as never made");
}

/* The answered time after which a candidate claims from a leader that does not beat. */
static uint64_t patience (uint32_t candidate)
{
    struct role_config config = { .takeover_us = TAKEOVER, .candidate = candidate, .owner = "me", .host = "n0" };
    struct role_row row = { .term = 4, .beat = 9, .word = ROLE_LEADS, .owner = "other" };
    uint64_t now_us = 1;
    struct role r;

    role_init (&r, now_us, &config);
    while (role_next (&r, now_us) == ROLE_ACT_READ) {
        role_read (&r, now_us, &row);
        now_us = role_due (&r);
    }
    return now_us - 1;
}

static void test_stagger (void)
{
    ok (patience (0) == TAKEOVER && patience (3) == TAKEOVER + 2 * POLL && patience (20) == TAKEOVER + 8 * POLL,
        "each candidate waits 100 ms longer than the one before it");
}

/* --- random histories ------------------------------------------------------------------------------------------ */

static void disturb (struct world *w)
{
    int i = rnd (w, w->nodes);
    struct node *n = &w->node[i];

    switch (rnd (w, 8)) {
    case 0:
        n->up = false;
        break;
    case 1:
        if (n->up)
            role_end (&n->role, w->now_us, ROLE_END_GIVEN);
        break;
    case 2:
        n->stopped = true;
        break;
    case 3:
        w->still_until_us = w->now_us + TICK * rnd (w, 1500);
        break;
    case 4:
        w->loss = rnd (w, 2) ? 0 : rnd (w, 400);
        break;
    case 5:
        w->peers_serve = rnd (w, 4) == 0;
        break;
    default:
        n->stopped = false;
        if (!n->up || n->role.state == ROLE_END)
            start (w, i);
    }
}

static void test_histories (void)
{
    int faults = 0, without = 0;
    uint64_t terms = 0;
    unsigned seeds = tap_turns (300);
    static struct world w;

    for (unsigned seed = 1; seed <= seeds; seed++) {
        init (&w, seed * 7919U, 1 + (int)(seed % NODES));
        w.delay_ticks = 1 + seed % 20;
        for (int i = 0; i < 60; i++) {
            disturb (&w);
            pass (&w, TICK * rnd (&w, 400));
        }
        w.loss = 0;
        w.peers_serve = false;
        for (int i = 0; i < w.nodes; i++) {
            w.node[i].stopped = false;
            if (!w.node[i].up || w.node[i].role.state == ROLE_END)
                start (&w, i);
        }
        pass (&w, 15000000); /* late statements, and a store that stands still */
        for (int i = 0; i < w.nodes; i++)
            if (w.node[i].role.state == ROLE_END)
                start (&w, i);
        without += leader (&w) < 0 && await_leader (&w, 3 * TAKEOVER) == UINT64_MAX;
        faults += w.faults;
        terms += w.row.term;
    }
    ok (faults == 0, "in %u histories, at most one candidate leads in a term, and terms grow (%d terms)", seeds,
        (int)terms);
    ok (terms > 3 * (uint64_t)seeds, "there were takeovers in them");
    ok (without == 0, "when the disturbances are over, one leads");
}

int main (void)
{
    test_first ();
    test_killed ();
    test_stopped_process ();
    test_still_store ();
    test_late_beat ();
    test_cut ();
    test_orderly ();
    test_lost_claim ();
    test_stagger ();
    test_histories ();
    return done_testing ();
}
