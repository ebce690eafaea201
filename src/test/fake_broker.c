/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* fake_broker.c - acts like a broker towards its launcher, and can misbehave, for tests of the launcher
 *
 * It boots over PMI, listens on its socket without answering, and ends on SIGTERM or when rank 0 ends. It takes these
 * options as -o ATTR=VALUE:
 *   rundir=DIR       where to create "local-RANK", and "secret-RANK" with the key pair that the launcher passed
 *   die=RANK         rank RANK exits with status 3 when it starts
 *   silent=RANK      rank RANK does nothing
 *   stubborn=RANK    rank RANK ignores SIGTERM
 *   nursery=none     the zygote ends when it starts
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/boot/zygote.h"
#include "libpmi/pmi_client.h"

static const char *attr (int argc, char **argv, const char *name)
{
    size_t len = strlen (name);

    for (int i = 1; i < argc; i++)
        if (!strncmp (argv[i], name, len) && argv[i][len] == '=')
            return argv[i] + len + 1;
    return NULL;
}

static bool is_rank (int argc, char **argv, const char *name, int rank)
{
    const char *s = attr (argc, argv, name);

    return s && atoi (s) == rank;
}

static int local_socket (const char *rundir, int rank, struct sockaddr_un *addr)
{
    addr->sun_family = AF_UNIX;
    snprintf (addr->sun_path, sizeof (addr->sun_path), "%.90s/local-%d", rundir, rank);
    return socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int listen_at (const char *rundir, int rank)
{
    struct sockaddr_un addr;
    int fd = local_socket (rundir, rank, &addr);

    unlink (addr.sun_path);
    return fd < 0 || bind (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0 ? -1 : listen (fd, 64);
}

/* Wait until rank 0, the parent of all ranks, has ended. */
static void wait_for_parent (const char *rundir)
{
    struct sockaddr_un addr;
    int fd = local_socket (rundir, 0, &addr);
    char c;

    if (connect (fd, (struct sockaddr *)&addr, sizeof (addr)) == 0)
        (void)!read (fd, &c, 1);
}

static void note_secret (const char *rundir, int rank, const char *secret)
{
    char path[128];

    snprintf (path, sizeof (path), "%.90s/secret-%d", rundir, rank);
    FILE *f = fopen (path, "a");
    if (f) {
        fprintf (f, "%s\n", secret);
        fclose (f);
    }
}

static int boot (const char *rundir, int rank, int size)
{
    char key[32], bizcard[256];
    struct pmi_client *c = pmi_client_create (atoi (getenv ("PMI_FD")), rank, size, 0, NULL);

    if (!c || pmi_client_get (c, "idtree.secret", bizcard, sizeof (bizcard), NULL) < 0)
        return -1;
    note_secret (rundir, rank, bizcard);
    snprintf (key, sizeof (key), "idtree.bizcard.%d", rank);
    if (listen_at (rundir, rank) < 0 || pmi_client_put (c, key, "a bizcard", NULL) < 0
        || pmi_client_barrier (c, NULL) < 0
        || pmi_client_get (c, "idtree.bizcard.0", bizcard, sizeof (bizcard), NULL) < 0
        || pmi_client_finalize (c, NULL) < 0)
        return -1;
    pmi_client_destroy (c);
    return 0;
}

static void prepare (void *arg)
{
}

static int be_broker (int argc, char **argv)
{
    int rank = atoi (getenv ("PMI_RANK")), size = atoi (getenv ("PMI_SIZE"));
    const char *rundir = attr (argc, argv, "rundir");

    if (is_rank (argc, argv, "stubborn", rank))
        signal (SIGTERM, SIG_IGN);
    if (is_rank (argc, argv, "die", rank))
        return 3;
    if (is_rank (argc, argv, "silent", rank))
        pause ();
    if (!rundir || boot (rundir, rank, size) < 0)
        return 1;
    if (rank > 0)
        wait_for_parent (rundir);
    while (rank == 0 || is_rank (argc, argv, "stubborn", rank))
        pause ();
    return 0;
}

/* The launcher starts a broker with blocked signals, so that no signal ends the broker before the broker handles
 * signals.
 */
static void take_signals (void)
{
    static const int signals[] = BROKER_SIGNALS;
    sigset_t set;

    sigprocmask (SIG_BLOCK, NULL, &set);
    for (const int *sig = signals; *sig != 0; sig++) {
        if (!sigismember (&set, *sig)) {
            fprintf (stderr, "fake-broker: %s is not blocked at the start of a broker\n", strsignal (*sig));
            exit (5);
        }
    }
    sigemptyset (&set);
    sigprocmask (SIG_SETMASK, &set, NULL);
}

int main (int argc, char **argv)
{
    take_signals ();
    if (attr (argc, argv, "nursery") && getenv (ZYGOTE_VARIABLE))
        return 4;
    return zygote_serve (prepare, NULL) < 0 ? 2 : be_broker (argc, argv);
}
