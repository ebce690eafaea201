/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* twin.c - a second broker for a rank that has a broker already
 *
 * This program is the launcher of the second broker. PMI-1 answers each line with a line, and a broker always boots in
 * the same way. So the stored answers are sent to the twin in the same order, and its requests are not read.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"
#include "host.h"
#include "twin.h"

#define ARGS_MAX 64
#define ENV_MAX 512
#define PMI_FD 3 /* descriptor of the twin's PMI connection */
#define KEPT_MAX 65536

extern char **environ;

struct twin {
    idt_reactor_t *r;
    const struct twin_config *config;
    pid_t pid; /* 0: there is no twin */
    uint32_t rank;
    int fd; /* this end of its PMI connection */
    idt_watcher_t *w;
    char answers[KEPT_MAX]; /* the messages of the launcher that were stored */
    size_t len, said;
};

/* --- launcher ------------------------------------------------------------------------------------ */

static bool read_answers (struct twin *t, uint32_t rank)
{
    char path[256];
    FILE *f;

    snprintf (path, sizeof (path), "%s/%u", t->config->pmidir, rank);
    t->len = t->said = 0;
    if ((f = fopen (path, "re"))) {
        t->len = fread (t->answers, 1, sizeof (t->answers), f);
        fclose (f);
    }
    return t->len > 0;
}

static void say_line (struct twin *t)
{
    char *line = t->answers + t->said, *end = memchr (line, '\n', t->len - t->said);

    if (!end) { /* the first broker has never sent this request */
        idt_watcher_stop (t->w);
        return;
    }
    t->said += end + 1 - line;
    send (t->fd, line, end + 1 - line, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void pmi_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct twin *t = arg;
    char buf[4096];
    ssize_t n = recv (t->fd, buf, sizeof (buf), MSG_DONTWAIT);

    if (n <= 0)
        idt_watcher_stop (w);
    for (ssize_t i = 0; i < n; i++)
        if (buf[i] == '\n')
            say_line (t);
}

/* --- process --------------------------------------------------------------------------------------- */

static void add_args (const struct twin *t, const char *argv[ARGS_MAX], char text[3][300])
{
    const struct instance_config *c = t->config->instance;
    size_t n = 0;

    snprintf (text[0], sizeof (text[0]), "tbon.topo=kary:%u", c->fanout);
    snprintf (text[1], sizeof (text[1]), "statedir=%s", c->statedir);
    snprintf (text[2], sizeof (text[2]), "rundir=%s", t->config->rundir);
    argv[n++] = "idtree-broker";
    for (int i = 0; i < 3; i++) {
        argv[n++] = "-o";
        argv[n++] = text[i];
    }
    for (size_t i = 0; c->attrs[i]; i++) {
        assert (n + 3 <= ARGS_MAX);
        argv[n++] = "-o";
        argv[n++] = c->attrs[i];
    }
    argv[n] = NULL;
}

/* Make the environment of the twin from the environment of this program, without the variables for links and for
 * storing PMI, and with the PMI variables of the twin.
 */
static void add_env (const struct twin *t, const char *env[ENV_MAX], char text[3][64])
{
    size_t n = 0;

    snprintf (text[0], sizeof (text[0]), "PMI_FD=%d", PMI_FD);
    snprintf (text[1], sizeof (text[1]), "PMI_RANK=%u", t->rank);
    snprintf (text[2], sizeof (text[2]), "PMI_SIZE=%u", t->config->instance->size);
    for (int i = 0; i < 3; i++)
        env[n++] = text[i];
    for (char **e = environ; *e && n < ENV_MAX - 1; e++)
        if (strncmp (*e, HOST_ENV_LINKS "=", sizeof (HOST_ENV_LINKS)) != 0
            && strncmp (*e, HOST_ENV_PMI "=", sizeof (HOST_ENV_PMI)) != 0)
            env[n++] = *e;
    env[n] = NULL;
}

static void spawn (struct twin *t, int pmi_fd)
{
    const char *argv[ARGS_MAX], *env[ENV_MAX];
    char args[3][300], vars[3][64];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;

    add_args (t, argv, args);
    add_env (t, env, vars);
    sigemptyset (&none);
    posix_spawnattr_init (&attr);
    posix_spawnattr_setsigmask (&attr, &none);
    posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addopen (&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen (&files, 2, t->config->instance->logfile, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2 (&files, 2, 1);
    posix_spawn_file_actions_adddup2 (&files, pmi_fd, PMI_FD);
    if ((errno = posix_spawn (&t->pid, t->config->broker, &files, &attr, (char **)argv, (char **)env)) != 0)
        die (t->config->broker);
    posix_spawn_file_actions_destroy (&files);
    posix_spawnattr_destroy (&attr);
}

/* Redirect clients of twins to the socket that this twin will serve. */
static void link_socket (struct twin *t)
{
    char path[256];

    snprintf (path, sizeof (path), "%s/local-%u", t->config->rundir, t->rank);
    unlink (t->config->socket);
    if (symlink (path, t->config->socket) < 0)
        die (t->config->socket);
}

bool twin_start (struct twin *t, uint32_t rank)
{
    int fds[2];

    if (t->pid != 0 || rank == 0 || !read_answers (t, rank))
        return false;
    t->rank = rank;
    link_socket (t);
    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        die ("a twin");
    t->fd = fds[0];
    spawn (t, fds[1]);
    close (fds[1]);
    if (!(t->w = idt_fd_watcher_create (t->r, t->fd, IDT_POLLIN, pmi_cb, t)))
        die ("a twin");
    idt_watcher_start (t->w);
    return true;
}

void twin_kill (struct twin *t, uint32_t rank)
{
    if (t->pid == 0 || t->rank != rank)
        return;
    kill (t->pid, SIGKILL);
    waitpid (t->pid, NULL, 0);
    t->pid = 0;
    idt_watcher_destroy (t->w);
    close (t->fd);
}

/* --- life -------------------------------------------------------------------------------------------- */

struct twin *twin_create (idt_reactor_t *r, const struct twin_config *config)
{
    struct twin *t = calloc (1, sizeof (*t));

    if (!t)
        die ("a twin");
    t->r = r;
    t->config = config;
    return t;
}

void twin_destroy (struct twin *t)
{
    if (!t)
        return;
    twin_kill (t, t->rank);
    free (t);
}
