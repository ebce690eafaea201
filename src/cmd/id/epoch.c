/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* epoch.c - the epoch of an instance and the errors of its clocks
 *
 * It is no error if the instance does not answer: ids can be shown without a date.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/id/epoch.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define TIMEOUT_MS 5000

static void ask (idt_t *h, const char *uri, struct id_epoch *epoch)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    json_int_t ranks = 0;
    const char *s;

    if (!f || idt_future_wait (f, TIMEOUT_MS) < 0)
        errprintf (&epoch->why, "%s does not answer", uri);
    else if (idt_rpc_get_unpack (f, "{s:s s?I}", "epoch", &s, "ranks", &ranks) < 0)
        errprintf (&epoch->why, "%s does not know it: %s", uri, idt_future_error (f));
    else if (parse_date (s, &epoch->ms) < 0)
        errprintf (&epoch->why, "%s says '%s', which is not a date", uri, s);
    if (ranks > 0 && ranks <= FLUID_GENERATOR_MAX)
        epoch->ranks = (uint32_t)ranks;
    idt_future_destroy (f);
}

/* The answer of a rank to fluid.info; NULL: it does not answer. */
static json_t *ask_rank_new (idt_t *h, uint32_t rank)
{
    idt_future_t *f = idt_rpc (h, "fluid.info", "{}", rank, 0);
    json_t *o = NULL;

    if (f && idt_future_wait (f, TIMEOUT_MS) == 0 && idt_rpc_get_unpack (f, "o", &o) == 0)
        json_incref (o);
    idt_future_destroy (f);
    return o;
}

static int get_number (const json_t *o, const char *key, double *value)
{
    const json_t *n = json_object_get (o, key);

    if (!json_is_number (n))
        return -1;
    *value = json_number_value (n);
    return 0;
}

static void find_in_instance (struct id_epoch *epoch, struct cmd *cmd)
{
    if (ask_try_connect (cmd, &epoch->why)) {
        ask (cmd->h, idt_get_uri (cmd->h), epoch);
        json_t *o = ask_rank_new (cmd->h, 0);
        if (get_number (o, "ahead_ms", &epoch->ahead_ms) == 0)
            epoch->h = cmd->h;
        json_decref (o);
    }
}

void epoch_find (struct id_epoch *epoch, struct cmd *cmd, const char *s)
{
    memset (epoch, 0, sizeof (*epoch));
    epoch->ms = -1;
    if (s && parse_date (s, &epoch->ms) < 0)
        cmd_usage (cmd, "epoch '%s' is not a date such as " DATE_EXAMPLE, s);
    if (!s)
        find_in_instance (epoch, cmd);
}

uint32_t epoch_rank (const struct id_epoch *epoch, uint32_t generator)
{
    return epoch->ranks > 0 ? generator % epoch->ranks : generator;
}

void epoch_fini (struct id_epoch *epoch)
{
    for (size_t i = 0; i <= FLUID_GENERATOR_MAX; i++)
        free (epoch->borrowers[i]);
}

/* Ask a rank, at most one time. */
static void know (struct id_epoch *epoch, uint32_t rank)
{
    if (!epoch->h || epoch->skew_ms[rank] != 0)
        return;
    json_t *o = ask_rank_new (epoch->h, rank);
    const char *set = json_string_value (json_object_get (json_object_get (o, "lent"), "ranks"));

    if (get_number (o, "skew_bound_ms", &epoch->skew_ms[rank]) < 0)
        epoch->skew_ms[rank] = -1;
    free (epoch->borrowers[rank]);
    epoch->borrowers[rank] = NULL;
    if (json_is_true (json_object_get (o, "lends")))
        epoch->borrowers[rank] = strdup (set ? set : "");
    json_decref (o);
}

const char *epoch_borrowers (struct id_epoch *epoch, uint32_t generator)
{
    uint32_t rank = epoch_rank (epoch, generator);

    know (epoch, rank);
    return rank == generator ? epoch->borrowers[rank] : NULL; /* there are no subleases of lanes */
}

double epoch_error_ms (struct id_epoch *epoch, uint32_t generator)
{
    uint32_t rank = epoch_rank (epoch, generator);
    const double *skew_ms = &epoch->skew_ms[rank];

    if (!epoch->h)
        return -1;
    know (epoch, rank);
    return *skew_ms < 0 ? -1 : *skew_ms + fabs (epoch->ahead_ms);
}
