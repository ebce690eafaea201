/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* link.c - what both sides of the overlay share: clocks, and how messages are received and sent */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/overlay/link.h"
#include "libidtree/json.h"
#include "libutil/clock.h"

#define WINDOW_TOTAL ((uint64_t)128 << 20) /* bytes on their way to this broker, over all links */
#define WINDOW_MIN ((uint64_t)256 << 10)   /* smallest number of bytes of one link */
#define WINDOW_MAX ((uint64_t)4 << 20)
#define WINDOW_MESSAGES 9216

void link_start_timer (idt_watcher_t *w, double ms)
{
    idt_timer_watcher_reset (w, ms, 0.);
    idt_watcher_start (w);
}

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

/* Refuse a request, because the broker that sent it does not take its responses. */
static void refuse_slow (struct channel *ch, idt_msg_t *request)
{
    idt_msg_t *msg = idt_msg_has_flag (request, IDT_MSGFLAG_NORESPONSE) ? NULL : idt_msg_respond (request, EXFULL);

    if (msg && idt_msg_set_string (msg, "answers wait for a broker on the way, which does not take them") == 0)
        channel_send (ch, msg);
    idt_msg_unref (msg);
    idt_msg_unref (request);
}

/* The credentials that remain when a message comes from another broker.  A user who is not an owner here does not
 * become one because the other broker says so.  No sender counts as local, and a sender without a user id gets no role.
 */
static struct idt_cred believe (const struct overlay *ov, struct idt_cred said)
{
    uint32_t roles = IDT_ROLE_USER | IDT_ROLE_GROUP;

    if (said.userid == ov->owner)
        roles |= IDT_ROLE_OWNER | IDT_ROLE_BROKER;
    else if (said.userid == 0 && ov->root_owner)
        roles |= IDT_ROLE_OWNER;
    else if (said.userid == IDT_USERID_UNKNOWN)
        roles = IDT_ROLE_NONE;
    return (struct idt_cred){ said.userid, said.rolemask & roles };
}

void link_received (struct overlay *ov, struct peer *from, struct channel *ch, idt_msg_t *msg)
{
    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST && channel_is_slow (ch, msg)) {
        refuse_slow (ch, msg);
        return;
    }
    assert (from->kind == PEER_CHILD || from->kind == PEER_PARENT);
    idt_msg_set_cred (msg, believe (ov, idt_msg_cred (msg)));
    ov->conf.ops->message (ov->conf.arg, from, msg);
}

/* All links of a broker share WINDOW_TOTAL.  A wire takes more messages than a window. */
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

int link_send (struct overlay *ov, struct wire *w, const char *identity, const struct channel *ch,
               const struct peer *to, const idt_msg_t *msg)
{
    int rc = wire_send (w, identity, msg, ch && ch->version >= CHANNEL_WHOLE ? WIRE_WHOLE : WIRE_PARTS);

    if (rc == 0 && to && idt_msg_type (msg) & (IDT_MSGTYPE_EVENT | IDT_MSGTYPE_CONTROL))
        router_show (ov->conf.router, ROUTER_TO, to, msg); /* events and control messages do not pass the router */
    if (rc < 0 && errno == EAGAIN)
        ov->blocked = true;
    return rc;
}

bool link_is_silent (const struct overlay *ov, double heard, const struct wire *w)
{
    double silence_s = link_now () - heard;

    return silence_s > ov->timeout && (wire_is_dry (w) || silence_s > 2 * ov->timeout);
}

json_t *link_describe (uint32_t rank, const struct wire *w, const struct channel *ch)
{
    struct channel_stats s = channel_stats (ch);

    return json_pack ("{s:I s:s s:I s:I s:I s:I s:I s:I s:I}", "rank", (json_int_t)rank, "by",
                      wire_kind_name (wire_kind (w)), "answers", (json_int_t)s.answers, "events", (json_int_t)s.events,
                      "asks", (json_int_t)s.asks, "bytes", (json_int_t)s.bytes, "refused", (json_int_t)s.refused,
                      "failed", (json_int_t)s.failed, "dropped", (json_int_t)s.dropped);
}

void link_add_load (const struct channel *ch, struct overlay_load *load)
{
    struct channel_stats s = channel_stats (ch);

    load->links++;
    load->messages += s.answers + s.events + s.asks;
    load->bytes += s.bytes;
    load->longest_bytes = s.bytes > load->longest_bytes ? s.bytes : load->longest_bytes;
    load->refused += s.refused;
    load->failed += s.failed;
}
