/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ssse3.h - what the vector forms of text conversions share
 *
 * On x86-64 SSSE3_POSSIBLE is defined, and whoever includes this asks the processor in each call
 * (__builtin_cpu_supports: a load and a test) which form to take.  Elsewhere there is nothing here.
 * The plain form must exist, and all forms must agree on every input.
 */
#ifndef SNO_SSSE3_H
#define SNO_SSSE3_H

#if defined(__x86_64__) && defined(__GNUC__)
#define SSSE3_POSSIBLE 1

#include <immintrin.h>

/* A piece of a vector form: becomes part of the function with that target that calls it. */
#define SSSE3_INLINE static inline __attribute__ ((always_inline, target ("ssse3")))

/* Sixteen bytes of constants, in a struct that is SSSE3_ALIGNED and defined as SSSE3_CONSTANTS.
 * They are taken from memory, which costs an instruction that uses them nothing.  A compiler that
 * sees their values builds them anew in each call, so it is told that they are used and may be
 * changed by what it can't see; the loader makes them read-only.
 */
#define SSSE3_CONSTANTS static __attribute__ ((used, section (".data.rel.ro")))
#define SSSE3_ALIGNED __attribute__ ((aligned (16)))
#define SSSE3_ALL(v)                                   \
    {                                                  \
        v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v \
    }
#define SSSE3_LOAD(array) _mm_load_si128 ((const __m128i *)(array))

#endif /* x86-64 */

#endif /* SNO_SSSE3_H */
