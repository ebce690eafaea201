/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* minirm.h - the messages between the two parts of minirm
 *
 *   request minirm-exec.run {"id":s,"command":[s...]}, to the agent's rank: {"status":i} when the command has ended;
 *   status is its exit code, or 128 plus the number of the signal that ended it. Errors:
 *     EAGAIN  all slots of the agent are in use
 *     EPROTO  the request is malformed
 *     ENOENT, EACCES, ...  the command cannot be run; the text says why
 *   event minirm.hello: a manager requests minirm.agent events
 *   event minirm.agent {"rank":i,"slots":i}: an agent's answer, also sent when it starts
 */
#ifndef MINIRM_H
#define MINIRM_H

#include <idtree/idtree.h>

#define MAX_SLOTS 256 /* most commands that an agent runs at a time */

/* Run commands on this rank until a signal arrives or the broker ends. Returns 0, or 1 after a message on stderr. */
int agent_main (idt_t *h, int slots);

/* Print "minirm: WHAT: WHY" to stderr. */
void complain (const char *what, const char *why);

/* Whether the instance's owner published an event. This must be checked, because each user with access can publish any
 * topic.
 */
bool is_owners (const idt_msg_t *event);

#endif /* MINIRM_H */
