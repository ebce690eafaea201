/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* history_test.c - random histories, the same ones in each run
 *
 * A history that fails is shortened: the log shows the first step at which it fails.
 */

#include <stdint.h>

#include "history.h"
#include "test/tap.h"

#define HISTORIES 120
#define BYTES_MAX 2000

static void fill (unsigned char *data, size_t size, uint64_t seed)
{
    uint64_t x = seed * UINT64_C (0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < size; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = x >> 24;
    }
}

/* The length of the shortest beginning of the history that fails. */
static size_t shortest (const unsigned char *data, size_t size)
{
    size_t n = 0;

    while (n < size && !history_run (data, n))
        n += 2;
    return n;
}

int main (void)
{
    unsigned char data[BYTES_MAX];

    for (int seed = 0; seed < HISTORIES; seed++) {
        size_t size = 20 + seed * (BYTES_MAX - 20) / HISTORIES;
        fill (data, size, seed);
        const char *wrong = history_run (data, size);
        if (!ok (!wrong, "in history %d of %zu steps all answers equal the model's", seed, size / 2))
            diag ("%s, first after %zu steps", wrong, shortest (data, size) / 2);
    }
    return done_testing ();
}
