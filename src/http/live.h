/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* live.h - GET /v1/tree and /v1/events: an instance as it is, for many readers
 *
 * The instance is looked at while there are readers, and LIVE_AFTER_S after the last one; all share that.
 */
#ifndef HTTP_LIVE_H
#define HTTP_LIVE_H

#include "http/server.h"

#define LIVE_READERS 1000 /* of events */
#define LIVE_AFTER_S 10.

struct MHD_Response;

/* 'show_log': lines of the log are told.  NULL with errno ENOMEM. */
struct live *live_create (struct server *s, bool show_log);
void live_destroy (struct live *l); /* all readers have left */

void live_tree (struct live *l, struct exchange *x);
void live_events (struct live *l, struct exchange *x);

/* For the server: what is read of an exchange that has a reader; NULL without memory.  And when it is over, whether it
 * had one or not.
 */
struct MHD_Response *live_response_new (struct exchange *x);
void live_leave (struct live *l, struct exchange *x);

/* All readers' events end. */
void live_end (struct live *l);

#endif /* HTTP_LIVE_H */
