/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* live.h - GET /v1/tree and /v1/events: the current state of an instance for many readers
 *
 * The instance is polled while there are readers, and for LIVE_AFTER_S seconds after the last reader left. All readers
 * share the polls.
 */
#ifndef HTTP_LIVE_LIVE_H
#define HTTP_LIVE_LIVE_H

#include "http/server/server.h"

#define LIVE_READERS 1000 /* most readers of events at a time */
#define LIVE_AFTER_S 10.

/* 'h' is borrowed. 'show_log': whether readers get the lines of the log. Returns NULL with errno ENOMEM. */
struct live_feed *live_create (idt_t *h, bool show_log);
void live_destroy (struct live_feed *l); /* after all readers have left */

/* Each of these answers the request. */
void live_tree (struct live_feed *l, struct exchange *x);
void live_events (struct live_feed *l, struct exchange *x);

#endif /* HTTP_LIVE_LIVE_H */
