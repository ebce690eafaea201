/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* modules.c - idtree module list */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/table.h"

struct list_options {
    uint32_t rank;
};

static const char *status_name (int status)
{
    static const char *const names[] = { "init", "running", "finalizing", "exited" };

    return status >= 0 && status < 4 ? names[status] : "?";
}

/* Services of a module except the one of its own name, joined with commas. */
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

static int run (struct cmd *cmd)
{
    struct list_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    json_t *answer = ask_new (cmd, "module.list", o.rank, NULL, "modules");

    if (cmd->json)
        ask_print_lines (cmd, json_object_get (answer, "mods"));
    else
        print_list (json_object_get (answer, "mods"));
    json_decref (answer);
    return CMD_OK;
}

#define AT(member) offsetof (struct list_options, member)

static const struct cmd_option options[] = {
    { 'r', "rank", "R", "of rank R (default: the broker of the URI)", cmd_take_rank, AT (rank) },
    CMD_OPTIONS_END,
};

const struct command module_list_command = {
    .name = "module list",
    .flags = CMD_CONNECTS,
    .summary = "List the modules of a broker",
    .example = "idtree module list --rank 3",
    .json = "one object a line, for each module",
    .options = options,
    .run = run,
};
