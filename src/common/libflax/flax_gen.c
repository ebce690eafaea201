/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_gen.c - the generator: random ids, or strictly increasing ids
 *
 * Invariant of FLAX_INCREASING: (newest.ms, newest.random) only grows, under 'lock'. A child process begins in a
 * millisecond that its parent had not reached, with its own random bits. In the parent's millisecond both would count
 * up from the same number.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#ifdef HAVE_SYS_SINGLE_THREADED_H
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
#define SINGLE_THREADED 0
#endif

#include "flax_layout.h"
#include "flax_random.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

struct flax_gen {
    pthread_mutex_t lock; /* guards all members below except 'config' */
    struct flax_gen_config config;
    struct flax_random *random;
    struct flax_fields newest; /* FLAX_INCREASING */
    bool begun;                /* 'newest' was issued */
};

static int64_t read_clock (const struct flax_gen *gen)
{
    if (gen->config.time.now_ms)
        return gen->config.time.now_ms (gen->config.time.arg);
    return (int64_t)clock_ms (CLOCK_REALTIME);
}

static inline int draw (struct flax_gen *gen, uint64_t *bits, bool *forked)
{
    if (gen->config.bits.random) {
        *bits = gen->config.bits.random (gen->config.bits.arg);
        return 0;
    }
    return flax_random_draw (gen->random, bits, forked);
}

/* The next increasing id: at 'ms' if that is later than the newest id, else directly after the newest id. */
static int advance (struct flax_gen *gen, uint64_t ms, uint64_t bits, bool forked)
{
    struct flax_fields next = { .ms = ms, .random = bits & FLAX_RANDOM_MAX };

    if (gen->begun && ms <= gen->newest.ms) {
        uint64_t step = (bits & UINT32_MAX) + 1;
        if (forked || step > FLAX_RANDOM_MAX - gen->newest.random)
            next.ms = gen->newest.ms + 1;
        else
            next = (struct flax_fields){ .ms = gen->newest.ms, .random = gen->newest.random + step };
    }
    if (next.ms > FLAX_MS_MAX)
        return errset (EOVERFLOW);
    gen->newest = next;
    gen->begun = true;
    return 0;
}

static inline int make (struct flax_gen *gen, uint64_t ms, flax_t *id)
{
    bool forked = false;
    uint64_t bits;

    if (draw (gen, &bits, &forked) < 0)
        return -1;
    struct flax_fields fields = { .ms = ms, .random = bits & FLAX_RANDOM_MAX };
    if (gen->config.mode == FLAX_INCREASING) {
        if (advance (gen, ms, bits, forked) < 0)
            return -1;
        fields = gen->newest;
    }
    flax_store (id, &fields);
    return 0;
}

static inline int make_many (struct flax_gen *gen, int64_t unix_ms, flax_t *ids, unsigned count)
{
    uint64_t ms;
    int rc = 0;

    if (!flax_ms_fits (unix_ms, &ms))
        return errset (EOVERFLOW);
    bool alone = SINGLE_THREADED; /* without other threads a lock is only overhead: a seventh of an id's time */
    if (!alone)
        pthread_mutex_lock (&gen->lock);
    for (unsigned i = 0; i < count && rc == 0; i++)
        rc = make (gen, ms, &ids[i]);
    if (!alone)
        pthread_mutex_unlock (&gen->lock);
    return rc;
}

int flax_gen_reserve (struct flax_gen *gen, int64_t unix_ms, unsigned want, flax_t *ids)
{
    if (want == 0 || want > INT_MAX)
        return errset (EINVAL);
    return make_many (gen, unix_ms, ids, want) < 0 ? -1 : (int)want;
}

int flax_gen_make (struct flax_gen *gen, flax_t *id)
{
    return make_many (gen, read_clock (gen), id, 1);
}

void flax_gen_destroy (struct flax_gen *gen)
{
    if (gen) {
        int saved_errno = errno;
        flax_random_destroy (gen->random);
        pthread_mutex_destroy (&gen->lock);
        free (gen);
        errno = saved_errno;
    }
}

struct flax_gen *flax_gen_create (const struct flax_gen_config *config)
{
    static const struct flax_gen_config none;
    struct flax_gen *gen = calloc (1, sizeof (*gen));

    if (!config)
        config = &none;
    if (!gen || (!config->bits.random && !(gen->random = flax_random_create ()))) {
        free (gen);
        return errset_null (ENOMEM);
    }
    gen->config = *config;
    pthread_mutex_init (&gen->lock, NULL);
    return gen;
}
