/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* input.c - what commands read: a whole file, or a stream line by line
 *
 * If the data contains a whole line, the line is passed on without a copy: a NUL replaces its newline.  Only a line
 * whose end is not in the data yet is copied.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/input.h"

#define CHUNK (256 * 1024) /* bytes of a read */

const char *input_path (const struct cmd *cmd, int operand)
{
    return cmd->argc > operand && strcmp (cmd->argv[operand], "-") ? cmd->argv[operand] : NULL;
}

const char *input_name (const char *path)
{
    return path ? path : "stdin";
}

char *input_read (const struct cmd *cmd, const char *path, const char *what, size_t max, size_t *size)
{
    FILE *f = path ? fopen (path, "r") : stdin;

    if (!f)
        cmd_die (cmd, "%s: %s", path, strerror (errno));
    char *s = malloc (max + 1); /* the kernel allocates only the pages that are written */
    if (!s)
        cmd_die (cmd, "out of memory");
    size_t n = fread (s, 1, max + 1, f);
    if (ferror (f))
        cmd_die (cmd, "%s: %s", input_name (path), strerror (errno));
    if (n > max)
        cmd_die (cmd, "%s: %s has at most %zu bytes", input_name (path), what, max);
    s[n] = '\0';
    *size = n;
    if (path)
        fclose (f);
    return s;
}

/* --- lines -------------------------------------------------------------------------------------- */

static void hand_out (struct lines *l, char *s, size_t len)
{
    l->line++;
    if (len > LINES_MAX) {
        len = LINES_MAX + 1;
        s[LINES_MAX] = '\0';
    }
    l->take (l->arg, l->line, s, len);
}

/* Keep the beginning of a line until the rest arrives. */
static void keep (struct lines *l, const char *data, size_t size)
{
    size_t have = l->len < LINES_MAX ? l->len : LINES_MAX;
    size_t room = LINES_MAX - have;

    memcpy (l->buf + have, data, size < room ? size : room);
    l->len += size;
}

static void hand_out_kept (struct lines *l)
{
    size_t len = l->len;

    assert (len > 0);
    l->buf[len < LINES_MAX ? len : LINES_MAX] = '\0';
    l->len = 0;
    hand_out (l, l->buf, len);
}

void lines_add (struct lines *l, char *data, size_t size)
{
    char *end = data + size, *newline;

    for (; (newline = memchr (data, '\n', end - data)); data = newline + 1) {
        if (l->len > 0) {
            keep (l, data, newline - data);
            hand_out_kept (l);
        }
        else {
            *newline = '\0';
            hand_out (l, data, newline - data);
        }
    }
    keep (l, data, end - data);
}

void lines_end (struct lines *l)
{
    if (l->len > 0)
        hand_out_kept (l);
}

int lines_read (struct lines *l, int fd)
{
    char *data = malloc (CHUNK);
    ssize_t n;

    if (!data)
        return -1;
    while ((n = read (fd, data, CHUNK)) != 0) {
        if (n > 0)
            lines_add (l, data, n);
        else if (errno != EINTR)
            break;
    }
    if (n == 0)
        lines_end (l);
    int saved = errno;
    free (data);
    errno = saved;
    return n == 0 ? 0 : -1;
}
