/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile.h - attributes from a file
 *
 * The file is TOML, of which there is what attributes need:
 *
 *     # a comment, to the end of a line
 *     log-level = 6                   a number, true (1), false (0), or other text without quotes
 *     rundir = "/run/idtree"          a string: \" and \\ in it are a quote and a backslash
 *     tbon.topo = 'kary:32'           a string without escapes
 *     [cluster]                       the table of those whose names begin with "cluster."
 *     hosts = ["login",               a list, on one line or several: the attribute has its members with commas
 *              "node[0-127]"]         between them
 *
 * A key with its table's name before it, and a dot, is an attribute.  Each is given once.  Text without quotes, as far
 * as the end of a line or a comment, is ours: TOML wants quotes there.
 */
#ifndef BROKER_CONFFILE_H
#define BROKER_CONFFILE_H

#include "broker/base/attr.h"

/* Give the attributes in the file 'path'; attr_origin () names the lines then.  Returns 0, or -1 with errno set
 * (EINVAL: what is in the file) and 'errp' naming file, line and fault.
 */
int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp);

#endif /* BROKER_CONFFILE_H */
