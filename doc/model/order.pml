/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* order.pml - order of one client's ids, and what was told, over reloads and over pauses that a clock missed
 *
 * A client of rank r asks for one id after the other.  r serves it from the lease that it holds, or sends it up to rank 0.
 * Time passes; r's CLOCK_BOOTTIME counts it, but for pauses.  The module of r is unloaded and loaded again.  An id is a
 * timestamp here: those of one millisecond are not told apart, so order must not need more.
 *
 * Checked: ORDER     each id that the client gets is above all that it got before
 *          TOLD      r makes no id below the watermark that rank 0 has told
 *          NOT_OLD   no id is older than the request for it, but by the bound that r's clock tells
 *
 * Rules taken away:
 *  L_WAIT    while the module is away requests do not wait for it: they go up without the last id
 *  L_LAST    the next module does not know the last id
 *  L_CARRY   what is sent up does not carry the last id
 *  L_FOLLOW  ids made above are not followed
 *  T_DOUBT   r goes on when its clock has missed time
 *  T_SENT    a time that was asked for before the pause ends the doubt
 *  T_PAST    what is older than the end of the doubt is made, for a request that came before
 *  T_AGED    what is held counts as no older for the time that was missed
 *  T_ASKED   nor does a want that was under way
 *
 * T: the end of time.  USE: how long a range may be used after it was asked for.  FAULTS: reloads and pauses.
 */
#ifndef T
#define T 4
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define USE 2

#define MAX(a, b) ((a) > (b) -> (a) : (b))

byte now = 1;               /* the instance's time, which rank 0's clock shows */
byte faults;

/* rank 0 */
byte watermark;
byte holds;                 /* r may use what it was given until then; 0: nobody holds */

/* the client */
bool waits;                 /* its request is somewhere */
byte asked;                 /* when it was made */
byte seen;                  /* the last id it got */

/* r: what its broker has, and its module, which is gone while 'loaded' is false */
bool loaded = true, paused;
byte missed;                /* in this pause */
byte boot = 1;              /* CLOCK_BOOTTIME */
bool here;                  /* the request is with the module, and not sent up */
byte arrival;               /* by its clock */
bool known;                 /* the time */
byte mine;                  /* the clock: goes with boot */
byte bound;
bool doubt;
byte last;                  /* answered here */
byte cursor;                /* nothing below is made */
byte lo, until;             /* the range, and the end of its use by 'boot'; 0: none */

/* what is on its way */
bool up;                    /* the request */
byte up_after;
byte down;                  /* its answer; 0: none */
byte ping;                  /* when the time was asked for, by 'boot'; 0: was not */
bool ping_before;           /* before a pause */
byte pong;                  /* the time; 0: none */
byte want;                  /* when a lease was asked for, by 'boot'; 0: was not */
byte older;                 /* that is so much older, for time was missed */
bool given;
byte given_lo;

#define RUNS (loaded && !paused)
#ifdef T_DOUBT
#define SURE known
#else
#define SURE (known && !doubt)
#endif

inline answer (id)
{
    assert (id > seen);                             /* ORDER */
    seen = id;
    waits = false; asked = 0; arrival = 0
}

/* --- rank 0, the client, time --------------------------------------------------------------------- */

proctype world ()
{
    do
    :: d_step {
        now < T -> now++;
        if
        :: !paused -> boot++; mine = (known -> mine + 1 : 0)
        :: else -> missed++
        fi
        }
    :: d_step { !waits && !paused && now < T -> waits = true; asked = now; here = loaded; arrival = (here -> mine : 0) }
    :: d_step { up && down == 0 && now > up_after -> up = false; down = now }
    :: d_step { ping > 0 && pong == 0 -> pong = now }
    :: d_step { want > 0 && !given -> given = true; given_lo = watermark; holds = now + USE }
    :: d_step { holds <= now && watermark < now -> watermark = now }
    od
}

/* --- r ----------------------------------------------------------------------------------------------- */

inline close_past ()
{
#ifndef T_PAST
    cursor = MAX (cursor, mine)
#else
    skip
#endif
}

/* Any millisecond since the request came will do. */
inline make ()
{
    t = MAX (MAX (arrival, cursor), MAX (lo, last + 1));
    if
    :: t <= mine && boot < until ->
        if
        :: t < mine -> t = mine
        :: true
        fi;
        assert (t >= watermark);                    /* TOLD */
        assert (t + bound >= asked);                /* NOT_OLD */
        last = t; cursor = t; here = false;
        answer (t)
    :: else
    fi;
    t = 0
}

inline send_up ()
{
    here = false; arrival = 0; up = true;
#ifdef L_CARRY
    up_after = 0
#else
    up_after = last
#endif
}

inline take_ids ()
{
    answer (down);
#ifndef L_FOLLOW
    last = MAX (last, down); cursor = MAX (cursor, down);
    mine = (known -> MAX (mine, down) : mine);
#endif
    down = 0; up_after = 0
}

/* Rank 0's time was read after it was asked for: since then no more has passed than our clock says. */
inline take_time ()
{
    if
#ifdef T_SENT
    :: true ->
#else
    :: !ping_before ->
#endif
        if
        :: !known -> known = true; mine = pong; arrival = pong
        :: else -> mine = MAX (mine, pong)
        fi;
        bound = boot - ping;
        if
        :: doubt -> close_past ()
        :: else
        fi;
        doubt = false
    :: else
    fi;
    ping = 0; pong = 0; ping_before = false
}

/* A want counts from when it was asked for, rank 0 from when it gave. */
inline take_lease ()
{
    lo = MAX (lo, given_lo);
    until = (want + USE > older -> want + USE - older : 0);
    want = 0; older = 0; given = false
}

/* The pause is over, and the other clocks show what was missed. */
inline resume ()
{
    paused = false;
    if
    :: missed > 0 ->
        doubt = known; ping_before = (ping > 0);
#ifndef T_AGED
        until = (until > missed -> until - missed : 0);
#endif
#ifndef T_ASKED
        older = older + (want > 0 -> missed : 0);
#endif
        missed = 0
    :: else
    fi
}

/* What was on its way to the module is lost, and what it held.  The client's request waits in the broker. */
inline unload ()
{
    loaded = false;
    if
    :: up || down > 0 -> waits = false      /* it is told so */
    :: else
    fi;
    here = false; up = false; down = 0; up_after = 0; arrival = 0;
    ping = 0; pong = 0; ping_before = false; want = 0; older = 0; given = false;
    lo = 0; until = 0;
#ifdef L_LAST
    last = 0; cursor = 0
#else
    skip
#endif
}

inline load ()
{
    loaded = true;
    if
    :: waits && !up && down == 0 -> here = true; arrival = mine
    :: else
    fi
}

/* While the module is away. */
inline pass ()
{
    up = true; up_after = 0
}

inline report ()
{
    watermark = MAX (watermark, (here -> MAX (arrival, cursor) : MAX (mine, cursor)))
}

#define USES (SURE && boot < until)

proctype rank ()
{
    byte t;
    do
    :: atomic { RUNS && here && USES -> make () }
    :: d_step { RUNS && here && !USES -> send_up () }
    :: d_step { RUNS && down > 0 -> take_ids () }
    :: d_step { RUNS && ping == 0 && (!known || doubt) -> ping = boot }
    :: d_step { RUNS && pong > 0 -> take_time () }
    :: d_step { RUNS && want == 0 && until <= boot && now < T -> want = boot; lo = 0; until = 0 }
    :: d_step { RUNS && given -> take_lease () }
    :: d_step { RUNS && USES -> report () }
    :: d_step { RUNS && faults < FAULTS -> faults++; paused = true }
    :: d_step { paused -> resume () }
    :: d_step { RUNS && faults < FAULTS -> faults++; unload () }
    :: d_step { !loaded -> load () }
#ifdef L_WAIT
    :: d_step { !loaded && waits && !up && down == 0 -> pass () }
    :: d_step { !loaded && down > 0 -> answer (down); down = 0 }
#endif
    od
}

init { atomic { run world (); run rank () } }
