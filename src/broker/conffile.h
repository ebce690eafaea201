/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile.h - attributes from a file, read at the start and again while brokers run
 *
 * The format is close to TOML:
 *
 *     # a comment, to the end of a line
 *     log-level = 6                   a number, true, false, or other text without quotes
 *     rundir = "/run/idtree"          a string: \" and \\ in it are a quote and a backslash
 *     tbon.topo = 'kary:32'           a string without escapes
 *     [cluster]                       a table: the following names get the prefix "cluster."
 *     hosts = ["login",               a list, on one or several lines: the members, joined by commas,
 *              "node[0-127]"]         are the value of the attribute
 *
 * The name of an attribute is the name of its table, a dot, and the key. A name may be set only once in a file; a later
 * file overrides an earlier one. In TOML text must have quotes. In this format, text without quotes is allowed, too;
 * such text ends at a comment or at the end of the line.
 */
#ifndef BROKER_CONFFILE_H
#define BROKER_CONFFILE_H

#include <jansson.h>

#include "broker/base/attr.h"
#include "broker/base/log.h"

/* Set in 'attrs' the attributes that the file 'path' sets; attr_origin () then returns their lines. Returns 0, or -1
 * with errno set (EINVAL: the content of the file) and 'errp' naming file, line and fault.
 */
int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp);

/* --- reading again ---------------------------------------------------------------------------------
 *
 * Attributes of the command line keep their values. The other attributes are treated as follows. A settable attribute
 * takes its new value. The addresses of other hosts are read again. An attribute that cannot change in a running broker
 * is reported, and changes when the broker is started again. An attribute that is no longer in any file returns to its
 * default, under the same conditions.
 */

/* Read the files again, in their order. 'given' are the attributes that were set at the start. Those without an origin
 * were set on the command line, and override the files. NULL with errno set (ENOENT: 'nfiles' is 0; EINVAL: the content
 * of a file; or the error of opening a file) and 'errp' filled.
 */
struct attrs *conffile_read_again (struct attrs *given, const char **files, size_t nfiles, idt_error_t *errp);

/* Check that an attribute of a configuration file is known. 'origin' is the place of the attribute in the file. Returns
 * 0, or -1 with errno EINVAL and 'errp' filled.
 */
typedef int (*conffile_known_f) (const char *name, const char *origin, void *arg, idt_error_t *errp);

/* Check that a broker whose attributes are 'now' can take over 'fresh'. Returns 0, or -1 with errno EINVAL and 'errp'
 * filled.
 */
int conffile_check (struct attrs *now, struct attrs *fresh, conffile_known_f known, void *arg, idt_error_t *errp);

/* Arrays of the names of attributes. */
struct conffile_report {
    json_t *changed;
    json_t *later; /* attributes that change when the broker is started again */
};

/* Take over the changes in one broker. All brokers of the process must have checked them before. */
void conffile_take_over (struct attrs *now, struct attrs *fresh, struct log *log, struct conffile_report *report);

#endif /* BROKER_CONFFILE_H */
