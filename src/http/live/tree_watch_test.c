/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* tree_watch_test.c - the requests that a broker gets while there are readers */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "http/live/tree_watch.h"
#include "test/tap.h"
#include "test/test_server.h"

static atomic_int follows;

/* An instance of one rank without log lines. */
static bool plug (void *arg, const idt_msg_t *request, struct test_reply *reply)
{
    const char *topic = idt_msg_topic (request);

    if (strcmp (topic, "log.dmesg") == 0) {
        follows++;
        reply->silent = true;
    }
    else
        reply->text = strdup (strcmp (topic, "overlay.topology") == 0 ? "{\"rank\":0,\"size\":1,\"children\":[]}"
                                                                      : "{}");
    return true;
}

static void looked_cb (void *arg)
{
    idt_reactor_stop (arg);
}

static void second_cb (void *arg)
{
}

static void logged_cb (void *arg, const struct logline *l)
{
}

int main (void)
{
    static const struct tree_watch_ops ops = { looked_cb, second_cb, logged_cb };
    struct test_server *s = test_server_create (0);
    bool all = true;

    test_server_plug (s, plug, NULL);
    idt_t *h = idt_open (test_server_uri (s), NULL);
    struct live_ranks *ranks = ranks_create ();
    idt_reactor_t *r = idt_get_reactor (h);
    struct tree_watch *w = tree_watch_create (h, ranks, &ops, r);

    for (int i = 0; i < 5; i++) {
        tree_watch_begin (w);
        all = all && idt_reactor_run (r, IDT_REACTOR_DEFAULT) == 0 && tree_watch_news (w)->looks >= (uint64_t)i + 1
              && !tree_watch_news (w)->error[0];
        tree_watch_end (w);
    }
    ok (all && ranks_size (ranks) == 1,
        "an instance is polled while there are readers, also after a pause without readers");
    ok (follows == 1, "rank 0 has a single follower of its log, however often polling starts: %d", (int)follows);

    tree_watch_destroy (w);
    ranks_destroy (ranks);
    idt_close (h);
    test_server_destroy (s);
    return done_testing ();
}
