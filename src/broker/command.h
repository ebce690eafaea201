/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* command.h - the program that rank 0 runs, whose end is the end of the instance */
#ifndef BROKER_COMMAND_H
#define BROKER_COMMAND_H

#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

struct rank_command;

/* It ended with this exit code: its own, or 128 + the signal that ended it. */
typedef void (*command_f) (int exit_code, void *arg);

/* Start 'argv' with IDTREE_URI and FLUX_URI set to 'uri', and 'files' (0: ours) as its soft limit of descriptors.
 * NULL with errno set and 'errp' filled.
 */
struct rank_command *command_create (idt_reactor_t *r, char **argv, const char *uri, uint64_t files, command_f cb,
                                     void *arg, idt_error_t *errp);

void command_kill (struct rank_command *c, int signum);

/* Kills it where it still runs. */
void command_destroy (struct rank_command *c);

#endif /* BROKER_COMMAND_H */
