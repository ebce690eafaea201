/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* doc.c - idtree doc: documents of the id compressor (doc/design/compressor.md), and their ids
 *
 * Ids are printed when they are final, so that readers of the output may pass them to other ranks.  With --now ids are
 * printed immediately.
 *
 * The stored form of a document is the base64 text, version 2 and without local state, that the npm package
 * @fluidframework/id-compressor calls serialized.  It has all final data of a document, and no session's state.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/ask.h"
#include "cmd/base/input.h"
#include "cmd/base/out.h"
#include "cmd/doc/doc.h"

#define LABEL_WIDTH 18
#define DOC_IDS_MAX 65536 /* ids of one request */
#define IDS_MAX UINT64_C (1000000000)
#define STATE_MAX ((size_t)64 << 20) /* bytes of text; a document of compressor.max-clusters needs half of them */

#define DOC_AT(member) offsetof (struct doc, member)
#define DOC_RANK_OPTION                                                                                             \
    {                                                                                                               \
        'r', "rank", "R", "the session of rank R (default: of the broker of the URI)", cmd_take_rank, DOC_AT (rank) \
    }

/* The parsed options of a command. */
struct doc {
    struct cmd *cmd;
    uint32_t rank;
    uint64_t count;
    bool uuid;
    bool now;
    bool discard;
};

/* --- what all share --------------------------------------------------------------------------- */

/* Parse the options and connect. */
static struct doc doc_begin (struct cmd *cmd)
{
    struct doc d = { .cmd = cmd, .rank = IDT_NODEID_ANY, .count = 1 };

    cmd_options (cmd, &d);
    ask_connect_for (cmd, d.rank);
    return d;
}

/* Send a request to the service "compressor"; 'request' is stolen. */
static idt_future_t *doc_send (const struct doc *d, const char *method, json_t *request)
{
    char topic[64];

    snprintf (topic, sizeof (topic), "compressor.%s", method);
    return ask_send (d->cmd, topic, d->rank, request);
}

/* End the program with advice if the error is a known one. */
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

/* Send a request to the service "compressor" and return the answer, a new reference; 'request' is stolen.  If the
 * answer is an error, end the program with "WHAT: why".
 */
static json_t *doc_ask_new (const struct doc *d, const char *method, json_t *request, const char *what)
{
    idt_future_t *f = ask_ready (d->cmd, doc_send (d, method, request), what);

    give_hint (d, f, what);
    return ask_take_new (d->cmd, f, what);
}

/* Return rank 0's fields of the document 'name', a new reference.  Ends the program if the document does not exist. */
static json_t *doc_need_new (const struct doc *d, const char *name)
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

/* Print the members of an object (stolen), one a line; with --json print the object on one line. */
static int doc_print_new (const struct doc *d, json_t *o)
{
    if (d->cmd->json)
        ask_print (d->cmd, o);
    else
        out_print_members (o, "", LABEL_WIDTH, 0);
    json_decref (o);
    return CMD_OK;
}

/* Send the request 'method' for the document in the first operand, and print the answer. */
static int run_method (struct cmd *cmd, const char *method)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];
    json_t *answer = doc_ask_new (&d, method, json_pack ("{s:s}", "document", name), name);

    if (!cmd->json)
        json_object_del (answer, "seq"); /* only programs need it */
    return doc_print_new (&d, answer);
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

/* Add the fields of the rank's session in the document, if the rank has one. */
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
    return doc_print_new (&d, o);
}

json_t *doc_list_new (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);

    return doc_ask_new (&d, "list", json_object (), "documents");
}

/* --- ids --------------------------------------------------------------------------------------------- */

/* Add the ids of a run.  Local ids of a run count down, final ids count up. */
static void add_run (json_t *ids, const json_t *run)
{
    json_int_t first = json_integer_value (json_array_get (run, 0));
    json_int_t count = json_integer_value (json_array_get (run, 1));

    for (json_int_t i = 0; i < count && i < DOC_IDS_MAX; i++)
        json_array_append_new (ids, json_integer (first < 0 ? first - i : first + i));
}

/* Make 'n' ids, at most DOC_IDS_MAX.  Returns a new array of the ids. */
static json_t *make_ids_new (const struct doc *d, const char *name, uint64_t n)
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

/* Print the ids.  Neither names nor UUIDs need escaping in JSON. */
static void print_ids (const struct doc *d, const char *name, json_t *ids)
{
    bool json = d->cmd->json;
    json_t *answer = NULL, *id;
    size_t i;

    if (d->uuid)
        answer = doc_ask_new (d, "decompress", json_pack ("{s:s s:O}", "document", name, "ids", ids), name);
    json_array_foreach (ids, i, id) {
        const char *uuid = json_string_value (json_array_get (json_object_get (answer, "uuids"), i));

        out_print (json ? "{\"document\":\"%s\",\"id\":%" JSON_INTEGER_FORMAT : "%s:%" JSON_INTEGER_FORMAT, name,
                   json_integer_value (id));
        if (uuid)
            out_print (json ? ",\"uuid\":\"%s\"" : "\t%s", uuid);
        out_print (json ? "}\n" : "\n");
    }
    json_decref (answer);
}

static void take_count (struct cmd *cmd, const char *arg, void *to)
{
    *(uint64_t *)to = cmd_number (cmd, "count", arg, 1, IDS_MAX);
}

static int run_doc_ids (struct cmd *cmd)
{
    struct doc d = doc_begin (cmd);
    const char *name = cmd->argv[0];

    for (uint64_t left = d.count, n; left > 0; left -= n) {
        n = left < DOC_IDS_MAX ? left : DOC_IDS_MAX;
        json_t *ids = make_ids_new (&d, name, n);
        print_ids (&d, name, ids);
        json_decref (ids);
    }
    return CMD_OK;
}

/* --- export, import ---------------------------------------------------------------------------------- */

/* Wait for an answer, and return it.  NULL: the compressor no longer keeps this version of the document's form. */
static json_t *take_piece_new (const struct doc *d, idt_future_t *f, const char *name)
{
    if (idt_future_errnum (ask_ready (d->cmd, f, name)) == EAGAIN) {
        idt_future_destroy (f);
        return NULL;
    }
    return ask_take_new (d->cmd, f, name);
}

/* Request the first piece of the document's form ('joined' NULL), or the piece at 'offset'. */
static idt_future_t *ask_piece (const struct doc *d, const char *name, json_t *joined, size_t offset)
{
    if (!joined)
        return doc_send (d, "join", json_pack ("{s:s}", "document", name));
    return doc_send (d, "state",
                     json_pack ("{s:s s:O s:O s:I}", "document", name, "uuid", json_object_get (joined, "uuid"), "seq",
                                json_object_get (joined, "seq"), "offset", (json_int_t)offset));
}

/* Write the form of a document to 'out', piece by piece.  Returns false if the form is no longer kept: the caller must
 * then start again.
 */
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

/* A request to join a document that does not exist would make it.  So first check that it exists. */
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
    if (cmd->json)
        ask_print_new (cmd, json_pack ("{s:s s:s}", "document", name, "state", text));
    else
        out_print ("%s\n", text);
    free (text);
    return CMD_OK;
}

/* Read a file.  Returns its text without white space at the end, for free (). */
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
    return doc_print_new (&d, doc_ask_new (&d, "create", request, what));
}

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

static const struct cmd_option ids_options[] = {
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
    .options = ids_options,
    .run = run_doc_ids,
};

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

/* --- ids on the command line ------------------------------------------------------------------------- */

/* Parse a decimal number; a local id is negative. */
static int parse_number (const char *s, int64_t *id)
{
    char *end;

    if (strspn (s + (*s == '-'), "0123456789") != strlen (s + (*s == '-')))
        return -1;
    errno = 0;
    *id = strtoll (s, &end, 10);
    return errno == 0 && end != s && *end == '\0' ? 0 : -1;
}

int docid_parse (const char *s, size_t len, struct docid *id)
{
    const char *colon = memchr (s, ':', len);
    struct idcomp_uuid uuid;

    if (!colon || colon == s || colon - s > DOCID_NAME_MAX || strlen (s) != len)
        return -1;
    memcpy (id->document, s, colon - s);
    id->document[colon - s] = '\0';
    id->by_uuid = idcomp_uuid_parse (colon + 1, strlen (colon + 1), &uuid, NULL) == 0;
    if (!id->by_uuid)
        return parse_number (colon + 1, &id->id);
    idcomp_uuid_format (&uuid, id->uuid, sizeof (id->uuid));
    return 0;
}

/* Send a request with one element, and return the first element of the array 'key' in the answer, a new reference. */
static json_t *ask_one (struct cmd *cmd, const char *topic, json_t *request, const char *key, idt_error_t *errp)
{
    idt_future_t *f = ask_ready (cmd, ask_send (cmd, topic, IDT_NODEID_ANY, request), topic);
    json_t *array = NULL, *one = NULL;

    if (idt_future_errnum (f) != 0)
        snprintf (errp->text, sizeof (errp->text), "%s", idt_future_error (f));
    else if (idt_rpc_get_unpack (f, "{s:o}", key, &array) < 0 || !(one = json_incref (json_array_get (array, 0))))
        snprintf (errp->text, sizeof (errp->text), "%s: malformed answer", topic);
    idt_future_destroy (f);
    return one;
}

/* Return the id in session space.  If no id of the document has the UUID, return NULL with a message in 'errp'. */
static json_t *find_id (struct cmd *cmd, const struct docid *id, idt_error_t *errp)
{
    json_t *o;

    if (!id->by_uuid)
        return json_integer (id->id);
    o = ask_one (cmd, "compressor.recompress", json_pack ("{s:s s:[s]}", "document", id->document, "uuids", id->uuid),
                 "ids", errp);
    if (!json_is_null (o))
        return o;
    snprintf (errp->text, sizeof (errp->text), "no id of %s stands for it", id->document);
    return NULL;
}

json_t *docid_describe_new (struct cmd *cmd, const struct docid *id, idt_error_t *errp)
{
    json_t *found = find_id (cmd, id, errp), *uuid = NULL, *op = NULL, *o = NULL;

    if (found)
        uuid = ask_one (cmd, "compressor.decompress", json_pack ("{s:s s:[O]}", "document", id->document, "ids", found),
                        "uuids", errp);
    if (uuid)
        op = ask_one (cmd, "compressor.normalize", json_pack ("{s:s s:[O]}", "document", id->document, "ids", found),
                      "ids", errp);
    if (op)
        o = json_pack ("{s:s s:s s:O s:O s:O}", "scheme", "compressor", "document", id->document, "id", found, "op", op,
                       "uuid", uuid);
    json_decref (found);
    json_decref (uuid);
    json_decref (op);
    return o;
}
