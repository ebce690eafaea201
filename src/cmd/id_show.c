/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_show.c - idtree id show: all that an id says */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cmd/commands.h"
#include "cmd/date.h"
#include "cmd/epoch.h"
#include "cmd/idtext.h"

enum { OPT_JSON = CMD_LONG };

struct show {
    struct cmd *cmd;
    bool json;
    struct epoch *epoch;
    int count;
    int bad;
};

#define LABEL_WIDTH 11

/* printf pads by bytes; the label of one form has a letter of two. */
static void print_field (const char *label, const char *value)
{
    int width = LABEL_WIDTH;

    for (const char *p = label; *p; p++)
        width += ((unsigned char)*p & 0xc0) == 0x80;
    printf ("%-*s%s\n", width, label, value);
}

static void print_date (struct show *show, const struct fluid_fields *fields)
{
    double error_ms = epoch_error_ms (show->epoch, fields->generator);
    char date[DATE_STRING_MAX];

    printf ("%-*s%s", LABEL_WIDTH, "date", date_format (show->epoch->ms + fields->timestamp_ms, date));
    if (error_ms >= 0)
        printf (" \u00b1 %.0f ms", ceil (error_ms));
    putchar ('\n');
}

static void print_text (struct show *show, fluid_t id)
{
    struct fluid_fields fields = fluid_split (id);
    char buf[FLUID_STRING_MAX];

    if (show->count++)
        putchar ('\n');
    for (int form = 0; form < FLUID_FORM_COUNT; form++)
        print_field (fluid_form_name (form), idtext (id, form, buf));
    if (show->epoch->ms >= 0)
        print_date (show, &fields);
    else
        printf ("%-*sunknown: %s\n", LABEL_WIDTH, "date", show->epoch->why);
    printf ("%-*s%" PRIu64 " ms after the epoch\n", LABEL_WIDTH, "timestamp", fields.timestamp_ms);
    printf ("%-*s%u\n%-*s%u\n", LABEL_WIDTH, "generator", fields.generator, LABEL_WIDTH, "sequence",
            fields.sequence);
}

static void add_date (struct show *show, const struct fluid_fields *fields, json_t *o)
{
    double error_ms = epoch_error_ms (show->epoch, fields->generator);
    char date[DATE_STRING_MAX];

    json_object_set_new (o, "date", json_string (date_format (show->epoch->ms + fields->timestamp_ms, date)));
    if (error_ms >= 0)
        json_object_set_new (o, "date_error_ms", json_real (error_ms));
}

/* One object a line; timestamps fit in what JSON can hold, ids don't. */
static void print_json (struct show *show, fluid_t id)
{
    struct fluid_fields fields = fluid_split (id);
    char buf[FLUID_STRING_MAX];
    json_t *o = json_pack ("{s:I s:i s:i}", "timestamp_ms", (json_int_t)fields.timestamp_ms,
                           "generator", (int)fields.generator, "sequence", (int)fields.sequence);

    for (int form = 0; o && form < FLUID_FORM_COUNT; form++)
        json_object_set_new (o, fluid_form_name (form), json_string (idtext (id, form, buf)));
    if (o && show->epoch->ms >= 0)
        add_date (show, &fields, o);
    if (!o || json_dumpf (o, stdout, JSON_COMPACT) < 0 || putchar ('\n') == EOF)
        cmd_die (show->cmd, "cannot write: %s", strerror (errno));
    json_decref (o);
}

static void show_id (struct show *show, uint64_t line, const char *s, size_t len)
{
    fluid_t id;

    if (strlen (s) != len)
        errno = EINVAL;
    else if (fluid_parse (s, &id) == 0) {
        (show->json ? print_json : print_text) (show, id);
        return;
    }
    idtext_warn (show->cmd, line, s, len, errno);
    show->bad++;
}

static void show_stdin (struct show *show)
{
    char *s = NULL;
    size_t size = 0;
    ssize_t len;

    for (uint64_t line = 1; (len = getline (&s, &size, stdin)) > 0; line++) {
        if (s[len - 1] == '\n')
            s[--len] = '\0';
        show_id (show, line, s, len);
    }
    free (s);
    if (ferror (stdin))
        cmd_die (show->cmd, "cannot read stdin: %s", strerror (errno));
}

static int run (struct cmd *cmd)
{
    struct show show = { .cmd = cmd };
    const char *arg, *epoch = NULL;
    int key;

    while ((key = cmd_option (cmd, &arg)) != -1) {
        if (key == 'e')
            epoch = arg;
        else
            show.json = true;
    }
    show.epoch = epoch_new (cmd, epoch);
    bool from_stdin = cmd->argc == 1 && !strcmp (cmd->argv[0], "-");
    if (from_stdin)
        show_stdin (&show);
    for (int i = 0; !from_stdin && i < cmd->argc; i++)
        show_id (&show, 0, cmd->argv[i], strlen (cmd->argv[i]));
    epoch_free (show.epoch);
    cmd_flush (cmd);
    return show.bad ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option options[] = {
    { 'e', "epoch", "DATE", "when timestamps begin, as 2026-11-21 or 2026-11-21T10:11:12.345Z" },
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
    .details = "The date is known with --epoch, or where an instance can be asked for its epoch.\n"
               "It then comes with how far it may be off, as the instance's clocks are now.",
    .example = "idtree id show --epoch 2026-11-21 fuZZybuNNy",
    .options = options,
    .run = run,
};
