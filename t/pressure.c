/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pressure.c - more messages than a link accepts at a time
 *
 *     pressure ask URI RANK COUNT SIZE    send COUNT requests of SIZE bytes to a rank, as many at a time as the handle
 *                                         accepts
 *     pressure publish URI COUNT          publish COUNT events load.1, load.2, ...
 *     pressure watch URI COUNT            print "ready", then read events until load.COUNT arrives
 *
 * 'ask' prints "answered N failed M", and the text of the first failure. Its exit status is 0 if and only if all
 * requests were answered. 'watch' prints "came N lost M". Its exit status is 0 if and only if load.1 ... load.COUNT
 * arrived once and in order, and no event was reported as lost.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idtree.h>

static void die (const char *what, const char *why)
{
    fprintf (stderr, "pressure: %s: %s\n", what, why);
    exit (2);
}

struct requester {
    idt_reactor_t *reactor;
    int count, answered, failed;
};

static void answer_cb (idt_future_t *f, void *arg)
{
    struct requester *a = arg;
    int errnum = idt_future_errnum (f);

    a->answered++;
    if (errnum != 0 && a->failed++ == 0)
        fprintf (stderr, "%s: %s\n", strerror (errnum), idt_future_error (f));
    idt_future_destroy (f);
    if (a->answered == a->count)
        idt_reactor_stop (a->reactor);
}

static int ask (idt_t *h, uint32_t rank, int count, int size)
{
    struct requester a = { .reactor = idt_get_reactor (h), .count = count };
    char *pad = calloc (1, size + 1);

    if (!pad)
        die ("ask", strerror (errno));
    memset (pad, 'x', size);
    for (int i = 0; i < count;) {
        idt_future_t *f = idt_rpc_pack (h, "broker.stats-get", rank, 0, "{s:s}", "pad", pad);

        if (f && idt_future_then (f, -1., answer_cb, &a) == 0)
            i++;
        else if (f || errno != ENOBUFS || idt_reactor_run (a.reactor, IDT_REACTOR_ONCE) < 0)
            die ("ask", strerror (errno));
    }
    free (pad);
    if (a.answered < count && idt_reactor_run (a.reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("ask", strerror (errno));
    printf ("answered %d failed %d\n", a.answered, a.failed);
    return a.failed > 0;
}

static int publish (idt_t *h, int count)
{
    for (int i = 1; i <= count; i++) {
        idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
        char topic[32];

        snprintf (topic, sizeof (topic), "load.%d", i);
        if (!msg || idt_msg_set_topic (msg, topic) < 0 || idt_send (h, msg) < 0)
            die ("publish", strerror (errno));
        idt_msg_unref (msg);
    }
    if (idt_flush (h) < 0)
        die ("publish", strerror (errno));
    return 0;
}

struct watcher {
    idt_reactor_t *reactor;
    int count, came, lost;
    bool wrong;
};

static void load_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct watcher *w = arg;
    int n = atoi (idt_msg_topic (msg) + strlen ("load."));

    if (n != ++w->came)
        w->wrong = true;
    if (n >= w->count)
        idt_reactor_stop (w->reactor);
}

static void lost_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    ((struct watcher *)arg)->lost++;
    fprintf (stderr, "event.lost %s\n", idt_msg_string (msg));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "load.*", load_cb, 0 },
    { IDT_MSGTYPE_EVENT, "event.lost", lost_cb, 0 },
    IDT_HANDLERS_END,
};

static int watch (idt_t *h, int count)
{
    struct watcher w = { .reactor = idt_get_reactor (h), .count = count };
    idt_future_t *f = idt_event_subscribe (h, "load.");

    if (!f || idt_rpc_get (f, NULL) < 0 || idt_handlers_add (h, handlers, &w) < 0)
        die ("watch", strerror (errno));
    idt_future_destroy (f);
    puts ("ready");
    fflush (stdout);
    if (idt_reactor_run (w.reactor, IDT_REACTOR_DEFAULT) < 0)
        die ("watch", strerror (errno));
    idt_handlers_remove (h, handlers);
    printf ("came %d lost %d%s\n", w.came, w.lost, w.wrong ? " out of order" : "");
    return w.wrong || w.lost > 0 || w.came != count;
}

static void connection_lost (idt_t *h, int errnum, void *arg)
{
    die ("connection", strerror (errnum));
}

int main (int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";
    idt_error_t error = { "ask URI RANK COUNT SIZE, publish URI COUNT, or watch URI COUNT" };
    idt_t *h = argc > 3 ? idt_open (argv[2], &error) : NULL;
    int rc = 2;

    if (!h)
        die ("usage or connection", error.text);
    idt_set_lost (h, connection_lost, NULL);
    if (strcmp (what, "ask") == 0 && argc == 6)
        rc = ask (h, atoi (argv[3]), atoi (argv[4]), atoi (argv[5]));
    else if (strcmp (what, "publish") == 0)
        rc = publish (h, atoi (argv[3]));
    else if (strcmp (what, "watch") == 0)
        rc = watch (h, atoi (argv[3]));
    idt_close (h);
    return rc;
}
