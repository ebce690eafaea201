/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boxes_test.c - random histories of holders and granters of one generator: no id is made twice, all are in order
 *
 * A root grants the whole generator to lives of one rank, which owns it. It may crash or stop, and begins again at its
 * horizon. Lives of other ranks ask any life for a part, grant further, make ids, get ids from an ancestor, return what
 * they hold, and are started again while the former life continues. Messages arrive late, twice, in any order, at
 * another rank, or never. Clocks differ. A checker that shares no code with the product knows which life made each id,
 * and below which time each has reported that it makes none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/libutil/minmax.h"
#include "test/tap.h"
#include "modules/fluid/lease/grants.h"
#include "modules/fluid/lease/held.h"

#define SPAN_MS 2000
#define TERM_MS 160
#define LEASE_MS 400
#define LIVES 40
#define OWNERS 8
#define MESSAGES 24
#define SKEW_MS 80

struct life {
    bool owner, closed;
    char uuid[IDT_MSG_UUID_LEN + 1];
    uint32_t skew_ms, size;
    struct fluid_gen gen;
    struct lease whole; /* what it may use now */
    fluid_t last;       /* newest id that its client got */
    uint64_t top_ms;    /* newest millisecond of its ids */
    uint64_t floor_ms;  /* it makes nothing below this any longer, */
    uint64_t told_ms;   /* and reported this, for itself and those to whom it granted parts */
    struct held held;
    struct grants grants;
};

struct message {
    enum { NONE, WANT, GRANT } kind;
    size_t to; /* ROOT: the root */
    struct want want;
    struct grant grant[GRANTS_EACH];
    size_t n;
    uint32_t share;
};

#define ROOT SIZE_MAX

struct world {
    uint64_t seed, now_ms;
    struct grants root;
    uint64_t horizon_ms;
    struct life life[LIVES];
    size_t nlives, nowners;
    struct message message[MESSAGES];
    unsigned char maker[SPAN_MS + SKEW_MS][FLUID_PER_MS]; /* 0: not made */
    uint64_t made, made_of_parts, wholes, parts, less, returns, renewals;
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

/* Rank 0 owns the generator 0, and all lives of it are rivals. */
static struct life *born (struct world *w, bool owner)
{
    struct life *l = &w->life[w->nlives];

    *l = (struct life){ .owner = owner, .skew_ms = (uint32_t)draw (w, SKEW_MS), .size = 16U << draw (w, 6) };
    snprintf (l->uuid, sizeof (l->uuid), "aaaaaaaa-aaaa-4aaa-8aaa-%012zu", w->nlives++);
    w->nowners += owner;
    grants_init (&l->grants, TERM_MS, 0);
    held_init (&l->held, owner ? 0 : 1, l->uuid, owner, owner ? LEASE_MS : TERM_MS);
    fluid_gen_init (&l->gen, &(struct fluid_gen_config){ .generator = 0 });
    return l;
}

/* The lowest time of which it may make ids: nothing below was granted on, or is in use there. */
static uint64_t rest_ms (const struct life *l)
{
    return max_u64 (l->top_ms + 1, grants_end (&l->grants));
}

/* --- ids ------------------------------------------------------------------------------------------ */

static bool contains (const struct box *b, const struct fluid_fields *f)
{
    return f->timestamp_ms >= b->range.lo_ms && f->timestamp_ms < b->range.hi_ms
           && (b->granules >> f->sequence / FLUID_GRANULE & 1);
}

/* No granter of the maker has reported that no ids are made there. */
static void check_told (struct world *w, const struct fluid_fields *f)
{
    for (struct life *l = w->life; l < w->life + w->nlives; l++)
        for (size_t i = 0; i < l->grants.count; i++)
            if (contains (&l->grants.entry[i].box, f))
                expect (w, f->timestamp_ms >= l->told_ms, "no id is below a position that a granter reported");
}

static void check_id (struct world *w, struct life *l, fluid_t id)
{
    struct fluid_fields f = fluid_split (id);
    unsigned char *maker = &w->maker[f.timestamp_ms][f.sequence];

    expect (w, f.generator == 0 && *maker == 0, "no id is made twice");
    *maker = (unsigned char)(l - w->life + 1);
    expect (w, f.timestamp_ms >= l->told_ms, "no id is below the own position");
    check_told (w, &f);
    w->made++;
    w->made_of_parts += !l->owner;
}

/* Find what it may use now. */
static bool find_whole (struct world *w, struct life *l)
{
    if (l->closed || !held_find (&l->held, now_us (w), clock_ms (w, l), &l->whole))
        return false;
    fluid_gen_set_range (&l->gen, l->whole.box.range.lo_ms, l->whole.box.range.hi_ms);
    return true;
}

/* Make up to 'want' ids at a millisecond since the last one, or now. Returns the last of them; 0: none. */
static fluid_t make (struct world *w, struct life *l, uint32_t want)
{
    uint64_t until_ms, ms = clock_ms (w, l);
    fluid_t first, last = 0;
    int n;

    if (!find_whole (w, l))
        return 0;
    uint64_t low_ms = max_u64 (l->floor_ms, l->whole.box.range.lo_ms);
    if (ms < low_ms)
        return 0;
    if (draw (w, 3) == 0 && ms > low_ms)
        ms -= draw (w, ms - low_ms + 1);
    uint64_t granules = grants_free (&l->grants, &l->whole.box, ms, &until_ms);
    expect (w, until_ms > ms, "the result of grants_free () is valid for a millisecond at least");
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
    if (server == l || !find_whole (w, server))
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

static size_t granter_of (struct world *w, const struct life *l)
{
    return l->owner ? ROOT : draw (w, w->nlives);
}

/* It keeps what it granted, and some of the rest. Returns whether it asks for less. */
static bool ask_less (struct world *w, struct life *l, struct want *want)
{
    uint64_t now_ms = clock_ms (w, l), low_ms = l->top_ms + 1;
    uint64_t given = grants_granules (&l->grants, min_u64 (now_ms, low_ms));
    uint64_t kept = held_granules (&l->held) & (given | draw (w, UINT64_MAX >> 12) << draw (w, 12));

    if (l->owner || kept == 0 || (given & ~kept) != 0 || kept == held_granules (&l->held))
        return false;
    held_ask (&l->held, now_us (w), now_ms, l->size, low_ms, kept, want);
    w->less++;
    return true;
}

static void ask (struct world *w, struct life *l)
{
    struct message m = { .kind = WANT, .to = granter_of (w, l) };
    uint32_t size = l->owner ? BOX_WHOLE : l->size;

    if (l->closed || (held_due (&l->held, now_us (w), clock_ms (w, l), size) > now_us (w) && draw (w, 8) > 0))
        return;
    w->renewals += l->held.count > 0;
    if (draw (w, 4) > 0 || !ask_less (w, l, &m.want))
        held_ask (&l->held, now_us (w), clock_ms (w, l), size, l->owner ? 0 : rest_ms (l), 0, &m.want);
    post (w, &m);
    post (w, &m);
}

/* A life of the owner stops for good. Any other may ask again. */
static void give_back (struct world *w, struct life *l)
{
    struct message m = { .kind = WANT, .to = granter_of (w, l) };

    if (l->closed || (l->owner && draw (w, 8) > 0))
        return;
    w->returns += held_return (&l->held, rest_ms (l), grants_left_ms (&l->grants, now_us (w)), &m.want);
    if (l->owner) {
        held_close (&l->held);
        l->closed = true;
    }
    post (w, &m);
}

static size_t life_of (const struct world *w, const char *uuid)
{
    size_t i = 0;

    while (strcmp (w->life[i].uuid, uuid) != 0)
        i++;
    return i;
}

static void answer (struct world *w, struct life *l, const struct message *m)
{
    bool has = find_whole (w, l);
    struct grants_stock stock = { has ? &l->whole.box : NULL, l->whole.until_us, l->top_ms + 1,
                                  (uint32_t)draw (w, 600) };
    struct message a = { .kind = GRANT };

    a.n = grants_answer (&l->grants, now_us (w), clock_ms (w, l), &stock, &m->want, a.grant);
    if (a.n == 0)
        return;
    w->parts++;
    a.share = has ? grants_share (&l->grants, now_us (w), &stock, &m->want) : 0;
    a.to = draw (w, 16) == 0 ? draw (w, w->nlives) : life_of (w, m->want.incarnation);
    post (w, &a);
}

static void answer_of_root (struct world *w, const struct message *m)
{
    const struct box all = { 0, UINT64_MAX, { 0, w->horizon_ms } };
    const struct grants_stock stock = { .whole = &all, .until_us = UINT64_MAX };
    struct message a = { .kind = GRANT };

    a.n = grants_answer (&w->root, now_us (w), w->now_ms, &stock, &m->want, a.grant);
    if (a.n == 0)
        return;
    expect (w, a.n == 1 && a.grant[0].box.range.hi_ms <= w->horizon_ms, "nothing above the horizon is granted");
    w->wholes++;
    a.to = draw (w, 16) == 0 ? draw (w, w->nlives) : life_of (w, m->want.incarnation);
    post (w, &a);
}

static void deliver (struct world *w)
{
    struct message *place = &w->message[draw (w, MESSAGES)], m = *place;

    if (m.kind == NONE)
        return;
    if (draw (w, 4) > 0)
        place->kind = NONE; /* otherwise it arrives again */
    if (m.to == ROOT) {
        answer_of_root (w, &m);
        return;
    }
    struct life *to = &w->life[draw (w, 8) == 0 ? draw (w, w->nlives) : m.to];
    if (m.kind == WANT && strcmp (to->uuid, m.want.incarnation) != 0)
        answer (w, to, &m);
    else if (m.kind == GRANT)
        held_take (&to->held, now_us (w), clock_ms (w, to), m.grant, m.n, m.share, 0);
}

/* --- time, lives -------------------------------------------------------------------------------------- */

/* Report a position to all that may have granted it something, and forget parts that are over. If no earlier request
 * waits, the position is the current time.
 */
static void tell (struct world *w, struct life *l)
{
    l->floor_ms = max_u64 (l->floor_ms, draw (w, 2) == 0 ? clock_ms (w, l) : 0);
    l->told_ms = max_u64 (l->told_ms, min_u64 (l->floor_ms, grants_low_ms (&l->grants, now_us (w))));
    grants_forget (&l->grants, now_us (w), l->floor_ms);
    for (size_t i = 0; i < w->nlives; i++)
        grants_position (&w->life[i].grants, l->held.want.rank, l->uuid, l->told_ms);
}

/* A horizon is stored, or was not stored for a long time. */
static void store (struct world *w)
{
    w->horizon_ms = max_u64 (w->horizon_ms, w->now_ms + draw (w, 2 * LEASE_MS));
}

/* The root crashes, or stops when its own table ends below the horizon. */
static void restart_root (struct world *w)
{
    uint64_t floor_ms = draw (w, 2) == 0 ? w->horizon_ms : grants_end (&w->root);

    grants_fini (&w->root);
    grants_init (&w->root, LEASE_MS, 1);
    w->root.floor_ms = w->horizon_ms = floor_ms;
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
        held_moved (&l->held, now_us (w));
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
    if (draw (w, 50) == 0)
        store (w);
    if (draw (w, 400) == 0)
        restart_root (w);
    if (draw (w, 150) == 0 && w->nowners < OWNERS)
        born (w, true);
    if (draw (w, 100) == 0 && w->nlives < LIVES - OWNERS + w->nowners)
        born (w, false);
}

static void history (struct world *w, uint64_t seed)
{
    *w = (struct world){ .seed = seed * UINT64_C (0x9e3779b97f4a7c15) + 1, .now_ms = 1 };
    grants_init (&w->root, LEASE_MS, 1);
    w->horizon_ms = LEASE_MS;
    born (w, true);
    for (int i = 0; i < 5; i++)
        born (w, false);
    while (w->now_ms < SPAN_MS && !w->fault) {
        uint64_t ms = w->now_ms;

        step (w);
        if (w->now_ms != ms)
            restarts (w);
    }
    for (size_t i = 0; i < w->nlives; i++)
        grants_fini (&w->life[i].grants);
    grants_fini (&w->root);
}

int main (void)
{
    struct world *w = calloc (1, sizeof (*w));
    uint64_t made = 0, made_of_parts = 0, wholes = 0, parts = 0, less = 0, returns = 0, renewals = 0, seed;

    if (!w)
        bail_out ("out of memory");
    for (seed = 1; seed <= tap_turns (300); seed++) {
        history (w, seed);
        made += w->made;
        made_of_parts += w->made_of_parts;
        wholes += w->wholes;
        parts += w->parts;
        less += w->less;
        returns += w->returns;
        renewals += w->renewals;
        if (w->fault)
            break;
    }
    diag ("%ju ids, %ju of %ju parts (%ju returns of a part of what was held), %ju wholes, %ju returns, %ju renewals",
          (uintmax_t)made, (uintmax_t)made_of_parts, (uintmax_t)parts, (uintmax_t)less, (uintmax_t)wholes,
          (uintmax_t)returns, (uintmax_t)renewals);
    if (w->fault)
        diag ("seed %ju, at %ju ms: broken: %s", (uintmax_t)seed, (uintmax_t)w->now_ms, w->fault);
    ok (!w->fault, "in random histories of grants no id is made twice, out of order, or below a reported position");
    ok (made_of_parts > tap_turns (10000) && parts > tap_turns (1000) && wholes > tap_turns (1000)
            && less > tap_turns (100) && returns > tap_turns (100) && renewals > tap_turns (1000),
        "in random histories many wholes and parts are granted, used, renewed and returned");
    free (w);
    return done_testing ();
}
