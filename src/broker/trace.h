/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.h - sends the messages that pass this broker to clients that trace them (doc/design/trace.md)
 *
 *     broker.trace   stream: messages that peers send to the broker and get from it
 *     module.trace   the same, only messages of modules, in the form that Flux's clients expect
 *     overlay.trace  the same, only messages of links, in the form that Flux's clients expect
 *
 * All members of the request are optional:
 *
 *     {"typemask": i,     enum idt_msgtype bits; default: all
 *      "topic_glob": s,   as in fnmatch (3); default: all. The topic of a control message is its type and its
 *                         status, such as "heartbeat 0"
 *      "full": b,         with payloads and error texts; default: without these
 *      "names": [s],      names of modules ("broker": its own services); not set or empty: all
 *      "nodeid": i,       rank at the other end of a link; -1: all
 *      "peers": [s],      "client", "module", "broker", "absent" (a handover that waits for its module), "child",
 *                         "parent"; default: all that the service shows
 *      "window": i,       bytes of lines that may be unread, at most TRACE_WINDOW_MAX
 *      "id": i}           names the stream in broker.trace-more, among the streams of one connection; default 0
 *
 * A line is a JSON object:
 *
 *     {"timestamp": f, "prefix": "rx" | "tx", "peer": s, "name": s, "rank": i, "type": i, "topic": s,
 *      "payload_size": i, "errnum": i, "errstr": s, "payload": any, "data": s}
 *
 * "prefix" is the direction as the broker sees it (rx: from the peer), but in module.trace as the module sees it.
 * "name" is the name of a module or the UUID of another peer. "rank" is -1 except for links. "payload" is JSON of up to
 * TRACE_PAYLOAD_MAX bytes; of any other payload "data" has the first TRACE_DATA_MAX bytes in hexadecimal digits.
 *
 * A client with a window reports the bytes that it has read: broker.trace-more {"id": i, "bytes": i}. Lines that do not
 * fit into the window are lost. Before the next line, or after broker.trace-more, that client gets {"timestamp": f,
 * "lost": n} with the number of lost lines. A client without a window (Flux's clients) may get TRACE_WINDOW bytes of
 * lines. The count begins again after each turn of the broker in which no message is left waiting. Its lost lines are
 * not reported.
 *
 * Errors: EPROTO, ENOSPC (TRACE_MAX streams).
 */
#ifndef BROKER_TRACE_H
#define BROKER_TRACE_H

#include <idtree/handle.h>

#include "broker/route/router.h"

struct trace;

#define TRACE_MAX 32
#define TRACE_WINDOW ((uint64_t)256 << 10)
#define TRACE_WINDOW_MAX ((uint64_t)4 << 20)
#define TRACE_PAYLOAD_MAX ((size_t)64 << 10)
#define TRACE_DATA_MAX ((size_t)64)

/* Serve on the broker's own handle. Both arguments are borrowed. NULL with errno set. */
struct trace *trace_create (idt_t *h, struct router *r);
void trace_destroy (struct trace *t); /* NULL is fine */

/* Remove the streams of the client that sent this disconnect message. */
void trace_disconnect (struct trace *t, const idt_msg_t *msg);

/* Call this after a turn of the broker in which no message is left waiting. */
void trace_turn (struct trace *t);

#endif /* BROKER_TRACE_H */
