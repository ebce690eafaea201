/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.pml - a lease that several processes use through two words in shared memory
 *
 * 'word' holds the millisecond that ids were made of last, the first number of it that is not used, the first of each
 * that is not lent, and whether the page is closed; 'hi' is the end of what may be used.  A client reads 'hi', then the word, picks a
 * millisecond, swaps the word if it has not changed, and before it hands the id out looks whether the time of use is
 * over.  A millisecond has two ids here.
 *
 * The broker that holds [0, 2) lends the first id of each millisecond on, says that no id of the past will be made any
 * more, is given [3, 5), closes, and gives the rest back; it may die at any step instead.  When it is dead, and the time
 * of use is over, that is said of all that it held.  Another holder of the generator makes the ids of [2, 3), then of what
 * was given back.  Memory is sequentially consistent here.
 *
 * Checked: NOT_TWICE  no id is made twice
 *          TOLD       none is handed out of a time of which it was said that none would be
 *          HONEST     the broker takes no word that a client made for one of a time that is to come
 *
 * Rules taken away:
 *  NO_COMPARE_WORD  a client stores the word without a look whether it has changed
 *  NO_WORD_FIRST    the end is raised before the word is in the new range
 *  NO_CLOSE_IN_ONE  what was used last is read, then the page is closed, not both in one swap
 *  NO_LENT_IN_WORD  what is not lent is read before the word, and is not in it
 *  NO_PAST_FIRST    it is said that no id of the past will be made before the word is past it
 *  NO_LOOK_AGAIN    a client does not look at the time when it has swapped
 *  NO_CLOCK_AFTER   the broker reads the clock before the word that it compares with it
 */
#define S 2
#define END 5
byte ms = 0, used = 0, own = 0; /* the word */
bool closed = false;
byte hi = 2;
byte told = 0;                  /* no id of a time below is made any more */
byte over = 0;                  /* the time of use is over for all below */
byte lent_from = 255, lent_to = 255;
byte given = 255;               /* given back from here on */
bool made[END * S];
byte now = 0;                   /* the newest time that a clock has shown to a client, or that we moved the word to */

/* A clock shows 't', or the broker moves the word there.  With LOOK the broker compares the word with its clock. */
inline shown (t)
{
#ifdef LOOK
    if :: (t) > now -> now = t :: else fi
#else
    skip
#endif
}

inline make (t, s)
{
    assert (!made[(t) * S + (s)]); /* NOT_TWICE */
    made[(t) * S + (s)] = true
}

proctype client ()
{
    byte h, m, u, o, t, s;
    bool c, late;
    do
    :: h = hi;
#ifdef NO_LENT_IN_WORD
        o = own;
        atomic {
            m = ms; u = used; c = closed;
#else
        atomic {
            m = ms; u = used; c = closed; o = own;
#endif
            t = m; s = u;
            if
            :: s >= S -> t++; s = o
            :: else
            fi;
            do
            :: t < h -> t++; s = o  /* as the clock says */
            :: break
            od;
            shown (t)
        }
        if
        :: t >= h || c
        :: t < h && !c ->
            late = false;
            atomic {
#ifndef NO_COMPARE_WORD
                if
#ifdef NO_LENT_IN_WORD
                :: ms == m && used == u && closed == c ->
#else
                :: ms == m && used == u && closed == c && own == o ->
#endif
                    ms = t; used = s + 1; make (t, s);
                    assert (t >= told);     /* TOLD */
                    late = t < over
                :: else -> t = 255
                fi
#else
                ms = t; used = s + 1; closed = c; make (t, s);
                late = t < over
#endif
            }
            if
            :: t == 255
#ifdef NO_LOOK_AGAIN
            :: t != 255 -> assert (!late)   /* TOLD */
#else
            :: t != 255 && t < over         /* dropped */
            :: t != 255 && t >= over -> assert (!late)
#endif
            fi
        fi;
        atomic { h = 0; m = 0; u = 0; o = 0; t = 0; s = 0; c = false; late = false }
    od
}

inline raise ()
{
    atomic { if :: ms < 3 -> ms = 3; used = own; shown (3) :: else fi }
}

/* Whether the word is of a time that no clock has shown: once, at any time. */
proctype look ()
{
    byte m, n;
#ifdef NO_CLOCK_AFTER
    n = now; m = ms;
#else
    m = ms; n = now;
#endif
    assert (m <= n)             /* HONEST */
}

/* What follows the newest millisecond, up to the end. */
inline lend ()
{
    atomic {
        own = 1;
        lent_from = ms + 1; lent_to = hi
    }
}

inline close ()
{
#ifdef NO_CLOSE_IN_ONE
    given = ms + 1; closed = true
#else
    atomic { given = ms + 1; closed = true }
#endif
}

inline past ()
{
#ifdef NO_PAST_FIRST
    told = 1;
    atomic { if :: ms < 1 -> ms = 1; used = own; shown (1) :: else fi }
#else
    atomic { if :: ms < 1 -> ms = 1; used = own; shown (1) :: else fi };
    told = 1
#endif
}

proctype broker ()
{
    byte at = 0;
    do
    :: at == 0 -> lend (); at++
    :: at == 1 -> past (); at++
    :: at == 2 ->
#ifdef NO_WORD_FIRST
        hi = 5; raise ();
#else
        raise (); hi = 5;
#endif
        at++
    :: at == 3 -> close (); break
    :: true -> goto dead
    od;
    goto done;
dead:
    over = 5;                   /* long after */
done:
    skip
}

proctype borrower ()
{
    byte t;
    lent_from != 255; t = lent_from;
    do
    :: t < lent_to -> make (t, 0); t++
    :: else -> break
    od
}

proctype other ()
{
    byte t = 2;
    make (2, 0); make (2, 1);
    given != 255; t = given;
    do
    :: t < END -> if :: t >= 3 -> make (t, 0); make (t, 1) :: else fi; t++
    :: else -> break
    od
}

#ifndef CLIENTS
#define CLIENTS 2
#endif
init {
    atomic {
        run broker (); run borrower (); run other (); run client ();
#ifdef LOOK
        run look ();
#endif
#if CLIENTS > 1
        run client ()
#endif
    }
}
