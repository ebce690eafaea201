/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_random.h - random bits that are cheap, unpredictable, and never shared with a child process
 */
#ifndef FLAX_RANDOM_H
#define FLAX_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLAX_CHACHA_CHUNK 512 /* bytes: eight blocks */

/* Write 'chunks' times eight blocks of the ChaCha key stream (RFC 8439 2.3, where 'rounds' is 20)
 * from block 'counter' with an all-zero nonce.  The order within a chunk is that of the
 * computation, not of the RFC: the first word of each of the eight blocks, then the second of
 * each, and so on, in the machine's byte order.
 */
void flax_chacha (const uint8_t key[32], uint32_t counter, int rounds, uint8_t *out, size_t chunks);

struct flax_random;

/* Returns NULL with errno ENOMEM. */
struct flax_random *flax_random_create (void);
void flax_random_destroy (struct flax_random *random);

/* Draw 64 bits; not to be called from two threads at once.  '*forked' becomes true, and otherwise
 * stays, when this is the first draw in a child process.  Returns 0, or -1 with errno as getrandom
 * ().
 */
int flax_random_draw (struct flax_random *random, uint64_t *bits, bool *forked);

#endif /* FLAX_RANDOM_H */
