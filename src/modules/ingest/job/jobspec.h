/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobspec.h - whether a text is a jobspec of version 1: RFC 14 as RFC 25 narrows it
 *
 * No more is asked than these say.  Keys that they do not know are refused where they forbid them, else taken.
 */
#ifndef INGEST_JOBSPEC_H
#define INGEST_JOBSPEC_H

#include <stddef.h>

#include <idtree/error.h>

#include "libjsonview/jsonview.h"

#define JOBSPEC_DEPTH_MAX 256     /* arrays and objects in each other: they take stack here and where they are read */
#define JOBSPEC_VALUES_MAX 100000 /* they take memory while they are checked */

/* Returns 0, or -1 with errno set and a sentence in 'errp' that names the field by its path and what it must be, as
 * "jobspec: resources[0].count: must be an integer from 1 to 2147483647, and is 0":
 *   EINVAL   not JSON (with line and column), not UTF-8, beyond the limits above, or not by the rules
 *   EMSGSIZE it has 4 GiB or more
 *   ENOMEM
 * 'r' is what the text is read with: each thread has its own.
 */
int jobspec_check (struct jv_reader *r, const char *text, size_t size, idt_error_t *errp);

#endif /* INGEST_JOBSPEC_H */
