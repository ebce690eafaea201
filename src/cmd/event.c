/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* event.c - idtree event pub, sub */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include <idtree/reactor.h>
#include <idtree/rpc.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/out.h"

/* --- pub -------------------------------------------------------------------------------------- */

static void check_payload (struct cmd *cmd, const char *s)
{
    json_error_t error;
    json_t *o = json_loads (s, 0, &error);

    if (!o)
        cmd_usage (cmd, "the payload is not JSON: %s", error.text);
    if (!json_is_object (o))
        cmd_usage (cmd, "the payload is not a JSON object");
    json_decref (o);
}

struct pub_options {
    bool private;
    bool tell;
};

static int run_pub (struct cmd *cmd)
{
    struct pub_options o = { 0 };
    json_int_t seq;

    cmd_options (cmd, &o);
    const char *topic = cmd->argv[0], *payload = cmd->argc > 1 ? cmd->argv[1] : NULL;
    if (!*topic)
        cmd_usage (cmd, "the TOPIC is empty");
    if (payload)
        check_payload (cmd, payload);
    int flags = o.private ? IDT_MSGFLAG_PRIVATE : 0;
    ask_note (cmd, "event.publish", 0);
    idt_future_t *f = ask_wait (cmd, idt_event_publish (cmd_connect (cmd), topic, flags, payload), topic);
    if (idt_rpc_get_unpack (f, "{s:I}", "seq", &seq) < 0)
        cmd_die (cmd, "%s: the answer has no seq", topic);
    if (cmd->json)
        out_print ("{\"seq\":%" JSON_INTEGER_FORMAT "}\n", seq);
    else if (o.tell)
        out_print ("seq=%" JSON_INTEGER_FORMAT "\n", seq);
    idt_future_destroy (f);
    return CMD_OK;
}

/* --- sub -------------------------------------------------------------------------------------- */

struct sub {
    struct cmd *cmd;
    uint64_t left; /* events to print; 0: no limit */
};

/* A payload that is not JSON is printed as a string, or left out if it is not UTF-8. */
static void print_json (const struct cmd *cmd, const char *topic, const char *payload)
{
    json_t *value = payload ? json_loads (payload, JSON_DECODE_ANY, NULL) : NULL;
    json_t *o = json_pack ("{s:s s:o*}", "topic", topic, "payload",
                           value     ? value
                           : payload ? json_string (payload)
                                     : NULL);

    ask_print (cmd, o);
    json_decref (o);
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct sub *sub = arg;
    const char *payload = idt_msg_string (msg);

    if (sub->cmd->json)
        print_json (sub->cmd, idt_msg_topic (msg), payload);
    else
        out_print ("%s\t%s\n", idt_msg_topic (msg), payload ? payload : "");
    cmd_flush (sub->cmd);
    if (sub->left > 0 && --sub->left == 0)
        idt_reactor_stop (idt_get_reactor (h));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    IDT_HANDLERS_END,
};

static int run_sub (struct cmd *cmd)
{
    struct sub sub = { .cmd = cmd };

    cmd_options (cmd, &sub);
    idt_t *h = cmd_connect (cmd);
    if (idt_handlers_add (h, handlers, &sub) < 0)
        cmd_die (cmd, "%s", strerror (errno));
    ask_note (cmd, "event.subscribe", IDT_NODEID_ANY);
    for (int i = 0; i < cmd->argc || i == 0; i++) {
        const char *prefix = cmd->argc > 0 ? cmd->argv[i] : "";

        idt_future_destroy (ask_wait (cmd, idt_event_subscribe (h, prefix), "cannot subscribe"));
    }
    if (idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT) < 0)
        cmd_die (cmd, "connection lost: %s", strerror (errno));
    return CMD_OK;
}

static const struct cmd_option pub_options[] = {
    { CMD_LETTERS (0, 'p'), "private", NULL, "only for the owner and the sender", cmd_take_flag,
      offsetof (struct pub_options, private) },
    { CMD_LETTERS (0, 's'), "sequence", NULL, "print its sequence number", cmd_take_flag,
      offsetof (struct pub_options, tell) },
    CMD_OPTIONS_END,
};

static const struct cmd_option sub_options[] = {
    { CMD_LETTERS ('n', 'c'), "count", "N", "end after N events (default: until interrupted)", cmd_take_count,
      offsetof (struct sub, left) },
    CMD_OPTIONS_END,
};

const struct command event_pub_command = {
    .name = "event pub",
    .operands = "TOPIC [JSON]",
    .flags = CMD_CONNECTS,
    .summary = "Publish an event",
    .example = "idtree event pub news.today '{\"a\":1}'",
    .json = "one object",
    .options = pub_options,
    .run = run_pub,
};

const struct command event_sub_command = {
    .name = "event sub",
    .operands = "[PREFIX]...",
    .flags = CMD_CONNECTS,
    .summary = "Print events whose topic begins with a prefix (default: all)",
    .example = "idtree event sub -n 1 news.",
    .json = "one object a line",
    .options = sub_options,
    .run = run_sub,
};
