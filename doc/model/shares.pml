/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shares.pml - ids of one generator: leased, lent, lent on, given back
 *
 * An id is a millisecond (0 ... T-1) and a sequence number (0 ... S-1).  Sets of ids are bits, in the order of ids.
 *
 *      root            gives ranges of time with all sequence numbers, by the rules of lease.pml
 *      / \
 *     1   2            two lives of the owner of the generator; life 1 need not end when life 2 begins.  OWNERS=1: one
 *      \ /
 *       3              borrows from either life; lends on to 4
 *       |
 *       4              borrows from 3, and attached elsewhere, also from 1 and 2.  TWIN: a second life of 3 instead.
 *                      ALONE: there is none
 *
 * One code for all: a node holds a set, lends rectangles of it, makes ids of the rest.  What a lender picks is any
 * rectangle that the rules allow, so that what holds here holds for every policy.  A borrower may take an answer again as long
 * as it is to its newest want.
 *
 * A want has a number, and an end: of all that the borrower was lent for wants of lower numbers, by whomever, nothing from
 * that end on was or will be used.  So a want is a renewal (its end is that of what is held), a change of size, or a return,
 * and which of them does not matter here.
 *
 * The network is a set of facts: what was sent may arrive at any time, in any order, again, or never, at any lender.  A crash
 * is a life that does nothing more.  No clock is modelled: a node makes ids at any millisecond that it holds, but never goes
 * back.  What lies below what a node made is of no use to it: it is forgotten, as it is in the code.
 *
 * Checked:  NOT_TWICE  no id is made by two lives
 *           ORDER      ids that leave a borrower to its client increase (FWDS > 0: it gets ids from above, too)
 *
 * FWDS=0: a millisecond that a node touches is made whole, at once: for NOT_TWICE no other way is worse.
 * FWDS=n: ids are made one by one, and each borrower sends up to n requests to a lender, which may be late or lost; who made
 *         what is not remembered then.
 *
 * Rules taken away (doc/design/shares.md):
 *  S_ASIDE    a lender goes on with what it lent
 *  S_AREA     what is lent may be lent again
 *  S_PAST     a loan may begin where the lender made ids
 *  S_WITHIN   a loan may end after what the lender holds
 *  S_KEEP     a loan is forgotten before the lender has passed its end
 *  S_CLAIM    a number of another borrower is answered with the loan that had it
 *  S_INC      (TWIN) a life uses the incarnation of the one before
 *  S_MINE     an answer to another borrower is taken
 *  S_OLD      an answer to a want that another one followed is taken
 *  S_GIVEN    a borrower goes on with what lies above the end that it told
 *  S_USED     that end lies below what was used
 *  S_LENTON   or below what was lent on
 *  S_NUMBER   a want is heard after one of a higher number
 *  S_ANY      the end that one borrower told counts for another one
 *  S_REST     an owner gives back to the root what it lent
 *  O_AFTER    a request that goes up does not say what its ids must be above
 *  O_SERVER   who serves it compares milliseconds only
 *  O_FOLLOW   ids from above do not advance one's own
 *  O_MS       or only to their millisecond
 *  O_FRESH    a new loan begins with a new generator
 *  O_WAIT     own ids are made while a request is on its way up
 *  O_TAG      an answer to an earlier request is taken
 */
#ifndef T
#define T 3
#endif
#ifndef WANTS
#define WANTS 2                         /* of each borrower: 1 or 2 */
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef FWDS
#define FWDS 0
#endif
#ifndef S
#define S 4
#endif
#define IDS (T * S)
#define SET int
#define ALL ((1 << IDS) - 1)
#define MS ((1 << S) - 1)
#define COLUMN(t) (MS << ((t) * S))
#define FROM(t) (ALL & ~((1 << ((t) * S)) - 1))
#define RECT(a, e, s, w) ((((1 << (w)) - 1) << (s)) * (((1 << (S * (e))) - (1 << (S * (a)))) / MS))
#define UP(id) (((id) + S - 1) / S)     /* first millisecond that is wholly at or above an id */

#define NODES 4
#ifdef TWIN
#define LENDS(l, b) ((l) <= OWNERS)
#define WIDTH(b) (S / 2)
#else
#define LENDS(l, b) ((l) <= OWNERS || (l) == 3 && (b) == 4)
#define WIDTH(b) ((b) == 3 -> S / 2 : (S + 3) / 4)
#endif

/* Nodes, by number. */
SET held[NODES + 1], lent[NODES + 1];
byte next[NODES + 1];                   /* ids below are not made any more */
bool closed[OWNERS + 1];
SET made;                               /* by whomever, */
SET now_made[NODES + 1];                /* and by each in the last millisecond that it touched */

/* Pairs of a lender and a borrower: 1-3, 2-3, 1-4, 2-4, 3-4. */
#define PAIR(l, b) ((b) == 3 -> (l) - 1 : (l) + 1)
#define PAIRS 5
byte num[PAIRS];                        /* the lender's: highest number heard, */
SET loan[PAIRS];                        /* all that is lent; the network's: */
SET answers[PAIRS * WANTS];             /* answers, by number */
#define ANSWER(l, b, n) answers[(PAIR (l, b)) * WANTS + (n) - 1]

/* Borrowers: index b - 3. */
byte newest[2];                         /* want sent, */
byte end[2 * WANTS];                    /* and the end that was told with each */
#define END(b, n) end[((b) - 3) * WANTS + (n) - 1]

/* Requests for ids that go up. */
bool busy[2];
byte tag[2], after[2], left[2];         /* left: 1 + the last id that left to the client */
byte got[2], got_tag[2];                /* the network's: 1 + id, under which tag */

byte root_hi;                           /* end of all that the root gave */
byte root_to;                           /* to whom last */

#ifdef S_ASIDE
#define FREE(n) (held[n])
#else
#define FREE(n) (held[n] & ~lent[n])
#endif

/* --- what all do -------------------------------------------------------------------------------- */

/* What is below millisecond a is of no use any more. */
inline forget (n, a)
{
    held[n] = held[n] & FROM (a);
    lent[n] = lent[n] & FROM (a);
    if
    :: n <= OWNERS -> loan[PAIR (n, 3)] = loan[PAIR (n, 3)] & FROM (a); loan[PAIR (n, 4)] = loan[PAIR (n, 4)] & FROM (a)
    :: n == 3 -> loan[PAIR (n, 4)] = loan[PAIR (n, 4)] & FROM (a)
    :: else
    fi
}

/* Touch a millisecond: all that is free there is made. */
inline make_all (n)
{
    select (a : 0 .. T - 1);
    if
    :: a >= next[n] / S && (FREE (n) & COLUMN (a)) != 0 ->
        r = FREE (n) & COLUMN (a);
        if
        :: a >= UP (next[n]) -> now_made[n] = 0
        :: else
        fi;
        assert ((made & r & ~now_made[n]) == 0);        /* NOT_TWICE */
        made = made | r;
        now_made[n] = now_made[n] | r;
        next[n] = a * S + 1;
        forget (n, a)
    :: else
    fi;
    a = 0; r = 0
}

#define CAN(n, id) ((id) >= next[n] && (FREE (n) & (1 << (id))) != 0)

/* --- what a lender does ----------------------------------------------------------------------- */

#ifdef S_INC
#define INC(b) 3                        /* whose name and numbers it uses */
#else
#define INC(b) (b)
#endif

#ifdef S_PAST
#define LOWEST(l) 0
#else
#define LOWEST(l) UP (next[l])
#endif
#ifdef S_WITHIN
#define FITS(l, r) (((r) & lent[l]) == 0)
#else
#ifdef S_AREA
#define FITS(l, r) (((r) & ~held[l]) == 0)
#else
#define FITS(l, r) (((r) & ~held[l]) == 0 && ((r) & lent[l]) == 0)
#endif
#endif

/* Want n of b is heard: what lies above its end is the lender's again.  Who has nothing lent to b may have forgotten its
 * numbers.
 */
#define FORGETS(l, b) (loan[PAIR (l, b)] == 0)
#ifdef S_NUMBER
#define IS_NEWS(l, b, n) (num[PAIR (l, b)] != n)
#else
#define IS_NEWS(l, b, n) (num[PAIR (l, b)] < n || (num[PAIR (l, b)] > n && FORGETS (l, b)))
#endif
#define HEARS(l, b, n) (newest[b - 3] >= n && IS_NEWS (l, INC (b), n))

inline cut (l, b, e)
{
    lent[l] = lent[l] & ~(loan[PAIR (l, b)] & FROM (e));
    loan[PAIR (l, b)] = loan[PAIR (l, b)] & ~FROM (e)
}

inline hear (l, b, n)
{
    cut (l, INC (b), END (b, n));
    num[PAIR (l, INC (b))] = n
}

/* It may be answered, at once or when it is repeated: with all that is lent to b. */
#define WAITS(l, b, n) (num[PAIR (l, INC (b))] == n && (ANSWER (l, INC (b), n) == 0 || FORGETS (l, INC (b))) && FREE (l) != 0)

inline lend (l, b, n)
{
    select (a : 0 .. T - 1);
    select (e : 1 .. T);
    select (k : 0 .. S - 1);
    if
    :: a >= LOWEST (l) && a < e && k % WIDTH (b) == 0 ->
        r = RECT (a, e, k, WIDTH (b));
        if
        :: FITS (l, r) ->
            lent[l] = lent[l] | r;
            loan[PAIR (l, INC (b))] = loan[PAIR (l, INC (b))] | r;
            ANSWER (l, INC (b), n) = loan[PAIR (l, INC (b))]
        :: else
        fi
    :: else
    fi;
    a = 0; e = 0; k = 0; r = 0
}

/* --- what a borrower does ---------------------------------------------------------------------- */

#ifdef S_USED
#define MAY_END(b, e) true
#else
#define MAY_END(b, e) ((e) >= UP (next[b]))
#endif
#ifdef S_LENTON
#define IS_CLEAR(b, e) true
#else
#define IS_CLEAR(b, e) ((lent[b] & FROM (e)) == 0)
#endif

/* The first want tells an end, too, but of nothing. */
inline want (b)
{
    select (a : 0 .. T);
    if
    :: (newest[b - 3] == 0 && a == 0) || (newest[b - 3] > 0 && MAY_END (b, a) && IS_CLEAR (b, a)) ->
        newest[b - 3]++;
        END (b, newest[b - 3]) = a;
#ifndef S_GIVEN
        held[b] = held[b] & ~FROM (a)
#endif
    :: else
    fi;
    a = 0
}

#ifdef S_OLD
#define TAKES(b, n) (newest[b - 3] >= n)
#else
#define TAKES(b, n) (newest[b - 3] == n)
#endif
#define GETS(b, l, whose, n) (TAKES (b, n) && ANSWER (l, INC (whose), n) != 0)

inline take (b, l, whose, n)
{
    held[b] = held[b] | ANSWER (l, INC (whose), n) & FROM (next[b] / S);
#ifdef O_FRESH
    next[b] = 0
#endif
}

/* --- requests that go up ---------------------------------------------------------------------------- */

#ifdef O_WAIT
#define MAKES(b) true
#else
#define MAKES(b) (!busy[b - 3])
#endif
#ifdef O_AFTER
#define ABOVE(b, id) true
#else
#ifdef O_SERVER
#define ABOVE(b, id) (after[b - 3] == 0 || (id) / S >= (after[b - 3] - 1) / S)
#else
#define ABOVE(b, id) ((id) >= after[b - 3])
#endif
#endif
#ifdef O_TAG
#define IS_WANTED(b) (got[b - 3] > 0 && busy[b - 3])
#else
#define IS_WANTED(b) (got[b - 3] > 0 && busy[b - 3] && got_tag[b - 3] == tag[b - 3])
#endif

inline leaves (b, id)
{
    assert (id >= left[b - 3]);                         /* ORDER */
    left[b - 3] = id + 1
}

/* For its own client. */
inline make_one (b)
{
    select (a : 0 .. IDS - 1);
    if
    :: CAN (b, a) -> next[b] = a + 1; leaves (b, a); forget (b, a / S)
    :: else
    fi;
    a = 0
}

/* Lender l serves what b sent up. */
inline serve (l, b)
{
    select (a : 0 .. IDS - 1);
    if
    :: CAN (l, a) && ABOVE (b, a) -> next[l] = a + 1; got[b - 3] = a + 1; got_tag[b - 3] = tag[b - 3]; forget (l, a / S)
    :: else
    fi;
    a = 0
}
#define ASKS(b) (FWDS > 0 && busy[b - 3] && got_tag[b - 3] != tag[b - 3])

inline receive (b)
{
    leaves (b, got[b - 3] - 1);
#ifndef O_FOLLOW
#ifdef O_MS
    next[b] = (next[b] > (got[b - 3] - 1) / S * S -> next[b] : (got[b - 3] - 1) / S * S);
#else
    next[b] = (next[b] > got[b - 3] -> next[b] : got[b - 3]);
#endif
#endif
    got[b - 3] = 0; busy[b - 3] = false; after[b - 3] = 0
}

/* --- processes ---------------------------------------------------------------------------------------- */

#define LENDER(l, b) \
    :: d_step { LENDS (l, b) && HEARS (l, b, 1) -> hear (l, b, 1) } \
    :: d_step { WANTS > 1 && LENDS (l, b) && HEARS (l, b, WANTS) -> hear (l, b, WANTS) } \
    :: atomic { LENDS (l, b) && WAITS (l, b, 1) -> lend (l, b, 1) } \
    :: atomic { WANTS > 1 && LENDS (l, b) && WAITS (l, b, WANTS) -> lend (l, b, WANTS) } \
    :: atomic { LENDS (l, b) && ASKS (b) && (l <= OWNERS || !busy[0]) -> serve (l, b) }

#ifdef S_REST
#define NOT_LENT(n, t) true
#else
#define NOT_LENT(n, t) ((lent[n] & FROM (t)) == 0)
#endif

proctype owner (byte me)
{
    byte a, e, k;
    SET r;
    do
    :: atomic { held[me] == 0 && !closed[me] && root_hi < T && (me == 1 || root_to == 1) ->
        select (a : 1 .. T);
        if
        :: a > root_hi && (OWNERS > 1 || a == T) -> held[me] = FROM (root_hi) & ~FROM (a); root_hi = a; root_to = me
        :: else
        fi;
        a = 0 }
    :: atomic { FWDS == 0 && !closed[me] && (FREE (me) & FROM (next[me] / S)) != 0 -> make_all (me) }
    LENDER (me, 3)
#ifndef ALONE
    LENDER (me, 4)
#endif
#ifdef S_KEEP
    :: d_step { lent[me] != 0 -> lent[me] = 0; loan[PAIR (me, 3)] = 0; loan[PAIR (me, 4)] = 0 }
#endif
#ifdef S_CLAIM
    :: d_step { newest[1] > 0 && num[PAIR (me, 3)] == 1 && loan[PAIR (me, 3)] != 0 && ANSWER (me, 4, 1) == 0 ->
        ANSWER (me, 4, 1) = loan[PAIR (me, 3)] }
#endif
#ifdef S_ANY
    :: d_step { newest[1] > 0 && num[PAIR (me, 3)] > 0 -> cut (me, 3, END (4, 1)) }
#endif
    /* Closes for good, then gives the rest back; the root believes the one whom it gave the last range. */
    :: atomic { OWNERS > 1 && held[me] != 0 && root_to == me ->
        select (a : 0 .. T - 1);
        if
        :: a >= UP (next[me]) && (held[me] & COLUMN (a)) != 0 && NOT_LENT (me, a) ->
            root_hi = a; held[me] = 0; closed[me] = true
        :: else
        fi;
        a = 0 }
    od
}

proctype borrower (byte me)
{
    byte a, e, k;
    SET r;
    do
    :: atomic { newest[me - 3] < WANTS -> want (me) }
    :: d_step { GETS (me, 1, me, 1) -> take (me, 1, me, 1) }
    :: d_step { GETS (me, 2, me, 1) -> take (me, 2, me, 1) }
    :: d_step { WANTS > 1 && GETS (me, 1, me, WANTS) -> take (me, 1, me, WANTS) }
    :: d_step { WANTS > 1 && GETS (me, 2, me, WANTS) -> take (me, 2, me, WANTS) }
    :: d_step { me == 4 && LENDS (3, 4) && GETS (4, 3, 4, 1) -> take (4, 3, 4, 1) }
    :: d_step { me == 4 && LENDS (3, 4) && WANTS > 1 && GETS (4, 3, 4, WANTS) -> take (4, 3, 4, WANTS) }
#ifdef S_MINE
    :: d_step { me == 4 && GETS (4, 1, 3, 1) -> take (4, 1, 3, 1) }
#endif
    :: atomic { FWDS == 0 && (FREE (me) & FROM (next[me] / S)) != 0 -> make_all (me) }
    :: atomic { FWDS > 0 && MAKES (me) && FREE (me) != 0 -> make_one (me) }
    :: d_step { !busy[me - 3] && tag[me - 3] < FWDS ->
        busy[me - 3] = true; tag[me - 3]++; after[me - 3] = left[me - 3] }
    :: d_step { busy[me - 3] -> busy[me - 3] = false; after[me - 3] = 0 }      /* late, or the parent is lost */
    :: d_step { IS_WANTED (me) -> receive (me) }
#ifndef TWIN
#ifndef ALONE
    LENDER (3, 4)
#endif
#endif
    od
}

init {
    atomic {
        run owner (1);
        if
        :: OWNERS > 1 -> run owner (2)
        :: else
        fi;
        run borrower (3);
#ifndef ALONE
        run borrower (4)
#endif
    }
}
