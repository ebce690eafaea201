/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-start.c - how long commands take from their start to their end, beside a program that does nothing
 *
 * Started alone it runs itself under `idtree start`, so that there is a broker to ask.  IDTREE names an installed
 * idtree; in the build tree the programs are run that libtool's scripts would run.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "line.h"

#define TURNS 10
#define ROUNDS 30 /* of a turn */
#define WARMUP 10
#define WORDS_MAX 8

extern char **environ;

struct subject {
    const char *name;
    const char *argv[WORDS_MAX]; /* the first is the program's path */
    struct figures figures;
};

static void die (const char *what, int errnum)
{
    fprintf (stderr, "bench-start: %s: %s\n", what, strerror (errnum));
    exit (1);
}

/* Run a command, with its output thrown away. */
static void run (void *arg)
{
    const char *const *argv = ((struct subject *)arg)->argv;
    posix_spawn_file_actions_t actions;
    int status, rc;
    pid_t pid;

    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_addopen (&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if ((rc = posix_spawn (&pid, argv[0], &actions, NULL, (char *const *)argv, environ)) != 0)
        die (argv[0], rc);
    if (waitpid (pid, &status, 0) < 0)
        die ("waitpid", errno);
    if (status != 0)
        die (argv[0], ECANCELED);
    posix_spawn_file_actions_destroy (&actions);
}

/* All in turn, so that what else the machine does falls upon each of them. */
static void measure (struct subject *subjects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        subjects[i].figures = (struct figures){ .of = FIGURES_MEDIAN, .warmup = WARMUP };
        for (int k = 0; k < WARMUP; k++)
            run (&subjects[i]);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < n; i++)
            figures_time_calls (&subjects[i].figures, run, &subjects[i], ROUNDS);
    for (size_t i = 1; i < n; i++)
        line_print (&(struct line){
            .subject = "commands",
            .name = subjects[i].name,
            .unit = "us",
            .figures = &subjects[i].figures,
            .bare = &subjects[0].figures,
            .limit_of = "a program that does nothing",
        });
    for (size_t i = 0; i < n; i++)
        figures_fini (&subjects[i].figures);
}

/* Returns 'path' with libtool's library in the loader's path where it is in the build tree. */
static const char *program (const char *installed)
{
    const char *old = getenv ("LD_LIBRARY_PATH");
    static char path[4096];

    if (installed)
        return installed;
    snprintf (path, sizeof (path), BUILDDIR "/src/common/libidtree/.libs%s%s", old ? ":" : "", old ? old : "");
    setenv ("LD_LIBRARY_PATH", path, 1);
    return BUILDDIR "/src/cmd/.libs/idtree";
}

int main (int argc, char **argv)
{
    const char *idtree = getenv ("IDTREE");

    if (argc > 1 && strcmp (argv[1], "nothing") == 0)
        return 0;
    if (argc < 2) {
        const char *starter = idtree ? idtree : BUILDDIR "/src/cmd/idtree";

        execl (starter, starter, "start", "-s", "1", argv[0], "inside", (char *)NULL);
        die (starter, errno);
    }
    idtree = program (idtree);
    static struct subject subjects[4];
    subjects[0] = (struct subject){ .name = "nothing", .argv = { "/proc/self/exe", "nothing" } };
    subjects[1] = (struct subject){ .name = "idtree id new", .argv = { idtree, "id", "new" } };
    subjects[2] = (struct subject){ .name = "idtree version", .argv = { idtree, "version" } };
    subjects[3] = (struct subject){ .name = "idtree module list", .argv = { idtree, "module", "list" } };
    measure (subjects, sizeof (subjects) / sizeof (subjects[0]));
    return 0;
}
