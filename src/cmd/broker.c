/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker.c - idtree broker, reload, shutdown: run a broker, have brokers read their files again, stop the instance */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <idtree/reactor.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/base/self.h"

static int run_broker (struct cmd *cmd)
{
    struct self self;

    self_find (cmd, &self);
    cmd->argv[0] = "idtree-broker";
    execv (self.broker, cmd->argv);
    cmd_die (cmd, "cannot run %s: %s", self.broker, strerror (errno));
}

const struct command broker_command = {
    .name = "broker",
    .flags = CMD_VERBATIM,
    .summary = "Run one broker, as idtree-broker does",
    .run = run_broker,
};

/* --- reload ----------------------------------------------------------------------------------- */

static void print_names (const json_t *o, const char *key, const char *text)
{
    const json_t *names = json_object_get (o, key);
    const json_t *name;
    size_t i;

    if (json_array_size (names) > 0)
        out_print ("%s", text);
    json_array_foreach (names, i, name)
        out_print (" %s", json_string_value (name));
}

static void print_reloaded (const struct cmd *cmd, uint32_t rank, json_t *answer)
{
    if (cmd->json) {
        json_object_set_new (answer, "rank", json_integer (rank));
        ask_print (cmd, answer);
        return;
    }
    out_print ("%u:", rank);
    print_names (answer, "changed", " changed");
    print_names (answer, "later", " after-a-restart");
    out_print ("%s\n", json_array_size (json_object_get (answer, "changed"))
                                   + json_array_size (json_object_get (answer, "later"))
                               > 0
                           ? ""
                           : " nothing new");
}

struct reloading {
    struct cmd *cmd;
    uint32_t rank; /* IDT_NODEID_ANY: not given */
    bool all;
    bool failed;
};

/* Called for each rank.  If a broker refuses or does not answer, the other brokers read their files nevertheless. */
static void take_answer (uint32_t rank, idt_future_t *f, void *arg)
{
    struct reloading *r = arg;
    json_t *answer;

    if (f && idt_rpc_get_unpack (f, "o", &answer) == 0) {
        print_reloaded (r->cmd, rank, answer);
        return;
    }
    cmd_warn (r->cmd, "rank %u: %s", rank, f ? idt_future_error (f) : strerror (ETIMEDOUT));
    r->failed = true;
}

static int run_reload (struct cmd *cmd)
{
    struct reloading r = { .cmd = cmd, .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &r);
    if (r.all && r.rank != IDT_NODEID_ANY)
        cmd_usage (cmd, "give --all or --rank, not both");
    ask_connect_own (cmd);
    ask_connect_for (cmd, r.rank);
    if (r.all) {
        struct ranks all = ranks_read (cmd, "all");

        ranks_ask (cmd, &all, "config.reload", NULL, take_answer, &r);
        ranks_fini (&all);
    }
    else {
        uint32_t rank = r.rank == IDT_NODEID_ANY ? ask_own_rank (cmd) : r.rank;

        ranks_ask (cmd, &(struct ranks){ &rank, 1 }, "config.reload", NULL, take_answer, &r);
    }
    return r.failed ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option reload_options[] = {
    { 'r', "rank", "RANK", "that broker (default: the connected one)", cmd_take_rank,
      offsetof (struct reloading, rank) },
    { CMD_LETTERS (0, 'a'), "all", NULL, "all brokers of the instance", cmd_take_flag,
      offsetof (struct reloading, all) },
    CMD_OPTIONS_END,
};

const struct command reload_command = {
    .name = "reload",
    .flags = CMD_CONNECTS,
    .summary = "Have brokers read their configuration files again, as SIGHUP does",
    .details = "Prints which settings have changed, and which of them need a restart of the broker.",
    .example = "idtree reload --all",
    .json = "one object a line, for each broker",
    .options = reload_options,
    .run = run_reload,
};

/* --- shutdown ---------------------------------------------------------------------------------
 *
 * The command is done when the broker has closed the connection.  A large instance may take long to stop.  So the
 * command pings the broker repeatedly, and fails if the broker does not answer.
 *
 * The broker may end at any time, because another user may have stopped the instance already.  So the command never
 * reconnects.  If the connection ends before rank 0 has answered, the broker's socket shows what happened, because a
 * broker that ends in order removes its socket before it closes connections.
 */

#define ASK_AGAIN_MS 1000

struct stop {
    struct cmd *cmd;
    bool answered; /* rank 0 has answered that it stops the instance */
    bool lost;
    idt_error_t error;    /* why rank 0 could not be reached */
    idt_watcher_t *timer; /* begins the next ping */
};

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    struct stop *s = arg;

    s->lost = true;
    idt_reactor_stop (idt_get_reactor (h));
}

/* Rank 0 could not be reached.  If the broker's state is join or run, the broker has no parent, so the command fails.
 * In other states the broker is about to end.
 */
static void state_cb (idt_future_t *f, void *arg)
{
    struct stop *s = arg;
    const char *state;

    if (idt_rpc_get_unpack (f, "{s:s}", "state", &state) == 0 && (!strcmp (state, "join") || !strcmp (state, "run")))
        cmd_die (s->cmd, "%s", s->error.text);
    idt_future_destroy (f);
}

static void ask_state (struct stop *s)
{
    idt_future_t *f = idt_rpc (s->cmd->h, "state-machine.get", "{}", IDT_NODEID_ANY, 0);

    if (f && idt_future_then (f, s->cmd->timeout_ms, state_cb, s) < 0)
        cmd_die (s->cmd, "%s", strerror (errno));
}

static void answer_cb (idt_future_t *f, void *arg)
{
    struct stop *s = arg;
    int errnum = idt_future_errnum (f);

    if (errnum == ETIMEDOUT)
        ask_blame (s->cmd, "asking rank 0 to stop the instance");
    if (errnum && errnum != ECONNRESET && errnum != EPIPE && errnum != EHOSTUNREACH)
        cmd_die (s->cmd, "%s", idt_future_error (f));
    if (errnum == EHOSTUNREACH) {
        snprintf (s->error.text, sizeof (s->error.text), "%s", idt_future_error (f));
        ask_state (s);
    }
    s->answered = errnum == 0;
    idt_future_destroy (f);
}

/* The ping was answered, so the broker still runs.  An error counts as an answer, because a broker that ends may no
 * longer serve pings.
 */
static void alive_cb (idt_future_t *f, void *arg)
{
    struct stop *s = arg;

    if (idt_future_errnum (f) == ETIMEDOUT)
        ask_blame (s->cmd, "waiting for the instance to stop");
    idt_future_destroy (f);
    if (!s->lost)
        idt_watcher_start (s->timer);
}

static void ask_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct stop *s = arg;
    idt_future_t *f = idt_rpc (s->cmd->h, "broker.ping", "{}", IDT_NODEID_ANY, 0);

    idt_watcher_stop (w);
    idt_timer_watcher_reset (w, ASK_AGAIN_MS, 0);
    if (!f && !s->lost)
        idt_watcher_start (w);
    else if (f && idt_future_then (f, s->cmd->timeout_ms, alive_cb, s) < 0)
        cmd_die (s->cmd, "%s", strerror (errno));
}

static void await_end (struct stop *s, idt_reactor_t *r)
{
    if (!r || !(s->timer = idt_timer_watcher_create (r, 0, 0, ask_cb, s)))
        cmd_die (s->cmd, "%s", strerror (errno));
    idt_watcher_start (s->timer);
    while (!s->lost)
        if (idt_reactor_run (r, IDT_REACTOR_DEFAULT) < 0)
            cmd_die (s->cmd, "%s", strerror (errno));
    idt_watcher_destroy (s->timer);
}

/* Whether the broker that has closed the connection ended in order: then its socket no longer exists. */
static bool is_gone (const struct cmd *cmd)
{
    idt_t *h = idt_open_ex (cmd->uri,
                            &(struct idt_open_options){ .flags = IDT_O_NORECONNECT, .timeout_ms = cmd->timeout_ms },
                            NULL);
    int errnum = errno;

    idt_close (h);
    return !h && (errnum == ENOENT || errnum == EHOSTUNREACH || errnum == EHOSTDOWN);
}

/* The broker ended before rank 0 answered that it stops the instance.  Returns CMD_OK if the broker ended in order. */
static int ended_first (const struct cmd *cmd)
{
    if (!is_gone (cmd))
        cmd_die (cmd,
                 "the broker at %s closed the connection before rank 0 answered that it stops the instance: it "
                 "crashed, or refuses connections; idtree overlay status shows what runs",
                 ask_uri (cmd));
    cmd_warn (cmd, "another user or program stopped the broker at %s meanwhile", ask_uri (cmd));
    return CMD_OK;
}

/* Send the request to stop the instance.  Returns -1 if the connection is lost. */
static int send_stop (struct stop *s)
{
    ask_note (s->cmd, "shutdown.start", 0);
    idt_future_t *f = idt_rpc (s->cmd->h, "shutdown.start", "{}", 0, 0);
    if (!f && (errno == ECONNRESET || errno == EPIPE))
        return -1;
    if (!f || idt_future_then (f, s->cmd->timeout_ms, answer_cb, s) < 0)
        cmd_die (s->cmd, "cannot send: %s", strerror (errno));
    return 0;
}

static int run_shutdown (struct cmd *cmd)
{
    struct stop s = { .cmd = cmd };

    cmd_options (cmd, NULL);
    cmd->open_flags = IDT_O_NORECONNECT;
    if (!ask_try_connect_own (cmd))
        return ended_first (cmd);
    idt_set_lost (cmd->h, lost_cb, &s);
    if (send_stop (&s) < 0)
        return ended_first (cmd);
    await_end (&s, idt_get_reactor (cmd->h));
    return s.answered ? CMD_OK : ended_first (cmd);
}

const struct command shutdown_command = {
    .name = "shutdown",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Stop the instance, leaves first, and wait until the broker is gone",
    .example = "idtree shutdown",
    .run = run_shutdown,
};
