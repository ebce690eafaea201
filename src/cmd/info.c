/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* info.c - idtree info: the instance and the connected broker, on one screen */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"

#define LABEL_WIDTH 21
#define DOCUMENTS_MS 1000 /* ms; rank 0 may be far: do not delay what this rank knows */

struct info_options {
    uint32_t rank;
};

static const struct {
    const char *label;
    const char *attr; /* NULL: not from an attribute */
    const char *key;  /* key in JSON; NULL: the label */
    bool number;      /* a number in JSON */
} facts[] = {
    { "version", "version", NULL, false },
    { "uri", "local-uri", NULL, false },
    { "size", "size", NULL, true },
    { "rank", "rank", NULL, true },
    { "host", "hostname", NULL, false },
    { "boot method", "broker.boot-method", "boot_method", false },
    { "topology", "tbon.topo", NULL, false },
    { "tree depth", "tbon.maxlevel", "tree_depth", true },
    { "level", "tbon.level", NULL, true },
    { "statedir", "statedir", NULL, false },
    { "started", "broker.starttime", NULL, true },
    { "document store", NULL, "document_store", false },
};
#define FACTS (sizeof (facts) / sizeof (facts[0]))

/* Rank 0 keeps the documents; an instance without the compressor module has none. */
static void add_documents (json_t *all, struct cmd *cmd)
{
    idt_future_t *f = idt_rpc (cmd->h, "compressor.stats-get", "{}", 0, 0);
    const char *store;

    if (f && idt_future_wait (f, DOCUMENTS_MS) == 0
        && idt_rpc_get_unpack (f, "{s:{s:s}}", "root", "store", &store) == 0)
        json_object_set_new (all, "document store", json_string (store));
    idt_future_destroy (f);
}

/* NULL: not known there. */
static json_t *get_new (struct cmd *cmd, uint32_t rank, const char *topic, json_t *in)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, topic, rank, in), topic);
    json_t *o = NULL;

    if (idt_rpc_get_unpack (f, "o", &o) == 0)
        json_incref (o);
    idt_future_destroy (f);
    return o;
}

static void add_attributes (json_t *all, struct cmd *cmd, uint32_t rank)
{
    for (size_t i = 0; i < FACTS && facts[i].attr; i++) {
        json_t *o = get_new (cmd, rank, "attr.get", json_pack ("{s:s}", "name", facts[i].attr));

        if (o)
            json_object_set (all, facts[i].label, json_object_get (o, "value"));
        json_decref (o);
    }
}

/* Add the member 'name' of the answer to 'topic'. */
static void add_member (json_t *all, const char *label, struct cmd *cmd, uint32_t rank, const char *topic,
                        const char *name)
{
    json_t *o = get_new (cmd, rank, topic, json_object ());

    if (o)
        json_object_set (all, label, json_object_get (o, name));
    json_decref (o);
}

/* Collect attributes, the state and answers of services in one object.  'rank' knows the state of its subtree; no other
 * rank is asked, so missing ranks do not delay the answer.
 */
static json_t *collect_new (struct cmd *cmd, uint32_t rank)
{
    json_t *all = json_object (), *fluid;

    add_attributes (all, cmd, rank);
    add_member (all, "state", cmd, rank, "state-machine.get", "state");
    add_member (all, "subtree", cmd, rank, "overlay.health", "status");
    if ((fluid = get_new (cmd, rank, "fluid.info", json_object ())))
        json_object_set_new (all, "fluid", fluid);
    add_documents (all, cmd);
    return all;
}

/* Replace the two times of a lease by a text. */
static void show_lease (json_t *fluid)
{
    const char *from, *to;

    if (json_unpack (json_object_get (fluid, "lease"), "[ss]", &from, &to) == 0)
        json_object_set_new (fluid, "lease", json_sprintf ("%s to %s ms after the epoch", from, to));
}

static void print_text (json_t *all)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION (6);
    json_t *fluid = json_incref (json_object_get (all, "fluid"));

    show_lease (fluid);
    json_object_del (all, "fluid");
    ask_print_members (all, "", LABEL_WIDTH, flags);
    ask_print_members (fluid, "fluid ", LABEL_WIDTH, flags);
    json_decref (fluid);
}

/* The value of an attribute, which is text, as a number: a new reference. */
static json_t *number_new (const json_t *text)
{
    const char *s = json_string_value (text);

    return s && strchr (s, '.') ? json_real (strtod (s, NULL)) : s ? json_integer (strtoll (s, NULL, 10)) : NULL;
}

static void print_json (const struct cmd *cmd, json_t *all)
{
    for (size_t i = 0; i < FACTS; i++) {
        json_t *value = json_incref (json_object_get (all, facts[i].label));

        json_object_del (all, facts[i].key ? facts[i].label : "");
        if (value)
            json_object_set_new (all, facts[i].key ? facts[i].key : facts[i].label,
                                 facts[i].number ? number_new (value) : json_incref (value));
        json_decref (value);
    }
    ask_print (cmd, all);
}

static int run (struct cmd *cmd)
{
    struct info_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    cmd_connect_for (cmd, o.rank);
    json_t *all = collect_new (cmd, o.rank);
    if (!json_object_get (all, "rank")) /* no answer: find out why, and end */
        json_decref (ask_new (cmd, "attr.get", o.rank, json_pack ("{s:s}", "name", "rank"), "attributes"));
    if (cmd->json)
        print_json (cmd, all);
    else
        print_text (all);
    json_decref (all);
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 'r', "rank", "R", "of rank R (default: the broker of the URI)", cmd_take_rank,
      offsetof (struct info_options, rank) },
    CMD_OPTIONS_END,
};

const struct command info_command = {
    .name = "info",
    .flags = CMD_CONNECTS,
    .summary = "Show the instance, a broker, the state of its subtree, and where its ids come from",
    .example = "idtree info",
    .json = "one object",
    .options = options,
    .run = run,
};
