/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watch.h - an instance that is looked at: once a second, and soon after something was logged
 *
 * A look is one survey of the whole tree and questions to WATCH_RANKS ranks at most: larger instances are gone through
 * in turn, but ranks of which something must have changed are asked first.
 */
#ifndef HTTP_LIVE_WATCH_H
#define HTTP_LIVE_WATCH_H

#include <idtree/idtree.h>

#include "http/live/ranks.h"
#include "libutil/logline.h"

#define WATCH_RANKS 256 /* of a look */
#define WATCH_ANSWER_MS 2000.
#define WATCH_SECOND_MS 1000.
#define WATCH_SOON_MS 50.

struct watch;

struct watch_ops {
    void (*looked) (void *arg); /* a look has ended */
    void (*second) (void *arg); /* one is over */
    void (*logged) (void *arg, const struct logline *l);
};

/* It stands until it is begun.  'h' and 'ranks', which it tells, are borrowed.  NULL with errno ENOMEM. */
struct watch *watch_create (idt_t *h, struct ranks *ranks, const struct watch_ops *ops, void *arg);
void watch_destroy (struct watch *w);

/* The first look begins at once.  Neither changes anything where it is so already. */
void watch_begin (struct watch *w);
void watch_end (struct watch *w);

/* --- what is no rank's; borrowed until the next look --------------------------------------------------------- */

uint64_t watch_look (const struct watch *w);           /* how many have ended */
const char *watch_error (const struct watch *w);       /* why the last one failed; NULL: it did not */
const char *watch_instance (const struct watch *w);    /* its name; NULL: it has none, or it is not known */
const json_t *watch_watermark (const struct watch *w); /* NULL: not known */

#endif /* HTTP_LIVE_WATCH_H */
