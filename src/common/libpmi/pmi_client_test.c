/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_client_test.c - the client side of PMI-1 against scripted servers, idtree's server, and Hydra
 *
 * "pmi_client_test.t rank" acts as one rank under a launcher that set PMI_FD: it runs the whole exchange.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libpmi/pmi_client.h"
#include "libpmi/pmi_server.h"
#include "test/tap.h"

#define RANKS 5
#define HELLO "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
#define MAXES "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=100\n"
#define NAME "cmd=my_kvsname kvsname=k\n"

/* --- a scripted server ------------------------------------------------------------------------ */

/* Answer each received line with the next of 'answers', then close. */
static void play (int fd, const char *const *answers)
{
    char c;

    for (; *answers; answers++) {
        while (read (fd, &c, 1) == 1 && c != '\n')
            ;
        if (write (fd, *answers, strlen (*answers)) < 0)
            break;
    }
    _exit (0);
}

static pid_t start_script (const char *const *answers, int *fd)
{
    int fds[2];
    pid_t pid;

    if (socketpair (AF_UNIX, SOCK_STREAM, 0, fds) < 0 || (pid = fork ()) < 0)
        bail_out ("no child");
    if (pid == 0) {
        close (fds[0]);
        play (fds[1], answers);
    }
    close (fds[1]);
    *fd = fds[0];
    return pid;
}

/* Whether a client that gets these answers fails with 'errnum' and a text that contains 'word'. */
static bool refused (int errnum, const char *word, const char *const *answers)
{
    idt_error_t error = { "" };
    int fd;
    pid_t pid = start_script (answers, &fd);
    struct pmi_client *c = pmi_client_create (fd, 3, 4, 0, &error);
    int e = errno;

    if (!c)
        close (fd);
    pmi_client_destroy (c);
    waitpid (pid, NULL, 0);
    if (!c && e == errnum && strstr (error.text, word))
        return true;
    diag ("%s: %s", strerror (e), error.text);
    return false;
}

#define SCRIPT(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_refusals (void)
{
    ok (refused (EPROTO, "init of rank 3 of 4", SCRIPT ("what?\n")),
        "EPROTO: the server sends a malformed answer to init");
    ok (refused (EPROTO, "version 1", SCRIPT ("cmd=response_to_init pmi_version=2 rc=0\n")),
        "EPROTO: the server has another version");
    ok (refused (EPROTO, "version 1", SCRIPT ("cmd=response_to_init pmi_version=1 rc=-1\n")),
        "EPROTO: the server refuses init");
    ok (refused (EPROTO, "get_maxes", SCRIPT (HELLO, "cmd=maxes keylen_max=64\n")),
        "EPROTO: the server does not send a limit");
    ok (refused (EPROTO, "get_maxes", SCRIPT (HELLO, "cmd=maxes keylen_max=0 vallen_max=1\n")),
        "EPROTO: a limit of the server is too small");
    ok (refused (EPROTO, "get_my_kvsname", SCRIPT (HELLO, MAXES, "cmd=my_kvsname\n")),
        "EPROTO: the server does not send the name of the key-value space");
    ok (refused (EPROTO, "init", SCRIPT (HELLO MAXES)), "EPROTO: the server sends another answer than expected");
    ok (refused (ECONNRESET, "closed", SCRIPT (HELLO)), "ECONNRESET: the server closes the connection");
    ok (refused (ECONNRESET, "closed", SCRIPT (HELLO, "cmd=maxes key")),
        "ECONNRESET: the server closes the connection in the middle of a line");
    idt_error_t error;
    ok (!pmi_client_create (-1, 0, 1, 0, &error) && errno == EBADF && strstr (error.text, "PMI_FD -1"),
        "EBADF: PMI_FD is not open");
}

static void test_results (void)
{
    int fd;
    char buf[8] = "same", key[65], value[101];
    pid_t pid = start_script (
        SCRIPT (HELLO, MAXES, NAME, "cmd=put_result rc=-1 msg=no\n", "cmd=get_result rc=-1 msg=no value=unknown\n",
                "cmd=get_result rc=0 value=longer than 8\n", "cmd=get_result rc=0 msg=success value=a b\n",
                "cmd=get_result rc=0 value=a b found=TRUE\n", "cmd=get_result rc=0 value= found=FALSE\n",
                "cmd=barrier_out\n", "cmd=get_result rc=0\n"),
        &fd);
    struct pmi_client *c = pmi_client_create (fd, 0, 1, 0, NULL);

    if (!ok (c && !strcmp (pmi_client_kvsname (c), "k"), "a client knows the name of its key-value space"))
        return;
    memset (key, 'k', sizeof (key));
    memset (value, 'v', sizeof (value));
    key[64] = value[100] = '\0';
    ok (pmi_client_put (c, key, "v", NULL) < 0 && errno == EINVAL && pmi_client_put (c, "k", value, NULL) < 0
            && errno == EINVAL && pmi_client_get (c, key, buf, sizeof (buf), NULL) < 0 && errno == EINVAL,
        "EINVAL: a value is above the limits of the server");
    ok (pmi_client_put (c, "a b", "v", NULL) < 0 && errno == EINVAL && pmi_client_put (c, "k", "v\nw", NULL) < 0
            && errno == EINVAL,
        "EINVAL: a value has characters that PMI cannot transmit");
    ok (pmi_client_put (c, "k", "v", NULL) < 0 && errno == EEXIST, "EEXIST: the server refuses a put");
    ok (pmi_client_get (c, "k", buf, sizeof (buf), NULL) < 0 && errno == ENOENT && !strcmp (buf, "same"),
        "ENOENT: the requested key does not exist");
    ok (pmi_client_get (c, "k", buf, sizeof (buf), NULL) < 0 && errno == EOVERFLOW && !strcmp (buf, "same"),
        "EOVERFLOW: the buffer for a value is too small");
    ok (pmi_client_get (c, "k", buf, sizeof (buf), NULL) == 0 && !strcmp (buf, "a b"), "a value may contain blanks");
    ok (pmi_client_get (c, "k", buf, sizeof (buf), NULL) == 0 && !strcmp (buf, "a b"),
        "the word that MPICH 4.2 and newer append to a value is not part of the value");
    ok (pmi_client_get (c, "k", buf, sizeof (buf), NULL) < 0 && errno == ENOENT && !strcmp (buf, "a b"),
        "ENOENT: the word that MPICH appends says that the key does not exist");
    ok (pmi_client_barrier (c, NULL) == 0, "an answer without the word rc is a success");
    ok (pmi_client_get (c, "k", buf, sizeof (buf), NULL) < 0 && errno == EPROTO,
        "EPROTO: an answer that reports success has no value");
    waitpid (pid, NULL, 0);
    ok (pmi_client_finalize (c, NULL) < 0 && (errno == EPIPE || errno == ECONNRESET),
        "no signal is raised if the server has closed the connection");
    pmi_client_destroy (c);
    pmi_client_destroy (NULL);
}

/* --- the whole exchange ----------------------------------------------------------------------- */

/* Put a bizcard, and read the bizcards of all other ranks. Returns 0 if all are as expected. */
static int be_rank (int fd, int rank, int size)
{
    idt_error_t error = { "" };
    char key[32], bizcard[128], expect[128];
    struct pmi_client *c = pmi_client_create (fd, rank, size, 0, &error);

    if (!c)
        goto error;
    snprintf (key, sizeof (key), "bizcard.%d", rank);
    snprintf (bizcard, sizeof (bizcard), "tcp://127.0.0.1:%d,rq:rM>}U?@Lns47E1%%kR.o@n%%FcmmsL/@{H8]yf7", rank);
    if (pmi_client_put (c, key, bizcard, &error) < 0 || pmi_client_barrier (c, &error) < 0)
        goto error;
    for (int peer = 0; peer < size; peer++) {
        snprintf (key, sizeof (key), "bizcard.%d", peer);
        snprintf (expect, sizeof (expect), "tcp://127.0.0.1:%d,rq:rM>}U?@Lns47E1%%kR.o@n%%FcmmsL/@{H8]yf7", peer);
        if (pmi_client_get (c, key, bizcard, sizeof (bizcard), &error) < 0 || strcmp (bizcard, expect))
            goto error;
    }
    if (pmi_client_get (c, "nosuch", bizcard, sizeof (bizcard), NULL) == 0 || errno != ENOENT
        || pmi_client_finalize (c, &error) < 0)
        goto error;
    pmi_client_destroy (c);
    return 0;
error:
    fprintf (stderr, "# rank %d: %s\n", rank, error.text);
    pmi_client_destroy (c);
    return 1;
}

static void send_cb (void *arg, int rank, const char *line)
{
    if (write (((int *)arg)[rank], line, strlen (line)) < 0)
        diag ("write to rank %d: %s", rank, strerror (errno));
}

static int make_secret_cb (void *arg, int rank, char *buf, size_t size)
{
    return -1;
}

static void finalized_cb (void *arg, int rank)
{
}

static const struct pmi_server_ops ops = { .send = send_cb, .make_secret = make_secret_cb, .finalized = finalized_cb };

static void serve (struct pmi_server *s, int *fds)
{
    for (int open = RANKS; open > 0;) {
        struct pollfd pfds[RANKS];
        char buf[256];

        for (int i = 0; i < RANKS; i++)
            pfds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
        wait_until (poll (pfds, RANKS, TAP_WAIT_S * 1000) > 0);
        for (int i = 0; i < RANKS; i++) {
            if (!pfds[i].revents)
                continue;
            ssize_t n = read (fds[i], buf, sizeof (buf));
            if (n <= 0 || pmi_server_input (s, i, buf, n, NULL) < 0) {
                close (fds[i]);
                fds[i] = -1;
                open--;
            }
        }
    }
}

static void test_our_server (void)
{
    int fds[RANKS], good = 0;
    pid_t pids[RANKS];
    struct pmi_server *s = pmi_server_create (RANKS, "kvs", &ops, fds);

    for (int i = 0; i < RANKS; i++) {
        int pair[2];

        if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            bail_out ("socketpair");
        if ((pids[i] = fork ()) == 0) {
            close (pair[0]);
            for (int k = 0; k < i; k++)
                close (fds[k]);
            _exit (be_rank (pair[1], i, RANKS));
        }
        close (pair[1]);
        fds[i] = pair[0];
    }
    serve (s, fds);
    for (int i = 0; i < RANKS; i++) {
        int status;

        good += waitpid (pids[i], &status, 0) == pids[i] && status == 0;
    }
    pmi_server_destroy (s);
    ok (good == RANKS, "%d ranks exchange their bizcards through idtree's server", RANKS);
}

static void test_hydra (const char *self)
{
    char cmd[4200];
    const char *what = "4 ranks exchange their bizcards through Hydra";

    if (system ("command -v mpiexec.hydra >/dev/null 2>&1") != 0) {
        skip (what, "mpiexec.hydra is not installed");
        return;
    }
    snprintf (cmd, sizeof (cmd), "mpiexec.hydra -n 4 '%s' rank </dev/null", self);
    ok (system (cmd) == 0, "%s", what);
}

static int env_int (const char *name)
{
    const char *s = getenv (name);

    return s ? atoi (s) : -1;
}

int main (int argc, char **argv)
{
    if (argc > 1 && !strcmp (argv[1], "rank"))
        return be_rank (env_int ("PMI_FD"), env_int ("PMI_RANK"), env_int ("PMI_SIZE"));
    test_refusals ();
    test_results ();
    test_our_server ();
    test_hydra (argv[0]);
    return done_testing ();
}
