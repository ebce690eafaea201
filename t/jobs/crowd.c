/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* crowd.c - submitters on many ranks and a consumer, each a process that is killed from time to time
 *
 * They work until standard input ends. Then their records are checked. Every second submitter uses keys. A restarted
 * consumer continues after its record, or after the acknowledged jobs. Each time it watches at another rank.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs.h"
#include "judge.h"
#include "must.h"
#include "../chaos/rng.h"

#define PATH_SIZE 256
#define GAP_MIN_MS 100 /* shortest time between two kills */
#define GAP_MAX_MS 2000
#define WINDOW "32"
#define SUBMITTERS 2 /* submitters on each rank */

struct member {
    pid_t pid; /* 0: the process has ended */
    int in_fd;
    int rank; /* index of the rank; -1: this is the consumer */
    bool keys;
    char record[PATH_SIZE];
};

struct crowd {
    const struct crowd_options *o;
    struct rng rng;
    struct member *members; /* the last member is the consumer */
    int n;
    unsigned kills;
    bool bad;
};

extern char **environ;

/* --- processes ---------------------------------------------------------------------------------------------------- */

static void spawn (struct member *m, const char *const *argv)
{
    posix_spawn_file_actions_t files;
    int in[2];

    if (pipe2 (in, O_CLOEXEC) < 0)
        die ("pipe");
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_adddup2 (&files, in[0], 0);
    if ((errno = posix_spawn (&m->pid, argv[0], &files, NULL, (char **)argv, environ)) != 0)
        die (argv[0]);
    posix_spawn_file_actions_destroy (&files);
    close (in[0]);
    m->in_fd = in[1];
}

static void start_submitter (struct crowd *c, struct member *m)
{
    char uri[PATH_SIZE];
    const char *argv[10] = { c->o->program, "submit", "-m", "-w", WINDOW, "-f", m->record, uri };

    snprintf (uri, sizeof (uri), "%s%s", c->o->uri_prefix, c->o->ranks[m->rank]);
    if (m->keys)
        argv[8] = "-k";
    spawn (m, argv);
}

static void start_consumer (struct crowd *c, struct member *m)
{
    char uri[PATH_SIZE], window[16];
    const char *argv[10] = { c->o->program, "consume", "-w", window, "-f", m->record, uri };

    snprintf (uri, sizeof (uri), "%s%s", c->o->uri_prefix, c->o->ranks[rng_below (&c->rng, (uint32_t)c->o->nranks)]);
    snprintf (window, sizeof (window), "%" PRIu32, rng_between (&c->rng, 1, 2000));
    if (rng_below (&c->rng, 2))
        argv[7] = "-a";
    spawn (m, argv);
}

static void start_member (struct crowd *c, struct member *m)
{
    if (m->rank < 0)
        start_consumer (c, m);
    else
        start_submitter (c, m);
}

/* Wait for the end of a process that was killed, or that has no work left. */
static void reap (struct crowd *c, struct member *m, bool killed)
{
    int status;

    close (m->in_fd);
    if (waitpid (m->pid, &status, 0) != m->pid)
        die ("waitpid");
    m->pid = 0;
    if (status != 0 && !(killed && WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL)) {
        printf ("%s: ended with the wait status 0x%x\n", m->record, (unsigned)status);
        c->bad = true;
    }
}

static void kill_one (struct crowd *c)
{
    struct member *m = rng_below (&c->rng, 3) == 0 ? &c->members[c->n - 1]
                                                   : &c->members[rng_below (&c->rng, (uint32_t)c->n)];

    kill (m->pid, SIGKILL);
    reap (c, m, true);
    c->kills++;
    start_member (c, m);
}

/* --- from the beginning to the end -------------------------------------------------------------------------------- */

static void start_all (struct crowd *c)
{
    c->n = SUBMITTERS * c->o->nranks + 1;
    c->members = must (calloc ((size_t)c->n, sizeof (*c->members)));
    for (int i = 0; i < c->n; i++) {
        struct member *m = &c->members[i];
        bool submits = i < c->n - 1;

        m->rank = submits ? i / SUBMITTERS : -1;
        m->keys = submits && i % SUBMITTERS == 0;
        if (submits)
            snprintf (m->record, PATH_SIZE, "%s/submitter-%s-%s", c->o->dir, c->o->ranks[m->rank],
                      m->keys ? "keys" : "plain");
        else
            snprintf (m->record, PATH_SIZE, "%s/consumer", c->o->dir);
        start_member (c, m);
    }
}

static void kill_until_end_of_input (struct crowd *c)
{
    struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
    char buf[256];

    for (;;) {
        int rc = poll (&pfd, 1, (int)rng_between (&c->rng, GAP_MIN_MS, GAP_MAX_MS));

        if (rc == 0)
            kill_one (c);
        else if (rc > 0 && read (STDIN_FILENO, buf, sizeof (buf)) <= 0)
            return;
    }
}

/* Let all end. First all submitters; then the consumer, which learns that no further jobs will come. */
static void finish_all (struct crowd *c)
{
    for (int i = 0; i < c->n - 1; i++) {
        close (c->members[i].in_fd);
        c->members[i].in_fd = -1;
    }
    for (int i = 0; i < c->n; i++)
        reap (c, &c->members[i], false);
}

static bool judge_all (struct crowd *c)
{
    struct judge *j = judge_create ();

    for (int i = 0; i < c->n; i++)
        if (judge_file (j, c->members[i].record) < 0)
            die (c->members[i].record);
    bool good = judge_tell (j, stdout) == 0;
    judge_destroy (j);
    return good;
}

int crowd_main (const struct crowd_options *o)
{
    struct crowd c = { .o = o, .rng = { o->seed } };

    start_all (&c);
    kill_until_end_of_input (&c);
    finish_all (&c);
    printf ("crowd: %d submitters and a consumer, killed %u times\n", c.n - 1, c.kills);
    bool good = judge_all (&c) && !c.bad;
    free (c.members);
    printf ("jobs: %s\n", good ? "all promises are kept" : "a promise is broken");
    return good ? 0 : 1;
}
