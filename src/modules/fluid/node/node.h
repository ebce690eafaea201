/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* node.h - one rank of the id service: generates ids, forwards requests, holds leases
 *
 * The node is a core: it has no clock, socket, disk or thread. Its owner passes in the time, the messages that arrive,
 * and whether the parent is connected. The node acts by calling the functions of 'struct node_ops'. So the broker, the
 * unit tests and the simulator run the same code. The node of rank 0 gets leases and the time from the authority beside
 * it (lease/authority.h), every other node from its parent.
 *
 * 1. 'now_us' is CLOCK_BOOTTIME in microseconds. It must be read after the last event, and never be below an earlier
 *    'now_us'.
 * 2. Operations must not call node_ functions, except node_positions (). All node_ functions except node_status () and
 *    node_deadline () may call operations.
 * 3. After each call the owner reads node_deadline () and calls node_tick () at that time. Earlier calls are harmless.
 * 4. Each request that was accepted (node_block (), node_lease_request ()) is answered exactly once, at the latest in
 *    node_stop ().
 */
#ifndef FLUID_NODE_H
#define FLUID_NODE_H

#include <idtree/module.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules/fluid/lease/authority.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/lease/grants.h"
#include "modules/fluid/lease/held.h"
#include "modules/fluid/lease/watermark.h"
#include "modules/fluid/node/lanes.h"
#include "modules/fluid/node/waiting.h"

#define NODE_MAX_COUNT 65536U /* largest count of a request, also of a combined one */

#define NODE_SHARE_OFF 0U  /* neither grants nor requests parts */
#define NODE_SHARE_AUTO 1U /* requests and grants parts by need */

struct node;

enum node_state {
    NODE_IDLE,    /* owns no generator and holds no part of one: forwards requests */
    NODE_FENCED,  /* owns a generator, but holds no box that contains now: forwards requests; at the root they wait */
    NODE_ACTIVE,  /* owns a generator and makes ids */
    NODE_SHARING, /* owns no generator, but holds a part of one: makes ids, and forwards requests that do not fit */
};

struct node_ops {
    /* Answer a request for ids with all its ids, in increasing order, or with an error ('text' may be NULL). */
    void (*reply) (void *arg, void *cookie, const struct id_run *run, size_t nruns);
    void (*fail) (void *arg, void *cookie, int errnum, const char *text);

    /* Ask the parent for 'count' ids above 'after'. The owner later calls node_forwarded () or node_forward_failed ()
     * with the same tag. Returns 0. If the request could not be sent, it returns -1, and the owner calls neither.
     */
    int (*forward) (void *arg, uint32_t tag, uint32_t count, fluid_t after);

    /* Notify the parent that the answers to all forwarded requests are no longer needed. The message may be lost,
     * because it only saves work.
     */
    void (*cancel) (void *arg);

    /* Send a lease request to the parent. The owner later calls node_lease_answered () or node_lease_failed () with the
     * same tag; with tag 0 it calls neither. Returns 0. If the request could not be sent, it returns -1, and the owner
     * calls neither.
     */
    int (*lease_up) (void *arg, uint32_t tag, const struct lease_request *req);

    /* Answer a child's lease request. */
    void (*lease_reply) (void *arg, void *cookie, const struct lease_answer *answer);

    /* Report positions to the parent. The message may be lost. */
    void (*report_up) (void *arg, const struct report *report);

    void (*log) (void *arg, int level, const char *text); /* level as in <syslog.h> */

    /* Called before forward () for each traced request that the forward 'tag' contains. The forward requests 'ids' of
     * its ids, and combines 'requests' requests. May be NULL.
     */
    void (*goes_up) (void *arg, void *cookie, uint32_t tag, uint32_t requests, uint32_t ids);

    /* Return the current CLOCK_BOOTTIME in microseconds. While clients share a page they make ids during a call, too,
     * and their readings of the clock are later than 'now_us' of the call. NULL: no time passes within a call.
     */
    uint64_t (*now_us) (void *arg);
};

struct node_config {
    uint32_t rank;
    uint32_t max_generators;                /* 1 ... 16384: a rank below it owns the generator of its number */
    uint32_t lanes;                         /* generators of this rank (lanes.h); 0: 1 */
    uint32_t size;                          /* ranks of the instance; with lanes, lanes * size <= max_generators */
    char incarnation[IDT_MSG_UUID_LEN + 1]; /* random UUID of this broker process */
    uint64_t lease_ms;                      /* LEASE_MIN_MS ... LEASE_MAX_MS */
    uint64_t max_backlog_ms;                /* a client is refused if its ids would take longer than this to make */
    uint64_t forward_timeout_ms;            /* a request fails if no rank could serve it for this long */
    uint32_t max_waiting;                   /* waiting requests; if more would wait, clients are refused */
    uint32_t share;      /* NODE_SHARE_OFF, NODE_SHARE_AUTO, or the least size that an idle rank requests */
    uint32_t share_keep; /* sequence numbers of 1024 that an owner rank does not grant; at least 16 are kept */
};

/* A request for ids. 'cookie' (not NULL) identifies the request in calls of ops. 'from_broker' marks a child broker's
 * forward: it is not refused because of load (but see EAGAIN below), and its 'after' is trusted. Requesters take turns.
 * The requests of one requester are served in order of arrival.
 */
struct node_request {
    void *cookie;
    uint32_t count;
    fluid_t after; /* all ids of the answer are above it; 0: no bound */
    bool from_broker;
    const char *asker; /* UUID of the requester, borrowed for the call; NULL is like "" */
    bool traced;       /* call ops.goes_up () for it */
    bool others;       /* its user is not the owner; requests of all such users share half of max_waiting */
};

/* 'ops' is borrowed for the node's life. Returns NULL with errno EINVAL (a value of 'config' is out of range) or
 * ENOMEM.
 */
struct node *node_create (const struct node_config *config, const struct node_ops *ops, void *arg);
void node_destroy (struct node *n); /* call node_stop () first */

/* For rank 0, before any other call: take leases, the epoch and the time from 'a', which is borrowed for the node's
 * life. node_tick () notices changes of the authority.
 */
void node_start_root (struct node *n, uint64_t now_us, struct authority *a);

/* Close for good. The node fails all waiting requests, closes the generator, and only then returns the rest of the
 * lease. Later requests fail immediately, and all other calls do nothing.
 */
void node_stop (struct node *n, uint64_t now_us);

/* --- ids ------------------------------------------------------------------------------------ */

/* Serve a request, immediately or later. If the request is refused, ops.fail () is called, no id is made for it, and
 * the function returns false. A request fails with
 *
 *   EINVAL        count is not 1 ... NODE_MAX_COUNT
 *   EAGAIN        one of these:
 *                 - its turns would take longer than max_backlog_ms, or have taken longer than forward_timeout_ms and
 *                   max_backlog_ms together
 *                 - this requester already uses its part of max_waiting (see 'others')
 *                 - 'after' is more than max_backlog_ms ahead of the time here; for a broker, except at rank 0, two
 *                   leases more are allowed
 *                 - the requester is a broker, and 65536 requests wait
 *   EHOSTUNREACH  no rank could make the ids within forward_timeout_ms, or the node is stopped
 *   EOVERFLOW     the 40 bits of time are used up
 *   ENOMEM
 *   EINVAL, EPERM, EPROTO  an ancestor refused the request, or its answer was invalid
 */
bool node_block (struct node *n, uint64_t now_us, const struct node_request *req);

/* Drop all requests for which 'gone' returns true. These are requests of a client that disconnected, or requests that a
 * child canceled. 'gone' may answer such a request, and frees its cookie. This is the exception to rule 4.
 */
void node_cancel (struct node *n, uint64_t now_us, bool (*gone) (void *cookie, void *arg), void *arg);

void node_forwarded (struct node *n, uint64_t now_us, uint32_t tag, const struct id_run *run, size_t nruns);
void node_forward_failed (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

/* --- leases --------------------------------------------------------------------------------- */

/* Handle a child's request. The caller must have checked that it came from the rank in each want, or from an ancestor
 * of that rank. A request for a part is answered by this node; other requests are passed on to rank 0, where the caller
 * passes them to the authority instead. Returns 0; the answer comes with ops.lease_reply (). Returns -1 with errno set
 * if there is no answer:
 *
 *   ENOTSUP       this rank grants no parts: fluid.share=off
 *   EHOSTUNREACH  the node is stopped
 */
int node_lease_request (struct node *n, uint64_t now_us, void *cookie, const struct lease_request *req);
void node_lease_answered (struct node *n, uint64_t now_us, uint32_t tag, const struct lease_answer *answer);
void node_lease_failed (struct node *n, uint64_t now_us, uint32_t tag, int errnum);

/* --- time for other modules --------------------------------------------------------------------- */

/* Time for another module of the same broker, which makes ids of another kind. These ids contain the rank, as FLUIDs
 * contain the generator. No time is granted twice for one rank, even across restarts, and granted time is never
 * returned to the root. FLUIDs are still made in that time.
 */
struct time_grant {
    uint64_t lo_ms; /* instance time: lo_ms <= t < hi_ms */
    uint64_t hi_ms;
    uint64_t clock_us; /* the instance's time now */
    int64_t epoch_ms;  /* in Unix milliseconds */
};

/* Grant the time that follows what was granted last, up to a quarter of a lease from now. 'holder' is the UUID of the
 * module. Returns 0, or -1 with errno set:
 *
 *   EAGAIN   no time is available now
 *   ENOTSUP  this rank owns no generator
 */
int node_grant_time (struct node *n, uint64_t now_us, const char *holder, struct time_grant *time);

/* Report that the last holder of time will use none from 'end_ms' on. The report is ignored if 'holder' is another
 * UUID. If 'end_ms' is below the begin of what the holder was granted in a row, it counts as that begin.
 */
void node_return_time (struct node *n, uint64_t now_us, const char *holder, uint64_t end_ms);

/* --- a page that is shared with clients (doc/design/page.md) --------------------------------------------------- */

struct page;

/* Make ids of 'instance' (a UUID, or "") with the word of 'page', which must be all zero. Clients may then use 'page'
 * and read 'terms', which may be the same object (page_gen_share ()). Both are borrowed until node_stop (), or until
 * node_page_publish () returns false. Returns 0, or -1 with errno set:
 *
 *   ENOTSUP  this rank owns no generator, or a page of it was spoilt
 *   EAGAIN   the epoch is not known yet (no lease request was answered), or the node is stopped, or has a page
 *            already; or a page was spoilt before the module was loaded again, and its lease is not over
 */
int node_page_open (struct node *n, uint64_t now_us, struct page *page, struct page *terms, const char *instance);

/* Write the current terms (end, time of use, offset) to the page. Call it after every other call. 'monotonic_us' is
 * CLOCK_MONOTONIC at the time 'now_us'. Returns whether the node still has a page.
 */
bool node_page_publish (struct node *n, uint64_t now_us, uint64_t monotonic_us);

/* --- the watermark ---------------------------------------------------------------------------- */

/* Process a child's report. */
void node_report (struct node *n, uint64_t now_us, const struct report *report);

/* Join the positions that this node knows (its own and its subtree's) to '*all'. */
void node_positions (struct node *n, uint64_t now_us, struct report *all);

/* --- time and place --------------------------------------------------------------------------- */

void node_parent (struct node *n, uint64_t now_us, bool up);
void node_sample (struct node *n, uint64_t now_us, const struct idt_clock_sample *sample);

/* Report that the clock check (struct clock_check) found that CLOCK_BOOTTIME missed 'off_us' microseconds before
 * 'now_us'. If 'off_us' is below 0, the clock went too far instead. The node makes no id until its parent's time is
 * known again, and none of a time that has passed. At rank 0 call authority_lost_time () instead.
 */
void node_lost_time (struct node *n, uint64_t now_us, int64_t off_us);

/* The estimate of the instance's time that children should use, and its error bound. Returns false while the time is
 * unknown.
 */
bool node_clock (const struct node *n, uint64_t now_us, uint64_t *inst_us, uint64_t *bound_us);

void node_tick (struct node *n, uint64_t now_us);
uint64_t node_deadline (const struct node *n); /* UINT64_MAX: no deadline */

/* --- status and statistics ------------------------------------------------------------------------- */

struct node_stats {
    uint64_t requests;
    uint64_t ids; /* made here */
    uint64_t ids_from_above;
    uint64_t page_ids;      /* made by clients with the page, which is read at least each second */
    uint64_t forwards;      /* combined requests sent to the parent */
    uint64_t combined;      /* requests that were combined with an earlier one */
    uint64_t forwards_lost; /* combined requests that failed, or whose answers came late or were no longer needed */
    struct waiting_stats waiting;
    uint64_t renewals;       /* answers with a box of the rank's generator */
    uint64_t lease_messages; /* lease requests sent to the parent */
    uint64_t parts_received;
    uint64_t parts_granted;
    uint64_t part_messages; /* requests and returns of parts sent to the parent */
};

struct node_status {
    enum node_state state;
    bool owns_generator;
    uint32_t generator;
    bool time_known;
    uint64_t timestamp_ms;
    uint64_t bound_us;     /* largest difference from the root's time */
    struct lease lease;    /* in use, if the state is NODE_ACTIVE or NODE_SHARING */
    uint64_t lease_age_us; /* since the last whole generator was granted; 0: never */
    size_t grants;         /* parts granted and not over */
    uint32_t granted_per_ms;
    uint64_t holds_until_ms;
    bool has_epoch;
    int64_t epoch_ms;
    bool parent_up;
    size_t waiting;
};

void node_status (const struct node *n, uint64_t now_us, struct node_status *status);

/* The ranks that hold a part of this node's box. Returns their number. */
size_t node_granted_to (const struct node *n, uint64_t now_us, uint32_t ranks[GRANTS_MAX]);

struct node_stats *node_stats (struct node *n); /* the caller may set them to 0 */
const char *node_state_name (enum node_state state);

/* --- the handover from a node to the next one on its broker, so that clients do not notice a reload --- */

/* The bytes are for the same process only, because no other host and no later start of the broker reads them. */

/* Call after node_stop (). Returns the handover: the newest id that was answered, the clock, what was granted, and
 * 'more' (at rank 0 from authority_leave (); NULL: nothing). The caller frees it. Returns NULL with errno ENOMEM.
 */
void *node_leave (const struct node *n, const void *more, size_t more_size, size_t *size);

/* Call before node_start_root () and all other calls: continue where the previous node stopped. A handover that cannot
 * be read is ignored. Returns 'more', which lies in 'data', and its size; NULL if there is no such data.
 */
const void *node_remember (struct node *n, const void *data, size_t size, size_t *more_size);

/* --- read access to a node's state for the simulators -------------------------------------------- */

#define NODE_FORWARDS_MAX 2 /* under way at a time */

/* Pointers are borrowed for the node's life, and show its current state. */
struct node_view {
    const struct node_config *config;
    enum node_state state; /* as of the last node_tick () */
    bool stopped;
    bool owner; /* has a generator */
    const struct held *held;
    const struct lanes *lanes;  /* its other generators */
    const struct grants *parts; /* what it granted to children */
    const struct clock *clock;  /* the instance's time here, which may be unknown */
    bool sure_of_time;          /* the time is known, and no missed time is unresolved */
    uint64_t newest_ms;         /* the newest timestamp that its own generator used or skipped; 0: none yet */

    /* The tags of the combined requests that are under way to the parent: the first is for all requests, the second for
     * newcomers. 0: not under way.
     */
    uint32_t forward_tag[NODE_FORWARDS_MAX];
};

struct node_view node_view (const struct node *n);

#endif
