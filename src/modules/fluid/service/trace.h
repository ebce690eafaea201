/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.h - what each broker did for a request for ids: fluid.trace (doc/design/trace.md)
 *
 * Request:
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
 *      "up_us": n,                  of that, how long a part of the request was under way to the parent
 *      "waited_for": s,             why it waited before: "" it did not; "turn" earlier requests, or the next
 *                                   millisecond; "lease" a lease; "forward" the answer to an earlier forward;
 *                                   "parent" a parent that is connected
 *      "forwards": n,               requests to the parent that contained a part of this one
 *      "combined": n,               requests in the largest of these, with this one; 0: none was forwarded
 *      "ids": n, "ids_from_above": n}
 *
 * Requests that were forwarded together share the hops of the ancestors; in each answer the parent span there is the
 * requester's own span.
 */
#ifndef FLUID_TRACE_H
#define FLUID_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "libmodule/quota.h"

#define TRACE_HOPS 64 /* in an answer; further hops are left out */
#define TRACE_ID_LEN 32
#define TRACE_SPAN_LEN 16
#define TRACE_PARENT_SIZE 56 /* "00-TRACE-SPAN-01" with its NUL */

/* The requester's trace and span. */
struct trace_wish {
    char trace[TRACE_ID_LEN + 1];
    char parent[TRACE_SPAN_LEN + 1];
};

struct traced;

/* Must be zero initially. Traced requests of guests beyond QUOTA_TRACES are refused. Requests of the instance owner and
 * of brokers beyond it are served without a trace.
 */
struct traces {
    LIST_HEAD (, traced) list;
    size_t count;
    struct quota quota;
    bool refused; /* the parent does not know fluid.trace */
};

#endif /* FLUID_TRACE_H */
