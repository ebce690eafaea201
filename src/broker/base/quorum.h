/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quorum.h - how many brokers must have joined before an instance counts as begun; a thinking part
 *
 * Ids do not wait for it: rank 0's command does, the manager of services, and whoever judges the instance's health.
 *
 *     broker.quorum          brokers, rank 0 included: N, or N% of all, rounded up (100%); may change while it runs
 *     cluster.quorum         the same, in the table that describes a configured instance
 *     broker.quorum-timeout  how often rank 0 says who is missing; 0: never (0)
 */
#ifndef BROKER_QUORUM_H
#define BROKER_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/attr.h"

struct quorum {
    uint32_t size;   /* brokers of the instance */
    uint32_t need;   /* 1 ... size */
    double warn_s;   /* broker.quorum-timeout, seconds; 0: never */
    bool is_given;   /* else all are needed, for whoever has always waited for all */
    bool is_reached; /* it was once: those who leave later take nothing back */
};

/* Read the attributes, and follow the first from now on: 'q' must live as long as 'attrs'.  Returns 0, or -1 with errno
 * EINVAL (no such number, or more than there are; or both names are given) or ENOMEM and 'errp' filled.
 */
int quorum_init (struct quorum *q, struct attrs *attrs, uint32_t size, idt_error_t *errp);

/* Whether what is given is right, of an instance of 'size' brokers.  Returns 0, or -1 as quorum_init (). */
int quorum_check (struct attrs *given, uint32_t size, idt_error_t *errp);

/* So many have joined, and 'full' says that each is in its place.  Returns whether it is reached now and was not
 * before.
 */
bool quorum_take (struct quorum *q, uint32_t joined, bool full);

/* Read "N" or "N%" of 'size' brokers.  Returns 0, or -1 with errno EINVAL. */
int quorum_parse (const char *text, uint32_t size, uint32_t *need);

#endif /* BROKER_QUORUM_H */
