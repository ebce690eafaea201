/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* state.c - idtree doc export, import: the stored form of a document
 *
 * It is the base64 text that the npm package @fluidframework/id-compressor calls serialized, version 2, without local
 * state: it has all that is final, and no session's state.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/cmd.h"
#include "cmd/base/input.h"
#include "cmd/base/out.h"
#include "cmd/doc/doc.h"

#define STATE_MAX ((size_t)64 << 20) /* bytes of text; a document of compressor.max-clusters takes half of it */

/* --- export ----------------------------------------------------------------------------------- */

/* Wait for an answer.  NULL: the broker no longer keeps the requested form. */
static json_t *take_piece_new (const struct doc *d, idt_future_t *f, const char *name)
{
    if (idt_future_errnum (ask_ready (d->cmd, f, name)) == EAGAIN) {
        idt_future_destroy (f);
        return NULL;
    }
    return ask_take_new (d->cmd, f, name);
}

/* Request the first piece of the form ('joined' NULL), or the piece at 'offset'. */
static idt_future_t *ask_piece (const struct doc *d, const char *name, json_t *joined, size_t offset)
{
    if (!joined)
        return doc_send (d, "join", json_pack ("{s:s}", "document", name));
    return doc_send (d, "state",
                     json_pack ("{s:s s:O s:O s:I}", "document", name, "uuid", json_object_get (joined, "uuid"), "seq",
                                json_object_get (joined, "seq"), "offset", (json_int_t)offset));
}

/* Write the form of a document to 'out', piece by piece.  Returns false if the caller must start again. */
static bool export_to (const struct doc *d, const char *name, FILE *out)
{
    json_t *joined = NULL, *answer;
    size_t n = 0, size;

    do {
        if (!(answer = take_piece_new (d, ask_piece (d, name, joined, n), name)))
            break;
        const char *state = json_string_value (json_object_get (answer, "state"));
        if (!state)
            cmd_die (d->cmd, "%s: the answer has no state", name);
        fputs (state, out);
        n += strlen (state);
        size = (size_t)json_integer_value (json_object_get (answer, "size"));
        if (joined)
            json_decref (answer);
        else
            joined = answer;
    } while (n < size);
    json_decref (joined);
    return answer != NULL;
}

/* Joining a missing document would make it: first check that it exists. */
static int run_export (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];
    char *text = NULL;
    size_t size;
    bool whole;

    json_decref (doc_need_new (&d, name));
    do {
        free (text);
        FILE *out = open_memstream (&text, &size);
        if (!out)
            cmd_die (cmd, "out of memory");
        whole = export_to (&d, name, out);
        fclose (out);
    } while (!whole);
    if (cmd->json) {
        json_t *o = json_pack ("{s:s s:s}", "document", name, "state", text);
        ask_print (cmd, o);
        json_decref (o);
    }
    else
        out_print ("%s\n", text);
    free (text);
    return CMD_OK;
}

/* --- import ----------------------------------------------------------------------------------- */

/* The text of a file without surrounding white space, for free (). */
static char *read_text (const struct cmd *cmd, const char *path)
{
    size_t n;
    char *s = input_read (cmd, path, "a stored form", STATE_MAX, &n);

    while (n > 0 && isspace ((unsigned char)s[n - 1]))
        n--;
    s[n] = '\0';
    if (n == 0 || strlen (s) != n)
        cmd_die (cmd, "%s: is not a stored form, which is base64 text", input_name (path));
    return s;
}

static int run_import (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];
    const char *path = input_path (cmd, 1), *what = input_name (path);
    char *state = read_text (cmd, path);
    json_t *request = json_pack ("{s:s s:s}", "document", name, "state", state);

    free (state);
    if (!request)
        cmd_die (cmd, "%s: is not a stored form, which is base64 text", what);
    json_t *answer = doc_ask_new (&d, "create", request, what);
    doc_print (&d, answer);
    json_decref (answer);
    return CMD_OK;
}

/* --- the commands ----------------------------------------------------------------------------- */

const struct command doc_export_command = {
    .name = "doc export",
    .operands = "DOCUMENT",
    .flags = CMD_CONNECTS,
    .summary = "Print a document in its stored form: base64 text",
    .details = "It is what serialize(false) of the npm package @fluidframework/id-compressor returns.",
    .example = "idtree doc export drawing >drawing.b64",
    .json = "one object",
    .run = run_export,
};

const struct command doc_import_command = {
    .name = "doc import",
    .operands = "DOCUMENT [FILE|-]",
    .flags = CMD_CONNECTS,
    .summary = "Make a document with a new name from a stored form",
    .details = "Without FILE the text is read from stdin.",
    .example = "idtree doc import drawing drawing.b64",
    .json = "one object",
    .run = run_import,
};
