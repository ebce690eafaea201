/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ticks_test.c - processor_has_ticks () agrees with CPUID */
#include "test/tap.h"
#include "modules/fluid/service/ticks.h"

static bool ask_processor (void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;

    return __get_cpuid (0x80000007, &a, &b, &c, &d) && (d & 1U << 8);
#else
    return false;
#endif
}

int main (void)
{
    ok (processor_has_ticks () == ask_processor (), "processor_has_ticks () returns what the processor reports");
    return done_testing ();
}
