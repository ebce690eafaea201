/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* serve.pml - requests for ids in a tree of four nodes: who reaches a living root is served in the end
 *
 *      0 root      A node that cannot generate sends what waits there up, as one request at a time.  Leases end and come
 *      |           as they like, and need never come: only the root, in the end, can generate for good.
 *     / \
 *    1   3         -DCHAIN puts node 3 under node 2, else it is under node 1.
 *    |
 *    2             Storms of up to FAULTS faults: nodes die, with all that waits there, and are started again or never;
 *                  links break, with all that is under way on them.  Then it is calm.  A node that has no link takes
 *                  its nearest living ancestor, and returns to its own parent when that is back.
 *
 * Checked, with weak fairness: SERVED     a client's request that waits at node WHO when it is calm is answered
 *          and always:         ONCE       no request is answered that does not wait
 *
 * Rules taken away:
 *  NO_RESEND         what was on its way up when the parent was lost is not sent again
 *  NO_RETRY          nor what the parent could not serve
 *  NO_ANY_ANCESTOR   a node waits for its own parent, and takes no other ancestor
 *  NO_FORWARD        a node that owns a generator waits for its lease, and does not send up
 *  NO_SEND_THE_REST  what came while a request was on its way up is not sent after it
 *  NO_ABANDON        an answer from above counts also for what was served here meanwhile, and the parent is not told
 */
#ifndef FAULTS
#define FAULTS 3
#endif
#ifndef WHO
#define WHO 3
#endif
#define NODES 4
#define NONE 7
#define OWN 0                           /* bit of waiting: a client's; bit n: of child n */
#ifdef CHAIN
#define HOME(n) ((n) - 1)
#else
#define HOME(n) ((n) == 3 -> 1 : (n) - 1)
#endif
#define BIT(n) (1 << (n))

bool calm;
byte faults;
bool dead[NODES];
bool can[NODES];                        /* generate */
byte parent[NODES] = NONE;
byte waiting[NODES];                    /* requests, by whom */
byte asked[NODES];                      /* those of them that are on their way up */
bool busy[NODES];                       /* something is */
bit tag[NODES];                         /* of it */
bool pending[NODES];                    /* what the client thinks */

/* The link from a node to its parent. */
bool req[NODES];
bit req_tag[NODES];
byte resp[NODES];                       /* NOTHING, GOOD, BAD */
bit resp_tag[NODES];
bit child_tag[NODES];                   /* of the request that waits at the parent */
bool cancel[NODES];                     /* what was sent is not wanted any more */
#define NOTHING 0
#define GOOD 1
#define BAD 2

inline respond (c, what)
{
    resp[c] = what; resp_tag[c] = child_tag[c]
}

/* Answer the requests 'who' that wait at n. */
inline answer (n, who, what)
{
    if
    :: who & BIT (OWN) -> assert (pending[n]); pending[n] = false       /* ONCE */
    :: else
    fi;
    for (c : 1 .. (NODES - 1)) {
        if
        :: (who & BIT (c)) && parent[c] == n -> respond (c, what)
        :: else
        fi
    }
    c = 0;
    waiting[n] = waiting[n] & ~(who)
}

inline end_forward (n)
{
    busy[n] = false; asked[n] = 0
}

/* Something came, or may be served now. */
inline serve (n)
{
    if
    :: can[n] && waiting[n] > 0 ->
        answer (n, waiting[n], GOOD);
#ifndef NO_ABANDON
        cancel[n] = busy[n] && !req[n] && parent[n] != NONE;  /* else both are gone */
        req[n] = false;
        end_forward (n)
#endif
    :: else
    fi
}

inline forget (p, c)
{
    waiting[p] = waiting[p] & ~BIT (c); asked[p] = asked[p] & ~BIT (c)
}

/* n has no parent any more. */
inline detach (n)
{
    if
    :: parent[n] != NONE -> forget (parent[n], n)
    :: else
    fi;
    parent[n] = NONE; req[n] = false; cancel[n] = false; resp[n] = NOTHING;
#ifdef NO_RESEND
    asked[n] = asked[n]
#else
    end_forward (n)
#endif
}

inline nearest (n)
{
    a = HOME (n);
#ifndef NO_ANY_ANCESTOR
    do
    :: dead[a] && a > 0 -> a = HOME (a)
    :: else -> break
    od
#endif
}

#ifdef NO_FORWARD
#define MAY_FORWARD false
#else
#define MAY_FORWARD true
#endif

proctype node (byte n)
{
    byte a, c;
    do
    :: atomic { n > 0 && !dead[n] && parent[n] == NONE -> nearest (n);
        if
        :: !dead[a] -> parent[n] = a
        :: else
        fi; a = 0 }
    :: atomic { n > 0 && !dead[n] && parent[n] != NONE && parent[n] != HOME (n) && !dead[HOME (n)] -> detach (n) }
    :: atomic { n > 0 && !dead[n] && parent[n] != NONE && !busy[n] && !req[n] && !cancel[n] && waiting[n] > 0 && !can[n] && MAY_FORWARD ->
        busy[n] = true; asked[n] = waiting[n]; tag[n] = 1 - tag[n];
        req[n] = true; req_tag[n] = tag[n]; resp[n] = NOTHING }
    od
}

proctype link (byte n)
{
    byte c;
    do
    :: atomic { req[n] ->
        req[n] = false; child_tag[n] = req_tag[n];
        waiting[parent[n]] = waiting[parent[n]] | BIT (n); serve (parent[n]) }
    :: atomic { cancel[n] -> cancel[n] = false; forget (parent[n], n) }
    :: atomic { resp[n] != NOTHING ->
        if
        :: busy[n] && resp_tag[n] == tag[n] && resp[n] == GOOD ->
            answer (n, asked[n], GOOD);
#ifdef NO_SEND_THE_REST
            waiting[n] = 0;
#endif
            end_forward (n)
        :: busy[n] && resp_tag[n] == tag[n] && resp[n] == BAD ->
#ifdef NO_RETRY
            skip
#else
            end_forward (n)
#endif
        :: else
        fi;
        resp[n] = NOTHING }
    od
}

inline ask (n)
{
    pending[n] = true; waiting[n] = waiting[n] | BIT (OWN); serve (n)
}

inline die (n)
{
    for (a : 1 .. (NODES - 1)) {
        if
        :: parent[a] == n || a == n -> detach (a)
        :: else
        fi
    }
    a = 0;
    dead[n] = true; can[n] = false; pending[n] = false; waiting[n] = 0;
    busy[n] = false; asked[n] = 0
}

#define CHILDREN(n) (waiting[n] & ~BIT (OWN))
#define REFUSES(n)  (!dead[n] && parent[n] == NONE && CHILDREN (n) > 0)

/* What is not up to the nodes: of this, nothing ever has to happen. */
proctype world ()
{
    byte a, c, n;
    do
    :: atomic { !pending[1] && !dead[1] -> ask (1) }
    :: atomic { !pending[2] && !dead[2] -> ask (2) }
    :: atomic { !pending[3] && !dead[3] -> ask (3) }

    :: atomic { !can[0] && !dead[0] -> can[0] = true; serve (0) }
    :: atomic { !calm && can[0] -> can[0] = false }     /* its disk fails */
    :: atomic { !can[1] && !dead[1] -> can[1] = true; serve (1) }
    :: atomic { can[1] -> can[1] = false }
#ifdef CHAIN
    :: atomic { !can[2] && !dead[2] -> can[2] = true; serve (2) }
    :: atomic { can[2] -> can[2] = false }
#endif

    :: atomic { REFUSES (1) -> answer (1, CHILDREN (1), BAD) }          /* a request's time is over */
    :: atomic { REFUSES (2) -> answer (2, CHILDREN (2), BAD) }

    :: atomic { faults < FAULTS && !calm -> faults++;
        select (n : 0 .. (NODES - 1));
        if
        :: !dead[n] -> die (n)
        :: dead[n] -> dead[n] = false
        :: n > 0 && !dead[n] -> detach (n)
        fi; n = 0 }
    :: atomic { !calm && !dead[0] -> calm = true; faults = FAULTS; can[0] = true; serve (0) }
    od
}

init {
    atomic {
        run world ();
        run node (1); run node (2); run node (3);
        run link (1); run link (2); run link (3)
    }
}

ltl served { [] ((calm && pending[WHO]) -> <> (!pending[WHO])) }
