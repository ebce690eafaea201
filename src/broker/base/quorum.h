/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quorum.h - how many brokers must join before an instance counts as started; a core
 *
 * Ids do not wait for the quorum. Rank 0's command, the service manager, and the health of the instance wait for it.
 *
 *     broker.quorum          brokers, rank 0 included: N, or N% of all, rounded up (100%); may change while it runs
 *     cluster.quorum         the same, in the table that describes a configured instance
 *     broker.quorum-timeout  interval at which rank 0 reports missing ranks; 0: never (0)
 */
#ifndef BROKER_QUORUM_H
#define BROKER_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/attr.h"

struct quorum {
    uint32_t size;   /* brokers of the instance */
    uint32_t need;   /* 1 ... size */
    double warn_s;   /* broker.quorum-timeout in seconds; 0: never */
    bool is_given;   /* an attribute sets the quorum; false: all brokers are needed */
    bool is_reached; /* the quorum was reached once; later losses of brokers do not change this */
};

/* Read the attributes. 'need' then follows later changes of broker.quorum, so 'q' must live as long as 'attrs'. Returns
 * 0, or -1 with errno EINVAL (malformed, more than the size, or both names are set) or ENOMEM and 'errp' filled.
 */
int quorum_init (struct quorum *q, struct attrs *attrs, uint32_t size, idt_error_t *errp);

/* Check the attributes for an instance of 'size' brokers. Returns 0, or -1 with errno EINVAL and 'errp' filled. */
int quorum_check (struct attrs *given, uint32_t size, idt_error_t *errp);

/* Report that 'joined' brokers have joined, and whether no broker is missing ('full'). Returns whether the quorum was
 * reached by this call.
 */
bool quorum_take (struct quorum *q, uint32_t joined, bool full);

/* For tests: parse "N" or "N%" of 'size' brokers. Returns 0, or -1 with errno EINVAL. */
int quorum_parse (const char *text, uint32_t size, uint32_t *need);

#endif /* BROKER_QUORUM_H */
