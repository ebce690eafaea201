/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peek.c - read some bytes of an SQLite file without SQLite */
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsqlite/peek.h"

/* A log has a head, then frames. A frame has a head and a page. */
#define LOG_HEAD 32
#define LOG_PAGE_SIZE_OFFSET 8
#define FRAME_HEAD 24   /* begins with the number of the page */
#define FRAMES_MAX 4096 /* that are read: the first commit made the tables, and the id */

static uint32_t read_u32 (int fd, off_t offset)
{
    uint32_t n;

    return fd >= 0 && pread (fd, &n, sizeof (n), offset) == sizeof (n) ? ntohl (n) : 0;
}

static int open_beside (const char *path, const char *suffix)
{
    char beside[PATH_MAX];

    if (snprintf (beside, sizeof (beside), "%s%s", path, suffix) >= (int)sizeof (beside))
        return -1;
    return open (beside, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static void end (int fd)
{
    if (fd >= 0)
        close (fd);
}

uint32_t peek_u32 (const char *path, off_t offset)
{
    int fd = open_beside (path, "");
    uint32_t n = read_u32 (fd, offset);

    end (fd);
    return n;
}

bool peek_is_torn (const char *path)
{
    static const char *const suffixes[] = { "-wal", "-journal" };
    bool torn = false;

    for (size_t i = 0; i < sizeof (suffixes) / sizeof (suffixes[0]); i++) {
        int fd = open_beside (path, suffixes[i]);
        struct stat sb;

        torn |= fd >= 0 && fstat (fd, &sb) == 0 && sb.st_size > 0;
        end (fd);
    }
    return torn;
}

/* The application id of the first copy of page 1 in the log that has one. */
static uint32_t find_id (int fd)
{
    off_t frame = FRAME_HEAD + (off_t)read_u32 (fd, LOG_PAGE_SIZE_OFFSET), at = LOG_HEAD;
    uint32_t id = 0, page;

    for (int i = 0; i < FRAMES_MAX && !id && (page = read_u32 (fd, at)) != 0; i++, at += frame)
        if (page == 1)
            id = read_u32 (fd, at + FRAME_HEAD + PEEK_ID_OFFSET);
    return id;
}

uint32_t peek_application_id (const char *path)
{
    uint32_t id = peek_u32 (path, PEEK_ID_OFFSET);
    int fd = id ? -1 : open_beside (path, "-wal");

    if (fd >= 0)
        id = find_id (fd);
    end (fd);
    return id;
}
