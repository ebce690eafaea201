/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tree_watch.c - poll an instance
 *
 * Each pending request to a broker is in a list, and times out after TREE_WATCH_ANSWER_MS, so a poll always ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "http/live/tree_watch.h"
#include "libutil/clock.h"
#include "libutil/text.h"

#define ROOT 0

enum what { TOPOLOGY, INSTANCE, SURVEY, WATERMARK, ROLE, INFO, STATS, OVERLAY, HOST };

struct watch_question {
    LIST_ENTRY (watch_question) link;
    struct tree_watch *watch;
    idt_future_t *f;
    uint32_t rank;
    enum what what;
};

struct tree_watch {
    idt_t *h;
    struct live_ranks *ranks;
    const struct tree_watch_ops *ops;
    void *arg;
    bool on;
    idt_watcher_t *second, *soon;
    LIST_HEAD (, watch_question) questions; /* empty: no poll is running */
    bool again;                             /* a poll is due as soon as the running one has ended */
    bool surveyed;                          /* the poll has requested more than the topology */
    bool stale;                             /* the topology may have changed, so the next poll requests it */
    bool has_role;                          /* false: rank 0 has no role to show (root.store is not set) */
    idt_future_t *log;
    char failed[200]; /* why the running poll failed; empty: no failure */
    struct tree_news news;
};

const struct tree_news *tree_watch_news (const struct tree_watch *w)
{
    return &w->news;
}

/* --- answers --------------------------------------------------------- */

static void fail (struct tree_watch *w, const char *why)
{
    if (!w->failed[0]) {
        snprintf (w->failed, sizeof (w->failed), "%s", why);
        utf8_clean (w->failed, strlen (w->failed)); /* the text may be cut inside a character, but is sent as JSON */
    }
    w->stale = true;
}

static void take_instance (struct tree_watch *w, const json_t *o)
{
    const char *name = json_string_value (json_object_get (o, "value"));

    free (w->news.instance);
    w->news.instance = name && *name ? strdup (name) : NULL;
}

static void take_watermark (struct tree_watch *w, json_t *o)
{
    json_decref (w->news.watermark);
    w->news.watermark = json_incref (o);
}

static void take_role (struct tree_watch *w, json_t *o)
{
    json_decref (w->news.role);
    w->news.role = json_incref (o);
}

static void take (struct tree_watch *w, const struct watch_question *q, json_t *o)
{
    double now_s = clock_s (CLOCK_MONOTONIC);

    switch (q->what) {
    case TOPOLOGY:
        if (ranks_take_topology (w->ranks, o) < 0)
            fail (w, strerror (errno));
        break;
    case INSTANCE:
        take_instance (w, o);
        break;
    case SURVEY:
        ranks_take_survey (w->ranks, o);
        break;
    case WATERMARK:
        take_watermark (w, o);
        break;
    case ROLE:
        take_role (w, o);
        break;
    case INFO:
        ranks_take_info (w->ranks, q->rank, o, now_s);
        break;
    case STATS:
        ranks_take_stats (w->ranks, q->rank, o, now_s);
        break;
    case OVERLAY:
        ranks_take_overlay (w->ranks, q->rank, o);
        break;
    case HOST:
        ranks_take_host (w->ranks, q->rank, json_string_value (json_object_get (o, "value")));
    }
}

/* Take the failure of a request. If a single rank does not answer, nothing is done here, because the metrics of the
 * whole tree show it.
 */
static void take_failure (struct tree_watch *w, const struct watch_question *q)
{
    int errnum = idt_future_errnum (q->f);

    if (q->what == TOPOLOGY || q->what == SURVEY)
        fail (w, errnum == ETIMEDOUT ? "the broker does not answer"
                 : errnum            ? idt_future_error (q->f)
                                     : "the broker's answer is malformed");
    else if (q->what == WATERMARK)
        take_watermark (w, NULL);
    else if (q->what == ROLE) {
        w->has_role = errnum == ETIMEDOUT || errnum == EAGAIN || errnum == EHOSTUNREACH;
        take_role (w, NULL);
    }
}

static void question_destroy (struct watch_question *q)
{
    LIST_REMOVE (q, link);
    idt_future_destroy (q->f);
    free (q);
}

static void look_ended (struct tree_watch *w);

static void answer_cb (idt_future_t *f, void *arg)
{
    struct watch_question *q = arg;
    struct tree_watch *w = q->watch;
    json_t *o;

    if (idt_rpc_get_unpack (f, "o", &o) == 0)
        take (w, q, o);
    else
        take_failure (w, q);
    question_destroy (q);
    if (LIST_EMPTY (&w->questions))
        look_ended (w);
}

/* --- looks --------------------------------------------------------- */

static void ask (struct tree_watch *w, enum what what, const char *topic, uint32_t rank, const char *request)
{
    struct watch_question *q = calloc (1, sizeof (*q));

    if (!q) {
        fail (w, strerror (errno));
        return;
    }
    *q = (struct watch_question){ .watch = w, .what = what, .rank = rank };
    LIST_INSERT_HEAD (&w->questions, q, link);
    q->f = idt_rpc (w->h, topic, request, what >= INFO || what == ROLE ? rank : IDT_NODEID_ANY, 0);
    if (q->f && idt_future_then (q->f, TREE_WATCH_ANSWER_MS, answer_cb, q) == 0)
        return;
    fail (w, strerror (errno));
    question_destroy (q);
}

static void ask_rank (struct tree_watch *w, uint32_t rank)
{
    ask (w, INFO, "fluid.info", rank, "{}");
    ask (w, STATS, "fluid.stats-get", rank, NULL);
    if (rank != ROOT)
        ask (w, OVERLAY, "overlay.stats-get", rank, NULL);
    if (!ranks_has_host (w->ranks, rank))
        ask (w, HOST, "attr.get", rank, "{\"name\":\"hostname\"}");
}

static void ask_all (struct tree_watch *w)
{
    uint32_t picked[TREE_WATCH_RANKS];
    size_t n = ranks_pick (w->ranks, picked, TREE_WATCH_RANKS);

    ask (w, SURVEY, "metrics.get", ROOT, "{\"rank\":0,\"states\":true,\"timeout_ms\":1500}");
    ask (w, WATERMARK, "fluid.watermark", ROOT, "{}");
    if (w->has_role)
        ask (w, ROLE, "root.get", ROOT, NULL);
    for (size_t i = 0; i < n; i++)
        ask_rank (w, picked[i]);
}

static void tell (struct tree_watch *w)
{
    memcpy (w->news.error, w->failed, sizeof (w->news.error));
    w->ops->looked (w->arg);
}

static void look (struct tree_watch *w)
{
    w->again = !LIST_EMPTY (&w->questions);
    if (w->again)
        return;
    w->failed[0] = '\0';
    w->surveyed = ranks_size (w->ranks) > 0;
    if (w->stale) {
        w->stale = false;
        w->has_role = true;
        ask (w, TOPOLOGY, "overlay.topology", ROOT, "{\"rank\":0}");
        ask (w, INSTANCE, "attr.get", ROOT, "{\"name\":\"instance.name\"}");
    }
    if (w->surveyed)
        ask_all (w);
    if (LIST_EMPTY (&w->questions))
        tell (w);
}

/* Poll after TREE_WATCH_SOON_MS. Each further log line delays this poll again, but the poll of the next second comes in
 * any case.
 */
static void look_soon (struct tree_watch *w)
{
    if (!LIST_EMPTY (&w->questions))
        w->again = true;
    else {
        idt_timer_watcher_reset (w->soon, TREE_WATCH_SOON_MS, 0.);
        idt_watcher_start (w->soon);
    }
}

/* If the poll was the first one, it learned only the topology: poll again now. */
static void look_ended (struct tree_watch *w)
{
    w->news.looks++;
    if (!w->surveyed && !w->failed[0])
        look (w);
    else
        tell (w);
    if (w->again && LIST_EMPTY (&w->questions))
        look_soon (w);
}

/* --- what happens --------------------------------------------------------- */

static void take_line (struct tree_watch *w, idt_future_t *f)
{
    char line[2048];
    struct logline l;
    const void *data;
    size_t size;

    if (idt_rpc_get_raw (f, &data, &size) < 0)
        return;
    snprintf (line, sizeof (line), "%.*s", (int)size, (const char *)data);
    if (logline_parse (line, &l) == 0)
        w->ops->logged (w->arg, &l);
}

static void log_cb (idt_future_t *f, void *arg)
{
    struct tree_watch *w = arg;

    /* follow_log () follows the log again in the next second; the instance may be another one */
    if (idt_future_errnum (f) != 0) {
        idt_future_destroy (f);
        w->log = NULL;
        w->stale = true;
        return;
    }
    if (w->on)
        take_line (w, f);
    idt_future_reset (f);
    if (w->on)
        look_soon (w);
}

/* Brokers log changes of the tree, and rank 0 has all log lines. The log is followed until the connection ends, because
 * no request makes a broker stop earlier.
 */
static void follow_log (struct tree_watch *w)
{
    if (w->log)
        return;
    w->log = idt_rpc (w->h, "log.dmesg", "{\"follow\":true,\"nobacklog\":true}", ROOT, IDT_RPC_STREAMING);
    if (w->log && idt_future_then (w->log, -1, log_cb, w) == 0)
        return;
    idt_future_destroy (w->log);
    w->log = NULL;
}

static void second_cb (idt_watcher_t *timer, int revents, void *arg)
{
    struct tree_watch *w = arg;

    follow_log (w);
    if (LIST_EMPTY (&w->questions))
        look (w);
    w->ops->second (w->arg);
}

static void soon_cb (idt_watcher_t *timer, int revents, void *arg)
{
    look (arg);
}

/* --- life --------------------------------------------------------- */

void tree_watch_begin (struct tree_watch *w)
{
    if (w->on)
        return;
    w->on = true;
    idt_timer_watcher_reset (w->second, TREE_WATCH_SECOND_MS, TREE_WATCH_SECOND_MS);
    idt_watcher_start (w->second);
    follow_log (w);
    look (w);
}

/* If a poll is running, it ends without a callback. */
void tree_watch_end (struct tree_watch *w)
{
    struct watch_question *q;

    w->on = false;
    idt_watcher_stop (w->second);
    idt_watcher_stop (w->soon);
    while ((q = LIST_FIRST (&w->questions)))
        question_destroy (q);
}

struct tree_watch *tree_watch_create (idt_t *h, struct live_ranks *ranks, const struct tree_watch_ops *ops, void *arg)
{
    struct tree_watch *w = calloc (1, sizeof (*w));
    idt_reactor_t *r = idt_get_reactor (h);

    if (!w)
        return NULL;
    *w = (struct tree_watch){ .h = h, .ranks = ranks, .ops = ops, .arg = arg, .stale = true };
    LIST_INIT (&w->questions);
    w->second = idt_timer_watcher_create (r, TREE_WATCH_SECOND_MS, TREE_WATCH_SECOND_MS, second_cb, w);
    w->soon = idt_timer_watcher_create (r, TREE_WATCH_SOON_MS, 0., soon_cb, w);
    if (w->second && w->soon)
        return w;
    tree_watch_destroy (w);
    return NULL;
}

void tree_watch_destroy (struct tree_watch *w)
{
    if (!w)
        return;
    if (w->second && w->soon)
        tree_watch_end (w);
    idt_future_destroy (w->log);
    idt_watcher_destroy (w->second);
    idt_watcher_destroy (w->soon);
    json_decref (w->news.watermark);
    json_decref (w->news.role);
    free (w->news.instance);
    free (w);
}
