/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* shared.h - the thread of a process for modules of all its brokers that compute for long but never block
 *
 * The thread has a reactor, of which each module has a view (IDT_MODULE_SHARED ()). For any number of modules it needs
 * two descriptors, and one more for epoll.
 */
#ifndef BROKER_SHARED_H
#define BROKER_SHARED_H

#include <idtree/reactor.h>

struct shared;

/* The thread starts with the first module. 'r' is the reactor of the brokers, in the calling thread. NULL with errno
 * set.
 */
struct shared *shared_create (idt_reactor_t *r);

/* End the thread; its modules must be unloaded before. If a module was left behind, the thread stays until the process
 * ends.
 */
void shared_destroy (struct shared *s);

#endif /* BROKER_SHARED_H */
