/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* block.h - the payloads of fluid.block (protocol.md section 5), for clients, for brokers and for their parents
 *
 *     request    u32 count, u64 after: all ids of the answer must be above 'after'; 0: any ids
 *     answer     runs of ids, each u64 first, u32 n
 *
 * Numbers are big-endian. Payloads may come from untrusted senders.
 */
#ifndef LIBFLUID_BLOCK_H
#define LIBFLUID_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <idtree/fluid.h>

#include "libutil/minmax.h"

#define BLOCK_REQUEST_SIZE 12
#define BLOCK_RUN_SIZE 12

/* The ids first, first + 1, ... first + n - 1, all of one millisecond and one generator. */
struct id_run {
    fluid_t first;
    uint32_t n; /* 1 ... 1024 */
};

static inline void block_put_request (uint8_t buf[BLOCK_REQUEST_SIZE], uint32_t count, fluid_t after)
{
    put_be (buf, 4, count);
    put_be (buf + 4, 8, after);
}

/* Returns false if the payload has another size. The values are not checked. */
static inline bool block_get_request (const void *data, size_t size, uint32_t *count, fluid_t *after)
{
    if (size != BLOCK_REQUEST_SIZE)
        return false;
    *count = (uint32_t)get_be (data, 4);
    *after = get_be ((const uint8_t *)data + 4, 8);
    return true;
}

static inline void block_put_run (uint8_t buf[BLOCK_RUN_SIZE], struct id_run run)
{
    put_be (buf, 8, run.first);
    put_be (buf + 8, 4, run.n);
}

static inline struct id_run block_get_run (const uint8_t buf[BLOCK_RUN_SIZE])
{
    return (struct id_run){ .first = get_be (buf, 8), .n = (uint32_t)get_be (buf + 8, 4) };
}

/* Return whether a payload answers a request for 'count' ids above 'after': each run has at least one id and stays
 * within its millisecond, the runs are in order, and together they have 'count' ids.
 */
static inline bool block_is_answer (const uint8_t *data, size_t size, uint32_t count, fluid_t after)
{
    if (size % BLOCK_RUN_SIZE != 0)
        return false;
    for (const uint8_t *end = data + size; data < end; data += BLOCK_RUN_SIZE) {
        struct id_run run = block_get_run (data);
        if (run.n == 0 || run.n > count || run.n > FLUID_PER_MS - (run.first & FLUID_SEQUENCE_MAX)
            || run.first <= after)
            return false;
        after = run.first + (run.n - 1);
        count -= run.n;
    }
    return count == 0;
}

#endif /* LIBFLUID_BLOCK_H */
