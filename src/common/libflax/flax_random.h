/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flax_random.h - random bits that are cheap, unpredictable, and never shared with a child process */
#ifndef FLAX_RANDOM_H
#define FLAX_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLAX_CHACHA_CHUNK 256 /* bytes: four blocks */

/* Write 'chunks' times FLAX_CHACHA_CHUNK bytes of the ChaCha20 key stream (RFC 8439 2.3) from block 'counter' with
 * an all-zero nonce.
 */
void flax_chacha20 (const uint8_t key[32], uint32_t counter, uint8_t *out, size_t chunks);

struct flax_random;

/* Returns NULL with errno ENOMEM. */
struct flax_random *flax_random_create (void);
void flax_random_destroy (struct flax_random *random);

/* Draw 64 bits; not to be called from two threads at once.  '*forked' becomes true, and otherwise stays, when this
 * is the first draw in a child process.  Returns 0, or -1 with errno as getrandom ().
 */
int flax_random_draw (struct flax_random *random, uint64_t *bits, bool *forked);

#endif /* FLAX_RANDOM_H */
