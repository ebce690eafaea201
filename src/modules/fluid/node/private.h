/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* private.h - what the node's parts share: one object in several subjects
 *
 *   node.c            the state, the clock; when to do what
 *   node/ids.c        requests for ids: taken, served here, given up
 *   node/forward.c    what goes up, combined
 *   node/lease.c      leases
 *   node/lessor.c     who gives them: the parent, or the authority beside us
 *   node/watermark.c  positions
 *   past.c            what it leaves to the next one
 */
#ifndef FLUID_NODE_PRIVATE_H
#define FLUID_NODE_PRIVATE_H

#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/lessee.h"
#include "modules/fluid/lease/lease.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/node/past.h"
#include "modules/fluid/node/waiting.h"
#include "modules/fluid/lease/relay.h"
#include "modules/fluid/lease/watermark.h"

#define NEVER UINT64_MAX
#define TIME_IS_OVER "the 40 bits of time since the instance's epoch are used up" /* the text of EOVERFLOW */

#define FOR_NEWCOMERS 64U /* ids of a millisecond, and of a forward for newcomers */

/* A combined request that may be on its way up. */
struct forward {
    bool busy;
    uint32_t tag; /* of the last one sent: answers to others are not wanted any more */
    uint32_t count;
    fluid_t after;
    struct pendings shares; /* who gets what of the answer, in order */
    uint64_t retry_us;      /* not before */
    uint64_t backoff_us;
};

/* Who gives us leases, and with them the time: the parent, or at rank 0 the authority beside us. */
struct lessor_ops {
    bool (*is_up) (const struct node *n);

    /* As lease_up () of struct node_ops. */
    int (*ask) (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_request *req);

    void (*hear) (struct node *n, uint64_t now_us); /* what has changed there */
    const char *(*excuse) (const struct node *n);   /* to those who waited: why nothing is made here */
};

struct lessor {
    const struct lessor_ops *ops;
    struct authority *authority; /* NULL: it is the parent */
    struct authority_news heard; /* last */
};

struct node {
    struct node_config config;
    const struct node_ops *ops;
    void *arg;
    bool owner; /* of a generator */
    bool stopped;
    bool parent_up;
    struct clock *clock;    /* our own, or the authority's */
    struct clock own_clock; /* which follows the parent's */
    bool doubt;             /* our clock missed time: nothing is made until the parent's is known again */
    uint64_t doubt_us;      /* since when */

    /* ids: node/ids.c, node/forward.c */
    struct fluid_gen gen;
    struct range cur;   /* the range that 'gen' was given; empty: none */
    uint64_t cursor_ms; /* newest timestamp that 'gen' used */
    fluid_t last_id;    /* newest id answered here, whoever made it */
    struct queue queue;
    bool unjudged;            /* some came before the time was known */
    struct forward forward;   /* of all that waits */
    struct forward newcomers; /* beside it, of those who ask for little and have nothing under way */
    uint32_t forward_tag;     /* the last one given */
    bool has_newcomers;       /* there may be some */

    /* leases: node/lease.c, node/lessor.c */
    struct lessor lessor;
    struct lessee lessee;
    struct relay *relay;
    uint32_t own_tag; /* of the lease request that carried our want last */
    struct {
        uint32_t tag;
        uint64_t us;
    } sent[16];             /* when the last lease requests were sent: at tag % 16 */
    uint64_t last_child_us; /* when a child asked last */
    uint64_t root_lease_ms; /* the root's fluid.lease, as far as is known */
    bool has_epoch;
    int64_t epoch_ms;

    /* loans: node/lend.c */
    struct range lent; /* the last loan; its end is that of all loans */
    char borrower[IDT_MSG_UUID_LEN + 1];

    /* the watermark: node/watermark.c */
    struct reports *reports; /* of our children */
    uint64_t report_us;      /* when the next report is due */
    bool reporting;          /* the last one spoke for someone, or there is news */

    enum node_state state; /* as last seen by node_tick () */
    uint64_t deadline_us;
    struct node_stats stats;
};

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

/* The lessor of all that are not told of another. */
extern const struct lessor_ops node_lessor_parent;

/* Do what is due.  Waking times are set with node_wake (). */
void node_lease_work (struct node *n, uint64_t now_us);
void node_ids_work (struct node *n, uint64_t now_us);
void node_watermark_work (struct node *n, uint64_t now_us);

/* End: answer all that waits. */
void node_ids_stop (struct node *n);
void node_lease_stop (struct node *n, uint64_t now_us);
void node_watermark_stop (struct node *n);

/* The parent came or went. */
void node_forward_parent (struct node *n, uint64_t now_us);
void node_lease_parent (struct node *n, uint64_t now_us);

/* Send up what waits: all, if nothing is under way; else newcomers, if none of theirs is. */
void node_forward_waiting (struct node *n, uint64_t now_us);

/* Do without the answer that is under way: ids in it are skipped.  / Do so if nobody waits for it any more. */
void node_forward_abandon (struct node *n);
void node_forward_review (struct node *n);

/* The forwards are over: take their marks off. */
void node_forward_end (struct node *n);

/* The first millisecond at which a request for ids above 'after' may be served here. */
uint64_t node_ids_floor_ms (const struct node *n, fluid_t after);

/* Ids up to 'last', made above, are answered: our own go on above, and our clock is not behind them. */
void node_ids_follow (struct node *n, uint64_t now_us, fluid_t last);

/* No id is made of a time before now any more, for a request that waits neither. */
void node_ids_close_past (struct node *n, uint64_t now_us);

/* A lease request was answered, whoever answered it. */
void node_lease_take (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer);

/* Nothing that was given is used any more: it is not to be trusted. */
void node_lease_fence (struct node *n);

/* The parent's clock was read. */
void node_time (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample);

/* Answer a request that waits, with all its ids or with an error ('text' may be NULL). */
void node_ids_leave_complete (struct node *n, uint64_t now_us, struct pending *p);
void node_ids_leave_failed (struct node *n, struct pending *p, int errnum, const char *text);

/* No id below this is made, or leaves, here any more, whatever is held or will be; it never goes back. */
uint64_t node_position_ms (const struct node *n, uint64_t now_us);

/* For reports_create (): how long a child may be silent. */
uint64_t node_report_keep_us (const struct node *n);

/* For relay_create (). */
void node_relay_reply_cb (void *arg, uint64_t now_us, void *cookie, uint64_t received_us,
                          const struct lease_grant *grant, size_t ngrant);

#endif /* FLUID_NODE_PRIVATE_H */
