/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* reload.c - idtree reload: brokers read their configuration files again */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/guard.h"
#include "libutil/clock.h"

struct reload_options {
    uint32_t rank;
    bool all;
    bool json;
};

static void print_names (const json_t *o, const char *key, const char *text)
{
    const json_t *names = json_object_get (o, key);
    const json_t *name;
    size_t i;

    if (json_array_size (names) > 0)
        printf ("%s", text);
    json_array_foreach (names, i, name)
        printf (" %s", json_string_value (name));
}

static void print (const struct cmd *cmd, uint32_t rank, const struct reload_options *o, json_t *answer)
{
    if (o->json) {
        json_object_set_new (answer, "rank", json_integer (rank));
        ask_print (cmd, answer);
        return;
    }
    printf ("%u:", rank);
    print_names (answer, "changed", " changed");
    print_names (answer, "later", " after-a-restart");
    puts (json_array_size (json_object_get (answer, "changed")) + json_array_size (json_object_get (answer, "later"))
                  > 0
              ? ""
              : " nothing new");
}

/* One that refuses, or does not answer, keeps no other from reading its file. */
static bool take_answer (struct cmd *cmd, uint32_t rank, idt_future_t *f, double left_ms,
                         const struct reload_options *o)
{
    if (f && idt_future_wait (f, left_ms) == 0 && idt_future_errnum (f) == 0) {
        json_t *answer = ask_take_new (cmd, f, "reload");

        print (cmd, rank, o, answer);
        json_decref (answer);
        return true;
    }
    cmd_warn (cmd, "rank %u: %s", rank, f && idt_future_errnum (f) ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
    return false;
}

/* All are asked before the first answer is waited for, and have the same time. */
static bool reload_range (struct cmd *cmd, uint32_t first, uint32_t count, const struct reload_options *o)
{
    idt_future_t **futures = calloc (count, sizeof (futures[0]));
    uint64_t since_ms = clock_ms (CLOCK_MONOTONIC);
    bool good = true;

    if (!futures)
        cmd_die (cmd, "out of memory");
    for (uint32_t i = 0; i < count; i++)
        futures[i] = ask_send (cmd, "config.reload", first + i, json_object ());
    for (uint32_t i = 0; i < count; i++)
        good = take_answer (cmd, first + i, futures[i], ask_left_ms (cmd, since_ms), o) && good;
    free (futures);
    return good;
}

static int run (struct cmd *cmd)
{
    struct reload_options o = { .rank = IDT_NODEID_ANY };
    uint32_t size = 0, own = 0;
    struct guard guard;

    cmd_options (cmd, &o);
    if (o.all && o.rank != IDT_NODEID_ANY)
        cmd_usage (cmd, "--all and --rank: one of them");
    idt_t *h = cmd_connect_own (cmd);
    cmd_connect_for (cmd, o.rank);
    guard_begin (&guard, cmd);
    if (idt_get_rank (h, &own) < 0 || idt_get_size (h, &size) < 0)
        cmd_die (cmd, "rank and size: %s", strerror (errno));
    guard_end (&guard);
    if (o.rank != IDT_NODEID_ANY)
        own = o.rank;
    return reload_range (cmd, o.all ? 0 : own, o.all ? size : 1, &o) ? CMD_OK : CMD_FAILED;
}

static const struct cmd_option options[] = {
    { 'r', "rank", "RANK", "that broker (default: the one connected to)", cmd_take_rank,
      offsetof (struct reload_options, rank) },
    { 'a', "all", NULL, "all brokers of the instance", cmd_take_flag, offsetof (struct reload_options, all) },
    { 0, "json", NULL, "print a JSON object for each", cmd_take_flag, offsetof (struct reload_options, json) },
    CMD_OPTIONS_END,
};

const struct command reload_command = {
    .name = "reload",
    .flags = CMD_CONNECTS,
    .summary = "Have brokers read their configuration files again, as SIGHUP does",
    .details = "Prints what has changed, and what waits for a restart of the broker.\n",
    .example = "idtree reload --all",
    .options = options,
    .run = run,
};
