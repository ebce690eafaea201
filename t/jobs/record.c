/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* record.c - lines that survive a kill of the process that wrote them */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "jobs.h"
#include "must.h"

#define LINE_MAX_SIZE 512

/* Pass all complete lines to 'line'. Returns the size of the file without an incomplete last line. */
static off_t read_lines (FILE *f, void (*line) (void *arg, char *line), void *arg)
{
    char *text = NULL;
    size_t size = 0;
    off_t end = 0;
    ssize_t n;

    while ((n = getline (&text, &size, f)) > 0 && text[n - 1] == '\n') {
        end += n;
        text[n - 1] = '\0';
        line (arg, text);
    }
    free (text);
    return end;
}

int record_open (const char *path, void (*line) (void *arg, char *line), void *arg)
{
    int fd = open (path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    FILE *f = fopen (path, "re");

    if (fd < 0 || !f || ftruncate (fd, read_lines (f, line, arg)) < 0)
        die (path);
    fclose (f);
    return fd;
}

void record_print (int fd, const char *fmt, ...)
{
    char text[LINE_MAX_SIZE];
    va_list ap;

    va_start (ap, fmt);
    int n = vsnprintf (text, sizeof (text) - 1, fmt, ap);
    va_end (ap);
    if (n > (int)sizeof (text) - 2)
        n = sizeof (text) - 2;
    text[n++] = '\n';
    if (write (fd, text, n) != n)
        die ("write");
}
