/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tree.pml - leases in a tree of four nodes: combined on the way up, split on the way down
 *
 *      0 root      Node 0 has the table of leases, node 1 a relay.  Nodes 1, 2 and 3 each want a generator: G1, G2,
 *      |           G3, which may be the same (two brokers that claim one rank).  Nodes 2 and 3 send to node 1 or, when
 *      1 relay     they lost it, to node 0, and change as often as they like: what they sent before stays on its way.
 *     / \          RESTARTS times, a node starts again: a new life with an incarnation of its own, while the old one
 *    2   3         goes on as a zombie (a crash is a zombie that does nothing more).  The root crashes CRASHES times.
 *
 * A want may arrive anywhere on its path, alone or with any others, late, again, out of order, or never; that is also
 * what a relay does that crashes, starts again or loses its links.  An answer may arrive again, or be lost.  With
 * -DBACKS=1 nodes close, and give back.
 *
 * Checked: NOT_TWICE     no (generator, timestamp) may be issued by two lives
 *          DISJOINT      ranges of one generator that were given to different incarnations do not meet
 *          NOT_FAR       no range ends later than a lease from now
 *
 * Rules taken away (sublease.pml explains those of the root):
 *  NO_OWN_ANSWER       a node takes an answer to its number without a look at the incarnation, and a relay deals shares
 *                      out by generator only
 *  NO_OWN_INCARNATION  a node that starts again uses its incarnation, and its numbers, again
 *  NO_RETURN_INSIDE    a return may end below the ranges that its sender was given in a row
 *  as in sublease.pml: NO_HORIZON_FIRST, NO_START_AT_HORIZON, NO_GRANT_ONCE, NO_ANSWER_ITS_OWN, NO_NEVER_USE_RETURNED,
 *  NO_END_ITS_OWN
 */
#ifndef G1
#define G1 0
#endif
#ifndef G2
#define G2 1
#endif
#ifndef G3
#define G3 1
#endif
#ifndef GENS
#define GENS 2
#endif
#ifndef L
#define L 2
#endif
#ifndef T
#define T 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef WANTS
#define WANTS 2
#endif
#define LIVES (3 + RESTARTS)
#define END (T + 2 * L * (CRASHES + 1) + 2)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

byte H;
byte crashes;

/* By incarnation.  Its wants 1 ... asked were sent; 'lo', 'hi' answer number 'newest'. */
typedef net {
    byte gen, asked, newest, lo, hi, back
};
net on[LIVES + 1];

/* The newest answer that is under way to the relay; it may arrive again, also in the relay's next life. */
typedef grants {
    byte num, lo, hi
};
grants answered[LIVES + 1];

byte issuer[GENS * END];                /* for the properties only */

/* --- the root --------------------------------------------------------------------------------- */

typedef holding {
    byte inc, num, first, lo, hi
};

#define HOLDS(j)     (on[j].lo < b && a < on[j].hi)
#define ON_WAY(j)    (answered[j].lo < b && a < answered[j].hi && answered[j].num == on[j].newest)

/* [a, b) goes to incarnation i. */
inline check_range ()
{
    assert (b <= now + L || again);                             /* NOT_FAR */
    for (j : 1 .. LIVES) {
        assert (j == i || on[j].gen != g || !(HOLDS (j) || ON_WAY (j)))         /* DISJOINT */
    }
    for (j : a .. (b - 1)) {
        assert (issuer[g * END + j] == 0 || issuer[g * END + j] == i)           /* DISJOINT */
    }
    j = 0
}

#ifdef NO_END_ITS_OWN
#define IS_HOLDER true
#else
#define IS_HOLDER (last[g].inc == i)
#endif
#ifdef NO_RETURN_INSIDE
#define NEW_END a
#else
#define NEW_END MAX (a, last[g].first)
#endif

inline take_back ()
{
    g = on[i].gen; a = on[i].back - 1;
    if
    :: IS_HOLDER && a < last[g].hi ->
        last[g].hi = NEW_END; last[g].first = 0; last[g].lo = 0; last[g].inc = 0; last[g].num = 0
    :: else
    fi;
    g = 0; a = 0
}

#ifdef NO_ANSWER_ITS_OWN
#define IS_RETRY (last[g].inc > 0 && n == last[g].num)
#else
#define IS_RETRY (last[g].inc == i && n == last[g].num)
#endif
#define IS_OLD   (last[g].inc == i && n < last[g].num)

/* Want n of incarnation i: sets [a, b), empty where nothing is given. */
inline grant ()
{
    g = on[i].gen; a = 0; b = 0;
    again = IS_RETRY;
    if
    :: again -> a = last[g].lo; b = last[g].hi
    :: !again && !IS_OLD && now <= T ->
#ifdef NO_GRANT_ONCE
        a = now;
#else
        a = MAX (base, last[g].hi);
#endif
#ifdef NO_HORIZON_FIRST
        b = now + L;
#else
        b = MIN (now + L, H);
#endif
        if
        :: a < b ->
            last[g].first = (last[g].inc == i && last[g].hi == a -> last[g].first : a);
            last[g].inc = i; last[g].num = n; last[g].lo = a; last[g].hi = b
        :: else -> a = 0; b = 0
        fi
    :: else
    fi;
    if
    :: b > 0 -> check_range ()
    :: else
    fi;
    g = 0; again = false
}

inline deliver (who, number, from, to)
{
    if
    :: to > 0 && number == on[who].newest -> on[who].lo = from; on[who].hi = to
    :: else
    fi
}

/* The relay's request holds any of what was sent to it: what came late or twice is among it, what was lost is not.  It
 * is combined here, where it arrives, since it says nothing that was not said before and could not be said again.
 */
inline serve_combined ()
{
    for (i : 1 .. LIVES) {                              /* returns come first */
        if
        :: true
        :: on[i].back > 0 -> take_back ()
        fi
    }
    for (i : 1 .. LIVES) {
        n = 0;
        if
        :: true
        :: on[i].asked >= 1 -> n = 1; grant ()
        :: on[i].asked >= 2 -> n = 2; grant ()
        fi;
        answered[i].num = (b > 0 -> n : 0); answered[i].lo = a; answered[i].hi = b;
        a = 0; b = 0
    }
    i = 0; n = 0
}

inline serve (who, number)
{
    i = who; n = number;
    grant ();
    deliver (i, n, a, b);
    i = 0; n = 0; a = 0; b = 0
}

#define DIRECT(i, n) (i != 1 && on[i].asked >= n)

proctype root ()
{
    byte base, now;
    holding last[GENS];
    byte i, j, n, g, a, b;
    bool again;
start:
    atomic {
#ifdef NO_START_AT_HORIZON
        base = now;
#else
        base = H;
#endif
        now = MAX (base, now);
        for (g : 0 .. (GENS - 1)) {
            last[g].inc = 0; last[g].num = 0; last[g].first = 0; last[g].lo = 0; last[g].hi = 0
        }
        g = 0
    }
    do
    :: atomic { now < T -> now++ }
    :: atomic { H < now + L && now <= T -> H = now + 2 * L }
    :: d_step { DIRECT (2, 1) -> serve (2, 1) }
    :: d_step { DIRECT (2, 2) -> serve (2, 2) }
    :: d_step { DIRECT (3, 1) -> serve (3, 1) }
    :: d_step { DIRECT (3, 2) -> serve (3, 2) }
#if RESTARTS > 0
    :: d_step { DIRECT (4, 1) -> serve (4, 1) }
    :: d_step { DIRECT (4, 2) -> serve (4, 2) }
#endif
    :: d_step { on[2].back > 0 -> i = 2; take_back (); i = 0 }
    :: d_step { on[3].back > 0 -> i = 3; take_back (); i = 0 }
    :: atomic { serve_combined () }
    :: atomic { crashes < CRASHES -> crashes++; goto start }
    od
}

/* --- the relay --------------------------------------------------------------------------------- */

#ifdef NO_OWN_ANSWER
#define IS_SHARE(i, j) (answered[j].num > 0 && on[j].gen == on[i].gen)
#else
#define IS_SHARE(i, j) (answered[j].num > 0 && j == i)
#endif

inline split ()
{
    for (i : 1 .. LIVES) {
        for (j : 1 .. LIVES) {
            if
            :: IS_SHARE (i, j) -> deliver (i, answered[j].num, answered[j].lo, answered[j].hi)
            :: else
            fi
        }
    }
    i = 0; j = 0
}

#define ANSWERED (answered[1].num + answered[2].num + answered[3].num + answered[LIVES].num > 0)

proctype relay ()
{
    byte i, j;
    do
    :: d_step { ANSWERED -> split () }
    od
}

/* --- the nodes --------------------------------------------------------------------------------- */

inline take ()
{
    a = on[inc].lo; b = on[inc].hi;
    for (t : a .. (b - 1)) {
        assert (issuer[g * END + t] == 0 || issuer[g * END + t] == me);         /* NOT_TWICE */
        issuer[g * END + t] = me
    }
    lo = (hi == a -> lo : a); hi = b;
    on[inc].lo = 0; on[inc].hi = 0;
    on[inc].newest++;
    a = 0; b = 0; t = 0
}

inline give_back ()
{
    select (a : lo .. (hi - 1));
    on[inc].back = a + 1;
#ifndef NO_NEVER_USE_RETURNED
    for (t : a .. (hi - 1)) {
        issuer[g * END + t] = 0
    }
#endif
    on[inc].lo = 0; on[inc].hi = 0; on[inc].newest = WANTS + 1;
    a = 0; t = 0; lo = 0; hi = 0;
    closed = true
}

proctype life (byte me; byte g; byte inc)
{
    byte lo, hi, a, b, t;
    bool closed;
    on[inc].newest = 1;
    do
    :: atomic { !closed && on[inc].newest <= WANTS && on[inc].asked < on[inc].newest -> on[inc].asked = on[inc].newest }
    :: atomic { !closed && on[inc].hi > 0 -> take () }
    #if BACKS > 0
    :: atomic { !closed && hi > 0 -> give_back () }
#endif
    od
}

inline restart (node)
{
#ifdef NO_OWN_INCARNATION
    run life (4, on[node].gen, node)
#else
    on[4].gen = on[node].gen;
    run life (4, on[node].gen, 4)
#endif
}

init {
    atomic {
        on[1].gen = G1; on[2].gen = G2; on[3].gen = G3;
        run root (); run relay ();
        run life (1, G1, 1); run life (2, G2, 2); run life (3, G3, 3)
    }
#if RESTARTS > 0
    if
    :: atomic { on[1].newest > 1 -> restart (1) }
    :: atomic { on[2].newest > 1 -> restart (2) }
    :: atomic { on[3].newest > 1 -> restart (3) }
    fi
#endif
}
