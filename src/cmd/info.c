/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* info.c - idtree info: the instance and the broker one is connected to, on one screen */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"

#define LABEL "%-18s "

#define DOCUMENTS_MS 1000 /* rank 0 may be far: what this rank knows does not wait for it */

enum { OPT_JSON = CMD_LONG };

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
static json_t *collect_new (struct cmd *cmd, idt_t *h)
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

static void print_value (const char *label, const json_t *value)
{
    if (json_is_string (value))
        printf (LABEL "%s\n", label, json_string_value (value));
    else {
        char *s = json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION (6));

        printf (LABEL "%s\n", label, s ? s : "?");
        free (s);
    }
}

static void print_text (json_t *all)
{
    const char *key;
    json_t *value, *fluid = json_object_get (all, "fluid");
    char label[64];

    json_object_foreach (all, key, value) {
        if (value != fluid)
            print_value (key, value);
    }
    json_object_foreach (fluid, key, value) {
        snprintf (label, sizeof (label), "fluid %s", key);
        print_value (label, value);
    }
}

static int run (struct cmd *cmd)
{
    bool json = false;

    while (cmd_option (cmd, NULL) != -1)
        json = true;
    idt_t *h = cmd_connect (cmd);
    json_t *all = collect_new (cmd, h);
    if (json) {
        json_dumpf (all, stdout, JSON_COMPACT);
        putchar ('\n');
    }
    else
        print_text (all);
    json_decref (all);
    idt_close (h);
    return cmd_flush (cmd);
}

static const struct cmd_option options[] = {
    { OPT_JSON, "json", NULL, "one object" },
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
