/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_flake.c - messages of clients, other ranks, rank 0 and the fluid module to the flake module of rank 3 */
#include "fuzz.h"
#include "module_rig.h"

static const char *const attrs[] = { "rank",
                                     "3",
                                     "size",
                                     "16",
                                     "hostname",
                                     "here",
                                     "flake.max-waiting",
                                     "8",
                                     "broker.uuid",
                                     "00000003-0000-4000-8000-000000000000",
                                     NULL };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const struct module_rig conf = { .name = "flake", .attrs = attrs };

    module_rig_run (&conf, data, size);
    return 0;
}
