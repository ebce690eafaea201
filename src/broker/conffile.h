/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile.h - attributes from a file
 *
 * One `ATTR = VALUE` a line.  Blanks around both are skipped, empty lines and lines that begin with '#' too; a value may be
 * put in double quotes.
 */
#ifndef BROKER_CONFFILE_H
#define BROKER_CONFFILE_H

#include "broker/base/attr.h"

/* Give the attributes in the file 'path'.  Returns 0, or -1 with errno set and 'errp' naming file, line and fault. */
int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp);

#endif /* BROKER_CONFFILE_H */
