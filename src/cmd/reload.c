/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reload.c - idtree reload: brokers read their configuration files again */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/guard.h"
#include "cmd/base/out.h"
#include "cmd/base/ranks.h"

struct reload_options {
    uint32_t rank;
    bool all;
};

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

static void print (const struct cmd *cmd, uint32_t rank, json_t *answer)
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
    bool failed;
};

/* A broker that refuses or does not answer does not keep the others from reading their files. */
static void take_answer (uint32_t rank, idt_future_t *f, void *arg)
{
    struct reloading *r = arg;
    json_t *answer;

    if (f && idt_rpc_get_unpack (f, "o", &answer) == 0) {
        print (r->cmd, rank, answer);
        return;
    }
    cmd_warn (r->cmd, "rank %u: %s", rank, f ? idt_future_error (f) : strerror (ETIMEDOUT));
    r->failed = true;
}

static uint32_t get_own_rank (struct cmd *cmd)
{
    struct guard guard;
    uint32_t rank;

    guard_begin (&guard, cmd);
    if (idt_get_rank (cmd->h, &rank) < 0)
        cmd_die (cmd, "rank: %s", strerror (errno));
    guard_end (&guard);
    return rank;
}

static int run (struct cmd *cmd)
{
    struct reload_options o = { .rank = IDT_NODEID_ANY };
    struct reloading r = { .cmd = cmd };

    cmd_options (cmd, &o);
    if (o.all && o.rank != IDT_NODEID_ANY)
        cmd_usage (cmd, "give --all or --rank, not both");
    cmd_connect_own (cmd);
    cmd_connect_for (cmd, o.rank);
    if (o.all) {
        struct ranks all = ranks_read (cmd, "all");

        ranks_ask (cmd, &all, "config.reload", NULL, take_answer, &r);
        ranks_fini (&all);
    }
    else {
        uint32_t rank = o.rank == IDT_NODEID_ANY ? get_own_rank (cmd) : o.rank;

        ranks_ask (cmd, &(struct ranks){ &rank, 1 }, "config.reload", NULL, take_answer, &r);
    }
    return r.failed ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option options[] = {
    { 'r', "rank", "RANK", "that broker (default: the connected one)", cmd_take_rank,
      offsetof (struct reload_options, rank) },
    { CMD_LETTERS (0, 'a'), "all", NULL, "all brokers of the instance", cmd_take_flag,
      offsetof (struct reload_options, all) },
    CMD_OPTIONS_END,
};

const struct command reload_command = {
    .name = "reload",
    .flags = CMD_CONNECTS,
    .summary = "Have brokers read their configuration files again, as SIGHUP does",
    .details = "Prints which settings have changed, and which of them need a restart of the broker.",
    .example = "idtree reload --all",
    .json = "one object a line, for each broker",
    .options = options,
    .run = run,
};
