/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* minirm.h - what the two halves of minirm say to each other
 *
 *   request minirm-exec.run {"id":s,"command":[s...]}, to the agent's rank: {"status":i} when the command has ended;
 *   status is its exit code, or 128 and the number of the signal that ended it.  Errors:
 *     EAGAIN  as many commands run already as the agent has slots
 *     EPROTO  the request is none
 *     ENOENT, EACCES, ...  the command cannot be run; the text says so
 *   event minirm.hello: a manager asks who is there
 *   event minirm.agent {"rank":i,"slots":i}: an agent's answer to that, and when it begins
 */
#ifndef MINIRM_H
#define MINIRM_H

#include <idtree/idtree.h>

#define MAX_SLOTS 256 /* commands of an agent */

/* Runs commands on this rank until a signal or the end of the broker.  Returns 0, or 1 after a sentence on stderr. */
int agent_main (idt_t *h, int slots);

/* Prints "minirm: WHAT: WHY" on stderr. */
void complain (const char *what, const char *why);

/* Whether an event came from the instance's owner: anybody who is let in can publish any topic. */
bool is_owners (const idt_msg_t *event);

#endif /* MINIRM_H */
