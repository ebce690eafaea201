/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid.c - nodes, values and vector clocks; and the generator: no id is made twice, and each id is above the previous
 * one
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "idtree/uid.h"
#include "libutil/radix.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/fork_guard.h"

#define MEGA INT64_C (1000000)

/* --- nodes ------------------------------------------------------------------------------- */

/* Take the next value to hash. Erlang hashes the name of an atom character by character. A character up to 255 is one
 * value; for any other character each byte of its UTF-8 form is a value. In UTF-8 a character up to 255 is one byte
 * below 128, or C2 or C3 followed by another byte.
 */
static unsigned next_value (const unsigned char **at, const unsigned char *end)
{
    const unsigned char *p = *at;

    if ((p[0] == 0xc2 || p[0] == 0xc3) && end - p > 1 && (p[1] & 0xc0) == 0x80) {
        *at = p + 2;
        return (p[0] & 3U) << 6 | (p[1] & 0x3fU);
    }
    *at = p + 1;
    return p[0];
}

/* The hash function of the ELF symbol table. h * 16 + value must wrap around at 32 bits. */
uint32_t uid_fingerprint (const char *name, size_t len)
{
    const unsigned char *at = (const unsigned char *)name, *end = at + len;
    uint32_t h = 0;

    while (at < end) {
        h = h * 16 + next_value (&at, end);
        uint32_t g = h & 0xf0000000;
        h ^= g >> 24 ^ g;
    }
    return h;
}

uint32_t uid_fingerprint_legacy (const char *name, size_t len)
{
    return uid_fingerprint (name, len) + 1;
}

struct uid_node uid_node_named (const char *name)
{
    return (struct uid_node){ .name = name, .fingerprint = uid_fingerprint (name, strlen (name)) };
}

static int compare (int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

struct uid_node uid_node_numbered (uint32_t number)
{
    assert (number <= UID_NUMBER_MAX);
    return (struct uid_node){ .fingerprint = UINT32_C (1) << 31 | number };
}

static int compare_nodes (const struct uid_node *a, const struct uid_node *b)
{
    if (a->name && b->name)
        return compare (strcmp (a->name, b->name), 0);
    if (a->name || b->name)
        return a->name ? -1 : 1;
    return compare (a->fingerprint, b->fingerprint);
}

/* --- values ------------------------------------------------------------------------------ */

static inline bool time_fits (int64_t unix_us)
{
    return unix_us >= 0 && unix_us <= UID_UNIX_US_MAX;
}

int uid_make (int64_t unix_us, uint64_t counter, struct uid *id)
{
    if (!time_fits (unix_us))
        return errset (EOVERFLOW);
    *id = (struct uid){
        .kind = UID_LOCAL,
        .a = unix_us / MEGA / MEGA,
        .b = unix_us / MEGA % MEGA,
        .c = unix_us % MEGA / UID_STEP_US * UID_STEP_US,
        .sequence = (int64_t)(counter & UID_SEQUENCE_MAX),
    };
    return 0;
}

int uid_compare (const struct uid *x, const struct uid *y)
{
    int order = compare (x->kind, y->kind);

    if (!order && x->kind == UID_GLOBAL)
        order = compare_nodes (&x->node, &y->node);
    if (!order)
        order = compare (x->a, y->a);
    if (!order)
        order = compare (x->b, y->b);
    if (!order)
        order = compare (x->c, y->c);
    return order ? order : compare (x->sequence, y->sequence);
}

/* Whether comparing keys gives the same order as uid_compare (). This needs fields in the stored range, and a node
 * whose name is 'name' (NULL: no name).
 */
static bool has_key (const struct uid *id, const char *name)
{
    return (id->kind == UID_LOCAL || id->node.name == name) && (uint64_t)id->a <= UID_A_MAX
           && (uint64_t)id->b <= UID_B_MAX && (uint64_t)id->c <= UID_C_MAX
           && (uint64_t)id->sequence <= UID_SEQUENCE_MAX;
}

/* The bits of a key, from the top: kind 1, fingerprint 32 if the node has no name, A 20, B 11; the other 9 of B, C 20,
 * sequence 14.
 */
static inline uint64_t key_cb (const void *item, int word)
{
    const struct uid *id = item;
    uint64_t node = id->kind == UID_GLOBAL && !id->node.name ? id->node.fingerprint : 0;

    if (word == 1)
        return (uint64_t)(id->b & 0x1ff) << 34 | (uint64_t)id->c << 14 | (uint64_t)id->sequence;
    return (uint64_t)(id->kind == UID_GLOBAL) << 63 | node << 31 | (uint64_t)id->a << 11 | (uint64_t)id->b >> 9;
}

static void sort_cb (void *ids, size_t count)
{
    radix_sort (ids, count, sizeof (struct uid), key_cb, sort_cb);
}

static int compare_cb (const void *x, const void *y)
{
    return uid_compare (x, y);
}

void uid_sort (struct uid *ids, size_t count)
{
    const char *name = NULL;
    bool keys = true;

    for (size_t i = 0; i < count && !name; i++)
        name = ids[i].kind == UID_GLOBAL ? ids[i].node.name : NULL;
    for (size_t i = 0; i < count && keys; i++)
        keys = has_key (&ids[i], name);
    if (keys)
        sort_cb (ids, count);
    else if (count > 1)
        qsort (ids, count, sizeof (*ids), compare_cb);
}

/* Division that rounds down also for negative numbers, since differences may be negative. */
static int64_t floor_div (int64_t n, int64_t by)
{
    return n / by - (n % by < 0);
}

int64_t uid_unix_ms (const struct uid *id)
{
    return (id->a * MEGA + id->b) * 1000 + floor_div (id->c, 1000);
}

void uid_globalize (const struct uid *id, const struct uid_node *self, struct uid *out)
{
    struct uid result = *id;

    if (id->kind == UID_LOCAL) {
        result.kind = UID_GLOBAL;
        result.node = *self;
    }
    *out = result;
}

int uid_localize (const struct uid *id, const struct uid_node *self, struct uid *out)
{
    if (id->kind == UID_LOCAL) {
        *out = *id;
        return 0;
    }
    bool own = id->node.name ? compare_nodes (&id->node, self) == 0 : id->node.fingerprint == self->fingerprint;
    if (!own)
        return errset (EINVAL);
    return uid_strip (id, out);
}

int uid_strip (const struct uid *id, struct uid *out)
{
    if (id->kind != UID_GLOBAL)
        return errset (EINVAL);
    *out = *id;
    out->kind = UID_LOCAL;
    out->node = (struct uid_node){ 0 };
    return 0;
}

static bool is_small (int64_t n)
{
    const int64_t limit = INT64_C (1) << 20;
    return n > -limit && n < limit;
}

static bool can_subtract (const struct uid *id)
{
    return is_small (id->a) && is_small (id->b) && is_small (id->c) && is_small (id->sequence);
}

static int64_t unix_us (const struct uid *id)
{
    return (id->a * MEGA + id->b) * MEGA + id->c;
}

int uid_distance (const struct uid *x, const struct uid *y, struct uid *out)
{
    if (x->kind != y->kind || (x->kind == UID_GLOBAL && compare_nodes (&x->node, &y->node)))
        return errset (EINVAL);
    if (!can_subtract (x) || !can_subtract (y))
        return errset (EOVERFLOW);
    int64_t us = unix_us (x) - unix_us (y);
    *out = (struct uid){
        .kind = x->kind,
        .node = x->node,
        .a = us / MEGA / MEGA,
        .b = us / MEGA % MEGA,
        .c = us % MEGA,
        .sequence = x->sequence - y->sequence,
    };
    return 0;
}

/* --- vector clocks ----------------------------------------------------------------------- */

/* The first entry of a clock that belongs to 'node'. Entry 'without' of the clock is ignored (NULL: none). */
static const struct uid *find_node (const struct uid *clock, size_t count, const struct uid_node *node,
                                    const struct uid *without)
{
    for (size_t i = 0; i < count; i++)
        if (&clock[i] != without && compare_nodes (&clock[i].node, node) == 0)
            return &clock[i];
    return NULL;
}

size_t uid_vclock_tick (const struct uid *fresh, const struct uid *clock, size_t count, struct uid *out)
{
    const struct uid *old = find_node (clock, count, &fresh->node, NULL);
    size_t n = 0;

    out[n++] = *fresh;
    for (size_t i = 0; i < count; i++)
        if (&clock[i] != old)
            out[n++] = clock[i];
    return n;
}

/* Compare entries by node. Entries of the same node keep their order. */
static int compare_places_cb (const void *x, const void *y)
{
    const struct uid *a = *(const struct uid *const *)x, *b = *(const struct uid *const *)y;
    int order = compare_nodes (&a->node, &b->node);

    return order ? order : (a > b) - (a < b);
}

static void sort_by_node (const struct uid *clock, size_t count, const struct uid **sorted)
{
    for (size_t i = 0; i < count; i++)
        sorted[i] = &clock[i];
    if (count > 1)
        qsort (sorted, count, sizeof (sorted[0]), compare_places_cb);
}

static size_t merge (const struct uid **a, size_t na, const struct uid **b, size_t nb, struct uid *out)
{
    size_t n = 0;

    while (na && nb) {
        int order = compare_nodes (&(*a)->node, &(*b)->node);
        bool take_a = order ? order < 0 : uid_compare (*a, *b) >= 0;
        out[n++] = take_a ? **a : **b;
        if (order <= 0)
            a++, na--;
        if (order >= 0)
            b++, nb--;
    }
    while (na--)
        out[n++] = **a++;
    while (nb--)
        out[n++] = **b++;
    return n;
}

int uid_vclock_join (const struct uid *a, size_t na, const struct uid *b, size_t nb, struct uid *out)
{
    if (na > UID_VCLOCK_MAX || nb > UID_VCLOCK_MAX)
        return errset (EINVAL);
    const struct uid **sorted = calloc (na + nb + 1, sizeof (sorted[0]));
    if (!sorted)
        return -1;
    sort_by_node (a, na, sorted);
    sort_by_node (b, nb, sorted + na);
    size_t n = merge (sorted, na, sorted + na, nb, out);
    free (sorted);
    return (int)n;
}

/* Whether 'a' descends from 'b'. Entry 'not_a' of 'a' and entry 'not_b' of 'b' are ignored (NULL: none). */
static bool descends (const struct uid *a, size_t na, const struct uid *not_a, const struct uid *b, size_t nb,
                      const struct uid *not_b)
{
    for (size_t i = 0; i < nb; i++) {
        if (&b[i] == not_b)
            continue;
        const struct uid *seen = find_node (a, na, &b[i].node, not_a);
        if (!seen || uid_compare (&b[i], seen) > 0)
            return false;
    }
    return true;
}

bool uid_vclock_descends (const struct uid *a, size_t na, const struct uid *b, size_t nb)
{
    return descends (a, na, NULL, b, nb, NULL);
}

bool uid_vclock_descends_without (const struct uid_node *node, const struct uid *a, size_t na, const struct uid *b,
                                  size_t nb)
{
    return descends (a, na, find_node (a, na, node, NULL), b, nb, find_node (b, nb, node, NULL));
}

int uid_vclock_diff (const struct uid *a, size_t na, const struct uid *b, size_t nb, struct uid *out)
{
    int n = 0;

    for (size_t i = 0; i < nb; i++) {
        const struct uid *seen = find_node (a, na, &b[i].node, NULL);
        if (!seen)
            out[n++] = b[i];
        else if (uid_compare (&b[i], seen) > 0 && uid_distance (&b[i], seen, &out[n++]) < 0)
            return -1;
    }
    return n;
}

/* --- generator ----------------------------------------------------------------------------
 *
 * - 'word' is the number of the step since the Unix epoch (50 bits: 977 steps a second) and the sequence within the
 *   step (14 bits). An id exists if and only if a compare-and-swap has put its word there, and the word only grows. So
 *   no id is made twice and all ids are in order, with any clock and any number of threads.
 * - The sequence begins at 0 in each step, so a step has at most 16384 ids.
 * - The word after the last sequence of a step is, by arithmetic, the word of the first sequence of the next step. The
 *   generator may use the next step only if the clock has reached it, or if the step is at most 'ahead' steps before
 *   the clock reaches it.
 */

#define SEQUENCE_BITS 14
#define STEP_MAX ((UINT64_C (1048576) * 1000000) * UID_STEPS_PER_SECOND - 1)
static_assert (STEP_MAX < UINT64_MAX >> SEQUENCE_BITS, "the step after the last one must fit into a word");
static_assert (UID_SEQUENCE_MAX == (1 << SEQUENCE_BITS) - 1 && UID_PER_STEP == UID_SEQUENCE_MAX + 1,
               "the word after the last sequence of a step must be the first of the next step");

#define NAP_MAX_US MEGA /* longest sleep: the clock may be set meanwhile, so it is read again after a second */

struct uid_gen {
    _Atomic uint64_t word; /* the word of the next id */
    uint64_t ahead;        /* how many steps ids may be ahead of the clock */
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

/* Make the id of a word. This is the only place where a word becomes an id. */
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
    assert (step > ahead);
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
