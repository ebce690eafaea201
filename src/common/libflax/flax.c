/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax.c - ids: layout, text, time, order and ranges; and the generator, of random or of strictly increasing ids
 *
 * Invariant of an id: bytes 0-4 are the time, bytes 5-11 the random part, both big endian.
 *
 * Invariant of FLAX_INCREASING: (newest.ms, newest.random) only grows, under 'lock'. A child process begins in a
 * millisecond that its parent had not reached, with its own random bits. Otherwise parent and child would count up from
 * the same number.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_SYS_SINGLE_THREADED_H
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
#define SINGLE_THREADED 0
#endif

#include "flax_random.h"
#include "idtree/flax.h"
#include "libutil/radix.h"
#include "libutil/minmax.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/id_text.h"

#define ZERO '-'

/* Like flax_ms_at (), but returns false instead of setting errno. */
static inline bool flax_ms_fits (int64_t unix_ms, uint64_t *ms)
{
    *ms = (uint64_t)unix_ms - (uint64_t)FLAX_EPOCH_MS;
    return *ms <= FLAX_MS_MAX;
}

/* Store fields in an id. The fields must be in range. */
static inline void flax_store (flax_t *id, const struct flax_fields *fields)
{
    assert (fields->ms <= FLAX_MS_MAX && fields->random <= FLAX_RANDOM_MAX);
    put_be (id->bytes, 8, fields->ms << 24 | fields->random >> 32);
    put_be (id->bytes + 8, 4, fields->random);
}

struct flax_fields flax_split (const flax_t *id)
{
    return (struct flax_fields){ .ms = get_be (id->bytes, 5), .random = get_be (id->bytes + 5, 7) };
}

int flax_join (const struct flax_fields *fields, flax_t *id)
{
    if (fields->ms > FLAX_MS_MAX)
        return errset (EOVERFLOW);
    if (fields->random > FLAX_RANDOM_MAX)
        return errset (EINVAL);
    flax_store (id, fields);
    return 0;
}

int64_t flax_unix_ms (const flax_t *id)
{
    return (int64_t)flax_split (id).ms + FLAX_EPOCH_MS;
}

int flax_ms_at (int64_t unix_ms, uint64_t *ms)
{
    uint64_t since;

    if (!flax_ms_fits (unix_ms, &since))
        return errset (EOVERFLOW);
    *ms = since;
    return 0;
}

int flax_ms_at_seconds (double unix_s, uint64_t *ms)
{
    double product = unix_s * 1000;

    if (!isfinite (unix_s))
        return errset (EINVAL);
    if (product < 0 || product > (double)FLAX_EPOCH_MS + (double)FLAX_MS_MAX + 1)
        return errset (EOVERFLOW);
    return flax_ms_at ((int64_t)product, ms);
}

int flax_compare (const flax_t *a, const flax_t *b)
{
    int order = memcmp (a, b, sizeof (*a));
    return (order > 0) - (order < 0);
}

static inline uint64_t key_cb (const void *id, int word)
{
    const flax_t *flax = id;
    return word == 0 ? get_be (flax->bytes, 8) : get_be (flax->bytes + 8, 4);
}

static void sort_cb (void *ids, size_t count)
{
    radix_sort (ids, count, sizeof (flax_t), key_cb, sort_cb);
}

void flax_sort (flax_t *ids, size_t count)
{
    sort_cb (ids, count);
}

int flax_range (int64_t from_ms, int64_t to_ms, flax_t *lower, flax_t *upper)
{
    struct flax_fields from = { 0 }, to = { 0 };

    if (flax_ms_at (from_ms, &from.ms) < 0 || flax_ms_at (to_ms, &to.ms) < 0)
        return -1;
    if (from_ms > to_ms)
        return errset (EINVAL);
    flax_join (&from, lower);
    flax_join (&to, upper);
    return 0;
}

int flax_format (const flax_t *id, char *buf, size_t size)
{
    uint64_t upper = get_be (id->bytes, 8), lower = get_be (id->bytes + 8, 4);

    if (size < FLAX_TEXT_MAX)
        return errset (ENOSPC);
    lex64_encode16 (upper >> 16, upper << 32 | lower, ZERO, buf);
    buf[FLAX_TEXT_LEN] = '\0';
    return FLAX_TEXT_LEN;
}

/* The position of the first character that is not in the alphabet. */
static size_t first_bad (const char *text)
{
    uint64_t bits;
    size_t good = lex64_decode (text, 8, ZERO, &bits);

    return good < 8 ? good : 8 + lex64_decode (text + 8, 8, ZERO, &bits);
}

int flax_parse (const char *text, size_t len, flax_t *id, size_t *errpos)
{
    uint64_t upper, lower;

    if (len != FLAX_TEXT_LEN)
        return errset_at (EMSGSIZE, len < FLAX_TEXT_LEN ? len : FLAX_TEXT_LEN, errpos);
    if (!lex64_decode16 (text, ZERO, &upper, &lower))
        return errset_at (EINVAL, first_bad (text), errpos);
    put_be (id->bytes, 8, upper << 16 | lower >> 32);
    put_be (id->bytes + 8, 4, lower);
    return 0;
}

static int format_cb (const void *id, const void *how, char *buf, size_t size)
{
    return flax_format (id, buf, size);
}

static int parse_cb (const char *text, size_t len, const void *how, void *id, size_t *errpos)
{
    return flax_parse (text, len, id, errpos);
}

int flax_format_lines (const flax_t *ids, size_t *count, char *buf, size_t size, size_t *len)
{
    return lines_format (ids, sizeof (*ids), count, format_cb, NULL, buf, size, len);
}

int flax_parse_lines (const char *text, size_t len, flax_t *ids, size_t *count, size_t *pos)
{
    return lines_parse (text, len, FLAX_TEXT_LEN, ids, sizeof (*ids), count, parse_cb, NULL, pos);
}

int flax_from_bytes (const void *bytes, size_t len, flax_t *id)
{
    if (len != FLAX_SIZE)
        return errset (EMSGSIZE);
    memcpy (id->bytes, bytes, FLAX_SIZE);
    return 0;
}

/* --- generator ------------------------------------------------------------------------------ */

struct flax_gen {
    pthread_mutex_t lock; /* guards all members below except 'config' */
    struct flax_gen_config config;
    struct flax_random *random;
    struct flax_fields newest; /* the newest id, for FLAX_INCREASING */
    bool begun;                /* an id was issued, so 'newest' is valid */
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

/* Compute the next increasing id: it is at 'ms' if that is later than the newest id, else directly after the newest id.
 */
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
    bool alone = SINGLE_THREADED; /* no other threads: a lock would only take a seventh of an id's time */
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
