/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* figures.c - /healthz, /readyz, /metrics, /v1/watermark */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/endpoints/figures.h"
#include "libmetrics/text.h"
#include "libutil/clock.h"

#define METRICS_MS 1000 /* figures that are younger are sent again */

/* A request for /metrics that waits. */
struct figures_request {
    LIST_ENTRY (figures_request) link;
    struct exchange *x;
};

struct figures {
    idt_t *h;
    json_t *report; /* the last report; NULL: none */
    uint64_t told_ms;
    idt_future_t *question; /* the request to the broker that all wait for; NULL: none */
    LIST_HEAD (, figures_request) askers;
};

static const char *const plain = "text/plain; charset=utf-8";

/* --- /healthz, /readyz --------------------------------------------------------- */

/* The server that answers is healthy. */
void figures_health (struct figures *fig, struct exchange *x)
{
    exchange_reply (x, 200, plain, strdup ("ok\n"));
}

/* Ready means that clients get ids: the broker answers, and either makes ids or knows a rank that does. */
static void ready_cb (idt_future_t *f, void *arg)
{
    struct exchange *x = arg;
    json_t *info, *by;
    const char *state;

    if (idt_rpc_get_unpack (f, "o", &info) < 0
        || json_unpack (info, "{s:s s:o}", "state", &state, "served_by", &by) < 0)
        exchange_fail_errno (x, errno,
                             idt_future_errnum (f) ? idt_future_error (f) : "the broker's answer is malformed");
    else if (json_is_null (by))
        exchange_fail (x, 503, "no rank makes ids now: the generator is %s", state);
    else
        exchange_reply (x, 200, plain, strdup ("ready\n"));
}

void figures_ready (struct figures *fig, struct exchange *x)
{
    exchange_ask (x, idt_rpc (fig->h, "fluid.info", NULL, IDT_NODEID_ANY, 0), ready_cb);
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

void figures_watermark (struct figures *fig, struct exchange *x)
{
    exchange_ask (x, idt_rpc (fig->h, "fluid.watermark", "{}", IDT_NODEID_ANY, 0), watermark_cb);
}

/* --- /metrics --------------------------------------------------------- */

static void reply_metrics (struct exchange *x, const json_t *report)
{
    static const char *const types[] = { "text/plain; version=0.0.4; charset=utf-8",
                                         "application/openmetrics-text; version=1.0.0; charset=utf-8" };
    size_t type = exchange_wants (x, types, 2);
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (f) {
        metrics_print (f, type == 1 ? METRICS_OPENMETRICS : METRICS_PROMETHEUS, &(struct metrics_source){ report, -1 },
                       1);
        if (fclose (f) != 0) {
            free (text);
            text = NULL;
        }
    }
    exchange_reply (x, 200, types[type], text);
}

static struct figures_request *next_asker (struct figures *fig)
{
    struct figures_request *asker = LIST_FIRST (&fig->askers);

    if (asker) {
        LIST_REMOVE (asker, link);
        asker->x->leave = NULL;
    }
    return asker;
}

static void leave (struct exchange *x)
{
    LIST_REMOVE ((struct figures_request *)x->state, link);
}

static void fail_askers (struct figures *fig, int errnum, const char *text)
{
    struct figures_request *asker;

    while ((asker = next_asker (fig)))
        exchange_fail_errno (asker->x, errnum, text);
}

static void forget_question (struct figures *fig)
{
    idt_future_destroy (fig->question);
    fig->question = NULL;
}

static void metrics_cb (idt_future_t *f, void *arg)
{
    struct figures *fig = arg;
    struct figures_request *asker;

    fig->told_ms = clock_ms (CLOCK_MONOTONIC);
    if (idt_rpc_get_unpack (f, "O", &fig->report) < 0)
        fail_askers (fig, errno, idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
    while ((asker = next_asker (fig)))
        reply_metrics (asker->x, fig->report);
    forget_question (fig);
}

static void ask_metrics (struct figures *fig)
{
    json_decref (fig->report);
    fig->report = NULL;
    fig->question = idt_rpc_pack (fig->h, "metrics.get", IDT_NODEID_ANY, 0, "{s:i s:i}", "rank", 0, "timeout_ms",
                                  (int)(EXCHANGE_WAIT_MS * 7 / 8));
    if (fig->question && idt_future_then (fig->question, EXCHANGE_WAIT_MS, metrics_cb, fig) == 0)
        return;
    fail_askers (fig, errno, strerror (errno));
    forget_question (fig);
}

/* The tree is asked at most once a second, for any number of requests. */
void figures_metrics (struct figures *fig, struct exchange *x)
{
    struct figures_request *asker;

    if (fig->report && clock_ms (CLOCK_MONOTONIC) - fig->told_ms < METRICS_MS) {
        reply_metrics (x, fig->report);
        return;
    }
    if (!(asker = exchange_state_new (x, sizeof (*asker))))
        return;
    asker->x = x;
    LIST_INSERT_HEAD (&fig->askers, asker, link);
    x->leave = leave;
    if (!fig->question)
        ask_metrics (fig);
}

/* --- life --------------------------------------------------------- */

struct figures *figures_create (idt_t *h)
{
    struct figures *fig = calloc (1, sizeof (*fig));

    if (!fig)
        return NULL;
    fig->h = h;
    LIST_INIT (&fig->askers);
    return fig;
}

void figures_destroy (struct figures *fig)
{
    if (!fig)
        return;
    while (next_asker (fig)) /* the server answers the remaining requests */
        ;
    forget_question (fig);
    json_decref (fig->report);
    free (fig);
}
