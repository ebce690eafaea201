/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conformance_test.c - the requirements for all kinds of id
 *
 * Ids are unique with many threads and over many steps of time, and in order within a thread. They are correct while
 * the clock goes back and forth, and exact at their limits. Their texts are read strictly. Time is a number that the
 * test changes.
 */
#include <pthread.h>
#include <string.h>

#include "test/ids/scheme.h"
#include "test/tap.h"

#define THREADS 8
#define PER_THREAD 150000
#define IDS_PER_STEP 75 /* after this number of ids a thread advances the clock: 16,000 steps in all */

static const struct scheme *const schemes[] = {
    &scheme_fluid, &scheme_flax_random, &scheme_flax_increasing, &scheme_sno, &scheme_uid_local, &scheme_uid_global,
};

static uint64_t next_random (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Return a time well within the range of all formats: 2024-02-21. */
static int64_t middle_ns (const struct scheme *s)
{
    int64_t ns = INT64_C (1708500000) * 1000000000;
    return ns < s->end_ns ? ns : s->end_ns / 2;
}

/* --- threads ----------------------------------------------------------------------------- */

/* Return the next time of the clock, after 'now_ns'. */
typedef int64_t (*move_f) (const struct scheme *s, uint64_t *state, int64_t now_ns);

static int64_t move_forward (const struct scheme *s, uint64_t *state, int64_t now_ns)
{
    return now_ns + s->step_ns;
}

/* Move the clock, on average two steps forward: otherwise a generator that never goes back would wait forever.
 * Sometimes the clock goes back by up to 60 steps.
 */
static int64_t move_about (const struct scheme *s, uint64_t *state, int64_t now_ns)
{
    int64_t steps = next_random (state) % 16 ? (int64_t)(next_random (state) % 9)
                                             : -(int64_t)(next_random (state) % 61);
    return now_ns + steps * s->step_ns;
}

struct worker {
    const struct scheme *scheme;
    void *gen;
    struct scheme_clock *clock;
    move_f move;
    uint8_t *ids; /* PER_THREAD ids, each in 'size' bytes */
    pthread_barrier_t *start;
    uint64_t state;
    unsigned steps; /* how often the thread changed the clock */
    bool in_order;
};

static void move_clock (struct worker *w)
{
    int64_t now_ns = atomic_load (&w->clock->now_ns);
    atomic_compare_exchange_strong (&w->clock->now_ns, &now_ns, w->move (w->scheme, &w->state, now_ns));
    w->steps++;
}

static void *work (void *arg)
{
    struct worker *w = arg;
    size_t size = w->scheme->size;

    pthread_barrier_wait (w->start);
    for (unsigned i = 0; i < PER_THREAD; i++) {
        uint8_t *id = w->ids + i * size;
        while (w->scheme->make (w->gen, id) < 0)
            move_clock (w);
        if (i > 0 && memcmp (id - size, id, size) >= 0)
            w->in_order = false;
        if (i % IDS_PER_STEP == 0)
            move_clock (w);
    }
    return NULL;
}

/* Compare ids of a fixed size, because qsort () has no argument for the size. */
#define COMPARE(n)                                        \
    static int compare_##n (const void *a, const void *b) \
    {                                                     \
        return memcmp (a, b, n);                          \
    }
COMPARE (8)
COMPARE (10)
COMPARE (12)

static size_t count_repeated (uint8_t *ids, size_t count, size_t size)
{
    size_t repeated = 0;

    qsort (ids, count, size, size == 8 ? compare_8 : size == 10 ? compare_10 : compare_12);
    for (size_t i = 1; i < count; i++)
        repeated += memcmp (ids + (i - 1) * size, ids + i * size, size) == 0;
    return repeated;
}

static void run_threads (const struct scheme *s, move_f move, bool expect_order, const char *clock_name)
{
    struct scheme_clock clock = { .now_ns = middle_ns (s) };
    uint8_t *ids = malloc ((size_t)THREADS * PER_THREAD * s->size);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    void *gen = s->create (&clock);
    unsigned steps = 0, in_order = 0;
    pthread_barrier_t start;

    if (!ids)
        bail_out ("out of memory");
    pthread_barrier_init (&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .scheme = s,
            .gen = gen,
            .clock = &clock,
            .move = move,
            .ids = ids + (size_t)i * PER_THREAD * s->size,
            .start = &start,
            .state = (uint64_t)i,
            .in_order = true,
        };
        if (pthread_create (&threads[i], NULL, work, &workers[i]))
            bail_out ("cannot create a thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join (threads[i], NULL);
        steps += workers[i].steps;
        in_order += workers[i].in_order;
    }
    s->destroy (gen);
    pthread_barrier_destroy (&start);
    size_t repeated = count_repeated (ids, (size_t)THREADS * PER_THREAD, s->size);
    ok (repeated == 0 && steps >= 10000, "%s: %d threads make no id twice while the clock goes %s (%u steps)", s->name,
        THREADS, clock_name, steps);
    if (expect_order)
        ok (in_order == THREADS, "%s: each thread's ids increase while the clock goes %s", s->name, clock_name);
    free (ids);
}

/* --- limits ------------------------------------------------------------------------------ */

static void test_per_step (const struct scheme *s)
{
    struct scheme_clock clock = { .now_ns = middle_ns (s) };
    void *gen = s->create (&clock);
    uint8_t id[SCHEME_SIZE_MAX];
    unsigned made = 0;

    while (made <= s->per_step && s->make (gen, id) == 0)
        made++;
    ok (made == s->per_step, "%s: a step has exactly %u ids", s->name, s->per_step);
    atomic_store (&clock.now_ns, middle_ns (s) + s->step_ns);
    ok (s->make (gen, id) == 0, "%s: after a step is used up the next step has ids", s->name);
    s->destroy (gen);
}

static bool makes_at (const struct scheme *s, int64_t now_ns)
{
    struct scheme_clock clock = { .now_ns = now_ns };
    void *gen = s->create (&clock);
    uint8_t id[SCHEME_SIZE_MAX];
    bool made = s->make (gen, id) == 0;

    s->destroy (gen);
    return made;
}

static void test_time_limits (const struct scheme *s)
{
    ok (makes_at (s, s->begin_ns) && !makes_at (s, s->begin_ns - 1),
        "%s: ids can be made from the first time on, and not before", s->name);
    if (s->end_ns < INT64_MAX)
        ok (makes_at (s, s->end_ns - 1) && !makes_at (s, s->end_ns),
            "%s: ids can be made up to the last time, and not after", s->name);
}

static void test_end_of_last_step (const struct scheme *s)
{
    struct scheme_clock clock = { .now_ns = s->end_ns - 1 };
    void *gen = s->create (&clock);
    uint8_t id[SCHEME_SIZE_MAX];
    unsigned made = 0;

    while (made <= s->per_step && s->make (gen, id) == 0)
        made++;
    atomic_store (&clock.now_ns, s->end_ns);
    ok (made == s->per_step && s->make (gen, id) < 0,
        "%s: all ids of the last step can be made, and then no id with an earlier time", s->name);
    s->destroy (gen);
}

/* --- text -------------------------------------------------------------------------------- */

static void random_id (const struct scheme *s, uint64_t *state, uint8_t *id)
{
    for (size_t i = 0; i < s->size; i++)
        id[i] = (uint8_t)next_random (state);
}

static bool survives (const struct scheme *s, const uint8_t *id)
{
    uint8_t back[SCHEME_SIZE_MAX];
    char text[SCHEME_TEXT_MAX];

    s->encode (id, text);
    return s->decode (text, strlen (text), back) == 0 && memcmp (id, back, s->size) == 0;
}

static void test_round_trip (const struct scheme *s)
{
    uint64_t state = 11;
    uint8_t id[SCHEME_SIZE_MAX];
    unsigned good = 0, n = 0;

    for (size_t bit = 0; bit <= 8 * s->size; bit++)
        for (int fill = 0; fill < 2; fill++, n++) {
            memset (id, fill ? 0xff : 0, sizeof (id));
            if (bit < 8 * s->size)
                id[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            good += survives (s, id);
        }
    for (int i = 0; i < 20000; i++, n++) {
        random_id (s, &state, id);
        good += survives (s, id);
    }
    ok (good == n, "%s: ids can be written and read (%u: each single bit set or cleared, and random ids)", s->name, n);
}

static int sign (int n)
{
    return (n > 0) - (n < 0);
}

static bool same_order (const struct scheme *s, const uint8_t *a, const uint8_t *b)
{
    char text_a[SCHEME_TEXT_MAX], text_b[SCHEME_TEXT_MAX];

    s->encode (a, text_a);
    s->encode (b, text_b);
    return sign (strcmp (text_a, text_b)) == sign (memcmp (a, b, s->size));
}

static void test_text_order (const struct scheme *s)
{
    uint64_t state = 12;
    uint8_t a[SCHEME_SIZE_MAX], b[SCHEME_SIZE_MAX];
    unsigned good = 0, n = 20000;

    for (unsigned i = 0; i < n; i++) {
        random_id (s, &state, a);
        memcpy (b, a, sizeof (b));
        size_t at = next_random (&state) % s->size; /* the bytes before 'at' are equal, the others differ */
        for (size_t k = at; k < s->size; k++)
            b[k] = (uint8_t)next_random (&state);
        good += same_order (s, a, b);
    }
    ok (good == n, "%s: texts of ids sort in the order of their bytes", s->name);
}

/* Whether a text is refused, and the id then unchanged; or is accepted, and equal to the text of the id if the id has
 * only one.
 */
static bool judged (const struct scheme *s, const char *text, size_t len)
{
    uint8_t id[SCHEME_SIZE_MAX], before[SCHEME_SIZE_MAX];
    char back[SCHEME_TEXT_MAX];
    char *exact = malloc (len ? len : 1); /* the size is exact, so that a sanitizer finds reads behind the end */

    memset (id, 0x5a, sizeof (id));
    memcpy (before, id, sizeof (id));
    memcpy (exact, text, len);
    int rc = s->decode (exact, len, id);
    free (exact);
    if (rc < 0)
        return memcmp (id, before, sizeof (id)) == 0;
    if (!s->canonical)
        return true;
    s->encode (id, back);
    return strlen (back) == len && memcmp (back, text, len) == 0;
}

static void test_hostile_text (const struct scheme *s)
{
    uint64_t state = 13;
    uint8_t id[SCHEME_SIZE_MAX];
    char text[SCHEME_TEXT_MAX], hostile[SCHEME_TEXT_MAX];
    unsigned good = 0, n = 0;

    random_id (s, &state, id);
    s->encode (id, text);
    size_t len = strlen (text);
    for (size_t at = 0; at <= len; at++)
        for (int c = 0; c < 256; c++, n += 2) {
            memcpy (hostile, text, at);
            hostile[at] = (char)c;
            memcpy (hostile + at + 1, text + at, len - at);
            good += judged (s, hostile, len + 1); /* a text with an inserted character */
            memmove (hostile + at + 1, hostile + at + (at < len ? 2 : 1), len - at);
            good += judged (s, hostile, at < len ? len : len + 1); /* a text with a replaced character */
        }
    for (size_t cut = 0; cut < len; cut++, n++)
        good += judged (s, text, cut);
    for (int i = 0; i < 20000; i++, n++) {
        size_t any = next_random (&state) % SCHEME_TEXT_MAX;
        for (size_t k = 0; k < any; k++)
            hostile[k] = (char)next_random (&state);
        good += judged (s, hostile, any);
    }
    ok (good == n,
        "%s: %u texts with an extra, missing or wrong byte, and random ones, are accepted or refused correctly",
        s->name, n);
}

static void run (const struct scheme *s)
{
    run_threads (s, move_forward, s->ordered, "forward");
    run_threads (s, move_about, s->always_ordered, "back and forth");
    if (s->per_step)
        test_per_step (s);
    test_time_limits (s);
    if (s->per_step && s->end_ns < INT64_MAX)
        test_end_of_last_step (s);
    test_round_trip (s);
    test_text_order (s);
    test_hostile_text (s);
}

int main (void)
{
    for (size_t i = 0; i < sizeof (schemes) / sizeof (schemes[0]); i++)
        run (schemes[i]);
    return done_testing ();
}
