/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the files of the node share: one object, one subject a file
 *
 *   node.c       entry points, the state, create and stop, the handover to the next load of the module
 *   ids.c        requests for ids: accepted, served here, failed
 *   forward.c    requests that are sent to the parent, combined
 *   lease.c      leases from the parent, or at rank 0 the authority: requested, relayed for children, lent to modules
 *   share.c      subleases from the parent and to children
 *   page.c       the page of memory that processes of this host share
 *   now.c        whether an id may be made now, and above which id; the positions that are reported
 *
 * A file calls only those below it in this list, with these exceptions: share.c and page.c end entry points with
 * node_tick (); share.c asks forward.c whether a request is under way; now.c reads the page (page.c) and, for reports,
 * the jumps of the authority's clock (lease.c). waiting.h and lanes.h are objects of their own.
 */
#ifndef FLUID_NODE_PRIVATE_H
#define FLUID_NODE_PRIVATE_H

#include "libpage/page_gen.h"
#include "modules/fluid/lease/borrower.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/lease.h"
#include "modules/fluid/lease/lender.h"
#include "modules/fluid/lease/lessee.h"
#include "modules/fluid/lease/lease_relay.h"
#include "modules/fluid/lease/watermark.h"
#include "modules/fluid/node/lanes.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/node/waiting.h"

#define NEVER UINT64_MAX
#define TIME_IS_OVER "the 40 bits of time since the instance's epoch are used up" /* the text of EOVERFLOW */

/* A combined request, which may be under way to the parent. */
struct forward {
    bool busy;
    bool traced;  /* at least one of 'shares' is traced */
    uint32_t tag; /* of the last one sent; answers with another tag are dropped */
    uint32_t count;
    fluid_t after;
    struct pendings shares; /* the requests that get the ids of the answer, in order */
    uint64_t sent_us;
    uint64_t retry_us; /* do not send before this time */
    uint64_t backoff_us;
};

struct forwards {
    struct forward all;       /* of all waiting requests */
    struct forward newcomers; /* beside 'all': of newcomers, which ask for few ids and have nothing under way */
    struct forward spilled;   /* of children, passed on by an owner rank, which makes ids for others meanwhile */
    uint64_t here_us;         /* when it was sent: time to make all waiting ids here */
    uint32_t tag;             /* the last one used */
    uint64_t trip_us;         /* average time until an answer arrives; 0: not known */
};

/* The source of leases and of the time. */
struct lessor {
    struct authority *authority; /* beside this node, at rank 0; NULL: the parent is the source */
    struct authority_news heard; /* the news that were handled last */
};

/* The lease requests that were sent last. */
struct asked {
    uint32_t own_tag; /* of the last one that requested a lease for this rank */
    struct {
        uint32_t tag;
        uint64_t us;
    } sent[16]; /* send times; an entry's index is tag % 16 */
};

/* A page of this node had invalid contents: no further page is created. */
struct spoilt {
    bool is;
    uint64_t end_ms; /* below it clients may have made ids of all granules except PAGE_OWN_GRANULES */
};

/* The last sublease of time to a module, joined with the ones before it that the same borrower received in a row. No
 * sublease of time ends later.
 */
struct lent {
    struct range range;
    char borrower[IDT_MSG_UUID_LEN + 1];
};

/* The clock of this rank missed time: no id is made until the parent's time is known again. */
struct doubt {
    bool now;
    uint64_t since_us; /* last detection: only a reading requested later ends the doubt */
};

/* The epoch of the instance: timestamp 0 of its ids. */
struct epoch {
    bool known;
    int64_t ms; /* Unix time */
};

/* Granules that are not subleased, and so may be used, at from_ms <= t < until_ms. */
struct free_granules {
    uint64_t from_ms, until_ms;
    uint64_t granules;
};

/* Subleases from the parent and to children. */
struct sharing {
    struct free_granules free; /* the part of 'cur' that is not subleased */
    struct borrower borrower;
    struct lender lender;
    struct demand demand;
    uint32_t missed; /* largest request of a child that was not granted; valid until 'missed_us' */
    uint64_t missed_us;
    uint64_t starved_us; /* until then, a child that requested a sublease and got nothing counts */
};

struct reporting {
    struct reports children;
    uint64_t due_us; /* when the next report is sent */
    bool news;       /* a report came, or the last own report named a lessee */
};

struct node {
    struct node_config config;
    const struct node_ops *ops;
    void *arg;
    bool owner; /* has a generator */
    bool stopped;
    bool parent_up;
    uint64_t deadline_us;
    enum node_state state; /* as of the last node_tick () */
    struct node_stats stats;
    uint64_t renewed_us; /* when the last range was received; 0: never */

    /* --- time --- */
    struct clock *clock;    /* 'own_clock', or at rank 0 the authority's */
    struct clock own_clock; /* follows the parent's clock */
    struct doubt doubt;

    /* --- ids --- */
    struct page_gen gen;
    bool page_published;    /* terms were published at least once; then: */
    int64_t page_offset_us; /* the offset published last */
    uint64_t page_limit_us; /* clients' clocks have shown at most this by earlier offsets */
    uint64_t page_now_us;   /* the latest reading of the clock because of the page */
    struct spoilt spoilt;
    struct lanes more;  /* the other generators of this rank; used when 'gen' has no id left */
    struct area cur;    /* the area that 'gen' uses; empty range: none */
    uint64_t cursor_ms; /* newest timestamp that 'gen' used */
    fluid_t last_id;    /* newest id answered here, from any source */
    struct waiting waiting;
    struct forwards up;

    /* --- leases --- */
    struct lessor lessor;
    struct lessee lessee;
    struct lease_relay relay;
    struct asked asked;
    uint64_t last_child_us; /* when the last request of a child arrived */
    uint64_t root_lease_ms; /* the root's fluid.lease, or this rank's until that is known */
    struct epoch epoch;
    struct lent lent;
    struct sharing sharing;
    struct reporting reports;
};

/* --- now.c ------------------------------------------------------------------------------------- */

/* The instance's time in milliseconds; 0 while unknown. */
uint64_t node_now_ms (const struct node *n, uint64_t now_us);

/* Request node_tick () at 'at_us' or earlier. */
void node_wake (struct node *n, uint64_t at_us);
void node_wake_ms (struct node *n, uint64_t now_us, uint64_t inst_ms); /* when the clock shows that time */

void node_log (struct node *n, int level, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Return whether ids may be made now, and set '*now_ms' to the current millisecond. True only if a held range (or, on a
 * borrowing rank, the sublease) contains now. Must be called at each reservation, after the clock was read.
 */
bool node_may_generate (struct node *n, uint64_t now_us, uint64_t *now_ms);

/* Forget the area in use; the next node_may_generate () looks it up again. */
void node_look_anew (struct node *n);

/* Make no id until node_may_generate () finds an area again. */
void node_make_nothing (struct node *n);

/* Ids in a millisecond if nothing is subleased. */
uint32_t node_per_ms (const struct node *n);

/* The granules of the area in use that are not subleased at 'ms'. */
uint64_t node_granules (struct node *n, uint64_t ms);

/* The first millisecond in which a request for ids above 'after' may be served here; 0: any. */
uint64_t node_floor_ms (struct node *n, fluid_t after);

/* Step the clock forward to the time of an id. */
void node_step_to (struct node *n, uint64_t now_us, fluid_t id);

/* Ids up to 'last', made by an ancestor, are answered: advance the generators past them, and the clock to them. */
void node_follow (struct node *n, uint64_t now_us, fluid_t last);

/* Make no further id of a time before now, not for waiting requests either. */
void node_close_past (struct node *n, uint64_t now_us);

/* The rank's position: no id below this time will be made or answered here, under any present or future lease. It never
 * decreases.
 */
uint64_t node_position_ms (struct node *n, uint64_t now_us);

/* Process a reading of the parent's clock. */
void node_time (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample);

/* --- leases: lease.c ------------------------------------------------------------------- */

void node_lessor_hear (struct node *n, uint64_t now_us); /* process changes of the authority */
void node_lessor_hear_jumps (struct node *n);            /* the same, only for jumps of its clock */
const char *node_lessor_excuse (const struct node *n);   /* error text of requests that timed out */

/* Send the lease requests that are due, of this node and of its subtree. Sets deadlines with node_wake (). */
void node_lease_work (struct node *n, uint64_t now_us);

/* Accept a child's request. Returns false if it was answered immediately, without a grant. */
bool node_lease_relay (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req);

/* The request with this tag was answered, by the parent or the authority. / It was lost. */
void node_lease_take (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer);
void node_lease_miss (struct node *n, uint64_t now_us, uint32_t tag);

/* Stop: return the rest of the lease, and answer all waiting lease requests. */
void node_lease_stop (struct node *n, uint64_t now_us);

/* For lease_relay_init (): answer a child, with the time that it should use. */
void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                          const struct lease_grant *grant, size_t ngrant);

/* --- shares: share.c ------------------------------------------------------------------------------- */

void node_share_work (struct node *n, uint64_t now_us);

/* Note a request for 'count' ids, 'got' of which were made immediately. */
void node_share_note (struct node *n, uint64_t now_us, uint32_t count, uint32_t got);

/* Return whether the waiting requests plus 'more' ids need more than a borrower can make in a millisecond, and the
 * parent is connected. Then forwarding may be faster.
 */
bool node_share_is_short (struct node *n, uint64_t now_us, uint64_t more);

/* The node has another parent. / CLOCK_BOOTTIME missed time. / It went too far: borrowers of this rank may be slower. /
 * The root's lease, and so the term of subleases, has changed.
 */
void node_share_moved (struct node *n, uint64_t now_us);
void node_share_lost_time (struct node *n, uint64_t us);
void node_share_jumped (struct node *n, uint64_t us);
void node_share_term (struct node *n);

/* Stop: return what was borrowed. */
void node_share_stop (struct node *n, uint64_t now_us);

/* --- the page that is shared with clients: page.c ------------------------------------------------ */

/* Read the page: take note of ids that clients made. */
void node_page_look (struct node *n, uint64_t now_us);

/* The granules of each millisecond that may be subleased. */
uint64_t node_page_may_lend (const struct node *n, uint64_t now_ms);

/* Return the first millisecond of a new sublease. Pauses the page, so that clients make no ids until node_page_lent ()
 * publishes which numbers are subleased.
 */
uint64_t node_page_next_ms (struct node *n, uint64_t now_us, uint64_t now_ms);
void node_page_lent (struct node *n);

/* 'now_us', or the last reading of the clock because of the page if that is later. */
uint64_t node_page_now (const struct node *n, uint64_t now_us);

/* Close the page: clients make no further ids with it, and all that they made is known. */
void node_page_close (struct node *n, uint64_t now_us);

/* The granules that this rank may use at 'ms', after a page was spoilt. Lowers '*until_ms' to the time at which the
 * result changes, if that is earlier.
 */
uint64_t node_page_granules (const struct node *n, uint64_t ms, uint64_t *until_ms);

void node_page_work (struct node *n, uint64_t now_us);

/* --- positions: now.c ------------------------------------------------------------------------ */

uint64_t node_report_keep_us (const struct node *n); /* for struct reports */
void node_watermark_take (struct node *n, uint64_t now_us, const struct report *report);
void node_watermark_work (struct node *n, uint64_t now_us);
void node_watermark_stop (struct node *n);

/* --- what goes up: forward.c ------------------------------------------------------------------------- */

/* Send waiting requests to the parent: all of them if no such request is under way; otherwise newcomers, if no request
 * of newcomers is under way.
 */
void node_forward_waiting (struct node *n, uint64_t now_us);

/* On an owner rank with more to make than fits into 'spill_backlog_ms': pass whole requests of children on to the
 * parent, up to NODE_MAX_COUNT ids, and keep at least half of that backlog. One such request is under way at a time.
 * Meanwhile the rank makes ids for requesters that have nothing in it, so each requester gets its ids in order. If
 * passing on did not help, the next attempt is delayed.
 */
void node_forward_spill (struct node *n, uint64_t now_us);

/* Call before node_forward_spill (). Take the passed-on request back, to make its ids here, if it takes much longer
 * than that, or if no requester waits for it any longer.
 */
void node_forward_take_back (struct node *n, uint64_t now_us);

/* Whether this requester waits for ids that were passed on. Then it gets no other ids before them. */
bool node_forward_has_spilled (const struct node *n, const struct requester *a);

/* Ids to be made here: all that are missing, except what was passed on. */
uint64_t node_forward_left_here (const struct node *n);

/* The answer to 'tag': ids, or an error. Returns false if it was no longer needed. */
bool node_forward_take (struct node *n, uint64_t now_us, uint32_t tag, const struct id_run *run, size_t nruns);
bool node_forward_miss (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

bool node_forward_is_busy (const struct node *n);

/* Whether the answer under way is overdue, so that a borrower makes the ids itself; if not, requests node_tick () for
 * that time. / Abandon it, and delay the next one.
 */
bool node_forward_is_overdue (struct node *n, uint64_t now_us);
void node_forward_give_up (struct node *n, uint64_t now_us);

/* Abandon the answers under way: their ids are skipped. / Do so if no requester waits for them any longer. */
void node_forward_abandon (struct node *n);
void node_forward_review (struct node *n);

void node_forward_parent (struct node *n, uint64_t now_us); /* it was connected or lost */

/* End all forwards, and clear the marks of their requests. */
void node_forward_end (struct node *n);

/* --- ids: ids.c ------------------------------------------------------------------------------------------ */

/* Refused requests are answered, too. */
enum node_taken { NODE_REFUSED, NODE_ANSWERED, NODE_WAITS };
enum node_taken node_ids_request (struct node *n, uint64_t now_us, const struct node_request *req);

void node_ids_work (struct node *n, uint64_t now_us);
void node_ids_stop (struct node *n);

#endif /* FLUID_NODE_PRIVATE_H */
