/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.pml - a lease used by several processes through two words in shared memory
 *
 * The words are 'next', the first timestamp that was not issued, and 'hi', the end of what may be.  A client reads both,
 * picks a timestamp and swaps 'next' if it has not changed.  The broker that holds [0, 3) is given [6, 9), then closes
 * and gives the rest back; another holder of the generator issues [3, 6) and then what was given back.  Memory is
 * sequentially consistent here.
 *
 * Checked: NOT_TWICE    no timestamp is issued twice
 *
 * Rules taken away:
 *  NO_COMPARE_NEXT  a client stores 'next' without a look whether it has changed
 *  NO_NEXT_FIRST    the end is raised before 'next' is in the new range
 *  NO_CLOSE_IN_ONE  the end of what was issued is read, then the page is closed, not both in one swap
 */
#define CLOSED 255
byte next = 0, hi = 3;
byte end = CLOSED;              /* given back from here on */
bool issued[9];

inline issue (t)
{
    assert (!issued[t]);        /* NOT_TWICE */
    issued[t] = true
}

proctype client ()
{
    byte h, n, t;
    do
    :: h = hi;
        atomic {
            n = next; t = n;
            do
            :: t < h -> t++     /* as the clock says */
            :: break
            od
        }
        if
        :: t >= h || n == CLOSED
#ifdef NO_COMPARE_NEXT
        :: t < h && n != CLOSED -> atomic { next = t + 1; issue (t) }
#else
        :: atomic { t < h && n != CLOSED && next == n -> next = t + 1; issue (t) }
        :: t < h && n != CLOSED && next != n
#endif
        fi;
        atomic { h = 0; n = 0; t = 0 }
    od
}

inline raise ()
{
    atomic { next = (next < 6 -> 6 : next) }
}

proctype broker ()
{
#ifdef NO_NEXT_FIRST
    hi = 9; raise ();
#else
    raise (); hi = 9;
#endif
#ifdef NO_CLOSE_IN_ONE
    end = next; next = CLOSED; hi = 0
#else
    atomic { end = next; next = CLOSED }; hi = 0
#endif
}

proctype other ()
{
    byte t = 3;
    do
    :: t < 6 -> issue (t); t++
    :: else -> break
    od;
    end != CLOSED; t = end;
    do
    :: t < 9 -> issue (t); t++
    :: else -> break
    od
}

init { atomic { run broker (); run client (); run client (); run other () } }
