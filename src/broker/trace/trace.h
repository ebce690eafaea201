/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* trace.h - messages as they pass this broker, told to who asked (doc/design/trace.md)
 *
 *     broker.trace   stream: what peers send to the broker, and are given by it
 *     module.trace   the same of modules alone, as Flux's clients ask and read it
 *     overlay.trace  the same of links alone, as they do
 *
 * Request of a stream, of which all members may be missing:
 *
 *     {"typemask": i,     enum idt_msgtype bits; all
 *      "topic_glob": s,   as fnmatch (3); all.  A control message has the topic "heartbeat 0": its type, its status
 *      "full": b,         with payloads and texts of errors; without
 *      "names": [s],      of modules ("broker": its own services); none or empty: all
 *      "nodeid": i,       of who is at the other end of a link; -1: all
 *      "peers": [s],      "client", "module", "broker", "child", "parent"; all.  broker.trace only
 *      "window": i,       bytes of lines that may be unread, TRACE_WINDOW_MAX at most
 *      "id": i}           names the stream to broker.trace-more among those of one connection; 0
 *
 * A line is a JSON object:
 *
 *     {"timestamp": f, "prefix": "rx" | "tx", "peer": s, "name": s, "rank": i, "type": i, "topic": s,
 *      "payload_size": i, "errnum": i, "errstr": s, "payload": any, "data": s}
 *
 * "prefix" is said of the broker (rx: from that peer), in module.trace of the module.  "name" is a module's, or the
 * UUID of a client; "rank" is -1 but for links.  A payload is told where it is JSON of up to TRACE_PAYLOAD_MAX bytes,
 * of any other one the first TRACE_DATA_MAX bytes as hexadecimal digits in "data".
 *
 * Who gave a window says what was read: broker.trace-more {"id": i, "bytes": i}, without an answer.  What finds no room
 * in the window is lost, and {"timestamp": f, "lost": n} tells how much, before the next line or after that message.
 * Who gave none (Flux's clients) may have as much between two turns of the broker in which nothing waits.
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

/* Serve on the broker's own handle.  Both are borrowed.  NULL with errno set. */
struct trace *trace_create (idt_t *h, struct router *r);
void trace_destroy (struct trace *t); /* NULL is fine */

/* A client is gone, whose disconnect message this is. */
void trace_disconnect (struct trace *t, const idt_msg_t *msg);

/* A turn of the broker after which nothing waits for it. */
void trace_turn (struct trace *t);

#endif /* BROKER_TRACE_H */
