/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* topology_kind.h - the functions of each shape; private to topology.c */
#ifndef BROKER_TOPOLOGY_KIND_H
#define BROKER_TOPOLOGY_KIND_H

#include "broker/base/topology.h"

struct topo_kind {
    const char *name;
    /* Fill all fields except 'size' and 'kind'. 'arg' is the text after the colon, or NULL. Returns 0, or -1 with errno
     * set and 'errp' filled.
     */
    int (*read) (struct topo *t, const char *arg, idt_error_t *errp);
    uint32_t (*parent) (const struct topo *t, uint32_t rank); /* not called for the root */
    uint32_t (*child_count) (const struct topo *t, uint32_t rank);
    uint32_t (*child) (const struct topo *t, uint32_t rank, uint32_t i);
};

extern const struct topo_kind topo_custom;

#endif /* BROKER_TOPOLOGY_KIND_H */
