/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* list.c - idtree doc list: the documents of the id compressor */
#include "cmd/base/commands.h"
#include "cmd/base/table.h"
#include "cmd/doc/doc.h"

static void print_list (const json_t *documents)
{
    static const struct table_column columns[] = {
        { "DOCUMENT", "document", 0 },           { "RANGES", "seq", TABLE_RIGHT },
        { "FINALS", "finals", TABLE_RIGHT },     { "SESSIONS", "sessions", TABLE_RIGHT },
        { "CLUSTERS", "clusters", TABLE_RIGHT }, { "UUID", "uuid", 0 },
    };

    table_print_json (columns, sizeof (columns) / sizeof (columns[0]), documents);
}

static int run (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    json_t *answer = doc_ask_new (&d, "list", json_object (), "documents");

    if (cmd->json)
        ask_print_lines (cmd, json_object_get (answer, "documents"));
    else
        print_list (json_object_get (answer, "documents"));
    json_decref (answer);
    return CMD_OK;
}

const struct command doc_list_command = {
    .name = "doc list",
    .flags = CMD_CONNECTS,
    .summary = "List the documents of the id compressor",
    .example = "idtree doc list",
    .json = "one object a line, for each document",
    .run = run,
};
