/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* files.h - how many open files a broker needs, which is looked at before anything is started
 *
 * libzmq aborts the process where it gets no descriptor, and a module that gets none is missing from then on.
 */
#ifndef BROKER_FILES_H
#define BROKER_FILES_H

#include <stdint.h>

#include <idtree/error.h>

/* What a process of one broker with so many children in other processes needs.  Half of it is for clients (usock.c). */
uint64_t files_need (uint64_t children);

/* How many are open beside stdin, stdout and stderr: at the start of a process those that were inherited. */
uint64_t files_open (void);

/* Whether the hard limit of open files allows files_need () beside those that were inherited.  Returns 0, or -1 with
 * errno EMFILE and 'errp' filled: what the limit is, and how many are needed.
 */
int files_check (uint64_t children, uint64_t inherited, idt_error_t *errp);

#endif /* BROKER_FILES_H */
