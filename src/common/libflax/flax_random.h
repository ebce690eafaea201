/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_random.h - random bits that are fast and unpredictable; a child process never gets bits of its parent */
#ifndef FLAX_RANDOM_H
#define FLAX_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libutil/fork_guard.h"

#define FLAX_CHACHA_CHUNK 512 /* bytes: eight blocks */

/* Write 'chunks' chunks of eight blocks each of the ChaCha key stream (RFC 8439 2.3, where 'rounds' is 20), beginning
 * with block 'counter', with an all-zero nonce. Within a chunk the words are in the order of the computation, which is
 * not the RFC's order: the first word of each of the eight blocks, then the second word of each, and so on, in the
 * machine's byte order.
 */
void flax_chacha (const uint8_t key[32], uint32_t counter, int rounds, uint8_t *out, size_t chunks);

#define FLAX_RANDOM_CHUNKS 15 /* as many chunks as fit in two pages of 4 KB */
#define FLAX_RANDOM_BYTES (FLAX_RANDOM_CHUNKS * FLAX_CHACHA_CHUNK)

/* Lies in pages of its own. Only this file and flax_random.c may access the members. */
struct flax_random {
    struct fork_guard guard;
    uint32_t left; /* bytes at the end of 'bytes' that are not drawn yet; 0 in wiped pages */
    uint8_t bytes[FLAX_RANDOM_BYTES];
};

/* Returns NULL with errno ENOMEM. */
struct flax_random *flax_random_create (void);
void flax_random_destroy (struct flax_random *random);

/* If this process is a child of the process that filled 'bytes', take a new key. If no bits are left, fill 'bytes'
 * again. '*forked' and the result are as for flax_random_draw ().
 */
int flax_random_prepare (struct flax_random *random, bool *forked);

/* Draw 64 bits. Only one thread at a time may call it. '*forked' is set to true if this is the first draw in a child
 * process; otherwise '*forked' is unchanged. Returns 0, or -1 with errno as getrandom ().
 */
static inline int flax_random_draw (struct flax_random *random, uint64_t *bits, bool *forked)
{
    if ((random->left == 0 || !random->guard.wiped_by_kernel) && flax_random_prepare (random, forked) < 0)
        return -1;
    uint8_t *next = random->bytes + FLAX_RANDOM_BYTES - random->left;
    memcpy (bits, next, sizeof (*bits));
    memset (next, 0, sizeof (*bits));
    random->left -= sizeof (*bits);
    return 0;
}

#endif /* FLAX_RANDOM_H */
