/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* start.c - idtree start: run an instance on this host for as long as a command runs */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/base/plan.h"
#include "cmd/base/self.h"
#include "cmd/launch/launcher.h"
#include "cmd/launch/limits.h"
#include "libreaper/reaper.h"
#include "libutil/minmax.h"
#include "libutil/private_dir.h"
#include "libutil/text.h"

#define DIR_MAX 92 /* bytes; the path of a UNIX socket has 108, and "/local-" and a rank must follow */
#define SOCKETS_ATTR "local.sockets="
#define SIZE_MAX_ASKED 1000000
#define ARGS_MAX 128
#define SOCKETS_MAX 4096 /* bytes of the argument of --local-sockets */
#define START_TIMEOUT_S 60
#define CONNECTIONS 1 /* number of descriptors that a broker inherits from the launcher */
#define STOP_TIMEOUT_S 10
#define AUTO_LEAST 64  /* --per-process=auto: a process hosts at least this many brokers, */
#define AUTO_MOST 2500 /* and at most this many, so that all are back within a second after the process was killed */
#define AUTO_A_CORE 2  /* --per-process=auto: processes for each core, if there are enough brokers */

struct start {
    struct cmd *cmd;
    struct launcher_config config;
    struct self self;
    int per_process;       /* brokers of a process; 0: auto */
    const char *given_dir; /* --dir */
    bool keep_dir;         /* the directory existed before */
    char dir[PATH_MAX];
    char rundir[PATH_MAX + 16];
    char topology[PATH_MAX + 32];
    char recover[128];
    char sockets[SOCKETS_MAX + 32]; /* --local-sockets, as an attribute */
    char path[3 * PATH_MAX];
    const char *args[ARGS_MAX + 1];
    int nargs;
    const char *shell[2];
};

/* --- options ---------------------------------------------------------------------------------- */

/* Functions for 'take' of options.  'to' is the struct start, or the member that they set. */
static void take_attr (struct cmd *cmd, const char *arg, void *to)
{
    struct start *s = to;

    if (!strchr (arg, '=') || *arg == '=')
        cmd_usage (cmd, "'%s' is not ATTR=VALUE", arg);
    if (!strncmp (arg, "rundir=", 7))
        cmd_usage (cmd, "the brokers' rundir is set with --dir");
    if (s->nargs + 2 > ARGS_MAX)
        cmd_usage (cmd, "more than %d attributes", ARGS_MAX / 2);
    s->args[s->nargs++] = "-o";
    s->args[s->nargs++] = arg;
}

static void take_topology (struct cmd *cmd, const char *arg, void *to)
{
    struct start *s = to;

    if (strlen (arg) >= PATH_MAX)
        cmd_usage (cmd, "the topology is too long: at most %d bytes", PATH_MAX - 1);
    snprintf (s->topology, sizeof (s->topology), "tbon.topo=%s", arg);
    take_attr (cmd, s->topology, s);
}

static void take_recover (struct cmd *cmd, const char *arg, void *to)
{
    struct start *s = to;

    snprintf (s->recover, sizeof (s->recover), "fluid.recover-horizon=%s", arg);
    take_attr (cmd, s->recover, s);
}

static void take_sockets (struct cmd *cmd, const char *arg, void *to)
{
    struct start *s = to;
    uint32_t last;

    if (strlen (arg) > SOCKETS_MAX)
        cmd_usage (cmd, "the list of ranks with sockets is too long: at most %d bytes", SOCKETS_MAX);
    if (ranges_last (arg, &last) < 0)
        cmd_usage (cmd, "'%s' is not a list of ranks such as 0,8-15", arg);
    snprintf (s->sockets, sizeof (s->sockets), SOCKETS_ATTR "%s", arg);
    take_attr (cmd, s->sockets, s);
}

static void check_sockets (struct start *s)
{
    const char *ranks = s->sockets + strlen (SOCKETS_ATTR);
    uint32_t last;

    if (s->sockets[0] && ranges_last (ranks, &last) > 0 && last >= (uint32_t)s->config.size)
        cmd_usage (s->cmd, "--local-sockets: there is no rank %u: the instance has ranks 0 to %d", last,
                   s->config.size - 1);
}

static void take_size (struct cmd *cmd, const char *arg, void *to)
{
    *(int *)to = cmd_number (cmd, "size", arg, 1, SIZE_MAX_ASKED);
}

static void take_per_process (struct cmd *cmd, const char *arg, void *to)
{
    *(int *)to = strcmp (arg, "auto") ? (int)cmd_number (cmd, "brokers of a process", arg, 1, SIZE_MAX_ASKED) : 0;
}

static void take_start_timeout (struct cmd *cmd, const char *arg, void *to)
{
    *(int *)to = cmd_seconds (cmd, "start timeout", arg);
}

static void take_stop_timeout (struct cmd *cmd, const char *arg, void *to)
{
    *(int *)to = cmd_seconds (cmd, "stop timeout", arg);
}

/* --- command ---------------------------------------------------------------------------------- */

static void choose_command (struct start *s)
{
    if (s->cmd->argc > 0) {
        s->config.command = (const char *const *)s->cmd->argv;
        return;
    }
    s->shell[0] = s->cmd->env.shell ? s->cmd->env.shell : "/bin/sh";
    s->config.command = s->shell;
    s->config.interactive = isatty (STDIN_FILENO);
}

/* Put this idtree's folder first in PATH, unless it is there already, so that the command finds this idtree. */
static void choose_path (struct start *s)
{
    const char *path = s->cmd->env.path ? s->cmd->env.path : "/usr/local/bin:/usr/bin:/bin";
    size_t len = strlen (s->self.bindir);

    for (const char *p = path; p; p = strchr (p, ':')) {
        p += *p == ':';
        if (!strncmp (p, s->self.bindir, len) && (p[len] == ':' || p[len] == '\0'))
            return;
    }
    if (snprintf (s->path, sizeof (s->path), "%s:%s", s->self.bindir, path) < (int)sizeof (s->path))
        s->config.path = s->path;
}

/* --- host ------------------------------------------------------------------------------------- */

static int count_cores (void)
{
    cpu_set_t set;

    return sched_getaffinity (0, sizeof (set), &set) == 0 ? CPU_COUNT (&set) : 1;
}

static uint32_t count_processes (const struct start *s)
{
    uint32_t size = s->config.size;

    if (s->per_process > 0)
        return (size - 1) / s->per_process + 1;
    return max_u64 (min_u64 ((size - 1) / AUTO_LEAST + 1, AUTO_A_CORE * count_cores ()), (size - 1) / AUTO_MOST + 1);
}

/* Return the value of an attribute that the brokers get.  If it is given more than once, the last value counts. */
static const char *find_attr (const struct start *s, const char *name, const char *otherwise)
{
    size_t len = strlen (name);

    for (int i = s->nargs - 1; i >= 0; i--)
        if (!strncmp (s->args[i], name, len) && s->args[i][len] == '=')
            return s->args[i] + len + 1;
    return otherwise;
}

static struct topo *make_topology (const struct start *s)
{
    idt_error_t error;
    struct topo *t = topo_create (find_attr (s, "tbon.topo", TOPO_DEFAULT), s->config.size, &error);

    if (!t && errno == EINVAL)
        cmd_usage (s->cmd, "%s", error.text);
    if (!t)
        cmd_die (s->cmd, "%s", error.text);
    return t;
}

/* Make the plan.  It depends on the topology only if some brokers share a process and others do not. */
static void make_plan (struct start *s)
{
    uint32_t size = s->config.size, processes = s->config.processes;
    struct topo *t = NULL;
    idt_error_t error;

    if (processes > 1 && processes < size)
        t = make_topology (s);
    if (!(s->config.plan = plan_create (size, processes, t, &error)))
        cmd_die (s->cmd, "%s", error.text);
    topo_destroy (t);
}

static uint64_t count_inner (const struct start *s)
{
    struct topo *t = make_topology (s);
    uint64_t n = 0;

    for (uint32_t rank = 0; rank < t->size; rank++)
        n += topo_child_count (t, rank) > 0;
    topo_destroy (t);
    return n;
}

/* Return the descriptors that all links need.  If the transport is unknown, return 0, because brokers report the error
 * themselves.
 */
static uint64_t count_link_files (const struct start *s)
{
    const char *kind = find_attr (s, "tbon.transport", "memory");
    uint64_t links = s->config.size - 1;

    if (!strcmp (kind, "inproc"))
        return links * LIMITS_INPROC_LINK_FILES + count_inner (s) * LIMITS_INPROC_LISTEN_FILES;
    if (!strcmp (kind, "zmq"))
        return links * LIMITS_ZMQ_LINK_FILES + count_inner (s) * LIMITS_ZMQ_LISTEN_FILES;
    return 0;
}

/* Return the largest number of children of a rank.  If the topology is invalid, return 0, because brokers report the
 * error themselves.
 */
static uint64_t count_children (const struct start *s)
{
    struct topo *t = topo_create (find_attr (s, "tbon.topo", TOPO_DEFAULT), s->config.size, NULL);
    uint64_t most = 0;

    for (uint32_t rank = 0; t && rank < t->size; rank++)
        most = max_u64 (most, topo_child_count (t, rank));
    topo_destroy (t);
    return most;
}

static void check_host (struct start *s)
{
    struct limits_for what = { .shared = s->config.processes < (uint32_t)s->config.size };
    struct limit limits[LIMITS_MAX];
    struct rlimit files;
    idt_error_t error;

    if (getrlimit (RLIMIT_NOFILE, &files) == 0)
        s->config.files = files.rlim_cur;
    if (what.shared) {
        what.link_files = count_link_files (s);
        what.sockets = ranges_count (find_attr (s, "local.sockets", ""), (uint32_t)s->config.size);
    }
    else if (plan_files_check (count_children (s), plan_files_open (3) + CONNECTIONS, &error) < 0)
        cmd_die (s->cmd, "%s", error.text);
    if (limits_check (limits, limits_read (limits, &what), s->config.size, s->config.processes, &error) < 0)
        cmd_die (s->cmd, "%s", error.text);
}

/* --- directory -------------------------------------------------------------------------------- */

static bool is_empty (const char *path)
{
    struct dirent *entry;
    bool empty = true;
    DIR *dir = opendir (path);

    while (dir && empty && (entry = readdir (dir)))
        empty = !strcmp (entry->d_name, ".") || !strcmp (entry->d_name, "..");
    if (dir)
        closedir (dir);
    return dir && empty;
}

static void use_given_dir (struct start *s)
{
    const char *dir = s->given_dir;

    if (mkdir (dir, 0700) < 0) {
        idt_error_t error;

        if (errno != EEXIST)
            cmd_die (s->cmd, "cannot make %s: %s", dir, strerror (errno));
        if (private_dir_check ("directory", dir, PRIVATE_DIR_STRICT, &error) < 0)
            cmd_die (s->cmd, "%s", error.text);
        if (!is_empty (dir))
            cmd_die (s->cmd, "%s is not an empty directory", dir);
        s->keep_dir = true;
    }
    if (!realpath (dir, s->dir))
        cmd_die (s->cmd, "%s: %s", dir, strerror (errno));
}

static void make_dir (struct start *s)
{
    const char *tmp = s->cmd->env.tmpdir ? s->cmd->env.tmpdir : "/tmp";
    char name[PATH_MAX];

    snprintf (name, sizeof (name), "%s/idtree-XXXXXX", tmp);
    if (!mkdtemp (name))
        cmd_die (s->cmd, "cannot make %s: %s", name, strerror (errno));
    if (!realpath (name, s->dir))
        cmd_die (s->cmd, "%s: %s", name, strerror (errno));
}

static void remove_made_dir (struct start *s)
{
    int saved_errno = errno;

    if (!s->keep_dir)
        rmdir (s->dir);
    errno = saved_errno;
}

/* Refuse a statedir in the directory, because all files in the directory are removed at the end. */
static void check_statedir (struct start *s)
{
    size_t len = strlen (s->dir);

    for (int i = 0; i < s->nargs; i++) {
        const char *dir = strncmp (s->args[i], "statedir=", 9) ? NULL : s->args[i] + 9;

        if (dir && !strncmp (dir, s->dir, len) && (dir[len] == '/' || dir[len] == '\0')) {
            remove_made_dir (s);
            cmd_die (s->cmd, "statedir %s lies in %s, which is removed at the end", dir, s->dir);
        }
    }
}

static void choose_dir (struct start *s)
{
    if (s->given_dir)
        use_given_dir (s);
    else
        make_dir (s);
    if (strlen (s->dir) > DIR_MAX) {
        remove_made_dir (s);
        cmd_die (s->cmd, "%s is too long for UNIX sockets in it: choose another with --dir or TMPDIR", s->dir);
    }
    check_statedir (s);
    snprintf (s->rundir, sizeof (s->rundir), "rundir=%s", s->dir);
    s->args[s->nargs++] = "-o";
    s->args[s->nargs++] = s->rundir;
    s->config.dir = s->dir;
}

/* --- run -------------------------------------------------------------------------------------- */

static int run (struct cmd *cmd)
{
    struct start s = {
        .cmd = cmd,
        .per_process = 1,
        .config = { .size = 1, .start_timeout_ms = START_TIMEOUT_S * 1000, .stop_timeout_ms = STOP_TIMEOUT_S * 1000 }
    };

    cmd_options (cmd, &s);
    check_sockets (&s);
    s.config.processes = count_processes (&s);
    check_host (&s);
    make_plan (&s);
    self_find (cmd, &s.self);
    s.config.broker = s.self.broker;
    s.config.progress = isatty (STDERR_FILENO);
    choose_command (&s);
    choose_path (&s);
    choose_dir (&s);
    s.config.args = s.args;
    if (reaper_split (s.dir, s.keep_dir) < 0) {
        remove_made_dir (&s);
        cmd_die (cmd, "cannot make a process: %s", strerror (errno));
    }
    int status = launcher_run (&s.config);
    reaper_sweep (s.dir, s.keep_dir);
    plan_destroy (s.config.plan);
    return status;
}

#define AT(member) offsetof (struct start, member)

static const struct cmd_option options[] = {
    { 's', "size", "N", "number of brokers (default 1)", take_size, AT (config.size) },
    { 0, "per-process", "N|auto", "brokers in each process (default 1); auto: by the number of processors",
      take_per_process, AT (per_process) },
    { 0, "local-sockets", "RANKS", "ranks such as 0,8-15 that get their own socket in a shared process", take_sockets,
      0 },
    { 'o', "setattr", "ATTR=VALUE", "set an attribute of all brokers", take_attr, 0 },
    { 0, "topology", "T", "tree: kary:K (default kary:32), mincrit[:K], binomial, custom:FILE", take_topology, 0 },
    { 0, "dir", "DIR", "directory for sockets, new or empty (default: one in TMPDIR)", cmd_take_text, AT (given_dir) },
    { 0, "keep-flux-uri", NULL, "do not change FLUX_URI for COMMAND", cmd_take_flag, AT (config.keep_flux_uri) },
    { 0, "recover-horizon", "DATE|ID", "a time or id above all ids made: replace a damaged or lost state", take_recover,
      0 },
    { 0, "start-timeout", "S", "give up after S seconds without progress (60)", take_start_timeout,
      AT (config.start_timeout_ms) },
    { 0, "stop-timeout", "S", "kill brokers that take longer to end (10 seconds)", take_stop_timeout,
      AT (config.stop_timeout_ms) },
    CMD_OPTIONS_END,
};

const struct command start_command = {
    .name = "start",
    .operands = "[COMMAND [ARG]...]",
    .flags = CMD_RUNS,
    .summary = "Start brokers on this host, run a command, stop them",
    .details = "COMMAND (default: a shell) finds the instance in IDTREE_URI; idtree start ends with its "
               "status.",
    .example = "idtree start -s 8 -o fluid.max-generators=4 idtree id new --rank 7",
    .options = options,
    .run = run,
};
