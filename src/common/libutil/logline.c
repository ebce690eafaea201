/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* logline.c - format lines of the brokers' log for people */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libutil/errprintf.h"
#include "libutil/logline.h"

static const char *const levels[LOGLINE_LEVELS] = { "emerg",   "alert",  "crit", "err",
                                                    "warning", "notice", "info", "debug" };

const char *logline_level (int level)
{
    return level >= 0 && level < LOGLINE_LEVELS ? levels[level] : NULL;
}

int logline_level_parse (const char *name)
{
    for (int i = 0; i < LOGLINE_LEVELS; i++)
        if (!strcmp (name, levels[i]))
            return i;
    return -1;
}

int logline_parse (const char *line, struct logline *l)
{
    int pri, end = -1;

    if (sscanf (line, "<%d>1 %63s %31s %63s %*s %*s %*s%n", &pri, l->time, l->rank, l->name, &end) != 4 || end < 0
        || !logline_level (pri >> 3))
        return errset (EINVAL);
    l->level = pri >> 3;
    l->text = line + end + (line[end] == ' ');
    return 0;
}

int logline_format (const char *line, char *buf, size_t size)
{
    struct logline l;

    if (logline_parse (line, &l) < 0)
        return -1;
    snprintf (buf, size, "%s %s.%s[%s]: %s", l.time, l.name, logline_level (l.level), l.rank, l.text);
    return 0;
}
