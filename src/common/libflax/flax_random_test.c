/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_random_test.c - the key stream is the one of RFC 8439, fillings differ, a child draws its own bits; and kernels
 * without some features
 */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "idtree/flax.h"
#include "libflax/flax_random.h"
#include "test/failing_alloc.h"
#include "test/failing_pages.h"
#include "test/tap.h"

static const struct {
    const char *name;
    uint8_t key_at, key_byte; /* all bytes are zero except this one */
    uint32_t counter;
    uint8_t stream[16]; /* the first bytes of the block */
} blocks[] = {
    /* RFC 8439 A.1: test vectors 1, 2 and 4, whose nonce is zero */
    { "RFC 8439 A.1 1",
      0,
      0x00,
      0,
      { 0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28 } },
    { "RFC 8439 A.1 2",
      0,
      0x00,
      1,
      { 0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a, 0x98, 0xba, 0x97, 0x7c, 0x73, 0x2d, 0x08, 0x0d } },
    { "RFC 8439 A.1 3",
      31,
      0x01,
      1,
      { 0x3a, 0xeb, 0x52, 0x24, 0xec, 0xf8, 0x49, 0x92, 0x9b, 0x9d, 0x82, 0x8d, 0xb1, 0xce, 0xd4, 0xdd } },
    { "RFC 8439 A.1 4",
      1,
      0xff,
      2,
      { 0x72, 0xd5, 0x4d, 0xfb, 0xf1, 0x2e, 0xc4, 0x4b, 0x36, 0x26, 0x92, 0xdf, 0x94, 0x13, 0x7f, 0x32 } },
};

/* Convert a chunk to the byte order of the RFC: words in the order of blocks, little endian. */
static void to_blocks (uint8_t *chunk)
{
    uint32_t words[128];
    memcpy (words, chunk, sizeof (words));
    for (int block = 0; block < 8; block++)
        for (int i = 0; i < 64; i++)
            chunk[64 * block + i] = (uint8_t)(words[i / 4 * 8 + block] >> i % 4 * 8);
}

static void test_chacha (void)
{
    for (size_t i = 0; i < sizeof (blocks) / sizeof (blocks[0]); i++) {
        uint8_t key[32] = { 0 }, out[2 * FLAX_CHACHA_CHUNK];
        key[blocks[i].key_at] = blocks[i].key_byte;
        flax_chacha (key, blocks[i].counter, 20, out, 2);
        to_blocks (out);
        ok (!memcmp (out, blocks[i].stream, 16),
            "ChaCha with %s as key and counter makes the same key stream as the reference", blocks[i].name);
        if (blocks[i].counter == 0)
            ok (!memcmp (out + 64, blocks[1].stream, 16), "the second lane of a ChaCha computation is the next block");
    }
    uint8_t key[32] = { 7 }, all[3 * FLAX_CHACHA_CHUNK], part[FLAX_CHACHA_CHUNK];
    unsigned good = 0;
    flax_chacha (key, 0, 20, all, 3);
    for (int chunk = 0; chunk < 3; chunk++)
        to_blocks (all + chunk * FLAX_CHACHA_CHUNK);
    for (uint32_t block = 0; block <= 16; block++) {
        flax_chacha (key, block, 20, part, 1);
        to_blocks (part);
        good += !memcmp (part, all + 64 * block, sizeof (part));
    }
    ok (good == 17, "a key stream that begins at any block equals the rest of the whole key stream");
}

static int compare_cb (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

#define DRAWS 10000

static void test_draws (void)
{
    static uint64_t bits[DRAWS];
    struct flax_random *random = flax_random_create ();
    unsigned good = 0, repeated = 0, ones = 0;
    bool forked = false;

    for (int i = 0; i < DRAWS; i++)
        good += flax_random_draw (random, &bits[i], &forked) == 0;
    for (int i = 0; i < DRAWS; i++)
        ones += (unsigned)__builtin_popcountll (bits[i]);
    qsort (bits, DRAWS, sizeof (bits[0]), compare_cb);
    for (int i = 1; i < DRAWS; i++)
        repeated += bits[i] == bits[i - 1];
    ok (good == DRAWS && !forked && repeated == 0,
        "%d random numbers, drawn from many fillings of the buffer, are all different", DRAWS);
    /* 320000 are expected, and 400 is one standard deviation: a deviation of ten does not occur */
    ok (ones > 316000 && ones < 324000, "half of the bits in the random numbers are set (%u)", ones);
    flax_random_destroy (random);
    flax_random_destroy (NULL);
}

static void test_fork (void)
{
    struct flax_random *random = flax_random_create ();
    uint64_t mine[8], theirs[8] = { 0 };
    bool forked = false;
    int fds[2];

    flax_random_draw (random, &mine[0], &forked);
    if (pipe (fds) < 0)
        bail_out ("pipe");
    pid_t pid = fork ();
    if (pid == 0) {
        bool good = true, told = false, again = false;
        for (int i = 0; i < 8; i++)
            good = good && flax_random_draw (random, &theirs[i], i ? &again : &told) == 0;
        good = good && write (fds[1], theirs, sizeof (theirs)) == sizeof (theirs);
        _exit (good && told && !again ? 0 : 1);
    }
    int status = 0;
    waitpid (pid, &status, 0);
    bool read_all = read (fds[0], theirs, sizeof (theirs)) == sizeof (theirs);
    for (int i = 0; i < 8; i++)
        flax_random_draw (random, &mine[i], &forked);
    bool shared = false;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++)
            shared = shared || mine[i] == theirs[k];
    ok (WIFEXITED (status) && WEXITSTATUS (status) == 0, "a fork is reported once in the child, at its first draw");
    ok (read_all && !shared && !forked, "after a fork the child draws other bits than its parent");
    flax_random_destroy (random);
}

/* --- kernels without some features ------------------------------------------------------------ */

ssize_t __real_getrandom (void *buf, size_t size, unsigned flags);
ssize_t __wrap_getrandom (void *buf, size_t size, unsigned flags);

static int random_errnum, random_failures; /* getrandom () fails with this errno this number of times */

ssize_t __wrap_getrandom (void *buf, size_t size, unsigned flags)
{
    if (random_failures == 0)
        return __real_getrandom (buf, size, flags);
    random_failures--;
    errno = random_errnum;
    return -1;
}

/* If the kernel does not wipe pages, a child process is detected by its process id. */
static void test_fork_told_by_ids (void)
{
    uint64_t a, b, c;
    bool forked = false;

    no_wiping = true;
    struct flax_random *random = flax_random_create ();
    ok (flax_random_draw (random, &a, &forked) == 0 && flax_random_draw (random, &b, &forked) == 0 && !forked,
        "without pages that the kernel wipes at a fork, random bits are drawn");
    generation++;
    ok (flax_random_draw (random, &b, &forked) == 0 && forked,
        "without wiped pages a fork is reported because the process has another id");
    forked = false;
    ok (flax_random_draw (random, &c, &forked) == 0 && !forked && a != b && b != c,
        "without wiped pages a fork is reported once");
    generation--;
    no_wiping = false;
    flax_random_destroy (random);
}

static void test_no_random (void)
{
    struct flax_gen *gen = flax_gen_create (NULL);
    int64_t t = FLAX_EPOCH_MS + 1;
    flax_t id;

    random_errnum = EINTR;
    random_failures = 3;
    ok (flax_gen_reserve (gen, t, 1, &id) == 1 && random_failures == 0, "an interrupted getrandom () is called again");
    flax_gen_destroy (gen);
    gen = flax_gen_create (NULL);
    random_errnum = ENOSYS;
    random_failures = 1;
    ok (flax_gen_reserve (gen, t, 1, &id) < 0 && errno == ENOSYS,
        "another error than EINTR of getrandom () is returned, and no id is made");
    ok (flax_gen_reserve (gen, t, 1, &id) == 1, "no id is made until getrandom () succeeds");
    flax_gen_destroy (gen);
}

static void test_no_memory (void)
{
    countdown = 0;
    ok (!flax_gen_create (NULL) && errno == ENOMEM && failures == 1,
        "without memory for its state a generator cannot be made");
    no_pages = true;
    errno = 0;
    ok (!flax_gen_create (NULL) && errno == ENOMEM, "without pages for its buffer a generator cannot be made");
    no_pages = false;
}

static void *make_cb (void *arg)
{
    flax_t id;

    return flax_gen_make (arg, &id) == 0 ? arg : NULL;
}

static int64_t system_ms (void)
{
    struct timespec now; /* time () may lag by a tick and return the second before */

    clock_gettime (CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C (1000) + now.tv_nsec / 1000000;
}

/* With the system's clock, and with the lock, since there is another thread. */
static void test_system_clock (void)
{
    struct flax_gen *gen = flax_gen_create (&(struct flax_gen_config){ .mode = FLAX_INCREASING });
    int64_t before_ms = system_ms (), unix_ms;
    void *made = NULL;
    pthread_t thread;
    flax_t id;

    if (pthread_create (&thread, NULL, make_cb, gen) != 0)
        bail_out ("pthread_create");
    ok (flax_gen_make (gen, &id) == 0, "an id is made while another thread makes one");
    pthread_join (thread, &made);
    unix_ms = flax_unix_ms (&id);
    ok (made == gen && unix_ms >= before_ms - 1000 && unix_ms <= system_ms () + 1000,
        "two ids that two threads make at the same time have the system's time");
    flax_gen_destroy (gen);
}

int main (void)
{
    test_chacha ();
    test_draws ();
    test_fork ();
    test_fork_told_by_ids ();
    test_no_random ();
    test_no_memory ();
    test_system_clock ();
    return done_testing ();
}
