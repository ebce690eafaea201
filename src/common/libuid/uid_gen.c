/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid_gen.c - the generator: no id is made twice, and each is above the one before
 *
 * Design notes
 *
 * - 'word' is the number of the step since the Unix epoch (50 bits: 977 steps a second) and the sequence within it (14
 *   bits). An id exists if and only if a compare-and-swap has put its word there, and the word only grows. So no id is
 *   made twice and all are in order, with any clock and any number of threads.
 * - The sequence begins at 0 in each step, so a step has at most its 16384 ids.
 * - One more than the last sequence of a step is the first of the next step, by arithmetic. That step may be opened
 *   only if the clock has reached it, or is at most 'ahead' steps before it.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "idtree/uid.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/fork_guard.h"

#define SEQUENCE_BITS 14
#define MEGA INT64_C (1000000)
#define STEP_MAX ((UINT64_C (1048576) * 1000000) * UID_STEPS_PER_SECOND - 1)
static_assert (STEP_MAX < UINT64_MAX >> SEQUENCE_BITS, "the step after the last one must fit into a word");
static_assert (UID_SEQUENCE_MAX == (1 << SEQUENCE_BITS) - 1 && UID_PER_STEP == UID_SEQUENCE_MAX + 1,
               "the word after the last sequence of a step must be the first of the next step");

#define NAP_MAX_US MEGA /* the clock may be set meanwhile: read it again after a second */

struct uid_gen {
    _Atomic uint64_t word; /* the next id to make */
    uint64_t ahead;        /* steps */
    struct uid_node node;
    struct uid_time time;
    struct fork_guard *guard;
};

static inline uint64_t step_at (int64_t unix_us)
{
    return (uint64_t)(unix_us / MEGA) * UID_STEPS_PER_SECOND + (uint64_t)(unix_us % MEGA) / UID_STEP_US;
}

static inline int64_t step_us (uint64_t step)
{
    return (int64_t)(step / UID_STEPS_PER_SECOND) * MEGA + (int64_t)(step % UID_STEPS_PER_SECOND) * UID_STEP_US;
}

static inline bool time_fits (int64_t unix_us)
{
    return unix_us >= 0 && unix_us <= UID_UNIX_US_MAX;
}

static int64_t read_clock (const struct uid_gen *gen)
{
    if (gen->time.now_us)
        return gen->time.now_us (gen->time.arg);
    return (int64_t)clock_us (CLOCK_REALTIME);
}

static void sleep_for (const struct uid_gen *gen, int64_t for_us)
{
    if (gen->time.sleep_us)
        gen->time.sleep_us (gen->time.arg, for_us);
    else
        clock_sleep_ns (for_us * 1000);
}

/* The only place where a word becomes an id. */
static inline void issue (const struct uid_gen *gen, uint64_t word, enum uid_kind kind, struct uid *id)
{
    uint64_t step = word >> SEQUENCE_BITS, second = step / UID_STEPS_PER_SECOND;

    id->kind = kind;
    id->node = kind == UID_GLOBAL ? gen->node : (struct uid_node){ 0 };
    id->a = (int64_t)(second / 1000000);
    id->b = (int64_t)(second % 1000000);
    id->c = (int64_t)(step % UID_STEPS_PER_SECOND) * UID_STEP_US;
    id->sequence = (int64_t)(word & UID_SEQUENCE_MAX);
}

static int refuse (uint64_t step, uint64_t ahead, int64_t unix_us, int64_t *wait_us)
{
    if (step > STEP_MAX)
        return errset (EOVERFLOW);
    if (wait_us)
        *wait_us = step_us (step - ahead) - unix_us;
    return errset (EAGAIN);
}

int uid_gen_reserve (struct uid_gen *gen, enum uid_kind kind, int64_t unix_us, unsigned want, struct uid *first,
                     int64_t *wait_us)
{
    uint64_t seen = atomic_load_explicit (&gen->word, memory_order_relaxed), now, word, n;

    if (want == 0)
        return errset (EINVAL);
    if (fork_guard_is_child (gen->guard))
        return errset (EPERM);
    if (!time_fits (unix_us))
        return errset (EOVERFLOW);
    now = step_at (unix_us);
    do {
        uint64_t step = seen >> SEQUENCE_BITS;
        word = step >= now ? seen : now << SEQUENCE_BITS;
        bool opens = (word & UID_SEQUENCE_MAX) == 0;
        if (step > STEP_MAX || (opens && step > now + gen->ahead))
            return refuse (step, gen->ahead, unix_us, wait_us);
        n = UID_PER_STEP - (word & UID_SEQUENCE_MAX);
        n = want < n ? want : n;
    } while (!atomic_compare_exchange_weak_explicit (&gen->word, &seen, word + n, memory_order_acq_rel,
                                                     memory_order_relaxed));
    issue (gen, word, kind, first);
    return (int)n;
}

int uid_gen_try (struct uid_gen *gen, enum uid_kind kind, struct uid *id, int64_t *wait_us)
{
    return uid_gen_reserve (gen, kind, read_clock (gen), 1, id, wait_us) < 0 ? -1 : 0;
}

int uid_gen_make (struct uid_gen *gen, enum uid_kind kind, int64_t timeout_us, struct uid *id)
{
    int64_t wait_us, waited_us = 0;

    while (uid_gen_try (gen, kind, id, &wait_us) < 0) {
        if (errno != EAGAIN)
            return -1;
        if (timeout_us >= 0 && wait_us > timeout_us - waited_us)
            return -1;
        int64_t nap = wait_us < NAP_MAX_US ? wait_us : NAP_MAX_US;
        sleep_for (gen, nap);
        waited_us += nap;
    }
    return 0;
}

int64_t uid_gen_newest_us (const struct uid_gen *gen)
{
    uint64_t word = atomic_load_explicit (&gen->word, memory_order_relaxed);
    return step_us (word ? (word - 1) >> SEQUENCE_BITS : 0);
}

void uid_gen_destroy (struct uid_gen *gen)
{
    if (!gen)
        return;
    int saved_errno = errno;
    fork_guard_destroy (gen->guard);
    free (gen);
    errno = saved_errno;
}

struct uid_gen *uid_gen_create (const struct uid_gen_config *config)
{
    static const struct uid_gen_config none;

    if (!config)
        config = &none;
    if (!time_fits (config->after_us) || !time_fits (config->ahead_us))
        return errset_null (EINVAL);
    struct uid_gen *gen = calloc (1, sizeof (*gen));
    if (!gen || !(gen->guard = fork_guard_create (sizeof (*gen->guard)))) {
        free (gen);
        return errset_null (ENOMEM);
    }
    gen->node = config->node;
    gen->time = config->time;
    gen->ahead = step_at (config->ahead_us);
    uint64_t step = config->after_us ? step_at (config->after_us) + 1 : 0;
    atomic_init (&gen->word, step << SEQUENCE_BITS);
    return gen;
}
