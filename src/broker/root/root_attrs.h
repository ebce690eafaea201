/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_attrs.h - the attributes that should be the same on all candidates of rank 0
 *
 * These are the attributes that rank 0 decides for all ranks, and those of the role. The leader describes its own in
 * the row of the role, and each candidate compares. A description is a text:
 *
 *     HASH             of all names and values, 16 hexadecimal digits
 *     NAME=VALUE       each attribute that was set, in order of names, as far as they fit
 *
 * Values have no control characters (attr.h).
 */
#ifndef BROKER_ROOT_ATTRS_H
#define BROKER_ROOT_ATTRS_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/base/attr.h"

#define ROOT_ATTRS_SIZE 4096

/* Describe the attributes as the user set them. */
void root_attrs_describe (struct attrs *attrs, char text[ROOT_ATTRS_SIZE]);

/* Whether the attributes differ. 'theirs' may be empty: no root has led yet. */
bool root_attrs_differ (const char *ours, const char *theirs);

/* List those that differ, as "fluid.lease (20s here, not set there), ...", as far as they fit. Returns 'buf'. */
const char *root_attrs_list (const char *ours, const char *theirs, char *buf, size_t size);

#endif /* BROKER_ROOT_ATTRS_H */
