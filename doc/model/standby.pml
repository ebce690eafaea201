/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* standby.pml - two candidates for rank 0, whose horizon is in a database of two servers
 *
 * Either candidate may begin to lead at any moment, although the other one still believes that it leads. The model has
 * no clock, neither of the candidates nor of the servers, so what holds does not depend on timeouts. A candidate that
 * lost the role continues for as long as it likes, crashes at any moment, stops cleanly, or loads its module again in
 * the same term.
 *
 * The database has a row 'fence' (term, serial) and the horizon H. It runs one statement at a time, first on one server
 * and later on its copy. Then it answers. When the first server is lost, the copy goes on in its place (FAILS times),
 * and what the copy did not have yet is undone. A statement runs at any time after it was sent, or never. Its sender
 * waits, or gives up and does not know the outcome. A statement that was given up may run afterwards, also if its
 * sender has sent others meanwhile, or is dead. With -DCOPIES the copy is taken away and added at any time, and
 * statements are refused meanwhile.
 *
 *   TAKE    sets the term, and raises the serial to the begin of a new block
 *   RAISE   raises the horizon, and the serial by 1
 *   STOP    lowers the horizon to the end of what was granted, and raises the serial by 1
 *   SETTLE  raises the serial by 2. It is sent after a write without an answer. The write was done if the serial that
 *           SETTLE raised is above that of the write by an odd number; else it never will be
 *
 * Two candidates may have the same term, because the row of the role is not modelled: the fence does not need it.
 * What a root grants counts as used forever. (Holders that return what they got are in sublease.pml and tree.pml.)
 *
 * Checked: DISJOINT   no time is granted by two roots, or by two lives of a root
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  FENCE_TERM           a write is done only if the fence has the term and the serial that the write names
 *  FENCE_SERIAL         the term alone is not enough
 *  FENCE_STOP           the write of a clean stop is no exception
 *  FENCE_EACH_LIFE      each life of the module takes the fence, also if it has the term of the life before
 *  FENCE_NEW_BLOCK      a life takes a serial that no statement of an earlier life can reach
 *  READ_AFTER_FENCE     a root reads the horizon in a statement that it sends after it has the fence
 *  ASK_AGAIN            a write without an answer does not count as done
 *  ASK_WHOSE            a serial in another block shows that another life has the fence, not that a write was done
 *  SETTLE_BY_TWO        SETTLE raises the serial by another number than a write
 *  UNKNOWN_STAYS        if a write got no answer, the refusal of a later statement does not mean that it was not done
 *  ACKNOWLEDGED         what is known only by reading counts after a further statement was acknowledged
 *  COPY_FIRST           a statement is done only if the server waits for a copy
 *  BEGIN_ANEW           a root that lost the fence, and takes it again, begins with an empty table
 *  STOP_ABOVE_GRANTED   a clean stop stores no end below what is granted
 */
#ifndef TERMS
#define TERMS 2                 /* how often a candidate begins, by both together */
#endif
#ifndef TOP
#define TOP 2                   /* timestamps 0 ... TOP - 1 */
#endif
#ifndef TAKES
#define TAKES 2                 /* how often the fence is taken */
#endif
#ifndef BLOCK
#define BLOCK 4                 /* serials of a life; they are enough for statements that raise by BLOCK - 1 in all */
#endif
#ifndef FAILS
#define FAILS 1                 /* how often the first server is lost */
#endif
#ifndef LIVES
#define LIVES 0                 /* how often a module is loaded again in its term, by both together */
#endif
#define LATE 2                  /* the slot of a statement that was given up; 0 and 1 are those of the candidates */
#if defined(NO_READ_AFTER_FENCE) || defined(NO_STOP_ABOVE_GRANTED)
#define BASE
#endif
#define MAX(a, b) ((a) > (b) -> (a) : (b))

typedef server {
    byte term, serial, H
};
server first, second;
bool alone;                     /* the first server does not wait for the second */
byte fails, lives, terms;

/* DONE: on the first server. KEPT: on both, or answered without that. */
mtype = { TAKE, RAISE, STOP, SETTLE };
mtype = { NONE, SENT, DONE, KEPT, REFUSED, UNDONE };
typedef statement {
    mtype kind, state = NONE;
    byte term, serial, h, got   /* compared; to be written; the serial afterwards */
};
statement slot[3];

/* A candidate. HAS: it has a term. FENCED: it may read the horizon. CLOSED: it stops, and grants nothing. */
mtype = { OFF, HAS, FENCED, LEADS, CLOSED };
typedef root {
    mtype mode = OFF;
    byte term, serial;          /* its own, as it knows them */
    byte top, stored;           /* it grants from 'top' on, and nothing at 'stored' or above */
#ifdef BASE
    byte base;                  /* the horizon as it was read */
#endif
    bool unsure;                /* the write of 'want' got no answer */
    byte want
};
root r[2];

bit granted[TOP];               /* for the property only */

/* --- the database ----------------------------------------------------------------------------------- */

#define AGREES(x) (x.term == first.term && x.serial == first.serial)
#if defined(NO_FENCE_TERM)
#define WRITES(x) (x.kind == RAISE || AGREES (x))
#elif defined(NO_FENCE_SERIAL)
#define WRITES(x) (x.term == first.term)
#elif defined(NO_FENCE_STOP)
#define WRITES(x) (x.kind == STOP || AGREES (x))
#else
#define WRITES(x) AGREES (x)
#endif
#ifdef NO_SETTLE_BY_TWO
#define STEP 1
#else
#define STEP 2
#endif
#ifdef NO_FENCE_NEW_BLOCK
#define NEXT (first.serial + 1)
#else
#define NEXT ((first.serial / BLOCK + 1) * BLOCK)
#endif
#ifdef NO_COPY_FIRST
#define MAY_RUN   true
#define AFTER_RUN (alone -> KEPT : DONE)
#else
#define MAY_RUN   !alone
#define AFTER_RUN DONE
#endif

/* Whether the world has a serial for this statement. */
#define FITS(x) ((x.kind == TAKE && first.serial < TAKES * BLOCK) || \
                 (x.kind != TAKE && first.serial % BLOCK + (x.kind == SETTLE -> STEP : 1) < BLOCK))

inline run_statement (x)
{
    if
    :: MAY_RUN && x.kind == TAKE && first.term <= x.term -> first.term = x.term; first.serial = NEXT; x.state = AFTER_RUN
    :: MAY_RUN && x.kind == SETTLE && AGREES (x) -> first.serial = first.serial + STEP; x.state = AFTER_RUN
    :: MAY_RUN && (x.kind == RAISE || x.kind == STOP) && WRITES (x) ->
        first.H = x.h; first.serial++; x.state = AFTER_RUN
    :: else -> x.state = REFUSED
    fi;
    x.got = (x.state == REFUSED -> 0 : first.serial)
}

inline clear (x)
{
    x.state = NONE; x.kind = 0; x.term = 0; x.serial = 0; x.h = 0; x.got = 0
}

inline assign (to, from)
{
    to.term = from.term; to.serial = from.serial; to.H = from.H
}

proctype database ()
{
    do
    :: d_step { slot[0].state == SENT && FITS (slot[0]) -> run_statement (slot[0]) }
    :: d_step { slot[1].state == SENT && FITS (slot[1]) -> run_statement (slot[1]) }
    :: d_step { slot[LATE].state == SENT && FITS (slot[LATE]) -> run_statement (slot[LATE]); clear (slot[LATE]) }
    :: d_step { !alone && (first.serial != second.serial || slot[0].state == DONE || slot[1].state == DONE) ->
        assign (second, first);
        slot[0].state = (slot[0].state == DONE -> KEPT : slot[0].state);
        slot[1].state = (slot[1].state == DONE -> KEPT : slot[1].state) }
    :: d_step { fails < FAILS ->
        fails++; assign (first, second);
        slot[0].state = (slot[0].state == DONE -> UNDONE : slot[0].state);
        slot[1].state = (slot[1].state == DONE -> UNDONE : slot[1].state) }
#ifdef COPIES
    :: d_step { alone = !alone }
#endif
    od
}

/* --- a candidate ------------------------------------------------------------------------------------------- */

#define ME   r[me]
#define MINE slot[me]
#define IDLE (MINE.state == NONE)
#ifdef NO_ASK_WHOSE
#define IS_LOST false
#else
#define IS_LOST (first.term != ME.term || first.serial / BLOCK != ME.serial / BLOCK || first.serial < ME.serial)
#endif

inline send (what, number, value)
{
    MINE.kind = what; MINE.state = SENT; MINE.term = ME.term; MINE.serial = number; MINE.h = value
}

/* The candidate does not wait for an answer any longer. */
inline let_go ()
{
    if
    :: MINE.state == SENT && slot[LATE].state == NONE ->
        slot[LATE].state = SENT; slot[LATE].kind = MINE.kind; slot[LATE].term = MINE.term;
        slot[LATE].serial = MINE.serial; slot[LATE].h = MINE.h
    :: else
    fi;
    clear (MINE)
}

/* The module ends. */
inline forget ()
{
    ME.serial = 0; ME.top = 0; ME.stored = 0; ME.unsure = false; ME.want = 0;
#ifdef BASE
    ME.base = 0
#endif
}

inline end () { forget (); ME.term = 0; ME.mode = OFF }

/* Another life has the fence. */
inline lost ()
{
#ifdef NO_BEGIN_ANEW
    ME.mode = OFF; ME.term = 0; ME.unsure = false; ME.want = 0; ME.serial = 0
#else
    end ()
#endif
}

/* The write of 'want' is done and durable. */
inline done ()
{
    ME.unsure = false;
    if
    :: ME.mode == LEADS -> ME.stored = ME.want; ME.want = 0
    :: else -> end ()
    fi
}

inline not_done () { ME.unsure = false; ME.want = 0 }

inline settled (named)
{
    if
    :: (named - ME.serial) % 2 == 1 -> ME.serial = named + STEP; done ()
    :: else -> ME.serial = named + STEP; not_done ()
    fi
}

inline answered ()
{
    if
    :: MINE.kind == TAKE -> ME.serial = MINE.got; ME.mode = FENCED
    :: MINE.kind == SETTLE -> settled (MINE.serial)
    :: else -> ME.serial = MINE.got; done ()
    fi;
    clear (MINE)
}

inline refused ()
{
    if
    :: MINE.kind == TAKE && first.term > ME.term -> lost ()
    :: MINE.kind == SETTLE && IS_LOST -> lost ()
    :: (MINE.kind == RAISE || MINE.kind == STOP) && first.serial != ME.serial -> lost ()
    :: (MINE.kind == RAISE || MINE.kind == STOP) && first.serial == ME.serial -> not_done ()    /* the copy is away */
#ifdef NO_UNKNOWN_STAYS
    :: MINE.kind == SETTLE && !IS_LOST -> not_done ()
#endif
    :: else
    fi;
    clear (MINE)
}

/* No answer comes. */
inline give_up ()
{
    if
    :: MINE.kind == RAISE || MINE.kind == STOP ->
        let_go ();
#ifdef NO_ASK_AGAIN
        done ()
#else
        ME.unsure = true
#endif
    :: else -> let_go ()
    fi
}

inline write (what, value) { ME.want = value; send (what, ME.serial, value) }

inline start ()
{
#ifdef NO_BEGIN_ANEW
    ME.top = (ME.stored == 0 -> first.H : ME.top);
    ME.stored = MAX (ME.stored, first.H);
#elif defined(NO_READ_AFTER_FENCE)
    ME.top = ME.base; ME.stored = ME.base;
#else
    ME.top = first.H; ME.stored = first.H;
#endif
#ifdef NO_STOP_ABOVE_GRANTED
    ME.base = first.H;
#endif
    ME.mode = LEADS
}

inline take ()
{
#ifdef NO_READ_AFTER_FENCE
    ME.base = first.H;
#endif
    send (TAKE, 0, 0)
}

#ifdef NO_FENCE_EACH_LIFE
#define IS_FENCED (first.term == ME.term)
#else
#define IS_FENCED false
#endif
#ifdef NO_STOP_ABOVE_GRANTED
#define END_OF_STOP ME.base
#else
#define END_OF_STOP ME.top
#endif

proctype candidate (byte me)
{
    do
    /* Candidate 0 begins. A term is that of the fence, or the next one. */
    :: d_step { ME.mode == OFF && terms < TERMS && terms >= me && first.serial < TAKES * BLOCK ->
        terms++; ME.term = first.term + 1; ME.mode = HAS }
    :: d_step { ME.mode == OFF && terms < TERMS && terms >= me && first.serial < TAKES * BLOCK && first.term > 0 ->
        terms++; ME.term = first.term; ME.mode = HAS }
    :: d_step { ME.mode == HAS && IDLE && !IS_FENCED -> take () }
    :: d_step { ME.mode == HAS && IDLE && IS_FENCED -> ME.serial = first.serial; ME.mode = FENCED }
    :: d_step { ME.mode == FENCED -> start () }

    :: d_step { ME.mode == LEADS && ME.top < ME.stored ->
        assert (granted[ME.top] == 0);                          /* DISJOINT */
        granted[ME.top] = 1; ME.top++ }
    :: d_step { ME.mode == LEADS && IDLE && !ME.unsure && ME.stored < TOP -> write (RAISE, ME.stored + 1) }
    :: d_step { ME.mode == LEADS && IDLE && !ME.unsure && ME.stored + 2 <= TOP -> write (RAISE, ME.stored + 2) }
    :: d_step { ME.mode == LEADS && IDLE && !ME.unsure -> ME.mode = CLOSED }            /* clean stop */
    :: d_step { ME.mode == CLOSED && IDLE && !ME.unsure -> write (STOP, END_OF_STOP) }

    :: d_step { MINE.state == KEPT -> answered () }
    :: d_step { MINE.state == REFUSED -> refused () }
    :: d_step { MINE.state != NONE -> give_up () }
    :: d_step { ME.unsure && IDLE && IS_LOST -> lost () }
    :: d_step { ME.unsure && IDLE && !IS_LOST ->
#ifdef NO_ACKNOWLEDGED
        settled (first.serial)
#else
        send (SETTLE, first.serial, 0)
#endif
        }

    :: d_step { (ME.mode == LEADS || ME.mode == CLOSED) && lives < LIVES ->             /* module reload */
        lives++; let_go (); forget (); ME.mode = HAS }
    :: d_step { ME.mode != OFF -> let_go (); end () }                                   /* crash */
    od
}

init {
    atomic { run database (); run candidate (0); run candidate (1) }
}
