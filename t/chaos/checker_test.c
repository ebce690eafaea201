/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* checker_test.c - the checker accepts valid histories, and finds each kind of violation */
#include <errno.h>
#include <string.h>

#include "checker.h"
#include "test/tap.h"

#define CLIENTS 3

/* Two clients, at ranks 0 and 1. */
struct world {
    struct history h[CLIENTS];
    struct window root; /* the first lease of a root */
    const struct history *p[CLIENTS];
};

static void world_init (struct world *w)
{
    memset (w, 0, sizeof (*w));
    for (uint32_t i = 0; i < CLIENTS; i++) {
        w->h[i].rank = w->h[i].client = i;
        w->p[i] = &w->h[i];
    }
}

static void world_judge (struct world *w, struct verdict *v)
{
    checker_judge (w->p, CLIENTS, &w->root, 1, v);
    for (int i = 0; i < CLIENTS; i++)
        history_fini (&w->h[i]);
}

static fluid_t id (uint64_t ms, uint32_t generator, uint32_t sequence)
{
    fluid_t id = 0;

    fluid_join (&(struct fluid_fields){ ms, generator, sequence }, &id);
    return id;
}

/* Client 'i' sends a request at 'sent_us' for 'n' ids above 'after'. It gets the run that begins with 'first' 10 us
 * later.
 */
static void gets (struct world *w, int i, uint64_t sent_us, fluid_t after, fluid_t first, uint32_t n)
{
    struct history *h = &w->h[i];

    h->sent++;
    history_answer (h, &(struct history_answer){ sent_us, sent_us + 10, after, n, 0, 1, h->nruns });
    history_run (h, first, n);
}

static void fails (struct world *w, int i, int errnum)
{
    w->h[i].sent++;
    history_answer (&w->h[i], &(struct history_answer){ 1, 2, 0, 5, errnum, 0, w->h[i].nruns });
}

static void tells_once (struct world *w, int i, uint64_t us, uint64_t bound_us, uint32_t life)
{
    history_bound (&w->h[i], &(struct history_bound){ us, us, bound_us, w->h[i].rank, life });
}

/* The broker of client 'i' reports the bound at 'us', and again at the end. */
static void tells_bound (struct world *w, int i, uint64_t us, uint64_t bound_us)
{
    tells_once (w, i, us, bound_us, 0);
    tells_once (w, i, us + 100000, bound_us, 0);
}

static void tells_watermark (struct world *w, int i, uint64_t us, uint64_t ms)
{
    history_watermark (&w->h[i], &(struct history_watermark){ us, ms });
}

/* --- rules -------------------------------------------------------------------------------------- */

static void test_good (void)
{
    struct world w;
    struct verdict v;

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 1024);
    gets (&w, 0, 200, id (1, 0, 1023), id (2, 0, 0), 1);
    gets (&w, 1, 100, 0, id (1, 1, 0), 1024);
    fails (&w, 1, EAGAIN);
    fails (&w, 1, ECONNRESET);
    tells_watermark (&w, 0, 150, 2);
    world_judge (&w, &v);
    ok (checker_violations (&v) == 0 && v.nexamples == 0, "a history without violations is accepted");
    ok (v.ids == 2049 && v.runs == 3 && v.requests == 5 && v.answered == 3 && v.refused == 1 && v.lost == 1
            && v.watermarks == 1,
        "the checker counts events");
}

static void test_duplicates (void)
{
    struct world w;
    struct verdict v;

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 100);
    gets (&w, 1, 100, 0, id (1, 0, 99), 10);
    world_judge (&w, &v);
    ok (v.duplicates == 1 && v.nexamples == 1, "the checker finds the last id of a run that is issued again");

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 100);
    gets (&w, 1, 100, 0, id (1, 0, 0), 100);
    world_judge (&w, &v);
    ok (v.duplicates == 100, "the checker finds a whole run that is issued again");

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 1000);
    gets (&w, 1, 100, 0, id (1, 0, 10), 1);
    gets (&w, 1, 200, id (1, 0, 10), id (1, 0, 990), 20);
    world_judge (&w, &v);
    ok (v.duplicates == 11, "the checker compares runs inside and behind a longer run with it");

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 100);
    gets (&w, 1, 100, 0, id (1, 0, 100), 100);
    gets (&w, 1, 200, id (1, 0, 199), id (1, 1, 0), 100);
    world_judge (&w, &v);
    ok (v.duplicates == 0, "adjacent runs, and equal numbers of another generator, are no duplicates for the checker");
}

static void test_answers (void)
{
    struct world w;
    struct verdict v;

    world_init (&w);
    w.h[0].sent = 1;
    world_judge (&w, &v);
    ok (v.unanswered == 1, "the checker finds a request that did not end");

    world_init (&w);
    fails (&w, 0, ETIMEDOUT);
    world_judge (&w, &v);
    ok (v.unanswered == 1, "the checker finds a request without an answer");

    world_init (&w);
    w.h[0].twice = 1;
    world_judge (&w, &v);
    ok (v.unanswered == 1, "the checker finds a request that ended twice");

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 10);
    w.h[0].answers[0].count = 11;
    world_judge (&w, &v);
    ok (v.malformed == 1, "the checker finds an answer with one id too few");

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 0), 10);
    w.h[0].answers[0].count = 9;
    world_judge (&w, &v);
    ok (v.malformed == 1, "the checker finds an answer with one id too many");

    world_init (&w);
    gets (&w, 0, 100, 0, id (1, 0, 1000), 25);
    world_judge (&w, &v);
    ok (v.malformed == 1, "the checker finds a run beyond its millisecond");
}

static void test_order (void)
{
    struct world w;
    struct verdict v;

    world_init (&w);
    gets (&w, 0, 100, id (2, 0, 5), id (2, 0, 5), 10);
    world_judge (&w, &v);
    ok (v.disorder == 1, "the checker finds an id that is not above the client's previous one");

    for (int beyond = 0; beyond < 2; beyond++) {
        world_init (&w);
        tells_bound (&w, 0, 50, 200);
        tells_bound (&w, 1, 50, 300);
        gets (&w, 0, 100, 0, id (2, 0, 0), 10);
        gets (&w, 1, 610 + beyond, 0, id (1, 1, 0), 10);
        world_judge (&w, &v);
        ok (v.judged == 2 && v.misordered == (uint64_t)beyond,
            "a smaller id that is requested %s the sum of both skew bounds is %s", beyond ? "beyond" : "within",
            beyond ? "found" : "passed");
    }

    for (int late = 0; late < 2; late++) {
        world_init (&w);
        w.root = (struct window){ 90, 1000, 1 };
        tells_bound (&w, 0, 50, 200);
        tells_bound (&w, 1, 50, 300);
        gets (&w, 0, 100, 0, id (2, 0, 0), 10);
        gets (&w, 1, 1000 + late, 0, id (1, 1, 0), 10);
        world_judge (&w, &v);
        ok (v.misordered == (uint64_t)late && v.excused == (uint64_t)!late,
            "a smaller id that is requested %s the time of a new root's first lease is %s", late ? "after" : "in",
            late ? "found" : "excused");
    }
}

/* Check which of several bounds counts. */
static void test_bounds (void)
{
    struct world w;
    struct verdict v;

    world_init (&w);
    tells_bound (&w, 0, 50, 200);
    gets (&w, 0, 100, 0, id (2, 0, 0), 10);
    gets (&w, 1, 5000, 0, id (1, 1, 0), 10);
    world_judge (&w, &v);
    ok (v.judged == 1 && v.misordered == 0, "without a skew bound of the rank the order of ids is not checked");

    world_init (&w);
    tells_bound (&w, 0, 50, 200);
    tells_bound (&w, 1, 50, 300);
    tells_bound (&w, 1, 700, 10000);
    gets (&w, 0, 100, 0, id (2, 0, 0), 10);
    gets (&w, 1, 650, 0, id (1, 1, 0), 10);
    world_judge (&w, &v);
    ok (v.misordered == 0, "of the skew bounds before and after an answer the larger one counts");

    for (int same = 0; same < 2; same++) {
        world_init (&w);
        tells_bound (&w, 0, 50, 200);
        tells_once (&w, 1, 50, 300, 0);
        tells_once (&w, 1, 900, 300, !same);
        gets (&w, 0, 100, 0, id (2, 0, 0), 10);
        gets (&w, 1, 700, 0, id (1, 1, 0), 10);
        world_judge (&w, &v);
        ok (v.judged == 1 + (uint64_t)same && v.misordered == (uint64_t)same, "the ids of a broker that %s are %s",
            same ? "reported its bound before and after an answer" : "had not reported its bound before",
            same ? "checked with that bound" : "not checked with its later report");
    }

    for (int own = 0; own < 2; own++) {
        world_init (&w);
        tells_bound (&w, 0, 50, 200);
        tells_bound (&w, 1, 50, 300);
        tells_bound (&w, 2, 50, 10000);
        w.h[2].bounds[0].rank = w.h[2].bounds[1].rank = 0; /* the client uses the second broker of rank 0 */
        w.h[2].rank = UINT32_MAX;
        gets (&w, own ? 0 : 2, 100, 0, id (2, 0, 0), 10);
        gets (&w, 1, 650, 0, id (1, 1, 0), 10);
        world_judge (&w, &v);
        ok (v.judged == 2 && v.misordered == (uint64_t)own,
            "the skew bound of a second broker of a rank counts %s its own clients", own ? "for none but" : "for");
    }
}

/* Client 2 is at a rank without a generator, and gets ids of generator 0. */
static void test_makers (void)
{
    struct world w;
    struct verdict v;

    for (int own = 0; own < 2; own++) {
        world_init (&w);
        tells_bound (&w, 0, 50, 200);
        tells_bound (&w, 1, 50, 300);
        tells_bound (&w, 2, 50, 10000);
        w.h[2].makers = 1 << 2;
        gets (&w, 1, 100, 0, id (2, 1, 0), 10);
        gets (&w, own ? 0 : 2, 650, 0, id (1, 0, 0), 10);
        world_judge (&w, &v);
        ok (v.judged == 2 && v.misordered == (uint64_t)own,
            "the skew bound of a rank with a part counts %s its own clients", own ? "for none but" : "for");
    }

    for (int there = 0; there < 2; there++) {
        world_init (&w);
        tells_bound (&w, 0, 50, 200);
        tells_bound (&w, 1, 50, 300);
        if (there)
            tells_bound (&w, 2, 50, 100);
        w.h[2].makers = 1 << 1 | 1 << 2;
        gets (&w, 1, 100, 0, id (2, 1, 0), 10);
        gets (&w, 2, 711, 0, id (1, 0, 0), 10);
        world_judge (&w, &v);
        ok (v.judged == 1 + (uint64_t)there && v.misordered == (uint64_t)there,
            "%s the order of ids of a rank with a part is checked",
            there ? "if all skew bounds are known" : "without the rank's own skew bound not even");
    }
}

static void test_watermark (void)
{
    struct world w;
    struct verdict v;

    world_init (&w);
    tells_watermark (&w, 0, 50, 7);
    tells_watermark (&w, 0, 60, 5);
    gets (&w, 1, 50, 0, id (4, 1, 0), 10);
    gets (&w, 1, 100, id (4, 1, 9), id (6, 1, 0), 10);
    gets (&w, 1, 200, id (6, 1, 9), id (7, 1, 0), 10);
    world_judge (&w, &v);
    ok (v.below == 1, "the checker finds an id below the largest watermark that was reported before the request");
}

static void test_gaps (void)
{
    struct world w;
    struct gap all, one;
    struct window outage = { 200, 900, 2 };

    world_init (&w);
    gets (&w, 0, 90, 0, id (1, 0, 0), 1);
    gets (&w, 0, 490, 0, id (2, 0, 0), 1);
    gets (&w, 0, 990, 0, id (3, 0, 0), 1);
    gets (&w, 1, 140, 0, id (1, 1, 0), 1);
    gets (&w, 1, 1090, 0, id (2, 1, 0), 1);
    checker_gaps (w.p, 2, NULL, 0, 50, 1200, &all, &one);
    ok (all.us == 500 && all.at_us == 500, "the checker finds the longest time without an answer to any client");
    ok (one.us == 950 && one.at_us == 150 && one.rank == 1,
        "the checker finds the longest time without an answer at one rank");
    checker_gaps (w.p, 2, &outage, 1, 50, 1200, &all, &one);
    ok (one.us == 500 && one.rank == 0, "time that an outage explains does not count as time without an answer");
    for (int i = 0; i < CLIENTS; i++)
        history_fini (&w.h[i]);
}

int main (void)
{
    test_good ();
    test_duplicates ();
    test_answers ();
    test_order ();
    test_bounds ();
    test_makers ();
    test_watermark ();
    test_gaps ();
    return done_testing ();
}
