/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* stats.c - the counters of a node */
#include "modules/flake/stats.h"

json_t *stats_new (struct flake *f, const struct flake_options *options)
{
    const struct flake_stats *s = flake_stats (f);

    return json_pack ("{s:s s:I s:i s:I s:I s:I s:I s:I s:I s:I s:I}", "node", options->node.node, "fingerprint",
                      (json_int_t)options->node.fingerprint, "drift", flake_drift (f), "requests",
                      (json_int_t)s->requests, "ids", (json_int_t)(s->made[SERIES_SNO] + s->made[SERIES_UID]), "flax",
                      (json_int_t)s->made[SERIES_FLAX], "forwarded", (json_int_t)s->forwards, "combined",
                      (json_int_t)s->combined, "refused", (json_int_t)s->refused, "loans", (json_int_t)s->loans,
                      "claims", (json_int_t)s->claims);
}

void stats_report (void *flake, bool states, struct metrics *m)
{
    struct flake *f = flake;
    const struct flake_stats *s = flake_stats (f);

    if (states)
        return;
    metrics_put_count (m, "flake_requests", s->requests);
    metrics_put_count (m, "flake_flaxes", s->made[SERIES_FLAX]);
    metrics_put_count (m, "flake_snos", s->made[SERIES_SNO]);
    metrics_put_count (m, "flake_uids", s->made[SERIES_UID]);
    metrics_put_count (m, "flake_forwarded", s->forwards);
    metrics_put_count (m, "flake_combined", s->combined);
    metrics_put_count (m, "flake_refused", s->refused);
    metrics_put_count (m, "flake_waiting", flake_waiting (f));
}
