/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* services.h - the broker's own services attr, config, service, state-machine, shutdown, and the request
 * broker.stats-get; and the attributes that describe the broker
 */
#ifndef BROKER_SERVICES_H
#define BROKER_SERVICES_H

#include "broker/broker.h"
#include "broker/route/usock.h"

struct services;

struct services_conf {
    const struct broker_conf *broker;
    idt_t *h; /* the broker's own */
    const char *uuid;
    struct router *router;
    struct usock *local;
    struct lifecycle *life;
};

/* Define the attributes, and answer requests on 'h', the broker's own handle. Copies 'conf'; its pointers are borrowed.
 * NULL with errno set and 'errp' filled.
 */
struct services *services_create (const struct services_conf *conf, idt_error_t *errp);

/* The broker ends: streams of shutdown.start end, and requests that wait for an answer of rank 0 fail. NULL is fine. */
void services_stop (struct services *s);
void services_destroy (struct services *s); /* NULL is fine */

#endif /* BROKER_SERVICES_H */
