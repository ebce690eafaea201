/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shares_test.c - random histories of lenders and borrowers of one generator: no id is made twice, all are in order
 *
 * Lives of an owner have successive ranges of time. Borrowers ask any lender, grant further, make ids, get ids from an
 * ancestor, close, and are started again while the former life continues. Messages arrive late, twice, in any order, at
 * another rank, or never. Clocks differ. A checker that shares no code with the product knows which life made each id,
 * and below which time each has reported that it makes none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/libutil/minmax.h"
#include "test/tap.h"
#include "modules/fluid/lease/borrower.h"
#include "modules/fluid/lease/lender.h"

#define GENERATOR 4711
#define SPAN_MS 2000
#define TERM_MS 160
#define LIVES 40
#define OWNERS 8
#define MESSAGES 24
#define SKEW_MS 80

struct life {
    bool owner, closed;
    char uuid[IDT_MSG_UUID_LEN + 1];
    uint32_t skew_ms, size;
    struct fluid_gen gen;
    struct area whole; /* area of 'gen': an owner's does not change, a borrower's does */
    fluid_t last;      /* newest id that its client got */
    uint64_t top_ms;   /* newest millisecond of its ids */
    uint64_t floor_ms; /* it makes nothing below this any longer, */
    uint64_t told_ms;  /* and reported this, for itself and its borrowers */
    struct borrower borrower;
    struct lender lender;
};

struct message {
    enum { NONE, WANT, SHARE } kind;
    size_t to;
    struct share_want want;
    struct share share;
};

struct world {
    uint64_t seed, now_ms, root_ms;
    struct life life[LIVES];
    size_t nlives, newest_owner;
    struct message message[MESSAGES];
    unsigned char maker[SPAN_MS + SKEW_MS][FLUID_PER_MS]; /* 0: not made */
    uint64_t made, made_lent, loans, returns, renewals;
    const char *fault;
};

static uint64_t draw (struct world *w, uint64_t n)
{
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return (w->seed >> 11) % n;
}

static void expect (struct world *w, bool good, const char *rule)
{
    if (!good && !w->fault)
        w->fault = rule;
}

static uint64_t clock_ms (const struct world *w, const struct life *l)
{
    return w->now_ms + l->skew_ms;
}

static uint64_t now_us (const struct world *w)
{
    return w->now_ms * 1000;
}

static struct life *born (struct world *w, bool owner)
{
    struct life *l = &w->life[w->nlives];

    *l = (struct life){ .owner = owner, .skew_ms = (uint32_t)draw (w, SKEW_MS), .size = 16U << draw (w, 6) };
    snprintf (l->uuid, sizeof (l->uuid), "aaaaaaaa-aaaa-4aaa-8aaa-%012zu", w->nlives++);
    lender_init (&l->lender, TERM_MS);
    borrower_init (&l->borrower, l->uuid, TERM_MS);
    fluid_gen_init (&l->gen, &(struct fluid_gen_config){ .generator = GENERATOR });
    return l;
}

/* --- ids ------------------------------------------------------------------------------------------ */

static bool contains (const struct loan_out *o, const struct fluid_fields *f)
{
    return f->timestamp_ms >= o->range.lo_ms && f->timestamp_ms < o->range.hi_ms
           && (o->granules >> f->sequence / FLUID_GRANULE & 1);
}

/* No lender of the maker has reported that no ids are made there. */
static void check_told (struct world *w, const struct fluid_fields *f)
{
    for (struct life *l = w->life; l < w->life + w->nlives; l++)
        for (size_t i = 0; i < l->lender.count; i++)
            if (contains (&l->lender.loan[i], f))
                expect (w, f->timestamp_ms >= l->told_ms, "no id is below a position that a lender reported");
}

static void check_id (struct world *w, struct life *l, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);
    unsigned char *maker = &w->maker[f.timestamp_ms][f.sequence];

    expect (w, f.generator == GENERATOR && *maker == 0, "no id is made twice");
    *maker = (unsigned char)(l - w->life + 1);
    expect (w, f.timestamp_ms >= l->told_ms, "no id is below the own position");
    check_told (w, &f);
    w->made++;
    w->made_lent += !l->owner;
}

/* Find the area that it may use now. */
static bool find_area (struct world *w, struct life *l)
{
    uint64_t ms = clock_ms (w, l);

    if (!l->owner) {
        if (l->closed || !borrower_area (&l->borrower, now_us (w), ms, &l->whole))
            return false;
        fluid_gen_set_range (&l->gen, l->whole.range.lo_ms, l->whole.range.hi_ms);
    }
    return !l->closed && ms >= l->whole.range.lo_ms && ms < l->whole.range.hi_ms;
}

/* Make up to 'want' ids at a millisecond since the last one, or now. Returns the last of them; 0: none. */
static fluid_t make (struct world *w, struct life *l, uint32_t want)
{
    uint64_t until_ms, ms = clock_ms (w, l), low_ms = max_u64 (l->floor_ms, l->whole.range.lo_ms);
    fluid_t first, last = 0;
    int n;

    if (!find_area (w, l) || ms < low_ms)
        return 0;
    if (draw (w, 3) == 0 && ms > low_ms)
        ms -= draw (w, ms - low_ms + 1);
    uint64_t granules = lender_free (&l->lender, &l->whole, ms, &until_ms);
    expect (w, until_ms > ms, "the result of lender_free () is valid for a millisecond at least");
    if ((n = fluid_gen_reserve_in (&l->gen, ms, granules, want, &first)) < 0)
        return 0;
    for (int i = 0; i < n; i++)
        check_id (w, l, last = first + (fluid_t)i);
    l->top_ms = l->floor_ms = ms;
    return last;
}

/* For its own client. */
static void serve (struct world *w, struct life *l)
{
    fluid_t id = make (w, l, 1 + (uint32_t)draw (w, draw (w, 4) == 0 ? 600 : 20));

    if (id != 0) {
        expect (w, id > l->last, "ids that leave a rank increase");
        l->last = id;
    }
}

/* Another life serves the request. */
static void forward (struct world *w, struct life *l, struct life *server)
{
    if (server == l || !find_area (w, server))
        return;
    fluid_gen_follow (&server->gen, l->last);
    fluid_t id = make (w, server, 1);

    if (id == 0)
        return;
    expect (w, id > l->last, "ids from an ancestor are above those before");
    server->last = max_u64 (server->last, id);
    l->last = id;
    l->top_ms = max_u64 (l->top_ms, fluid_split (id).timestamp_ms);
    l->floor_ms = max_u64 (l->floor_ms, l->top_ms);
    fluid_gen_follow (&l->gen, id);
}

/* --- messages --------------------------------------------------------------------------------------- */

static void post (struct world *w, const struct message *m)
{
    w->message[draw (w, MESSAGES)] = *m; /* the message that was there is lost */
}

static void ask (struct world *w, struct life *l)
{
    uint64_t low_ms = max_u64 (l->top_ms + 1, lender_end (&l->lender));
    struct message m = { .kind = WANT, .to = draw (w, w->nlives) };

    if (l->owner || l->closed
        || (borrower_due (&l->borrower, now_us (w), clock_ms (w, l), l->size) > now_us (w) && draw (w, 8) > 0))
        return;
    w->renewals += l->borrower.nareas > 0;
    borrower_ask (&l->borrower, now_us (w), clock_ms (w, l), l->size, low_ms, &m.want);
    post (w, &m);
    post (w, &m);
}

static void give_back (struct world *w, struct life *l)
{
    struct message m = { .kind = WANT, .to = draw (w, w->nlives) };

    if (l->owner)
        return;
    uint64_t left_ms = lender_left_ms (&l->lender, now_us (w));
    w->returns += borrower_close (&l->borrower, max_u64 (l->top_ms + 1, lender_end (&l->lender)), left_ms, &m.want);
    post (w, &m);
}

static void answer (struct world *w, struct life *l, const struct message *m)
{
    bool has = find_area (w, l);
    struct lender_stock stock = { has ? &l->whole : NULL, l->top_ms + 1, (uint32_t)draw (w, 600) };
    struct message a = { .kind = SHARE };

    if (!lender_answer (&l->lender, now_us (w), clock_ms (w, l), &stock, &m->want, &a.share))
        return;
    w->loans++;
    for (a.to = 0; strcmp (w->life[a.to].uuid, m->want.incarnation) != 0;)
        a.to++;
    if (draw (w, 16) == 0)
        a.to = draw (w, w->nlives);
    post (w, &a);
}

static void deliver (struct world *w)
{
    struct message *place = &w->message[draw (w, MESSAGES)], m = *place;

    if (m.kind == NONE)
        return;
    if (draw (w, 4) > 0)
        place->kind = NONE; /* otherwise it arrives again */
    struct life *to = &w->life[draw (w, 8) == 0 ? draw (w, w->nlives) : m.to];
    if (m.kind == WANT && strcmp (to->uuid, m.want.incarnation) != 0)
        answer (w, to, &m);
    else if (m.kind == SHARE)
        borrower_take (&to->borrower, now_us (w), clock_ms (w, to), &m.share);
}

/* --- time, lives -------------------------------------------------------------------------------------- */

/* Report a position to all that may have granted it something, and forget subleases that are over. If no earlier
 * request waits, the position is the current time.
 */
static void tell (struct world *w, struct life *l)
{
    l->floor_ms = max_u64 (l->floor_ms, draw (w, 2) == 0 ? clock_ms (w, l) : 0);
    l->told_ms = max_u64 (l->told_ms, min_u64 (l->floor_ms, lender_low_ms (&l->lender, now_us (w))));
    lender_forget (&l->lender, now_us (w), l->floor_ms);
    for (size_t i = 0; i < w->nlives; i++)
        lender_position (&w->life[i].lender, 0, l->uuid, l->told_ms);
}

/* The owner is restarted, possibly after a clean stop: then the next life is granted what was not used or subleased. */
static void next_owner (struct world *w, bool stopped)
{
    struct life *old = &w->life[w->newest_owner];
    uint64_t end_ms = max_u64 (old->top_ms + 1, lender_end (&old->lender));

    if (stopped && end_ms < old->whole.range.hi_ms) {
        old->closed = true;
        w->root_ms = max_u64 (end_ms, old->whole.range.lo_ms);
    }
    w->newest_owner = w->nlives;
    struct life *l = born (w, true);
    l->whole = (struct area){ GENERATOR, UINT64_MAX, { w->root_ms, w->root_ms + 100 + draw (w, 400) }, UINT64_MAX };
    w->root_ms = l->whole.range.hi_ms;
    fluid_gen_set_range (&l->gen, l->whole.range.lo_ms, l->whole.range.hi_ms);
}

static void step (struct world *w)
{
    struct life *l = &w->life[draw (w, w->nlives)];

    switch (draw (w, 64)) {
    case 0:
        w->now_ms++;
        break;
    case 1:
        give_back (w, l);
        break;
    case 2:
        l->size = 16U << draw (w, 6);
        break;
    case 3:
        borrower_moved (&l->borrower, now_us (w));
        break;
    case 4 ... 7:
        tell (w, l);
        break;
    case 8 ... 15:
        forward (w, l, &w->life[draw (w, w->nlives)]);
        break;
    case 16 ... 30:
        ask (w, l);
        break;
    case 31 ... 50:
        deliver (w);
        break;
    default:
        serve (w, l);
    }
}

static void restarts (struct world *w)
{
    if (w->now_ms >= w->root_ms || draw (w, 150) == 0)
        if (w->nlives < LIVES)
            next_owner (w, draw (w, 2) == 0);
    if (draw (w, 100) == 0 && w->nlives < LIVES - OWNERS)
        born (w, false);
}

static void history (struct world *w, uint64_t seed)
{
    *w = (struct world){ .seed = seed * UINT64_C (0x9e3779b97f4a7c15) + 1, .now_ms = 1 };
    next_owner (w, false);
    for (int i = 0; i < 5; i++)
        born (w, false);
    while (w->now_ms < SPAN_MS && !w->fault) {
        uint64_t ms = w->now_ms;

        step (w);
        if (w->now_ms != ms)
            restarts (w);
    }
    for (size_t i = 0; i < w->nlives; i++)
        lender_fini (&w->life[i].lender);
}

int main (void)
{
    struct world *w = calloc (1, sizeof (*w));
    uint64_t made_lent = 0, loans = 0, returns = 0, renewals = 0, seed;

    if (!w)
        bail_out ("out of memory");
    for (seed = 1; seed <= tap_turns (300); seed++) {
        history (w, seed);
        made_lent += w->made_lent;
        loans += w->loans;
        returns += w->returns;
        renewals += w->renewals;
        if (w->fault)
            break;
    }
    diag ("%llu ids of %llu subleases, %llu returns, %llu requests of ranks with a sublease",
          (unsigned long long)made_lent, (unsigned long long)loans, (unsigned long long)returns,
          (unsigned long long)renewals);
    if (w->fault)
        diag ("seed %llu, at %llu ms: broken: %s", (unsigned long long)seed, (unsigned long long)w->now_ms, w->fault);
    ok (!w->fault, "in random histories of subleases no id is made twice, out of order, or below a reported position");
    ok (made_lent > tap_turns (10000) && loans > tap_turns (1000) && returns > tap_turns (100)
            && renewals > tap_turns (1000),
        "in random histories many subleases are granted, used, renewed and returned");
    free (w);
    return done_testing ();
}
