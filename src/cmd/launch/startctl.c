/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* startctl.c - idtree startctl: kill, stop, continue and restart single brokers of idtree start */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/base/ask.h"
#include "cmd/base/out.h"
#include "cmd/base/suggest.h"
#include "cmd/base/table.h"
#include "cmd/launch/control.h"

static const char *const verbs[] = { "status", "kill", "stop", "cont", "run" };
#define VERBS (sizeof (verbs) / sizeof (verbs[0]))

#define SCHEME "local://"

/* Write the address of the launcher's socket.  It is in the folder of the broker's socket, or of the first one if the
 * URI names several.
 */
static void socket_path (struct cmd *cmd, struct sockaddr_un *addr)
{
    const char *uri = cmd->uri ? cmd->uri : idt_default_uri ();
    const char *path = strncmp (uri, SCHEME, strlen (SCHEME)) ? "" : uri + strlen (SCHEME);
    const char *next = strstr (path, SCHEME);
    const char *slash = memrchr (path, '/', next ? (size_t)(next - path) : strlen (path));

    if (!slash
        || snprintf (addr->sun_path, sizeof (addr->sun_path), "%.*s/%s", (int)(slash - path), path, CONTROL_SOCKET)
               >= (int)sizeof (addr->sun_path))
        cmd_die (cmd, "%s is not the URI of a local broker", uri);
}

/* Limit how long connecting, sending and waiting may take.  A stopped launcher does not accept connections either. */
static void limit_wait (struct cmd *cmd, int fd)
{
    double ms = cmd->timeout_ms < 0 ? 0 : cmd->timeout_ms; /* 0 means no limit, also for setsockopt () */
    struct timeval tv = { .tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)((int64_t)(ms * 1000) % 1000000) };

    if (setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof (tv)) < 0
        || setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof (tv)) < 0)
        cmd_die (cmd, "%s", strerror (errno));
}

__attribute__ ((noreturn)) static void die_unreachable (struct cmd *cmd, const char *path)
{
    if (errno == EACCES)
        cmd_die (cmd, "%s: " CONTROL_OWNER_ONLY, path);
    if (errno == EAGAIN)
        cmd_die (cmd, "the launcher at %s does not answer: is it stopped, or busy with other commands?", path);
    cmd_die (cmd, "no launcher at %s (was the instance started by idtree start?): %s", path, strerror (errno));
}

static FILE *connect_launcher (struct cmd *cmd)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    socket_path (cmd, &addr);
    if (fd < 0)
        cmd_die (cmd, "%s", strerror (errno));
    limit_wait (cmd, fd);
    if (connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0)
        die_unreachable (cmd, addr.sun_path);
    FILE *f = fdopen (fd, "r");
    if (!f)
        cmd_die (cmd, "%s", strerror (errno));
    return f;
}

/* Send 'request' (stolen).  If the launcher refuses this client, the connection may be closed already; the launcher's
 * answer can still be read then.
 */
static void send_request (struct cmd *cmd, int fd, json_t *request)
{
    char *line = request ? json_dumps (request, JSON_COMPACT) : NULL;

    if (!line)
        cmd_die (cmd, "out of memory");
    size_t len = strlen (line);
    line[len++] = '\n'; /* replaces the NUL */
    if (send (fd, line, len, MSG_NOSIGNAL) != (ssize_t)len && errno != EPIPE && errno != ECONNRESET)
        cmd_die (cmd, "the launcher closed the connection: %s", strerror (errno));
    free (line);
    json_decref (request);
}

/* Send 'request' (stolen) and return the answer. */
static json_t *call_new (struct cmd *cmd, json_t *request)
{
    FILE *f = connect_launcher (cmd);
    char *line = NULL;
    const char *text;
    size_t size = 0;
    json_t *o;

    send_request (cmd, fileno (f), request);
    ssize_t n = getline (&line, &size, f);
    if (n > 0 && line[0] == '\0') /* the greeting of Flux's local connector */
        cmd_die (cmd, "the launcher is not idtree start but flux start: nothing was done");
    if (n < 0 && errno == EAGAIN)
        cmd_die (cmd, "not done after %g s (--timeout): idtree startctl status shows the brokers' states",
                 cmd->timeout_ms / 1000);
    if (n <= 0 || !(o = json_loads (line, 0, NULL)))
        cmd_die (cmd, "the launcher closed the connection");
    free (line);
    fclose (f);
    if (json_unpack (o, "{s:s}", "error", &text) == 0)
        cmd_die (cmd, "%s", text);
    return o;
}

static int print_status (struct cmd *cmd)
{
    static const struct table_column columns[] = {
        { "RANK", "rank", TABLE_RIGHT },
        { "PID", "pid", TABLE_RIGHT },
        { "STATE", "state", 0 },
    };
    json_t *o = call_new (cmd, json_pack ("{s:s}", "verb", "status"));

    table_print_rows (cmd, columns, 3, json_object_get (o, "brokers"));
    json_decref (o);
    return CMD_OK;
}

static void take_signal (struct cmd *cmd, const char *arg, void *to)
{
    const char *name = strncmp (arg, "SIG", 3) ? arg : arg + 3;
    int *signum = to;

    for (int sig = 1; sig < NSIG; sig++) {
        const char *abbrev = sigabbrev_np (sig);

        if (abbrev && !strcmp (abbrev, name)) {
            *signum = sig;
            return;
        }
    }
    if (*arg < '0' || *arg > '9') {
        char quoted[CMD_QUOTE_MAX];

        cmd_usage (cmd, "'%s' is not a signal, as TERM or 15", cmd_quote (arg, strlen (arg), quoted));
    }
    *signum = cmd_number (cmd, "signal", arg, 1, NSIG - 1);
}

static void check_verb (struct cmd *cmd, const char *verb)
{
    for (size_t i = 0; i < VERBS; i++)
        if (!strcmp (verbs[i], verb))
            return;
    const char *meant = suggest (verb, verbs, VERBS);
    char quoted[CMD_QUOTE_MAX];
    cmd_quote (verb, strlen (verb), quoted);
    if (meant)
        cmd_usage (cmd, "unknown verb '%s': did you mean %s?", quoted, meant);
    cmd_usage (cmd, "unknown verb '%s': the verbs are status, kill, stop, cont and run", quoted);
}

static int compare_ranks (const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return x < y ? -1 : x > y;
}

static int *take_ranks (struct cmd *cmd, int n)
{
    int *ranks = calloc (n + 1, sizeof (ranks[0]));

    if (!ranks)
        cmd_die (cmd, "out of memory");
    for (int i = 0; i < n; i++)
        ranks[i] = cmd_number (cmd, "rank", cmd->argv[i + 1], 0, INT_MAX);
    qsort (ranks, n, sizeof (ranks[0]), compare_ranks); /* start parents before the children that wait for them */
    return ranks;
}

/* A broker is up when it is connected to rank 0.  Warn if rank 0 does not run, so that the broker waits for it. */
static void warn_waiting (struct cmd *cmd, int rank)
{
    json_t *o = call_new (cmd, json_pack ("{s:s}", "verb", "status"));
    const char *state = "";

    json_unpack (json_array_get (json_object_get (o, "brokers"), 0), "{s:s}", "state", &state);
    if (rank > 0 && strcmp (state, "up") != 0 && strcmp (state, "starting") != 0)
        cmd_warn (cmd, "broker %d waits for rank 0 (%s), for broker.join-timeout at most: idtree startctl %s 0", rank,
                  state, !strcmp (state, "stopped") ? "cont" : "run");
    json_decref (o);
}

static void change (struct cmd *cmd, const char *verb, int signum)
{
    int n = cmd->argc - 1, *ranks = take_ranks (cmd, n);

    for (int i = 0; i < n; i++) {
        if (!strcmp (verb, "run"))
            warn_waiting (cmd, ranks[i]);
        json_decref (call_new (cmd, json_pack ("{s:s s:i s:i}", "verb", verb, "rank", ranks[i], "signal", signum)));
    }
    free (ranks);
}

static int run (struct cmd *cmd)
{
    int signum = SIGKILL;

    cmd_options (cmd, &signum);
    const char *verb = cmd->argv[0];
    check_verb (cmd, verb);
    if (!strcmp (verb, "status") && cmd->argc > 1)
        cmd_usage (cmd, "status is of all ranks: it takes no RANK");
    if (!strcmp (verb, "status"))
        return print_status (cmd);
    if (cmd->argc < 2)
        cmd_usage (cmd, "%s needs a RANK", verb);
    change (cmd, verb, signum);
    if (cmd->json)
        out_print ("{}\n");
    return CMD_OK;
}

static const struct cmd_option options[] = {
    { 0, "signal", "SIG", "for kill: a name or a number (default KILL)", take_signal, 0 },
    CMD_OPTIONS_END,
};

const struct command startctl_command = {
    .name = "startctl",
    .operands = "status|kill|stop|cont|run [RANK]...",
    .flags = CMD_CONNECTS,
    .summary = "Kill, stop, continue and restart brokers of idtree start",
    .details = "Each verb waits until it is done: the broker has ended, is stopped, is continued, is up.",
    .example = "idtree startctl kill 3 && idtree startctl run 3",
    .json = "one object a line, for each broker (status), else an empty one",
    .options = options,
    .run = run,
};
