/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* flake_options.c - reads the attributes of the module */
#include <stdio.h>
#include <string.h>

#include <idtree/idtree.h>

#include "libmodule/module.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "modules/flake/flake_options.h"

#define HOUR_MS UINT64_C (3600000)

static const char fingerprints[] =
    "a number from 0 to 4294967295, except 2147483648 to 2214592511, which belong to ranks";

/* Read the node of the uids: the rank's own number, unless one is configured. Rank 0 shows the name in messages. */
static int get_node (idt_t *h, struct flake_options *o, idt_error_t *errp)
{
    const char *name = idt_attr_get (h, "uid.node"), *host = idt_attr_get (h, "hostname"),
               *given = idt_attr_get (h, "uid.fingerprint");
    int n = name ? snprintf (o->name, sizeof (o->name), "%s", name)
                 : snprintf (o->name, sizeof (o->name), "idtree-%u@%s", o->node.rank, host ? host : "localhost");

    if (n < 1 || n > CLAIM_NAME_MAX)
        return module_option_bad ("uid.node", o->name, "a name of 1 to 255 bytes", errp);
    o->node.node = o->name;
    o->node.fingerprint = name ? uid_fingerprint (name, strlen (name)) : naming_own (o->node.rank);
    if (given) {
        uint64_t fingerprint;

        if (parse_number (given, 0, UINT32_MAX, &fingerprint) < 0 || naming_is_own (fingerprint))
            return module_option_bad ("uid.fingerprint", given, fingerprints, errp);
        o->node.fingerprint = (uint32_t)fingerprint;
    }
    return 0;
}

int flake_options_read (idt_t *h, struct flake_options *o, idt_error_t *errp)
{
    struct flake_config *c = &o->node;
    uint32_t drift = UID_DRIFT_DEFAULT;
    uint64_t ms;

    if (idt_get_rank (h, &c->rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if (module_option_duration (h, "flake.forward-timeout", "5s", 10, HOUR_MS, "10ms to 1h, such as 5s", &ms, errp) < 0
        || module_option_number (h, "flake.max-partitions", "65536", 1, FLAKE_PARTITIONS, &c->max_partitions, errp) < 0
        || module_option_number (h, "flake.max-waiting", "8192", 1, 1000000, &c->max_waiting, errp) < 0
        || module_option_number (h, "uid.drift", c->rank == 0 ? "8" : NULL, UID_DRIFT_MIN, UID_DRIFT_MAX, &drift, errp)
               < 0)
        return -1;
    c->timeout_us = ms * 1000;
    c->drift = (int)drift;
    return get_node (h, o, errp);
}
