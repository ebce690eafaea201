/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* die.h - end the program after a fatal error, which is harmless because chaos has no data to save */
#ifndef CHAOS_DIE_H
#define CHAOS_DIE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__ ((noreturn)) static inline void die (const char *what)
{
    fprintf (stderr, "chaos: %s: %s\n", what, strerror (errno));
    exit (1);
}

/* Check the result of an allocation. */
static inline void *must (void *p)
{
    if (!p)
        die ("memory");
    return p;
}

#endif /* CHAOS_DIE_H */
