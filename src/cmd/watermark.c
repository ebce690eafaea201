/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - idtree watermark: the id below which no id will be made any longer */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "cmd/base/ask.h"
#include "cmd/base/commands.h"
#include "cmd/base/out.h"

static void print_text (const struct cmd *cmd, const json_t *o)
{
    const char *id, *date, *timestamp;
    json_int_t behind_ms;

    if (json_unpack ((json_t *)o, "{s:s s:s s:s s:I}", "id", &id, "date", &date, "timestamp_ms", &timestamp,
                     "behind_ms", &behind_ms)
        < 0)
        cmd_die (cmd, "malformed answer of the broker");
    out_print ("id         %s\ndate       %s\ntimestamp  %s ms after the epoch\nbehind     %" JSON_INTEGER_FORMAT
               " ms\n",
               id, date, timestamp, behind_ms);
}

struct watermark_options {
    uint32_t rank;
};

static int run (struct cmd *cmd)
{
    struct watermark_options o = { .rank = IDT_NODEID_ANY };

    cmd_options (cmd, &o);
    json_t *answer = ask_new (cmd, "fluid.watermark", o.rank, json_object (), "cannot get the watermark");
    (cmd->json ? ask_print : print_text) (cmd, answer);
    json_decref (answer);
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 'r', "rank", "R", "as rank R knows it (default: the broker of the URI)", cmd_take_rank,
      offsetof (struct watermark_options, rank) },
    CMD_OPTIONS_END,
};

const struct command watermark_command = {
    .name = "watermark",
    .flags = CMD_CONNECTS,
    .summary = "Show the id below which no id will be made any longer, in the whole instance",
    .details = "A program that repeatedly reads \"all ids since X\" reads up to it, and continues there the next "
               "time.\nAn answer that was made earlier may still be in flight, for at most fluid.forward-timeout.",
    .example = "idtree watermark --json",
    .json = "one object",
    .options = options,
    .run = run,
};
