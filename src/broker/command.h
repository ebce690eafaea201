/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* command.h - the program that rank 0 runs; the instance ends when the program ends */
#ifndef BROKER_COMMAND_H
#define BROKER_COMMAND_H

#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

struct rank_command;

/* The program has ended. 'exit_code' is its exit code, or 128 + the number of the signal that ended it. */
typedef void (*command_f) (int exit_code, void *arg);

/* Start 'argv'. In its environment IDTREE_URI and FLUX_URI are 'uri'. 'files' is its soft limit of descriptors (0: the
 * same as for the broker). NULL with errno set and 'errp' filled.
 */
struct rank_command *command_create (idt_reactor_t *r, char **argv, const char *uri, uint64_t files, command_f cb,
                                     void *arg, idt_error_t *errp);

void command_kill (struct rank_command *c, int signum);

/* If the program still runs, kill it and wait until it has ended. */
void command_destroy (struct rank_command *c);

#endif /* BROKER_COMMAND_H */
