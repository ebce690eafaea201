/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* jobspec.h - check whether a text is a jobspec of version 1: RFC 14, as restricted by RFC 25
 *
 * The check requires only what these RFCs require. Unknown keys are refused where the RFCs forbid them, and accepted
 * elsewhere.
 */
#ifndef INGEST_JOBSPEC_H
#define INGEST_JOBSPEC_H

#include <stddef.h>

#include <idtree/error.h>

#include "libjsonview/jsonview.h"

#define JOBSPEC_DEPTH_MAX 256     /* nested arrays and objects; each level uses stack here and in later readers */
#define JOBSPEC_VALUES_MAX 100000 /* values of a jobspec; each uses memory during the check */

/* Check that 'text' of 'size' bytes is a jobspec. 'r' holds the memory of the JSON parser; each thread needs its own.
 * Returns 0, or -1 with errno set and a message in 'errp' that names the field by its path, the rule and the value,
 * such as "jobspec: resources[0].count: must be an integer from 1 to 2147483647, and is 0":
 *   EINVAL   not JSON (with line and column), not UTF-8, beyond one of the limits above, or against a rule
 *   EMSGSIZE the text has 4 GiB or more
 *   ENOMEM   out of memory
 */
int jobspec_check (struct jv_reader *r, const char *text, size_t size, idt_error_t *errp);

#endif /* INGEST_JOBSPEC_H */
