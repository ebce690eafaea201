/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* live.c - GET /v1/tree and /v1/events: the current state of an instance for many readers */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/live/feed.h"
#include "http/live/live.h"
#include "http/live/tree_watch.h"
#include "libidtree/json.h"
#include "libutil/clock.h"

#define LINES_SECOND 50 /* most lines of the log that are sent in a second */
#define LEVEL_MAX 6     /* the level 'info': log lines of lower importance are not sent */

/* A client that reads events, or waits for the tree. */
struct live_reader {
    LIST_ENTRY (live_reader) link;
    struct live_feed *live;
    struct exchange *x;
    struct feed_reader place; /* the reader's position in the feed */
    uint32_t rank, depth;     /* the wanted part of the tree */
};

struct live_feed {
    struct live_ranks *ranks;
    struct tree_watch *watch;
    struct feed *feed;
    bool show_log;
    bool looked;     /* a poll has ended, so the data is at most a second old */
    double wanted_s; /* time of the last request of a reader */
    unsigned readers;
    LIST_HEAD (, live_reader) streams; /* readers of events */
    LIST_HEAD (, live_reader) waiting; /* readers that wait for the first poll */
    unsigned lines;                    /* number of log lines in this second that were sent */
    unsigned hidden;
    /* the text of the last tree that was sent, and its request */
    char *text; /* NULL: no tree was sent since the last poll */
    uint32_t rank;
    unsigned depth;
};

/* --- readers of events --------------------------------------------------------- */

static struct live_reader *reader_new (struct live_feed *l, struct exchange *x)
{
    struct live_reader *r = exchange_state_new (x, sizeof (*r));

    if (r)
        *r = (struct live_reader){ .live = l, .x = x, .depth = RANKS_MAX_DEPTH };
    return r;
}

static size_t read_feed (struct exchange *x, char *buf, size_t max)
{
    struct live_reader *r = x->state;

    return feed_read (r->live->feed, &r->place, buf, max);
}

static void leave (struct exchange *x)
{
    struct live_reader *r = x->state;

    LIST_REMOVE (r, link);
    r->live->readers--;
}

/* 'o' is stolen. */
static void say (struct live_feed *l, const char *event, json_t *o)
{
    char *text = o ? json_dumps (o, JSON_COMPACT | JSON_REAL_PRECISION (12)) : NULL;
    struct live_reader *r;

    json_decref (o);
    if (text)
        feed_say (l->feed, event, text);
    free (text);
    LIST_FOREACH (r, &l->streams, link)
        if (feed_has (l->feed, &r->place))
            exchange_resume (r->x);
}

static void want (struct live_feed *l)
{
    l->wanted_s = clock_s (CLOCK_MONOTONIC);
    tree_watch_begin (l->watch);
}

static void greet (struct live_feed *l, struct live_reader *r)
{
    char data[80];

    snprintf (data, sizeof (data), "{\"look\":%" PRIu64 ",\"size\":%" PRIu32 ",\"log\":%s}",
              tree_watch_news (l->watch)->looks, ranks_size (l->ranks), l->show_log ? "true" : "false");
    feed_join (l->feed, &r->place, "hello", data);
}

void live_events (struct live_feed *l, struct exchange *x)
{
    struct live_reader *r;

    if (l->readers == LIVE_READERS) {
        exchange_fail (x, 503, "%d other clients read events, which is the limit: try again later", LIVE_READERS);
        return;
    }
    if (!(r = reader_new (l, x)))
        return;
    want (l);
    l->readers++;
    LIST_INSERT_HEAD (&l->streams, r, link);
    x->leave = leave;
    greet (l, r);
    exchange_stream (x, "text/event-stream", read_feed);
}

/* --- the tree --------------------------------------------------------- */

static void put_look (const struct live_feed *l, json_t **o)
{
    char stamp[CLOCK_STAMP_SIZE];

    json_put_new (o, "look", json_integer ((json_int_t)tree_watch_news (l->watch)->looks));
    json_put_new (o, "time", json_string (clock_stamp (stamp)));
}

/* Which host is rank 0; nothing without root.store. */
static void put_role (const json_t *role, json_t **o)
{
    static const char *const members[] = { "host", "term", "candidates", "standbys", "takeovers", "why" };
    json_t *root = json_object ();

    for (size_t i = 0; i < sizeof (members) / sizeof (members[0]); i++)
        if (json_object_get (role, members[i]))
            json_put_new (&root, members[i], json_incref (json_object_get (role, members[i])));
    json_put_new (o, "root", root);
}

static void put_news (const struct live_feed *l, json_t **o)
{
    const struct tree_news *news = tree_watch_news (l->watch);

    json_put_new (o, "error", news->error[0] ? json_string (news->error) : json_null ());
    json_put_new (o, "watermark", news->watermark ? json_incref (news->watermark) : json_null ());
    if (news->role)
        put_role (news->role, o);
}

static char *tree_new (struct live_feed *l, uint32_t rank, unsigned depth)
{
    const char *name = tree_watch_news (l->watch)->instance;
    json_t *o = ranks_tree_new (l->ranks, rank, depth, clock_s (CLOCK_MONOTONIC));

    put_look (l, &o);
    json_put_new (&o, "instance", name ? json_string (name) : json_null ());
    put_news (l, &o);
    return exchange_json_text (o);
}

static void reply_tree (const struct live_reader *r)
{
    struct live_feed *l = r->live;
    const char *error = tree_watch_news (l->watch)->error;

    if (ranks_size (l->ranks) == 0)
        exchange_fail (r->x, 503, "%s", error[0] ? error : "no memory");
    else if (r->rank >= ranks_size (l->ranks))
        exchange_fail (r->x, 404, "there is no rank %" PRIu32 ": the instance has %" PRIu32, r->rank,
                       ranks_size (l->ranks));
    else {
        if (!l->text || l->rank != r->rank || l->depth != r->depth) {
            free (l->text);
            l->text = tree_new (l, r->rank, r->depth);
            l->rank = r->rank;
            l->depth = r->depth;
        }
        exchange_reply (r->x, 200, "application/json", l->text ? strdup (l->text) : NULL);
    }
}

/* Returns false if the request was answered with an error. */
static bool read_number (struct exchange *x, const char *name, uint32_t most, uint32_t *n)
{
    const char *s = exchange_parameter (x, name);
    size_t digits = s ? strspn (s, "0123456789") : 0;
    unsigned long value = s && digits > 0 && digits <= 9 && !s[digits] ? strtoul (s, NULL, 10) : most + 1UL;

    if (!s)
        return true;
    *n = (uint32_t)value;
    if (value > most)
        exchange_fail (x, 400, "%s=%.64s: a number from 0 to %" PRIu32 " is needed", name, s, most);
    return value <= most;
}

void live_tree (struct live_feed *l, struct exchange *x)
{
    struct live_reader *r = reader_new (l, x);

    if (!r || !read_number (x, "rank", RANKS_MAX, &r->rank) || !read_number (x, "depth", RANKS_MAX_DEPTH, &r->depth))
        return;
    want (l);
    if (l->looked)
        reply_tree (r);
    else
        LIST_INSERT_HEAD (&l->waiting, r, link);
}

/* --- what happens --------------------------------------------------------- */

static void looked_cb (void *arg)
{
    struct live_feed *l = arg;
    json_t *changes = ranks_changes_new (l->ranks);
    struct live_reader *r;

    l->looked = true;
    free (l->text);
    l->text = NULL;
    while ((r = LIST_FIRST (&l->waiting))) {
        LIST_REMOVE (r, link);
        reply_tree (r);
    }
    if (!changes)
        return;
    put_look (l, &changes);
    say (l, "change", changes);
}

static void say_hidden (struct live_feed *l)
{
    char stamp[CLOCK_STAMP_SIZE], text[80];

    snprintf (text, sizeof (text), "%u more lines were logged in this second", l->hidden);
    say (l, "log",
         json_pack ("{s:s s:i s:s s:s s:s}", "time", clock_stamp (stamp), "rank", 0, "name", "idtree-http", "level",
                    "notice", "text", text));
}

static void second_cb (void *arg)
{
    struct live_feed *l = arg;
    json_t *rates;

    if (l->hidden > 0)
        say_hidden (l);
    l->lines = l->hidden = 0;
    if (l->readers == 0) {
        if (clock_s (CLOCK_MONOTONIC) - l->wanted_s < LIVE_AFTER_S || !LIST_EMPTY (&l->waiting))
            return;
        tree_watch_end (l->watch);
        l->looked = false;
        return;
    }
    rates = ranks_rates_new (l->ranks, clock_s (CLOCK_MONOTONIC));
    put_look (l, &rates);
    put_news (l, &rates);
    say (l, "rates", rates);
}

static void logged_cb (void *arg, const struct logline *line)
{
    struct live_feed *l = arg;

    if (!l->show_log || l->readers == 0 || line->level > LEVEL_MAX)
        return;
    if (l->lines == LINES_SECOND)
        l->hidden++;
    else {
        l->lines++;
        say (l, "log",
             json_pack ("{s:s s:I s:s s:s s:s}", "time", line->time, "rank", (json_int_t)strtoul (line->rank, NULL, 10),
                        "name", line->name, "level", logline_level (line->level), "text", line->text));
    }
}

/* --- life --------------------------------------------------------- */

static const struct tree_watch_ops ops = { looked_cb, second_cb, logged_cb };

struct live_feed *live_create (idt_t *h, bool show_log)
{
    struct live_feed *l = calloc (1, sizeof (*l));

    if (!l)
        return NULL;
    l->show_log = show_log;
    l->wanted_s = -LIVE_AFTER_S;
    LIST_INIT (&l->streams);
    LIST_INIT (&l->waiting);
    if ((l->ranks = ranks_create ()) && (l->feed = feed_create ("lost"))
        && (l->watch = tree_watch_create (h, l->ranks, &ops, l)))
        return l;
    live_destroy (l);
    return NULL;
}

void live_destroy (struct live_feed *l)
{
    if (!l)
        return;
    tree_watch_destroy (l->watch);
    feed_destroy (l->feed);
    ranks_destroy (l->ranks);
    free (l->text);
    free (l);
}
