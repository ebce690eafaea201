/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* memory.c - a rank below rank 0 remembers what that would have to be told, if it lost its state
 *
 * The root gives nothing above a horizon that it has stored, two leases ahead of its time.  A rank that asked for its last
 * lease while the root was there asked at most a lease before it was gone: so two leases above the end of its own, no id
 * of anybody was made.
 */
#include <string.h>
#include <syslog.h>
#include <time.h>

#include "libstate/statefile.h"
#include "libutil/minmax.h"
#include "modules/fluid/service/service.h"

static uint64_t last_end (const struct lease_answer *a)
{
    uint64_t hi_ms = 0;

    for (size_t i = 0; i < a->ngrant; i++)
        hi_ms = max_u64 (hi_ms, a->grant[i].hi_ms);
    return hi_ms;
}

/* It is the wrong place, or full: nothing depends on it. */
static void tell_once (struct service *sv, const char *why)
{
    if (!sv->told_memory)
        idt_log (sv->h, LOG_NOTICE, "this rank remembers nothing of its instance: %s", why);
    sv->told_memory = true;
}

void service_remember (struct service *sv, const struct lease_answer *a)
{
    const char *dir = idt_attr_get (sv->h, "statedir"), *uuid = idt_attr_get (sv->h, "instance.uuid");
    const char *name = idt_attr_get (sv->h, "instance.name");
    uint64_t hi_ms = last_end (a);
    struct statefile s = { .has_epoch = true, .epoch_ms = a->epoch_ms, .created_ms = (int64_t)time (NULL) * 1000 };
    idt_error_t err;

    if (sv->options.node.rank == 0 || !dir || !*dir || !uuid || !name || !a->has_epoch || hi_ms == 0)
        return;
    snprintf (s.uuid, sizeof (s.uuid), "%s", uuid);
    snprintf (s.name, sizeof (s.name), "%s", name);
    s.below_ms = a->epoch_ms + (int64_t)(hi_ms + 2 * a->lease_ms);
    if (state_remember (dir, sv->options.node.rank, &s, &err) < 0)
        tell_once (sv, err.text);
}
