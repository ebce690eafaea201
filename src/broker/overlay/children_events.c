/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* children_events.c - where each child is in the events
 *
 * Nothing is queued for a child: it has a place in the events that this broker keeps, which moves when one was sent whole.
 */
#include "config.h"

#include <stdio.h>

#include "broker/overlay/children_private.h"

/* What was sent to this child, not what we have: the rest is on its way. */
void child_put_position (const struct child *c, struct heartbeat *hb)
{
    struct overlay_conf *conf = &c->down->env->conf;
    const char *stream;
    uint64_t seq;

    conf->ops->position (conf->arg, &stream, &seq);
    hb->seq = (uint32_t)c->event;
    snprintf (hb->stream, sizeof (hb->stream), "%s", stream);
}

/* A beat that answers none: it carries no time. */
static void send_position (struct child *c, uint64_t seq)
{
    struct heartbeat hb = { 0 };
    idt_msg_t *msg;

    channel_forget_events (&c->channel);
    c->event = seq;
    child_put_position (c, &hb);
    if ((msg = control_heartbeat_down (&hb)))
        child_send (c, msg);
    idt_msg_unref (msg);
}

void children_send_position (struct children *down)
{
    struct overlay_conf *conf = &down->env->conf;
    const char *stream;
    uint64_t seq;

    conf->ops->position (conf->arg, &stream, &seq);
    for (uint32_t i = 0; i < down->total; i++)
        if (child_is_online (down->children[i]))
            send_position (down->children[i], seq);
}

void children_send_events (struct children *down)
{
    for (uint32_t i = 0; i < down->total; i++) {
        channel_pump (&down->children[i]->channel);
        child_check (down->children[i]);
    }
}

/* What is kept no more it misses, and finds out by the next one. */
const idt_msg_t *child_event (void *arg)
{
    struct child *c = arg;
    struct overlay_conf *conf = &c->down->env->conf;
    const idt_msg_t *msg = conf->ops->event_after (conf->arg, c->event, &c->event_next);
    const char *stream;

    if (!msg)
        conf->ops->position (conf->arg, &stream, &c->event);
    return msg;
}

void child_event_sent (void *arg)
{
    struct child *c = arg;

    c->event = c->event_next;
}
