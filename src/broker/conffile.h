/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile.h - attributes from a file
 *
 * The format is close to TOML:
 *
 *     # a comment, to the end of a line
 *     log-level = 6                   a number, true (1), false (0), or other text without quotes
 *     rundir = "/run/idtree"          a string: \" and \\ in it are a quote and a backslash
 *     tbon.topo = 'kary:32'           a string without escapes
 *     [cluster]                       a table: the following names get the prefix "cluster."
 *     hosts = ["login",               a list, on one or several lines: the members, joined by commas,
 *              "node[0-127]"]         are the value of the attribute
 *
 * The name of an attribute is the name of its table, a dot, and the key. A name may be set only once. Unlike
 * TOML, the format accepts text without quotes, up to the end of the line or a comment.
 */
#ifndef BROKER_CONFFILE_H
#define BROKER_CONFFILE_H

#include "broker/base/attr.h"

/* Set in 'attrs' the attributes of the file 'path'; attr_origin () then returns their lines. Returns 0, or -1 with
 * errno set (EINVAL: the content of the file) and 'errp' naming file, line and fault.
 */
int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp);

#endif /* BROKER_CONFFILE_H */
