/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* look.c - /healthz, /readyz, /metrics, /v1/watermark: how it is */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/server.h"
#include "libmetrics/text.h"
#include "libutil/clock.h"

struct look {
    struct server *server;
    json_t *report; /* what was told last; NULL: nothing */
    uint64_t told_ms;
};

static const char *const plain = "text/plain; charset=utf-8";

/* --- /healthz, /readyz --------------------------------------------------------- */

/* Whoever reads this is served. */
void look_health (struct look *l, struct exchange *x)
{
    exchange_reply (x, 200, plain, strdup ("ok\n"));
}

/* Ready is who gets ids: the broker answers, and makes some, or knows who does. */
static void ready_cb (idt_future_t *f, void *arg)
{
    struct exchange *x = arg;
    json_t *info, *by;
    const char *state;

    if (idt_rpc_get_unpack (f, "o", &info) < 0
        || json_unpack (info, "{s:s s:o}", "state", &state, "served_by", &by) < 0)
        exchange_fail_errno (x, errno, idt_future_errnum (f) ? idt_future_error (f) : "the broker's answer is none");
    else if (json_is_null (by))
        exchange_fail (x, 503, "nobody makes ids now: the generator is %s", state);
    else
        exchange_reply (x, 200, plain, strdup ("ready\n"));
}

void look_ready (struct look *l, struct exchange *x)
{
    exchange_ask (x, idt_rpc (server_handle (l->server), "fluid.info", NULL, IDT_NODEID_ANY, 0), ready_cb);
}

/* --- /v1/watermark --------------------------------------------------------- */

static void watermark_cb (idt_future_t *f, void *arg)
{
    struct exchange *x = arg;
    json_t *o;

    if (idt_rpc_get_unpack (f, "O", &o) == 0)
        exchange_reply_json (x, 200, o);
    else
        exchange_fail_errno (x, errno, idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
}

void look_watermark (struct look *l, struct exchange *x)
{
    exchange_ask (x, idt_rpc (server_handle (l->server), "fluid.watermark", "{}", IDT_NODEID_ANY, 0), watermark_cb);
}

/* --- /metrics --------------------------------------------------------- */

static void reply_metrics (struct exchange *x, const json_t *report)
{
    const char *accept = exchange_header (x, "Accept");
    bool open = accept && strstr (accept, "application/openmetrics-text");
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        metrics_print (f, open ? METRICS_OPENMETRICS : METRICS_PROMETHEUS, &(struct metrics_source){ report, -1 }, 1);
        if (fclose (f) != 0) {
            free (text);
            text = NULL;
        }
    }
    exchange_reply (x, 200,
                    open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                         : "text/plain; version=0.0.4; charset=utf-8",
                    text);
}

static void metrics_cb (idt_future_t *f, void *arg)
{
    struct exchange *x = arg;
    struct look *l = x->look;
    json_t *report;

    if (idt_rpc_get_unpack (f, "O", &report) < 0) {
        exchange_fail_errno (x, errno, idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
        return;
    }
    json_decref (l->report);
    l->report = report;
    l->told_ms = clock_ms (CLOCK_MONOTONIC);
    reply_metrics (x, report);
}

/* However many ask, the tree is asked once a second. */
void look_metrics (struct look *l, struct exchange *x)
{
    if (l->report && clock_ms (CLOCK_MONOTONIC) - l->told_ms < HTTP_METRICS_MS) {
        reply_metrics (x, l->report);
        return;
    }
    x->look = l;
    exchange_ask (x,
                  idt_rpc_pack (server_handle (l->server), "metrics.get", IDT_NODEID_ANY, 0, "{s:i s:i}", "rank", 0,
                                "timeout_ms", (int)(HTTP_WAIT_MS * 7 / 8)),
                  metrics_cb);
}

/* --- life --------------------------------------------------------- */

struct look *look_create (struct server *s)
{
    struct look *l = calloc (1, sizeof (*l));

    if (!l)
        return NULL;
    l->server = s;
    return l;
}

void look_destroy (struct look *l)
{
    if (!l)
        return;
    json_decref (l->report);
    free (l);
}
