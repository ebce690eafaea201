/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module.c - idtree module list, load, remove, stats */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/table.h"

enum { OPT_RUSAGE = CMD_LONG, OPT_CLEAR, OPT_JSON };

struct module_args {
    uint32_t rank;
    const char *name;
    const char *method; /* of stats */
    bool json;
};

static struct module_args take_options (struct cmd *cmd)
{
    struct module_args a = { .rank = IDT_NODEID_ANY, .method = "stats-get" };
    const char *arg;
    int key;

    while ((key = cmd_option (cmd, &arg)) != -1) {
        switch (key) {
        case 'r':
            a.rank = cmd_rank (cmd, arg);
            break;
        case 'n':
            a.name = arg;
            break;
        case OPT_RUSAGE:
            a.method = "rusage";
            break;
        case OPT_CLEAR:
            a.method = "stats-clear";
            break;
        case OPT_JSON:
            a.json = true;
            break;
        }
    }
    return a;
}

/* --- list ------------------------------------------------------------------------------------- */

static const char *status_name (int status)
{
    static const char *const names[] = { "init", "running", "finalizing", "exited" };

    return status >= 0 && status < 4 ? names[status] : "?";
}

/* Services that a module has beside that of its own name, joined with commas. */
static json_t *other_services (const json_t *m)
{
    const char *name = json_string_value (json_object_get (m, "name"));
    char buf[512] = "";
    size_t i;
    json_t *s;

    json_array_foreach (json_object_get (m, "services"), i, s) {
        const char *service = json_string_value (s);
        size_t n = strlen (buf);

        if (service && name && strcmp (service, name))
            snprintf (buf + n, sizeof (buf) - n, "%s%s", n ? "," : "", service);
    }
    return json_string (buf);
}

static void print_list (json_t *mods)
{
    static const struct table_column columns[] = {
        { "MODULE", "name", 0 },
        { "STATE", "state", 0 },
        { "IDLE", "idle", TABLE_RIGHT },
        { "SENDQ", "sendqueue", TABLE_RIGHT },
        { "RECVQ", "recvqueue", TABLE_RIGHT },
        { "SERVICES", "others", 0 },
    };
    size_t i;
    json_t *m;

    json_array_foreach (mods, i, m) {
        int status = json_integer_value (json_object_get (m, "status"));

        json_object_set_new (m, "state", json_string (status_name (status)));
        json_object_set_new (m, "others", other_services (m));
    }
    table_print_json (columns, sizeof (columns) / sizeof (columns[0]), mods);
}

static int run_list (struct cmd *cmd)
{
    struct module_args a = take_options (cmd);
    idt_t *h = cmd_connect_for (cmd, a.rank);
    json_t *o = ask_new (cmd, h, "module.list", a.rank, NULL, "modules");

    if (a.json) {
        json_dumpf (json_object_get (o, "mods"), stdout, JSON_COMPACT);
        putchar ('\n');
    }
    else
        print_list (json_object_get (o, "mods"));
    json_decref (o);
    idt_close (h);
    return cmd_flush (cmd);
}

/* --- load, remove ----------------------------------------------------------------------------- */

/* A path from here means nothing to a broker that works elsewhere; a name without '/' is looked
 * for there.
 */
static char *absolute (struct cmd *cmd, const char *path)
{
    char *s = strchr (path, '/') ? realpath (path, NULL) : strdup (path);

    return s ? s : strdup (path);
}

static int run_load (struct cmd *cmd)
{
    struct module_args a = take_options (cmd);
    idt_t *h = cmd_connect_for (cmd, a.rank);
    char *path = absolute (cmd, cmd->argv[0]);
    json_t *args = json_array ();

    for (int i = 1; i < cmd->argc; i++)
        json_array_append_new (args, json_string (cmd->argv[i]));
    json_t *request = json_pack ("{s:s s:o s:b}", "path", path ? path : "", "args", args, "exec", 0);
    if (a.name)
        json_object_set_new (request, "name", json_string (a.name));
    json_decref (ask_new (cmd, h, "module.load", a.rank, request, cmd->argv[0]));
    free (path);
    idt_close (h);
    return CMD_OK;
}

static int run_remove (struct cmd *cmd)
{
    struct module_args a = take_options (cmd);
    idt_t *h = cmd_connect_for (cmd, a.rank);

    json_decref (ask_new (cmd, h, "module.remove", a.rank, json_pack ("{s:s s:b}", "name", cmd->argv[0], "cancel", 0),
                          cmd->argv[0]));
    idt_close (h);
    return CMD_OK;
}

/* --- stats ------------------------------------------------------------------------------------ */

static int run_stats (struct cmd *cmd)
{
    struct module_args a = take_options (cmd);
    idt_t *h = cmd_connect_for (cmd, a.rank);
    char topic[256];

    if (snprintf (topic, sizeof (topic), "%s.%s", cmd->argv[0], a.method) >= (int)sizeof (topic))
        cmd_usage (cmd, "the name is too long");
    json_t *o = ask_new (cmd, h, topic, a.rank, NULL, topic);
    if (json_object_size (o) > 0) {
        json_dumpf (o, stdout, a.json ? JSON_COMPACT : JSON_INDENT (1));
        putchar ('\n');
    }
    json_decref (o);
    idt_close (h);
    return cmd_flush (cmd);
}

#define RANK_OPTION                                                    \
    {                                                                  \
        'r', "rank", "R", "of rank R (default: the broker of the URI)" \
    }

static const struct cmd_option list_options[] = {
    RANK_OPTION,
    { OPT_JSON, "json", NULL, "all that the broker tells" },
    CMD_OPTIONS_END,
};

static const struct cmd_option load_options[] = {
    RANK_OPTION,
    { 'n', "name", "NAME", "give it another name than its file's" },
    CMD_OPTIONS_END,
};

static const struct cmd_option remove_options[] = {
    RANK_OPTION,
    CMD_OPTIONS_END,
};

static const struct cmd_option stats_options[] = {
    RANK_OPTION,
    { OPT_RUSAGE, "rusage", NULL, "what it used of the host instead" },
    { OPT_CLEAR, "clear", NULL, "set counters to zero instead" },
    { OPT_JSON, "json", NULL, "on one line" },
    CMD_OPTIONS_END,
};

const struct command module_list_command = {
    .name = "module list",
    .flags = CMD_CONNECTS,
    .summary = "List the modules of a broker",
    .example = "idtree module list --rank 3",
    .options = list_options,
    .run = run_list,
};

const struct command module_load_command = {
    .name = "module load",
    .operands = "NAME|PATH [ARG]...",
    .min_operands = 1,
    .max_operands = -1,
    .flags = CMD_CONNECTS | CMD_RUNS,
    .summary = "Load a module into a broker",
    .example = "idtree module load ./mymodule.so --verbose",
    .options = load_options,
    .run = run_load,
};

const struct command module_remove_command = {
    .name = "module remove",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .flags = CMD_CONNECTS,
    .summary = "Remove a module from a broker",
    .example = "idtree module remove fluid",
    .options = remove_options,
    .run = run_remove,
};

const struct command module_stats_command = {
    .name = "module stats",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .flags = CMD_CONNECTS,
    .summary = "Show or clear the counters of a module",
    .example = "idtree module stats fluid",
    .options = stats_options,
    .run = run_stats,
};
