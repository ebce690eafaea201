/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fuzz_idcomp_ops.c - sessions do what the input says, see libcompressor/history.h */

#include <stdio.h>
#include <stdlib.h>

#include "libcompressor/history.h"

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput (const unsigned char *data, size_t size)
{
    const char *wrong = history_run (data, size);

    if (wrong) {
        fprintf (stderr, "condition failed: %s\n", wrong);
        abort ();
    }
    return 0;
}
