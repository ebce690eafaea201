/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sublease.pml - who may make which ids: boxes that are granted, granted on, renewed, changed and returned
 *
 * A box is a range of milliseconds and of sequence numbers. Whoever holds a box may grant parts of it, and never uses
 * what it granted until that is returned or over. A request (a want) has a number and an end. It promises: of all boxes
 * that the sender got for lower numbers, from whomever, nothing from the end on was used or will be used. So a renewal,
 * a change of size and a return are one kind of message. The granter answers with all that it granted to the sender and
 * that was not returned.
 *
 * There are three models in this file. They share the names of holders and rules:
 *
 *      (no switch)  NOT_TWICE: which ids a holder may make. There is no clock, because uniqueness depends on none
 *      CLOCKS       TOLD: until when a granter waits for a holder, before it tells that no older id will be made
 *      RENEWAL      RENEWED: an owner that reaches rank 0 holds a box in the end
 *
 * Holders have numbers. A switch adds them:
 *
 *      0    ROOT        rank 0. It holds everything above its base, and grants nothing above the stored horizon H. It
 *                       crashes and stops cleanly FAULTS times. Only H remains of its state. Without ROOT, the owners
 *                       hold all ids
 *      1                the owner of a generator
 *      2    OWNERS=2    another life of the owner, which may begin at any time. Life 1 need not end
 *      3    CHILD       gets boxes from any owner, and grants parts of them on
 *      4    GRANDCHILD  gets boxes from 3, and, when it is attached elsewhere, from any owner
 *      5    MODULE      a module of the owner's broker. It gets time for ids of another kind. These are the highest
 *                       number of each millisecond, and no other holder but the owner gets them
 *      6    PAGE        the processes of a host that share a page. They ask for nothing: the owner grants and takes
 *                       back by itself, and sees in one step what they made
 */
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

#if !defined CLOCKS && !defined RENEWAL

/* --- NOT_TWICE: boxes ---------------------------------------------------------------------------------
 *
 * An id is a millisecond (0 ... T-1) and a number (0 ... S-1). A set of ids is a set of bits, in the order of ids. One
 * code serves all holders. A granter may grant any box that the rules allow, so what is true here is true for every
 * policy.
 *
 * Messages arrive at any time, in any order, again, or never, at any granter. A crash is a holder that does nothing any
 * more, and a restart is another holder. A holder makes ids of any millisecond that it holds, but never goes back. It
 * forgets what is below. With PASS, holders and rank 0 also pass milliseconds of which they make nothing.
 *
 * An answer that arrives later than at once adds nothing. A holder that has a box earlier can do all that it could do
 * later, and a box that is returned unused is as good as one that did not arrive. So the sender gets the answer to its
 * newest want at once. With LATE, answers arrive at any time. Such worlds are larger. They agree.
 *
 * Checked:  NOT_TWICE  no id is made by two holders
 *           NOT_FAR    (L) no box that rank 0 grants ends later than L from now
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  NEVER_USE_GRANTED     a granter makes no id of what it granted
 *  GRANT_ONCE            what is granted is not granted again
 *  BEGIN_ABOVE_MADE      a box begins above all ids that its granter made
 *  INSIDE_HELD           a box contains only what its granter holds
 *  MAKE_ABOVE_BEGIN      a holder makes no id below the begin of what it holds
 *  MAKE_BELOW_END        a holder makes no id at the end of what it holds
 *  KEEP_UNTIL_PASSED     a granter remembers a grant until all that it uses and grants is at or above its end
 *  ANSWER_ITS_OWN        a granter answers a want with grants to its sender, not to another holder with that number
 *  OWN_INCARNATION       a life has a name of its own, and does not count from 1 under the name of the life before
 *  OWN_ANSWER            a holder accepts no answer to another holder
 *  NEWEST_ANSWER_ONLY    a holder accepts no answer to a want after it has sent a newer one
 *  NEWEST_WANT_ONLY      a granter hears no want after one with a higher number
 *  END_ITS_OWN           the end in a want counts for grants to its sender only
 *  NEVER_USE_RETURNED    a holder uses nothing above the end that it has reported
 *  END_ABOVE_MADE        that end is above all that the holder made,
 *  END_ABOVE_GRANTED     and above all that it granted on, also
 *  END_ABOVE_PASSED      (PASS) what it granted on and has forgotten
 *  TAKE_BACK_IN_ONE      the owner reads what was made with the page, and takes the rest back, in one step
 *  HORIZON_FIRST         rank 0 grants nothing above the stored horizon
 *  START_AT_HORIZON      when rank 0 starts, it grants nothing below the stored horizon
 *  STOP_ABOVE_GRANTED    a clean stop stores the end of all that is granted,
 *  STOP_NOT_BELOW_BASE   and at least the base
 *  STOP_CLOSES           rank 0 grants nothing after it has determined that end
 *  ONE_ROOT              two rank 0s do not run on one statedir
 *  END_A_LEASE_FROM_NOW  (L) a box ends at most L after now, not L after its begin
 */
#ifndef T
#define T 3
#endif
#ifndef S
#define S 2
#endif
#ifndef WANTS
#define WANTS 2                         /* of each holder: 1, 2 or 3 */
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef OWNERS
#define OWNERS 1
#endif
#if T * S <= 8
#define SET byte
#else
#define SET short
#endif
#define ALL ((1 << (T * S)) - 1)
#define MS ((1 << S) - 1)
#define COLUMN(t) (MS << ((t) * S))
#define FROM(t) (ALL & ~((1 << ((t) * S)) - 1))
/* Milliseconds a ... e-1, and w numbers from k on. */
#define BOX(a, e, k, w) ((((1 << (w)) - 1) << (k)) * (((1 << (S * (e))) - (1 << (S * (a)))) / MS))

#define N 7
#define IS_OWNER(h) ((h) == 1 || (h) == 2)
#ifdef NO_ONE_ROOT
#define IS_ROOT(g) ((g) == 0 || (g) == 3)       /* there is no CHILD in this world */
#define GRANTS(g, h) (IS_ROOT (g))
#else
#define IS_ROOT(g) ((g) == 0)
#define GRANTS(g, h) ((g) == 0 && IS_OWNER (h) || IS_OWNER (g) && (h) >= 3 || (g) == 3 && (h) == 4)
#endif
#ifdef ROOT
#define WANTS_BOXES(h) true
#else
#define WANTS_BOXES(h) (!IS_OWNER (h))
#endif
#ifdef MODULE
#define KINDS 1
#else
#define KINDS 0
#endif
/* Which numbers a holder may get. */
#define FITS(h, k, w) (IS_OWNER (h) -> (w) == S : ((h) == 5 -> (k) == S - 1 : (k) + (w) <= S - KINDS))

SET held[N];
/* 2 t + 1: ids of millisecond t were made, and none after it. 2 t: from now on only t and later is used. */
byte pos[N];
SET made;                               /* by all holders, */
SET now_made[N];                        /* and by each in the last millisecond of which it made ids */

#define LAST(h) (pos[h] / 2)            /* the first millisecond of which the holder may make ids, */
#define ABOVE(h) ((pos[h] + 1) / 2)     /* and the first above all ids that it made */

/* What a granter remembers of a holder: all that is granted, and the number of the newest want. */
#define PAIR(g, h) ((g) * N + (h))
SET grant[4 * N];
byte num[4 * N];
#define GRANT(g, h) grant[PAIR (g, h)]
#define NUM(g, h) num[PAIR (g, h)]
#define GRANTED(g) (GRANT (g, 1) | GRANT (g, 2) | GRANT (g, 3) | GRANT (g, 4) | GRANT (g, 5) | GRANT (g, 6))

/* The wants of a holder: the number of the newest, and the ends of all. */
byte newest[N];
byte end[N * WANTS];
#define END(h, n) end[(h) * WANTS + (n) - 1]
#ifdef LATE
SET answer[4 * N * WANTS];              /* all that was sent */
#define ANSWER(g, h, n) answer[(PAIR (g, h)) * WANTS + (n) - 1]
#endif

byte H;                                 /* the stored horizon */
byte base[4];                           /* rank 0 grants nothing below */
byte stop;                              /* the end that a clean stop has determined, + 1, until it is stored */
byte faults;
#ifdef L
byte now;                               /* rank 0's clock. It may have been set back when rank 0 starts */
#endif

/* --- making ids --- */

#if defined NO_MAKE_BELOW_END
#define USES(h) (held[h] | held[h] << S & ALL)
#elif defined NO_MAKE_ABOVE_BEGIN
#define USES(h) (held[h] | held[h] >> S)
#else
#define USES(h) (held[h])
#endif
#ifdef NO_NEVER_USE_GRANTED
#define FREE(h) (USES (h))
#else
#define FREE(h) (h < 4 -> USES (h) & ~(GRANTED (h)) : USES (h))
#endif
#define CAN_MAKE(h) ((FREE (h) & FROM (LAST (h))) != 0)

/* h drops what it holds below t. */
inline forget (h, t)
{
    held[h] = held[h] & FROM (t);
    if
    :: h < 4 ->
        for (i : 1 .. N - 1) {
            GRANT (h, i) = GRANT (h, i) & FROM (t)
        }
        i = 0
    :: else
    fi
}

/* All that is free in a millisecond is made. For NOT_TWICE no other way is worse. */
inline make (h)
{
    select (a : LAST (h) .. T - 1);
    r = FREE (h) & COLUMN (a);
    if
    :: r != 0 ->
        if
        :: a >= ABOVE (h) -> now_made[h] = 0
        :: else
        fi;
        assert ((made & r & ~now_made[h]) == 0);        /* NOT_TWICE */
        made = made | r;
        now_made[h] = now_made[h] | r;
        pos[h] = 2 * a + 1;
        forget (h, a)
    :: else
    fi;
    a = 0; r = 0
}

/* A holder tells that it uses nothing below t any more, and may forget what it granted there, although it made nothing.
 * */
inline pass (h)
{
    select (a : LAST (h) .. T);
    if
    :: a >= ABOVE (h) -> pos[h] = 2 * a; forget (h, a)
    :: else
    fi;
    a = 0
}

/* --- granters --- */

#ifdef NO_OWN_INCARNATION
#define NAME(h) ((h) == 2 -> 1 : (h))
#else
#define NAME(h) (h)
#endif
#ifdef NO_HORIZON_FIRST
#define STORED ALL
#else
#define STORED (ALL & ~FROM (H))
#endif
#define WHOLE(g) (IS_ROOT (g) -> FROM (base[g]) & STORED : held[g])
#ifdef NO_BEGIN_ABOVE_MADE
#define BEGINS_ABOVE(g, a) true
#else
#define BEGINS_ABOVE(g, a) ((a) >= ABOVE (g))
#endif
#ifdef NO_INSIDE_HELD
#define IS_INSIDE(g, r) true
#else
#define IS_INSIDE(g, r) (((r) & ~(WHOLE (g))) == 0)
#endif
#ifdef NO_GRANT_ONCE
#define IS_NEW(g, r) true
#else
#define IS_NEW(g, r) (((r) & (GRANTED (g))) == 0)
#endif
#if !defined L
#define IS_NEAR(g, a, e) true
#elif defined NO_END_A_LEASE_FROM_NOW
#define IS_NEAR(g, a, e) ((e) <= MAX (a, now) + L)
#else
#define IS_NEAR(g, a, e) ((e) <= now + L)
#endif
#ifdef NO_STOP_CLOSES
#define OPEN(g) true
#else
#define OPEN(g) (!IS_ROOT (g) || stop == 0)
#endif

/* A granter that has granted nothing to h may have forgotten its number. */
#ifdef NO_NEWEST_WANT_ONLY
#define IS_NEWS(g, h, n) (NUM (g, h) != (n))
#else
#define IS_NEWS(g, h, n) (NUM (g, h) < (n) || NUM (g, h) > (n) && GRANT (g, h) == 0)
#endif
#define HEARS(g, h, n) (GRANTS (g, h) && OPEN (g) && newest[h] >= (n) && IS_NEWS (g, NAME (h), n))

inline cut (g, h, t)
{
    GRANT (g, h) = GRANT (g, h) & ~FROM (t)
}

/* Want n of h arrives. */
inline hear (g, h, n)
{
#ifdef NO_END_ITS_OWN
    for (i : 1 .. N - 1) {
        cut (g, i, END (h, n))
    }
    i = 0;
#else
    cut (g, NAME (h), END (h, n));
#endif
    NUM (g, NAME (h)) = n
}

#ifdef NO_NEWEST_ANSWER_ONLY
#define ACCEPTS(h, n) (newest[h] >= (n))
#else
#define ACCEPTS(h, n) (newest[h] == (n))
#endif

inline take (h, r)
{
    held[h] = held[h] | r & FROM (LAST (h))
}

inline reply (g, h, n)
{
#ifdef LATE
    ANSWER (g, h, n) = ANSWER (g, h, n) | GRANT (g, NAME (h));
#else
    if
    :: ACCEPTS (h, n) -> take (h, GRANT (g, NAME (h)))
    :: else
    fi;
#endif
#ifdef NO_OWN_ANSWER
    for (i : 1 .. N - 1) {
        if
        :: GRANTS (g, i) && newest[i] == n -> take (i, GRANT (g, NAME (h)))
        :: else
        fi
    }
    i = 0;
#endif
#ifdef NO_ANSWER_ITS_OWN
    for (i : 1 .. N - 1) {
        if
        :: GRANTS (g, i) && NUM (g, i) == n && ACCEPTS (h, n) -> take (h, GRANT (g, i))
        :: else
        fi
    }
    i = 0;
#endif
}

/* A granter may grant more to h as long as the want is the newest that it has heard. */
#define CAN_GIVE(g, h, n) (GRANTS (g, h) && OPEN (g) && newest[h] >= (n) && NUM (g, NAME (h)) == (n) && \
    (WHOLE (g) & ~(GRANTED (g))) != 0)

inline give (g, h, n)
{
    select (a : 0 .. T - 1);
    select (e : a + 1 .. T);
    select (k : 0 .. S - 1);
    select (w : 1 .. S - k);
    r = BOX (a, e, k, w);
    if
    :: FITS (h, k, w) && BEGINS_ABOVE (g, a) && IS_INSIDE (g, r) && IS_NEW (g, r) && IS_NEAR (g, a, e) ->
#ifdef L
        assert (e <= now + L);                          /* NOT_FAR */
#endif
        GRANT (g, NAME (h)) = GRANT (g, NAME (h)) | r;
        reply (g, h, n)
    :: else
    fi;
    a = 0; e = 0; k = 0; w = 0; r = 0
}

/* --- holders --- */

#if defined NO_END_ABOVE_MADE
#define IS_UNUSED(h, t) true
#elif defined NO_END_ABOVE_PASSED
#define IS_UNUSED(h, t) ((t) >= ABOVE (h) || now_made[h] == 0)
#else
#define IS_UNUSED(h, t) ((t) >= ABOVE (h))
#endif
#ifdef NO_END_ABOVE_GRANTED
#define IS_CLEAR(h, t) true
#else
#define IS_CLEAR(h, t) (h > 3 || (GRANTED (h) & FROM (t)) == 0)
#endif

/* The first want reports an end, too, but of nothing. */
inline want (h)
{
    select (a : 0 .. T);
    if
    :: newest[h] == 0 && a == 0 || newest[h] > 0 && IS_UNUSED (h, a) && IS_CLEAR (h, a) ->
        newest[h]++;
        END (h, newest[h]) = a;
#ifndef NO_NEVER_USE_RETURNED
        held[h] = held[h] & ~FROM (a)
#endif
    :: else
    fi;
    a = 0
}

/* --- processes --- */

#ifdef LATE
#define COMES(g, h, n) (GRANTS (g, h) && ACCEPTS (h, n) && ANSWER (g, h, n) != 0)
#define TAKE(g, h, n) :: d_step { COMES (g, h, n) -> take (h, ANSWER (g, h, n)) }
#else
#define TAKE(g, h, n)
#endif
#define SERVE_ONE(g, h, n) \
    :: d_step { HEARS (g, h, n) -> hear (g, h, n) } \
    :: atomic { CAN_GIVE (g, h, n) -> give (g, h, n) } \
    TAKE (g, h, n)
#if WANTS == 1
#define SERVE(g, h) SERVE_ONE (g, h, 1)
#elif WANTS == 2
#define SERVE(g, h) SERVE_ONE (g, h, 1) SERVE_ONE (g, h, 2)
#else
#define SERVE(g, h) SERVE_ONE (g, h, 1) SERVE_ONE (g, h, 2) SERVE_ONE (g, h, 3)
#endif

inline start (g)
{
#ifdef NO_START_AT_HORIZON
    base[g] = (H > 0 -> H - 1 : 0);
#else
    base[g] = H;
#endif
    stop = 0;
    GRANT (g, 1) = 0; GRANT (g, 2) = 0; NUM (g, 1) = 0; NUM (g, 2) = 0;
#ifdef L
    select (a : 0 .. now);
    now = a; a = 0
#endif
}

inline end_of_grants (g)
{
#ifdef NO_STOP_NOT_BELOW_BASE
    a = 0;
#else
    a = base[g];
#endif
#ifndef NO_STOP_ABOVE_GRANTED
    do
    :: a < T && (GRANTED (g) & FROM (a)) != 0 -> a++
    :: else -> break
    od
#endif
}

proctype root (byte me)
{
    byte a, e, k, w, i;
    SET r;
    do
    :: atomic { stop == 0 && H < T -> select (a : H + 1 .. T); H = a; a = 0 }  /* durable when rank 0 knows of it */
    SERVE (me, 1)
#if OWNERS > 1
    SERVE (me, 2)
#endif
#ifdef PASS
    :: atomic { stop == 0 && base[me] < H -> select (a : base[me] + 1 .. H); base[me] = a;
        GRANT (me, 1) = GRANT (me, 1) & FROM (a); GRANT (me, 2) = GRANT (me, 2) & FROM (a); a = 0 }
#endif
#ifdef L
    :: atomic { now < T -> now++ }
#endif
    :: atomic { faults < FAULTS -> faults++; start (me) }                                               /* crash */
    :: atomic { faults < FAULTS && stop == 0 -> faults++; end_of_grants (me); stop = a + 1; a = 0 }     /* clean stop */
    :: atomic { stop > 0 -> H = stop - 1; start (me) }
#ifdef NO_KEEP_UNTIL_PASSED
    :: d_step { GRANT (me, 1) = 0; GRANT (me, 2) = 0 }
#endif
    od
}

proctype holder (byte me)
{
    byte a, e, k, w, i;
    SET r;
#ifdef ROOT
    me != 2 || newest[1] > 0;           /* lives are alike: they ask in the order of their numbers */
#endif
    do
    :: atomic { WANTS_BOXES (me) && newest[me] < WANTS -> want (me) }
    :: atomic { CAN_MAKE (me) -> make (me) }
#ifdef PASS
    :: atomic { LAST (me) < T && held[me] != 0 -> pass (me) }
#endif
#ifdef CHILD
    SERVE (me, 3)
#endif
#ifdef GRANDCHILD
    SERVE (me, 4)
#endif
#ifdef MODULE
    SERVE (me, 5)
#endif
#ifdef NO_KEEP_UNTIL_PASSED
    :: d_step { me < 4 && GRANTED (me) != 0 -> GRANT (me, 3) = 0; GRANT (me, 4) = 0; GRANT (me, 5) = 0 }
#endif
    od
}

#ifdef PAGE
byte seen;                              /* NO_TAKE_BACK_IN_ONE: where the owner saw the page, + 1 */

inline take_back (t)
{
    cut (1, 6, t);
    held[6] = held[6] & ~FROM (t)
}

/* The processes, and the owner's part of the page. */
proctype page ()
{
    byte a, e, k, w, i;
    SET r;
    do
    :: atomic { CAN_MAKE (6) -> make (6) }
    :: atomic { (held[1] & ~(GRANTED (1))) != 0 -> give (1, 6, 0) }
#ifdef NO_TAKE_BACK_IN_ONE
    :: d_step { GRANT (1, 6) != 0 && seen == 0 -> seen = ABOVE (6) + 1 }
    :: d_step { seen > 0 -> take_back (seen - 1); seen = 0 }
#else
    :: atomic { GRANT (1, 6) != 0 -> select (a : ABOVE (6) .. T); take_back (a); a = 0 }
#endif
    od
}
#endif

init {
    byte t;
    atomic {
#ifdef ROOT
        run root (0);
#ifdef NO_ONE_ROOT
        run root (3);
#endif
#elif OWNERS > 1
        select (t : 1 .. T - 1);
        held[1] = ALL & ~FROM (t); held[2] = FROM (t); t = 0;
#else
        held[1] = ALL;
#endif
        run holder (1);
#if OWNERS > 1
        run holder (2);
#endif
#ifdef CHILD
        run holder (3);
#endif
#ifdef GRANDCHILD
        run holder (4);
#endif
#ifdef MODULE
        run holder (5);
#endif
#ifdef PAGE
        run page ()
#endif
    }
}

#elif defined CLOCKS

/* --- TOLD: when a grant is over -----------------------------------------------------------------------
 *
 * A chain: 0 grants to 1, and 1 grants to 3. An id is a time (0 ... T-1). Each holder tells its granter a position:
 * below it, neither the holder nor anybody to whom it granted on makes an id any more. Rank 0 tells its position to
 * all: the watermark. A granter waits for the position of a holder until the grant is over by the granter's own clock.
 *
 * A holder may use a box for USE ticks of its own clock. SLOW times, the clock of a holder misses one tick, and nobody
 * notices. SUSPENDS times, a holder is suspended while its clock stands still. JUMPS times, the clock of a granter
 * jumps ahead by USE. Both are noticed when all clocks of a host are read together. CRASHES times, rank 0 crashes, and
 * only the stored horizon remains. Messages arrive late. A lost one is like one that is late.
 *
 * Checked:  TOLD       no id is made below the watermark
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  USE_UNTIL_OVER           a holder makes no id when its use is over
 *  NEVER_REVIVE             a new box does not revive an older one whose use was over
 *  COUNT_FROM_ASKED         the use of a box counts from when the holder asked, not from when the answer arrived
 *  AGE_WHAT_IS_HELD         a box is older by the time that the holder's clock missed,
 *  AGE_WHAT_IS_ASKED        and so is a want that was under way
 *  USE_WITHIN_OWN_USE       a box is granted on for no longer than its granter may use it
 *  WAIT_FOR_SLOW_CLOCKS     a granter waits for longer than USE, because the holder's clock may be slow
 *  WAIT_AFTER_JUMP          a granter waits for longer by as much as its clock jumped ahead
 *  LOOK_TWICE               a grant is over when the clock shows that twice, and all clocks were read together in
 *                           between
 *  POSITION_COUNTS_GRANTED  a position is not above the positions of those to whom the sender granted
 *  BEGIN_ABOVE_TOLD         a box begins at or above the position that its granter has told
 *  TELL_TIME_LEFT           a holder that returns its box tells for how long others may use what it granted on
 *  TELL_BELOW_HORIZON       rank 0 tells no position above the stored horizon
 *  WAIT_AFTER_START         a rank 0 that starts waits for holders that it does not know
 */
#ifndef T
#define T 2
#endif
#ifndef USE
#define USE 2
#endif
#ifndef SLOW
#define SLOW 1
#endif
#ifndef SUSPENDS
#define SUSPENDS 0
#endif
#ifndef JUMPS
#define JUMPS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#define MINUS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define N 4

byte watermark, H;
byte low[N];                            /* the holder makes and grants nothing below; what it has told */

/* A holder: for how long it may use what it holds; its want, and the answer. */
byte left[N];
bool asked[N];
byte age[N];                            /* of the want */
bool came[N];
byte came_low[N], came_use[N];
bool suspended[N];
byte missed[N];
#ifdef NO_NEVER_REVIVE
bool had[N];
#endif

/* A granter: what it granted, the position of the holder, and for how long it waits. */
bool granted[N];
byte pos[N], wait[N];
byte jumped[N];                         /* its clock has gone too far by that, which it has not noticed */
bool looked[N];

byte slow, suspends, jumps, crashes;

/* --- time --- */

inline pass (h)
{
    if
    :: suspended[h] -> missed[h] = MIN (missed[h] + 1, USE)
    :: !suspended[h] ->
        left[h] = MINUS (left[h], 1);
        wait[h] = MINUS (wait[h], 1);
        age[h] = (asked[h] -> MIN (age[h] + 1, USE) : 0)
    :: !suspended[h] && slow < SLOW && (left[h] > 0 || asked[h]) -> slow++
    fi
}

inline resume (h)
{
    suspended[h] = false;
#ifndef NO_AGE_WHAT_IS_HELD
    left[h] = MINUS (left[h], missed[h]);
#endif
#ifndef NO_AGE_WHAT_IS_ASKED
    age[h] = (asked[h] -> MIN (age[h] + missed[h], USE) : 0);
#endif
    missed[h] = 0
}

/* The clock of g jumps. To g as a holder, all is older than it is. */
inline jump (g)
{
    jumped[g] = MIN (jumped[g] + USE, USE + SLOW);
    left[g] = MINUS (left[g], USE);
    age[g] = (asked[g] -> USE : 0)
}

/* All clocks are read together. */
inline check_clock (g)
{
#ifdef NO_WAIT_AFTER_JUMP
    wait[g] = MINUS (wait[g], jumped[g]);
#endif
    jumped[g] = 0
}

/* --- grants --- */

#ifdef NO_WAIT_FOR_SLOW_CLOCKS
#define AT_MOST(n) (n)
#else
#define AT_MOST(n) ((n) + SLOW)
#endif
#ifdef NO_USE_WITHIN_OWN_USE
#define USE_OF(g) USE
#else
#define USE_OF(g) ((g) == 0 -> USE : MIN (USE, left[g]))
#endif
#define IS_ALIVE(g) ((g) == 0 || left[g] > 0 && !suspended[g])
#ifdef NO_BEGIN_ABOVE_TOLD
#define BEGINS(g, t) true
#else
#define BEGINS(g, t) ((t) >= low[g])
#endif

inline drop_want (h)
{
    asked[h] = false; age[h] = 0; came[h] = false; came_low[h] = 0; came_use[h] = 0
}

inline give (g, h)
{
    select (t : 0 .. T - 1);
    if
    :: BEGINS (g, t) ->
        came[h] = true; came_low[h] = t; came_use[h] = USE_OF (g);
        pos[g] = (granted[g] -> MIN (pos[g], t) : t);
        wait[g] = MAX (wait[g], AT_MOST (came_use[h]) + jumped[g]);
        granted[g] = true; looked[g] = false
    :: else
    fi;
    t = 0
}

inline forget_grant (g)
{
    granted[g] = false; looked[g] = false; wait[g] = 0; pos[g] = 0
}

/* The clock of g shows that the grant is over. */
inline look (g)
{
#ifdef NO_LOOK_TWICE
    forget_grant (g)
#else
    if
    :: !looked[g] -> looked[g] = true
    :: else ->
        check_clock (g);
        if
        :: wait[g] == 0 -> forget_grant (g)
        :: else -> looked[g] = false
        fi
    fi
#endif
}

/* --- holders --- */

#ifdef NO_COUNT_FROM_ASKED
#define SINCE(h) 0
#else
#define SINCE(h) age[h]
#endif
#ifdef NO_NEVER_REVIVE
#define KEEPS_LOW(h) (had[h])
#else
#define KEEPS_LOW(h) (left[h] > 0)
#endif

inline take (h)
{
    if
    :: came_use[h] > SINCE (h) ->
        low[h] = (KEEPS_LOW (h) -> low[h] : MAX (low[h], came_low[h]));
        left[h] = MAX (left[h], came_use[h] - SINCE (h));
#ifdef NO_NEVER_REVIVE
        had[h] = true
#endif
    :: else
    fi;
    drop_want (h)
}

#ifdef NO_POSITION_COUNTS_GRANTED
#define HIGHEST(h) T
#else
#define HIGHEST(h) (granted[h] -> pos[h] : T)
#endif

inline tell (h, g)
{
    select (t : low[h] .. T);
    if
    :: t <= HIGHEST (h) ->
        low[h] = t;
        pos[g] = (granted[g] -> MAX (pos[g], t) : 0)
    :: else
    fi;
    t = 0
}

#if defined NO_TELL_BELOW_HORIZON || CRASHES == 0
#define STORED T
#else
#define STORED H
#endif

inline tell_all ()
{
    select (t : low[0] .. T);
    if
    :: t <= HIGHEST (0) && t <= STORED ->
        low[0] = t;
        watermark = MAX (watermark, t)
    :: else
    fi;
    t = 0
}

#ifdef NO_TELL_TIME_LEFT
#define IS_USED_ON(h) false
#else
#define IS_USED_ON(h) (granted[h] && wait[h] > 0)
#endif

inline give_back (h, g)
{
    left[h] = 0;
    drop_want (h);
    check_clock (h);
    if
    :: granted[g] && IS_USED_ON (h) -> wait[g] = MIN (wait[g], AT_MOST (wait[h]) + jumped[g])
    :: else -> forget_grant (g)
    fi
}

#ifdef NO_USE_UNTIL_OVER
#define USES(h) true
#else
#define USES(h) (left[h] > 0)
#endif

/* --- processes --- */

inline crash ()
{
    low[0] = H; jumped[0] = 0; looked[0] = false;
#ifdef NO_WAIT_AFTER_START
    forget_grant (0)
#else
    granted[0] = true; pos[0] = 0; wait[0] = USE + SLOW
#endif
}

#define STEPS(h, g) \
    :: d_step { !suspended[h] && USES (h) && low[h] < T -> assert (low[h] >= watermark) } /* TOLD */ \
    :: d_step { !suspended[h] -> drop_want (h); asked[h] = true } \
    :: atomic { asked[h] && !came[h] && IS_ALIVE (g) -> give (g, h) } \
    :: d_step { !suspended[h] && came[h] -> take (h) } \
    :: atomic { !suspended[h] && left[h] > 0 -> tell (h, g) } \
    :: d_step { !suspended[h] && left[h] > 0 -> give_back (h, g) } \
    :: d_step { !suspended[h] && suspends < SUSPENDS -> suspends++; suspended[h] = true } \
    :: d_step { suspended[h] -> resume (h) } \
    :: d_step { !suspended[g] && granted[g] && jumps < JUMPS -> jumps++; jump (g) } \
    :: d_step { !suspended[g] && jumped[g] > 0 -> check_clock (g) } \
    :: d_step { !suspended[g] && granted[g] && wait[g] <= jumped[g] -> look (g) }

active proctype world ()
{
    byte t;
    do
    :: atomic { true -> pass (0); pass (1); pass (3) }
    STEPS (1, 0)
    STEPS (3, 1)
    :: d_step { CRASHES > 0 && H < T -> H++ }
    :: atomic { tell_all () }
    :: d_step { crashes < CRASHES -> crashes++; crash () }
    od
}

#else

/* --- RENEWED: who reaches rank 0 holds a box in the end ------------------------------------------------
 *
 * Rank 0 and an owner. The module of the owner may be loaded again. Each box is one millisecond long, and rank 0 raises
 * the horizon as it needs it. FAULTS times, rank 0 crashes or stops cleanly and starts again, the use of a box ends,
 * the owner renews early, the module is loaded again, somebody else claims the generator, or a message is lost. Older
 * messages may arrive after newer ones. Then it is calm: what is sent arrives.
 *
 * Checked, with weak fairness:  RENEWED  when it is calm, the owner holds a box in the end
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  REPEAT_WANT      a want that was not answered is sent again
 *  ANSWER_AGAIN     rank 0 answers a want that arrives again
 *  OWN_INCARNATION  a life has a name of its own, and does not count from 1 under the name of the life before
 *  HIGHEST_HORIZON  rank 0 takes an end in a want for the work of another statedir only if it is above the highest
 *                   horizon that
 *                   was ever stored. The horizon that is stored now may be lower, because a clean stop lowers it
 */
#ifndef FAULTS
#define FAULTS 4
#endif
#define LIVES 3                         /* of the module, at most */
#define ELSE LIVES                      /* the name of somebody else */

bool calm;
byte faults;

/* The owner. */
byte me, name;
byte number = 1;                        /* of its newest want */
byte have;                              /* the end of what it holds; 0: nothing */
byte last;                              /* the end of all that this life has held */
bool asking;

/* Messages: two wants and an answer, by the name of the owner + 1; 0: none. */
#define NEW 0
#define OLD 1
byte from[2], want[2], end[2];
bool nothing[2];                        /* the want is a return */
byte answer_to, answer, answer_end;

/* Rank 0. */
byte H, ever;                           /* durable */
byte base, top;
byte num[LIVES + 1], granted[LIVES + 1];        /* by name: the newest want, the end of what was granted */
bool distrusts;

/* --- rank 0 --- */

inline start ()
{
    base = H; top = H; distrusts = false;
    for (i : 0 .. LIVES) {
        num[i] = 0; granted[i] = 0
    }
    i = 0
}

inline hear (x, n, t)
{
    num[x] = n;
    granted[x] = MIN (granted[x], t);
    top = base;
    for (i : 0 .. LIVES) {
        top = MAX (top, granted[i])
    }
    i = 0
}

inline give (x)
{
    top++;
    granted[x] = top;
    H = MAX (H, top); ever = MAX (ever, top)
}

inline reply (x, n)
{
    answer_to = x + 1; answer = n; answer_end = granted[x]
}

#ifdef NO_HIGHEST_HORIZON
#define KNOWN H
#else
#define KNOWN ever
#endif
#ifdef NO_ANSWER_AGAIN
#define ANSWERS_AGAIN false
#else
#define ANSWERS_AGAIN true
#endif

inline serve (x, n, t, is_return)
{
    if
    :: distrusts
    :: !distrusts && t > KNOWN -> distrusts = true
    :: !distrusts && t <= KNOWN && n < num[x]
    :: !distrusts && t <= KNOWN && n == num[x] ->
        if
        :: ANSWERS_AGAIN && !is_return -> reply (x, n)
        :: else
        fi
    :: !distrusts && t <= KNOWN && n > num[x] ->
        hear (x, n, t);
        if
        :: !is_return -> give (x); reply (x, n)
        :: else
        fi
    fi
}

/* --- messages --- */

inline clear (m)
{
    from[m] = 0; want[m] = 0; end[m] = 0; nothing[m] = false
}

inline arrive (m)
{
    serve (from[m] - 1, want[m], end[m], nothing[m]);
    clear (m)
}

inline send (n, t)
{
    from[NEW] = name + 1; want[NEW] = n; end[NEW] = t;
    asking = true
}

/* The want that is under way may arrive after newer ones. */
inline delay ()
{
    from[OLD] = from[NEW]; want[OLD] = want[NEW]; end[OLD] = end[NEW]; nothing[OLD] = false;
    clear (NEW)
}

inline lose_answer ()
{
    answer_to = 0; answer = 0; answer_end = 0
}

/* --- processes --- */

proctype root ()
{
    byte i;
    do
    :: atomic { from[NEW] > 0 -> arrive (NEW) }
    od
}

#ifdef NO_REPEAT_WANT
#define SENDS (!asking)
#else
#define SENDS (from[NEW] == 0 && answer_to == 0)
#endif

proctype owner ()
{
    do
    :: atomic { have == 0 && SENDS -> send (number, last) }
    :: atomic { answer_to > 0 ->
        if
        :: answer_to == name + 1 && answer == number && asking ->
            have = answer_end; last = MAX (last, have); number++; asking = false
        :: else
        fi;
        lose_answer () }
    od
}

/* The module is loaded again. It returns what it held, or does not. */
inline load_again ()
{
    if
    :: have > 0 -> from[OLD] = name + 1; want[OLD] = number + 1; end[OLD] = have - 1; nothing[OLD] = true
    :: true
    fi;
    me++;
#ifndef NO_OWN_INCARNATION
    name = me;
#endif
    number = 1; have = 0; last = 0; asking = false
}

proctype world ()
{
    byte i;
    do
    :: atomic { from[OLD] > 0 -> arrive (OLD) }
    :: atomic { !calm && faults < FAULTS -> faults++;
        if
        :: start ()                                     /* crash */
        :: H = MAX (base, top); start ()                /* clean stop */
        :: have > 0 -> have = 0
        :: have > 0 && from[NEW] == 0 -> send (number, last)
        :: me + 1 < LIVES -> load_again ()
        :: serve (ELSE, num[ELSE] + 1, granted[ELSE], false)
        :: from[NEW] > 0 -> clear (NEW)
        :: from[NEW] > 0 -> delay ()
        :: answer_to > 0 -> lose_answer ()
        fi }
    :: atomic { !calm -> calm = true; faults = FAULTS }
    od
}

init { atomic { run root (); run owner (); run world () } }

ltl renewed { [] (calm -> <> (have > 0)) }

#endif
