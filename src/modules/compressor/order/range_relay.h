/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* range_relay.h - combines elements that a rank sends up
 *
 * An element contains ranges that came from one client, one child or one session of this rank. At most one request is
 * under way; elements that arrive meanwhile wait, and are sent together in the next request. Each accepted element is
 * answered exactly once, through its reply function, in range_relay_answered (), range_relay_expire () or
 * range_relay_destroy ().
 */
#ifndef COMPRESSOR_RANGE_RELAY_H
#define COMPRESSOR_RANGE_RELAY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define RANGE_RELAY_BATCH_RANGES 4096
#define RANGE_RELAY_BATCH_BYTES ((size_t)1 << 20)
#define RANGE_RELAY_NEVER UINT64_MAX

struct range_relay;

/* The result of an element. If 'errnum' is 0, all ranges of the element are ordered, and 'seq' is the newest range of
 * its document. Borrowed.
 */
struct range_relay_result {
    int64_t seq;
    int errnum;
    const char *text; /* may be NULL */
};

/* Gets the result of the element 'index'. The function may add elements. */
typedef void (*range_relay_reply_f) (void *arg, size_t index, const struct range_relay_result *result);

struct range_relay_element {
    TAILQ_ENTRY (range_relay_element) link; /* used by the relay */
    range_relay_reply_f reply;
    void *arg; /* the caller may set 'arg' to NULL later: then 'reply' is not called */
    size_t index;
    char *text;           /* JSON of the element, malloced */
    size_t nranges;       /* ranges in the text */
    uint64_t deadline_ms; /* RANGE_RELAY_NEVER: no deadline */
};

/* 'limit' is the most ranges that may be held. Returns NULL with errno ENOMEM. */
struct range_relay *range_relay_create (size_t limit);

/* Answers all elements with ECANCELED. NULL is allowed; errno is kept. */
void range_relay_destroy (struct range_relay *r);

/* Add a copy of 'element'; its text is taken over in any case. Returns the copy, which is borrowed until it is
 * answered. Returns NULL with errno set if it fails; such an element is not answered:
 *   EAGAIN  more than 'limit' ranges would be held; an element of any size is accepted if no other is held
 *   ENOMEM  out of memory, or the text is NULL
 */
struct range_relay_element *range_relay_add_new (struct range_relay *r, struct range_relay_element element);

/* range_relay_next () puts waiting elements under way, and returns the first of them. It returns NULL if no element
 * waits, or if elements are under way already. range_relay_following () returns the element after 'element', or NULL.
 * The elements are borrowed until they are answered or have failed.
 */
const struct range_relay_element *range_relay_next (struct range_relay *r);
const struct range_relay_element *range_relay_following (const struct range_relay_element *element);

/* The number of elements under way. */
size_t range_relay_under_way (const struct range_relay *r);

/* Report the results of the elements under way, one for each, in order. */
void range_relay_answered (struct range_relay *r, const struct range_relay_result *results);

/* Report that the request failed. Its elements wait again. */
void range_relay_failed (struct range_relay *r);

/* Answer waiting elements whose deadline is at or before 'now_ms' with EHOSTUNREACH. */
void range_relay_expire (struct range_relay *r, uint64_t now_ms);

struct range_relay_stats {
    size_t elements; /* waiting or under way */
    size_t ranges;
    uint64_t batches; /* requests sent */
    uint64_t sent;    /* elements sent in them */
};
struct range_relay_stats range_relay_stats (const struct range_relay *r);

#endif /* COMPRESSOR_RANGE_RELAY_H */
