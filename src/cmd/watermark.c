/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* watermark.c - idtree watermark: below which id all are made that ever will be */
#include <inttypes.h>
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
        cmd_die (cmd, "the broker's answer is not understood");
    out_print ("id         %s\ndate       %s\ntimestamp  %s ms after the epoch\nbehind     %" JSON_INTEGER_FORMAT
               " ms\n",
               id, date, timestamp, behind_ms);
}

static int run (struct cmd *cmd)
{
    cmd_options (cmd, NULL);
    json_t *o = ask_new (cmd, "fluid.watermark", IDT_NODEID_ANY, json_object (), "cannot tell the watermark");
    (cmd->json ? ask_print : print_text) (cmd, o);
    json_decref (o);
    return CMD_OK;
}

const struct command watermark_command = {
    .name = "watermark",
    .flags = CMD_CONNECTS,
    .summary = "Show the id below which none will be made any more, in the whole instance",
    .details = "Who reads \"all ids since X\" again and again reads up to it, and goes on there the next time.\n"
               "An answer that was made before may be on its way yet, for fluid.forward-timeout at most.",
    .example = "idtree watermark --json",
    .json = "one object",
    .run = run,
};
