/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* manager.h - the service manager that started this process, if any (sd_notify(3))
 *
 * It is notified when the first broker here runs and when that broker stops. It gets a sentence about the state of the
 * broker, and a sign of life from the reactor twice in the time that WATCHDOG_USEC gives. Only the program may use this
 * object: it reads the environment.
 */
#ifndef BROKER_MANAGER_H
#define BROKER_MANAGER_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/broker_group.h"

#define MANAGER_TEXT_SIZE 256

struct manager;

/* Notify the service manager about 'group' and 'process' from now on; both must live longer. Does nothing if there is
 * no service manager, or in a build without libsystemd. NULL with errno ENOMEM.
 */
struct manager *manager_create (struct process *process, const struct broker_group *group);
void manager_destroy (struct manager *m); /* NULL is fine */

/* Whether stderr goes to the journal, according to 'journal_stream', the value of JOURNAL_STREAM. NULL: false. */
bool manager_reads_stderr (const char *journal_stream);

/* Write the sentence about the first of 'count' brokers. Returns 'buf'. */
const char *manager_text (const struct broker_status *s, uint32_t count, char buf[MANAGER_TEXT_SIZE]);

#endif /* BROKER_MANAGER_H */
