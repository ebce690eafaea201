/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tree_watch.h - poll an instance once a second, and soon after a log line
 *
 * A poll requests the metrics of the whole tree, and sends further requests to at most TREE_WATCH_RANKS ranks. In
 * larger instances the ranks take turns, but ranks that have probably changed come first.
 */
#ifndef HTTP_LIVE_TREE_WATCH_H
#define HTTP_LIVE_TREE_WATCH_H

#include <idtree/idtree.h>

#include "http/live/ranks.h"
#include "libutil/text.h"

#define TREE_WATCH_RANKS 256 /* most ranks that a poll sends requests to */
#define TREE_WATCH_ANSWER_MS 2000.
#define TREE_WATCH_SECOND_MS 1000.
#define TREE_WATCH_SOON_MS 50.

struct tree_watch;

struct tree_watch_ops {
    void (*looked) (void *arg); /* a poll has ended */
    void (*second) (void *arg); /* a second has passed */
    void (*logged) (void *arg, const struct logline *l);
};

/* The watch does nothing until tree_watch_begin (). 'ranks' gets the answers. 'h' and 'ranks' are borrowed. Returns
 * NULL with errno ENOMEM.
 */
struct tree_watch *tree_watch_create (idt_t *h, struct live_ranks *ranks, const struct tree_watch_ops *ops, void *arg);
void tree_watch_destroy (struct tree_watch *w);

/* Start and stop polling. The first poll begins immediately. A second call of the same function has no effect. */
void tree_watch_begin (struct tree_watch *w);
void tree_watch_end (struct tree_watch *w);

/* Data about the instance as a whole; borrowed until the next poll. */
struct tree_news {
    uint64_t looks;    /* how many polls have ended */
    char error[200];   /* why the last poll failed; "": it did not fail */
    char *instance;    /* the instance's name; NULL: it has no name, or the name is not known */
    json_t *watermark; /* NULL: not known */
    json_t *role;      /* the answer to root.get (broker/root/role_pg.h); NULL: root.store is not set, or not known */
};
const struct tree_news *tree_watch_news (const struct tree_watch *w);

#endif /* HTTP_LIVE_TREE_WATCH_H */
