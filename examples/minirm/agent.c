/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* agent.c - the part of minirm that runs commands: one agent on each rank
 *
 * An accepted request is answered when its command has ended. If the requester or the agent ends, the command is
 * killed, with all processes of its process group.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "minirm.h"

struct run {
    pid_t pid;                /* 0: the slot is free */
    const idt_msg_t *request; /* NULL: the requester has ended */
};

struct agent {
    idt_t *h;
    uint32_t rank;
    int signals; /* a signalfd for SIGCHLD and the signals that end the agent */
    int slots;
    struct run run[MAX_SLOTS];
};

static struct run *find_run (struct agent *a, pid_t pid)
{
    for (int i = 0; i < a->slots; i++)
        if (a->run[i].pid == pid)
            return &a->run[i];
    return NULL;
}

/* --- a command begins -------------------------------------------------------------------------------------------- */

/* Return the strings of an array, which are borrowed; the caller frees the list. Returns NULL with errno EPROTO (the
 * array is empty, or has other values) or ENOMEM.
 */
static char **make_argv (const json_t *command)
{
    size_t n = json_array_size (command), strings = 0;
    char **argv = calloc (n + 1, sizeof (*argv));

    while (argv && strings < n && (argv[strings] = (char *)json_string_value (json_array_get (command, strings))))
        strings++;
    if (argv && strings == n && n > 0)
        return argv;
    errno = argv ? EPROTO : ENOMEM;
    free (argv);
    return NULL;
}

/* Run the command in a process group of its own, with no signals blocked and an empty standard input. Returns 0 or an
 * errno.
 */
static int spawn (char **argv, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;

    sigemptyset (&none);
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_addopen (&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init (&attr);
    posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask (&attr, &none);
    int errnum = posix_spawnp (pid, argv[0], &actions, &attr, argv, environ);
    posix_spawnattr_destroy (&attr);
    posix_spawn_file_actions_destroy (&actions);
    return errnum;
}

static void run_command (struct agent *a, const idt_msg_t *msg, const json_t *command)
{
    struct run *run = find_run (a, 0);
    char text[256];

    if (!run) {
        snprintf (text, sizeof (text), "rank %u runs %d commands already", a->rank, a->slots);
        idt_respond_error (a->h, msg, EAGAIN, text);
        return;
    }
    char **argv = make_argv (command);
    int errnum = argv ? spawn (argv, &run->pid) : errno;
    if (errnum) {
        snprintf (text, sizeof (text), "cannot run %.150s: %s",
                  argv ? argv[0] : "it, its command is not an array of strings", strerror (errnum));
        run->pid = 0;
        idt_respond_error (a->h, msg, errnum, text);
    }
    else
        run->request = idt_msg_ref (msg);
    free (argv);
}

static void run_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_error_t error;
    json_t *o, *command;
    const char *id;

    if (idt_msg_unpack (msg, &o, &error, "{s:s s:o}", "id", &id, "command", &command) < 0) {
        idt_respond_error (h, msg, EPROTO, error.text);
        return;
    }
    run_command (arg, msg, command);
    json_decref (o);
}

/* --- it ends ----------------------------------------------------------------------------------------------------- */

static void ended (struct agent *a, struct run *run, int status)
{
    if (run->request)
        idt_respond_pack (a->h, run->request, "{s:i}", "status",
                          WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status));
    idt_msg_unref (run->request);
    *run = (struct run){ 0 };
}

static void reap (struct agent *a)
{
    struct run *run;
    pid_t pid;
    int status;

    while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
        if ((run = find_run (a, pid)))
            ended (a, run, status);
}

static void signal_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct agent *a = arg;
    struct signalfd_siginfo si;

    while (read (a->signals, &si, sizeof (si)) == sizeof (si))
        if (si.ssi_signo != SIGCHLD)
            idt_reactor_stop (idt_get_reactor (a->h));
    reap (a);
}

static void kill_run (struct run *run)
{
    if (run->pid > 0)
        kill (-run->pid, SIGKILL);
    idt_msg_unref (run->request);
    run->request = NULL;
}

/* Whether two messages are from the same requester. The oldest route of a message identifies its requester, because
 * there the message entered the tree.
 */
static bool same_asker (const idt_msg_t *a, const idt_msg_t *b)
{
    const char *x = idt_msg_route_oldest (a), *y = idt_msg_route_oldest (b);

    return x && y && strcmp (x, y) == 0;
}

static void disconnect_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct agent *a = arg;

    for (int i = 0; i < a->slots; i++)
        if (a->run[i].request && same_asker (a->run[i].request, msg))
            kill_run (&a->run[i]);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void announce (struct agent *a)
{
    char s[64];

    snprintf (s, sizeof (s), "{\"rank\":%u,\"slots\":%d}", a->rank, a->slots);
    idt_future_destroy (idt_event_publish (a->h, "minirm.agent", 0, s));
}

static void hello_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    if (is_owners (msg))
        announce (arg);
}

/* Only the instance's owner may send requests: 0 stands for IDT_ROLE_OWNER. */
static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "minirm-exec.run", run_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "minirm-exec.disconnect", disconnect_cb, 0 },
    { IDT_MSGTYPE_EVENT, "minirm.hello", hello_cb, 0 },
    IDT_HANDLERS_END,
};

static int watch_signals (struct agent *a, idt_watcher_t **w)
{
    sigset_t set;

    sigemptyset (&set);
    sigaddset (&set, SIGCHLD);
    sigaddset (&set, SIGTERM);
    sigaddset (&set, SIGINT);
    sigprocmask (SIG_BLOCK, &set, NULL);
    if ((a->signals = signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0
        || !(*w = idt_fd_watcher_create (idt_get_reactor (a->h), a->signals, IDT_POLLIN, signal_cb, a)))
        return -1;
    idt_watcher_start (*w);
    return 0;
}

/* Wait for the answer. Returns 0, or -1 after a message. */
static int done (idt_future_t *f, const char *what)
{
    int rc = f ? idt_rpc_get (f, NULL) : -1;

    if (rc < 0)
        complain (what, f ? idt_future_error (f) : strerror (errno));
    idt_future_destroy (f);
    return rc;
}

/* Serve requests until the agent ends. Handlers are set first, because a request may arrive as soon as the service is
 * registered.
 */
static int serve (struct agent *a)
{
    if (idt_handlers_add (a->h, handlers, a) < 0
        || done (idt_event_subscribe (a->h, "minirm.hello"), "minirm.hello") < 0
        || done (idt_service_add (a->h, "minirm-exec"), "service minirm-exec") < 0)
        return 1;
    announce (a);
    if (idt_reactor_run (idt_get_reactor (a->h), IDT_REACTOR_DEFAULT) == 0)
        return 0;
    complain ("the broker is gone", strerror (errno));
    return 1;
}

int agent_main (idt_t *h, int slots)
{
    struct agent a = { .h = h, .signals = -1, .slots = slots };
    idt_watcher_t *w = NULL;
    int rc = 1;

    if (idt_get_rank (h, &a.rank) < 0 || watch_signals (&a, &w) < 0)
        complain ("cannot start", strerror (errno));
    else
        rc = serve (&a);
    for (int i = 0; i < slots; i++)
        kill_run (&a.run[i]);
    idt_handlers_remove (h, handlers);
    idt_watcher_destroy (w);
    if (a.signals >= 0)
        close (a.signals);
    return rc;
}
