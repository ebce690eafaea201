/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shared.h - the thread of a process in which modules of all its brokers run that compute for long but wait for nothing
 *
 * It has a reactor of its own, of which each module has a view (IDT_MODULE_SHARED ()).  However many there are, they
 * cost two descriptors and one of epoll.
 */
#ifndef BROKER_SHARED_H
#define BROKER_SHARED_H

#include <idtree/reactor.h>

struct shared;

/* The thread starts with the first module.  'r' is the brokers' loop, of the thread that calls this.  NULL with errno.
 */
struct shared *shared_create (idt_reactor_t *r);

/* End the thread, when its modules are gone.  One that did not end in its time keeps it, to the end of the process. */
void shared_destroy (struct shared *s);

#endif /* BROKER_SHARED_H */
