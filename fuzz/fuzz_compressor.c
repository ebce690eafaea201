/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_compressor.c - messages of clients and rank 0 to the compressor module of rank 3: orders, joins with any stored
 * form, events of a document
 */
#include "fuzz.h"
#include "module_rig.h"

static const char *const attrs[] = { "rank",
                                     "3",
                                     "size",
                                     "16",
                                     "hostname",
                                     "here",
                                     "compressor.max-documents",
                                     "4",
                                     "compressor.max-waiting",
                                     "16",
                                     "broker.uuid",
                                     "00000003-0000-4000-8000-000000000000",
                                     NULL };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const struct module_rig conf = { .name = "compressor", .attrs = attrs };

    module_rig_run (&conf, data, size);
    return 0;
}
