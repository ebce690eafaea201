/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_random.c - random bits: each 3.5 KB are the ChaCha key stream of a new key from getrandom ()
 *
 * - A key is used for one filling and then forgotten, and bits are wiped as they are drawn: who
 *   reads the memory learns nothing about ids that were made.
 * - All lives in a page that the kernel wipes in a child process (MADV_WIPEONFORK), so the child
 *   finds nothing left and takes a key of its own.  Where the kernel can't, each draw compares the
 *   process id.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "flax_random.h"

#define ROUNDS                                                                                     \
    12 /* of ChaCha: as RFC 8439, with the rounds that suffice where a key makes 3.5 KB */

/* --- ChaCha, eight blocks at a time, one in each lane ------------------------------------ */

typedef uint32_t lanes __attribute__ ((vector_size (32)));

#define INLINE static inline __attribute__ ((always_inline))
#define ROTATE(v, by) ((v) << (by) | (v) >> (32 - (by)))

/* A macro, for vectors this wide are passed differently by functions with and without AVX2. */
#define QUARTER_ROUND(a, b, c, d)                                                                  \
    do {                                                                                           \
        a += b, d = ROTATE (d ^ a, 16);                                                            \
        c += d, b = ROTATE (b ^ c, 12);                                                            \
        a += b, d = ROTATE (d ^ a, 8);                                                             \
        c += d, b = ROTATE (b ^ c, 7);                                                             \
    } while (0)

INLINE void eight_blocks (const uint32_t state[16], int rounds, uint8_t *out)
{
    const lanes block = {0, 1, 2, 3, 4, 5, 6, 7};
    lanes x[16];

    for (int i = 0; i < 16; i++)
        x[i] = (lanes){0} + state[i];
    x[12] += block;
    for (; rounds > 0; rounds -= 2) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            QUARTER_ROUND (x[i], x[4 + i], x[8 + i], x[12 + i]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            QUARTER_ROUND (x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
    }
    x[12] += block;
    for (int i = 0; i < 16; i++)
        x[i] += state[i];
    memcpy (out, x, sizeof (x));
}

static void blocks_plain (const uint32_t state[16], int rounds, uint8_t *out)
{
    eight_blocks (state, rounds, out);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__ ((target ("avx2"))) static void blocks_avx2 (const uint32_t state[16], int rounds,
                                                           uint8_t *out)
{
    eight_blocks (state, rounds, out);
}
#define HAVE_AVX2() __builtin_cpu_supports ("avx2")
#else
#define blocks_avx2 blocks_plain
#define HAVE_AVX2() false
#endif

static uint32_t get_le32 (const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void flax_chacha (const uint8_t key[32], uint32_t counter, int rounds, uint8_t *out, size_t chunks)
{
    uint32_t state[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

    for (int i = 0; i < 8; i++)
        state[4 + i] = get_le32 (key + 4 * i);
    state[12] = counter;
    for (; chunks > 0; chunks--, out += FLAX_CHACHA_CHUNK, state[12] += 8)
        if (HAVE_AVX2 ())
            blocks_avx2 (state, rounds, out);
        else
            blocks_plain (state, rounds, out);
    explicit_bzero (state, sizeof (state));
}

/* --- filling and drawing ----------------------------------------------------------------- */

/* getrandom () of up to 256 bytes is whole or fails; EINTR only while the kernel gathers its first
 * entropy.
 */
static int fill (struct flax_random *random)
{
    uint8_t key[32];
    ssize_t n;

    while ((n = getrandom (key, sizeof (key), 0)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return -1;
    flax_chacha (key, 0, ROUNDS, random->bytes, FLAX_RANDOM_CHUNKS);
    explicit_bzero (key, sizeof (key));
    random->left = FLAX_RANDOM_BYTES;
    return 0;
}

static bool is_child (const struct flax_random *random)
{
    return !random->alive || (!random->wiped_by_kernel && random->pid != getpid ());
}

static void adopt (struct flax_random *random, bool wiped_by_kernel)
{
    random->left = 0;
    random->alive = true;
    random->wiped_by_kernel = wiped_by_kernel;
    random->pid = getpid ();
}

int flax_random_prepare (struct flax_random *random, bool *forked)
{
    if (is_child (random)) {
        /* a wiped page says 'alive' false, so that is how it was told */
        adopt (random, !random->alive);
        *forked = true;
    }
    return random->left == 0 ? fill (random) : 0;
}

struct flax_random *flax_random_create (void)
{
    struct flax_random *random =
        mmap (NULL, sizeof (*random), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (random == MAP_FAILED)
        return NULL;
    adopt (random, madvise (random, sizeof (*random), MADV_WIPEONFORK) == 0);
    return random;
}

void flax_random_destroy (struct flax_random *random)
{
    if (random) {
        int saved_errno = errno;
        explicit_bzero (random, sizeof (*random));
        munmap (random, sizeof (*random));
        errno = saved_errno;
    }
}
