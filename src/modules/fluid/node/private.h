/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - shared by the files of the node: one object, one subject in each file
 *
 *   node.c       entry points, the state, create and stop, the handover to the next load of the module
 *   ids.c        requests for ids: accepted, served here, failed
 *   forward.c    requests that are sent to the parent, combined
 *   lease.c      what the node holds, and what it grants to children and modules
 *   page.c       the page of memory that processes of this host share
 *   now.c        whether an id may be made now, and above which id; the positions that are reported
 *
 * A file calls only files below it in this list, with these exceptions: lease.c and page.c end entry points with
 * node_tick (); now.c reads the page (page.c) and, for reports, the jumps of the authority's clock (lease.c). waiting.h
 * and lanes.h are objects of their own.
 */
#ifndef FLUID_NODE_PRIVATE_H
#define FLUID_NODE_PRIVATE_H

#include "libpage/page_gen.h"
#include "modules/fluid/lease/authority.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/demand.h"
#include "modules/fluid/lease/grants.h"
#include "modules/fluid/lease/held.h"
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
    uint32_t tag; /* of the last request that was sent; answers with another tag are dropped */
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
    uint32_t tag;             /* the last tag used */
    uint64_t trip_us;         /* average time until an answer arrives; 0: not known */
};

/* The source of leases and of the time. */
struct source {
    struct authority *authority; /* beside this node, at rank 0; NULL: the parent is the source */
    struct authority_news heard; /* the authority's news that were handled last */
};

/* The lease requests that were sent last. */
struct asked {
    uint32_t own_tag; /* of the last request that asked for a lease of this rank */
    struct {
        uint32_t tag;
        uint64_t us;
    } sent[16]; /* send times; an entry's index is tag % 16 */
};

/* Whether a page of this node had invalid contents. If so, no further page is made. */
struct spoilt {
    bool is;
    uint64_t end_ms; /* below this time clients may have made ids of all granules except PAGE_OWN_GRANULES */
};

/* The clock of this rank missed time: no id is made until the parent's time is known again. */
struct doubt {
    bool now;
    uint64_t since_us; /* when this was detected last; only a reading that was requested later ends the doubt */
};

/* The epoch of the instance: timestamp 0 of its ids. */
struct epoch {
    bool known;
    int64_t ms; /* Unix time */
};

/* Granules of the box in use that are not granted, and so may be used, at from_ms <= t < until_ms. */
struct free_granules {
    uint64_t from_ms, until_ms;
    uint64_t granules;
};

struct reporting {
    struct reports children;
    uint64_t due_us; /* when the next report is sent */
    bool news;       /* a child's report arrived, or the last own report named a holder */
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
    uint64_t renewed_us; /* when the last box of the rank's generator was received; 0: never */
    bool said_ahead;     /* report_ahead () has logged, and no box was received since */

    /* --- time --- */
    struct clock *clock;    /* 'own_clock', or at rank 0 the authority's */
    struct clock own_clock; /* follows the parent's clock */
    struct doubt doubt;

    /* --- ids --- */
    struct page_gen gen;
    bool page_published;    /* terms were published at least once; only then are these valid: */
    int64_t page_offset_us; /* the offset published last */
    uint64_t page_limit_us; /* the latest time that clients' clocks can have shown under earlier offsets */
    uint64_t page_now_us;   /* the latest reading of CLOCK_BOOTTIME that was made for the page */
    struct spoilt spoilt;
    struct lanes lanes;        /* the other generators of this rank; used when 'gen' has no id left */
    struct lease cur;          /* the box that 'gen' uses; empty range: none */
    struct free_granules free; /* the part of 'cur' that is not granted */
    uint64_t cursor_ms;        /* newest timestamp that 'gen' used */
    fluid_t last_id;           /* newest id answered here, from any source */
    struct waiting waiting;
    struct forwards up;

    /* --- leases --- */
    struct source source;
    struct held held;
    struct grants parts;        /* to children */
    struct grants time;         /* to modules of this broker, for ids of other kinds */
    uint64_t time_number;       /* of the last request of a module */
    struct demand own, passing; /* how much clients need, and how much children's forwards */
    struct lease_relay relay;
    struct asked asked;
    uint64_t last_child_us; /* when the last request of a child arrived */
    uint64_t root_lease_ms; /* this rank's fluid.lease, until the root's is known */
    struct epoch epoch;
    struct reporting reports;
};

/* --- now.c ------------------------------------------------------------------------------------- */

/* The instance's time in milliseconds; 0 while unknown. */
uint64_t node_now_ms (const struct node *n, uint64_t now_us);

/* Request node_tick () at 'at_us' or earlier. */
void node_wake (struct node *n, uint64_t at_us);
void node_wake_ms (struct node *n, uint64_t now_us, uint64_t inst_ms); /* the same, when the clock shows 'inst_ms' */

void node_log (struct node *n, int level, const char *fmt, ...) __attribute__ ((format (printf, 3, 4)));

/* Return whether ids may be made now, and set '*now_ms' to the current millisecond. True only if a box that is held
 * contains now, and its use is not over. Must be called at each reservation, after the clock was read.
 */
bool node_may_generate (struct node *n, uint64_t now_us, uint64_t *now_ms);

/* Forget the box in use. The next node_may_generate () looks it up again. */
void node_look_anew (struct node *n);

/* Make no id until node_may_generate () finds a box again. */
void node_make_nothing (struct node *n);

/* Ids in a millisecond if nothing is granted. */
uint32_t node_per_ms (const struct node *n);

/* The granules of the box in use that are not granted at 'ms'. */
uint64_t node_granules (struct node *n, uint64_t ms);

/* The first millisecond in which a request for ids above 'after' may be served here; 0: any. */
uint64_t node_floor_ms (struct node *n, fluid_t after);

/* Step the clock forward to the time of an id. */
void node_step_to (struct node *n, uint64_t now_us, fluid_t id);

/* Ids up to 'last' that an ancestor made are answered here. Advance the generators past 'last', and the clock to it. */
void node_follow (struct node *n, uint64_t now_us, fluid_t last);

/* Make no further id of a time before now, not even for waiting requests. */
void node_close_past (struct node *n, uint64_t now_us);

/* The rank's position: no id below this time will be made or answered here, under any present or future lease. It never
 * decreases.
 */
uint64_t node_position_ms (struct node *n, uint64_t now_us);

/* Process a reading of the parent's clock. */
void node_time (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample);

/* --- leases: lease.c ------------------------------------------------------------------- */

void node_source_hear (struct node *n, uint64_t now_us); /* process changes of the authority */
void node_source_hear_jumps (struct node *n);            /* process only jumps of the authority's clock */
const char *node_source_excuse (const struct node *n);   /* error text for requests that timed out */

/* Send the lease requests that are due, of this node and of its subtree. Sets deadlines with node_wake (). */
void node_lease_work (struct node *n, uint64_t now_us);

/* node_lease_take () processes the answer of the parent or the authority to lease request 'tag'. node_lease_miss ()
 * reports that the request failed or was lost.
 */
void node_lease_take (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer);
void node_lease_miss (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

/* Note that the ids of a request are needed, and that 'got' of them were made immediately. What an owner needs decides
 * what it keeps.
 */
void node_lease_note (struct node *n, uint64_t now_us, const struct node_request *req, uint32_t got);
void node_lease_note_from_above (struct node *n, uint64_t now_us, uint32_t ids); /* note ids that the parent made */

/* Return whether the waiting requests plus 'more' ids need more than a part has in a few milliseconds. Then they are
 * forwarded. Returns false if no parent is connected.
 */
bool node_lease_is_short (struct node *n, uint64_t now_us, uint64_t more);

/* node_lease_term (): the length of the root's leases has changed, and with it the term of parts. node_lease_lost_time
 * (): CLOCK_BOOTTIME missed 'off_us', so what is held is older. If 'off_us' is below 0, the clock went too far, so
 * holders may use what was granted to them for that much longer.
 */
void node_lease_term (struct node *n);
void node_lease_lost_time (struct node *n, uint64_t now_us, int64_t off_us);

/* Stop: return what is held, and answer all waiting lease requests. */
void node_lease_stop (struct node *n, uint64_t now_us);

/* The reply function for lease_relay_init (). It answers a child, and sends the time that the child should use. */
void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us, const struct grant *grant,
                          size_t ngrant);

/* --- the page that is shared with clients: page.c ------------------------------------------------ */

/* Read the page, and take note of ids that clients made. */
void node_page_look (struct node *n, uint64_t now_us);

/* The granules of each millisecond that may be granted. */
uint64_t node_page_may_grant (const struct node *n, uint64_t now_ms);

/* Return the first millisecond of a new part. Pauses the page, so that clients make no ids until node_page_granted ()
 * publishes which numbers are granted.
 */
uint64_t node_page_next_ms (struct node *n, uint64_t now_us, uint64_t now_ms);
void node_page_granted (struct node *n);

/* The later one of 'now_us' and the last reading of the clock that was made for the page. */
uint64_t node_page_now (const struct node *n, uint64_t now_us);

/* Close the page. Afterwards clients make no further ids with it, and this node knows all ids that they made. */
void node_page_close (struct node *n, uint64_t now_us);

/* The granules that this rank may use at 'ms'. These are all, unless a page was spoilt. Lowers '*until_ms' to the time
 * at which the result changes, if that is earlier.
 */
uint64_t node_page_granules (const struct node *n, uint64_t ms, uint64_t *until_ms);

void node_page_work (struct node *n, uint64_t now_us);

/* --- positions: now.c ------------------------------------------------------------------------ */

uint64_t node_report_keep_us (const struct node *n); /* 'keep_us' of struct reports */
void node_watermark_take (struct node *n, uint64_t now_us, const struct report *report);
void node_watermark_work (struct node *n, uint64_t now_us);
void node_watermark_stop (struct node *n);

/* --- what goes up: forward.c ------------------------------------------------------------------------- */

/* Send waiting requests to the parent. If no forward of all requests is under way, all waiting requests are sent.
 * Otherwise newcomers are sent, if no forward of newcomers is under way.
 */
void node_forward_waiting (struct node *n, uint64_t now_us);

/* node_forward_take () processes the ids that answer forward 'tag', node_forward_miss () an error. Both return false if
 * the answer was no longer needed.
 */
bool node_forward_take (struct node *n, uint64_t now_us, uint32_t tag, const struct id_run *run, size_t nruns);
bool node_forward_miss (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

bool node_forward_is_busy (const struct node *n);

/* node_forward_is_overdue () returns whether the answer under way is overdue, so that a rank with a part makes the ids
 * itself. If it is not overdue yet, the function requests node_tick () for the time when it will be.
 * node_forward_give_up () abandons the answer, and delays the next forward.
 */
bool node_forward_is_overdue (struct node *n, uint64_t now_us);
void node_forward_give_up (struct node *n, uint64_t now_us);

/* node_forward_abandon () abandons the answers under way; their ids are skipped. node_forward_review () does so if no
 * requester waits for them any longer.
 */
void node_forward_abandon (struct node *n);
void node_forward_review (struct node *n);

void node_forward_parent (struct node *n, uint64_t now_us); /* the parent was connected or lost */

/* End all forwards, and clear the marks of their requests. */
void node_forward_end (struct node *n);

/* --- ids: ids.c ------------------------------------------------------------------------------------------ */

/* NODE_REFUSED: the request was answered with an error. */
enum node_taken { NODE_REFUSED, NODE_ANSWERED, NODE_WAITS };
enum node_taken node_ids_request (struct node *n, uint64_t now_us, const struct node_request *req);

void node_ids_work (struct node *n, uint64_t now_us);
void node_ids_stop (struct node *n);

#endif /* FLUID_NODE_PRIVATE_H */
