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

/* Returns NULL, or what is wrong with the line. */
static const char *take_line (struct attrs *attrs, char *line)
{
    char *name = trim (line), *equal, *value;

    if (*name == '\0' || *name == '#')
        return NULL;
    if (!(equal = strchr (name, '=')))
        return "must read ATTR = VALUE";
    *equal = '\0';
    if (!(value = unquote (trim (equal + 1))))
        return "a quote is missing";
    if (attr_give (attrs, trim (name), value) < 0)
        return errno == EINVAL ? "the name is missing" : strerror (errno);
    return NULL;
}

int conffile_load (struct attrs *attrs, const char *path, idt_error_t *errp)
{
    FILE *f = fopen (path, "re");
    const char *fault = NULL;
    char *line = NULL;
    size_t size = 0;
    int n = 0;

    if (!f)
        return errprintf (errp, "%s: %s", path, strerror (errno));
    while (!fault && getline (&line, &size, f) >= 0) {
        n++;
        fault = take_line (attrs, line);
    }
    free (line);
    if (!fault && ferror (f)) {
        errprintf (errp, "%s: %s", path, strerror (errno));
        fclose (f);
        return -1;
    }
    fclose (f);
    if (fault) {
        errno = EINVAL;
        return errprintf (errp, "%s:%d: %s", path, n, fault);
    }
    return 0;
}
