/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* control_test.c - who may command the launcher, and where it listens */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/launch/control.h"
#include "test/tap.h"

#define NOBODY 65534

static int orders;

static json_t *status_cb (void *arg)
{
    orders++;
    return json_pack ("{s:[]}", "brokers");
}

static enum control_result order_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    orders++;
    return CONTROL_DONE;
}

static const struct control_ops ops = { status_cb, order_cb, order_cb };

/* Send a request as user 'uid', and write the answer to 'fd'. */
static void ask (const char *path, uid_t uid, int fd)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int sock = socket (AF_UNIX, SOCK_STREAM, 0);
    char buf[256];
    ssize_t n;

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", path);
    if (uid != geteuid () && setuid (uid) < 0)
        _exit (1);
    signal (SIGPIPE, SIG_IGN); /* the launcher may refuse a client before the client has sent its request */
    if (connect (sock, (struct sockaddr *)&addr, sizeof (addr)) < 0)
        _exit (dprintf (fd, "connect: %s", strerror (errno)) < 0);
    if (write (sock, "{\"verb\":\"status\"}\n", 18) < 0)
        dprintf (fd, "gone: ");
    while ((n = read (sock, buf, sizeof (buf))) > 0)
        if (write (fd, buf, n) < 0)
            break;
    _exit (0);
}

static void stop_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_reactor_stop (arg);
}

/* The answer that a process of user 'uid' gets. */
static const char *answer (idt_reactor_t *r, const char *path, uid_t uid)
{
    static char text[512];
    int fd[2];

    if (pipe (fd) < 0)
        bail_out ("no pipe");
    pid_t pid = fork ();
    if (pid == 0) {
        close (fd[0]);
        ask (path, uid, fd[1]);
    }
    close (fd[1]);
    idt_watcher_t *w = idt_fd_watcher_create (r, fd[0], IDT_POLLIN, stop_cb, r);
    idt_watcher_start (w);
    idt_reactor_run (r, IDT_REACTOR_DEFAULT);
    idt_watcher_destroy (w);
    waitpid (pid, NULL, 0); /* the answer may arrive in pieces */
    ssize_t n = read (fd[0], text, sizeof (text) - 1);
    text[n > 0 ? n : 0] = '\0';
    close (fd[0]);
    return text;
}

static void test_owner (idt_reactor_t *r, const char *dir, const char *path)
{
    struct stat st;

    ok (stat (path, &st) == 0 && (st.st_mode & 07777) == 0600,
        "the control socket belongs to the owner, and has mode 0600");
    ok (strstr (answer (r, path, geteuid ()), "brokers") && orders == 1, "the launcher answers a request of the owner");
    if (geteuid () != 0) {
        skip ("others are refused", "only root can become another user");
        return;
    }
    ok (strstr (answer (r, path, NOBODY), "Permission denied"), "other users cannot connect to the control socket");
    chmod (dir, 0777);
    chmod (path, 0777);
    ok (strstr (answer (r, path, NOBODY), "only the owner") && orders == 1,
        "the launcher refuses other users that can connect: %s", answer (r, path, NOBODY));
    chmod (dir, 0700);
}

static void test_dir (idt_reactor_t *r, const char *dir)
{
    idt_error_t err = { "" };
    char link[64];

    snprintf (link, sizeof (link), "%s/link", dir);
    chmod (dir, 0770);
    ok (!control_create (r, dir, &ops, NULL, &err) && errno == EPERM && strstr (err.text, "writable by no other user"),
        "a control directory that belongs to another user is refused: %s", err.text);
    chmod (dir, 0700);
    ok (symlink (".", link) == 0 && !control_create (r, link, &ops, NULL, &err) && errno == ELOOP,
        "a link to a control directory of another user is refused: %s", err.text);
    unlink (link);
}

#define DESCRIPTORS 64

/* Connect while this process has no descriptor left, and let the launcher see the connection. */
static void test_no_descriptor (idt_reactor_t *r, const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int sock = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), fd[DESCRIPTORS], n = 0;
    struct rlimit before, few;
    char text[128] = "";

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", path);
    getrlimit (RLIMIT_NOFILE, &before);
    few = (struct rlimit){ DESCRIPTORS, before.rlim_max };
    setrlimit (RLIMIT_NOFILE, &few);
    while (n < DESCRIPTORS && (fd[n] = open ("/dev/null", O_RDONLY)) >= 0)
        n++;
    ok (n < DESCRIPTORS && errno == EMFILE && connect (sock, (struct sockaddr *)&addr, sizeof (addr)) == 0,
        "the launcher accepts a client even when no descriptor is free");
    idt_reactor_run (r, IDT_REACTOR_NOWAIT);
    ok (read (sock, text, sizeof (text) - 1) > 0 && strstr (text, "no free file descriptor"),
        "a client that connects when no descriptor is free gets the reason: %s", text);
    while (n > 0)
        close (fd[--n]);
    setrlimit (RLIMIT_NOFILE, &before);
    close (sock);
    orders = 0;
    ok (strstr (answer (r, path, geteuid ()), "brokers") && orders == 1,
        "after a client that was refused for missing descriptors, the next client is answered");
}

int main (int argc, char *argv[])
{
    char dir[] = "/tmp/control_test-XXXXXX", path[64];
    idt_reactor_t *r = idt_reactor_create ();
    idt_error_t err;

    if (!mkdtemp (dir))
        bail_out ("no folder");
    snprintf (path, sizeof (path), "%s/%s", dir, CONTROL_SOCKET);
    test_dir (r, dir);
    struct control *ctl = control_create (r, dir, &ops, NULL, &err);
    ok (ctl != NULL, "the launcher listens in its own control directory");
    test_owner (r, dir, path);
    test_no_descriptor (r, path);
    control_destroy (ctl);
    idt_reactor_destroy (r);
    unlink (path);
    ok (rmdir (dir) == 0, "the launcher leaves nothing else in its control directory");
    return done_testing ();
}
