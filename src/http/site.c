/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* site.c - the paths that are served, and the functions that answer requests for them
 *
 * /healthz, /readyz, /metrics and /v1/watermark are answered here. ids.c and live/live.c answer the other paths.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "http/ids.h"
#include "http/live/live.h"
#include "http/server/auth.h"
#include "http/server/server.h"
#include "http/site.h"
#include "libmetrics/text.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define METRICS_MS 1000 /* figures that are younger than this are sent again */

/* A request for /metrics that waits. */
struct metrics_asker {
    LIST_ENTRY (metrics_asker) link;
    struct exchange *x;
};

struct site {
    idt_t *h;
    const struct auth *door;
    struct ids *ids;
    struct live_feed *live;
    struct server *server;
    json_t *report; /* the last answer for /metrics; NULL: none */
    uint64_t told_ms;
    idt_future_t *question; /* the request to the broker for /metrics, which all waiting requests share; NULL: none */
    LIST_HEAD (, metrics_asker) askers;
};

static const char *const plain = "text/plain; charset=utf-8";

/* --- /healthz, /readyz --------------------------------------------------------- */

/* If this server can answer, it is healthy. */
static void run_health (struct site *s, struct exchange *x)
{
    exchange_reply (x, 200, plain, strdup ("ok\n"));
}

/* Ready means that clients get ids: the broker answers, and it makes ids, or knows a rank that makes ids for it. */
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

static void run_ready (struct site *s, struct exchange *x)
{
    exchange_ask (x, idt_rpc (s->h, "fluid.info", NULL, IDT_NODEID_ANY, 0), ready_cb);
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

static void run_watermark (struct site *s, struct exchange *x)
{
    exchange_ask (x, idt_rpc (s->h, "fluid.watermark", "{}", IDT_NODEID_ANY, 0), watermark_cb);
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

static struct metrics_asker *next_asker (struct site *s)
{
    struct metrics_asker *asker = LIST_FIRST (&s->askers);

    if (asker) {
        LIST_REMOVE (asker, link);
        asker->x->leave = NULL;
    }
    return asker;
}

static void leave (struct exchange *x)
{
    LIST_REMOVE ((struct metrics_asker *)x->state, link);
}

static void fail_askers (struct site *s, int errnum, const char *text)
{
    struct metrics_asker *asker;

    while ((asker = next_asker (s)))
        exchange_fail_errno (asker->x, errnum, text);
}

static void forget_question (struct site *s)
{
    idt_future_destroy (s->question);
    s->question = NULL;
}

static void metrics_cb (idt_future_t *f, void *arg)
{
    struct site *s = arg;
    struct metrics_asker *asker;

    s->told_ms = clock_ms (CLOCK_MONOTONIC);
    if (idt_rpc_get_unpack (f, "O", &s->report) < 0)
        fail_askers (s, errno, idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
    while ((asker = next_asker (s)))
        reply_metrics (asker->x, s->report);
    forget_question (s);
}

static void ask_metrics (struct site *s)
{
    json_decref (s->report);
    s->report = NULL;
    s->question = idt_rpc_pack (s->h, "metrics.get", IDT_NODEID_ANY, 0, "{s:i s:i}", "rank", 0, "timeout_ms",
                                (int)(EXCHANGE_WAIT_MS * 7 / 8));
    if (s->question && idt_future_then (s->question, EXCHANGE_WAIT_MS, metrics_cb, s) == 0)
        return;
    fail_askers (s, errno, strerror (errno));
    forget_question (s);
}

/* Brokers are asked for metrics at most once a second, however many requests arrive. */
static void run_metrics (struct site *s, struct exchange *x)
{
    struct metrics_asker *asker;

    if (s->report && clock_ms (CLOCK_MONOTONIC) - s->told_ms < METRICS_MS) {
        reply_metrics (x, s->report);
        return;
    }
    if (!(asker = exchange_state_new (x, sizeof (*asker))))
        return;
    asker->x = x;
    LIST_INSERT_HEAD (&s->askers, asker, link);
    x->leave = leave;
    if (!s->question)
        ask_metrics (s);
}

/* --- what is at a path --------------------------------------------------------- */

static void run_ids_new (struct site *s, struct exchange *x)
{
    ids_new (s->ids, x);
}

static void run_ids_show (struct site *s, struct exchange *x)
{
    ids_show (s->ids, x, strrchr (x->url, '/') + 1);
}

static void run_tree (struct site *s, struct exchange *x)
{
    live_tree (s->live, x);
}

static void run_events (struct site *s, struct exchange *x)
{
    live_events (s->live, x);
}

/* All paths except the paths of resources. etc/openapi.json describes these paths, and t5067 compares both. */
static const struct route {
    const char *method, *path; /* '{' matches a text without a slash */
    bool open;                 /* no token is needed */
    void (*run) (struct site *s, struct exchange *x);
    const char *parameters; /* the allowed parameters; NULL: any parameter is allowed and ignored */
} routes[] = {
    { "POST", "/v1/ids", false, run_ids_new, "n to" },      { "GET", "/v1/ids/{id}", false, run_ids_show, NULL },
    { "GET", "/v1/watermark", false, run_watermark, NULL }, { "GET", "/v1/tree", false, run_tree, "rank depth" },
    { "GET", "/v1/events", false, run_events, NULL },       { "GET", "/metrics", false, run_metrics, NULL },
    { "GET", "/healthz", true, run_health, NULL },          { "GET", "/readyz", true, run_ready, NULL },
};

static bool is_at (const char *path, const char *url)
{
    size_t len = strcspn (path, "{");

    return path[len] ? strncmp (path, url, len) == 0 && !strchr (url + len, '/') : strcmp (path, url) == 0;
}

static const struct route *find_route (const char *url)
{
    for (size_t i = 0; i < sizeof (routes) / sizeof (routes[0]); i++)
        if (is_at (routes[i].path, url))
            return &routes[i];
    return NULL;
}

/* A check of the names of parameters. Without it, a misspelled parameter would be ignored silently. */
struct slip {
    const char *known; /* the allowed names, separated by a space */
    uint64_t seen;     /* bit N: the name that begins at 'known' + N was found */
    const char *name;  /* the first parameter that is unknown or repeated */
};

static enum MHD_Result look_for_slip (void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct slip *slip = cls;
    size_t len = strlen (name);
    const char *at = slip->known;

    while (at && (strncmp (at, name, len) != 0 || (at[len] && at[len] != ' ')))
        at = (at = strchr (at, ' ')) ? at + 1 : NULL;
    uint64_t bit = at ? UINT64_C (1) << (at - slip->known) : 0;

    if (len > 0 && !strchr (name, ' ') && (bit & ~slip->seen)) {
        slip->seen |= bit;
        return MHD_YES;
    }
    slip->name = name;
    return MHD_NO;
}

static bool has_slip (struct exchange *x, const char *parameters)
{
    struct slip slip = { .known = parameters };

    if (parameters)
        MHD_get_connection_values (x->connection, MHD_GET_ARGUMENT_KIND, look_for_slip, &slip);
    if (slip.name)
        exchange_fail (x, 400, "%.64s: this parameter is unknown or repeated; the known ones are: %s", slip.name,
                       parameters);
    return slip.name != NULL;
}

static bool is_method (struct exchange *x, const char *method)
{
    bool head = strcmp (x->method, "HEAD") == 0 && strcmp (method, "GET") == 0;

    if (head || strcmp (x->method, method) == 0)
        return true;
    x->allow = strcmp (method, "GET") == 0 ? "GET, HEAD" : method;
    exchange_fail (x, 405, "%s allows only %s", x->url, method);
    return false;
}

static void run (struct exchange *x, void *arg)
{
    struct site *s = arg;
    const struct route *route = find_route (x->url);

    x->resource = route ? NULL : resource_find (x->url);
    if (!(route && route->open) && !auth_lets_in (s->door, x))
        return;
    if (!route && !x->resource)
        exchange_fail (x, 404, "there is nothing at this path: /v1/openapi.json lists the paths");
    else if (!is_method (x, route ? route->method : "GET"))
        return;
    else if (route && has_slip (x, route->parameters))
        return;
    else if (x->body > 0)
        exchange_fail (x, 400, FRAMING_NO_BODY);
    else if (route)
        route->run (s, x);
    else
        exchange_reply_resource (x);
}

/* --- life --------------------------------------------------------- */

struct site *site_create (idt_t *h, const struct site_conf *conf, idt_error_t *errp)
{
    struct site *s = calloc (1, sizeof (*s));

    if (!s || !(s->ids = ids_create (h, conf->rate)) || !(s->live = live_create (h, conf->show_log)))
        errprintf (errp, "out of memory");
    else {
        s->h = h;
        s->door = &conf->server.door;
        LIST_INIT (&s->askers);
        s->server = server_create (idt_get_reactor (h), &conf->server, run, s, errp);
        if (s->server)
            return s;
    }
    site_destroy (s);
    return NULL;
}

/* Pending requests are answered by server_destroy (), not here. */
void site_destroy (struct site *s)
{
    if (!s)
        return;
    ids_destroy (s->ids);
    while (next_asker (s)) /* server_destroy () answers these requests */
        ;
    forget_question (s);
    json_decref (s->report);
    server_destroy (s->server);
    live_destroy (s->live);
    free (s);
}
