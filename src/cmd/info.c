/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* info.c - idtree info, getattr, setattr, lsattr, watermark, version: what brokers report of themselves */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"

#define LABEL_WIDTH 21
#define ROOT_MS 1000 /* how long an answer of rank 0 may delay the known values */

struct attr_options {
    uint32_t rank; /* must be first: cmd_rank_options stores at offset 0 */
    bool values;
};

static struct attr_options take_options (struct cmd *cmd)
{
    struct attr_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    ask_connect_for (cmd, o.rank);
    return o;
}

static const struct cmd_option ls_options[] = {
    CMD_RANK_OPTION (offsetof (struct attr_options, rank)),
    { 'v', "values", NULL, "print their values, too", cmd_take_flag, offsetof (struct attr_options, values) },
    CMD_OPTIONS_END,
};

/* --- attributes ------------------------------------------------------------------------------ */

/* Print an attribute as JSON.  'value' is NULL if it was not requested, or if the attribute has none. */
static void print_attr (const struct cmd *cmd, const char *name, const char *value)
{
    ask_print_new (cmd, json_pack ("{s:s s:s*}", "name", name, "value", value));
}

/* If an attribute is unknown, brokers answer ENOENT without a text. */
static int run_get (struct cmd *cmd)
{
    struct attr_options o = take_options (cmd);
    const char *name = cmd->argv[0], *value;
    idt_future_t *f = ask_attr (cmd, o.rank, name);

    if (idt_future_errnum (f) == ENOENT)
        cmd_die (cmd, "%s: unknown attribute (idtree lsattr lists them)", name);
    if (idt_rpc_get_unpack (ask_wait (cmd, f, name), "{s:s}", "value", &value) < 0)
        cmd_die (cmd, "%s: the answer has no value", name);
    if (cmd->json)
        print_attr (cmd, name, value);
    else
        out_print ("%s\n", value);
    idt_future_destroy (f);
    return CMD_OK;
}

/* Brokers of idtree and of Flux answer this text if an attribute cannot be set. */
#define FIXED "attribute may not be updated"

__attribute__ ((noreturn)) static void die_refused (const struct cmd *cmd, const char *name, int errnum,
                                                    const char *why)
{
    if (errnum == ENOENT)
        cmd_die (cmd, "%s: unknown attribute (idtree lsattr lists them)", name);
    if (strcmp (why, FIXED) == 0)
        cmd_die (cmd,
                 "%s: " FIXED " while the broker runs: if the broker has such an option, set it at the start "
                 "with -o %s=VALUE",
                 name, name);
    if (strncmp (why, "attribute ", strlen ("attribute ")) == 0) /* this message has the name */
        cmd_die (cmd, "%s", why);
    cmd_die (cmd, "%s: %s", name, why);
}

static int run_set (struct cmd *cmd)
{
    struct attr_options o = take_options (cmd);
    const char *name = cmd->argv[0];

    ask_connect_own (cmd);
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

/* Print an attribute with its value, or without one: the attribute may have been removed after it was listed, and some
 * attributes have no value.
 */
static void print_value (struct cmd *cmd, uint32_t rank, const char *name)
{
    idt_future_t *f = ask_attr (cmd, rank, name);
    const char *value;

    if (idt_rpc_get_unpack (f, "{s:s}", "value", &value) < 0)
        value = NULL;
    if (cmd->json)
        print_attr (cmd, name, value);
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
            print_attr (cmd, sorted[i], NULL);
        else
            out_print ("%s\n", sorted[i]);
    }
    free (sorted);
    json_decref (answer);
    return CMD_OK;
}

const struct command getattr_command = {
    .name = "getattr",
    .operands = "ATTRIBUTE",
    .flags = CMD_CONNECTS,
    .summary = "Show an attribute of a broker",
    .example = "idtree getattr size",
    .json = "one object",
    .options = cmd_rank_options,
    .run = run_get,
};

const struct command setattr_command = {
    .name = "setattr",
    .operands = "ATTRIBUTE VALUE",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Set an attribute of a broker",
    .example = "idtree setattr log-stderr-level 7",
    .options = cmd_rank_options,
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

/* --- info ------------------------------------------------------------------------------------ */

static const struct {
    const char *label;
    const char *attr; /* NULL: the value is not an attribute */
    const char *key;  /* key in JSON; NULL: the same as 'label' */
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

/* Add where documents are stored, and which host is rank 0.  Rank 0 knows both; if an instance has no compressor
 * module, or no root.store, nothing is added.
 */
static void add_from_root (json_t *all, struct cmd *cmd)
{
    idt_future_t *documents = idt_rpc (cmd->h, "compressor.stats-get", "{}", 0, 0);
    idt_future_t *root = idt_rpc (cmd->h, "root.get", "{}", 0, 0);
    const char *store;
    json_t *role;

    if (documents && idt_future_wait (documents, ROOT_MS) == 0
        && idt_rpc_get_unpack (documents, "{s:{s:s}}", "root", "store", &store) == 0)
        json_object_set_new (all, "document store", json_string (store));
    if (root && idt_future_wait (root, ROOT_MS) == 0 && idt_rpc_get_unpack (root, "o", &role) == 0)
        json_object_set (all, "root", role);
    idt_future_destroy (documents);
    idt_future_destroy (root);
}

/* Send a request, and return the answer, a new reference; NULL: the broker answers with an error. */
static json_t *get_new (struct cmd *cmd, uint32_t rank, const char *topic, json_t *in)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, topic, rank, in), topic);
    json_t *o = NULL;

    if (idt_rpc_get_unpack (f, "o", &o) == 0)
        json_incref (o);
    idt_future_destroy (f);
    return o;
}

/* Send 'request' (stolen), and add the member 'name' of the answer to 'all'. */
static void add_member (json_t *all, const char *label, struct cmd *cmd, uint32_t rank, const char *topic,
                        json_t *request, const char *name)
{
    json_t *o = get_new (cmd, rank, topic, request);

    if (o)
        json_object_set (all, label, json_object_get (o, name));
    json_decref (o);
}

/* Collect attributes, the state and answers of services in one object.  'rank' knows the state of its subtree, so ranks
 * below it get no request, and missing ranks do not delay the answer.  Only rank 0 gets a request, too.
 */
static json_t *collect_new (struct cmd *cmd, uint32_t rank)
{
    json_t *all = json_object (), *fluid;

    for (size_t i = 0; i < FACTS && facts[i].attr; i++)
        add_member (all, facts[i].label, cmd, rank, "attr.get", json_pack ("{s:s}", "name", facts[i].attr), "value");
    add_member (all, "state", cmd, rank, "state-machine.get", json_object (), "state");
    add_member (all, "subtree", cmd, rank, "overlay.health", json_object (), "status");
    if ((fluid = get_new (cmd, rank, "fluid.info", json_object ())))
        json_object_set_new (all, "fluid", fluid);
    add_from_root (all, cmd);
    return all;
}

static void print_info_text (json_t *all)
{
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION (6);
    json_t *fluid = json_incref (json_object_get (all, "fluid"));
    json_t *root = json_incref (json_object_get (all, "root"));
    const char *from, *to;

    if (json_unpack (json_object_get (fluid, "lease"), "[ss]", &from, &to) == 0)
        json_object_set_new (fluid, "lease", json_sprintf ("%s to %s ms after the epoch", from, to));
    json_object_del (all, "fluid");
    json_object_del (all, "root");
    out_print_members (all, "", LABEL_WIDTH, flags);
    out_print_members (root, "root ", LABEL_WIDTH, flags);
    out_print_members (fluid, "fluid ", LABEL_WIDTH, flags);
    json_decref (root);
    json_decref (fluid);
}

/* Convert the text of an attribute to a number, a new reference. */
static json_t *number_new (const json_t *text)
{
    const char *s = json_string_value (text);

    return s && strchr (s, '.') ? json_real (strtod (s, NULL)) : s ? json_integer (strtoll (s, NULL, 10)) : NULL;
}

static void print_info_json (const struct cmd *cmd, json_t *all)
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

static int run_info (struct cmd *cmd)
{
    struct attr_options o = take_options (cmd);
    json_t *all = collect_new (cmd, o.rank);
    if (!json_object_get (all, "rank")) /* there was no answer: this finds out why, and ends the program */
        json_decref (ask_new (cmd, "attr.get", o.rank, json_pack ("{s:s}", "name", "rank"), "attributes"));
    if (cmd->json)
        print_info_json (cmd, all);
    else
        print_info_text (all);
    json_decref (all);
    return CMD_OK;
}

const struct command info_command = {
    .name = "info",
    .flags = CMD_CONNECTS,
    .summary = "Show the instance, a broker, the state of its subtree, and where its ids come from",
    .example = "idtree info",
    .json = "one object",
    .options = cmd_rank_options,
    .run = run_info,
};

/* --- watermark ------------------------------------------------------------------------------- */

static void print_watermark (const struct cmd *cmd, const json_t *o)
{
    const char *id, *date, *timestamp;
    json_int_t behind_ms;

    if (json_unpack ((json_t *)o, "{s:s s:s s:s s:I}", "id", &id, "date", &date, "timestamp_ms", &timestamp,
                     "behind_ms", &behind_ms)
        < 0)
        cmd_die (cmd, "malformed answer of the broker");
    out_print ("id         %s\ndate       %s\ntimestamp  %s ms after the epoch\nbehind     %" JSON_INTEGER_FORMAT
               " ms\n",
               id, date, timestamp, behind_ms);
}

static int run_watermark (struct cmd *cmd)
{
    uint32_t rank = IDT_NODEID_ANY;

    cmd_options (cmd, &rank);
    json_t *answer = ask_new (cmd, "fluid.watermark", rank, json_object (), "cannot get the watermark");
    (cmd->json ? ask_print : print_watermark) (cmd, answer);
    json_decref (answer);
    return CMD_OK;
}

static const struct cmd_option watermark_options[] = {
    { 'r', "rank", "R", "as rank R knows it (default: the broker of the URI)", cmd_take_rank, 0 },
    CMD_OPTIONS_END,
};

const struct command watermark_command = {
    .name = "watermark",
    .flags = CMD_CONNECTS,
    .summary = "Show the id below which no id will be made any longer, in the whole instance",
    .details = "A program that repeatedly reads \"all ids since X\" reads up to it, and continues there the next "
               "time.\nAn answer that was made earlier may still be in flight, for at most fluid.forward-timeout.",
    .example = "idtree watermark --json",
    .json = "one object",
    .options = watermark_options,
    .run = run_watermark,
};

/* --- version --------------------------------------------------------------------------------- */

static int run_version (struct cmd *cmd)
{
    cmd_options (cmd, NULL);
    const char *version = ask_try_connect (cmd, NULL) ? idt_attr_get (cmd->h, "version") : NULL;

    if (cmd->json) {
        ask_print_new (cmd, json_pack ("{s:s s:s* s:s*}", "command", PACKAGE_VERSION, "broker", version, "uri",
                                       cmd->h ? idt_get_uri (cmd->h) : NULL));
        return CMD_OK;
    }
    out_print ("command: %s\n", PACKAGE_VERSION);
    if (cmd->h)
        out_print ("broker:  %s\nuri:     %s\n", version ? version : "unknown", idt_get_uri (cmd->h));
    return CMD_OK;
}

const struct command version_command = {
    .name = "version",
    .flags = CMD_CONNECTS,
    .summary = "Show the versions of the command and, if one is running, of the broker",
    .example = "idtree version",
    .json = "one object",
    .run = run_version,
};
