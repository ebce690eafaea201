/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* command.h - the program that rank 0 runs, whose end is the end of the instance */
#ifndef BROKER_COMMAND_H
#define BROKER_COMMAND_H

#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

struct rank_command;

/* The program has ended with this exit code: its own, or 128 + the number of the signal that ended it. */
typedef void (*command_f) (int exit_code, void *arg);

/* Start 'argv' with IDTREE_URI and FLUX_URI set to 'uri', and with 'files' as its soft limit of descriptors (0: the
 * limit of the broker). NULL with errno set and 'errp' filled.
 */
struct rank_command *command_create (idt_reactor_t *r, char **argv, const char *uri, uint64_t files, command_f cb,
                                     void *arg, idt_error_t *errp);

void command_kill (struct rank_command *c, int signum);

/* Kills the program if it still runs, and waits for its end. */
void command_destroy (struct rank_command *c);

#endif /* BROKER_COMMAND_H */
