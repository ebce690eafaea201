/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* order.pml - the ids that a client gets increase
 *
 * There are two models in this file:
 *
 *      (no switch)  reloads, and pauses that a clock missed
 *      PARTS        a rank that makes ids of boxes, and forwards what does not fit
 */
#ifndef PARTS

/* --- reloads and pauses ---------------------------------------------------------------------------
 *
 * A client of rank r asks for one id after the other. r serves it from the lease that it holds, or forwards the request
 * to rank 0. Time passes. r's CLOCK_BOOTTIME counts it, except in pauses. The module of r is unloaded and loaded again.
 * An id is a timestamp here: ids of one millisecond are not distinguished, so order must not need more.
 *
 * Checked: ORDER     each id that the client gets is above all that it got before
 *          TOLD      r makes no id below the watermark that rank 0 has told
 *          NOT_OLD   no id is older than the request for it by more than the bound that r's clock tells
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  WAIT_FOR_MODULE      while the module is away, requests wait for it. They are not forwarded without the last id
 *  HAND_OVER_LAST       the next module knows the last id
 *  CARRY_LAST           a forwarded request carries the last id
 *  FOLLOW_IDS           later ids are above the ids that an ancestor made
 *  STOP_IN_DOUBT        r makes no ids when its clock has missed time
 *  TIME_ASKED_IN_DOUBT  only a time that was asked for after the pause ends the doubt
 *  SKIP_MISSED_TIME     no id is made of a time before the end of the doubt
 *  AGE_WHAT_IS_HELD     what is held is older by the time that was missed,
 *  AGE_WHAT_IS_ASKED    and so is a want that was under way
 *
 * T: the end of time. USE: how long a range may be used after it was asked for. FAULTS: reloads and pauses.
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
#ifdef NO_STOP_IN_DOUBT
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
#ifndef NO_SKIP_MISSED_TIME
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
#ifdef NO_CARRY_LAST
    up_after = 0
#else
    up_after = last
#endif
}

inline take_ids ()
{
    answer (down);
#ifndef NO_FOLLOW_IDS
    last = MAX (last, down); cursor = MAX (cursor, down);
    mine = (known -> MAX (mine, down) : mine);
#endif
    down = 0; up_after = 0
}

/* Rank 0's time was read after it was asked for: since then no more has passed than our clock says. */
inline take_time ()
{
    if
#ifdef NO_TIME_ASKED_IN_DOUBT
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
#ifndef NO_AGE_WHAT_IS_HELD
        until = (until > missed -> until - missed : 0);
#endif
#ifndef NO_AGE_WHAT_IS_ASKED
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
#ifdef NO_HAND_OVER_LAST
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
#ifdef NO_WAIT_FOR_MODULE
    :: d_step { !loaded && waits && !up && down == 0 -> pass () }
    :: d_step { !loaded && down > 0 -> answer (down); down = 0 }
#endif
    od
}

init { atomic { run world (); run rank () } }

#else

/* --- boxes and forwards ---------------------------------------------------------------------------
 *
 * A client of rank b asks for one id after the other. An id is a millisecond (0 ... T-1) and a number (0 ... S-1). b
 * makes ids of the box that it holds, which changes at any time to any other box. Or b forwards the request, at most
 * FORWARDS times, to any ancestor. The ancestor makes any id that the rules allow. Requests and answers arrive at any
 * time, or never. b may give a forward up, and drops its answer then.
 *
 * Checked: ORDER     each id that the client gets is above all that it got before
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  CARRY_LAST              a forwarded request carries the last id
 *  COMPARE_WHOLE_IDS       who serves it compares ids, not only their milliseconds
 *  FOLLOW_IDS              later ids are above the ids that an ancestor made,
 *  FOLLOW_WHOLE_IDS        not only at or above their millisecond
 *  CONTINUE_ABOVE_NEWEST   ids of a new box are above the newest id
 *  WAIT_FOR_FORWARD        no ids are made while a request is forwarded
 *  ANSWER_TO_THIS_FORWARD  the answer to an earlier forward is dropped
 */
#ifndef T
#define T 3
#endif
#ifndef S
#define S 2
#endif
#ifndef FORWARDS
#define FORWARDS 2
#endif
#define IDS (T * S)
#define BOX(a, e, k, w) ((((1 << (w)) - 1) << (k)) * (((1 << (S * (e))) - (1 << (S * (a)))) / ((1 << S) - 1)))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

short held;                             /* the ids of the box */
byte next;                              /* all further ids are at or above it */
byte seen;                              /* the newest id that the client got, + 1 */
bool busy;                              /* a forward is under way: the newest of these */
byte forwards;
byte after[FORWARDS + 1];               /* what a forward carries, */
byte answer[FORWARDS + 1];              /* and its answer, + 1; 0: none */

inline leave (id)
{
    assert (id >= seen);                /* ORDER */
    seen = id + 1
}

inline change_box ()
{
    select (a : 0 .. T - 1);
    select (e : a + 1 .. T);
    select (k : 0 .. S - 1);
    select (w : 1 .. S - k);
    held = BOX (a, e, k, w);
#ifdef NO_CONTINUE_ABOVE_NEWEST
    next = 0;
#endif
    a = 0; e = 0; k = 0; w = 0
}

#ifdef NO_WAIT_FOR_FORWARD
#define MAY_MAKE true
#else
#define MAY_MAKE (!busy)
#endif

inline make ()
{
    select (a : 0 .. IDS - 1);
    if
    :: a >= next && (held & 1 << a) != 0 -> next = a + 1; leave (a)
    :: else
    fi;
    a = 0
}

inline forward ()
{
    busy = true; forwards++;
#ifdef NO_CARRY_LAST
    after[forwards] = 0
#else
    after[forwards] = seen
#endif
}

#ifdef NO_COMPARE_WHOLE_IDS
#define IS_ABOVE(id, k) (after[k] == 0 || (id) / S >= (after[k] - 1) / S)
#else
#define IS_ABOVE(id, k) ((id) >= after[k])
#endif

inline serve (f)
{
    select (a : 0 .. IDS - 1);
    if
    :: IS_ABOVE (a, f) -> answer[f] = a + 1
    :: else
    fi;
    a = 0
}

#ifdef NO_ANSWER_TO_THIS_FORWARD
#define IS_TO_THIS(f) true
#else
#define IS_TO_THIS(f) ((f) == forwards)
#endif

inline receive (f)
{
    a = answer[f] - 1;
    leave (a);
#if defined NO_FOLLOW_IDS
    skip;
#elif defined NO_FOLLOW_WHOLE_IDS
    next = MAX (next, a / S * S);
#else
    next = MAX (next, a + 1);
#endif
    a = 0; busy = false
}

active proctype rank ()
{
    byte a, e, k, w, f;
    do
    :: atomic { true -> change_box () }
    :: atomic { held >> next != 0 && MAY_MAKE -> make () }
    :: d_step { !busy && forwards < FORWARDS -> forward () }
    :: d_step { busy -> busy = false }
    :: atomic { forwards > 0 -> select (f : 1 .. forwards);
        if
        :: answer[f] == 0 -> serve (f)
        :: answer[f] > 0 && busy && IS_TO_THIS (f) -> receive (f)
        :: else
        fi;
        f = 0 }
    od
}

#endif
