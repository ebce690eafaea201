/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* doc.c - idtree doc new, open, close, show, rename, delete: documents of the id compressor */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/out.h"
#include "cmd/doc/doc.h"

#define LABEL_WIDTH 18

/* --- what all share --------------------------------------------------------------------------- */

struct doc doc_begin (struct cmd *cmd)
{
    struct doc d = { .cmd = cmd, .rank = IDT_NODEID_ANY, .count = 1 };

    cmd_options (cmd, &d);
    ask_connect_for (cmd, d.rank);
    return d;
}

idt_future_t *doc_send (const struct doc *d, const char *method, json_t *request)
{
    char topic[64];

    snprintf (topic, sizeof (topic), "compressor.%s", method);
    return ask_send (d->cmd, topic, d->rank, request);
}

/* End the program with advice for a known error. */
static void give_hint (const struct doc *d, const idt_future_t *f, const char *what)
{
    const char *name = d->cmd->argc > 0 ? d->cmd->argv[0] : "";
    char option[32] = "", quoted[128];

    ask_check_flux (d->cmd, f, what);
    if (idt_future_errnum (f) == ENOSYS)
        cmd_die (d->cmd,
                 "%s: no broker on the path to rank 0 has the compressor: idtree module load compressor, on rank "
                 "0 and on each rank that makes ids",
                 what);
    if (d->rank != IDT_NODEID_ANY)
        snprintf (option, sizeof (option), "--rank %u ", d->rank);
    if (idt_future_errnum (f) == ENOENT)
        cmd_die (d->cmd, "%s: the rank has no session in it: idtree doc open %s%s opens one", what, option, name);
    snprintf (quoted, sizeof (quoted), "'%s'", name);
    if (idt_future_errnum (f) && strstr (idt_future_error (f), quoted)) /* the message names the document already */
        cmd_die (d->cmd, "%s", idt_future_error (f));
}

static void die_without (const struct doc *d, const char *name)
{
    cmd_die (d->cmd, "there is no document '%s': idtree doc list shows all documents", name);
}

json_t *doc_ask_new (const struct doc *d, const char *method, json_t *request, const char *what)
{
    idt_future_t *f = ask_ready (d->cmd, doc_send (d, method, request), what);

    give_hint (d, f, what);
    return ask_take_new (d->cmd, f, what);
}

json_t *doc_need_new (const struct doc *d, const char *name)
{
    json_t *answer = doc_ask_new (d, "list", json_object (), name), *o, *found = NULL;
    size_t i;

    json_array_foreach (json_object_get (answer, "documents"), i, o) {
        const char *s = json_string_value (json_object_get (o, "document"));

        if (s && !strcmp (s, name))
            found = json_incref (o);
    }
    json_decref (answer);
    if (!found)
        die_without (d, name);
    return found;
}

void doc_print (const struct doc *d, const json_t *o)
{
    if (d->cmd->json)
        ask_print (d->cmd, o);
    else
        out_print_members (o, "", LABEL_WIDTH, 0);
}

/* --- new, open, close ------------------------------------------------------------------------- */

/* Send a request for 'method' of the document in the first operand, and print the answer. */
static int run_method (struct cmd *cmd, const char *method)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];
    json_t *answer = doc_ask_new (&d, method, json_pack ("{s:s}", "document", name), name);

    if (!cmd->json)
        json_object_del (answer, "seq"); /* only for programs */
    doc_print (&d, answer);
    json_decref (answer);
    return CMD_OK;
}

static int run_new (struct cmd *cmd)
{
    return run_method (cmd, "create");
}

static int run_open (struct cmd *cmd)
{
    return run_method (cmd, "open");
}

static int run_close (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];
    idt_future_t *f = doc_send (&d, "close", json_pack ("{s:s s:b}", "document", name, "discard", d.discard));

    if (idt_future_errnum (ask_ready (cmd, f, name)) == ENOENT)
        cmd_die (cmd, "%s: the rank has no open session in it", name);
    idt_future_destroy (ask_wait (cmd, f, name));
    return CMD_OK;
}

/* --- rename, delete --------------------------------------------------------------------------- */

/* Ask rank 0 to change the document in the first operand; 'request' is stolen. */
static int edit (const struct doc *d, const char *method, json_t *request)
{
    const char *name = d->cmd->argv[0];
    idt_future_t *f = ask_ready (d->cmd, doc_send (d, method, request), name);

    if (idt_future_errnum (f) == ENOENT)
        die_without (d, name);
    give_hint (d, f, name);
    idt_future_destroy (ask_wait (d->cmd, f, name));
    return CMD_OK;
}

static int run_rename (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);

    return edit (&d, "rename", json_pack ("{s:s s:s}", "document", cmd->argv[0], "name", cmd->argv[1]));
}

static int run_delete (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);

    return edit (&d, "delete", json_pack ("{s:s}", "document", cmd->argv[0]));
}

/* --- show ------------------------------------------------------------------------------------- */

/* Add the fields of the rank's session, if it has one. */
static void add_session (const struct doc *d, const char *name, json_t *o)
{
    idt_future_t *f = doc_send (d, "stats", json_pack ("{s:s}", "document", name));

    if (idt_future_errnum (ask_ready (d->cmd, f, name)) == ENOENT) {
        json_object_set_new (o, "open", json_false ());
        idt_future_destroy (f);
        return;
    }
    json_t *stats = ask_take_new (d->cmd, f, name);
    json_object_set_new (o, "open", json_true ());
    json_object_update_missing (o, stats);
    json_decref (stats);
}

static int run_show (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    json_t *o = doc_need_new (&d, cmd->argv[0]);

    add_session (&d, cmd->argv[0], o);
    doc_print (&d, o);
    json_decref (o);
    return CMD_OK;
}

/* --- the commands ----------------------------------------------------------------------------- */

static const struct cmd_option session_options[] = {
    DOC_RANK_OPTION,
    CMD_OPTIONS_END,
};

static const struct cmd_option close_options[] = {
    DOC_RANK_OPTION,
    { 0, "discard", NULL, "end it immediately: local ids never become final", cmd_take_flag, DOC_AT (discard) },
    CMD_OPTIONS_END,
};

const struct command doc_new_command = {
    .name = "doc new",
    .operands = "NAME",
    .flags = CMD_CONNECTS,
    .summary = "Make an empty document with a new name",
    .details = "A name has 1 to 100 of A-Z a-z 0-9 . _ -, and does not begin with . or -",
    .example = "idtree doc new drawing",
    .json = "one object",
    .run = run_new,
};

const struct command doc_open_command = {
    .name = "doc open",
    .operands = "DOCUMENT",
    .flags = CMD_CONNECTS,
    .summary = "Open a session of a rank in a document, which is made if it does not exist",
    .example = "idtree doc open --rank 3 drawing",
    .json = "one object",
    .options = session_options,
    .run = run_open,
};

const struct command doc_close_command = {
    .name = "doc close",
    .operands = "DOCUMENT",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "End the session of a rank after all its ids have become final",
    .example = "idtree doc close --rank 3 drawing",
    .options = close_options,
    .run = run_close,
};

const struct command doc_rename_command = {
    .name = "doc rename",
    .operands = "DOCUMENT NAME",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Rename a document; the new name must be free",
    .details = "Open sessions continue.  Only the maker of the document and the instance owner may do this.",
    .example = "idtree doc rename drawing plan",
    .run = run_rename,
};

const struct command doc_delete_command = {
    .name = "doc delete",
    .operands = "DOCUMENT",
    .flags = CMD_CONNECTS | CMD_SILENT,
    .summary = "Delete a document with all its ids, permanently",
    .details = "Open sessions are notified.  Only the maker of the document and the instance owner may do this.",
    .example = "idtree doc delete drawing",
    .run = run_delete,
};

const struct command doc_show_command = {
    .name = "doc show",
    .operands = "DOCUMENT",
    .flags = CMD_CONNECTS,
    .summary = "Show a document, and the rank's session in it",
    .example = "idtree doc show drawing",
    .json = "one object",
    .options = session_options,
    .run = run_show,
};
