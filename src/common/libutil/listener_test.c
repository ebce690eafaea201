/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listener_test.c - one of several processes gets a socket path, and no process removes the socket of another */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/private_dir.h"
#include "test/tap.h"

#define PROCESSES 16
#define ROUNDS 20

static bool opens (struct listener *l, const char *path, int errnum, const char *text)
{
    idt_error_t err = { "" };

    if (listener_open (l, path, SOCK_STREAM, 8, &err) == 0)
        return errnum == 0;
    if (errno != errnum)
        diag ("%s: %s", strerror (errno), err.text);
    return errno == errnum && l->fd < 0 && strstr (err.text, path) && strstr (err.text, text);
}

/* The state that a killed process leaves behind, and the state of a living process between bind () and listen (). */
static int bind_only (const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_STREAM, 0);

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", path);
    if (fd < 0 || bind (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0)
        bail_out ("no socket");
    return fd;
}

static bool exists (const char *path)
{
    return access (path, F_OK) == 0;
}

static void test_one (void)
{
    struct listener l, other;
    struct stat st;

    ok (opens (&l, "s", 0, "") && listener_is_served ("s", SOCK_STREAM),
        "a socket on which a process listens accepts connections");
    ok (stat ("s", &st) == 0 && (st.st_mode & 0777) == 0600, "only the owner of a socket may connect");
    ok (opens (&other, "s", EADDRINUSE, "another process serves"),
        "a second process that wants to listen on the same socket is refused");
    listener_close (&l);
    ok (!exists ("s") && !exists ("s.lock"), "the last process that listens removes the socket and the lock");
    close (bind_only ("s"));
    ok (!listener_is_served ("s", SOCK_STREAM) && opens (&l, "s", 0, ""),
        "a socket on which no process listens is replaced");
    listener_close (&l);
    close (open ("s", O_WRONLY | O_CREAT, 0600));
    ok (opens (&l, "s", EEXIST, "not a socket") && exists ("s"),
        "a file that is not a socket is kept, and listening is refused");
    unlink ("s");
    char path[150] = ""; /* short enough for an error text together with its sentence */
    memset (path, 'a', sizeof (path) - 1);
    ok (opens (&l, path, ENAMETOOLONG, "107"), "a path that is too long for a socket is refused with the limit");
    ok (opens (&l, "nowhere/s", ENOENT, "nowhere/s.lock"),
        "a missing folder of a socket is refused with the path of the lock");
}

static void test_between_bind_and_listen (void)
{
    int lock = private_lock (".", "s.lock", 0, NULL), fd = bind_only ("s");
    struct listener_place mine, there;
    struct listener l;

    listener_note (&mine, "s");
    ok (opens (&l, "s.", 0, ""), "two sockets with different paths have different locks");
    listener_close (&l);
    idt_error_t err;
    ok (lock >= 0 && listener_open (&l, "s", SOCK_STREAM, 8, &err) < 0 && errno == EBUSY && strstr (err.text, "lock")
            && listener_note (&there, "s") == 0 && there.ino == mine.ino,
        "a socket whose process does not listen yet is not replaced");
    listen (fd, 8);
    private_unlock (lock, ".", "s.lock");
    ok (opens (&l, "s", EADDRINUSE, "another process serves"), "a socket whose process listens is not replaced");
    close (fd);
    unlink ("s");
}

static void test_replaced (void)
{
    struct listener l, other;

    ok (opens (&l, "s", 0, "") && unlink ("s") == 0 && opens (&other, "s", 0, ""),
        "a process replaces the socket of a process that has ended");
    listener_close (&l);
    ok (listener_is_served ("s", SOCK_STREAM),
        "a process that ends does not remove the socket of the process that replaced it");
    listener_close (&other);
    ok (!exists ("s"), "a process that replaced a socket removes it at its end");
}

/* Wait until all processes have started, then until 'hold' is closed. */
static int contend (int start, int result, int hold)
{
    struct listener l;
    idt_error_t err;
    char byte;

    if (read (start, &byte, 1) != 0)
        return 1;
    byte = listener_open (&l, "s", SOCK_STREAM, 64, &err) == 0 ? 'y' : errno == EADDRINUSE ? 'n' : '?';
    if (write (result, &byte, 1) != 1 || read (hold, &byte, 1) != 0)
        return 1;
    return 0;
}

/* Several processes start together where a dead one left its socket. Returns how many got the path, or -1 if one failed
 * in another way.
 */
static int race (void)
{
    int start[2], result[2], hold[2], won = 0, lost = 0;
    char byte;

    close (bind_only ("s"));
    if (pipe (start) < 0 || pipe (result) < 0 || pipe (hold) < 0)
        bail_out ("no pipe");
    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork ();

        if (pid < 0)
            bail_out ("no process");
        if (pid > 0)
            continue;
        close (start[1]);
        close (hold[1]);
        _exit (contend (start[0], result[1], hold[0]));
    }
    close (start[1]);
    for (int i = 0; i < PROCESSES && read (result[0], &byte, 1) == 1; i++) {
        won += byte == 'y';
        lost += byte == 'n';
    }
    bool served = listener_is_served ("s", SOCK_STREAM);
    close (hold[1]);
    while (wait (NULL) > 0)
        ;
    close (start[0]);
    close (result[0]);
    close (result[1]);
    close (hold[0]);
    unlink ("s");
    return served && won + lost == PROCESSES ? won : -1;
}

static void test_race (void)
{
    int good = 0;

    for (int i = 0; i < ROUNDS; i++)
        good += race () == 1;
    ok (good == ROUNDS, "of %d processes that start at the same time exactly one listens, and the others are refused",
        PROCESSES);
}

int main (void)
{
    char dir[] = "listener_test-XXXXXX";

    if (!mkdtemp (dir) || chdir (dir) < 0)
        bail_out ("no folder");
    test_one ();
    test_between_bind_and_listen ();
    test_replaced ();
    test_race ();
    if (chdir ("..") < 0 || rmdir (dir) < 0)
        diag ("%s: %s", dir, strerror (errno));
    return done_testing ();
}
