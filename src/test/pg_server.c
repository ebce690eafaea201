/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pg_server.c - a private PostgreSQL server for a test */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libpg/pg.h"
#include "test/pg_server.h"

#define WAIT_MS 20
#define WAIT_TURNS (300000 / WAIT_MS) /* far longer than any wait of a test */

struct pg_server {
    char dir[64];
    char conninfo[128];
    char bin[128];
    pid_t server, copy; /* 0: does not run */
    struct pg *pg;
    struct pg_server *next;
};

static struct pg_server *all;

__attribute__ ((format (printf, 1, 2), noreturn)) static void give_up (const char *fmt, ...)
{
    va_list ap;

    printf ("Bail out! ");
    va_start (ap, fmt);
    vprintf (fmt, ap);
    va_end (ap);
    printf ("\n");
    exit (EXIT_FAILURE);
}

static void pause_a_little (void)
{
    poll (NULL, 0, WAIT_MS);
}

/* --- programs ------------------------------------------------------------------------------------------- */

/* Find the programs of the newest server that is installed. */
static bool find_bin (char *bin, size_t size)
{
    glob_t found;
    bool any = glob ("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0 && found.gl_pathc > 0;

    if (any) {
        snprintf (bin, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
        *strrchr (bin, '/') = '\0';
    }
    globfree (&found);
    return any;
}

/* Find the user as which the server runs if the test is root. */
static bool find_nobody (struct passwd *pw)
{
    static char buf[1024];
    struct passwd *found = NULL;

    return getpwnam_r ("nobody", pw, buf, sizeof (buf), &found) == 0 && found;
}

const char *pg_server_lacks (void)
{
    char bin[128];
    struct passwd pw;
    idt_error_t error;

    if (pg_check ("", &error) < 0)
        return "libpq is not installed, or was not when this was built";
    if (!find_bin (bin, sizeof (bin)))
        return "no server of PostgreSQL is installed";
    return geteuid () != 0 || find_nobody (&pw) ? NULL : "PostgreSQL refuses to run as root, and there is no nobody";
}

static void become_nobody (void)
{
    struct passwd pw;

    if (!find_nobody (&pw) || setgroups (0, NULL) < 0 || setgid (pw.pw_gid) < 0 || setuid (pw.pw_uid) < 0)
        _exit (126);
}

/* Start a program in the server's folder. It ends with this process. */
static pid_t start (const struct pg_server *s, const char *log, const char *program, ...)
{
    char *argv[32], path[256], logpath[128];
    int n = 0;
    va_list ap;
    pid_t self = getpid (), pid;

    snprintf (path, sizeof (path), "%s/%s", s->bin, program);
    snprintf (logpath, sizeof (logpath), "%s/%s", s->dir, log);
    argv[n++] = path;
    va_start (ap, program);
    while ((argv[n] = va_arg (ap, char *)))
        n++;
    va_end (ap);
    if ((pid = fork ()) < 0)
        give_up ("fork: %s", strerror (errno));
    if (pid > 0)
        return pid;
    if (geteuid () == 0)
        become_nobody ();
    prctl (PR_SET_PDEATHSIG, SIGQUIT);
    int fd = open (logpath, O_WRONLY | O_CREAT | O_APPEND, 0600), in = open ("/dev/null", O_RDONLY);
    if (getppid () != self || fd < 0 || in < 0 || chdir (s->dir) < 0)
        _exit (126);
    dup2 (in, 0);
    dup2 (fd, 1);
    dup2 (fd, 2);
    execv (path, argv);
    _exit (127);
}

static void end (pid_t *pid, int signum)
{
    if (*pid == 0)
        return;
    kill (*pid, signum);
    waitpid (*pid, NULL, 0);
    *pid = 0;
}

/* --- statements ----------------------------------------------------------------------------------------- */

static int try_sql (struct pg_server *s, const char *sql, int64_t *value, idt_error_t *errp)
{
    struct pg_rows rows;

    if (pg_run (s->pg, sql, NULL, &rows, NULL, errp) < 0)
        return -1;
    *value = rows.count > 0 ? pg_int (&rows, 0, 0) : 0;
    pg_rows_free (&rows);
    return 0;
}

int64_t pg_server_sql (struct pg_server *s, const char *sql)
{
    idt_error_t error;
    int64_t value;

    if (try_sql (s, sql, &value, &error) < 0)
        give_up ("%s: %s", sql, error.text);
    return value;
}

void pg_server_wait (struct pg_server *s, const char *sql, int64_t value)
{
    idt_error_t error = { "another value" };
    int64_t now;

    for (int i = 0; i < WAIT_TURNS; i++) {
        if (try_sql (s, sql, &now, &error) == 0 && now == value)
            return;
        pause_a_little ();
    }
    give_up ("%s: waited in vain: %s", sql, error.text);
}

/* Sessions begin with the setting that the server's main process has. */
void pg_server_set_names (struct pg_server *s, const char *names)
{
    char sql[128];

    snprintf (sql, sizeof (sql), "ALTER SYSTEM SET synchronous_standby_names = '%s'", names);
    pg_server_sql (s, sql);
    pg_server_sql (s, "SELECT pg_reload_conf ()");
    snprintf (sql, sizeof (sql), "SELECT current_setting ('synchronous_standby_names') = '%s'", names);
    pg_server_wait (s, sql, 1);
}

/* --- the copy ------------------------------------------------------------------------------------------- */

void pg_server_copy_stop (struct pg_server *s)
{
    kill (s->copy, SIGSTOP);
}

void pg_server_copy_continue (struct pg_server *s)
{
    kill (s->copy, SIGCONT);
}

void pg_server_copy_end (struct pg_server *s)
{
    end (&s->copy, SIGKILL);
}

void pg_server_copy_start (struct pg_server *s)
{
    pg_server_copy_end (s);
    s->copy = start (s, "copy.log", "pg_receivewal", "-h", s->dir, "-U", "postgres", "-D", "copy", "--synchronous",
                     "-s", "1", "-n", NULL);
    pg_server_wait (s, "SELECT count (*) FROM pg_stat_replication WHERE sync_state = 'sync'", 1);
}

/* --- the server ----------------------------------------------------------------------------------------- */

const char *pg_server_dir (const struct pg_server *s)
{
    return s->dir;
}

const char *pg_server_conninfo (const struct pg_server *s)
{
    return s->conninfo;
}

static void wait_for_segment (int id)
{
    struct shmid_ds ds;

    while (shmctl (id, IPC_STAT, &ds) == 0 && ds.shm_nattch > 0)
        pause_a_little ();
    shmctl (id, IPC_RMID, NULL);
}

/* A killed server leaves a segment of shared memory, whose number is in line 7 of its pid file. Its other processes end
 * when they see that it is dead.
 */
static void remove_segment (const struct pg_server *s)
{
    char path[128], line[128];
    int id, i = 0;

    snprintf (path, sizeof (path), "%s/data/postmaster.pid", s->dir);
    FILE *file = fopen (path, "r");
    while (file && fgets (line, sizeof (line), file))
        if (++i == 7 && sscanf (line, "%*s %d", &id) == 1)
            wait_for_segment (id);
    if (file)
        fclose (file);
}

void pg_server_kill (struct pg_server *s)
{
    end (&s->server, SIGKILL);
    remove_segment (s);
}

void pg_server_run (struct pg_server *s)
{
    s->server = start (s, "server.log", "postgres", "-D", "data", "-k", s->dir, "-c", "listen_addresses=", "-c",
                       "fsync=off", "-c", "autovacuum=off", "-c", "min_wal_size=2MB", "-c", "wal_keep_size=512MB",
                       NULL);
    pg_server_wait (s, "SELECT 1", 1);
}

static void remove_dir (const char *dir)
{
    pid_t pid = fork ();

    if (pid == 0) {
        execlp ("rm", "rm", "-rf", dir, NULL);
        _exit (127);
    }
    waitpid (pid, NULL, 0);
}

void pg_server_destroy (struct pg_server *s)
{
    struct pg_server **at = &all;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    pg_close (s->pg);
    pg_server_copy_end (s);
    end (&s->server, SIGQUIT);
    remove_dir (s->dir);
    free (s);
}

static void destroy_all (void)
{
    while (all)
        pg_server_destroy (all);
}

static void make_cluster (struct pg_server *s)
{
    pid_t pid = start (s, "initdb.log", "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8",
                       "--wal-segsize=1", "--locale=C.UTF-8", NULL);
    int status;

    if (waitpid (pid, &status, 0) != pid || status != 0)
        give_up ("initdb failed: see %s/initdb.log", s->dir);
}

static void make_dirs (struct pg_server *s)
{
    bool is_root = geteuid () == 0;
    struct passwd pw;
    const char *tmp = getenv ("TMPDIR");
    char copy[80];

    snprintf (s->dir, sizeof (s->dir), "%s/idtree-pg.XXXXXX", tmp && strlen (tmp) < 32 ? tmp : "/tmp");
    if (!mkdtemp (s->dir))
        give_up ("%s: %s", s->dir, strerror (errno));
    snprintf (copy, sizeof (copy), "%s/copy", s->dir);
    if (mkdir (copy, 0700) < 0
        || (is_root && (!find_nobody (&pw) || chown (s->dir, pw.pw_uid, 0) < 0 || chown (copy, pw.pw_uid, 0) < 0)))
        give_up ("%s: %s", copy, strerror (errno));
}

struct pg_server *pg_server_start (void)
{
    struct pg_server *s = calloc (1, sizeof (*s));
    struct pg_config config = { .application = "test", .timeout_ms = 30000 };
    char conninfo[320];
    idt_error_t error;

    if (!s || !find_bin (s->bin, sizeof (s->bin)))
        give_up ("no server of PostgreSQL is installed");
    if (!all)
        atexit (destroy_all);
    s->next = all;
    all = s;
    make_dirs (s);
    make_cluster (s);
    snprintf (s->conninfo, sizeof (s->conninfo), "host=%s user=postgres dbname=postgres", s->dir);
    snprintf (conninfo, sizeof (conninfo),
              "%s options='-c synchronous_commit=local -c default_transaction_read_only=off'", s->conninfo);
    config.conninfo = conninfo;
    if (!(s->pg = pg_open (&config, &error)))
        give_up ("%s", error.text);
    pg_server_run (s);
    pg_server_set_names (s, "*");
    pg_server_copy_start (s);
    return s;
}
