/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* consumer.c - receives jobs in order of id, records what it received, and then acknowledges it
 *
 * Because a job is recorded before it is acknowledged, each acknowledged job is in the record, and the consumer may be
 * killed at any time.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "jobs.h"
#include "must.h"

#define TURN_MS 50.
#define SILENT_MS 90000. /* ms; a request that is not answered within this time counts as unanswered */

struct consumer {
    const struct consume_options *o;
    idt_reactor_t *reactor;
    int fd;
    uint64_t last;  /* last id in the record; 0: the record has none */
    uint64_t shown; /* last value of "shown" that the broker has sent */
    idt_t *h;       /* NULL: not connected */
    bool lost, stopping;
    idt_watcher_t *timer; /* runs until the next attempt to connect or to watch */
    idt_future_t *watch, *ack, *stats;
    json_int_t number; /* number of the present watch; 0: not known yet */
    uint64_t have;     /* jobs up to this id were recorded, and may be acknowledged */
    uint64_t acked;    /* jobs up to this id were acknowledged */
    uint64_t seen, acks;
};

static uint64_t parse_id (const char *text)
{
    fluid_t id;

    return text && fluid_parse (text, strlen (text), &id, NULL) == 0 ? id : 0;
}

static const char *format_id (uint64_t id, char text[FLUID_TEXT_MAX])
{
    fluid_format (id, FLUID_F58, text, FLUID_TEXT_MAX);
    return text;
}

/* --- acknowledgements --------------------------------------------------------------------------------------------- */

static void acknowledge (struct consumer *c);

/* An acknowledgement was answered. ENOENT means that the watch is over. EINVAL would mean that the acknowledgement is
 * wrong.
 */
static void acked_cb (idt_future_t *f, void *arg)
{
    struct consumer *c = arg;
    bool good = idt_rpc_get (f, NULL) == 0;

    c->acks += good;
    if (!good && (errno == EINVAL || errno == ETIMEDOUT))
        record_print (c->fd, "wrong ack of %" PRIu64 ": %s", c->acked, idt_future_error (f));
    if (!good)
        c->acked = 0; /* the next acknowledgement repeats this one */
    idt_future_destroy (f);
    c->ack = NULL;
    if (good)
        acknowledge (c);
}

static void acknowledge (struct consumer *c)
{
    char id[FLUID_TEXT_MAX];

    if (c->ack || c->lost || c->number == 0 || c->have <= c->acked)
        return;
    c->acked = c->have;
    c->ack = idt_rpc_pack (c->h, "ingest.ack", IDT_NODEID_ANY, 0, "{s:s s:I}", "id", format_id (c->acked, id), "watch",
                           c->number);
    if (c->ack && idt_future_then (c->ack, SILENT_MS, acked_cb, c) < 0)
        die ("ack");
}

/* --- jobs --------------------------------------------------------------------------------------------------------- */

static void take_job (struct consumer *c, json_t *job)
{
    const char *text = NULL, *tag = NULL;
    uint64_t id;

    if (json_unpack (job, "{s:s s:{s:{s:{s:s}}}}", "id", &text, "jobspec", "attributes", "user", "tag", &tag) < 0
        || !(id = parse_id (text))) {
        record_print (c->fd, "wrong job %s %s", text ? text : "", tag ? tag : "");
        return;
    }
    if (id <= c->have)
        record_print (c->fd, "wrong %s: came with the id %" PRIu64 " after %" PRIu64 " of this watch", tag, id,
                      c->have);
    if (id > c->last || !c->o->acked)
        record_print (c->fd, "job %" PRIu64 " %s", id, tag);
    else
        record_print (c->fd, "again %" PRIu64 " %s", id, tag);
    c->last = id > c->last ? id : c->last;
    c->have = id;
    c->seen++;
}

/* Check "shown": it never decreases, and is not less than the ids that were sent. */
static void take_shown (struct consumer *c, uint64_t shown)
{
    if (shown < c->have || shown < c->shown)
        record_print (c->fd, "wrong shown %" PRIu64 ", after %" PRIu64 ", with jobs up to %" PRIu64, shown, c->shown,
                      c->have);
    c->shown = shown;
}

/* Handle an answer of the watch. Returns -1 if the watch is over. */
static int take_answer (struct consumer *c, idt_future_t *f)
{
    json_t *jobs, *job;
    const char *shown;
    size_t i;

    if (idt_rpc_get_unpack (f, "{s:I s:o s:s}", "watch", &c->number, "jobs", &jobs, "shown", &shown) < 0) {
        if (errno == EPROTO || errno == EINVAL)
            record_print (c->fd, "wrong answer: %s", idt_future_error (f));
        return -1;
    }
    json_array_foreach (jobs, i, job)
        take_job (c, job);
    take_shown (c, parse_id (shown));
    return 0;
}

static void watch_cb (idt_future_t *f, void *arg)
{
    struct consumer *c = arg;

    if (take_answer (c, f) == 0) {
        idt_future_reset (f);
        acknowledge (c);
        return;
    }
    idt_future_destroy (f);
    c->watch = NULL;
    idt_watcher_start (c->timer);
}

static void start_watch (struct consumer *c)
{
    char after[FLUID_TEXT_MAX];
    json_t *o = must (json_object ());

    if (!c->o->acked && c->last)
        json_object_set_new (o, "after", json_string (format_id (c->last, after)));
    if (c->o->window)
        json_object_set_new (o, "window", json_integer (c->o->window));
    c->have = c->o->acked ? 0 : c->last; /* some recorded jobs may not be acknowledged yet */
    c->acked = 0;
    c->number = 0;
    c->watch = idt_rpc_pack (c->h, "ingest.watch", IDT_NODEID_ANY, IDT_RPC_STREAMING, "o", o);
    if (!c->watch || idt_future_then (c->watch, -1., watch_cb, c) < 0) {
        idt_future_destroy (c->watch);
        c->watch = NULL;
        idt_watcher_start (c->timer);
    }
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void stats_cb (idt_future_t *f, void *arg)
{
    struct consumer *c = arg;
    json_int_t jobs = 1;
    bool good = idt_rpc_get_unpack (f, "{s:I}", "jobs", &jobs) == 0;

    if (good && jobs == 0)
        idt_reactor_stop (c->reactor);
    if (!good && errno == ETIMEDOUT)
        record_print (c->fd, "wrong stats: %s", idt_future_error (f));
    idt_future_destroy (f);
    c->stats = NULL;
}

static void ask_stats (struct consumer *c)
{
    c->stats = idt_rpc (c->h, "ingest.stats", NULL, IDT_NODEID_ANY, 0);
    if (c->stats && idt_future_then (c->stats, SILENT_MS, stats_cb, c) < 0)
        die ("stats");
}

/* --- the connection ----------------------------------------------------------------------------------------------- */

/* A handle must not be closed in its own callbacks, so the timer closes it. */
static void lost (idt_t *h, int errnum, void *arg)
{
    struct consumer *c = arg;

    c->lost = true;
    idt_watcher_start (c->timer);
}

static void disconnect (struct consumer *c)
{
    idt_future_destroy (c->watch);
    idt_future_destroy (c->ack);
    idt_future_destroy (c->stats);
    c->watch = c->ack = c->stats = NULL;
    idt_close (c->h);
    c->h = NULL;
    c->lost = false;
}

static void connect_again (struct consumer *c)
{
    disconnect (c);
    if (!(c->h = idt_open (c->o->uri, NULL)) || idt_set_reactor (c->h, c->reactor) < 0)
        disconnect (c);
    else
        idt_set_lost (c->h, lost, c);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct consumer *c = arg;

    if (!c->h || c->lost)
        connect_again (c);
    if (c->h && !c->watch)
        start_watch (c);
    else if (c->h && !c->ack)
        acknowledge (c); /* if an acknowledgement failed, repeat it */
    if (c->h && c->stopping && !c->stats)
        ask_stats (c);
}

static void stdin_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct consumer *c = arg;
    char buf[256];

    if (read (STDIN_FILENO, buf, sizeof (buf)) > 0)
        return;
    idt_watcher_stop (w);
    c->stopping = true;
}

static void recall (void *arg, char *line)
{
    struct consumer *c = arg;

    if (!strncmp (line, "job ", 4))
        c->last = strtoull (line + 4, NULL, 10);
}

int consumer_main (const struct consume_options *o)
{
    struct consumer c = { .o = o, .reactor = must (idt_reactor_create ()) };
    idt_watcher_t *in = must (idt_fd_watcher_create (c.reactor, STDIN_FILENO, IDT_POLLIN, stdin_cb, &c));

    c.fd = record_open (o->record, recall, &c);
    c.timer = must (idt_timer_watcher_create (c.reactor, 0., TURN_MS, timer_cb, &c));
    idt_watcher_start (c.timer);
    idt_watcher_start (in);
    if (idt_reactor_run (c.reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("reactor");
    disconnect (&c);
    idt_watcher_destroy (c.timer);
    idt_watcher_destroy (in);
    idt_reactor_destroy (c.reactor);
    close (c.fd);
    printf ("seen %" PRIu64 " acknowledgements %" PRIu64 "\n", c.seen, c.acks);
    return 0;
}
