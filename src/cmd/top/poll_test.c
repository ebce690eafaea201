/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* poll_test.c - the ranks that a round sends requests to */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <idtree/idtree.h>

#include "cmd/top/poll.h"
#include "test/tap.h"
#include "test/test_server.h"

#define MANY 50 /* more requests than a round of three ranks needs */

static atomic_int asked;

void cmd_die (const struct cmd *cmd, const char *fmt, ...)
{
    bail_out (fmt);
}

/* Answer for three ranks, each of which reports all three as its children. */
static bool plug (void *arg, const idt_msg_t *request, struct test_reply *reply)
{
    const char *topic = idt_msg_topic (request);

    if (strcmp (topic, "overlay.health") != 0)
        reply->text = strdup ("{}");
    else if (++asked > MANY)
        reply->errnum = ELOOP;
    else
        reply->text = strdup ("{\"status\":\"full\",\"children\":[{\"rank\":2,\"status\":\"full\"},"
                              "{\"rank\":1,\"status\":\"full\"},{\"rank\":0,\"status\":\"full\"}]}");
    return true;
}

static void done_cb (void *arg)
{
    idt_reactor_stop (arg);
}

int main (void)
{
    struct test_server *s = test_server_create (0);
    struct top_model board;

    test_server_plug (s, plug, NULL);
    idt_t *h = idt_open (test_server_uri (s), NULL);
    struct cmd cmd = { .h = h };
    struct round round = { .cmd = &cmd, .board = &board, .done = done_cb, .arg = idt_get_reactor (h) };

    top_model_init (&board);
    for (int i = 1; i <= 2; i++) {
        round_begin (&round, 0);
        int rc = idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
        ok (rc == 0 && asked == 3 * i && board.n == 3,
            "a round sends its requests once to each rank, however many ranks report that rank: %d", (int)asked);
    }
    top_model_fini (&board);
    idt_close (h);
    test_server_destroy (s);
    return done_testing ();
}
