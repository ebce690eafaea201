/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* spec.c - make the jobspec of a command */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cmd/job/spec.h"

static json_t *words_new (const struct cmd *cmd, int argc, char **argv)
{
    json_t *words = json_array ();

    for (int i = 0; i < argc; i++) {
        char quoted[CMD_QUOTE_MAX];

        if (json_array_append_new (words, json_string (argv[i])) < 0)
            cmd_die (cmd, "'%s' is not UTF-8, as a jobspec must be", cmd_quote (argv[i], strlen (argv[i]), quoted));
    }
    return words;
}

char *spec_of_command (const struct cmd *cmd, int argc, char **argv)
{
    char cwd[PATH_MAX];

    if (!getcwd (cwd, sizeof (cwd)))
        cmd_die (cmd, "the working directory: %s", strerror (errno));
    json_t *spec = json_pack ("{s:i s:[{s:s s:i s:s s:[{s:s s:i}]}] s:[{s:o s:s s:{s:i}}] s:{s:{s:i s:s}}}", //
                              "version", 1,                                                                  //
                              "resources", "type", "slot", "count", 1, "label", "task",                      //
                              "with", "type", "core", "count", 1,                                            //
                              "tasks", "command", words_new (cmd, argc, argv), "slot", "task",               //
                              "count", "per_slot", 1,                                                        //
                              "attributes", "system", "duration", 0, "cwd", cwd);
    char *text = spec ? json_dumps (spec, JSON_COMPACT) : NULL;

    if (!text)
        cmd_die (cmd, "the working directory has a name that is not UTF-8, as a jobspec must be");
    json_decref (spec);
    return text;
}
