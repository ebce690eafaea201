/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* conffile.c - attributes from a file */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/conffile.h"
#include "libutil/errprintf.h"

#define LINE_MAX_SIZE (ATTR_NAME_MAX + ATTR_VALUE_MAX + 256) /* with its NUL */

/* Cut blanks off both ends, in place. */
static char *trim (char *s)
{
    char *end = s + strlen (s);

    while (end > s && isspace ((unsigned char)end[-1]))
        *--end = '\0';
    while (isspace ((unsigned char)*s))
        s++;
    return s;
}

/* Take the quotes off.  NULL: one is missing. */
static char *unquote (char *s)
{
    size_t len = strlen (s);

    if (*s != '"')
        return s;
    if (len < 2 || s[len - 1] != '"')
        return NULL;
    s[len - 1] = '\0';
    return s + 1;
}

/* Returns 0, or -1 with 'errp' filled. */
static int take_line (struct attrs *attrs, char *line, idt_error_t *errp)
{
    char *name = trim (line), *equal, *value;

    errno = EINVAL;
    if (*name == '\0' || *name == '#')
        return 0;
    if (!(equal = strchr (name, '=')))
        return errprintf (errp, "must read ATTR = VALUE");
    *equal = '\0';
    name = trim (name);
    if (!(value = unquote (trim (equal + 1))))
        return errprintf (errp, "a quote is missing");
    return attr_give (attrs, name, value, errp);
}

/* Returns 1 for a line (without its newline), 0 at the end, or -1 with 'errp' filled. */
static int read_line (FILE *f, char line[LINE_MAX_SIZE], idt_error_t *errp)
{
    size_t len = 0;
    int c;

    while ((c = getc (f)) != EOF && c != '\n') {
        errno = EINVAL;
        if (c == '\0')
            return errprintf (errp, "byte %zu is NUL: not a file of attributes", len + 1);
        if (len + 1 == LINE_MAX_SIZE)
            return errprintf (errp, "a line has at most %d bytes", LINE_MAX_SIZE - 1);
        line[len++] = (char)c;
    }
    line[len] = '\0';
    return ferror (f) ? errprintf (errp, "%s", strerror (errno)) : c != EOF || len > 0;
}

static int take_lines (struct attrs *attrs, FILE *f, const char *path, idt_error_t *errp)
{
    char *line = malloc (LINE_MAX_SIZE);
    idt_error_t why = { "out of memory" };
    int n = 0, rc = line ? 1 : -1;

    while (rc > 0) {
        n++;
        if ((rc = read_line (f, line, &why)) > 0 && take_line (attrs, line, &why) < 0)
            rc = -1;
    }
    free (line);
    return rc < 0 ? errprintf (errp, "%s:%d: %s", path, n, why.text) : 0;
}

int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp)
{
    FILE *f = fopen (path, "re");

    if (!f)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    int rc = take_lines (attrs, f, path, errp), saved = errno;
    fclose (f);
    errno = saved;
    return rc;
}
