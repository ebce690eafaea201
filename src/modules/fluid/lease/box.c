/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* box.c - sizes of boxes, and memory of requests */
#include <stdlib.h>

#include "modules/fluid/lease/box.h"

void lease_request_fini (struct lease_request *req)
{
    free ((void *)req->want);
    *req = (struct lease_request){ 0 };
}

bool box_is_part_size (uint64_t size)
{
    return size >= BOX_MIN_SIZE && size <= BOX_MAX_PART && size % FLUID_GRANULE == 0;
}

uint32_t box_size (uint64_t granules)
{
    return (uint32_t)__builtin_popcountll (granules) * FLUID_GRANULE;
}

uint32_t box_size_for (uint64_t n)
{
    uint32_t size = BOX_MIN_SIZE;

    while (size < BOX_MAX_PART && size < n)
        size *= 2;
    return size < BOX_MAX_PART ? size : BOX_MAX_PART;
}
