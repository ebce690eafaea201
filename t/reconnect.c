/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reconnect.c - a client that continues when its brokers end and start again: reconnect MODE
 *
 *     sync                       one call after the other
 *     prefetch                   one call after the other, with prefetched ids
 *     async, events, document    calls on a reactor
 *
 * It prints a line for each item that it receives; with prefetch it prints the ids. When its input ends, it prints a
 * summary and ends. The exit status is 1 if ids did not increase, if a request ended twice, or if a request failed with
 * an error that a broker does not give while it is starting.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#define WINDOW 8
#define AHEAD 64
#define AHEAD_MS 300
#define PAUSE_MS 5 /* ms between two calls, so that the output stays short */

struct client;

struct slot {
    struct client *c;
    idt_future_t *f;
    fluid_t after; /* the id before, when the request was sent */
};

struct client {
    idt_t *h;
    unsigned long got, resets, refused, lost_events;
    fluid_t last;
    struct slot slot[WINDOW];
};

static void die (const char *what, const char *why)
{
    printf ("%s: %s\n", what, why);
    exit (1);
}

static bool input_ended (int timeout_ms)
{
    struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll (&pfd, 1, timeout_ms) > 0;
}

/* Count a failed call. Allowed reasons: the connection was lost, a restarted broker has no lease yet, or no broker was
 * there for a long time.
 */
static void count_error (struct client *c, int errnum, const char *text)
{
    if (errnum == ECONNRESET)
        c->resets++;
    else if (errnum == EHOSTUNREACH || errnum == EAGAIN || errnum == ENOSYS || errnum == ECONNREFUSED)
        c->refused++;
    else
        die ("failed", text);
}

static void take (struct client *c, const fluid_t *ids, fluid_t after)
{
    if (ids[0] <= after || ids[1] <= ids[0])
        die ("ids", "they do not increase");
    c->last = ids[1] > c->last ? ids[1] : c->last;
    printf ("%lu\n", ++c->got);
}

/* --- one call after the other --------------------------------------------------------------- */

static void run_sync (struct client *c)
{
    fluid_t ids[2];

    while (!input_ended (PAUSE_MS)) {
        if (idt_fluid_generate (c->h, 2, ids) == 0)
            take (c, ids, c->last);
        else
            count_error (c, errno, idt_lost_error (c->h) ? idt_lost_error (c->h) : strerror (errno));
    }
}

/* Get prefetched ids, and print each, so that the ids of several clients can be compared. */
static void run_prefetch (struct client *c)
{
    fluid_t id;

    if (idt_fluid_prefetch (c->h, AHEAD, AHEAD_MS) < 0)
        die ("idt_fluid_prefetch", strerror (errno));
    while (!input_ended (1)) {
        if (idt_fluid_generate (c->h, 1, &id) < 0) {
            count_error (c, errno, idt_lost_error (c->h) ? idt_lost_error (c->h) : strerror (errno));
            continue;
        }
        if (id <= c->last)
            die ("ids", "they do not increase");
        c->last = id;
        c->got++;
        printf ("%llu\n", (unsigned long long)id);
    }
}

/* --- many together ------------------------------------------------------------------------- */

static void answer_cb (idt_future_t *f, void *arg);

static void ask (struct slot *slot)
{
    slot->after = slot->c->last;
    slot->f = idt_fluid_generate_async (slot->c->h, 2);
    if (!slot->f || idt_future_then (slot->f, 60000, answer_cb, slot) < 0)
        die ("ask", strerror (errno));
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct slot *slot = arg;
    fluid_t ids[2];

    if (slot->f != f)
        die ("callback", "it was called twice");
    if (idt_fluid_generate_get (f, 2, ids) == 0)
        take (slot->c, ids, slot->after);
    else
        count_error (slot->c, idt_future_errnum (f), idt_future_error (f));
    slot->f = NULL;
    idt_future_destroy (f);
}

/* Send the requests that have ended again. */
static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    for (int i = 0; i < WINDOW; i++)
        if (!c->slot[i].f)
            ask (&c->slot[i]);
}

static void stdin_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct client *c = arg;

    idt_reactor_stop (idt_get_reactor (c->h));
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct client *c = arg;

    c->lost_events += strcmp (idt_msg_topic (msg), "event.lost") == 0;
    printf ("%s\n", idt_msg_topic (msg));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    IDT_HANDLERS_END,
};

static void run_reactor (struct client *c, bool asks)
{
    idt_reactor_t *r = idt_get_reactor (c->h);
    idt_watcher_t *in = idt_fd_watcher_create (r, STDIN_FILENO, IDT_POLLIN, stdin_cb, c);
    idt_watcher_t *timer = idt_timer_watcher_create (r, 1, PAUSE_MS, timer_cb, c);

    idt_watcher_start (in);
    if (asks)
        idt_watcher_start (timer);
    if (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0)
        die ("reactor", idt_lost_error (c->h));
    idt_watcher_destroy (in);
    idt_watcher_destroy (timer);
    for (int i = 0; i < WINDOW; i++)
        idt_future_destroy (c->slot[i].f);
}

static void run_events (struct client *c)
{
    idt_future_t *f = idt_event_subscribe (c->h, "x.");

    if (!f || idt_rpc_get (f, NULL) < 0 || idt_handlers_add (c->h, handlers, c) < 0)
        die ("subscribe", strerror (errno));
    idt_future_destroy (f);
    printf ("subscribed\n");
    run_reactor (c, false);
}

/* --- a document ----------------------------------------------------------------------------- */

static void run_document (struct client *c)
{
    idt_error_t error;
    idt_document_t *d = idt_document_open (c->h, "d", -1, &error);
    int64_t id, op, first = 0, first_op = 0;

    if (!d)
        die ("open", error.text);
    while (!input_ended (PAUSE_MS)) {
        if (idcomp_generate (idt_document_ids (d), &id) < 0)
            die ("generate", idcomp_strerror (errno));
        if (idt_document_settle (d, 60000) < 0)
            die ("settle", idt_document_error (d) ? idt_document_error (d) : strerror (errno));
        first = first ? first : id;
        if (idcomp_to_op (idt_document_ids (d), first, &op) < 0 || (first_op && op != first_op))
            die ("ids", "one of them has changed");
        first_op = op;
        printf ("%lu\n", ++c->got);
    }
    idt_document_close (d);
}

int main (int argc, char *argv[])
{
    struct client c = { .got = 0 };
    const char *mode = argc == 2 ? argv[1] : "";
    idt_error_t error;

    for (int i = 0; i < WINDOW; i++)
        c.slot[i].c = &c;
    setvbuf (stdout, NULL, _IOLBF, 0);
    if (!(c.h = idt_open_ex (
              NULL,
              &(struct idt_open_options){
                  .flags = strcmp (mode, "sync") == 0 || strcmp (mode, "prefetch") == 0 ? 0 : IDT_O_RECONNECT },
              &error)))
        die ("connect", error.text);
    if (strcmp (mode, "sync") == 0)
        run_sync (&c);
    else if (strcmp (mode, "prefetch") == 0)
        run_prefetch (&c);
    else if (strcmp (mode, "async") == 0)
        run_reactor (&c, true);
    else if (strcmp (mode, "events") == 0)
        run_events (&c);
    else if (strcmp (mode, "document") == 0)
        run_document (&c);
    else
        die ("usage", "reconnect sync|prefetch|async|events|document");
    printf ("done: %lu got, %lu reset, %lu refused\n", c.got, c.resets, c.refused);
    idt_close (c.h);
    return 0;
}
