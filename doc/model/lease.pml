/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lease.pml - the ranges of time of one generator: given, held, given back
 *
 * One root and LIVES broker processes that all claim the same generator: restarts, replacements on other hosts, a
 * second broker started by mistake, zombies.  None of them ever has to die.  The root crashes or stops cleanly
 * FAULTS times and starts again; its clock goes forward as it likes, and back at a start.  The network is a set of
 * facts: what was sent may arrive at any time, in any order, any number of times, or never, so that every tree of
 * relays is one of its schedules.
 *
 * Checked: NOT_TWICE     no timestamp may be issued by two lives
 *          DISJOINT      ranges given to different incarnations do not meet
 *          NOT_FAR       no range ends later than a lease from now
 *
 * Each rule is taken away by a switch:
 *  NO_HORIZON_FIRST         a range may be given before the horizon above it is durable
 *  NO_START_AT_HORIZON      a restarted root gives from its clock, not from the horizon
 *  NO_START_AT_LAST_END     a range begins now, not where the last one given ended
 *  NO_END_A_LEASE_FROM_NOW  a range ends a lease after its beginning, not a lease from now
 *  NO_OWN_RANGE             a second claimant is answered with the first one's range
 *  NO_NEW_INCARNATION       a life uses the incarnation of the one before, and counts its wants from 1 again
 *  NO_CHECK_END             a node issues at the end of its range, too
 *  NO_CHECK_BEGIN           or below its beginning
 *  NO_CLOSE_FIRST           a node goes on with what it gave back
 *  NO_RETURN_BY_LESSEE      a return is believed whoever sends it
 *  NO_RETURN_INSIDE         or whatever end it tells, also below the ranges that it was given in a row
 *  NO_STOP_AT_LAST_END      a clean stop stores the root's time
 *  NO_STOP_NOT_BELOW_BASE   or less than was stored before
 *  NO_STOP_CLOSES           wants are answered after the end was told
 *  NO_ONE_ROOT              two roots run on one statedir
 * These, taken away, break nothing: they spare ranges.
 *  S_NEWEST                 a node takes answers to earlier wants, too, and again
 *  S_FORGET                 the root remembers to whom it gave what was given back
 */
#ifndef LIVES
#define LIVES 3
#endif
#ifndef L
#define L 2                     /* lease */
#endif
#ifndef T
#define T 6                     /* the root's clock stops here */
#endif
#ifndef FAULTS
#define FAULTS 2                /* crashes and clean stops of the root */
#endif
#ifndef WANTS
#define WANTS 2                 /* wants of one life */
#endif
#define END (T + 2 * L + 2)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

byte H;                         /* durable */
byte faults;

/* The network, by incarnation.  All numbers up to 'asked' were sent.  'lo', 'hi' are answers to the number 'newest';
 * there may be two, when a restarted root answered once more; answers to others are never looked at. */
typedef net {
    byte asked, newest;
    byte lo[2], hi[2];
    byte back                   /* end given back + 1; 0: none */
};
net on[LIVES + 1];

byte issuer[END];               /* for the properties only: the life that may issue, or issued, a timestamp */

#define MEET(k) (on[j].lo[k] < to && from < on[j].hi[k])

inline check_disjoint (who, from, to)
{
    for (j : 1 .. LIVES) {
        assert (j == who || !(MEET (0) || MEET (1)))    /* DISJOINT: from what is under way */
    }
    for (j : from .. (to - 1)) {
        assert (issuer[j] == 0 || issuer[j] == who)     /* DISJOINT: from what is held */
    }
    j = 0
}

#ifdef S_NEWEST
#define IS_STALE(who, number) (on[who].back > 0)
#else
#define IS_STALE(who, number) (number != on[who].newest)
#endif

inline answer (who, number, from, to)
{
    check_disjoint (who, from, to);
    if
    :: IS_STALE (who, number) || (on[who].lo[0] == from && on[who].hi[0] == to)
    :: else ->
        on[who].lo[1] = on[who].lo[0]; on[who].hi[1] = on[who].hi[0];
        on[who].lo[0] = from; on[who].hi[0] = to
    fi
}

/* The next range of the generator is [a, b), if there is one. */
inline next_range ()
{
#ifdef NO_START_AT_LAST_END
    a = now;
#else
    a = MAX (base, hi);
#endif
#ifdef NO_END_A_LEASE_FROM_NOW
    b = MAX (a, now) + L;
#else
    b = now + L;
#endif
#ifndef NO_HORIZON_FIRST
    b = MIN (b, H);
#endif
}

inline give ()
{
    assert (b <= now + L);                              /* NOT_FAR */
    first = (inc == i && hi == a -> first : a);         /* ranges that touch are one */
    inc = i; num = n; lo = a; hi = b
}

#ifdef NO_OWN_RANGE
#define IS_RETRY (inc > 0 && n == num)
#else
#define IS_RETRY (inc == i && n == num)
#endif
#define IS_OLD   (inc == i && n < num)

/* Want n of incarnation i came in. */
inline grant (who, number)
{
    i = who; n = number;
    if
    :: IS_RETRY -> answer (i, n, lo, hi)
    :: !IS_RETRY && IS_OLD
    :: !IS_RETRY && !IS_OLD ->
        next_range ();
        if
        :: a < b && now <= T -> give (); answer (i, n, a, b)
        :: else
        fi
    fi;
    i = 0; n = 0; a = 0; b = 0
}

#ifdef NO_STOP_CLOSES
#define OPEN true
#else
#define OPEN (end == 0)
#endif
#define ASKED(i, n) (OPEN && on[i].asked >= n)

#define ENDS(i) (on[i].back - 1)
#ifdef NO_RETURN_BY_LESSEE
#define IS_HOLDER(i) true
#else
#define IS_HOLDER(i) (inc == i)
#endif
#ifdef NO_RETURN_INSIDE
#define NEW_END(i) ENDS (i)
#else
#define NEW_END(i) MAX (ENDS (i), first)
#endif
#define BELIEVED(i)  (OPEN && on[i].back > 0 && IS_HOLDER (i) && ENDS (i) < hi)

inline take_back (who)
{
    hi = NEW_END (who);
#ifndef S_FORGET
    first = 0; lo = 0; inc = 0; num = 0
#endif
}

proctype root ()
{
    byte base, now;
    byte inc, num, lo, hi;      /* the last range given, to whom, under which number; inc 0: nobody, or given back */
    byte first;                 /* where those begin that it was given in a row */
    byte end;                   /* of a clean stop + 1, while it is told */
    byte i, n, a, b, j;
start:
    atomic {
#ifdef NO_START_AT_HORIZON
        base = now;
#else
        base = H;
#endif
        inc = 0; num = 0; first = 0; lo = 0; hi = 0; end = 0;
        select (a : base .. MAX (base, now));           /* the wall clock may have been set back */
        now = a; a = 0
    }
    do
    :: atomic { now < T -> now++ }
    :: atomic { end == 0 && H < now + L && now <= T -> H = now + 2 * L }    /* durable when the root knows of it */

    :: d_step { ASKED (1, 1) -> grant (1, 1) }
    :: d_step { ASKED (1, 2) -> grant (1, 2) }
    :: d_step { ASKED (2, 1) -> grant (2, 1) }
    :: d_step { ASKED (2, 2) -> grant (2, 2) }
#if LIVES > 2
    :: d_step { ASKED (3, 1) -> grant (3, 1) }
    :: d_step { ASKED (3, 2) -> grant (3, 2) }
#endif
    :: d_step { BELIEVED (1) -> take_back (1) }
    :: d_step { BELIEVED (2) -> take_back (2) }
#if LIVES > 2
    :: d_step { BELIEVED (3) -> take_back (3) }
#endif
    :: atomic { faults < FAULTS -> faults++; goto start }               /* crash */
    :: atomic {                                                         /* clean stop: the end is known ... */
        faults < FAULTS && end == 0 -> faults++;
#ifdef NO_STOP_AT_LAST_END
        end = MAX (base, now) + 1
#else
#ifdef NO_STOP_NOT_BELOW_BASE
        end = hi + 1
#else
        end = MAX (base, hi) + 1
#endif
#endif
        }
    :: atomic { end > 0 -> H = end - 1; goto start }                    /* ... and stored */
    od
}

/* What a life holds is [lo, hi) and what was before it; all of it counts as issued, but what is given back. */
inline hold (from, to)
{
    for (t : from .. (to - 1)) {
        assert (issuer[t] == 0 || issuer[t] == me);     /* NOT_TWICE */
        issuer[t] = me
    }
    t = 0
}

inline clear_answers ()
{
    on[inc].lo[0] = 0; on[inc].hi[0] = 0; on[inc].lo[1] = 0; on[inc].hi[1] = 0
}

inline take (k)
{
    a = on[inc].lo[k]; b = on[inc].hi[k];
#ifdef NO_CHECK_END
    b++;
#endif
#ifdef NO_CHECK_BEGIN
    a = (a > 0 -> a - 1 : 0);
#endif
    hold (a, b);
    lo = (hi == a -> lo : a); hi = b;                   /* ranges that touch are one */
#ifndef S_NEWEST
    clear_answers ();
#endif
    on[inc].newest = MIN (on[inc].newest + 1, WANTS + 1);
    a = 0; b = 0
}

inline give_back ()
{
    closed = true;
    select (a : lo .. (hi - 1));                        /* the first that was not issued */
    on[inc].back = a + 1;
#ifndef NO_CLOSE_FIRST
    for (t : a .. (hi - 1)) {
        issuer[t] = 0
    }
    t = 0;
#endif
    clear_answers ();
    on[inc].newest = WANTS + 1;
    a = 0; lo = 0; hi = 0
}

proctype life (byte me)
{
    byte inc, lo, hi, a, b, t;
    bool closed;
    atomic {
        inc = me;
#ifdef NO_NEW_INCARNATION
        inc = (me == 2 -> 1 : me);
#endif
        me == 1 || on[me - 1].asked > 0;                /* lives are alike: they ask in order of their numbers */
#ifdef NO_NEW_INCARNATION
        me != 2 || on[1].newest > 1;                    /* the life before has got something */
        on[inc].asked = 0;
#endif
        on[inc].newest = 1
    }
    do
    :: atomic { !closed && on[inc].newest <= WANTS && on[inc].asked < on[inc].newest -> on[inc].asked = on[inc].newest }
    :: atomic { !closed && on[inc].hi[0] > 0 -> take (0) }
    :: atomic { !closed && on[inc].hi[1] > 0 -> take (1) }
    :: atomic { !closed && hi > 0 -> give_back () }
    od
}

init {
    atomic {
        run root ();
#ifdef NO_ONE_ROOT
        run root ();
#endif
        run life (1); run life (2);
#if LIVES > 2
        run life (3)
#endif
    }
}
