/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* convert.c - a stream of ids, one a line, to another form
 *
 * A line that lies whole in the data is parsed where it is, with its newline made a NUL; only
 * what is cut by the end of the data is copied.
 */
#include <errno.h>
#include <string.h>

#include "cmd/convert.h"

void convert_line (struct convert *c, const char *s, size_t len)
{
    char text[FLUID_STRING_MAX + 1];
    fluid_t id;

    c->line++;
    if (strlen (s) != len || len > CONVERT_LINE_MAX)
        errno = EINVAL;
    else if (fluid_parse (s, &id) == 0) {
        int n = fluid_encode (id, c->form, text, FLUID_STRING_MAX);

        text[n] = '\n';
        fwrite_unlocked (text, 1, n + 1, c->out);
        return;
    }
    c->bad (c->arg, c->line, s, len > CONVERT_LINE_MAX ? CONVERT_LINE_MAX : len, errno);
}

/* Keep the beginning of a line until the rest comes. */
static void keep (struct convert *c, const char *data, size_t size)
{
    size_t room = c->len < CONVERT_LINE_MAX ? CONVERT_LINE_MAX - c->len : 0;

    memcpy (c->buf + (c->len < CONVERT_LINE_MAX ? c->len : CONVERT_LINE_MAX), data,
            size < room ? size : room);
    c->len += size;
}

static void do_kept (struct convert *c)
{
    size_t len = c->len;

    c->buf[len < CONVERT_LINE_MAX ? len : CONVERT_LINE_MAX] = '\0';
    c->len = 0;
    convert_line (c, c->buf, len);
}

void convert_init (struct convert *c, enum fluid_form form, FILE *out, convert_bad_f bad, void *arg)
{
    c->form = form;
    c->out = out;
    c->bad = bad;
    c->arg = arg;
    c->line = 0;
    c->len = 0;
}

void convert_add (struct convert *c, char *data, size_t size)
{
    char *end = data + size, *newline;

    for (; (newline = memchr (data, '\n', end - data)); data = newline + 1) {
        if (c->len > 0) {
            keep (c, data, newline - data);
            do_kept (c);
        } else {
            *newline = '\0';
            convert_line (c, data, newline - data);
        }
    }
    keep (c, data, end - data);
}

void convert_end (struct convert *c)
{
    if (c->len > 0)
        do_kept (c);
}
