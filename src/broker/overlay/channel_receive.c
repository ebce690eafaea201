/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* channel_receive.c - receive messages of a link: check credit, join parts, pass messages on */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmsg/message.h"
#include "libutil/errprintf.h"
#include "broker/overlay/channel_private.h"
#include "broker/overlay/control.h"

static int violation (struct channel *ch, const char *why)
{
    channel_break (ch, why);
    return errset (EPROTO);
}

void channel_grant (struct channel *ch)
{
    uint8_t payload[WINDOW_GRANT_SIZE];
    size_t size = window_grant (&ch->window, payload);
    idt_msg_t *msg;

    if (size == 0)
        return;
    if ((msg = control_encode (CONTROL_CREDIT, 0, NULL)) && idt_msg_set_payload (msg, payload, size) == 0)
        channel_send (ch, msg);
    else
        channel_break (ch, "out of memory");
    idt_msg_unref (msg);
}

/* Grow the buffer by doubling it.  The kernel moves that much memory without a copy. */
static int make_room (struct piece *p, size_t size)
{
    size_t room = p->size * 2 > size ? p->size * 2 : size;
    struct idt_msg *msg = p->msg ? msg_grow (p->msg, room) : msg_alloc (NULL, room, 0);

    if (!msg)
        return -1;
    p->msg = msg;
    p->size = room;
    return 0;
}

static int append (struct piece *p, const void *data, size_t size)
{
    if (p->done + size > CHANNEL_MAX_MESSAGE)
        return errset (EPROTO);
    if ((!p->msg || p->done + size > p->size) && make_room (p, p->done + size) < 0)
        return -1;
    memcpy (msg_bytes (p->msg) + p->done, data, size);
    p->done += size;
    return 0;
}

/* Parse the received bytes as a message.  Returns NULL if they are malformed. */
static idt_msg_t *take_whole (struct piece *p)
{
    idt_msg_t *msg = p->msg;

    p->msg = NULL;
    if (!msg_parse (msg, p->done))
        return msg;
    idt_msg_unref (msg);
    return NULL;
}

static int part_received (struct channel *ch, const idt_msg_t *part)
{
    uint32_t status = idt_msg_control_status (part);
    enum link_class c = status & CONTROL_PART_CLASS;
    struct piece *p = &ch->in[c];
    const void *data;
    idt_msg_t *msg;
    size_t size;

    if (status & CONTROL_PART_FIRST)
        channel_piece_clear (p);
    if (idt_msg_payload (part, &data, &size) < 0 || (p->done == 0 && !(status & CONTROL_PART_FIRST)))
        return violation (ch, "it sent a part without the first part");
    if (append (p, data, size) < 0)
        return violation (ch, errno == ENOMEM ? "out of memory" : "it sent a message that is too long");
    if (!(status & CONTROL_PART_LAST))
        return 0;
    msg = take_whole (p);
    channel_piece_clear (p);
    if (!msg || channel_class_of (msg) != c) {
        idt_msg_unref (msg);
        return violation (ch, "it sent a malformed message");
    }
    ch->ops->message (ch->arg, msg);
    return 0;
}

static int control_received (struct channel *ch, const idt_msg_t *msg)
{
    const void *data;
    size_t size;

    switch (idt_msg_control_type (msg)) {
    case CONTROL_CREDIT:
        if (idt_msg_payload (msg, &data, &size) < 0 || window_granted (&ch->window, data, size) < 0)
            return violation (ch, "it revoked credit");
        channel_pump (ch);
        return 0;
    case CONTROL_PART:
        return part_received (ch, msg);
    default:
        ch->ops->control (ch->arg, msg);
        return 0;
    }
}

/* The class under which the sender counted a message, or CLASS_COUNT if the message has none. */
static enum link_class class_on_wire (const idt_msg_t *msg)
{
    uint32_t c;

    if (idt_msg_type (msg) != IDT_MSGTYPE_CONTROL || idt_msg_control_type (msg) != CONTROL_PART)
        return channel_class_of (msg);
    c = idt_msg_control_status (msg) & CONTROL_PART_CLASS;
    return c > CLASS_CONTROL && c < CLASS_COUNT ? c : CLASS_COUNT;
}

int channel_received (struct channel *ch, idt_msg_t *msg)
{
    enum link_class c = class_on_wire (msg);
    int rc = 0;

    if (ch->broken) { /* an earlier message is lost; a stream must not miss just that one */
        idt_msg_unref (msg);
        return errset (EPROTO);
    }
    if (ch->holding && c != CLASS_CONTROL && fifo_push (&ch->held, msg) == 0)
        return 0;
    if (c == CLASS_COUNT || window_received (&ch->window, c, idt_msg_encode_size (msg)) < 0) {
        idt_msg_unref (msg);
        return violation (ch, "it sent more than its credit");
    }
    channel_grant (ch);
    if (idt_msg_type (msg) != IDT_MSGTYPE_CONTROL) {
        ch->ops->message (ch->arg, msg);
        return 0;
    }
    rc = control_received (ch, msg);
    idt_msg_unref (msg);
    return rc;
}

void channel_hold (struct channel *ch)
{
    ch->holding = true;
}

void channel_release (struct channel *ch)
{
    const idt_msg_t *msg;

    ch->holding = false;
    while ((msg = fifo_pop (&ch->held)))
        channel_received (ch, (idt_msg_t *)msg);
}
