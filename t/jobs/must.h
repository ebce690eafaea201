/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* must.h - the end of a program that cannot go on */
#ifndef JOBS_MUST_H
#define JOBS_MUST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_DIED 2

__attribute__ ((noreturn)) static inline void die (const char *what)
{
    fprintf (stderr, "jobload: %s: %s\n", what, strerror (errno));
    exit (EXIT_DIED);
}

/* What an allocation returned. */
static inline void *must (void *p)
{
    if (!p)
        die ("memory");
    return p;
}

#endif /* JOBS_MUST_H */
