/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* instance.c - the instance under test
 *
 * The command of idtree start writes "up" to a pipe, and then reads another pipe until it ends. So this program learns
 * when all brokers are up, and stops the instance by closing its end of that pipe.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "instance.h"

#define ARGS_MAX 64
#define ANSWER_MAX 16384

extern char **environ;

struct instance {
    idt_reactor_t *r;
    const struct instance_config *config;
    const struct instance_ops *ops;
    void *arg;
    pid_t pid;                /* 0: the instance is down */
    int pid_fd, in_fd, up_fd; /* -1: closed */
    idt_watcher_t *pid_w, *up_w;
};

struct question {
    int fd;
    idt_watcher_t *w;
    instance_f cb;
    void *arg;
    uint32_t rank;
    size_t len;
    char buf[ANSWER_MAX];
};

/* --- questions ---------------------------------------------------------------------------------- */

static void end_question (struct question *q, const char *error)
{
    idt_watcher_destroy (q->w);
    close (q->fd);
    q->cb (q->arg, q->rank, error, q->buf);
    free (q);
}

static void take_answer (struct question *q)
{
    json_t *o = json_loads (q->buf, 0, NULL);
    const char *error = NULL;

    if (!o)
        error = "the launcher ended";
    else
        json_unpack (o, "{s:s}", "error", &error);
    end_question (q, error);
    json_decref (o);
}

static void question_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct question *q = arg;
    ssize_t n = recv (q->fd, q->buf + q->len, sizeof (q->buf) - 1 - q->len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        q->len += n;
    q->buf[q->len] = '\0';
    if (n <= 0 || memchr (q->buf, '\n', q->len) || q->len == sizeof (q->buf) - 1)
        take_answer (q);
}

static int open_question (struct instance *in, struct question *q, const char *verb)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    char text[128];
    bool term = !strcmp (verb, "term");
    int len = snprintf (text, sizeof (text), "{\"verb\":\"%s\",\"rank\":%u%s}\n", term ? "kill" : verb, q->rank,
                        term ? ",\"signal\":15" : "");

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/start", in->config->rundir);
    if (connect (q->fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 || send (q->fd, text, len, MSG_NOSIGNAL) != len)
        return -1;
    if (!(q->w = idt_fd_watcher_create (in->r, q->fd, IDT_POLLIN, question_cb, q)))
        die ("a question");
    idt_watcher_start (q->w);
    return 0;
}

void instance_ask (struct instance *in, const char *verb, uint32_t rank, instance_f cb, void *arg)
{
    struct question *q = calloc (1, sizeof (*q));

    if (!q || (q->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
        die ("a question");
    q->cb = cb;
    q->arg = arg;
    q->rank = rank;
    if (open_question (in, q, verb) < 0)
        end_question (q, "there is no launcher");
}

/* --- start ---------------------------------------------------------------------------------------- */

static void close_up (struct instance *in)
{
    idt_watcher_destroy (in->up_w);
    in->up_w = NULL;
    if (in->up_fd >= 0)
        close (in->up_fd);
    in->up_fd = -1;
}

static void close_in (struct instance *in)
{
    if (in->in_fd >= 0)
        close (in->in_fd);
    in->in_fd = -1;
}

static void up_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct instance *in = arg;
    char buf[16];
    bool up = read (in->up_fd, buf, sizeof (buf)) > 0;

    close_up (in);
    if (up)
        in->ops->up (in->arg);
}

static void ended_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct instance *in = arg;
    int status = 0;

    waitpid (in->pid, &status, 0);
    idt_watcher_destroy (in->pid_w);
    close (in->pid_fd);
    close_up (in);
    close_in (in);
    in->pid = 0;
    in->pid_w = NULL;
    in->pid_fd = -1;
    in->ops->down (in->arg, status);
}

static void add_args (const struct instance_config *c, const char *argv[ARGS_MAX], char text[4][300])
{
    size_t n = 0;

    snprintf (text[0], sizeof (text[0]), "%u", c->size);
    snprintf (text[1], sizeof (text[1]), "kary:%u", c->fanout);
    snprintf (text[2], sizeof (text[2]), "statedir=%s", c->statedir);
    const char *const head[] = { c->idtree, "start", "--size",  text[0], "--topology",
                                 text[1],   "--dir", c->rundir, "-o",    text[2] };
    const char *const tail[] = { "--", "/bin/sh", "-c", "echo up; exec >/dev/null cat", NULL };

    for (; n < sizeof (head) / sizeof (head[0]); n++)
        argv[n] = head[n];
    for (size_t i = 0; c->attrs[i]; i++) {
        assert (n + 2 + sizeof (tail) / sizeof (tail[0]) <= ARGS_MAX);
        argv[n++] = "-o";
        argv[n++] = c->attrs[i];
    }
    memcpy (argv + n, tail, sizeof (tail));
}

static void spawn (struct instance *in, int in_fd, int up_fd)
{
    const struct instance_config *c = in->config;
    const char *argv[ARGS_MAX];
    char text[4][300];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;

    add_args (c, argv, text);
    sigemptyset (&none);
    posix_spawnattr_init (&attr);
    posix_spawnattr_setsigmask (&attr, &none);
    posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_adddup2 (&files, in_fd, 0);
    posix_spawn_file_actions_adddup2 (&files, up_fd, 1);
    posix_spawn_file_actions_addopen (&files, 2, c->logfile, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if ((errno = posix_spawn (&in->pid, c->idtree, &files, &attr, (char **)argv, environ)) != 0)
        die (c->idtree);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attr);
}

void instance_start (struct instance *in)
{
    int to[2], from[2];

    assert (in->pid == 0);
    if (pipe2 (to, O_CLOEXEC) < 0 || pipe2 (from, O_CLOEXEC) < 0)
        die ("pipe");
    spawn (in, to[0], from[1]);
    close (to[0]);
    close (from[1]);
    in->in_fd = to[1];
    in->up_fd = from[0];
    if ((in->pid_fd = (int)syscall (SYS_pidfd_open, in->pid, 0)) < 0
        || !(in->pid_w = idt_fd_watcher_create (in->r, in->pid_fd, IDT_POLLIN, ended_cb, in))
        || !(in->up_w = idt_fd_watcher_create (in->r, in->up_fd, IDT_POLLIN, up_cb, in)))
        die ("an instance");
    idt_watcher_start (in->pid_w);
    idt_watcher_start (in->up_w);
}

void instance_stop (struct instance *in)
{
    if (in->pid == 0)
        return;
    if (in->up_fd >= 0) /* the instance is starting: the command does not run yet */
        kill (in->pid, SIGTERM);
    close_in (in);
}

/* Kill the launcher, which is the only child of the process that was started. Its brokers die with it, and the reaper
 * removes the rest.
 */
void instance_crash (struct instance *in)
{
    char path[64], text[64] = "";
    FILE *f;

    if (in->pid == 0)
        return;
    snprintf (path, sizeof (path), "/proc/%d/task/%d/children", (int)in->pid, (int)in->pid);
    if ((f = fopen (path, "re"))) {
        if (fgets (text, sizeof (text), f) && atoi (text) > 1)
            kill (atoi (text), SIGKILL);
        fclose (f);
    }
}

struct instance *instance_create (idt_reactor_t *r, const struct instance_config *config,
                                  const struct instance_ops *ops, void *arg)
{
    struct instance *in = calloc (1, sizeof (*in));

    if (!in)
        die ("an instance");
    in->r = r;
    in->config = config;
    in->ops = ops;
    in->arg = arg;
    in->pid_fd = in->in_fd = in->up_fd = -1;
    return in;
}

void instance_destroy (struct instance *in)
{
    free (in);
}

const char *instance_rundir (const struct instance *in)
{
    return in->config->rundir;
}
