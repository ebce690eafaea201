/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lines.c - a stream cut into lines
 *
 * A line that is complete in the data is passed on in place, with its newline replaced by a NUL.  Only a line that the
 * end of the data cuts is copied.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/lines.h"

#define CHUNK (256 * 1024) /* bytes of a read */

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
