/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* input.c - read a whole file that an operand names, or stdin */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/base/input.h"

const char *input_path (const struct cmd *cmd, int operand)
{
    return cmd->argc > operand && strcmp (cmd->argv[operand], "-") ? cmd->argv[operand] : NULL;
}

const char *input_name (const char *path)
{
    return path ? path : "stdin";
}

static char *read_stream (const struct cmd *cmd, FILE *f, const char *name, const char *what, size_t max, size_t *size)
{
    char *s = malloc (max + 1); /* the kernel allocates only the pages that are written */

    if (!s)
        cmd_die (cmd, "out of memory");
    size_t n = fread (s, 1, max + 1, f);
    if (ferror (f))
        cmd_die (cmd, "%s: %s", name, strerror (errno));
    if (n > max)
        cmd_die (cmd, "%s: %s has at most %zu bytes", name, what, max);
    s[n] = '\0';
    *size = n;
    return s;
}

char *input_read (const struct cmd *cmd, const char *path, const char *what, size_t max, size_t *size)
{
    FILE *f = path ? fopen (path, "r") : stdin;

    if (!f)
        cmd_die (cmd, "%s: %s", path, strerror (errno));
    char *s = read_stream (cmd, f, input_name (path), what, max, size);
    if (path)
        fclose (f);
    return s;
}
