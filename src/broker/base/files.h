/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* files.h - how many open files a broker needs; checked before anything is started
 *
 * Without a free descriptor libzmq aborts the process, and a module fails for the rest of the process.
 */
#ifndef BROKER_FILES_H
#define BROKER_FILES_H

#include <stdint.h>

#include <idtree/error.h>

/* The number of open files for a process with one broker and 'children' in other processes. Half of them are for
 * clients (usock.c).
 */
uint64_t files_need (uint64_t children);

/* The number of open files besides stdin, stdout and stderr; at the start of a process these are the inherited ones. */
uint64_t files_open (void);

/* Check that the hard limit of open files allows files_need () plus the inherited ones. Returns 0, or -1 with errno
 * EMFILE and 'errp' filled with the limit and the number needed.
 */
int files_check (uint64_t children, uint64_t inherited, idt_error_t *errp);

#endif /* BROKER_FILES_H */
