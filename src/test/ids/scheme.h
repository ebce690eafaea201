/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* scheme.h - the functions and limits that a kind of id provides for the conformance suite
 *
 * An id is given as its stored bytes, which are compared by memcmp (). A generator reads the time from the clock that
 * it was created with, and never waits.
 */
#ifndef TESTIDS_SCHEME_H
#define TESTIDS_SCHEME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHEME_SIZE_MAX 16 /* most bytes of an id */
#define SCHEME_TEXT_MAX 64 /* most bytes of an id's text, with a NUL */

/* The clock of generators. The suite sets it while generators read it. */
struct scheme_clock {
    _Atomic int64_t now_ns; /* since the Unix epoch */
};

struct scheme {
    const char *name;
    size_t size;         /* bytes of an id */
    int64_t step_ns;     /* length of a step of time */
    int64_t begin_ns;    /* the first valid time, since the Unix epoch */
    int64_t end_ns;      /* the first time that is no longer valid */
    unsigned per_step;   /* ids that a generator makes in one step; 0: no limit */
    bool ordered;        /* the ids of a thread increase as long as the clock does not go back */
    bool always_ordered; /* the ids of a thread increase even if the clock goes back */
    bool canonical;      /* an id has only one text */

    void *(*create) (struct scheme_clock *clock);
    void (*destroy) (void *gen);

    /* Make an id; may be called by any thread. Returns 0, or -1 if no id can be made at this time. */
    int (*make) (void *gen, uint8_t *id);

    /* 'encode' writes a text that sorts like the bytes; any bytes are a valid id. 'decode' reads it, and returns 0, or
     * -1 with 'id' unchanged.
     */
    void (*encode) (const uint8_t *id, char *text);
    int (*decode) (const char *text, size_t len, uint8_t *id);
};

extern const struct scheme scheme_fluid, scheme_flax_random, scheme_flax_increasing, scheme_sno, scheme_uid_local,
    scheme_uid_global;

#endif /* TESTIDS_SCHEME_H */
