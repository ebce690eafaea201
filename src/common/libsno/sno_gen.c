/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* sno_gen.c - the generator and its stored state: no id is made twice, with any number of threads and any clock
 *
 * Design notes
 *
 * - 'word' is unit (39 bits), tick (1) and sequence (17: one bit more than an id has, so that a stored state whose
 *   sequence is above the bound can be restored). An id exists if and only if a compare-and-swap has put its word
 *   there. A word never has the same value again, for three reasons: within a unit the sequence grows, on a timeline
 *   the unit grows, and a swap of timelines moves to units that the other timeline has not reached.
 * - The word must be loaded before the clock is read. Only then a time below the word's unit means that the clock went
 *   back; otherwise this thread may merely have been late. If a thread loses a race in which the unit changed, it must
 *   read the clock again.
 * - 'safe' and 'drifts' change only together with a swap of timelines, under 'lock'. 'safe' is never below a unit that
 *   the unused timeline has used. The swap itself is another compare-and-swap of the word.
 * - Waiting is separate from deciding: attempt () returns a verdict, sno_gen_make () sleeps.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "idtree/sno.h"
#include "libutil/minmax.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/fork_guard.h"

#define SEQUENCE_BITS 17
#define SEQUENCE_MASK ((UINT64_C (1) << SEQUENCE_BITS) - 1)
#define TICK_BIT (UINT64_C (1) << SEQUENCE_BITS)
#define UNIT_SHIFT (SEQUENCE_BITS + 1)
#define NAP_MAX_NS INT64_C (1000000000) /* longest sleep: the clock may be set, so it is read again each second */

static_assert (SNO_UNIT_MAX < UINT64_MAX >> UNIT_SHIFT, "a unit must fit into a word");

struct sno_gen {
    _Atomic uint64_t word;
    _Atomic uint64_t lo, hi; /* permitted units: lo <= unit < hi */
    struct sno_time time;
    struct fork_guard *guard;
    uint16_t partition;
    uint16_t min, max;

    pthread_mutex_t lock; /* held to swap timelines, or to read the whole state */
    int64_t safe;
    uint32_t drifts;

    _Atomic uint32_t calls_at; /* number of calls of sno_gen_make_at () so far, modulo the size of the pool */

    _Atomic uint32_t blocked; /* number of calls that wait for the next unit */
    sno_overflow_f overflow_cb;
    void *overflow_arg;
    pthread_mutex_t overflow_lock; /* held while the callback runs; guards the members below */
    bool overflowing;
    uint64_t overflow_began, overflow_told; /* the units in which the overflow began and was last reported */
};

/* The result of an attempt. */
enum verdict { ISSUED, LOST_RACE, USED_UP, WENT_BACK };

static inline uint64_t word_unit (uint64_t word)
{
    return word >> UNIT_SHIFT;
}

static inline uint64_t word_make (uint64_t unit, uint64_t tick_bit, uint64_t sequence)
{
    assert (unit <= SNO_UNIT_MAX && (tick_bit & ~TICK_BIT) == 0 && sequence <= SEQUENCE_MASK);
    return unit << UNIT_SHIFT | tick_bit | sequence;
}

/* Make the id of the word's unit and tick and of 'sequence'. This is the only place where a word becomes an id. */
static inline void issue (const struct sno_gen *gen, uint64_t word, uint64_t sequence, uint8_t meta, sno_t *id)
{
    put_be (id->bytes, 8, word >> SEQUENCE_BITS << 24 | (uint64_t)meta << 16 | gen->partition);
    put_be (id->bytes + 8, 2, sequence);
}

static inline bool replace (struct sno_gen *gen, uint64_t *seen, uint64_t word)
{
    return atomic_compare_exchange_weak_explicit (&gen->word, seen, word, memory_order_acq_rel, memory_order_acquire);
}

/* Reserve up to '*count' ids at unit 'now'. The word '*seen' must have been loaded before the clock was read. On ISSUED
 * '*count' is the number of reserved ids and '*first' the sequence of the first of them. '*seen' is updated.
 */
static inline enum verdict attempt (struct sno_gen *gen, uint64_t *seen, uint64_t now, uint64_t *count, uint64_t *first)
{
    for (;;) {
        uint64_t old = *seen, unit = word_unit (old), start = gen->min, room, n;

        if (now < unit)
            return WENT_BACK;
        if (now == unit) {
            start = (old & SEQUENCE_MASK) + 1;
            if (start > gen->max)
                return USED_UP;
        }
        room = gen->max - start + 1;
        n = *count < room ? *count : room;
        if (replace (gen, seen, word_make (now, old & TICK_BIT, start + n - 1))) {
            *count = n;
            *first = start;
            *seen = word_make (now, old & TICK_BIT, start);
            return ISSUED;
        }
        if ((*seen ^ old) >> SEQUENCE_BITS)
            return LOST_RACE;
    }
}

/* Swap timelines and reserve ids at unit 'now', if that is above all units that the other timeline used. LOST_RACE:
 * another thread has made an id or swapped timelines.
 */
static enum verdict swap_timelines (struct sno_gen *gen, uint64_t *seen, uint64_t now, uint64_t *count, uint64_t *first)
{
    uint64_t n = *count < gen->max - gen->min + 1U ? *count : gen->max - gen->min + 1U;
    enum verdict verdict = LOST_RACE;

    pthread_mutex_lock (&gen->lock);
    uint64_t old = *seen = atomic_load_explicit (&gen->word, memory_order_acquire), tick_bit = ~old & TICK_BIT;
    if (now < word_unit (old) && (int64_t)now <= gen->safe)
        verdict = WENT_BACK;
    else if (now < word_unit (old) && replace (gen, seen, word_make (now, tick_bit, gen->min + n - 1))) {
        gen->safe = (int64_t)word_unit (old);
        gen->drifts++;
        *count = n;
        *first = gen->min;
        *seen = word_make (now, tick_bit, gen->min);
        verdict = ISSUED;
    }
    pthread_mutex_unlock (&gen->lock);
    return verdict;
}

/* --- clock ------------------------------------------------------------------------------- */

static inline int64_t read_clock (const struct sno_gen *gen)
{
    if (gen->time.now_ns)
        return gen->time.now_ns (gen->time.arg);
    return (int64_t)clock_ns (CLOCK_REALTIME);
}

static void sleep_for (const struct sno_gen *gen, int64_t for_ns)
{
    if (gen->time.sleep_ns)
        gen->time.sleep_ns (gen->time.arg, for_ns);
    else
        clock_sleep_ns (for_ns);
}

/* How many nanoseconds 'unit' begins after 'unix_ns'. */
static int64_t until_unit (int64_t unix_ns, uint64_t unit)
{
    return (int64_t)unit * SNO_UNIT_NS + SNO_EPOCH_NS - unix_ns;
}

/* How many nanoseconds a clock that went back needs to reach a permitted unit. This is the earlier one of two units:
 * the newest id's unit and the unit after 'safe'.
 */
static int64_t until_safe (struct sno_gen *gen, int64_t unix_ns)
{
    pthread_mutex_lock (&gen->lock);
    uint64_t unit = word_unit (atomic_load_explicit (&gen->word, memory_order_acquire));
    if ((uint64_t)gen->safe + 1 < unit)
        unit = (uint64_t)gen->safe + 1;
    pthread_mutex_unlock (&gen->lock);
    int64_t wait = until_unit (unix_ns, unit);
    return wait > 0 ? wait : 0;
}

/* --- reserving --------------------------------------------------------------------------- */

/* Set '*unit' to the unit of a time. Fails if this generator may not make ids at that time. */
static inline int unit_allowed (struct sno_gen *gen, int64_t unix_ns, uint64_t *unit)
{
    uint64_t since = (uint64_t)unix_ns - (uint64_t)SNO_EPOCH_NS;

    if (fork_guard_is_child (gen->guard))
        return errset (EPERM);
    *unit = since / SNO_UNIT_NS;
    if (unix_ns < SNO_EPOCH_NS || *unit > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
    if (*unit < atomic_load_explicit (&gen->lo, memory_order_relaxed)
        || *unit >= atomic_load_explicit (&gen->hi, memory_order_relaxed))
        return errset (ERANGE);
    return 0;
}

/* Set errno and the time to wait for a verdict other than ISSUED. Returns -1. */
static int explain (struct sno_gen *gen, enum verdict verdict, int64_t unix_ns, uint64_t unit, int64_t *wait_ns)
{
    if (wait_ns)
        *wait_ns = verdict == USED_UP ? until_unit (unix_ns, unit + 1) : until_safe (gen, unix_ns);
    return errset (verdict == USED_UP ? EAGAIN : ESTALE);
}

/* Reserve ids at time '*told_ns'. If 'told_ns' is NULL, the time is read from the clock, and read again after a lost
 * race.
 */
static inline int reserve (struct sno_gen *gen, uint8_t meta, const int64_t *told_ns, uint64_t want, sno_t *id,
                           int64_t *wait_ns)
{
    uint64_t seen, unit, first;
    enum verdict verdict;
    int64_t unix_ns;

    do {
        seen = atomic_load_explicit (&gen->word, memory_order_acquire);
        unix_ns = told_ns ? *told_ns : read_clock (gen);
        if (unit_allowed (gen, unix_ns, &unit) < 0)
            return -1;
        verdict = attempt (gen, &seen, unit, &want, &first);
        if (verdict == WENT_BACK)
            verdict = swap_timelines (gen, &seen, unit, &want, &first);
    } while (verdict == LOST_RACE);
    if (verdict != ISSUED)
        return explain (gen, verdict, unix_ns, unit, wait_ns);
    issue (gen, seen, first, meta, id);
    return (int)want;
}

int sno_gen_reserve (struct sno_gen *gen, uint8_t meta, int64_t unix_ns, unsigned want, sno_t *id, int64_t *wait_ns)
{
    return want > 0 ? reserve (gen, meta, &unix_ns, want, id, wait_ns) : errset (EINVAL);
}

int sno_gen_try (struct sno_gen *gen, uint8_t meta, sno_t *id, int64_t *wait_ns)
{
    return reserve (gen, meta, NULL, 1, id, wait_ns) < 0 ? -1 : 0;
}

void sno_next (sno_t *id)
{
    if (++id->bytes[9] == 0)
        id->bytes[8]++;
}

/* --- waiting ----------------------------------------------------------------------------- */

/* Call the overflow callback if it is due. It is called at most once in a unit while calls wait, and once when no call
 * waits any longer.
 */
static void tell_overflow (struct sno_gen *gen)
{
    struct sno_overflow overflow = { .unix_ns = read_clock (gen) };
    uint64_t unit;

    pthread_mutex_lock (&gen->overflow_lock);
    overflow.blocked = atomic_load_explicit (&gen->blocked, memory_order_relaxed);
    bool tell = sno_unit_at (overflow.unix_ns, &unit) == 0
                && (overflow.blocked ? !gen->overflowing || unit != gen->overflow_told : gen->overflowing);
    if (tell) {
        if (!gen->overflowing)
            gen->overflow_began = unit;
        gen->overflowing = overflow.blocked > 0;
        gen->overflow_told = unit;
        overflow.ticks = unit > gen->overflow_began ? (unsigned)(unit - gen->overflow_began) * 4 + 1 : 1;
        gen->overflow_cb (&overflow, gen->overflow_arg);
    }
    pthread_mutex_unlock (&gen->overflow_lock);
}

/* Set whether this call counts as blocked; '*counted' is whether it counted before. */
static void count_blocked (struct sno_gen *gen, bool *counted, bool blocked)
{
    if (blocked != *counted) {
        *counted = blocked;
        atomic_fetch_add_explicit (&gen->blocked, blocked ? 1 : UINT32_MAX, memory_order_relaxed);
    }
    else if (!blocked)
        return;
    if (gen->overflow_cb)
        tell_overflow (gen);
}

int sno_gen_make (struct sno_gen *gen, uint8_t meta, int64_t timeout_ns, sno_t *id)
{
    int64_t wait_ns, waited_ns = 0;
    bool counted = false;
    int rc;

    while ((rc = sno_gen_try (gen, meta, id, &wait_ns)) < 0 && (errno == EAGAIN || errno == ESTALE)) {
        if (timeout_ns >= 0 && wait_ns > timeout_ns - waited_ns)
            break;
        count_blocked (gen, &counted, errno == EAGAIN);
        int64_t nap = wait_ns < NAP_MAX_NS ? wait_ns : NAP_MAX_NS;
        sleep_for (gen, nap);
        waited_ns += nap;
    }
    if (counted) {
        int errnum = errno;
        count_blocked (gen, &counted, false);
        errno = errnum;
    }
    return rc;
}

int sno_gen_make_at (struct sno_gen *gen, uint8_t meta, int64_t unix_ns, sno_t *id)
{
    uint64_t unit;

    if (fork_guard_is_child (gen->guard))
        return errset (EPERM);
    if (sno_unit_at (unix_ns, &unit) < 0)
        return -1;
    uint32_t call = atomic_load_explicit (&gen->calls_at, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit (&gen->calls_at, &call, (call + 1) % sno_gen_cap (gen),
                                                   memory_order_relaxed, memory_order_relaxed))
        ;
    issue (gen, word_make (unit, 0, 0), gen->min + call, meta, id);
    return 0;
}

/* --- creation, inspection ---------------------------------------------------------------- */

void sno_gen_destroy (struct sno_gen *gen)
{
    if (gen) {
        int saved_errno = errno;
        pthread_mutex_destroy (&gen->lock);
        pthread_mutex_destroy (&gen->overflow_lock);
        fork_guard_destroy (gen->guard);
        free (gen);
        errno = saved_errno;
    }
}

/* The last sequence that was used in unit wall_hi. A snapshot that was taken in another unit does not contain it. In
 * that case all sequences count as used.
 */
static uint64_t last_sequence (const struct sno_snapshot *s)
{
    if (s->sequence > SEQUENCE_MASK || (s->now != 0 && s->now != s->wall_hi))
        return SEQUENCE_MASK;
    return s->sequence;
}

struct sno_gen *sno_gen_create (const struct sno_gen_config *config)
{
    static const struct sno_gen_config none;
    struct sno_snapshot s;

    if (!config)
        config = &none;
    if (sno_snapshot_sanitize (&config->start, &s, NULL) < 0)
        return NULL;
    if (s.wall_hi < 0 || s.wall_hi > (int64_t)SNO_UNIT_MAX || s.wall_safe > (int64_t)SNO_UNIT_MAX)
        return errset_null (EOVERFLOW);
    struct sno_gen *gen = calloc (1, sizeof (*gen));
    if (!gen || !(gen->guard = fork_guard_create (sizeof (*gen->guard)))) {
        free (gen);
        return errset_null (ENOMEM);
    }
    pthread_mutex_init (&gen->lock, NULL);
    pthread_mutex_init (&gen->overflow_lock, NULL);
    gen->time = config->time;
    gen->partition = s.partition;
    gen->min = s.sequence_min;
    gen->max = s.sequence_max;
    assert (gen->min < gen->max);
    gen->safe = s.wall_safe > 0 ? s.wall_safe : 0; /* 0: no timeline may use unit 0, which contains the zero id */
    gen->drifts = s.drifts;
    atomic_init (&gen->hi, SNO_UNIT_MAX + 1);
    atomic_init (&gen->word, word_make ((uint64_t)s.wall_hi, s.drifts & 1 ? TICK_BIT : 0, last_sequence (&s)));
    return gen;
}

int sno_gen_set_range (struct sno_gen *gen, uint64_t lo_unit, uint64_t hi_unit)
{
    if (lo_unit > hi_unit)
        return errset (EINVAL);
    if (hi_unit > SNO_UNIT_MAX + 1)
        return errset (EOVERFLOW);
    atomic_store_explicit (&gen->lo, lo_unit, memory_order_relaxed);
    atomic_store_explicit (&gen->hi, hi_unit, memory_order_relaxed);
    return 0;
}

void sno_gen_on_overflow (struct sno_gen *gen, sno_overflow_f cb, void *arg)
{
    gen->overflow_cb = cb;
    gen->overflow_arg = arg;
}

uint32_t sno_gen_cap (const struct sno_gen *gen)
{
    return gen->max - gen->min + 1U;
}

/* Whether the clock is in the unit of 'word'. */
static bool is_now (const struct sno_gen *gen, uint64_t word)
{
    uint64_t unit;
    return sno_unit_at (read_clock (gen), &unit) == 0 && unit == word_unit (word);
}

uint32_t sno_gen_sequence (struct sno_gen *gen)
{
    uint64_t word = atomic_load_explicit (&gen->word, memory_order_acquire);

    if (!is_now (gen, word))
        return gen->min;
    return (uint32_t)(word & SEQUENCE_MASK) + atomic_load_explicit (&gen->blocked, memory_order_relaxed);
}

uint32_t sno_gen_len (struct sno_gen *gen)
{
    uint64_t word = atomic_load_explicit (&gen->word, memory_order_acquire);
    uint32_t sequence = (uint32_t)(word & SEQUENCE_MASK);

    if (!is_now (gen, word))
        return 0;
    return sequence < gen->max ? sequence - gen->min + 1 : sno_gen_cap (gen);
}

void sno_gen_snapshot (struct sno_gen *gen, struct sno_snapshot *snapshot)
{
    uint64_t now = 0;
    (void)sno_unit_at (read_clock (gen), &now);

    pthread_mutex_lock (&gen->lock);
    uint64_t word = atomic_load_explicit (&gen->word, memory_order_acquire);
    /* in a snapshot a 'now' of 0 means "not known" */
    bool tell = now == word_unit (word) || now == 0;
    *snapshot = (struct sno_snapshot){
        .partition = gen->partition,
        .sequence_min = gen->min,
        .sequence_max = gen->max,
        .sequence = tell ? (uint32_t)(word & SEQUENCE_MASK) : gen->min,
        .now = (int64_t)now,
        .wall_hi = (int64_t)word_unit (word),
        .wall_safe = gen->safe,
        .drifts = gen->drifts,
    };
    pthread_mutex_unlock (&gen->lock);
}

/* --- the state as a value and as JSON -----------------------------------------------------
 *
 * The JSON form is an object of eight integers, one of them as a pair of bytes. Reading accepts exactly these names,
 * because a generator that continues from a state that was read wrongly would make ids twice.
 */

static int refuse (const char *text, const char **why)
{
    if (why)
        *why = text;
    return errset (EINVAL);
}

int sno_snapshot_sanitize (const struct sno_snapshot *in, struct sno_snapshot *out, const char **why)
{
    struct sno_snapshot s = *in;

    if (s.sequence_max == 0 && s.sequence_min != SNO_SEQUENCE_MAX)
        s.sequence_max = SNO_SEQUENCE_MAX;
    if (s.sequence_min == s.sequence_max)
        return refuse ("the sequence bounds are identical: a pool of at least 6 is needed", why);
    if (s.sequence_max < s.sequence_min) {
        uint16_t low = s.sequence_max;
        s.sequence_max = s.sequence_min;
        s.sequence_min = low;
    }
    if (s.sequence_max - s.sequence_min + 1U < SNO_POOL_MIN)
        return refuse ("the sequence bounds are too close: a pool of at least 6 is needed", why);
    if (s.sequence == 0)
        s.sequence = s.sequence_min;
    if (s.sequence < s.sequence_min)
        return refuse ("the sequence is below its lower bound", why);
    *out = s;
    return 0;
}

int sno_snapshot_raise (struct sno_snapshot *snapshot, uint64_t unit)
{
    if (unit == 0 || unit > SNO_UNIT_MAX)
        return errset (EOVERFLOW);
    snapshot->wall_hi = snapshot->wall_safe = (int64_t)unit - 1;
    snapshot->sequence = SNO_SEQUENCE_MAX + 1;
    return 0;
}

int sno_snapshot_format (const struct sno_snapshot *s, char *buf, size_t size)
{
    char json[SNO_SNAPSHOT_TEXT_MAX];
    int len = snprintf (json, sizeof (json),
                        "{\"partition\":[%u,%u],\"sequenceMin\":%u,\"sequenceMax\":%u,"
                        "\"sequence\":%" PRIu32 ",\"now\":%" PRId64 ",\"wallHi\":%" PRId64 ",\"wallSafe\":%" PRId64
                        ",\"drifts\":%" PRIu32 "}",
                        s->partition >> 8, s->partition & 255U, s->sequence_min, s->sequence_max, s->sequence, s->now,
                        s->wall_hi, s->wall_safe, s->drifts);

    if ((size_t)len >= size)
        return errset (ENOSPC);
    memcpy (buf, json, (size_t)len + 1);
    return len;
}

/* --- reading JSON: each function advances a cursor, or returns false ---------------------- */

struct snapshot_cursor {
    const char *at;
    const char *end;
    int errnum;
};

static void skip_blanks (struct snapshot_cursor *c)
{
    while (c->at < c->end && *c->at && strchr (" \t\r\n", *c->at))
        c->at++;
}

/* Take the character 'token', and blanks around it. */
static bool take (struct snapshot_cursor *c, char token)
{
    skip_blanks (c);
    if (c->at == c->end || *c->at != token)
        return false;
    c->at++;
    skip_blanks (c);
    return true;
}

/* Take an integer from 0 to 'max'. If 'max' is INT64_MAX, take any int64_t. Leading zeros are refused (RFC 8259 6). */
static bool take_number (struct snapshot_cursor *c, int64_t max, int64_t *value)
{
    bool negative = max == INT64_MAX && c->at < c->end && *c->at == '-';
    const char *start = c->at += negative;
    uint64_t limit = (uint64_t)max + negative, v = 0;

    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        unsigned digit = (unsigned)(*c->at - '0');
        if (c->at == start + 1 && *start == '0')
            return false;
        if (v > (limit - digit) / 10) {
            c->errnum = ERANGE;
            return false;
        }
        v = v * 10 + digit;
    }
    *value = (int64_t)(negative ? -v : v);
    return c->at > start;
}

enum { PARTITION, SEQUENCE_MIN, SEQUENCE_MAX, SEQUENCE, NOW, WALL_HI, WALL_SAFE, DRIFTS, MEMBERS };

static const struct member {
    const char *name; /* name of the member, with its quotes */
    int64_t max;
} members[MEMBERS] = {
    [PARTITION] = { "\"partition\"", UINT8_MAX }, /* maximum of each of the two bytes */
    [SEQUENCE_MIN] = { "\"sequenceMin\"", UINT16_MAX },
    [SEQUENCE_MAX] = { "\"sequenceMax\"", UINT16_MAX },
    [SEQUENCE] = { "\"sequence\"", UINT32_MAX },
    [NOW] = { "\"now\"", INT64_MAX },
    [WALL_HI] = { "\"wallHi\"", INT64_MAX },
    [WALL_SAFE] = { "\"wallSafe\"", INT64_MAX },
    [DRIFTS] = { "\"drifts\"", UINT32_MAX },
};

static bool take_name (struct snapshot_cursor *c, int *member)
{
    for (int i = 0; i < MEMBERS; i++) {
        size_t len = strlen (members[i].name);
        if ((size_t)(c->end - c->at) >= len && !memcmp (c->at, members[i].name, len)) {
            c->at += len;
            *member = i;
            return true;
        }
    }
    return false;
}

static bool take_value (struct snapshot_cursor *c, int member, int64_t *value)
{
    int64_t max = members[member].max, high, low;

    if (member != PARTITION)
        return take_number (c, max, value);
    if (!take (c, '[') || !take_number (c, max, &high) || !take (c, ',') || !take_number (c, max, &low)
        || !take (c, ']'))
        return false;
    *value = high << 8 | low;
    return true;
}

static bool take_members (struct snapshot_cursor *c, int64_t values[MEMBERS])
{
    unsigned seen = 0;
    int member;

    if (take (c, '}'))
        return true;
    do {
        if (!take_name (c, &member) || seen >> member & 1)
            return false;
        seen |= 1U << member;
        if (!take (c, ':') || !take_value (c, member, &values[member]))
            return false;
    } while (take (c, ','));
    return take (c, '}');
}

int sno_snapshot_parse (const char *json, size_t len, struct sno_snapshot *snapshot, size_t *errpos)
{
    struct snapshot_cursor c = { .at = json, .end = json + len, .errnum = EINVAL };
    int64_t v[MEMBERS] = { 0 };

    if (!take (&c, '{') || !take_members (&c, v) || c.at != c.end)
        return errset_at (c.errnum, (size_t)(c.at - json), errpos);
    *snapshot = (struct sno_snapshot){
        .partition = (uint16_t)v[PARTITION],
        .sequence_min = (uint16_t)v[SEQUENCE_MIN],
        .sequence_max = (uint16_t)v[SEQUENCE_MAX],
        .sequence = (uint32_t)v[SEQUENCE],
        .now = v[NOW],
        .wall_hi = v[WALL_HI],
        .wall_safe = v[WALL_SAFE],
        .drifts = (uint32_t)v[DRIFTS],
    };
    return 0;
}
