/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instance.h - the instance under test: idtree start and startctl, without blocking
 *
 * An instance is down, starting, up or stopping. When it is down, it can be started again on the same state. It also
 * ends when this program ends, because its command is cat, which reads from this program.
 */
#ifndef CHAOS_INSTANCE_H
#define CHAOS_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include <idtree/reactor.h>

struct instance;

struct instance_config {
    const char *idtree; /* path of the command */
    const char *rundir, *statedir, *logfile;
    uint32_t size;
    uint32_t fanout;
    const char *const *attrs; /* ATTR=VALUE, NULL ends the list */
};

/* Called from the reactor. up: all brokers are up. down: idtree start has ended. */
struct instance_ops {
    void (*up) (void *arg);
    void (*down) (void *arg, int status); /* wait status */
};

/* Make an instance, which is down. The pointers in 'config' are borrowed. Ends the program if memory is short. */
struct instance *instance_create (idt_reactor_t *r, const struct instance_config *config,
                                  const struct instance_ops *ops, void *arg);
void instance_destroy (struct instance *in); /* the instance must be down */
const char *instance_rundir (const struct instance *in);

void instance_start (struct instance *in); /* the instance must be down */
void instance_stop (struct instance *in);  /* stops it in order; no effect if it is down */
void instance_crash (struct instance *in); /* kill -9 of the launcher and all brokers */

/* Send a request to the launcher, as idtree startctl does. The verb "term" is a kill with SIGTERM. 'cb' is called once:
 * 'error' is NULL on success, else the reason. For the verb "status", 'answer' is the JSON text of the answer.
 */
typedef void (*instance_f) (void *arg, uint32_t rank, const char *error, const char *answer);
void instance_ask (struct instance *in, const char *verb, uint32_t rank, instance_f cb, void *arg);

#endif /* CHAOS_INSTANCE_H */
