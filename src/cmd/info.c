/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* info.c - idtree info: the instance and the broker one is connected to, on one screen */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"

#define LABEL_WIDTH 21
#define DOCUMENTS_MS 1000 /* rank 0 may be far: what this rank knows does not wait for it */

static const struct {
    const char *label;
    const char *attr;
} facts[] = {
    { "version", "version" },
    { "uri", "local-uri" },
    { "size", "size" },
    { "rank", "rank" },
    { "host", "hostname" },
    { "boot method", "broker.boot-method" },
    { "topology", "tbon.topo" },
    { "tree depth", "tbon.maxlevel" },
    { "level", "tbon.level" },
    { "statedir", "statedir" },
    { "started", "broker.starttime" },
};

/* Rank 0 keeps the documents; where it has no compressor there are none. */
static void add_documents (json_t *all, idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "compressor.stats-get", "{}", 0, 0);
    const char *store;

    if (f && idt_future_wait (f, DOCUMENTS_MS) == 0
        && idt_rpc_get_unpack (f, "{s:{s:s}}", "root", "store", &store) == 0)
        json_object_set_new (all, "document store", json_string (store));
    idt_future_destroy (f);
}

/* What can be had of attributes, of the state machine and of the services, in one object. */
static json_t *collect_new (idt_t *h)
{
    json_t *all = json_object (), *fluid;
    idt_future_t *f;
    const char *state;

    for (size_t i = 0; i < sizeof (facts) / sizeof (facts[0]); i++) {
        const char *value = idt_attr_get (h, facts[i].attr);

        if (value)
            json_object_set_new (all, facts[i].label, json_string (value));
    }
    f = idt_rpc (h, "state-machine.get", "{}", IDT_NODEID_ANY, 0);
    if (f && idt_rpc_get_unpack (f, "{s:s}", "state", &state) == 0)
        json_object_set_new (all, "state", json_string (state));
    idt_future_destroy (f);
    f = idt_rpc (h, "fluid.info", "{}", IDT_NODEID_ANY, 0);
    if (f && idt_rpc_get_unpack (f, "o", &fluid) == 0)
        json_object_set (all, "fluid", fluid);
    idt_future_destroy (f);
    add_documents (all, h);
    return all;
}

static void print_text (json_t *all)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION (6);
    json_t *fluid = json_incref (json_object_get (all, "fluid"));

    json_object_del (all, "fluid");
    ask_print_members (all, "", LABEL_WIDTH, flags);
    ask_print_members (fluid, "fluid ", LABEL_WIDTH, flags);
    json_decref (fluid);
}

static int run (struct cmd *cmd)
{
    bool json = false;

    cmd_options (cmd, &json);
    json_t *all = collect_new (cmd_connect (cmd));
    if (json)
        ask_print (cmd, all);
    else
        print_text (all);
    json_decref (all);
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 0, "json", NULL, "one object", cmd_take_flag, 0 },
    CMD_OPTIONS_END,
};

const struct command info_command = {
    .name = "info",
    .flags = CMD_CONNECTS,
    .summary = "Show the instance, its broker and where its ids come from",
    .example = "idtree info",
    .options = options,
    .run = run,
};
