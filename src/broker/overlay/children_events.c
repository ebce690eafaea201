/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* children_events.c - the position of each child in the events
 *
 * No events are queued for a child.  It has a position in the events that this broker keeps, which advances when an
 * event was sent completely.
 */
#include "config.h"

#include <stdio.h>

#include "broker/overlay/children_private.h"

/* The position sent to the child is the last event that was sent to it; later ones are still to be sent. */
void child_put_position (const struct child *c, struct heartbeat *hb)
{
    hb->seq = (uint32_t)c->event;
    snprintf (hb->stream, sizeof (hb->stream), "%s", event_stream (c->down->ov->conf.event));
}

/* A heartbeat that is not a response, and so has no time. */
static void send_position (struct child *c)
{
    struct heartbeat hb = { 0 };
    idt_msg_t *msg;

    channel_forget_events (&c->channel);
    c->event = event_seq (c->down->ov->conf.event);
    child_put_position (c, &hb);
    if ((msg = control_heartbeat_down (&hb)))
        child_send (c, msg);
    idt_msg_unref (msg);
}

void overlay_event_position (struct overlay *ov)
{
    for (uint32_t i = 0; i < ov->down->total; i++)
        if (child_is_online (ov->down->children[i]))
            send_position (ov->down->children[i]);
}

void overlay_event_down (struct overlay *ov)
{
    for (uint32_t i = 0; i < ov->down->total; i++) {
        channel_pump (&ov->down->children[i]->channel);
        child_check (ov->down->children[i]);
    }
}

/* A child misses events that are no longer kept.  It notices that with the next event. */
const idt_msg_t *child_event (void *arg)
{
    struct child *c = arg;
    struct event *event = c->down->ov->conf.event;
    const idt_msg_t *msg = event_after (event, c->event, &c->event_next);

    if (!msg)
        c->event = event_seq (event);
    return msg;
}

void child_event_sent (void *arg)
{
    struct child *c = arg;

    c->event = c->event_next;
}
