/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* follow.c - requests for ids that arrive line by line
 *
 * The reader of stdout may close it while no request arrives, so stdout is polled as well as stdin.  SIGPIPE would end
 * the program, too, but not with status 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/base/input.h"
#include "cmd/base/out.h"
#include "cmd/id/follow.h"
#include "libutil/duration.h"

#define CHUNK (64 * 1024) /* bytes of a read: the size of a pipe's buffer */

struct follow {
    const struct cmd *cmd;
    uint64_t max;
    uint64_t wanted;
    uint64_t bad_line; /* 0: none */
    char bad[CMD_QUOTE_MAX];
};

static void take_line (void *arg, uint64_t line, const char *s, size_t len)
{
    struct follow *f = arg;
    uint64_t n = 1;

    if (f->bad_line > 0)
        return;
    if (len == 0 || (strlen (s) == len && parse_number (s, 1, f->max, &n) == 0)) {
        f->wanted += n;
        return;
    }
    f->bad_line = line;
    cmd_quote (s, len, f->bad);
}

static bool reader_is_gone (void)
{
    struct pollfd out = { .fd = STDOUT_FILENO };

    return poll (&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

/* End without writing the buffer, as stdout has no reader. */
static void end_quietly (void) __attribute__ ((noreturn));

static void end_quietly (void)
{
    _exit (CMD_OK);
}

static void write_out (const struct cmd *cmd)
{
    idt_error_t why;

    if (out_flush (stdout, &why) == 0)
        return;
    if (reader_is_gone ())
        end_quietly ();
    cmd_die (cmd, "cannot write: %s", why.text);
}

static void serve (struct follow *f, follow_f make, void *arg)
{
    if (f->wanted > 0)
        make (arg, f->wanted);
    f->wanted = 0;
    write_out (f->cmd);
    if (f->bad_line > 0)
        cmd_die (f->cmd, "line %" PRIu64 ": '%s': a number from 1 to %" PRIu64 " is needed, or nothing for 1",
                 f->bad_line, f->bad, f->max);
}

/* Returns the number of bytes, 0 at the end. */
static size_t read_some (const struct cmd *cmd, char *data)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = STDOUT_FILENO } };
    ssize_t n;

    do {
        if (poll (fds, 2, -1) >= 0 && fds[1].revents & (POLLERR | POLLHUP))
            end_quietly ();
        n = read (STDIN_FILENO, data, CHUNK);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        cmd_die (cmd, "cannot read stdin: %s", strerror (errno));
    return n;
}

void follow (const struct cmd *cmd, uint64_t max, follow_f make, void *arg)
{
    struct follow f = { .cmd = cmd, .max = max };
    struct lines lines = { .take = take_line, .arg = &f };
    char data[CHUNK];
    size_t n;

    signal (SIGPIPE, SIG_IGN);
    while ((n = read_some (cmd, data)) > 0) {
        lines_add (&lines, data, n);
        serve (&f, make, arg);
    }
    lines_end (&lines);
    serve (&f, make, arg);
}
