/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* store_test.c - what was stored is there again; a file in use, damaged or foreign is refused with a reason */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "libutil/tap.h"
#include "modules/fluid/store.h"

static char dir[64];

static const char *file (const char *name)
{
    static char path[128];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return path;
}

static void make_dir (void)
{
    strcpy (dir, "/tmp/idtree-store-XXXXXX");
    if (!mkdtemp (dir))
        bail_out ("mkdtemp");
}

static void remove_dir (void)
{
    static const char *const names[] = { "fluid.sqlite", "fluid.sqlite-wal", "fluid.sqlite-shm", "fluid.sqlite-journal",
                                         "fluid.sqlite.holder" };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        unlink (file (names[i]));
    ok (rmdir (dir) == 0, "nothing else is left in the folder");
}

static struct store *open_store (struct store_content *content, idt_error_t *err)
{
    *err = (idt_error_t){ "" };
    return store_open (dir, "broker 12345678, process 1 on here", content, err);
}

/* Wait for the outcome of a write. */
static bool write_and_wait (struct store *st, uint64_t horizon, idt_error_t *err)
{
    struct pollfd pfd = { .fd = store_fd (st), .events = POLLIN };
    uint64_t stored = 0;
    bool good = false;

    store_write (st, horizon);
    do
        poll (&pfd, 1, -1);
    while (!store_result (st, &good, &stored, err));
    return good && stored == horizon;
}

static void test_good (void)
{
    struct store_content content;
    struct store *st;
    idt_error_t err;
    bool good;
    uint64_t h;

    make_dir ();
    st = open_store (&content, &err);
    ok (st && content.is_new, "a file that is not there is made: %s", err.text);
    ok (store_init (st, 1234567, &err) == 0, "and filled");
    ok (!store_result (st, &good, &h, &err), "without a write there is no outcome");
    ok (write_and_wait (st, 1000, &err) && write_and_wait (st, 2000, &err), "the thread stores horizons");
    ok (!store_result (st, &good, &h, &err), "each outcome is told once");
    ok (store_close (st, false, 0, &err) == 0, "a store is closed without a last word");
    st = open_store (&content, &err);
    ok (st && !content.is_new && content.horizon_ms == 2000 && content.epoch_ms == 1234567, "what was stored is there again");
    ok (store_close (st, true, 1500, &err) == 0 && (st = open_store (&content, &err)) && content.horizon_ms == 1500,
        "a clean stop may lower the horizon");
    store_write (st, 3000);
    ok (store_close (st, true, 2500, &err) == 0 && (st = open_store (&content, &err)) && content.horizon_ms == 2500,
        "and has the last word, whatever was under way");
    store_close (st, false, 0, &err);
    remove_dir ();
}

static void test_busy (void)
{
    struct store_content content;
    idt_error_t err;
    struct store *st, *second;
    int status;

    make_dir ();
    st = open_store (&content, &err);
    store_init (st, 1, &err);
    second = open_store (&content, &err);
    ok (!second && errno == EBUSY && strstr (err.text, dir) && strstr (err.text, "broker 12345678, process 1 on here"),
        "a second one in the same process is refused: %s", err.text);
    pid_t pid = fork ();
    if (pid == 0)
        _exit (!open_store (&content, &err) && errno == EBUSY ? 0 : 1);
    waitpid (pid, &status, 0);
    ok (status == 0, "and one in another process");
    ok (write_and_wait (st, 1000, &err), "which does no harm to the first");
    store_close (st, false, 0, &err);
    remove_dir ();
}

static void test_kill (void)
{
    struct store_content content;
    idt_error_t err;
    struct store *st;
    int to_parent[2];
    uint64_t told = 0, n;

    make_dir ();
    if (pipe (to_parent) < 0)
        bail_out ("pipe");
    pid_t pid = fork ();
    if (pid == 0) {
        st = open_store (&content, &err);
        store_init (st, 1, &err);
        for (uint64_t h = 1;; h++)
            if (!write_and_wait (st, h, &err) || write (to_parent[1], &h, sizeof (h)) < 0)
                _exit (1);
    }
    close (to_parent[1]);
    while (told < 200 && read (to_parent[0], &n, sizeof (n)) == sizeof (n))
        told = n;
    kill (pid, SIGKILL);
    while (read (to_parent[0], &n, sizeof (n)) == sizeof (n))
        told = n;
    waitpid (pid, NULL, 0);
    close (to_parent[0]);
    st = open_store (&content, &err);
    ok (st && told >= 200 && content.horizon_ms >= told, "after kill -9 the horizon is there that was told to be durable");
    store_close (st, false, 0, &err);
    remove_dir ();
}

static void overwrite (const char *name, off_t offset, const char *data, size_t size)
{
    int fd = open (file (name), O_WRONLY | O_CREAT, 0600);

    if (fd < 0 || pwrite (fd, data, size, offset) != (ssize_t)size)
        bail_out ("pwrite");
    close (fd);
}

static void test_damaged (void)
{
    char junk[4096];
    struct store_content content;
    idt_error_t err;
    struct store *st;

    memset (junk, 'x', sizeof (junk));
    make_dir ();
    overwrite ("fluid.sqlite", 0, junk, sizeof (junk));
    ok (!open_store (&content, &err) && errno == EBADMSG && strstr (err.text, "restore"), "a file of junk is refused: %s", err.text);
    unlink (file ("fluid.sqlite"));
    st = open_store (&content, &err);
    store_init (st, 1, &err);
    store_close (st, false, 0, &err);
    overwrite ("fluid.sqlite", 4096, junk, sizeof (junk));
    ok (!open_store (&content, &err) && errno == EBADMSG, "one with a damaged page too: %s", err.text);
    unlink (file ("fluid.sqlite"));
    st = open_store (&content, &err);
    store_init (st, 1, &err);
    store_close (st, false, 0, &err);
    overwrite ("fluid.sqlite", 68, "\0\0\0\1", 4);
    ok (!open_store (&content, &err) && errno == EBADMSG && strstr (err.text, "not a file of idtree"),
        "and another program's: %s", err.text);
    remove_dir ();
    ok (!open_store (&content, &err) && strstr (err.text, dir), "a folder that is not there is named: %s", err.text);
}

/* A disk that takes no more, as the limit of the size of files tells it. */
static void test_full (void)
{
    struct rlimit limit, old;
    struct store_content content;
    idt_error_t err;
    struct store *st;
    bool failed = false;
    uint64_t h = 1;

    make_dir ();
    signal (SIGXFSZ, SIG_IGN);
    st = open_store (&content, &err);
    store_init (st, 1, &err);
    getrlimit (RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 32768;
    setrlimit (RLIMIT_FSIZE, &limit);
    while (!failed && h < 1000)
        failed = !write_and_wait (st, h++, &err);
    setrlimit (RLIMIT_FSIZE, &old);
    ok (failed && strstr (err.text, dir), "a write that fails is told, with the reason: %s", err.text);
    ok (write_and_wait (st, 5000, &err), "and works again when the disk does");
    store_close (st, false, 0, &err);
    st = open_store (&content, &err);
    ok (st && content.horizon_ms == 5000, "nothing is lost");
    store_close (st, false, 0, &err);
    remove_dir ();
}

int main (void)
{
    test_good ();
    test_busy ();
    test_kill ();
    test_damaged ();
    test_full ();
    return done_testing ();
}
