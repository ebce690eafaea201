/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_random.c - random bits: each 7.5 KB are the ChaCha key stream of a new key from getrandom ()
 *
 * - A key is erased after it was used for one filling, and bits are erased when they are drawn. So an attacker who
 *   reads the memory learns nothing about earlier ids.
 * - All data is in pages that the kernel wipes in a child process (fork_guard.h), so a child has no bits left and takes
 *   its own key.
 */
#define _GNU_SOURCE 1
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "flax_random.h"

#define ROUNDS 12 /* ChaCha12: as RFC 8439, but with fewer rounds, which suffice for 7.5 KB of a key */

/* --- ChaCha, eight blocks at a time, one in each lane ------------------------------------ */

typedef uint32_t lanes __attribute__ ((vector_size (32)));

/* A row of the state is four variables, x0 ... x3, because compilers would keep an array of vectors in memory. */
#define ROTATE(v, by) ((v) << (by) | (v) >> (32 - (by)))
#define LOAD(x, at) \
    lanes x##0 = zero + state[at], x##1 = zero + state[at + 1], x##2 = zero + state[at + 2], x##3 = zero + state[at + 3]
#define ADD(x, y) (x##0 += y##0, x##1 += y##1, x##2 += y##2, x##3 += y##3)
#define XOR_ROTATE(x, y, by)                                                                            \
    (x##0 = ROTATE (x##0 ^ y##0, by), x##1 = ROTATE (x##1 ^ y##1, by), x##2 = ROTATE (x##2 ^ y##2, by), \
     x##3 = ROTATE (x##3 ^ y##3, by))
#define TURN(x) (first = x##0, x##0 = x##1, x##1 = x##2, x##2 = x##3, x##3 = first)
#define QUARTER_ROUNDS                                                                                       \
    (ADD (a, b), XOR_ROTATE (d, a, 16), ADD (c, d), XOR_ROTATE (b, c, 12), ADD (a, b), XOR_ROTATE (d, a, 8), \
     ADD (c, d), XOR_ROTATE (b, c, 7))
#define STORE_ONE(v, at) (v += state[at], memcpy (out + sizeof (v) * (at), &v, sizeof (v)))
#define STORE(x, at) \
    (STORE_ONE (x##0, at), STORE_ONE (x##1, at + 1), STORE_ONE (x##2, at + 2), STORE_ONE (x##3, at + 3))

static void eight_blocks (const uint32_t state[16], int rounds, uint8_t *out)
{
    const lanes zero = { 0 }, block = { 0, 1, 2, 3, 4, 5, 6, 7 };
    lanes first;
    LOAD (a, 0);
    LOAD (b, 4);
    LOAD (c, 8);
    LOAD (d, 12);

    d0 += block;
    for (; rounds > 0; rounds -= 2) {
        QUARTER_ROUNDS;
        TURN (b), TURN (c), TURN (c), TURN (d), TURN (d), TURN (d); /* diagonals to columns */
        QUARTER_ROUNDS;
        TURN (b), TURN (b), TURN (b), TURN (c), TURN (c), TURN (d);
    }
    d0 += block;
    STORE (a, 0);
    STORE (b, 4);
    STORE (c, 8);
    STORE (d, 12);
}

void flax_chacha (const uint8_t key[32], uint32_t counter, int rounds, uint8_t *out, size_t chunks)
{
    uint32_t state[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };

    memcpy (state + 4, key, 32);
    for (int i = 4; i < 12; i++)
        state[i] = le32toh (state[i]);
    state[12] = counter;
    for (; chunks > 0; chunks--, out += FLAX_CHACHA_CHUNK, state[12] += 8)
        eight_blocks (state, rounds, out);
    explicit_bzero (state, sizeof (state));
}

/* --- filling and drawing ----------------------------------------------------------------- */

/* Fill 'bytes' from a new key. getrandom () of up to 256 bytes returns all of them or fails. EINTR is possible only
 * until the kernel has gathered its first entropy.
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

int flax_random_prepare (struct flax_random *random, bool *forked)
{
    if (fork_guard_is_child (&random->guard)) {
        random->left = 0;
        fork_guard_arm (&random->guard, sizeof (*random));
        *forked = true;
    }
    return random->left == 0 ? fill (random) : 0;
}

struct flax_random *flax_random_create (void)
{
    return fork_guard_create (sizeof (struct flax_random));
}

void flax_random_destroy (struct flax_random *random)
{
    if (random) {
        explicit_bzero (random, sizeof (*random));
        munmap (random, sizeof (*random));
    }
}
