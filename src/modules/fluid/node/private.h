/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the node's parts share: one object in several subjects
 *
 *   node.c       what comes in, and then what has become possible or due; the state; begin and end
 *   ids.c        requests for ids: taken, served here, given up
 *   forward.c    what goes up, combined
 *   lessor.c     who gives leases: the parent, or the authority beside us
 *   lease.c      leases: wanted, relayed
 *   watermark.c  positions
 *   lend.c       what other modules borrow
 *   share.c      shares: borrowed, lent, returned
 *   past.c       what it leaves to the next one
 *   now.c        whether an id may be made now, and above which
 *   waiting.c    requests for ids that wait: an object of its own
 *   inspect.c    what others may see of all that
 *
 * None calls one above it.
 */
#ifndef FLUID_NODE_PRIVATE_H
#define FLUID_NODE_PRIVATE_H

#include "libpage/page_gen.h"
#include "modules/fluid/lease/borrower.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/demand.h"
#include "modules/fluid/lease/lease.h"
#include "modules/fluid/lease/lender.h"
#include "modules/fluid/lease/lessee.h"
#include "modules/fluid/lease/lease_relay.h"
#include "modules/fluid/lease/watermark.h"
#include "modules/fluid/node/lanes.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/node/past.h"
#include "modules/fluid/node/waiting.h"

#define NEVER UINT64_MAX
#define TIME_IS_OVER "the 40 bits of time since the instance's epoch are used up" /* the text of EOVERFLOW */

/* A combined request that may be on its way up. */
struct forward {
    bool busy;
    bool traced;  /* some of the shares are */
    uint32_t tag; /* of the last one sent: answers to others are not wanted any more */
    uint32_t count;
    fluid_t after;
    struct pendings shares; /* who gets what of the answer, in order */
    uint64_t sent_us;
    uint64_t retry_us; /* not before */
    uint64_t backoff_us;
};

struct forwards {
    struct forward all;       /* of all that waits */
    struct forward newcomers; /* beside it, of those who ask for little and have nothing under way */
    struct forward spilled;   /* an owner's, of children; ids are made here meanwhile, for others */
    uint64_t here_us;         /* so long all that waited would have taken here when that went up */
    uint32_t tag;             /* the last one given */
    uint64_t trip_us;         /* how long it takes until one is answered, about; 0: not known */
};

/* Who gives us leases, and with them the time. */
struct lessor {
    struct authority *authority; /* beside us, at rank 0; NULL: it is the parent */
    struct authority_news heard; /* last */
};

/* The lease requests that were sent last. */
struct asked {
    uint32_t own_tag; /* of the last that carried our want */
    struct {
        uint32_t tag;
        uint64_t us;
    } sent[16]; /* when they were sent: at tag % 16 */
};

/* A page of ours held nonsense: there is no other. */
struct spoilt {
    bool is;
    uint64_t end_ms; /* those who had it may have made ids below, but not of PAGE_OWN_GRANULES */
};

/* The last loan, with those before it that one borrower was lent in a row; its end is that of all loans. */
struct lent {
    struct range range;
    char borrower[IDT_MSG_UUID_LEN + 1];
};

/* Our clock missed time: nothing is made until the parent's is known again. */
struct doubt {
    bool now;
    uint64_t since_us; /* when that was last seen: a reading that was asked for before does not end it */
};

/* The epoch of the instance, which its ids count from. */
struct epoch {
    bool known;
    int64_t ms; /* Unix time */
};

/* Granules that ids may be made of at from_ms <= t < until_ms. */
struct free_granules {
    uint64_t from_ms, until_ms;
    uint64_t granules;
};

/* What is borrowed and lent. */
struct sharing {
    struct free_granules free; /* of what ids are made of: what is not lent */
    struct borrower borrower;
    struct lender lender;
    struct demand demand;
    uint32_t missed; /* the most that a child wanted and did not get, until 'missed_us' */
    uint64_t missed_us;
    uint64_t starved_us; /* until then a child that wanted some and got none counts */
};

struct reporting {
    struct reports children;
    uint64_t due_us; /* the next of ours */
    bool news;       /* there is some, or the last report spoke for someone */
};

struct node {
    struct node_config config;
    const struct node_ops *ops;
    void *arg;
    bool owner; /* of a generator */
    bool stopped;
    bool parent_up;
    uint64_t deadline_us;
    enum node_state state; /* as last seen by node_tick () */
    struct node_stats stats;
    uint64_t renewed_us; /* when a range was given last; 0: none was */

    /* time */
    struct clock *clock;    /* our own, or the authority's */
    struct clock own_clock; /* which follows the parent's */
    struct doubt doubt;

    /* ids */
    struct page_gen gen;
    bool page_told;         /* it had terms once: */
    int64_t page_offset_us; /* as it was published last */
    uint64_t page_limit_us; /* clients' clocks have shown no more by offsets of before */
    uint64_t page_now_us;   /* our clock, when the page needed that last */
    struct spoilt spoilt;
    struct lanes more;  /* our other generators, which make what 'gen' has not left of a millisecond */
    struct area cur;    /* what 'gen' makes ids of; an empty range: nothing */
    uint64_t cursor_ms; /* newest timestamp that 'gen' used */
    fluid_t last_id;    /* newest id answered here, whoever made it */
    struct waiting waiting;
    struct forwards up;

    /* leases */
    struct lessor lessor;
    struct lessee lessee;
    struct lease_relay relay;
    struct asked asked;
    uint64_t last_child_us; /* when a child asked last */
    uint64_t root_lease_ms; /* the root's fluid.lease, as far as is known */
    struct epoch epoch;
    struct lent lent;
    struct sharing sharing;
    struct reporting reports;
};

/* --- now.c ------------------------------------------------------------------------------------- */

/* The instance's time in milliseconds; 0 while unknown. */
uint64_t node_now_ms (const struct node *n, uint64_t now_us);

/* Call for node_tick () at 'at_us' or earlier. */
void node_wake (struct node *n, uint64_t at_us);
void node_wake_ms (struct node *n, uint64_t now_us, uint64_t inst_ms); /* when the clock shows that */

void node_log (struct node *n, int level, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Whether ids may be made now, and at which millisecond: a range that is held contains it.  Called at each reservation,
 * after the clock was read.
 */
bool node_may_generate (struct node *n, uint64_t now_us, uint64_t *now_ms);

/* What ids are made of is looked up anew, the next time. */
void node_look_anew (struct node *n);

/* Nothing is made any more, until that. */
void node_make_nothing (struct node *n);

/* The ids of a millisecond, if nothing of them is lent. */
uint32_t node_per_ms (const struct node *n);

/* The granules of what ids are made of that are not lent at 'ms'. */
uint64_t node_granules (struct node *n, uint64_t ms);

/* The first millisecond at which a request for ids above 'after' may be served here. */
uint64_t node_floor_ms (struct node *n, fluid_t after);

/* The clock is not behind an id. */
void node_step_to (struct node *n, uint64_t now_us, fluid_t id);

/* Ids up to 'last', made above, are answered: our own go on above, and our clock is not behind them. */
void node_follow (struct node *n, uint64_t now_us, fluid_t last);

/* No id is made of a time before now any more, for a request that waits neither. */
void node_close_past (struct node *n, uint64_t now_us);

/* No id below this is made, or leaves, here any more, whatever is held or will be; it never goes back. */
uint64_t node_position_ms (struct node *n, uint64_t now_us);

/* The parent's clock was read. */
void node_time (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample);

/* --- leases: lessor.c, lease.c ------------------------------------------------------------------- */

bool node_lessor_is_up (const struct node *n);

/* As lease_up () of struct node_ops. */
int node_lessor_ask (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req);

void node_lessor_hear (struct node *n, uint64_t now_us); /* what has changed there */
void node_lessor_hear_jumps (struct node *n);            /* no more than by how much its clock went too far */
const char *node_lessor_excuse (const struct node *n);   /* to those who waited: why nothing is made here */

/* Do what is due, here as below.  Waking times are set with node_wake (). */
void node_lease_work (struct node *n, uint64_t now_us);

/* A child's request.  Returns false where it was answered at once, with none. */
bool node_lease_relay (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req);

/* A request of ours was answered, whoever answered it. / It was lost. */
void node_lease_take (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer);
void node_lease_miss (struct node *n, uint64_t now_us, uint32_t tag);

/* Nothing that was given is used any more: it is not to be trusted. */
void node_lease_fence (struct node *n);

/* End: give back, and answer all that waits; here as below. */
void node_lease_stop (struct node *n, uint64_t now_us);

/* For lease_relay_init (): answer a child, with the time as it should take it. */
void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                          const struct lease_grant *grant, size_t ngrant);

/* --- shares: share.c ------------------------------------------------------------------------------- */

void node_share_work (struct node *n, uint64_t now_us);

/* A request for 'count' ids came, and 'got' of them at once. */
void node_share_note (struct node *n, uint64_t now_us, uint32_t count, uint32_t got);

/* Whether what waits, and 'more' ids, are more than a borrower may make in a millisecond: that may take longer than
 * above.
 */
bool node_share_is_short (struct node *n, uint64_t now_us, uint64_t more);

/* There is another parent. / CLOCK_BOOTTIME missed time, or went too far. / Those who follow this rank's leases have
 * another length.
 */
void node_share_moved (struct node *n, uint64_t now_us);
void node_share_lost_time (struct node *n, uint64_t us);
void node_share_jumped (struct node *n, uint64_t us);
void node_share_term (struct node *n);

/* End: what is borrowed is given back. */
void node_share_stop (struct node *n, uint64_t now_us);

/* --- a page that is shared: page.c ---------------------------------------------------------------- */

/* What was made by means of it is known. */
void node_page_look (struct node *n, uint64_t now_us);

/* The granules of each millisecond that may be lent. */
uint64_t node_page_may_lend (const struct node *n, uint64_t now_ms);

/* What is lent begins there, for nothing is made by others until node_page_lent () sets aside what was. */
uint64_t node_page_next_ms (struct node *n, uint64_t now_us, uint64_t now_ms);
void node_page_lent (struct node *n);

/* The time of a call that began at 'now_us': later, where the clock was read again because of the page. */
uint64_t node_page_now (const struct node *n, uint64_t now_us);

/* Nobody makes anything by means of it any more; all that was made is known. */
void node_page_close (struct node *n, uint64_t now_us);

/* What may be made at 'ms' by this rank, after a page was spoilt; '*until_ms' is where that changes, if before. */
uint64_t node_page_granules (const struct node *n, uint64_t ms, uint64_t *until_ms);

void node_page_work (struct node *n, uint64_t now_us);

/* --- positions: watermark.c ------------------------------------------------------------------------ */

uint64_t node_report_keep_us (const struct node *n); /* for struct reports */
void node_watermark_take (struct node *n, uint64_t now_us, const struct report *report);
void node_watermark_work (struct node *n, uint64_t now_us);
void node_watermark_stop (struct node *n);

/* --- what goes up: forward.c ------------------------------------------------------------------------- */

/* Send up what waits: all, if nothing is under way; else newcomers, if none of theirs is. */
void node_forward_waiting (struct node *n, uint64_t now_us);

/* An owner that has more to make than in 'spill_backlog_ms' passes whole requests of children on to its parent, as many
 * as one request may ask for, and keeps half of that backlog at least; one such request at a time.  Ids are made here
 * meanwhile for others, but for no asker that has something under way, so to each one ids come in order.  Where it did
 * not help, that is not tried again for a while.
 */
void node_forward_spill (struct node *n, uint64_t now_us);

/* Call before that.  Where it takes much longer than it would have here, or nobody waits for it any more, it is made
 * here.
 */
void node_forward_take_back (struct node *n, uint64_t now_us);

/* Whether somebody waits for ids of this asker that are under way: nothing may overtake them. */
bool node_forward_has_spilled (const struct node *n, const struct requester *a);

/* Ids that are to be made here: what is missing, but for what was passed on. */
uint64_t node_forward_left_here (const struct node *n);

/* It was answered, with ids or an error.  Returns false where it was not wanted any more. */
bool node_forward_take (struct node *n, uint64_t now_us, uint32_t tag, const struct run *run, size_t nruns);
bool node_forward_miss (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

bool node_forward_is_busy (const struct node *n);

/* Whether what is under way has not been answered for so long that a borrower does without it; else it is looked after
 * again then. / Do so, and send nothing for a while.
 */
bool node_forward_is_overdue (struct node *n, uint64_t now_us);
void node_forward_give_up (struct node *n, uint64_t now_us);

/* Do without the answer that is under way: ids in it are skipped.  / Do so if nobody waits for it any more. */
void node_forward_abandon (struct node *n);
void node_forward_review (struct node *n);

void node_forward_parent (struct node *n, uint64_t now_us); /* it came or went */

/* The forwards are over: take their marks off. */
void node_forward_end (struct node *n);

/* --- ids: ids.c ------------------------------------------------------------------------------------------ */

/* Refused requests are answered, too. */
enum node_taken { NODE_REFUSED, NODE_ANSWERED, NODE_WAITS };
enum node_taken node_ids_request (struct node *n, uint64_t now_us, const struct node_request *req);

void node_ids_work (struct node *n, uint64_t now_us);
void node_ids_stop (struct node *n);

#endif /* FLUID_NODE_PRIVATE_H */
