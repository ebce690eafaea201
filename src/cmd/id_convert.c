/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* id_convert.c - idtree id convert: ids from one form to another, as a filter */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/convert.h"
#include "cmd/idtext.h"

#define CHUNK (256 * 1024) /* bytes of a read and of a write */
#define TOLD_MAX 10        /* lines told one by one; the others are counted */

struct filter {
    struct cmd *cmd;
    uint64_t bad;
    bool lines; /* from stdin: line numbers mean something */
};

static void bad_cb (void *arg, uint64_t line, const char *s, size_t len, int errnum)
{
    struct filter *f = arg;

    if (++f->bad <= TOLD_MAX)
        idtext_warn (f->cmd, f->lines ? line : 0, s, len, errnum);
}

static void convert_stdin (struct cmd *cmd, struct convert *c)
{
    char *data = malloc (CHUNK);
    ssize_t n;

    if (!data)
        cmd_die (cmd, "out of memory");
    while ((n = read (STDIN_FILENO, data, CHUNK)) != 0) {
        if (n > 0)
            convert_add (c, data, n);
        else if (errno != EINTR)
            cmd_die (cmd, "cannot read stdin: %s", strerror (errno));
    }
    convert_end (c);
    free (data);
}

static int run (struct cmd *cmd)
{
    struct filter filter = { .cmd = cmd };
    struct convert c;
    const char *arg;
    int key, form = -1;

    while ((key = cmd_option (cmd, &arg)) != -1)
        if (key == 't')
            form = idtext_form (cmd, arg);
    if (form < 0)
        cmd_usage (cmd, "it needs --to FORM");
    setvbuf (stdout, NULL, _IOFBF, CHUNK);
    convert_init (&c, form, stdout, bad_cb, &filter);
    filter.lines = cmd->argc == 1 && !strcmp (cmd->argv[0], "-");
    if (filter.lines)
        convert_stdin (cmd, &c);
    for (int i = 0; !filter.lines && i < cmd->argc; i++)
        convert_line (&c, cmd->argv[i], strlen (cmd->argv[i]));
    cmd_flush (cmd);
    if (filter.bad > TOLD_MAX)
        cmd_warn (cmd, "%" PRIu64 " lines in all are no ids", filter.bad);
    return filter.bad ? CMD_FAILED : CMD_OK;
}

static const struct cmd_option options[] = {
    { 't', "to", "FORM", "dec, hex, dothex, f58, ƒ58, words or emoji" },
    CMD_OPTIONS_END,
};

const struct command id_convert_command = {
    .name = "id convert",
    .operands = "ID...|-",
    .min_operands = 1,
    .max_operands = -1,
    .summary = "Convert ids of any form to one form; - reads them from stdin, one a line",
    .details = "A line that is no id is told on stderr and left out; the exit status is then 1.",
    .example = "idtree id convert --to words - <ids >names",
    .options = options,
    .run = run,
};
