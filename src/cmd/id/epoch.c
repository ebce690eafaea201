/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* epoch.c - from when the timestamps of ids count
 *
 * It is no error that an instance can't be asked: an id can be shown without a date.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/rpc.h>

#include "cmd/id/date.h"
#include "cmd/id/epoch.h"
#include "libutil/errprintf.h"

#define TIMEOUT_MS 5000

static void ask (idt_t *h, const char *uri, struct epoch *epoch)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    const char *s;

    if (!f || idt_future_wait (f, TIMEOUT_MS) < 0)
        errprintf (&epoch->why, "%s does not answer", uri);
    else if (idt_rpc_get_unpack (f, "{s:s}", "epoch", &s) < 0)
        errprintf (&epoch->why, "%s does not know it: %s", uri, idt_future_error (f));
    else if (date_parse (s, &epoch->ms) < 0)
        errprintf (&epoch->why, "%s says '%s', which is no date", uri, s);
    idt_future_destroy (f);
}

/* A number that a rank tells of itself. */
static int ask_number (idt_t *h, uint32_t rank, const char *key, double *value)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", rank, 0);
    int rc = f && idt_future_wait (f, TIMEOUT_MS) == 0 ? idt_rpc_get_unpack (f, "{s:F}", key, value) : -1;

    idt_future_destroy (f);
    return rc;
}

static void connect (struct epoch *epoch, const char *uri)
{
    if (!uri)
        errprintf (&epoch->why, "no instance is set, and no --epoch");
    else if ((epoch->h = idt_open (uri, &epoch->why)))
        ask (epoch->h, uri, epoch);
}

struct epoch *epoch_new (const struct cmd *cmd, const char *s)
{
    struct epoch *epoch = calloc (1, sizeof (*epoch));

    if (!epoch)
        cmd_die (cmd, "out of memory");
    epoch->ms = -1;
    if (s && date_parse (s, &epoch->ms) < 0)
        cmd_usage (cmd, "epoch '%s' is no date such as 2026-11-21 or 2026-11-21T10:11:12.345Z", s);
    if (!s)
        connect (epoch, cmd->uri);
    if (epoch->h && ask_number (epoch->h, 0, "ahead_ms", &epoch->ahead_ms) < 0) {
        idt_close (epoch->h);
        epoch->h = NULL;
    }
    return epoch;
}

void epoch_free (struct epoch *epoch)
{
    if (epoch->h)
        idt_close (epoch->h);
    free (epoch);
}

double epoch_error_ms (struct epoch *epoch, uint32_t generator)
{
    double *skew_ms = &epoch->skew_ms[generator];

    if (!epoch->h)
        return -1;
    /* A generator's number is its rank. */
    if (*skew_ms == 0 && ask_number (epoch->h, generator, "skew_bound_ms", skew_ms) < 0)
        *skew_ms = -1;
    return *skew_ms < 0 ? -1 : *skew_ms + fabs (epoch->ahead_ms);
}
