/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* statefile_test.c - the file 'instance' is complete, or refused */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libstate/statefile.h"
#include "test/tap.h"

#define UUID "01234567-89ab-4cde-8f01-23456789abcd"

static char dir[] = "statefile_test-XXXXXX";
static const char *path;

static struct statefile full (void)
{
    struct statefile s = {
        .uuid = UUID, .name = "a.b_c-1", .has_epoch = true, .epoch_ms = 1767225600000, .created_ms = 1767225601000
    };

    state_list_store (&s, "fluid.sqlite", false);
    state_list_store (&s, "old.sqlite", true);
    return s;
}

static bool same (const struct statefile *a, const struct statefile *b)
{
    return !strcmp (a->uuid, b->uuid) && !strcmp (a->name, b->name) && a->has_epoch == b->has_epoch
           && a->epoch_ms == b->epoch_ms && a->created_ms == b->created_ms && a->nstores == b->nstores
           && !memcmp (a->stores, b->stores, sizeof (a->stores));
}

/* Each user who may read a folder may lock it, and statedirs often have mode 0755. */
static void check_locked_folder (void)
{
    struct statefile s = full ();
    int fd = open (dir, O_RDONLY | O_DIRECTORY);
    idt_error_t err = { "" };

    alarm (60); /* ends the test if a call waits for that lock */
    ok (state_create (dir, &s, &err) == 0 && flock (fd, LOCK_EX) == 0 && state_add_store (dir, "new.sqlite", &err) == 0
            && state_drop_store (dir, "new.sqlite", &err) == 0,
        "a lock on the folder does not prevent changes of the statefile");
    alarm (0);
    close (fd);
    unlink (path);
}

static void check_moved (void)
{
    struct statefile s = full (), found = { .uuid = "" };
    idt_error_t err = { "" };

    ok (state_set_moved (dir, &err) < 0 && errno == ENOENT, "a folder without a statefile cannot be marked as moved");
    tap_must (state_create (dir, &s, &err) == 0);
    ok (state_set_moved (dir, &err) == 0, "a folder is marked as moved");
    ok (state_read (dir, &found, &err) < 0 && errno == STATE_REFUSED && !found.uuid[0]
            && strstr (err.text, "was moved to PostgreSQL"),
        "then it is refused: %s", err.text);
    ok (state_read_moved (dir, &found, &err) == 0 && found.moved && same (&found, &s),
        "who moves it once more finds all that was in the statefile");
    ok (state_set_moved (dir, &err) < 0 && errno == STATE_REFUSED && state_add_store (dir, "new.sqlite", &err) < 0
            && state_read_moved (dir, &found, &err) == 0 && found.moved && same (&found, &s),
        "nothing changes the statefile any longer");
    unlink (path);
    tap_must (state_create (dir, &s, &err) == 0);
    ok (state_read_moved (dir, &found, &err) == 0 && !found.moved, "a folder that was not moved has no such mark");
    unlink (path);
}

static void check_round (void)
{
    struct statefile s = full (), found, bare = { .uuid = UUID, .name = "x", .created_ms = 1000 };
    idt_error_t err;

    ok (state_read (dir, &found, &err) < 0 && errno == ENOENT,
        "reading a folder without a statefile fails with ENOENT");
    ok (state_create (dir, &s, &err) == 0 && state_read (dir, &found, &err) == 0 && same (&s, &found),
        "a written statefile is read with the same content");
    ok (state_create (dir, &bare, &err) < 0 && errno == EEXIST && state_read (dir, &found, NULL) == 0
            && same (&s, &found),
        "a statefile that exists is not created again: %s", err.text);
    ok (state_add_store (dir, "old.sqlite", &err) == 0 && state_add_store (dir, "new.sqlite", &err) == 0
            && state_add_store (dir, "fluid.sqlite", &err) == 0 && state_read (dir, &found, &err) == 0
            && found.nstores == 3 && !state_find_store (&found, "old.sqlite")->unmarked
            && state_find_store (&found, "new.sqlite"),
        "each store is added to the statefile once, and can be marked");
    ok (state_drop_store (dir, "fluid.sqlite", &err) == 0 && state_drop_store (dir, "fluid.sqlite", &err) < 0
            && errno == ENOENT && state_read (dir, &found, &err) == 0 && found.nstores == 2
            && !state_find_store (&found, "fluid.sqlite"),
        "a store can be given up once");
    unlink (path);
    ok (state_create (dir, &bare, NULL) == 0 && state_read (dir, &found, NULL) == 0 && !found.has_epoch,
        "a statefile may have no epoch");
    unlink (path);
    s.nstores = 0;
    memset (s.stores, 0, sizeof (s.stores));
    s.below_ms = 1767225700123;
    ok (state_recall (dir, 5, &found, NULL) < 0 && errno == ENOENT && state_remember (dir, 5, &s, NULL) == 0
            && state_recall (dir, 5, &found, NULL) == 0 && same (&s, &found) && found.below_ms == s.below_ms
            && state_recall (dir, 4, &found, NULL) < 0 && state_read (dir, &found, NULL) < 0,
        "each rank reads only its own file in memory");
    char memory[64];
    snprintf (memory, sizeof (memory), "%s/memory-5", dir);
    unlink (memory);
}

static void put (const char *text, size_t len)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd < 0 || write (fd, text, len) != (ssize_t)len)
        bail_out ("cannot write a file");
    close (fd);
}

static bool is_refused (void)
{
    struct statefile found;
    idt_error_t err;

    return state_read (dir, &found, &err) < 0 && errno == STATE_REFUSED && strstr (err.text, path);
}

/* Flip each bit of the file, and cut it at each length. */
static void check_damage (void)
{
    struct statefile s = full ();
    char text[STATE_TEXT_MAX];
    int taken = 0;

    state_create (dir, &s, NULL);
    int n = state_read_text (dir, "instance", text, NULL);
    for (int i = 0; i < 8 * n; i++) {
        text[i / 8] ^= (char)(1 << i % 8);
        put (text, n);
        taken += !is_refused ();
        text[i / 8] ^= (char)(1 << i % 8);
    }
    ok (n > 150 && taken == 0, "a statefile in which any bit is flipped is refused (%d bytes, %d accepted)", n, taken);
    for (int i = 0; i < n; i++) {
        put (text, i);
        taken += !is_refused ();
    }
    ok (taken == 0, "a truncated statefile is refused");
    put ("idtree-state 2\nother things\n", 28);
    struct statefile found;
    idt_error_t err;
    ok (state_read (dir, &found, &err) < 0 && strstr (err.text, "later version"),
        "a statefile of a later version is refused: %s", err.text);
    unlink (path);
}

static void check_strangers (void)
{
    struct statefile found;

    ok (symlink ("/etc/passwd", path) == 0 && state_read (dir, &found, NULL) < 0 && errno == ELOOP,
        "a link in place of the statefile is not followed");
    unlink (path);
    ok (mkfifo (path, 0600) == 0 && state_read (dir, &found, NULL) < 0,
        "a fifo in place of the statefile is refused without blocking");
    unlink (path);
}

static void check_words (void)
{
    char longest[STATE_NAME_SIZE + 1];

    memset (longest, 'x', sizeof (longest));
    longest[STATE_NAME_SIZE] = '\0';
    ok (!state_name_is_good (longest) && state_name_is_good (longest + 1) && !state_name_is_good ("")
            && !state_name_is_good ("a b") && !state_name_is_good ("a\n") && !state_name_is_good ("\303\244"),
        "names of stores must be short and plain");
    ok (state_uuid_is_good (UUID) && !state_uuid_is_good (UUID "0") && !state_uuid_is_good ("")
            && !state_uuid_is_good ("0123456789ab-4cde-8f01-23456789abcd00")
            && !state_uuid_is_good ("01234567-89AB-4CDE-8F01-23456789ABCD"),
        "the UUIDs of a statefile must be in lower case");
    ok (state_network_name (0x6969) && state_network_name (0x0bd00bd0) && state_network_name (0xffffffffff534d42)
            && !state_network_name (0xef53) && !state_network_name (0x01021994) && !state_network_name (0x58465342),
        "the file systems NFS, Lustre and CIFS are shared by hosts; ext4, tmpfs and XFS are not");
    ok (state_check_local (".", NULL) == 0 || errno == STATE_REFUSED,
        "the file system of the current folder is classified");
}

/* A write is cut at the limit of file sizes, and the next write reports the cause. */
static void check_limit (void)
{
    struct rlimit limit, old;
    struct statefile s = full ();
    idt_error_t err;

    signal (SIGXFSZ, SIG_IGN);
    getrlimit (RLIMIT_FSIZE, &old);
    limit = old;
    limit.rlim_cur = 20;
    setrlimit (RLIMIT_FSIZE, &limit);
    int rc = state_create (dir, &s, &err), errnum = errno;
    setrlimit (RLIMIT_FSIZE, &old);
    ok (rc < 0 && errnum == EFBIG && strstr (err.text, "File too large") && access (path, F_OK) < 0,
        "a limit of file sizes that stops a write is not reported as a full disk: %s", err.text);
}

int main (void)
{
    char buf[64];

    if (!mkdtemp (dir))
        bail_out ("cannot make a folder");
    snprintf (buf, sizeof (buf), "%s/instance", dir);
    path = buf;
    check_limit ();
    check_locked_folder ();
    check_moved ();
    check_round ();
    check_damage ();
    check_strangers ();
    check_words ();
    ok (rmdir (dir) == 0, "the folder of the test is empty in the end");
    return done_testing ();
}
