/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* renew.pml - an owner of a generator that reaches a living root holds a lease in the end
 *
 * A root and the broker that owns the generator; the module in it may be loaded anew (with an incarnation of its own),
 * and somebody else may claim the generator meanwhile.  Storms of up to FAULTS faults: the root crashes or stops
 * cleanly and starts again, leases end, messages are lost, repeated, late.  When it is calm, what is sent arrives,
 * though older messages may arrive after it.
 *
 * Time is only what is given: each range is one long, and the horizon is raised to what is wanted.
 *
 * Checked, with weak fairness: RENEWED    when it is calm, the owner holds a lease in the end
 *
 * Rules taken away:
 *  NO_REPEAT_WANT      a want that was not answered is not sent again
 *  NO_ANSWER_AGAIN     the root does not answer again a want that it has answered
 *  NO_NEW_INCARNATION  a module that is loaded anew uses the incarnation of the one before, and counts its wants from 1 again
 *  NO_HIGHEST_HORIZON  a root takes the end of what a broker holds for another root's work if it is above the horizon that is
 *                      stored, which a clean stop had lowered; not above the highest ever stored
 */
#ifndef FAULTS
#define FAULTS 4
#endif
#define LOADS 3                 /* lives of the module, at most */
#define MAX(a, b) ((a) > (b) -> (a) : (b))

bool calm;
byte faults;

byte me = 1;                    /* incarnation of the module */
byte number = 1;                /* of its newest want */
byte have;                      /* end of what it holds; 0: nothing */
bool asking;                    /* sent, and not answered */

/* On the way: the newest want, an older one that is late, the answer, a return. */
byte want_inc, want_num, want_have;
byte late_inc, late_num, late_have;
byte answer_inc, answer_num, answer_hi;
byte back_inc, back_end;

byte H, ever;                   /* durable */

/* The root's table. */
byte base, inc, num, lo, hi;
bool distrusted;

inline start ()
{
    base = H; inc = 0; num = 0; lo = 0; hi = 0; distrusted = false
}

#ifdef NO_HIGHEST_HORIZON
#define KNOWN H
#else
#define KNOWN ever
#endif

inline reply (i, n)
{
    answer_inc = i; answer_num = n; answer_hi = hi
}

inline serve (i, n, h)
{
    if
    :: distrusted
    :: !distrusted && h > KNOWN -> distrusted = true
    :: !distrusted && h <= KNOWN && inc == i && n < num
    :: !distrusted && h <= KNOWN && inc == i && n == num ->
#ifdef NO_ANSWER_AGAIN
        skip
#else
        reply (i, n)
#endif
    :: !distrusted && h <= KNOWN && !(inc == i && n <= num) ->
        lo = MAX (base, hi); hi = lo + 1; inc = i; num = n;
        H = MAX (H, hi); ever = MAX (ever, H);
        reply (i, n)
    fi
}

proctype root ()
{
    do
    :: atomic { want_inc > 0 -> serve (want_inc, want_num, want_have);
        want_inc = 0; want_num = 0; want_have = 0 }
    od
}

/* Send a want, new or again; what was on its way is overtaken, and may be late. */
inline send ()
{
    if
    :: want_inc > 0 -> late_inc = want_inc; late_num = want_num; late_have = want_have
    :: true
    fi;
    want_inc = me; want_num = number; want_have = have; asking = true
}

proctype owner ()
{
    do
#ifdef NO_REPEAT_WANT
    :: atomic { have == 0 && !asking -> send () }
#else
    :: atomic { have == 0 && want_inc == 0 && answer_inc == 0 -> send () }
#endif
    :: atomic { answer_inc > 0 ->
        if
        :: answer_inc == me && answer_num == number && asking -> have = answer_hi; number++; asking = false
        :: else
        fi;
        answer_inc = 0; answer_num = 0; answer_hi = 0 }
    od
}

inline load_anew ()
{
    if
    :: have > 0 -> back_inc = me; back_end = have - 1       /* closed, and given back */
    :: true                                                 /* which is lost */
    fi;
#ifndef NO_NEW_INCARNATION
    me++;
#endif
    number = 1; have = 0; asking = false
}

#define ELSE (LOADS + 1)

proctype world ()
{
    do
    :: atomic { late_inc > 0 -> serve (late_inc, late_num, late_have); late_inc = 0; late_num = 0; late_have = 0 }
    :: atomic { back_inc > 0 ->
        if
        :: inc == back_inc && back_end >= lo && back_end < hi -> hi = back_end; inc = 0; num = 0; lo = 0
        :: else
        fi;
        back_inc = 0; back_end = 0 }
    :: atomic { !calm && faults < FAULTS -> faults++;
        if
        :: start ()                                         /* crash */
        :: H = MAX (base, hi); start ()                     /* clean stop */
        :: have > 0 -> have = 0                             /* the lease ends */
        :: have > 0 && want_inc == 0 -> send ()             /* renewed early */
        :: me < LOADS -> load_anew ()
        :: serve (ELSE, 1, 0)                               /* somebody else claims the generator */
        :: want_inc > 0 -> want_inc = 0; want_num = 0; want_have = 0
        :: answer_inc > 0 -> answer_inc = 0; answer_num = 0; answer_hi = 0
        fi }
    :: atomic { !calm -> calm = true; faults = FAULTS }
    od
}

init { atomic { run root (); run owner (); run world () } }

ltl renewed { [] (calm -> <> (have > 0)) }
