/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* manager.h - the service manager that started this process, where one did (sd_notify(3))
 *
 * It is told when the first broker here runs and when it stops, what it is at in a sentence, and, twice in the time
 * that WATCHDOG_USEC gives, that the reactor turns.  Only the program may use this: the environment says whether there
 * is one.
 */
#ifndef BROKER_MANAGER_H
#define BROKER_MANAGER_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/broker_group.h"

#define MANAGER_TEXT_SIZE 256

struct manager;

/* Tell it from now on of 'crew' and 'process', which must live longer.  Where there is none, or we are built without
 * libsystemd, nothing is done.  NULL with errno ENOMEM.
 */
struct manager *manager_create (struct process *process, const struct broker_group *crew);
void manager_destroy (struct manager *m); /* NULL is fine */

/* Whether what goes to stderr goes to the journal by the value of JOURNAL_STREAM; NULL: it does not. */
bool manager_reads_stderr (const char *journal_stream);

/* The sentence about the first of 'count' brokers.  Returns 'buf'. */
const char *manager_text (const struct broker_status *s, uint32_t count, char buf[MANAGER_TEXT_SIZE]);

#endif /* BROKER_MANAGER_H */
