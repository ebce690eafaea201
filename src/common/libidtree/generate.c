/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* generate.c - FLUIDs from the instance, over fluid.block
 *
 * Request (big-endian): u32 count, u64 after (0: none). Response: repeated (u64 first, u32 n), each a run of n ids of
 * one millisecond and one generator. A response is valid if and only if (1) each run has at least one id and stays
 * within its millisecond, (2) each run begins above the last id of the run before it, and the first one above 'after',
 * and (3) the runs together have as many ids as were requested.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libidtree/private.h"

#define REQUEST_SIZE 12
#define RUN_SIZE 12

struct id_run {
    fluid_t first;
    uint32_t n;
};

static struct id_run run_read (const uint8_t *p)
{
    uint64_t first;
    uint32_t n;

    memcpy (&first, p, sizeof (first));
    memcpy (&n, p + sizeof (first), sizeof (n));
    return (struct id_run){ .first = be64toh (first), .n = be32toh (n) };
}

static bool answer_is_good (const uint8_t *p, size_t size, uint32_t n, fluid_t after)
{
    uint32_t left = n;

    if (size % RUN_SIZE != 0)
        return false;
    for (const uint8_t *end = p + size; p < end; p += RUN_SIZE) {
        struct id_run run = run_read (p);
        if (run.n == 0 || run.n > left || run.n > FLUID_PER_MS - (run.first & FLUID_SEQUENCE_MAX) || run.first <= after)
            return false;
        after = run.first + (run.n - 1);
        left -= run.n;
    }
    return left == 0;
}

/* Write the ids of a valid response. Returns the last one. */
static fluid_t expand (const uint8_t *p, size_t size, fluid_t *ids)
{
    for (const uint8_t *end = p + size; p < end; p += RUN_SIZE) {
        struct id_run run = run_read (p);
        for (uint32_t i = 0; i < run.n; i++)
            *ids++ = run.first + i;
    }
    return ids[-1];
}

idt_future_t *generate_ask (idt_t *h, uint32_t n)
{
    uint8_t request[REQUEST_SIZE];
    fluid_t last = h->last_fluid;

    if (n == 0 || n > IDT_FLUID_MAX_COUNT)
        return errset_null (EINVAL);
    memcpy (request, &(uint32_t){ htobe32 (n) }, 4);
    memcpy (request + 4, &(uint64_t){ htobe64 (last) }, 8);
    idt_future_t *f = idt_rpc_raw (h, "fluid.block", request, sizeof (request), IDT_NODEID_ANY, RPC_TYPED);
    if (f) {
        f->nids = n;
        f->after = last;
    }
    return f;
}

idt_future_t *idt_fluid_generate_async (idt_t *h, uint32_t n)
{
    prefetch_pass (h);
    idt_future_t *f = generate_ask (h, n);
    if (f && f->tag != 0) {
        f->ordered = true;
        h->fluids_asked++;
    }
    return f;
}

static void raise_last (idt_t *h, fluid_t last)
{
    if (last > h->last_fluid)
        h->last_fluid = last;
}

void generate_answered (idt_future_t *f)
{
    const void *data;
    size_t size;

    if (idt_msg_payload (f->response, &data, &size) < 0 || !answer_is_good (data, size, f->nids, f->after))
        return;
    struct id_run run = run_read ((const uint8_t *)data + size - RUN_SIZE);
    raise_last (f->h, run.first + (run.n - 1));
}

int idt_fluid_generate_get (idt_future_t *f, uint32_t n, fluid_t *ids)
{
    const void *data;
    size_t size;

    if (idt_rpc_get_raw (f, &data, &size) < 0)
        return -1;
    if (!answer_is_good (data, size, n, f->after))
        return errset (EPROTO);
    fluid_t last = n > 0 ? expand (data, size, ids) : 0;
    raise_last (f->h, last);
    connection_learn (f->h);
    return 0;
}

int idt_fluid_generate (idt_t *h, uint32_t n, fluid_t *ids)
{
    if (attach_generate (h, n, ids)) {
        prefetch_pass (h);
        return 0;
    }
    if (h->prefetch)
        return prefetch_generate (h, n, ids);
    attach_work (h);
    idt_future_t *f = generate_ask (h, n);
    if (!f)
        return -1;
    int rc = idt_fluid_generate_get (f, n, ids);
    idt_future_destroy (f);
    return rc;
}
