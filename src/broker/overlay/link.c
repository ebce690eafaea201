/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* link.c - what both sides of the overlay share: clocks, options of sockets, how messages come in and go out */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "broker/overlay/link.h"
#include "libidtree/json_build.h"
#include "libzmqutil/zmsg.h"
#include "libutil/clock.h"

#define HANDSHAKE_MS 5000                  /* for a connection to show its key */
#define WINDOW_TOTAL ((uint64_t)128 << 20) /* bytes on their way to this broker, over all links */
#define WINDOW_MIN ((uint64_t)256 << 10)   /* of one */
#define WINDOW_MAX ((uint64_t)4 << 20)
#define WINDOW_MESSAGES 9216

double link_now (void)
{
    return clock_s (CLOCK_MONOTONIC_COARSE);
}

uint64_t link_boot_us (void)
{
    return clock_us (CLOCK_BOOTTIME);
}

bool link_read_clock (struct overlay *ov, uint64_t *now_us, uint64_t *bound_us)
{
    *now_us = 0;
    *bound_us = 0;
    return ov->clock && ov->clock->read_clock (ov->clock_arg, now_us, bound_us);
}

/* Nothing else is done for it. */
static void refuse_slow (struct channel *ch, idt_msg_t *request)
{
    idt_msg_t *msg = idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE) ? NULL : idt_msg_respond (request, EXFULL);

    if (msg && idt_msg_set_string (msg, "answers wait for a broker on the way, which does not take them") == 0)
        channel_send (ch, msg);
    idt_msg_unref (msg);
    idt_msg_unref (request);
}

void link_received (struct overlay *ov, struct peer *from, struct channel *ch, idt_msg_t *msg)
{
    struct idt_cred cred = idt_msg_cred (msg);

    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && channel_is_slow (ch, msg)) {
        refuse_slow (ch, msg);
        return;
    }
    cred.rolemask &= ~(uint32_t)IDT_ROLE_LOCAL;
    if (cred.userid != ov->owner) /* guests are nobody's owner, whoever lets them in */
        cred.rolemask &= ~(uint32_t)(IDT_ROLE_OWNER | IDT_ROLE_BROKER);
    idt_msg_set_cred (msg, cred);
    ov->conf.ops->message (ov->conf.arg, from, msg);
}

/* All links of a broker share WINDOW_TOTAL; ZeroMQ's own limit is above what they let through. */
int link_init_channel (const struct overlay *ov, struct channel *ch, const struct channel_ops *ops, void *arg)
{
    uint64_t bytes = WINDOW_TOTAL / (topo_child_count (ov->conf.topo, ov->conf.rank) + 1);
    uint32_t messages = ov->hwm < WINDOW_MESSAGES ? ov->hwm : WINDOW_MESSAGES;

    if (bytes > WINDOW_MAX)
        bytes = WINDOW_MAX;
    else if (bytes < WINDOW_MIN)
        bytes = WINDOW_MIN;
    return channel_init (ch, ops, arg, ov->max_queue, bytes, messages);
}

int link_send (struct overlay *ov, struct zwatcher *zs, const char *identity, const idt_msg_t *msg)
{
    int rc;

    zwatcher_touch (zs);
    if ((rc = msg_zmq_send (zwatcher_socket (zs), identity, msg)) < 0 && errno == EAGAIN)
        ov->blocked = true;
    return rc;
}

idt_msg_t *link_add_json (idt_msg_t *msg, json_t *o)
{
    char *text = o ? json_dumps (o, JSON_COMPACT) : NULL;

    json_decref (o);
    if (msg && (!text || idt_msg_set_string (msg, text) < 0)) {
        idt_msg_unref (msg);
        msg = NULL;
    }
    free (text);
    return msg;
}

json_t *link_describe (uint32_t rank, const struct channel *ch)
{
    struct channel_stats s = channel_stats (ch);

    return json_pack ("{s:I s:I s:I s:I s:I s:I s:I s:I}", "rank", (json_int_t)rank, "answers", (json_int_t)s.answers,
                      "events", (json_int_t)s.events, "asks", (json_int_t)s.asks, "bytes", (json_int_t)s.bytes,
                      "refused", (json_int_t)s.refused, "failed", (json_int_t)s.failed, "dropped",
                      (json_int_t)s.dropped);
}

/* ZeroMQ's own beat closes the connection to a process that is stopped, and so frees what waits for it: a ROUTER has no
 * other way to let go of one peer.  Ours tells of the reactor.
 */
static int set_patience (const struct overlay *ov, struct zwatcher *zs)
{
    int timeout_ms = ov->timeout * 1E3, handshake_ms = timeout_ms < HANDSHAKE_MS ? timeout_ms : HANDSHAKE_MS;

    if (zwatcher_set (zs, ZMQ_HEARTBEAT_IVL, timeout_ms / 5) < 0
        || zwatcher_set (zs, ZMQ_HEARTBEAT_TIMEOUT, timeout_ms) < 0
        || zwatcher_set (zs, ZMQ_HANDSHAKE_IVL, handshake_ms) < 0)
        return -1;
    return 0;
}

int link_setup_socket (const struct overlay *ov, struct zwatcher *zs)
{
    const char *key = ov->conf.secret_key;
    int64_t max = LINK_MAX_FRAME;

    if (zwatcher_set (zs, ZMQ_SNDHWM, ov->hwm) < 0 || zwatcher_set (zs, ZMQ_RCVHWM, ov->hwm) < 0
        || zwatcher_set (zs, ZMQ_IPV6, 1) < 0 || set_patience (ov, zs) < 0
        || zmq_setsockopt (zwatcher_socket (zs), ZMQ_CURVE_SECRETKEY, key, strlen (key)) < 0
        || zmq_setsockopt (zwatcher_socket (zs), ZMQ_MAXMSGSIZE, &max, sizeof (max)) < 0)
        return -1;
    return 0;
}

bool link_same_version (const char *a, const char *b)
{
    size_t len = strspn (a, "0123456789");

    return len > 0 && strspn (b, "0123456789") == len && strncmp (a, b, len) == 0;
}
