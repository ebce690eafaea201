/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* root_conf.h - the attributes root.*: where the state of the instance is in PostgreSQL
 *
 *     root.store       how to connect, in the syntax of libpq. Not set: the state is in a folder of rank 0
 *     root.store-sync  check: each write is refused unless a second server gets it, too; trust: the store sees to that
 *     root.takeover    how long the beat of a leader may stand still before another candidate claims the role
 *     root.term        set by the broker: the term of this rank 0 (role.h); 0: without root.store
 */
#ifndef BROKER_ROOT_CONF_H
#define BROKER_ROOT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/base/attr.h"

struct root_conf {
    const char *store; /* borrowed from the attributes; NULL: not set */
    bool trust;
    uint64_t takeover_ms;
    uint64_t uid_drift; /* with 'store': uid.drift */
};

/* Read and check the attributes as the user gave them. Returns 0, or -1 with errno EINVAL and 'errp' filled. */
int root_conf_read (struct root_conf *conf, struct attrs *attrs, idt_error_t *errp);

/* Check that rank 0 can use them. */
int root_conf_check_rank0 (const struct root_conf *conf, struct attrs *attrs, idt_error_t *errp);

/* Define the attributes in a broker, so that they are listed. Returns 0, or -1 with the errno values of attr_define ().
 */
int root_conf_define (struct attrs *attrs, idt_error_t *errp);

#endif /* BROKER_ROOT_CONF_H */
