/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* must.h - end the program after a fatal error */
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

/* Check the result of an allocation. */
static inline void *must (void *p)
{
    if (!p)
        die ("memory");
    return p;
}

#endif /* JOBS_MUST_H */
