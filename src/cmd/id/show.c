/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* show.c - idtree id show: all that an id says, or may say
 *
 * Where a text can be of several schemes each is shown, under "perhaps".
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cmd/base/commands.h"
#include "cmd/id/date.h"
#include "cmd/doc/docid.h"
#include "cmd/id/epoch.h"
#include "cmd/id/text.h"

enum { OPT_JSON = CMD_LONG, OPT_DRIFT };

struct show {
    struct cmd *cmd;
    bool json;
    struct idtext_reader reader;
    int drift;
    struct epoch *epoch;
    idt_t *h; /* for ids of documents; NULL: not needed yet */
    int count;
    int bad;
};

#define LABEL_WIDTH 14

/* printf pads by bytes; the label of one form has a letter of two. */
static void print_field (const char *label, const char *value)
{
    int width = LABEL_WIDTH;

    for (const char *p = label; *p; p++)
        width += ((unsigned char)*p & 0xc0) == 0x80;
    printf ("%-*s%s\n", width, label, value);
}

static fluid_t fluid_of (const struct candidate *c)
{
    char text[SCHEME_TEXT_MAX];
    fluid_t id = 0;

    int len = c->scheme->write (&c->id, c->scheme->usual, text);
    fluid_parse (text, (size_t)len, &id, NULL);
    return id;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_fluid_date (struct show *show, const struct fluid_fields *fields)
{
    double error_ms = epoch_error_ms (show->epoch, fields->generator);
    char date[DATE_SIZE];

    if (show->epoch->ms < 0) {
        printf ("%-*sunknown: %s\n", LABEL_WIDTH, "date", show->epoch->why);
        return;
    }
    printf ("%-*s%s", LABEL_WIDTH, "date", format_date (show->epoch->ms + fields->timestamp_ms, date));
    if (error_ms >= 0)
        printf (" \u00b1 %.0f ms", ceil (error_ms));
    putchar ('\n');
}

static void print_fluid_fields (struct show *show, const struct candidate *c)
{
    struct fluid_fields fields = fluid_split (fluid_of (c));

    print_fluid_date (show, &fields);
    printf ("%-*s%" PRIu64 " ms after the epoch\n", LABEL_WIDTH, "timestamp", fields.timestamp_ms);
    printf ("%-*s%u\n%-*s%u\n", LABEL_WIDTH, "generator", fields.generator, LABEL_WIDTH, "sequence", fields.sequence);
}

static void print_fields (struct show *show, const struct candidate *c)
{
    json_t *o = c->scheme->fields (&c->id, show->drift), *value;
    char date[DATE_SIZE], number[24];
    const char *key;

    print_field ("date", format_date (c->scheme->unix_ms (&c->id), date));
    json_object_foreach (o, key, value) {
        if (json_is_integer (value))
            snprintf (number, sizeof (number), "%" JSON_INTEGER_FORMAT, json_integer_value (value));
        print_field (key, json_is_integer (value) ? number : json_string_value (value));
    }
    json_decref (o);
}

static void print_text (struct show *show, const struct candidate *c, bool certain)
{
    char buf[SCHEME_TEXT_MAX];

    if (show->count++)
        putchar ('\n');
    printf ("%-*s%s%s\n", LABEL_WIDTH, "scheme", c->scheme->name, certain ? "" : ", perhaps");
    for (int form = 0; c->scheme->forms[form]; form++) {
        c->scheme->write (&c->id, form, buf);
        print_field (c->scheme->forms[form], buf);
    }
    if (c->scheme->fields)
        print_fields (show, c);
    else
        print_fluid_fields (show, c);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void add_fluid_fields (struct show *show, const struct candidate *c, json_t *o)
{
    struct fluid_fields fields = fluid_split (fluid_of (c));
    double error_ms = epoch_error_ms (show->epoch, fields.generator);
    char date[DATE_SIZE];

    json_object_set_new (o, "timestamp_ms", json_integer (fields.timestamp_ms));
    json_object_set_new (o, "generator", json_integer (fields.generator));
    json_object_set_new (o, "sequence", json_integer (fields.sequence));
    if (show->epoch->ms < 0)
        return;
    json_object_set_new (o, "date", json_string (format_date (show->epoch->ms + fields.timestamp_ms, date)));
    if (error_ms >= 0)
        json_object_set_new (o, "date_error_ms", json_real (error_ms));
}

static void add_fields (struct show *show, const struct candidate *c, json_t *o)
{
    json_t *fields = c->scheme->fields (&c->id, show->drift);
    char date[DATE_SIZE];

    json_object_set_new (o, "date", json_string (format_date (c->scheme->unix_ms (&c->id), date)));
    json_object_update (o, fields);
    json_decref (fields);
}

/* Timestamps fit in what JSON can hold, ids don't. */
static json_t *object_of (struct show *show, const struct candidate *c)
{
    char buf[SCHEME_TEXT_MAX];
    json_t *o = json_pack ("{s:s}", "scheme", c->scheme->name);

    if (!o)
        cmd_die (show->cmd, "out of memory");
    for (int form = 0; c->scheme->forms[form]; form++) {
        c->scheme->write (&c->id, form, buf);
        json_object_set_new (o, c->scheme->forms[form], json_string (buf));
    }
    (c->scheme->fields ? add_fields : add_fluid_fields) (show, c, o);
    return o;
}

/* One object a line. */
static void print_json (struct show *show, const struct candidate *candidate, int n)
{
    json_t *o = n == 1 ? object_of (show, candidate) : json_pack ("{s:[]}", "candidates");

    for (int i = 0; n > 1 && i < n; i++)
        json_array_append_new (json_object_get (o, "candidates"), object_of (show, &candidate[i]));
    if (!o || json_dumpf (o, stdout, JSON_COMPACT) < 0 || putchar ('\n') == EOF)
        cmd_die (show->cmd, "cannot write: %s", strerror (errno));
    json_decref (o);
}

/* --- ids of documents ------------------------------------------------------------------------- */

static void print_docid (struct show *show, const json_t *o)
{
    const char *key;
    json_t *value;

    if (show->count++)
        putchar ('\n');
    json_object_foreach ((json_t *)o, key, value) {
        char *s = json_is_string (value) ? strdup (json_string_value (value)) : json_dumps (value, JSON_ENCODE_ANY);

        print_field (key, s ? s : "");
        free (s);
    }
}

static void show_docid (struct show *show, uint64_t line, const char *s, const struct docid *id)
{
    idt_error_t error;

    if (!show->h)
        show->h = cmd_connect (show->cmd);
    json_t *o = docid_describe_new (show->h, id, &error);
    if (!o) {
        char what[sizeof (error.text) + 16];

        snprintf (what, sizeof (what), "is not known: %s", error.text);
        idtext_warn_of (show->cmd, line, s, strlen (s), what);
        show->bad++;
    }
    else if (show->json) {
        json_dumpf (o, stdout, JSON_COMPACT);
        putchar ('\n');
    }
    else
        print_docid (show, o);
    json_decref (o);
}

/* --- the command ------------------------------------------------------------------------------ */

static void show_cb (void *arg, uint64_t line, const char *s, size_t len)
{
    struct show *show = arg;
    struct candidate candidate[SCHEME_COUNT];
    struct docid docid;

    if (!show->reader.scheme && docid_parse (s, len, &docid) == 0) {
        show_docid (show, line, s, &docid);
        return;
    }
    int n = idtext_read (&show->reader, s, len, candidate);
    if (n == 0) {
        idtext_warn (show->cmd, line, s, len, NULL, 0, errno);
        show->bad++;
    }
    else if (show->json)
        print_json (show, candidate, n);
    for (int i = 0; !show->json && i < n; i++)
        print_text (show, &candidate[i], n == 1);
}

static int run (struct cmd *cmd)
{
    struct show show = { .cmd = cmd, .drift = UID_DRIFT_DEFAULT };
    const char *arg, *epoch = NULL;
    const struct scheme *scheme = NULL;
    int key;

    while ((key = cmd_option (cmd, &arg)) != -1) {
        if (key == 'e')
            epoch = arg;
        else if (key == 's')
            scheme = idtext_scheme (cmd, arg);
        else if (key == OPT_DRIFT)
            show.drift = idtext_drift (cmd, arg);
        else
            show.json = true;
    }
    idtext_reader_init (&show.reader, scheme);
    show.epoch = epoch_new (cmd, epoch);
    idtext_each (cmd, show_cb, &show);
    epoch_free (show.epoch);
    idt_close (show.h);
    cmd_flush (cmd);
    return show.bad ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option options[] = {
    { 'e', "epoch", "DATE", "fluid: when timestamps begin, as 2026-11-21 or 2026-11-21T10:11:12.345Z" },
    { 's', "scheme", "SCHEME", "fluid, flax, sno or uid (default: whatever it can be)" },
    { OPT_DRIFT, "drift", "N", "uid: drift bits it was written with, 5 to 10 (default 8)" },
    { OPT_JSON, "json", NULL, "one object a line" },
    CMD_OPTIONS_END,
};

const struct command id_show_command = {
    .name = "id show",
    .operands = "ID...|-",
    .min_operands = 1,
    .max_operands = -1,
    .flags = CMD_CONNECTS,
    .summary = "Show what ids of any form say; - reads them from stdin, one a line",
    .details = "A text that can be of several schemes is shown as an id of each.  The date of a fluid is\n"
               "known with --epoch, or where an instance can be asked for its epoch; it then comes with\n"
               "how far it may be off, as the instance's clocks are now.  DOCUMENT:ID and DOCUMENT:UUID are\n"
               "ids of a document of the id compressor that is open on the broker's rank.",
    .example = "idtree id show --epoch 2026-11-21 fuZZybuNNy",
    .options = options,
    .run = run,
};
