/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tree_watch.h - an instance that is looked at: once a second, and soon after something was logged
 *
 * A look is one survey of the whole tree and questions to TREE_WATCH_RANKS ranks at most: larger instances are gone
 * through in turn, but ranks of which something must have changed are asked first.
 */
#ifndef HTTP_LIVE_TREE_WATCH_H
#define HTTP_LIVE_TREE_WATCH_H

#include <idtree/idtree.h>

#include "http/live/ranks.h"
#include "libutil/logline.h"

#define TREE_WATCH_RANKS 256 /* of a look */
#define TREE_WATCH_ANSWER_MS 2000.
#define TREE_WATCH_SECOND_MS 1000.
#define TREE_WATCH_SOON_MS 50.

struct tree_watch;

struct tree_watch_ops {
    void (*looked) (void *arg); /* a look has ended */
    void (*second) (void *arg); /* one is over */
    void (*logged) (void *arg, const struct logline *l);
};

/* It stands until it is begun.  'h' and 'ranks', which it tells, are borrowed.  NULL with errno ENOMEM. */
struct tree_watch *tree_watch_create (idt_t *h, struct live_ranks *ranks, const struct tree_watch_ops *ops, void *arg);
void tree_watch_destroy (struct tree_watch *w);

/* The first look begins at once.  Neither changes anything where it is so already. */
void tree_watch_begin (struct tree_watch *w);
void tree_watch_end (struct tree_watch *w);

/* --- what is no rank's; borrowed until the next look --------------------------------------------------------- */

uint64_t tree_watch_look (const struct tree_watch *w);           /* how many have ended */
const char *tree_watch_error (const struct tree_watch *w);       /* why the last one failed; NULL: it did not */
const char *tree_watch_instance (const struct tree_watch *w);    /* its name; NULL: it has none, or it is not known */
const json_t *tree_watch_watermark (const struct tree_watch *w); /* NULL: not known */

#endif /* HTTP_LIVE_TREE_WATCH_H */
