/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ticks.h - the processor's counter, if it has a constant rate and never stops (x86: CPUID 0x80000007, EDX bit 8) */
#ifndef FLUID_TICKS_H
#define FLUID_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Each broker needs this answer once, and a process may host thousands of brokers. In a virtual machine CPUID stops the
 * processor for tens of microseconds. glibc 2.33 and later remembers the result of CPUID, so the result is taken from
 * glibc if possible.
 */
#if defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#endif
#endif

static inline bool processor_has_ticks (void)
{
#ifdef CPU_FEATURE_PRESENT
    return CPU_FEATURE_PRESENT (INVARIANT_TSC);
#else
    unsigned a, b, c, d = 0;

    return __get_cpuid (0x80000007, &a, &b, &c, &d) && (d & 1U << 8);
#endif
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
