/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* candidate.h - this process as a candidate of rank 0
 *
 * If rank 0 keeps its state in PostgreSQL (root.store), a process that hosts rank 0 first waits for the role. Only then
 * does it make its brokers: a candidate that waits has no modules and no open port. When it loses the role, its brokers
 * stop, and the process ends with BROKER_EXIT_ROLE.
 */
#ifndef BROKER_CANDIDATE_H
#define BROKER_CANDIDATE_H

#include "broker/broker_group.h"
#include "broker/manager.h"
#include "broker/root/role_pg.h"

struct root_candidate {
    struct root_conf root;
    bool is_root; /* rank 0 is in this process */
    uint32_t number;
    char host[ROLE_HOST_SIZE];
    struct peer_list peers;
    /* while there is a role */
    struct role_pg *role; /* NULL: the state of rank 0 is not in PostgreSQL, or rank 0 is elsewhere */
    struct process *process;
    struct broker_group *group; /* NULL: there are no brokers yet, or they have ended */
    struct manager *manager;
    bool journal;              /* lines on stderr begin with their level */
    bool left;                 /* the brokers were stopped, because the role was lost */
    char told[ROLE_HOST_SIZE]; /* the leader that was logged */
};

/* Find out whether this process hosts rank 0, and read the attributes root.*. Returns 0, or -1 with errno EINVAL and
 * 'errp' filled: an attribute is invalid, or cannot be used by rank 0.
 */
int candidate_init (struct root_candidate *c, const struct boot_conf *boot, idt_error_t *errp);
void candidate_fini (struct root_candidate *c);

/* Wait for the role. Sets the attribute root.term. Returns 1: this process leads, or needs no role. Returns 0: it is
 * over, in order. Returns -1 with errno set and 'errp' filled.
 */
int candidate_wait (struct root_candidate *c, struct process *process, struct manager *manager, struct attrs *attrs,
                    idt_error_t *errp);

/* From now on stop these brokers when the role is lost. */
void candidate_set_group (struct root_candidate *c, struct broker_group *group);

/* Stop to wait: a signal. Has no effect on a leader. */
void candidate_stop (struct root_candidate *c);

/* The brokers have ended, or could not be started: give the role back. Waits for the store, at most for root.takeover.
 */
void candidate_release (struct root_candidate *c, bool shut_down);

/* Whether the command of rank 0 may run: of several candidates, only the first leader runs it. */
bool candidate_runs_command (const struct root_candidate *c);

#endif /* BROKER_CANDIDATE_H */
