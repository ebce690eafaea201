/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* site.c - the paths that are served, and their functions */
#include "config.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "http/endpoints/figures.h"
#include "http/endpoints/ids.h"
#include "http/live/live.h"
#include "http/server/auth.h"
#include "http/site.h"
#include "libutil/errprintf.h"

struct site {
    const struct auth *door;
    struct ids *ids;
    struct figures *figures;
    struct live_feed *live;
    struct server *server;
};

/* --- what is at a path --------------------------------------------------------- */

static void run_ids_new (struct site *s, struct exchange *x)
{
    ids_new (s->ids, x);
}

static void run_ids_show (struct site *s, struct exchange *x)
{
    ids_show (s->ids, x, strrchr (x->url, '/') + 1);
}

static void run_watermark (struct site *s, struct exchange *x)
{
    figures_watermark (s->figures, x);
}

static void run_tree (struct site *s, struct exchange *x)
{
    live_tree (s->live, x);
}

static void run_events (struct site *s, struct exchange *x)
{
    live_events (s->live, x);
}

static void run_metrics (struct site *s, struct exchange *x)
{
    figures_metrics (s->figures, x);
}

static void run_health (struct site *s, struct exchange *x)
{
    figures_health (s->figures, x);
}

static void run_ready (struct site *s, struct exchange *x)
{
    figures_ready (s->figures, x);
}

/* All paths except resources. etc/openapi.json describes them, and t5067 compares both. */
static const struct route {
    const char *method, *path; /* '{' matches a text without a slash */
    bool open;                 /* no token is needed */
    void (*run) (struct site *s, struct exchange *x);
    const char *parameters; /* the allowed parameters; NULL: parameters are ignored */
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

/* Checks the names of parameters: a misspelled one would otherwise be ignored silently. */
struct slip {
    const char *known; /* names separated by a space */
    uint64_t seen;     /* a bit for the position at which each name begins */
    const char *name;  /* the first one that is unknown or repeated */
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

    if (!s || !(s->ids = ids_create (h, conf->rate)) || !(s->figures = figures_create (h))
        || !(s->live = live_create (h, conf->show_log)))
        errprintf (errp, "out of memory");
    else {
        s->door = &conf->server.door;
        s->server = server_create (idt_get_reactor (h), &conf->server, run, s, errp);
        if (s->server)
            return s;
    }
    site_destroy (s);
    return NULL;
}

/* No answers are sent while the server ends the pending requests. */
void site_destroy (struct site *s)
{
    if (!s)
        return;
    ids_destroy (s->ids);
    figures_destroy (s->figures);
    server_destroy (s->server);
    live_destroy (s->live);
    free (s);
}
