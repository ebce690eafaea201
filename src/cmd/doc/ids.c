/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* ids.c - idtree doc ids: make ids in a document, in the session of a rank
 *
 * Ids are printed when they are final, so that readers may pass them to other ranks; --now does not wait for that.
 */
#include <stdio.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/doc/doc.h"

#define COUNT_MAX UINT64_C (1000000000)

/* A run of local ids counts down, a run of final ids counts up. */
static void add_run (json_t *ids, const json_t *run)
{
    json_int_t first = json_integer_value (json_array_get (run, 0));
    json_int_t count = json_integer_value (json_array_get (run, 1));

    for (json_int_t i = 0; i < count && i < DOC_IDS_MAX; i++)
        json_array_append_new (ids, json_integer (first < 0 ? first - i : first + i));
}

/* Make 'n' ids, at most DOC_IDS_MAX.  Returns an array of them. */
static json_t *make_new (const struct doc *d, const char *name, uint64_t n)
{
    json_t *request = json_pack ("{s:s s:I s:b}", "document", name, "count", (json_int_t)n, "final", !d->now);
    json_t *answer = doc_ask_new (d, "generate", request, name), *ids = json_array (), *run;
    size_t i;

    json_array_foreach (json_object_get (answer, "runs"), i, run)
        add_run (ids, run);
    if (json_array_size (ids) != n)
        cmd_die (d->cmd, "%s: %zu ids arrived instead of %llu", name, json_array_size (ids), (unsigned long long)n);
    json_decref (answer);
    return ids;
}

static void print_text (const char *name, json_int_t id, const char *uuid)
{
    out_print ("%s:%" JSON_INTEGER_FORMAT, name, id);
    if (uuid)
        out_print ("\t%s", uuid);
    out_print ("\n");
}

/* Neither names nor UUIDs need escaping. */
static void print_json (const char *name, json_int_t id, const char *uuid)
{
    out_print ("{\"document\":\"%s\",\"id\":%" JSON_INTEGER_FORMAT, name, id);
    if (uuid)
        out_print (",\"uuid\":\"%s\"", uuid);
    out_print ("}\n");
}

static void print_ids (const struct doc *d, const char *name, json_t *ids)
{
    json_t *answer = NULL, *id;
    size_t i;

    if (d->uuid)
        answer = doc_ask_new (d, "decompress", json_pack ("{s:s s:O}", "document", name, "ids", ids), name);
    json_array_foreach (ids, i, id)
        (d->cmd->json ? print_json
                      : print_text) (name, json_integer_value (id),
                                     json_string_value (json_array_get (json_object_get (answer, "uuids"), i)));
    json_decref (answer);
}

static void take_count (struct cmd *cmd, const char *arg, void *to)
{
    *(uint64_t *)to = cmd_number (cmd, "count", arg, 1, COUNT_MAX);
}

static int run (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];

    for (uint64_t left = d.count, n; left > 0; left -= n) {
        n = left < DOC_IDS_MAX ? left : DOC_IDS_MAX;
        json_t *ids = make_new (&d, name, n);
        print_ids (&d, name, ids);
        json_decref (ids);
    }
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 'n', "count", "N", "how many (default 1)", take_count, DOC_AT (count) },
    { CMD_LETTERS (0, 'u'), "uuid", NULL, "add a column with the UUID of each", cmd_take_flag, DOC_AT (uuid) },
    { 0, "now", NULL, "do not wait: local ids are negative, and valid only on this rank", cmd_take_flag, DOC_AT (now) },
    DOC_RANK_OPTION,
    CMD_OPTIONS_END,
};

const struct command doc_ids_command = {
    .name = "doc ids",
    .operands = "DOCUMENT",
    .flags = CMD_CONNECTS,
    .summary = "Make ids in an open document, one a line as DOCUMENT:ID",
    .details = "The ids are final: all ranks know them as the same numbers.",
    .example = "idtree doc ids -n 10 --uuid drawing",
    .json = "one object a line",
    .options = options,
    .run = run,
};
