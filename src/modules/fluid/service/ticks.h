/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ticks.h - the processor's counter, where it runs at one speed and never stops (x86: CPUID 0x80000007, EDX bit 8) */
#ifndef FLUID_TICKS_H
#define FLUID_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool processor_has_ticks (void)
{
    unsigned a, b, c, d = 0;

    return __get_cpuid (0x80000007, &a, &b, &c, &d) && (d & 1U << 8);
}

static inline uint64_t processor_ticks (void)
{
    return __builtin_ia32_rdtsc ();
}
#else
static inline bool processor_has_ticks (void)
{
    return false;
}

static inline uint64_t processor_ticks (void)
{
    return 0;
}
#endif

#endif /* FLUID_TICKS_H */
