/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* quorum.c - how many brokers must join before an instance counts as started */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/base/quorum.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define MUST_BE "must be a number of ranks from 1 to %u, which is all of this instance, or 1%% to 100%% of them"

int quorum_parse (const char *text, uint32_t size, uint32_t *need)
{
    size_t len = strlen (text);
    char number[8];
    uint64_t n;

    if (len == 0 || text[len - 1] != '%') {
        if (parse_number (text, 1, size, &n) < 0)
            return errset (EINVAL);
        *need = (uint32_t)n;
        return 0;
    }
    if (len > sizeof (number))
        return errset (EINVAL);
    snprintf (number, sizeof (number), "%.*s", (int)len - 1, text);
    if (parse_number (number, 1, 100, &n) < 0)
        return errset (EINVAL);
    *need = (uint32_t)((size * n + 99) / 100);
    return 0;
}

static int check (const char *value, void *arg, idt_error_t *errp)
{
    const struct quorum *q = arg;
    uint32_t need;

    return quorum_parse (value, q->size, &need) < 0 ? errsetf (errp, EINVAL, MUST_BE, q->size) : 0;
}

static void take (const char *name, const char *value, void *arg)
{
    struct quorum *q = arg;

    quorum_parse (value, q->size, &q->need);
}

int quorum_check (struct attrs *given, uint32_t size, idt_error_t *errp)
{
    const char *own = attr_get (given, "broker.quorum", NULL), *cluster = attr_get (given, "cluster.quorum", NULL);
    uint32_t need;

    if (own && cluster)
        return attr_fault (given, "cluster.quorum", errp, "broker.quorum is set, too: set only one of them");
    if ((own || cluster) && quorum_parse (own ? own : cluster, size, &need) < 0)
        return attr_fault (given, own ? "broker.quorum" : "cluster.quorum", errp, MUST_BE, size);
    return 0;
}

int quorum_init (struct quorum *q, struct attrs *attrs, uint32_t size, idt_error_t *errp)
{
    const char *own, *cluster = attr_get (attrs, "cluster.quorum", NULL);

    *q = (struct quorum){ .size = size, .need = size };
    if (attr_define (attrs, "broker.quorum", NULL, ATTR_SETTABLE, errp) < 0 || quorum_check (attrs, size, errp) < 0)
        return -1;
    own = attr_get (attrs, "broker.quorum", NULL);
    q->is_given = own || cluster;
    if ((!own && attr_define (attrs, "broker.quorum", cluster ? cluster : "100%", ATTR_SETTABLE, errp) < 0)
        || attr_own (attrs, "broker.quorum", check, take, q, errp) < 0)
        return -1;
    return attr_seconds (attrs, "broker.quorum-timeout", "0", 0., 86400., &q->warn_s, errp);
}

/* If all brokers are needed, 'joined' alone is not enough, because it may be one too high for a short time. */
bool quorum_take (struct quorum *q, uint32_t joined, bool full)
{
    assert (q->need >= 1 && q->need <= q->size);
    if (q->is_reached || !(full || (q->need < q->size && joined >= q->need)))
        return false;
    q->is_reached = true;
    return true;
}
