/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobs.pml - jobs in PostgreSQL: consumers get them in order, and each is stored once, over a takeover of rank 0
 *
 * Two rank 0s share one store. The second one takes over at any moment. The first does not notice, and goes on: it
 * gives verdicts, stores, and shows jobs, as far as the store lets it. Its statements arrive at any later time, or
 * never.
 *
 * Jobs have the ids 1 ... IDS. A job names a life of rank 0. A copy of it may arrive at both rank 0s, at any time,
 * again and again. One consumer is attached to one of the two, and goes over to the other at any moment.
 *
 * Checked: ORDER  no job is stored below one that the consumer has seen
 *          ONCE   a job whose submitter was told that it is not stored is not stored, then and later: it is sent again
 *                 with another id
 *          TOLD   (world WATCH) the visible id that the consumer is told never goes back
 *
 * Rules. The switch NO_ and a name takes a rule away:
 *  J_FENCE  a write is done only in the newest term
 *  J_READ   a read for the consumer finds nothing in an older term
 *  J_FIRST  the first answer of a watch waits for a read of this watch that is done in the newest term
 *  J_LINE   the line of a new life begins at the newest stored job, read after the fence was set
 *  J_SHOW   while a group is under way, jobs up to the line that rises meanwhile are not shown
 *  J_LATE   a job at or below the line is not stored
 *  J_LIFE   a job that names another life is not stored
 *  J_DENY   a verdict that a job is not stored is given after a write in this term is acknowledged
 */
#ifndef IDS
#define IDS 4
#endif
#define ROOTS 2
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

byte fence;                     /* the store: the newest term, 1 or 2 */
bool stored[IDS + 1];
byte newest;                    /* the highest stored id */

bool opened[ROOTS + 1];         /* rank 0 of term 1, 2: jobs may name its life */
byte life[IDS + 1];             /* that a job names; 0: was not sent yet */
bool denied[IDS + 1];           /* its submitter was told that it is not stored */

byte at = 1;                    /* the rank 0 of the consumer */
byte seen;                      /* the highest id that it got */
byte answer[ROOTS + 1];         /* what the consumer will get; 0: nothing is on its way */

#ifdef WATCH
byte told;                      /* the visible id that it was told */
bool first = true;              /* its watch waits for the first answer */
#endif

#ifdef NO_J_FENCE
#define WRITES true
#else
#define WRITES (fence == me)
#endif
#ifdef NO_J_READ
#define READS true
#else
#define READS (fence == me)
#endif
#ifdef NO_J_FIRST
#define WAITS false
#else
#define WAITS first
#endif
#ifdef NO_J_DENY
#define DENIES true
#else
#define DENIES WRITES
#endif
#ifdef NO_J_LATE
#define IS_LATE false
#else
#define IS_LATE (x <= line)
#endif
#ifdef NO_J_LIFE
#define IS_FOREIGN false
#else
#define IS_FOREIGN (life[x] != me)
#endif
#ifdef NO_J_SHOW
#define SHOWN line
#else
#define SHOWN shown
#endif

/* The job with the lowest id above 'seen' that is visible: 'y'; 0: none. */
inline next_job ()
{
    y = seen + 1;
    do
    :: y <= IDS && !stored[y] -> y++
    :: else -> break
    od;
    if
    :: y > IDS || y > SHOWN -> y = 0
    :: else
    fi
}

proctype root (byte me)
{
    byte line, shown, known;    /* the line; up to which id jobs are visible; the newest id as it knows it */
    byte put, late;             /* what is on its way to the store: a job, or a verdict that job 'late' is not stored */
    byte x, y;

    /* The term is claimed, and this life begins. */
#ifdef NO_J_LINE
    atomic { me == 1 || opened[1] -> line = newest };
    atomic { fence = MAX (fence, me); known = newest };
#else
    atomic { me == 1 || opened[1] -> fence = MAX (fence, me) };
    atomic { line = newest; known = newest };
#endif
    shown = line;
    opened[me] = true;
    do
    /* A group of one job, which was sent. Ids above the newest one are not looked up. */
    :: atomic { put == 0 && late == 0 ->
        x = 1;
        do
        :: x < IDS -> x++
        :: break
        od;
        if
        :: life[x] == 0
        :: life[x] > 0 && x <= known && fence != me              /* the look-up fails: it is not known */
        :: life[x] > 0 && x <= known && fence == me && stored[x] /* its submitter is told that it is stored */
        :: life[x] > 0 && !(x <= known && (fence != me || stored[x])) ->
            if
            :: IS_LATE || IS_FOREIGN -> late = x
            :: else -> put = x
            fi
        fi;
        x = 0
        }
    /* The statement arrives. */
    :: atomic { put > 0 ->
        if
        :: WRITES && !stored[put] ->
            assert (put > seen);                        /* ORDER */
            assert (!denied[put]);                      /* ONCE */
            stored[put] = true;
            newest = MAX (newest, put);
            known = MAX (known, put)
        :: else
        fi;
        put = 0; shown = line
        }
    :: atomic { late > 0 ->
        if
        :: DENIES ->
            assert (!stored[late]);                     /* ONCE */
            denied[late] = true
        :: else
        fi;
        late = 0; shown = line
        }
    /* The line follows the time of ids. */
    :: atomic { line < IDS ->
        line++;
        if
        :: put == 0 && late == 0 -> shown = line
        :: else
        fi
        }
    /* A read for the consumer, and its answer. */
    :: atomic { at == me && answer[me] == 0 && READS -> next_job (); answer[me] = y; y = 0 }
    :: atomic { at == me && answer[me] > 0 -> seen = answer[me]; answer[me] = 0 }
#ifdef WATCH
    :: atomic { at == me && first && READS -> first = false }
    /* Each answer tells the visible id, which this rank 0 knows without a read. */
    :: atomic { at == me && !WAITS && MIN (shown, known) != told ->
        assert (MIN (shown, known) >= told);            /* TOLD */
        told = MIN (shown, known)
        }
#endif
    od
}

proctype others ()
{
    byte x, l;

    do
    /* Ranks name the life that they know. */
    :: atomic {
        x = 1;
        do
        :: x < IDS -> x++
        :: break
        od;
        if
        :: life[x] == 0 && opened[1] -> life[x] = 1
        :: life[x] == 0 && opened[2] -> life[x] = 2
        :: else
        fi;
        x = 0
        }
#ifdef WATCH
    :: atomic { answer[at] = 0; at = 3 - at; first = true }
#else
    :: atomic { answer[at] = 0; at = 3 - at }
#endif
    od
}

init
{
    atomic { run root (1); run root (2); run others () }
}
