/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.pml - the word of a page: how the processes of a host, and their broker, change it
 *
 * sublease.pml has the page as a holder (PAGE): its processes make ids, and the owner takes back in one step what they
 * have not made. This model shows that the word does that.
 *
 * 'word' has the newest millisecond of which ids were made, the first number of it that is not used, the first number
 * of each millisecond that the page may use, and whether the page is closed. 'hi' is the end of what may be used. A
 * client reads 'hi', then the word, chooses a millisecond, and swaps the word if it has not changed. Before it hands
 * the id out, it looks whether the time of use is over. A millisecond has two ids here.
 *
 * The broker holds [0, 2). It takes the first number of each millisecond back, tells that no id of the past will be
 * made any more, gets [3, 5), closes the page, and takes the rest back. It may die at any step instead. When it is
 * dead, and the time of use is over, that is told of all that it held. Others make the ids of [2, 3), and all that was
 * taken back. Memory is sequentially consistent here.
 *
 * Checked: NOT_TWICE  no id is made twice
 *          TOLD       no id is handed out of a time of which it was told that none would be
 *          HONEST     the broker takes no word that a client made for a word of a time that has not come
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  COMPARE_WORD     a client stores the word only if it has not changed
 *  WORD_FIRST       the word is in the new range before the end is raised
 *  CLOSE_IN_ONE     one swap reads what was used last, and closes the page
 *  NUMBERS_IN_WORD  the first number that the page may use is in the word
 *  PAST_FIRST       the word is past a time before it is told that no id of that time will be made
 *  LOOK_AGAIN       a client looks at the time after its swap
 *  CLOCK_AFTER      the broker reads the clock after the word that it compares with it
 */
#define S 2
#define END 5
byte ms = 0, used = 0, own = 0; /* the word */
bool closed = false;
byte hi = 2;
byte told = 0;                  /* no id of a time below is made any more */
byte over = 0;                  /* the time of use is over for all below */
byte numbers_from = 255, numbers_to = 255;     /* the first numbers of these were taken back */
byte rest = 255;                /* all from here on was taken back */
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
#ifdef NO_NUMBERS_IN_WORD
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
#ifdef NO_NUMBERS_IN_WORD
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

/* The first numbers of all milliseconds after the newest one. */
inline take_numbers ()
{
    atomic {
        own = 1;
        numbers_from = ms + 1; numbers_to = hi
    }
}

inline close ()
{
#ifdef NO_CLOSE_IN_ONE
    rest = ms + 1; closed = true
#else
    atomic { rest = ms + 1; closed = true }
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
    :: at == 0 -> take_numbers (); at++
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

proctype gets_numbers ()
{
    byte t;
    numbers_from != 255; t = numbers_from;
    do
    :: t < numbers_to -> make (t, 0); t++
    :: else -> break
    od
}

proctype gets_rest ()
{
    byte t = 2;
    make (2, 0); make (2, 1);
    rest != 255; t = rest;
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
        run broker (); run gets_numbers (); run gets_rest (); run client ();
#ifdef LOOK
        run look ();
#endif
#if CLIENTS > 1
        run client ()
#endif
    }
}
