/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.h - the way of a request for ids: fluid.trace (doc/design/trace.md)
 *
 * Request:
 *
 *     {"count": n,            1 ... 65536; 1
 *      "after": "DECIMAL",    all ids of the answer are above; none
 *      "traceparent": s}      W3C Trace Context: the span that asks; made up where it is missing or malformed
 *
 * Answer:
 *
 *     {"runs": [["F58", n], ...], "trace_id": s, "trace": [hop, ...]}
 *
 * A hop is what one broker did for it: that of who answers, then those above, which it brought along.
 *
 *     {"rank": r, "state": s,       of the node, when it answered
 *      "span": s, "parent": s,      16 hexadecimal digits each
 *      "start_us": "DECIMAL",       CLOCK_REALTIME of that host, Unix microseconds, when it came
 *      "took_us": n,                until the answer
 *      "up_us": n,                  of that, while something of it was under way to the parent
 *      "waited_for": s,             what the rest was spent on before: "" nothing, "turn" those before it, or the next
 *                                   millisecond, "lease" a range of time, "forward" the answer to others' request,
 *                                   "parent" one that is there
 *      "forwards": n,               requests to the parent with something of it
 *      "combined": n,               requests in the largest of these, this one included; 0: none went up
 *      "ids": n, "ids_from_above": n}
 *
 * Requests that went up together share the hops above; there the span that asked is each one's own.
 */
#ifndef FLUID_TRACE_H
#define FLUID_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "libmodule/quota.h"

#define TRACE_HOPS 64 /* in an answer; what is more is left out */
#define TRACE_ID_LEN 32
#define TRACE_SPAN_LEN 16
#define TRACE_PARENT_SIZE 56 /* "00-TRACE-SPAN-01" with its NUL */

/* Who asks. */
struct trace_wish {
    char trace[TRACE_ID_LEN + 1];
    char parent[TRACE_SPAN_LEN + 1];
};

struct traced;

/* All zero at first.  Requests beyond QUOTA_TRACES are refused; the owner's and brokers' are served without. */
struct traces {
    LIST_HEAD (, traced) list;
    size_t count;
    struct quota quota;
    bool refused; /* the parent does not know of them */
};

#endif /* FLUID_TRACE_H */
