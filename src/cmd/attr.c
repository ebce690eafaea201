/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* attr.c - idtree getattr, setattr, lsattr: attributes of brokers */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/out.h"

struct attr_options {
    uint32_t rank;
    bool values;
};

static struct attr_options take_options (struct cmd *cmd)
{
    struct attr_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    cmd_connect_for (cmd, o.rank);
    return o;
}

/* 'value' NULL: not requested, or the attribute has no value. */
static void print_json (const struct cmd *cmd, const char *name, const char *value)
{
    json_t *o = json_pack ("{s:s s:s*}", "name", name, "value", value);

    ask_print (cmd, o);
    json_decref (o);
}

/* For an unknown attribute brokers answer only ENOENT. */
static int run_get (struct cmd *cmd)
{
    struct attr_options o = take_options (cmd);
    const char *name = cmd->argv[0], *value;
    idt_future_t *f = ask_send (cmd, "attr.get", o.rank, json_pack ("{s:s}", "name", name));

    if (idt_future_errnum (ask_ready (cmd, f, name)) == ENOENT)
        cmd_die (cmd, "%s: unknown attribute (idtree lsattr lists them)", name);
    if (idt_rpc_get_unpack (ask_wait (cmd, f, name), "{s:s}", "value", &value) < 0)
        cmd_die (cmd, "%s: the answer has no value", name);
    if (cmd->json)
        print_json (cmd, name, value);
    else
        out_print ("%s\n", value);
    idt_future_destroy (f);
    return CMD_OK;
}

/* Brokers, also Flux's, answer this for an attribute that cannot be set. */
#define FIXED "attribute may not be updated"

static void die_refused (const struct cmd *cmd, const char *name, int errnum, const char *why)
    __attribute__ ((noreturn));

static void die_refused (const struct cmd *cmd, const char *name, int errnum, const char *why)
{
    if (errnum == ENOENT)
        cmd_die (cmd, "%s: unknown attribute (idtree lsattr lists them)", name);
    if (strcmp (why, FIXED) == 0)
        cmd_die (cmd,
                 "%s: " FIXED " while the broker runs: if the broker has such an option, set it at the start "
                 "with -o %s=VALUE",
                 name, name);
    if (strncmp (why, "attribute ", strlen ("attribute ")) == 0) /* the name is in the message already */
        cmd_die (cmd, "%s", why);
    cmd_die (cmd, "%s: %s", name, why);
}

static int run_set (struct cmd *cmd)
{
    struct attr_options o = take_options (cmd);
    const char *name = cmd->argv[0];

    cmd_connect_own (cmd);
    idt_future_t *f = ask_ready (
        cmd, ask_send (cmd, "attr.set", o.rank, json_pack ("{s:s s:s}", "name", name, "value", cmd->argv[1])), name);
    if (idt_future_errnum (f))
        die_refused (cmd, name, idt_future_errnum (f), idt_future_error (f));
    idt_future_destroy (f);
    return CMD_OK;
}

static int compare (const void *a, const void *b)
{
    return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Between list and get an attribute may be removed, and some have no value. */
static void print_value (struct cmd *cmd, uint32_t rank, const char *name)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, "attr.get", rank, json_pack ("{s:s}", "name", name)), name);
    const char *value;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &value) < 0)
        value = NULL;
    if (cmd->json)
        print_json (cmd, name, value);
    else
        out_print ("%-28s %s\n", name, value ? value : "-");
    idt_future_destroy (f);
}

static int run_ls (struct cmd *cmd)
{
    struct attr_options o = take_options (cmd);
    json_t *answer = ask_new (cmd, "attr.list", o.rank, NULL, "attributes");
    json_t *names = json_object_get (answer, "names");
    size_t n = json_array_size (names);
    const char **sorted = calloc (n + 1, sizeof (sorted[0]));

    if (!sorted)
        cmd_die (cmd, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (!(sorted[i] = json_string_value (json_array_get (names, i))))
            cmd_die (cmd, "the answer contains a name that is not a string");
    qsort (sorted, n, sizeof (sorted[0]), compare);
    for (size_t i = 0; i < n; i++) {
        if (o.values)
            print_value (cmd, o.rank, sorted[i]);
        else if (cmd->json)
            print_json (cmd, sorted[i], NULL);
        else
            out_print ("%s\n", sorted[i]);
    }
    free (sorted);
    json_decref (answer);
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 'r', "rank", "R", "of rank R (default: the broker of the URI)", cmd_take_rank,
      offsetof (struct attr_options, rank) },
    CMD_OPTIONS_END,
};

static const struct cmd_option ls_options[] = {
    { 'r', "rank", "R", "of rank R (default: the broker of the URI)", cmd_take_rank,
      offsetof (struct attr_options, rank) },
    { 'v', "values", NULL, "print their values, too", cmd_take_flag, offsetof (struct attr_options, values) },
    CMD_OPTIONS_END,
};

const struct command getattr_command = {
    .name = "getattr",
    .operands = "ATTRIBUTE",
    .flags = CMD_CONNECTS,
    .summary = "Show an attribute of a broker",
    .example = "idtree getattr size",
    .json = "one object",
    .options = options,
    .run = run_get,
};

const struct command setattr_command = {
    .name = "setattr",
    .operands = "ATTRIBUTE VALUE",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Set an attribute of a broker",
    .example = "idtree setattr log-stderr-level 7",
    .options = options,
    .run = run_set,
};

const struct command lsattr_command = {
    .name = "lsattr",
    .flags = CMD_CONNECTS,
    .summary = "List the attributes of a broker",
    .example = "idtree lsattr -v",
    .json = "one object a line",
    .options = ls_options,
    .run = run_ls,
};
