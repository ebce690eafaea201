/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* events.h - the events of a broker: connects route/event, which decides, with the overlay and with clients (event.*)
 */
#ifndef BROKER_EVENTS_H
#define BROKER_EVENTS_H

#include <idtree/idtree.h>

#include "broker/base/log.h"
#include "broker/overlay/overlay.h"
#include "broker/route/event.h"
#include "broker/route/router.h"

struct broker_events {
    struct event *core;
    uint32_t rank;
    struct router *router;
    struct log *log;
    struct overlay *overlay;
    idt_t *h; /* the broker's own; 'h' and 'overlay' are set by events_serve () */
};

/* Make the core. The members 'rank', 'router' and 'log' must be set. Returns 0, or -1 with errno set and 'errp' filled.
 */
int events_init (struct broker_events *ev, const char *uuid, struct attrs *attrs, const struct topo *topo,
                 idt_error_t *errp);
void events_fini (struct broker_events *ev);

/* Answer the requests event.* on 'h', the broker's own handle. Returns 0, or -1 with errno set. */
int events_serve (struct broker_events *ev, struct overlay *overlay, idt_t *h);

/* A peer has sent an event (steals the reference). */
void events_take_new (struct broker_events *ev, struct peer *from, idt_msg_t *msg);

#endif /* BROKER_EVENTS_H */
