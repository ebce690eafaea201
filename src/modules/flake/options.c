/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* options.c - the attributes of the module */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <idtree/idtree.h>

#include "libutil/errprintf.h"
#include "libutil/duration.h"
#include "modules/flake/options.h"

#define HOUR_MS UINT64_C (3600000)

static const char fingerprints[] = "a number from 0 to 4294967295, but for the ranks' 2147483648 to 2214592511";

static int nonsense (idt_error_t *errp, const char *name, const char *value, const char *want)
{
    return errsetf (errp, EINVAL, "%s=%s: must be %s", name, value, want);
}

/* 'unless_given': the value where the attribute was not given; NULL: '*value' stays. */
static int get_number (idt_t *h, const char *name, const char *unless_given, uint32_t min, uint32_t max,
                       const char *want, uint32_t *value, idt_error_t *errp)
{
    const char *s = unless_given ? idt_attr_define (h, name, unless_given) : idt_attr_get (h, name);
    uint64_t n;

    if (!s && !unless_given)
        return 0;
    if (!s)
        return errprintf (errp, "%s: %s", name, strerror (errno));
    if (parse_number (s, min, max, &n) < 0)
        return nonsense (errp, name, s, want);
    *value = (uint32_t)n;
    return 0;
}

/* What uids name: the rank's own number where nothing is given.  The name is what rank 0 tells others. */
static int get_node (idt_t *h, struct options *o, idt_error_t *errp)
{
    const char *name = idt_attr_get (h, "uid.node"), *host = idt_attr_get (h, "hostname"),
               *given = idt_attr_get (h, "uid.fingerprint");
    int n = name ? snprintf (o->name, sizeof (o->name), "%s", name)
                 : snprintf (o->name, sizeof (o->name), "idtree-%u@%s", o->node.rank, host ? host : "localhost");

    if (n < 1 || n > CLAIM_NAME_MAX)
        return nonsense (errp, "uid.node", o->name, "a name of 1 to 255 bytes");
    o->node.node = o->name;
    o->node.fingerprint = name ? uid_fingerprint (name, strlen (name)) : naming_own (o->node.rank);
    if (given && get_number (h, "uid.fingerprint", NULL, 0, UINT32_MAX, fingerprints, &o->node.fingerprint, errp) < 0)
        return -1;
    if (given && naming_is_own (o->node.fingerprint))
        return nonsense (errp, "uid.fingerprint", given, fingerprints);
    return 0;
}

int options_read (idt_t *h, struct options *o, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, "flake.forward-timeout", "5s");
    uint32_t drift = UID_DRIFT_DEFAULT;
    uint64_t ms;

    if (!s)
        return errprintf (errp, "flake.forward-timeout: %s", strerror (errno));
    if (idt_get_rank (h, &o->node.rank) < 0)
        return errprintf (errp, "the attribute rank is missing");
    if (parse_duration (s, HOUR_MS, &ms) < 0 || ms < 10)
        return nonsense (errp, "flake.forward-timeout", s, "10ms to 1h, such as 5s");
    if (get_number (h, "flake.max-partitions", "65536", 1, FLAKE_PARTITIONS, "a number from 1 to 65536",
                    &o->node.max_partitions, errp)
            < 0
        || get_number (h, "flake.max-waiting", "8192", 1, 1000000, "a number from 1 to 1000000", &o->node.max_waiting,
                       errp)
               < 0
        || get_number (h, "uid.drift", o->node.rank == 0 ? "8" : NULL, UID_DRIFT_MIN, UID_DRIFT_MAX,
                       "a number from 5 to 10", &drift, errp)
               < 0)
        return -1;
    o->node.timeout_us = ms * 1000;
    o->node.drift = (int)drift;
    return get_node (h, o, errp);
}
