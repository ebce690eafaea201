/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_options.h - the attributes of the module, which idtree-broker(1) describes */
#ifndef FLAKE_FLAKE_OPTIONS_H
#define FLAKE_FLAKE_OPTIONS_H

#include <idtree/handle.h>

#include "modules/flake/node.h"

struct flake_options {
    struct flake_config node; /* its node name points to 'name' */
    char name[CLAIM_NAME_MAX + 1];
};

/* Read and check all attributes. Returns 0, or -1 with errno set and the reason in 'errp'. */
int flake_options_read (idt_t *h, struct flake_options *o, idt_error_t *errp);

#endif /* FLAKE_FLAKE_OPTIONS_H */
