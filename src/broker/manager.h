/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* manager.h - the service manager that started this process, if any (sd_notify(3))
 *
 * The service manager is notified when the first broker here is ready (struct broker_status) or the process stands by,
 * and when that broker stops. It also gets a sentence about the state. Twice in the time that WATCHDOG_USEC gives, the
 * reactor sends a sign of life. The brokers do not call this object: before the reactor sleeps, it compares their
 * status with the last one that it sent.
 */
#ifndef BROKER_MANAGER_H
#define BROKER_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker_group.h"
#include "broker/process.h"

#define MANAGER_TEXT 256 /* bytes of a sentence */

struct manager {
    struct process *process;
    const struct broker_group *group; /* NULL: there are no brokers yet */
    struct broker_status told;
    bool has_told;
    bool notifies; /* there is a service manager */
    bool ready;
    uint64_t term;               /* in which this process leads; 0: it has no role */
    char sentence[MANAGER_TEXT]; /* the last one of manager_stand_by () */
    idt_watcher_t *beat;         /* NULL: no sign of life is needed */
};

/* Prepare 'm'; without a service manager it then does nothing. Returns 0, or -1 with errno ENOMEM. */
int manager_init (struct manager *m, struct process *process);
void manager_fini (struct manager *m);

/* Report the status of these brokers from now on (borrowed). */
void manager_set_group (struct manager *m, const struct broker_group *group);

/* Report that the process waits for the role of rank 0, and is ready: it has seen in the store who has the role. Report
 * only the sentence if it has not.
 */
void manager_stand_by (struct manager *m, bool is_ready, const char *sentence);

/* The process leads in this term: say so in each sentence from now on. */
void manager_lead (struct manager *m, uint64_t term);

/* Whether stderr goes to the journal. 'journal_stream' is the value of JOURNAL_STREAM; NULL: false. */
bool manager_reads_stderr (const char *journal_stream);

#endif /* BROKER_MANAGER_H */
