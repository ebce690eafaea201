/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* relay.h - a rank: which elements go up together
 *
 * An element is what one client, one child or one session of this rank has to be ordered.  At most one request is under
 * way; elements that come meanwhile wait, and go together in the next.  Each element that was taken in is answered
 * exactly once, through its reply function: from relay_answered (), relay_expire () or relay_destroy ().
 */
#ifndef COMPRESSOR_RELAY_H
#define COMPRESSOR_RELAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define RELAY_BATCH_RANGES 4096
#define RELAY_BATCH_BYTES ((size_t)1 << 20)
#define RELAY_NEVER UINT64_MAX

struct relay;

/* What became of an element: errnum is 0 and seq the newest range of its document, or it failed.  Borrowed. */
struct relay_result {
    int64_t seq;
    int errnum;
    const char *text; /* may be NULL */
};

/* It may add elements. */
typedef void (*relay_reply_f) (void *arg, size_t index, const struct relay_result *result);

struct relay_element {
    TAILQ_ENTRY (relay_element) link; /* the relay's */
    relay_reply_f reply;
    void *arg; /* who adds it may set it to NULL later: then nobody is told */
    size_t index;
    char *text;           /* JSON of the element, malloced */
    size_t nranges;       /* in it */
    uint64_t deadline_ms; /* RELAY_NEVER: it waits for ever */
};

/* 'limit': ranges that may wait.  NULL with errno ENOMEM. */
struct relay *relay_create (size_t limit);

/* Answer all that is there with ECANCELED.  NULL is fine; keeps errno. */
void relay_destroy (struct relay *r);

/* Have a copy of 'element' ordered; its text is stolen in any case.  Returns it, borrowed until it is answered, or NULL
 * with errno set, and no answer follows:
 *   EAGAIN  'limit' ranges wait already
 *   ENOMEM  also where the text is NULL
 */
struct relay_element *relay_add_new (struct relay *r, struct relay_element element);

/* The first of the elements to send now, or the one that follows; they are under way then.  NULL: there are none, or
 * others are under way.  Borrowed until they are answered or have failed.
 */
const struct relay_element *relay_next (struct relay *r);
const struct relay_element *relay_following (const struct relay_element *element);

/* How many are under way. */
size_t relay_under_way (const struct relay *r);

/* What was under way is answered: one result for each element, in order. */
void relay_answered (struct relay *r, const struct relay_result *results);

/* What was under way failed as a whole, and waits again. */
void relay_failed (struct relay *r);

/* Fail with EHOSTUNREACH what waits and whose deadline has come. */
void relay_expire (struct relay *r, uint64_t now_ms);

struct relay_stats {
    size_t elements; /* waiting and under way, now */
    size_t ranges;
    uint64_t batches; /* sent */
    uint64_t sent;    /* elements in them */
};
struct relay_stats relay_stats (const struct relay *r);

#endif /* COMPRESSOR_RELAY_H */
