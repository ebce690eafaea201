/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* uid_gen_test.c - the generator: limits of a step, clocks that jump, waiting, and defects of the original */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/failing_alloc.h"
#include "test/failing_pages.h"
#include "test/signals.h"
#include "test/ids/uid_vectors.h"

#define SECOND INT64_C (1000000)

static struct uid_gen *gen_new (int64_t ahead_us)
{
    struct uid_gen_config config = { .node = uid_node_named (OWN_NODE), .ahead_us = ahead_us };
    return uid_gen_create (&config);
}

static void test_step (void)
{
    struct uid_gen *gen = gen_new (0);
    int64_t t = 1800 * SECOND * SECOND + 2048 + 24, wait = 0;
    struct uid id;

    ok (uid_gen_reserve (gen, UID_LOCAL, t, 16000, &id, NULL) == 16000 && id.kind == UID_LOCAL && id.sequence == 0
            && id.a == 1800 && id.c == 2048,
        "the ids of a step begin with sequence 0");
    ok (uid_gen_reserve (gen, UID_GLOBAL, t, 16000, &id, NULL) == 384 && id.sequence == 16000 && id.kind == UID_GLOBAL
            && !strcmp (id.node.name, OWN_NODE),
        "local and global ids share the 16384 ids of a step");
    ok (uid_gen_reserve (gen, UID_LOCAL, t, 1, &id, &wait) < 0 && errno == EAGAIN && wait == 1000,
        "after the 16384 ids of a step the time to wait is the rest of the step; the original repeats ids");
    ok (uid_gen_reserve (gen, UID_LOCAL, t + wait, 1, &id, NULL) == 1 && id.c == 3072 && id.sequence == 0,
        "when the step is over the next step begins");
    ok (uid_gen_reserve (gen, UID_LOCAL, t, 1, &id, NULL) == 1 && id.c == 3072 && id.sequence == 1,
        "if the clock goes back, ids continue in the newest step; the original goes back");
    uid_gen_reserve (gen, UID_LOCAL, t, 16384, &id, NULL);
    ok (uid_gen_reserve (gen, UID_LOCAL, t - SECOND, 1, &id, &wait) < 0 && errno == EAGAIN && wait == SECOND + 2024,
        "if the clock went back, ids wait when the newest step is used up");
    uid_gen_destroy (gen);
}

static void test_short_step (void)
{
    struct uid_gen *gen = gen_new (0);
    int64_t wait = 0;
    struct uid id;

    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND - 1, 20000, &id, NULL) == 16384 && id.c == 999424,
        "the last step of a second begins at 999424");
    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND - 576, 1, &id, &wait) < 0 && errno == EAGAIN && wait == 576,
        "the last step of a second is 576 microseconds long");
    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND, 1, &id, NULL) == 1 && id.b == 1 && id.c == 0,
        "after the last step of a second the next second begins");
    uid_gen_destroy (gen);
}

static void test_ahead (void)
{
    struct uid_gen *gen = gen_new (SECOND);
    struct uid id;
    int64_t wait = 0;
    unsigned steps = 0;

    while (uid_gen_reserve (gen, UID_LOCAL, 0, 16384, &id, &wait) == 16384)
        steps++;
    ok (steps == 978 && errno == EAGAIN && wait == UID_STEP_US && id.b == 1 && id.c == 0,
        "if ids may be one second ahead, the present step and 977 more can be used immediately");
    uid_gen_destroy (gen);
}

static void test_limits (void)
{
    struct uid_gen *gen = gen_new (UID_UNIX_US_MAX);
    struct uid id;

    ok (uid_gen_reserve (gen, UID_LOCAL, -1, 1, &id, NULL) < 0 && errno == EOVERFLOW,
        "a time before 1970 fails with EOVERFLOW");
    ok (uid_gen_reserve (gen, UID_LOCAL, UID_UNIX_US_MAX + 1, 1, &id, NULL) < 0 && errno == EOVERFLOW,
        "a time after the format's end fails with EOVERFLOW");
    ok (uid_gen_reserve (gen, UID_LOCAL, UID_UNIX_US_MAX, 16384, &id, NULL) == 16384 && id.a == UID_A_MAX
            && id.b == UID_B_MAX && id.c == 999424,
        "ids of the last step of the format can be made");
    ok (uid_gen_reserve (gen, UID_LOCAL, UID_UNIX_US_MAX, 1, &id, NULL) < 0 && errno == EOVERFLOW,
        "after the last step of the format no id can be made, even if any time ahead is permitted");
    uid_gen_destroy (gen);
    uid_gen_destroy (NULL);
    ok ((gen = uid_gen_create (NULL)) && uid_gen_reserve (gen, UID_GLOBAL, SECOND, 1, &id, NULL) == 1
            && id.node.fingerprint == 0 && !id.node.name,
        "the default configuration has a node of fingerprint 0");
    uid_gen_destroy (gen);
    ok (!uid_gen_create (&(struct uid_gen_config){ .after_us = -1 }) && errno == EINVAL
            && !uid_gen_create (&(struct uid_gen_config){ .ahead_us = -1 }) && errno == EINVAL,
        "negative times in the configuration are refused");
}

static void test_restart (void)
{
    struct uid_gen *gen = gen_new (0);
    int64_t t = 1700 * SECOND * SECOND;
    struct uid last, id;

    uid_gen_reserve (gen, UID_LOCAL, t, 1, &last, NULL);
    struct uid_gen_config config = { .after_us = uid_gen_newest_us (gen) };
    ok (config.after_us == t, "uid_gen_newest_us () returns the time of the newest id");
    uid_gen_destroy (gen);
    gen = uid_gen_create (&config);
    ok (uid_gen_newest_us (gen) == t, "uid_gen_newest_us () returns the time given at the creation if no id was made");
    ok (uid_gen_reserve (gen, UID_LOCAL, t - SECOND, 1, &id, NULL) < 0 && errno == EAGAIN,
        "a generator that is created after an id makes no id before or in the step of that id");
    ok (uid_gen_reserve (gen, UID_LOCAL, t + UID_STEP_US, 1, &id, NULL) == 1 && uid_compare (&id, &last) > 0,
        "a generator that is created after an id makes ids in the next step");
    uid_gen_destroy (gen);
}

struct fake {
    int64_t now_us, slept_us;
};

static int64_t fake_now (void *arg)
{
    return ((struct fake *)arg)->now_us;
}

static void fake_sleep (void *arg, int64_t for_us)
{
    struct fake *fake = arg;
    fake->now_us += for_us;
    fake->slept_us += for_us;
}

static void test_waiting (void)
{
    struct fake fake = { .now_us = 5 * SECOND };
    struct uid_gen_config config = { .time = { fake_now, fake_sleep, &fake } };
    struct uid_gen *gen = uid_gen_create (&config);
    struct uid id;

    for (int i = 0; i < 16384; i++)
        uid_gen_make (gen, UID_LOCAL, 0, &id);
    ok (id.sequence == 16383 && fake.slept_us == 0, "16384 ids of a step need no waiting");
    ok (uid_gen_make (gen, UID_LOCAL, 1023, &id) < 0 && errno == EAGAIN && fake.slept_us == 0,
        "after the ids of a step the next one cannot be made within 1023 microseconds");
    ok (uid_gen_make (gen, UID_LOCAL, 1024, &id) == 0 && fake.slept_us == 1024 && id.c == 1024,
        "after the ids of a step the next one can be made within 1024 microseconds");
    fake.now_us -= 3600 * SECOND;
    ok (uid_gen_make (gen, UID_LOCAL, -1, &id) < 0 && errno == EOVERFLOW,
        "a clock before 1970 ends the wait for an id");
    uid_gen_destroy (gen);
}

/* With any clock each id is above the one before. */
static void test_random_clock (int64_t ahead_us)
{
    struct uid_gen *gen = gen_new (ahead_us);
    struct uid last = { .sequence = -1 }, id;
    int64_t t = SECOND;
    uint64_t state = 3;
    unsigned made = 0, good = 0;

    for (int i = 0; i < 100000; i++) {
        state = state * UINT64_C (6364136223846793005) + 1;
        int64_t jump = (int64_t)(state >> 40 & 0xfff) - 2000;
        t = t + jump < 0 ? 0 : t + jump;
        int n = uid_gen_reserve (gen, UID_LOCAL, t, 1 + (state >> 33 & 0x3fff), &id, NULL);
        if (n < 0)
            continue;
        made++;
        good += uid_compare (&id, &last) > 0;
        last = id;
        last.sequence += n - 1;
        good -= last.sequence > UID_SEQUENCE_MAX;
    }
    ok (good == made && made > 1000, "ids increase while the clock jumps (%u reservations)", made);
    uid_gen_destroy (gen);
}

/* Defects of the original that the vectors show: uid_make () reproduces them, the generator must not. */
static void test_originals_defects (json_t *vectors)
{
    json_t *generator = vectors_section (vectors, "generator"), *row;
    json_t *wrap = json_object_get (generator, "sequence_wrap_in_one_tick");
    json_t *back = json_object_get (generator, "clock_going_back_is_not_handled");
    struct uid_gen *gen = gen_new (0);
    struct uid id, last = { .sequence = -1 };
    size_t i, good = 0, made = 0;

    json_array_foreach (wrap, i, row)
        good += uid_make (SECOND * SECOND + 2 * SECOND + 1024 + 7, 16380 + i, &id) == 0 && is_value (&id, row);
    ok (good == i && i > 0, "section generator.sequence_wrap_in_one_tick: uid_make () wraps like the original");
    good = 0;
    json_array_foreach (back, i, row) {
        struct uid theirs;
        vector_value (row, &theirs);
        int64_t us = (theirs.a * SECOND + theirs.b) * SECOND + theirs.c;
        good += uid_make (us, (uint64_t)theirs.sequence, &id) == 0 && same_value (&id, &theirs);
        uid_gen_reserve (gen, UID_LOCAL, us, 1, &id, NULL);
        made += uid_compare (&id, &last) > 0;
        last = id;
    }
    ok (good == i && made == i,
        "section generator.clock_going_back_is_not_handled: uid_make () goes back, the generator does not");
    uid_gen_destroy (gen);
}

/* With the system's clock: the first id can be made in 100 ms, and the timeout is 1 s. */
static void test_signals (void)
{
    struct uid_gen_config config = { .node = uid_node_named (OWN_NODE) };
    struct timespec ts;
    struct uid id;

    clock_gettime (CLOCK_REALTIME, &ts);
    config.after_us = ts.tv_sec * SECOND + ts.tv_nsec / 1000 + SECOND / 10;
    struct uid_gen *gen = uid_gen_create (&config);
    signals_every (1000);
    int rc = uid_gen_make (gen, UID_LOCAL, SECOND, &id);
    signals_every (0);
    ok (rc == 0 && signals_came > 0,
        "signals that interrupt the sleep of a generator do not shorten the wait (%d arrived)", (int)signals_came);
    uid_gen_destroy (gen);
}

/* Parent and child would continue in the same step. */
static void test_fork (void)
{
    struct uid_gen *gen = gen_new (0);
    int refused = 0, status;
    struct uid id;

    for (int way = 0; way < 3; way++) {
        pid_t pid = fork ();

        if (pid == 0) {
            int rc = way == 0   ? uid_gen_reserve (gen, UID_LOCAL, SECOND, 1, &id, NULL)
                     : way == 1 ? uid_gen_try (gen, UID_LOCAL, &id, NULL)
                                : uid_gen_make (gen, UID_LOCAL, 0, &id);
            int errnum = rc < 0 ? errno : 0;
            uid_gen_destroy (gen);
            _exit (errnum);
        }
        waitpid (pid, &status, 0);
        refused += WIFEXITED (status) && WEXITSTATUS (status) == EPERM;
    }
    ok (refused == 3, "a child process makes no ids, because they would be its parent's ids");
    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND, 1, &id, NULL) == 1,
        "the parent of a forked process continues to make ids");
    uid_gen_destroy (gen);
}

/* If the kernel does not wipe pages, a child process is detected by its process id. */
static void test_fork_told_by_ids (void)
{
    struct uid id;

    no_wiping = true;
    struct uid_gen *gen = gen_new (0);
    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND, 1, &id, NULL) == 1,
        "without pages that the kernel wipes at a fork, ids are made");
    generation++;
    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND, 1, &id, NULL) < 0 && errno == EPERM,
        "without wiped pages, a process with another id makes no ids");
    generation--;
    no_wiping = false;
    uid_gen_destroy (gen);
}

static void test_no_memory (void)
{
    struct uid clock = { .kind = UID_GLOBAL }, out[2];

    countdown = 0;
    ok (!uid_gen_create (NULL) && errno == ENOMEM && failures == 1,
        "without memory a generator of uids cannot be created");
    no_pages = true;
    errno = 0;
    ok (!uid_gen_create (NULL) && errno == ENOMEM, "without a page a generator of uids cannot be created");
    no_pages = false;
    countdown = 0;
    ok (uid_vclock_join (&clock, 1, &clock, 1, out) < 0 && errno == ENOMEM && failures == 2,
        "without memory vector clocks cannot be joined");
    ok (uid_vclock_join (&clock, 1, &clock, 1, out) == 1, "with memory vector clocks can be joined");
}

static void test_none (void)
{
    struct uid_gen *gen = gen_new (0);
    struct uid id = { .sequence = 99 };

    ok (uid_gen_reserve (gen, UID_LOCAL, SECOND, 0, &id, NULL) == -1 && errno == EINVAL && id.sequence == 99,
        "a request for 0 ids fails with EINVAL");
    ok (uid_gen_reserve (gen, UID_LOCAL, 0, 1, &id, NULL) == 1 && id.b == 0, "a request for 0 ids changes nothing");
    uid_gen_destroy (gen);
}

int main (void)
{
    json_t *vectors = vectors_load ("uid");

    test_step ();
    test_short_step ();
    test_ahead ();
    test_limits ();
    test_restart ();
    test_waiting ();
    test_random_clock (0);
    test_random_clock (SECOND);
    test_originals_defects (vectors);
    test_signals ();
    test_fork ();
    test_fork_told_by_ids ();
    test_no_memory ();
    test_none ();
    json_decref (vectors);
    return done_testing ();
}
