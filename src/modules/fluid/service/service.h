/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - the fluid service: one object, whose code is in these files
 *
 *   fluid.c      start and end, the timer, the overlay; the table of topics
 *   service.c    the clocks, the next deadline, the log, the check of a request's rank, the file in which a rank
 *                remembers its instance
 *   ids.c        fluid.block, generate, cancel, disconnect
 *   trace.c      fluid.trace
 *   lease.c      fluid.lease, fluid.time
 *   page.c       the page that processes of this host share
 *   watermark.c  fluid.position, watermark
 *   info.c       fluid.info, stats-get, stats-clear, fluid.metrics
 *   root.c       rank 0: the authority, with its disk and its wall clock
 *
 * The node holds a reference to the message of each request that waits in it (the node's cookie). The function that
 * answers the request drops the reference.
 */
#ifndef FLUID_SERVICE_H
#define FLUID_SERVICE_H

#include <idtree/idtree.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "libjsonview/jsonview.h"
#include "libmodule/quota.h"
#include "libmodule/module.h"
#include "libutil/queue/fifo.h"
#include "modules/fluid/lease/clock.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/service/fluid_options.h"
#include "modules/fluid/service/horizon_store.h"

#define SERVICE_STOPPING "the fluid service of this broker is stopping" /* text of the EHOSTUNREACH answers */
#define SERVICE_NEVER UINT64_MAX                                        /* no deadline */

/* --- what each broker did for a request for ids: fluid.trace (doc/design/trace.md) --------------- */

/* Request:
 *
 *     {"count": n,            1 ... 65536; default 1
 *      "after": "DECIMAL",    all ids of the answer are above it; optional
 *      "traceparent": s}      W3C Trace Context: the span of the requester; made up if it is missing or malformed
 *
 * Answer:
 *
 *     {"runs": [["F58", n], ...], "trace_id": s, "trace": [hop, ...]}
 *
 * A hop is what one broker did for the request. The first hop is of the broker that answers; the hops of the ancestors
 * that it asked follow.
 *
 *     {"rank": r, "state": s,       of the node, when it answered
 *      "span": s, "parent": s,      16 hexadecimal digits each
 *      "start_us": "DECIMAL",       arrival, CLOCK_REALTIME of that host, Unix microseconds
 *      "took_us": n,                from the arrival to the answer
 *      "up_us": n,                  of took_us: how long a part of it was under way to the parent
 *      "waited_for": s,             why it waited before: "" it did not; "turn" earlier requests, or the next
 *                                   millisecond; "lease" a lease; "forward" the answer to an earlier forward;
 *                                   "parent" a parent that is connected
 *      "forwards": n,               requests to the parent that contained a part of this one
 *      "combined": n,               requests in the largest of these, including this one; 0: not forwarded
 *      "ids": n, "ids_from_above": n}
 *
 * Requests that were forwarded together share the hops of the ancestors. In the answer to each of these requests, the
 * first of these hops has the request's own span as its parent.
 */

#define TRACE_HOPS 64 /* the most hops of an answer; further hops are left out */
#define TRACE_ID_LEN 32
#define TRACE_SPAN_LEN 16
#define TRACE_PARENT_SIZE 56 /* "00-TRACE-SPAN-01" with its NUL */

/* The requester's trace and span. */
struct trace_wish {
    char trace[TRACE_ID_LEN + 1];
    char parent[TRACE_SPAN_LEN + 1];
};

struct traced;

/* All zero initially, except 'quota' (quota_init ()). When the quota QUOTA_TRACES is used up, traced requests of guests
 * are refused. Those of the instance owner and of brokers are then served without a trace.
 */
struct traces {
    LIST_HEAD (, traced) list;
    size_t count;
    struct quota quota;
    bool refused; /* the parent does not know fluid.trace */
};

/* --- the service -------------------------------------------------------------------------------- */

struct page_door;

struct service {
    idt_t *h;
    struct fluid_options options;
    struct node *node;
    struct upcalls ups;
    struct rate_limit *rate_limit; /* for the ids of guests */
    struct jv_reader reader;
    bool running; /* the start succeeded */
    struct traces traces;

    /* the timer: fluid.c, service.c */
    struct clock_check clock_check;
    bool has_ticks;         /* the processor's counter has a constant rate and never stops */
    struct page_door *page; /* NULL: this rank offers no page */
    uint64_t armed_us;      /* the timer's time; SERVICE_NEVER: not armed */
    idt_watcher_t *timer;

    /* rank 0: root.c */
    struct authority *authority; /* NULL on other ranks, and before the start */
    struct horizon_store *store;
    idt_watcher_t *store_watcher;
    idt_watcher_t *wall_timer;
    idt_error_t store_why;    /* why the last write failed; empty: it succeeded */
    struct lease_record last; /* the record of a clean stop */
    bool stored;              /* 'last' is stored */
    bool logged_foreign_lease;
    uint64_t lease_requests; /* received from children */

    /* the instance as this rank remembers it: service.c */
    struct memory *memory; /* the write under way, or NULL */
    bool logged_memory;    /* a failed write was logged */

    /* the watermark: watermark.c */
    uint64_t mark_ms;               /* at rank 0: the watermark when it was last read */
    uint64_t mark_moved_ms;         /* CLOCK_MONOTONIC when a read last saw it advance; 0: never read */
    struct fifo waiting;            /* requests that share the request under way to the parent */
    struct quota_rule waiting_rule; /* from fluid.max-waiting */
    struct quota waiting_quota;     /* per user */
    bool asked;
};

/* --- time: service.c ---------------------------------------------------------------------------------- */

/* Return CLOCK_BOOTTIME in microseconds; each call into the node needs this time. The function compares the clock with
 * the host's other clocks. If the clock missed time or jumped (struct clock_check), it first notifies the node, or at
 * rank 0 the authority.
 */
uint64_t service_now_us (struct service *sv);

/* Like service_now_us (), but notifies neither the node nor the authority. It is for the start of rank 0, before the
 * authority exists: the caller passes '*off_us' and '*sure_us' to authority_create ().
 */
uint64_t service_look (struct service *sv, int64_t *off_us, int64_t *sure_us);

/* Set the timer to the next deadline. Every function that calls the node or the authority ends with this call. */
void service_set_timer (struct service *sv);

/* --- callbacks of the node (struct node_ops) and of the authority ------------------------------------------- */

void service_log_cb (void *arg, int level, const char *text);

void service_reply_cb (void *arg, void *cookie, const struct id_run *run, size_t nruns);
void service_fail_cb (void *arg, void *cookie, int errnum, const char *text);
int service_forward_up_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after);
void service_goes_up_cb (void *arg, void *cookie, uint32_t tag, uint32_t requests, uint32_t ids);
void service_cancel_up_cb (void *arg);
int service_lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req);
void service_lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer);
void service_report_up_cb (void *arg, const struct report *report);

/* service_remember () is called when a lease was granted. It writes the instance to the statedir, if there is one.
 * service_forget () is called at the end of the module. It waits at most one second for the write under way.
 */
void service_remember (struct service *sv, const struct lease_answer *answer);
void service_forget (struct service *sv);

/* --- the rank that a request names: service.c -------------------------------------------------------------- */

/* Check that a request about 'rank' came from that rank or from an ancestor of it. The child connection over which the
 * request came decides that. A request of this broker itself is refused. Returns 0, or -1 with errno EPERM and a
 * sentence in 'errp'.
 */
int service_check_rank (idt_t *h, const idt_msg_t *msg, uint32_t rank, idt_error_t *errp);

/* --- handlers of requests, named after their topics --------------------------------------------------------- */

void service_block_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_generate_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_trace_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_cancel_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_lease_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_time_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_position_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_watermark_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_info_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* --- requests for ids: ids.c ---------------------------------------------------------------------------- */

/* Pass a request for ids to the node. The request gets its answer now or later. If 'wish' is not NULL, the request is
 * traced.
 */
void service_ask (struct service *sv, const idt_msg_t *msg, uint32_t count, fluid_t after,
                  const struct trace_wish *wish);

/* --- traced requests: trace.c ----------------------------------------------------------------------------- */

/* Start to record what happens to a request. Returns 1 if the request is recorded, or 0 if it is not recorded and is
 * served without a trace. Returns -1 with errno EAGAIN and 'errp' filled if the user has as many traced requests as
 * QUOTA_TRACES allows.
 */
int service_trace_begin (struct service *sv, const idt_msg_t *msg, const struct trace_wish *wish, uint64_t now_us,
                         idt_error_t *errp);

/* Answer fluid.trace with its ids and with the hops that were recorded. */
void service_trace_reply (struct service *sv, const idt_msg_t *msg, const struct id_run *run, size_t nruns);
void service_trace_forget (struct service *sv, const idt_msg_t *msg); /* no-op if not traced */

/* Send forward 'tag' to the parent as fluid.trace, under the trace of one of its requests. Returns NULL with errno set:
 * ENOENT if no request of the forward is traced, or if the parent does not know fluid.trace.
 */
idt_future_t *service_trace_up (struct service *sv, uint32_t tag, uint32_t count, fluid_t after);

/* Read the answer to service_trace_up (). Its hops are added to every traced request of the forward. Returns the runs
 * as wire_get_runs () does, but always in an array that the caller frees. Returns NULL with errno set if it fails:
 * ENOSYS if the parent does not know fluid.trace.
 */
struct id_run *service_trace_came (struct service *sv, uint32_t tag, idt_future_t *f, size_t *n);

/* Report that a forward that was sent without a trace has ended. 'came' says whether the parent has answered with ids.
 */
void service_trace_ended (struct service *sv, uint32_t tag, bool came);

/* --- the watermark: watermark.c ---------------------------------------------------------------------- */

/* At rank 0: read the watermark and note when it advances. The watermark is read each second, so that an answer can
 * report for how long it has not advanced. Returns false if the authority cannot determine a watermark.
 */
bool service_watermark_look (struct service *sv, uint64_t now_us);

void service_watermark_start (struct service *sv); /* after the options are read */
void service_watermark_stop (struct service *sv);  /* at the end of the module: fail all requests that wait */

/* --- rank 0: root.c ------------------------------------------------------------------------------------ */

/* Open the store and start the authority beside the node. Blocks on the disk. 'past' (of 'size' bytes) is what
 * service_leave_root () returned in the previous life, or NULL. Returns 0, or -1 with errno set and a sentence in
 * 'errp'; the caller must call service_stop_root () in both cases.
 */
int service_start_root (struct service *sv, const void *past, size_t size, idt_error_t *errp);

/* Close the authority, store its last record, and close the store. Must be called after the node has stopped. Blocks on
 * the disk.
 */
void service_stop_root (struct service *sv);

/* Return the authority's handover for the next life on this broker, to be freed by the caller, and its size in '*size';
 * NULL if it has no handover.
 */
void *service_leave_root (const struct service *sv, size_t *size);

/* Answer a child's request for leases. */
void service_answer_lease (struct service *sv, const idt_msg_t *msg, const struct lease_request *req);

/* Describe what keeps rank 0 from granting leases, or will soon keep it from that. The text is "good" if nothing does.
 */
void service_describe_store (const struct service *sv, const struct authority_status *status, char *buf, size_t size);

/* --- a rank gives processes of its host the page by which they make ids themselves (doc/design/page.md) --- */

/* A rank listens at RUNDIR/page-RANK if it owns a generator and has a socket of its own. It makes the page at the first
 * request.
 */

/* Listen, if fluid.attach allows it. Returns 0, or -1 with errno set and a sentence in 'errp'. If this rank offers no
 * page, the function returns 0 and '*door' is NULL.
 */
int page_door_open (struct service *sv, struct page_door **door, idt_error_t *errp);

/* Write the present terms into the page. */
void page_door_publish (struct page_door *door);

/* Stop listening. The page stays until page_door_destroy (). */
void page_door_shut (struct page_door *door);
void page_door_destroy (struct page_door *door); /* after node_stop (); NULL is fine */

#endif
