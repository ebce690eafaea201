/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* service.h - what the parts of the service share: one object in several subjects
 *
 *   fluid.c      life, the timer, the overlay; the table of topics
 *   service.c    the clocks, the next deadline, the log, whom a request speaks for
 *   ids.c        fluid.block, generate, cancel, disconnect
 *   trace.c      fluid.trace
 *   lease.c      fluid.lease
 *   lend.c       fluid.lend
 *   share.c      fluid.share
 *   page.c       the page that processes of this host share
 *   memory.c     what a rank remembers of its instance
 *   watermark.c  fluid.position, watermark
 *   info.c       fluid.info, stats-get, stats-clear
 *   metrics.c    fluid.metrics
 *   root.c       rank 0: the authority, with its disk and its wall clock
 *
 * A request that the node has is a reference to its message (the node's cookie); whoever answers it drops that.
 */
#ifndef FLUID_SERVICE_H
#define FLUID_SERVICE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <idtree/idtree.h>

#include "libmodule/rate_limit.h"
#include "libmodule/respond.h"
#include "libmodule/upcall.h"
#include "libutil/queue/fifo.h"
#include "libjsonview/jsonview.h"
#include "modules/fluid/node/node.h"
#include "modules/fluid/service/fluid_options.h"
#include "modules/fluid/service/page.h"
#include "modules/fluid/service/horizon_store.h"
#include "modules/fluid/service/trace.h"
#include "modules/fluid/lease/clock_check.h"

#define SERVICE_STOPPING "the fluid service of this broker is stopping" /* the text of EHOSTUNREACH then */
#define SERVICE_NEVER UINT64_MAX                                        /* a time that does not come */

struct service {
    idt_t *h;
    struct fluid_options options;
    struct node *node;
    struct upcalls ups;
    struct rate_limit *ration; /* of guests */
    struct jv_reader reader;
    bool running; /* its start is over, and went well */
    struct traces traces;

    /* the timer: fluid.c, service.c */
    struct clock_check witness;
    bool has_ticks;         /* the processor's counter is one that can be relied on */
    struct page_door *page; /* NULL: this rank gives none */
    uint64_t armed_us;      /* what the timer is set to; SERVICE_NEVER: it is not */
    idt_watcher_t *timer;

    /* rank 0: root.c */
    struct authority *authority; /* NULL: this is another rank, or it has not started */
    struct horizon_store *store;
    idt_watcher_t *store_watcher;
    idt_watcher_t *wall_timer;
    idt_error_t store_why;    /* the last store failed; empty: it did not */
    struct lease_record last; /* what a clean stop stores */
    bool stored;              /* and has stored */
    bool told_foreign_lease;
    uint64_t lease_requests; /* of children */

    /* what this rank remembers: memory.c */
    struct memory *memory; /* is being written; NULL: none is */
    bool told_memory;      /* that nothing can be remembered */

    /* the watermark: watermark.c */
    uint64_t mark_ms;               /* rank 0's, when it was looked at last */
    uint64_t mark_moved_ms;         /* CLOCK_MONOTONIC of its last move that was seen; 0: nobody looked yet */
    struct fifo waiting;            /* requests that the answer to the one under way is for */
    struct quota_rule waiting_rule; /* by fluid.max-waiting */
    struct quota waiting_quota;     /* of each user */
    bool asked;
};

/* --- time: service.c ---------------------------------------------------------------------------------- */

/* CLOCK_BOOTTIME, for whatever is told to the node or asked of it.  It is compared with the host's other clocks, and
 * the node, or rank 0's authority, is told first where it missed time or jumped (witness.h).
 */
uint64_t service_now_us (struct service *sv);

/* The same at rank 0's start, where there is no authority yet that could be told: what it is to be told. */
uint64_t service_look (struct service *sv, int64_t *off_us, int64_t *sure_us);

/* Set the timer to the next deadline.  Every way into the node, and the authority, ends here. */
void service_set_timer (struct service *sv);

/* --- what the node wants (struct node_ops), and the authority ------------------------------------------------ */

void service_log_cb (void *arg, int level, const char *text);

void service_reply_cb (void *arg, void *cookie, const struct run *run, size_t nruns);
void service_fail_cb (void *arg, void *cookie, int errnum, const char *text);
int service_forward_up_cb (void *arg, uint32_t tag, uint32_t count, fluid_t after);
void service_goes_up_cb (void *arg, void *cookie, uint32_t tag, uint32_t requests, uint32_t ids);
void service_cancel_up_cb (void *arg);
int service_lease_up_cb (void *arg, uint32_t tag, const struct lease_request *req);
void service_lease_reply_cb (void *arg, void *cookie, const struct lease_answer *answer);
void service_report_up_cb (void *arg, const struct report *report);
int service_share_up_cb (void *arg, const struct share_want *want);

/* A lease was given: remember the instance, where there is a statedir.  / End: wait for what is being written, for some
 * time.
 */
void service_remember (struct service *sv, const struct lease_answer *answer);
void service_forget (struct service *sv);

/* --- whom a request speaks for: service.c ------------------------------------------------------------------ */

/* What a broker says of 'rank' is believed from that rank, or from one above it, by the connection that it came over;
 * not from this broker.  Returns 0, or -1 with errno EPERM and a sentence in 'errp'.
 */
int service_check_rank (idt_t *h, const idt_msg_t *msg, uint32_t rank, idt_error_t *errp);

/* --- handlers of requests, named after their topics --------------------------------------------------------- */

void service_block_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_generate_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_trace_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_cancel_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_lease_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_lend_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_share_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_position_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_watermark_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_info_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_metrics_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_stats_get_cb (idt_t *h, const idt_msg_t *msg, void *arg);
void service_stats_clear_cb (idt_t *h, const idt_msg_t *msg, void *arg);

/* --- requests for ids: ids.c ---------------------------------------------------------------------------- */

/* Ask the node for what a request asks for; with 'wish' its way is noted.  It is answered. */
void service_ask (struct service *sv, const idt_msg_t *msg, uint32_t count, fluid_t after,
                  const struct trace_wish *wish);

/* --- traced requests: trace.c ----------------------------------------------------------------------------- */

/* Note the way of a request from now.  Returns 1: it is noted; 0: it is not, and is served all the same; -1 with errno
 * EAGAIN and 'errp' filled: its user has as many as may be.
 */
int service_trace_begin (struct service *sv, const idt_msg_t *msg, const struct trace_wish *wish, uint64_t now_us,
                         idt_error_t *errp);

/* Answer fluid.trace with its ids and its way, as far as that was noted. */
void service_trace_reply (struct service *sv, const idt_msg_t *msg, const struct run *run, size_t nruns);
void service_trace_forget (struct service *sv, const idt_msg_t *msg); /* nothing where it is none */

/* Send what is to go up with the wish of one of its requests.  NULL with errno set, also where none of them has one or
 * the parent does not know of it (ENOENT).
 */
idt_future_t *service_trace_up (struct service *sv, uint32_t tag, uint32_t count, fluid_t after);

/* Its answer: the way that it went belongs to all that were in it.  Returns the runs, as wire_get_runs (); NULL with
 * errno set: ENOSYS, the parent does not know of traces.
 */
struct run *service_trace_came (struct service *sv, uint32_t tag, idt_future_t *f, size_t *n);

/* The answer to a forward came without a way, with ids or not. */
void service_trace_ended (struct service *sv, uint32_t tag, bool came);

/* --- the watermark: watermark.c ---------------------------------------------------------------------- */

/* End: fail all that wait. */
/* Look whether rank 0's has moved: each second, so that how long it stands is known when somebody asks.  Returns false
 * where it cannot be told.
 */
bool service_watermark_look (struct service *sv, uint64_t now_us);

void service_watermark_start (struct service *sv); /* when the options are read */
void service_watermark_stop (struct service *sv);

/* --- rank 0: root.c ------------------------------------------------------------------------------------ */

/* Open the store and start the authority, and the node beside it.  Blocks on the disk.  Returns 0, or -1 with errno set
 * and a sentence in 'errp'; service_stop_root () follows in either case.  'past' is what service_leave_root () told.
 */
int service_start_root (struct service *sv, const void *past, size_t size, idt_error_t *errp);

/* When the node has stopped: close the authority and the store, with its last word in it.  Blocks on the disk. */
void service_stop_root (struct service *sv);

/* For the next life on this broker.  NULL: nothing can be left. */
void *service_leave_root (const struct service *sv, size_t *size);

/* A child wants leases. */
void service_answer_lease (struct service *sv, const idt_msg_t *msg, const struct lease_request *req);

/* What keeps the root from giving leases, or may soon; "good": nothing. */
void service_describe_store (const struct service *sv, const struct authority_status *status, char *buf, size_t size);

#endif /* FLUID_SERVICE_H */
