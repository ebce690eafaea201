/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* bench-start.c - the time of an id for a shell: from a program that is started for it, or from a coprocess
 *
 * For comparison it measures a program that does nothing, and cat as a coprocess. If there is no broker, it runs itself
 * under `idtree start`. IDTREE names an installed idtree. In the build tree it runs the programs that libtool's scripts
 * would run.
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

#define TURNS 5
#define STARTS 80 /* programs that are started in a turn */
#define ASKS 2000 /* requests of a turn */
#define LINE_MAX_READ 256

extern char **environ;

static void die (const char *what, int errnum)
{
    fprintf (stderr, "bench-start: %s: %s\n", what, strerror (errnum));
    exit (1);
}

/* --- programs that start and end ------------------------------------------------------------------- */

struct start {
    const char *name;
    const char *argv[8]; /* the first one is the path of the program */
    struct figures figures;
};

/* Run a command once, and discard its output. */
static void run_once (void *arg)
{
    const struct start *s = arg;
    posix_spawn_file_actions_t actions;
    int status, rc;
    pid_t pid;

    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_addopen (&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if ((rc = posix_spawn (&pid, s->argv[0], &actions, NULL, (char *const *)s->argv, environ)) != 0)
        die (s->argv[0], rc);
    posix_spawn_file_actions_destroy (&actions);
    if (waitpid (pid, &status, 0) < 0)
        die ("waitpid", errno);
    if (status != 0)
        die (s->argv[0], ECANCELED);
}

static void measure_starts (const char *idtree)
{
    struct start starts[] = {
        { .name = "a program that does nothing", .argv = { "/proc/self/exe", "nothing" } },
        { .name = "idtree id new", .argv = { idtree, "id", "new" } },
        { .name = "idtree version", .argv = { idtree, "version" } },
        { .name = "idtree module list, by idtree-all", .argv = { idtree, "module", "list" } },
    };
    const size_t n = sizeof (starts) / sizeof (starts[0]);

    for (size_t i = 0; i < n; i++)
        starts[i].figures.of = FIGURES_MEDIAN;
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < n; i++)
            figures_time_calls (&starts[i].figures, run_once, &starts[i], STARTS);
    for (size_t i = 0; i < n; i++)
        line_print (&(struct line){
            .subject = "shell",
            .name = starts[i].name,
            .unit = "us",
            .figures = &starts[i].figures,
            .bare = i > 0 ? &starts[0].figures : NULL,
            .limit_of = i > 0 ? "a program that does nothing" : NULL,
        });
    for (size_t i = 0; i < n; i++)
        figures_fini (&starts[i].figures);
}

/* --- coprocesses ------------------------------------------------------------------------------------- */

struct coprocess {
    FILE *in, *out; /* pipes from and to the coprocess */
    struct figures figures;
};

static void begin (struct coprocess *c, const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    int in[2], out[2], rc;
    pid_t pid;

    if (pipe2 (in, O_CLOEXEC) < 0 || pipe2 (out, O_CLOEXEC) < 0)
        die ("pipe", errno);
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_adddup2 (&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2 (&actions, out[1], STDOUT_FILENO);
    if ((rc = posix_spawnp (&pid, argv[0], &actions, NULL, (char *const *)argv, environ)) != 0)
        die (argv[0], rc);
    posix_spawn_file_actions_destroy (&actions);
    close (in[0]);
    close (out[1]);
    if (!(c->in = fdopen (in[1], "w")) || !(c->out = fdopen (out[0], "r")))
        die (argv[0], errno);
    c->figures.of = FIGURES_MEDIAN;
}

static void ask_once (void *arg)
{
    struct coprocess *c = arg;
    char line[LINE_MAX_READ];

    if (fputs ("\n", c->in) == EOF || fflush (c->in) == EOF || !fgets (line, sizeof (line), c->out))
        die ("a coprocess", errno ? errno : ECANCELED);
}

static void end (struct coprocess *c)
{
    fclose (c->in);
    fclose (c->out);
    if (wait (NULL) < 0)
        die ("wait", errno);
    figures_fini (&c->figures);
}

static void measure_coprocesses (const char *idtree)
{
    struct coprocess cat = { .in = NULL }, follow = { .in = NULL };

    begin (&cat, (const char *const[]){ "cat", NULL });
    begin (&follow, (const char *const[]){ idtree, "id", "new", "--follow", NULL });
    ask_once (&follow);
    ask_once (&cat);
    for (int turn = 0; turn < TURNS; turn++) {
        figures_time_calls (&cat.figures, ask_once, &cat, ASKS);
        figures_time_calls (&follow.figures, ask_once, &follow, ASKS);
    }
    line_print (&(struct line){
        .subject = "shell",
        .name = "an id of idtree id new --follow",
        .unit = "us",
        .figures = &follow.figures,
        .bare = &cat.figures,
        .limit_of = "a line of cat as a coprocess",
    });
    end (&cat);
    end (&follow);
}

/* --- all ----------------------------------------------------------------------------------------------- */

/* Return the path of a program. In the build tree, the loader's path must contain the folder of libtool's library. */
static const char *find_program (const char *installed)
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
    idtree = find_program (idtree);
    measure_starts (idtree);
    measure_coprocesses (idtree);
    return 0;
}
