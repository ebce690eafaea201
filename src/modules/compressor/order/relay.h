/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* relay.h - combines elements that a rank sends up
 *
 * An element contains ranges of one client, one child or one session of this rank. At most one request is under way;
 * elements that arrive meanwhile wait, and are sent together in the next request. Each accepted element is answered
 * exactly once, through its reply function, in relay_answered (), relay_expire () or relay_destroy ().
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

/* The result of an element. errnum 0: it is ordered, and 'seq' is the newest range of its document. Borrowed. */
struct relay_result {
    int64_t seq;
    int errnum;
    const char *text; /* may be NULL */
};

/* The function may add elements. */
typedef void (*relay_reply_f) (void *arg, size_t index, const struct relay_result *result);

struct relay_element {
    TAILQ_ENTRY (relay_element) link; /* used by the relay */
    relay_reply_f reply;
    void *arg; /* the caller may set it to NULL later: then 'reply' is not called */
    size_t index;
    char *text;           /* JSON of the element, malloced */
    size_t nranges;       /* ranges in the text */
    uint64_t deadline_ms; /* RELAY_NEVER: no deadline */
};

/* 'limit' is the most ranges that may be held. Returns NULL with errno ENOMEM. */
struct relay *relay_create (size_t limit);

/* Answers all elements with ECANCELED. NULL is allowed; errno is kept. */
void relay_destroy (struct relay *r);

/* Add a copy of 'element'; its text is taken over in any case. Returns the copy, borrowed until it is answered, or NULL
 * with errno set, and then the element is not answered:
 *   EAGAIN  more than 'limit' ranges would be held; an element of any size is accepted if no other is held
 *   ENOMEM  out of memory, or the text is NULL
 */
struct relay_element *relay_add_new (struct relay *r, struct relay_element element);

/* relay_next () puts waiting elements under way and returns the first of them; relay_following () returns the one after
 * 'element'. Both return NULL if there is no further one; relay_next () also if elements are under way already. The
 * elements are borrowed until they are answered or have failed.
 */
const struct relay_element *relay_next (struct relay *r);
const struct relay_element *relay_following (const struct relay_element *element);

/* The number of elements under way. */
size_t relay_under_way (const struct relay *r);

/* Report the results of the elements under way, one for each, in order. */
void relay_answered (struct relay *r, const struct relay_result *results);

/* Report that the request failed. Its elements wait again. */
void relay_failed (struct relay *r);

/* Answer waiting elements whose deadline is at or before 'now_ms' with EHOSTUNREACH. */
void relay_expire (struct relay *r, uint64_t now_ms);

struct relay_stats {
    size_t elements; /* waiting or under way */
    size_t ranges;
    uint64_t batches; /* requests sent */
    uint64_t sent;    /* elements sent in them */
};
struct relay_stats relay_stats (const struct relay *r);

#endif /* COMPRESSOR_RELAY_H */
