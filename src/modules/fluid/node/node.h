/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.h - one rank of the id service: generates, forwards, leases
 *
 * The node is told everything: the time, messages that came in, the parent's coming and going.
 * What it wants done it calls for through 'struct node_ops'.  It has no clock, socket, disk or thread, so that
 * the broker, the unit tests and the simulator drive the same code.  Rank 0's has no parent to ask for leases and the
 * time, but an authority beside it (lease/authority.h).
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds, read after the last event and not before any reading passed
 *    earlier.
 * 2. Operations must not call back into the node, but node_positions ().  They may be called from any node_ function
 *    but node_status () and node_deadline ().
 * 3. After each call the owner asks node_deadline () and calls node_tick () then; earlier calls do no harm.
 * 4. Each request that is taken (node_block (), node_lease_request ()) is answered exactly once, by the latest in
 *    node_stop ().
 */
#ifndef FLUID_NODE_H
#define FLUID_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/module.h>

#include "modules/fluid/lease/area.h"
#include "modules/fluid/lease/authority.h"
#include "modules/fluid/lease/lease.h"
#include "modules/fluid/node/waiting.h"
#include "modules/fluid/lease/watermark.h"

#define NODE_MAX_COUNT 65536U /* ids of one request, of a combined one too */

#define NODE_SHARE_OFF 0U  /* neither lends nor borrows */
#define NODE_SHARE_AUTO 1U /* by need */

struct node;

enum node_state {
    NODE_IDLE,      /* owns no generator: forwards */
    NODE_FENCED,    /* owns one but holds no range that contains now: forwards; the root waits */
    NODE_ACTIVE,    /* generates */
    NODE_BORROWING, /* owns none, and generates with some of another's sequence numbers: forwards what is too much */
};

struct node_ops {
    /* Answer a request for ids with all of them, in increasing order, or with an error (text may be NULL). */
    void (*reply) (void *arg, void *cookie, const struct run *run, size_t nruns);
    void (*fail) (void *arg, void *cookie, int errnum, const char *text);

    /* Ask the parent for 'count' ids above 'after'; node_forwarded () or node_forward_failed () tells the outcome
     * under the same tag.  Returns 0, or -1 if it could not be sent (then nothing is told).
     */
    int (*forward) (void *arg, uint32_t tag, uint32_t count, fluid_t after);

    /* Tell the parent that the ids asked for last are not wanted any more.  Need not arrive: it spares work. */
    void (*cancel) (void *arg);

    /* Send a lease request to the parent; node_lease_answered () or node_lease_failed () tells the outcome under
     * the same tag.  Tag 0: no answer is wanted.  Returns as above.
     */
    int (*lease_up) (void *arg, uint32_t tag, const struct lease_request *req);

    /* Answer a child's lease request. */
    void (*lease_reply) (void *arg, void *cookie, const struct lease_answer *answer);

    /* Tell the parent of positions.  It may be lost. */
    void (*report_up) (void *arg, const struct report *report);

    void (*log) (void *arg, int level, const char *text); /* level as in <syslog.h> */

    /* Tell the parent what is wanted to borrow, or (size 0: no answer is wanted) not any more; node_share_answered ()
     * or node_share_failed () tells the outcome.  Returns as above.
     */
    int (*share_up) (void *arg, const struct share_want *want);

    /* Before forward (), for each request that is traced: it goes up in that one, with others ('requests' together),
     * for 'ids' of it.  NULL: nobody wants to know.
     */
    void (*goes_up) (void *arg, void *cookie, uint32_t tag, uint32_t requests, uint32_t ids);

    /* Read CLOCK_BOOTTIME in microseconds now: while there is a page others make ids during a call, too, by later
     * readings than that of the call.  NULL: no time passes within a call.
     */
    uint64_t (*now_us) (void *arg);
};

struct node_config {
    uint32_t rank;
    uint32_t max_generators;                /* 1 ... 16384: ranks below own the generator of their number */
    uint32_t lanes;                         /* ... and others (lanes.h), so many in all; 0: 1 */
    uint32_t size;                          /* ranks; where there are lanes: lanes * size <= max_generators */
    char incarnation[IDT_MSG_UUID_LEN + 1]; /* random UUID of this broker process */
    uint64_t lease_ms;                      /* 12 ms and more */
    uint64_t max_backlog_ms;                /* generation that clients' requests may wait for */
    uint64_t forward_timeout_ms;            /* a request that nobody could serve for so long fails */
    uint32_t max_waiting;                   /* requests that wait, when clients' are refused */
    uint32_t share; /* NODE_SHARE_OFF, NODE_SHARE_AUTO, or the sequence numbers that an idle rank asks for at least */
    uint32_t share_keep;       /* sequence numbers of 1024 that are not lent; of fewer in proportion */
    uint64_t spill_backlog_ms; /* an owner with more to make than in that time passes some on; 0: nothing */
};

/* A request for ids.  'cookie' (not NULL) names it to ops.  'from_broker': it is a child broker's forward: it is
 * never refused for its number, and its 'after' is trusted.  Askers are served by turns, each in the order in which he
 * asked.
 */
struct node_request {
    void *cookie;
    uint32_t count;
    fluid_t after; /* all ids of the answer are above; 0: none */
    bool from_broker;
    const char *asker; /* a UUID, borrowed for the call; NULL counts as a name */
    bool traced;       /* tell ops.goes_up () */
    bool others;       /* of a user who is not the owner: those together have half of max_waiting */
};

/* 'ops' is borrowed for the node's life.  NULL with errno EINVAL (nonsense in 'config') or ENOMEM. */
struct node *node_create (const struct node_config *config, const struct node_ops *ops, void *arg);
void node_destroy (struct node *n); /* node_stop () first */

/* Rank 0, before anything else: leases, the epoch and the time are those of 'a', which is borrowed for the node's life.
 * What has changed there the node hears in node_tick ().
 */
void node_start_root (struct node *n, uint64_t now_us, struct authority *a);

/* Close for good: the generator first, then the rest of its lease is given back and all that waits is answered.
 * Afterwards requests fail at once and nothing else happens.
 */
void node_stop (struct node *n, uint64_t now_us);

/* --- ids ------------------------------------------------------------------------------------ */

/* Serve a request, at once or later.  Returns false where it was refused: ops.fail () was called, and nothing was made
 * for it.  Fails with
 *   EINVAL        count is not 1 ... NODE_MAX_COUNT
 *   EAGAIN        by turns it would not be complete in max_backlog_ms, or the asker has as many requests waiting as
 *                 max_waiting, or the half of it, leaves free, or 'after' is max_backlog_ms ahead of the time here (a
 *                 broker's: two leases further)
 *   EHOSTUNREACH  nobody could make them within forward_timeout_ms
 *   EOVERFLOW     the 40 bits of time are used up
 *   ENOMEM
 */
bool node_block (struct node *n, uint64_t now_us, const struct node_request *req);

/* Forget requests of a client that went, or of a child that wants them no more: those for which 'gone' returns true
 * ('gone' answers them or not, and frees the cookie).  That is the exception to rule 4.
 */
void node_cancel (struct node *n, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg);

void node_forwarded (struct node *n, uint64_t now_us, uint32_t tag, const struct run *run, size_t nruns);
void node_forward_failed (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

/* --- leases --------------------------------------------------------------------------------- */

/* A child's.  Rank 0's children ask the authority. */
void node_lease_request (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req);
void node_lease_answered (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer);
void node_lease_failed (struct node *n, uint64_t now_us, uint32_t tag);

/* --- loans ---------------------------------------------------------------------------------- */

/* A part of the range of time that this node holds, for another maker of ids on the same broker: one whose ids name
 * the rank as FLUIDs name the generator.  No time is lent twice for this rank, whatever restarts, and none is given
 * back to the root that was lent.  FLUIDs are made in it all the same: they are ids of another kind.
 */
struct loan {
    uint64_t lo_ms; /* instance time: lo_ms <= t < hi_ms */
    uint64_t hi_ms;
    uint64_t clock_us; /* the instance's time now */
    int64_t epoch_ms;  /* in Unix milliseconds */
};

/* Lend what follows the last loan, up to a quarter of a lease from now.  'borrower' names who gets it (a UUID).
 * Returns 0, or -1 with errno set:
 *   EAGAIN   nothing that can be lent is held now
 *   ENOTSUP  this rank owns no generator
 */
int node_lend (struct node *n, uint64_t now_us, const char *borrower, struct loan *loan);

/* The borrower of the last loan will use nothing from 'end_ms' on.  Believed from it alone, for what it was lent in a
 * row.
 */
void node_lend_back (struct node *n, const char *borrower, uint64_t end_ms);

/* --- shares (doc/design/shares.md) ------------------------------------------------------------ */

/* A child, which has shown that it is the one that 'want' names, would borrow.  Returns 1 with '*share', 0: nothing
 * now, and it may ask again in '*retry_ms', or -1 with errno set:
 *   ENOTSUP       this rank lends nothing: fluid.share=off
 *   EHOSTUNREACH  it is stopping
 */
int node_share (struct node *n, uint64_t now_us, const struct share_want *want, struct share *share,
                uint64_t *retry_ms);

/* The parent's answer (NULL: it has nothing to lend for 'retry_ms'); or there is none. */
void node_share_answered (struct node *n, uint64_t now_us, const struct share *share, uint64_t retry_ms);
void node_share_failed (struct node *n, uint64_t now_us, int errnum);

/* --- a page that processes share (doc/design/page.md) ---------------------------------------- */

struct page;

/* Make ids of 'instance' (a UUID, or "") by means of 'page', all zero, which others may have afterwards, with 'terms'
 * to read, or the same (page_gen_share ()): they are borrowed until node_stop (), or until node_page_publish ()
 * returned false.  Returns 0, or -1 with errno set:
 *   ENOTSUP  this rank owns no generator, or a page of it was spoilt
 *   EAGAIN   no lease was had yet, or there is one
 */
int node_page_open (struct node *n, uint64_t now_us, struct page *page, struct page *terms, const char *instance);

/* Let the page say what is so now; call it after each other call.  'monotonic_us': CLOCK_MONOTONIC at 'now_us'.
 * Returns whether there is one (yet).
 */
bool node_page_publish (struct node *n, uint64_t now_us, uint64_t monotonic_us);

/* --- the watermark ---------------------------------------------------------------------------- */

/* A child's report came. */
void node_report (struct node *n, uint64_t now_us, const struct report *report);

/* Join what this node knows now, of itself and of those below it, to '*all'. */
void node_positions (struct node *n, uint64_t now_us, struct report *all);

/* --- time and place --------------------------------------------------------------------------- */

void node_parent (struct node *n, uint64_t now_us, bool up);
void node_sample (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample);

/* CLOCK_BOOTTIME, as others of the host's clocks show (witness.h), missed 'off_us' microseconds before 'now_us', or
 * went too far (below 0).  A node makes no id then until its parent's time is known, and none in the past.  At rank 0
 * it is the authority that is told (authority_lost_time ()).
 */
void node_lost_time (struct node *n, uint64_t now_us, int64_t off_us);

/* The instance's time as children should take it, and its bound.  Returns false while unknown. */
bool node_clock (const struct node *n, uint64_t now_us, uint64_t *inst_us, uint64_t *bound_us);

void node_tick (struct node *n, uint64_t now_us);
uint64_t node_deadline (const struct node *n); /* UINT64_MAX: none */

/* --- what is to be told -------------------------------------------------------------------------- */

struct node_stats {
    uint64_t requests;
    uint64_t ids; /* made here */
    uint64_t ids_from_above;
    uint64_t page_ids;      /* made by those who have the page, as of the last look: each second, at least */
    uint64_t forwards;      /* requests sent up */
    uint64_t combined;      /* requests that went up with another one */
    uint64_t forwards_lost; /* sent up, and no use: error, late, not needed any more */
    struct waiting_stats waiting;
    uint64_t renewals;       /* ranges taken */
    uint64_t lease_messages; /* lease requests sent up */
    uint64_t borrowed;       /* shares taken */
    uint64_t lent;           /* and given */
    uint64_t share_messages; /* wants sent up */
    uint64_t spilled;        /* requests of children that an owner passed on */
};

#define NODE_LENT_MAX 128 /* borrowers of a rank */

struct node_status {
    enum node_state state;
    bool owns_generator;
    uint32_t generator;
    bool time_known;
    uint64_t timestamp_ms;
    uint64_t bound_us; /* how far the reading may be from the root's */
    uint64_t lo_ms;    /* range in use; both 0: none */
    uint64_t hi_ms;
    uint64_t lease_age_us; /* since a range was given last; 0: none was */
    struct area area;      /* what ids are made of, while it is NODE_BORROWING */
    size_t loans;          /* how much is lent now */
    uint32_t lent_per_ms;
    uint64_t holds_until_ms;
    bool has_epoch;
    int64_t epoch_ms;
    bool parent_up;
    size_t waiting;
};

void node_status (const struct node *n, uint64_t now_us, struct node_status *status);
/* The ranks that it has lent something to, NODE_LENT_MAX at most.  Returns how many. */
size_t node_lent_to (const struct node *n, uint64_t now_us, uint32_t *ranks);

struct node_stats *node_stats (struct node *n); /* whoever likes sets them to 0 */
const char *node_state_name (enum node_state state);

#endif /* FLUID_NODE_H */
