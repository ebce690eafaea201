/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* main.c - idtree-broker: options, environment, signals */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "broker/base/plan.h"
#include "broker/base/quorum.h"
#include "broker/boot/method.h"
#include "broker/boot/traces.h"
#include "broker/boot/zygote.h"
#include "broker/broker_group.h"
#include "broker/candidate.h"
#include "broker/conffile.h"
#include "broker/manager.h"
#include "libutil/duration.h"
#include "libutil/inherited.h"

static const char usage[] =
    "usage: idtree-broker [OPTION]... [COMMAND...]\n"
    "Run one broker of a tree.  Started by a launcher (idtree start, mpiexec, srun, mpirun, flux run) it is one of\n"
    "many; without, it is a tree of its own.  Rank 0 runs COMMAND, once the tree is complete, and the instance\n"
    "ends with it.  Without COMMAND it runs until SIGTERM or SIGINT.\n"
    "\n"
    "  -c, --config=FILE       set the attributes that FILE lists; with cluster.hosts there, it is a broker of that\n"
    "                          instance, selected by the name of this host\n"
    "  --host=NAME, --rank=N   ... select another entry of cluster.hosts\n"
    "  -o, --setattr=ATTR=VAL  set an attribute; a later option overrides it\n"
    "  -t, --topology=TOPO     the same as -o tbon.topo=TOPO:\n"
    "                          kary:K (default kary:32), mincrit, mincrit:K, binomial or custom:FILE\n"
    "  -b, --boot=METHOD       how it finds the others: auto (the default), single (no others), pmi, pmix\n"
    "                          or config\n"
    "  --standalone            the same as --boot=single, and ignores the environment of a launcher\n"
    "  --recover-horizon=DATE-or-ID  rank 0: replace a damaged or lost state; above all ids that were made\n"
    "  --check                 start nothing: check FILE and all other options, and exit\n"
    "  -V, --version           print the version\n"
    "  -h, --help              print this help\n"
    "\n"
    "Attributes are described in idtree-broker(1).\n"
    "\n"
    "example: mpiexec.hydra -n 4 idtree-broker idtree overlay status\n";

enum { OPT_RECOVER = 256, OPT_STANDALONE, OPT_HOST, OPT_RANK, OPT_CHECK };

static const struct option options[] = {
    { "config", required_argument, NULL, 'c' },
    { "setattr", required_argument, NULL, 'o' },
    { "topology", required_argument, NULL, 't' },
    { "boot", required_argument, NULL, 'b' },
    { "standalone", no_argument, NULL, OPT_STANDALONE },
    { "host", required_argument, NULL, OPT_HOST },
    { "rank", required_argument, NULL, OPT_RANK },
    { "recover-horizon", required_argument, NULL, OPT_RECOVER },
    { "check", no_argument, NULL, OPT_CHECK },
    { "version", no_argument, NULL, 'V' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static void die (int code, const char *text)
{
    fprintf (stderr, "idtree-broker: %s\n", text);
    exit (code);
}

/* Write buffered output, or exit with an error. If an earlier write failed, its errno is lost. */
static void flush_out (void)
{
    bool failed = ferror (stdout);
    char why[128];

    if (fflush (stdout) == EOF)
        snprintf (why, sizeof (why), "cannot write: %s", strerror (errno));
    else if (failed)
        snprintf (why, sizeof (why), "cannot write all output: the disk may be full");
    else
        return;
    die (1, why);
}

/* Write buffered output and exit. */
static _Noreturn void done (void)
{
    flush_out ();
    exit (0);
}

static void give (struct attrs *attrs, const char *name, const char *value)
{
    idt_error_t err;

    if (attr_give (attrs, name, value, &err) < 0)
        die ((int)broker_exit_of (errno), err.text);
}

static void set_attribute (struct attrs *attrs, const char *arg)
{
    const char *equal = strchr (arg, '=');
    char *name;

    if (!equal || equal == arg) {
        fprintf (stderr, "idtree-broker: -o %s: must read ATTR=VALUE\n", arg);
        exit (2);
    }
    if (!(name = strndup (arg, equal - arg)))
        die (1, strerror (errno));
    give (attrs, name, equal + 1);
    free (name);
}

static void take_file (struct broker_group_conf *conf, const char *path)
{
    idt_error_t err;

    if (conffile_load (conf->attrs, path, &err) < 0)
        die (BROKER_EXIT_USAGE, err.text);
    conf->config_files = realloc (conf->config_files, (conf->nconfig_files + 1) * sizeof (path));
    if (!conf->config_files)
        die (1, strerror (errno));
    conf->config_files[conf->nconfig_files++] = path;
}

static void take_rank (struct boot_conf *boot, const char *arg, uint32_t *rank)
{
    uint64_t n;

    if (parse_number (arg, 0, BOOT_SIZE_MAX - 1, &n) < 0) {
        fprintf (stderr, "idtree-broker: --rank %s: must be a number from 0 to %d\n", arg, BOOT_SIZE_MAX - 1);
        exit (2);
    }
    *rank = n;
    boot->own_rank = rank;
}

/* Read the options. The value of --rank goes to '*rank', which must live as long as 'conf'. '*check' becomes true if
 * --check was given.
 */
static void parse_options (struct broker_group_conf *conf, uint32_t *rank, bool *check, int argc, char **argv)
{
    struct attrs *attrs = conf->attrs;
    int c;

    while ((c = getopt_long (argc, argv, "+b:c:o:t:Vh", options, NULL)) != -1) {
        switch (c) {
        case 'b':
            give (attrs, "broker.boot", optarg);
            break;
        case OPT_STANDALONE:
            give (attrs, "broker.boot", boot_single.name);
            break;
        case 'c':
            take_file (conf, optarg);
            break;
        case 'o':
            set_attribute (attrs, optarg);
            break;
        case 't':
            give (attrs, "tbon.topo", optarg);
            break;
        case OPT_HOST:
            conf->boot.own_host = optarg;
            break;
        case OPT_RANK:
            take_rank (&conf->boot, optarg, rank);
            break;
        case OPT_CHECK:
            *check = true;
            break;
        case OPT_RECOVER:
            give (attrs, "fluid.recover-horizon", optarg);
            break;
        case 'V':
            printf ("idtree-broker %s\n", PACKAGE_VERSION);
            done ();
        case 'h':
            fputs (usage, stdout);
            done ();
        default:
            fputs ("Try idtree-broker --help\n", stderr);
            exit (2);
        }
    }
}

/* Find out how to boot. If the connection to a launcher is closed, the launcher takes this for a crash and kills the
 * instance, and an error message could be lost. So the broker gets a duplicate of the connection, and the original
 * stays open until the process ends.
 */
static void choose_boot (struct boot_conf *conf, struct attrs *attrs)
{
    const char *asked = attr_get (attrs, "broker.boot", NULL);
    struct launcher_traces traces;
    idt_error_t err;
    int fd;

    conf->attrs = attrs;
    traces_read (&traces, environ);
    if (boot_choose (conf, asked ? asked : "auto", &traces, &err) < 0)
        die (2, err.text);
    if (conf->method != &boot_pmi)
        return;
    fd = conf->pmi_fd;
    if (fcntl (fd, F_SETFD, FD_CLOEXEC) < 0 || (conf->pmi_fd = fcntl (fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        fprintf (stderr,
                 "idtree-broker: PMI_FD=%d is no open descriptor: the launcher's connection was closed or not "
                 "inherited\n",
                 fd);
        exit (1);
    }
}

/* Whether the directory part of 'exe' ends in 'folder'. If so, '*top' is the length of the path before 'folder'. */
static bool is_in (const char *exe, const char *folder, int *top)
{
    const char *slash = strrchr (exe, '/');
    size_t length = strlen (folder), n = slash ? (size_t)(slash - exe) : 0;

    if (n <= length || strncmp (slash - length, folder, length) != 0)
        return false;
    *top = (int)(n - length);
    return true;
}

/* A broker that runs from its build tree loads the modules of that tree; any other broker loads the installed modules.
 * The path of the program shows which it is. If the code contained the build path, the bytes of the program would
 * depend on the place where it was built.
 */
static const char *module_path (char buf[static PATH_MAX])
{
    char exe[PATH_MAX];
    ssize_t n = readlink ("/proc/self/exe", exe, sizeof (exe) - 1);
    const char *env = getenv ("IDTREE_MODULE_PATH");
    int top, length;

    if (env)
        return env;
    exe[n > 0 ? n : 0] = '\0';
    if (!is_in (exe, "/src/broker/.libs", &top) && !is_in (exe, "/src/broker", &top))
        return MODULEDIR;
    length = snprintf (buf, PATH_MAX, "%.*s/src/modules/.libs", top, exe);
    return length < PATH_MAX && access (buf, X_OK) == 0 ? buf : MODULEDIR;
}

/* --- the process --------------------------------------------------------------------------------- */

/* The argument of the signal watcher. */
struct signals {
    struct broker_group *group; /* NULL: there are no brokers yet, or they have ended */
    struct root_candidate *candidate;
    struct broker_group_conf *conf;
    char **argv;
    int fd;
    bool reloads; /* on SIGHUP the configuration files are read again */
    bool nohup;   /* without 'reloads': SIGHUP is ignored, because nohup started this process */
};

static void reload (struct broker_group *group)
{
    idt_error_t err;
    json_t *report = broker_group_reload (group, &err);

    if (!report)
        fprintf (stderr, "idtree-broker: reload: %s\n", err.text);
    json_decref (report);
}

/* A process that waits for the role of rank 0 starts again, with the files as they are now, unless they are invalid. */
static void start_again (struct signals *s)
{
    struct broker_group_conf *conf = s->conf;
    struct boot_conf boot = conf->boot;
    struct root_candidate trial;
    idt_error_t err;

    boot.attrs = conffile_read_again (conf->attrs, conf->config_files, conf->nconfig_files, &err);
    if (!boot.attrs || candidate_init (&trial, &boot, &err) < 0)
        fprintf (stderr, "idtree-broker: reload: %s\n", err.text);
    else {
        fprintf (stderr, "idtree-broker: reload: starts again, and stands by\n");
        execv ("/proc/self/exe", s->argv);
        fprintf (stderr, "idtree-broker: reload: cannot start again: %s\n", strerror (errno));
    }
    attrs_destroy (boot.attrs);
}

static void signal_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct signals *s = arg;
    static const struct {
        uint32_t signum;
        const char *name;
    } names[] = { { SIGTERM, "SIGTERM" }, { SIGINT, "SIGINT" }, { SIGHUP, "SIGHUP" } };
    struct signalfd_siginfo info;

    if (read (s->fd, &info, sizeof (info)) != sizeof (info))
        return;
    if (info.ssi_signo == SIGHUP && s->reloads) {
        if (s->group)
            reload (s->group);
        else
            start_again (s);
        return;
    }
    if (info.ssi_signo == SIGHUP && s->nohup)
        return;
    if (!s->group) {
        candidate_stop (s->candidate);
        return;
    }
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (names[i].signum == info.ssi_signo)
            broker_group_stop (s->group, names[i].name);
}

static const int signals_read[] = BROKER_SIGNALS;

static int open_signals (void)
{
    sigset_t mask;

    signal (SIGPIPE, SIG_IGN);
    sigemptyset (&mask);
    for (const int *sig = signals_read; *sig != 0; sig++)
        sigaddset (&mask, *sig);
    return signalfd (-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Raise the soft limit of descriptors to the hard limit, because each connection needs a descriptor, even a connection
 * without a key. Stores the old limit in '*files'.
 */
static void raise_files (uint64_t *files)
{
    struct rlimit r;

    if (getrlimit (RLIMIT_NOFILE, &r) < 0)
        return;
    *files = r.rlim_cur;
    r.rlim_cur = r.rlim_max;
    setrlimit (RLIMIT_NOFILE, &r);
}

static void end (struct broker_group_conf *conf, struct signals *signals)
{
    process_destroy (conf->process);
    attrs_destroy (conf->attrs);
    free (conf->config_files);
    close (signals->fd);
}

/* Modules that the zygote opened before it forked this process (zygote.h), so that they are already mapped. After the
 * brokers have loaded their modules, the process closes these handles. Otherwise an unloaded module would stay mapped,
 * and its next version could not be loaded.
 */
#define OPENED_MAX 8

struct opened {
    void *dso[OPENED_MAX];
    int count;
};

static void open_modules (void *arg)
{
    char list[] = BROKER_MODULES, path[PATH_MAX], file[2 * PATH_MAX], *save = NULL;
    struct opened *o = arg;
    const char *folder = module_path (path);

    for (char *name = strtok_r (list, ",", &save); name && o->count < OPENED_MAX; name = strtok_r (NULL, ",", &save)) {
        snprintf (file, sizeof (file), "%s/%s.so", folder, name);
        if ((o->dso[o->count] = dlopen (file, RTLD_NOW | RTLD_LOCAL)))
            o->count++;
    }
}

static void close_modules (struct opened *o)
{
    while (o->count > 0)
        dlclose (o->dso[--o->count]);
}

/* --- check --------------------------------------------------------------------------------------- */

/* Whether an attribute describes the place of a broker or the other brokers of the instance. --check does not give such
 * attributes to the trial, in which one broker runs alone.
 */
static bool is_of_place (const char *name)
{
    static const char *const names[] = { "statedir",      "rundir",        "broker.boot",
                                         "broker.quorum", "tbon.endpoint", "local.sockets" };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (strcmp (name, names[i]) == 0)
            return true;
    return strncmp (name, "cluster.", strlen ("cluster.")) == 0 || strncmp (name, "root.", strlen ("root.")) == 0;
}

struct trial {
    struct attrs *given, *attrs;
};

static void give_to_trial (const char *name, const char *value, void *arg)
{
    struct trial *t = arg;
    idt_error_t err;

    if (!is_of_place (name) && attr_give_at (t->attrs, name, value, attr_origin (t->given, name), &err) < 0)
        die (BROKER_EXIT_USAGE, err.text);
}

/* Check the description of the instance. Returns the number of brokers. */
static uint32_t check_others (const struct boot_conf *conf)
{
    const char *topology = attr_get (conf->attrs, "tbon.topo", NULL);
    struct boot_conf trial = *conf;
    idt_error_t err;

    if (conf->method != &boot_config)
        return 1;
    trial.topology = topology ? topology : TOPO_DEFAULT;
    struct boot *b = boot_create (&trial, &err);
    if (!b)
        die (BROKER_EXIT_USAGE, err.text);
    uint32_t size = b->size;
    boot_destroy (b);
    return size;
}

/* Prepare the trial of --check: a single broker, in a temporary folder, reads all attributes, and so do its modules. */
static void prepare_check (struct broker_group_conf *conf, uint32_t *size)
{
    static char *command[] = { "true", NULL };
    struct trial t = { .given = conf->attrs, .attrs = attrs_create () };
    idt_error_t err;

    *size = check_others (&conf->boot);
    if (!t.attrs)
        die (1, strerror (errno));
    if (conf->boot.method == &boot_config && quorum_check (conf->attrs, *size, &err) < 0)
        die (BROKER_EXIT_USAGE, err.text);
    attr_foreach (conf->attrs, give_to_trial, &t);
    give (t.attrs, "broker.boot", boot_single.name);
    attrs_destroy (conf->attrs);
    conf->attrs = t.attrs;
    conf->boot = (struct boot_conf){
        .method = &boot_single, .size = 1, .attrs = t.attrs, .inherited_files = conf->boot.inherited_files
    };
    conf->nconfig_files = 0;
    conf->command = command;
    unsetenv ("NOTIFY_SOCKET");
}

static void tell_checked (const char *path, uint32_t size)
{
    if (size > 1)
        printf ("%s%sno error found: an instance of %u brokers\n", path, *path ? ": " : "", (unsigned)size);
    else
        printf ("%s%sno error found\n", path, *path ? ": " : "");
    flush_out ();
}

/* Boot, and run until all brokers have ended. Returns the exit code. */
static int run_brokers (struct broker_group_conf *conf, struct signals *signals, struct manager *manager,
                        struct opened *opened)
{
    struct broker_group *group = broker_group_create (conf);
    idt_error_t err;
    int exit_code;

    if (!group)
        die (1, strerror (errno));
    exit_code = broker_group_start (group, &err) < 0 ? (int)broker_exit_of (errno) : 0;
    close_modules (opened);
    if (exit_code != 0)
        fprintf (stderr, "idtree-broker: %s\n", err.text);
    else {
        signals->group = group;
        manager_set_group (manager, group);
        candidate_set_group (signals->candidate, group);
        exit_code = process_run (conf->process) < 0 ? 1 : broker_group_exit_code (group);
    }
    if (exit_code != 0)
        broker_group_abort (group, exit_code);
    manager_set_group (manager, NULL);
    signals->group = NULL;
    bool shut_down = broker_group_was_shut_down (group);
    broker_group_destroy (group); /* ends the modules */
    candidate_release (signals->candidate, shut_down);
    return exit_code;
}

/* Wait for the role of rank 0 if this process needs it, and run the brokers. Returns the exit code. */
static int run_candidate (struct broker_group_conf *conf, struct signals *signals, struct opened *opened)
{
    struct root_candidate *c = signals->candidate;
    struct manager manager;
    idt_error_t err;
    idt_watcher_t *w;
    int exit_code;

    if (!(w = idt_fd_watcher_create (process_reactor (conf->process), signals->fd, IDT_POLLIN, signal_cb, signals))
        || manager_init (&manager, conf->process) < 0)
        die (1, strerror (errno));
    idt_watcher_start (w);
    int leads = candidate_wait (c, conf->process, &manager, conf->attrs, &err);
    if (leads < 0)
        fprintf (stderr, "idtree-broker: %s\n", err.text);
    if (leads > 0) {
        conf->role = c->role;
        if (!candidate_runs_command (c))
            conf->command = NULL;
        exit_code = run_brokers (conf, signals, &manager, opened);
    }
    else
        exit_code = leads < 0 ? (int)broker_exit_of (errno) : 0;
    candidate_fini (c);
    manager_fini (&manager);
    idt_watcher_destroy (w);
    return exit_code;
}

static int run (int argc, char **argv, struct opened *opened)
{
    uint64_t inherited = plan_files_open (3); /* before this process opens any file */
    struct broker_group_conf conf = { .attrs = attrs_create () };
    struct root_candidate candidate;
    struct signals signals = {
        .fd = open_signals (), .nohup = inherited_nohup (), .candidate = &candidate, .conf = &conf, .argv = argv
    };
    idt_error_t err;
    char modules[PATH_MAX];
    uint32_t rank, size = 0;
    int exit_code;
    bool check = false;

    if (!conf.attrs || signals.fd < 0)
        die (1, strerror (errno));
    raise_files (&conf.files);
    conf.boot.inherited_files = inherited;
    if (manager_reads_stderr (getenv ("JOURNAL_STREAM")))
        give (conf.attrs, "log-stderr-priority", "1");
    parse_options (&conf, &rank, &check, argc, argv);
    if (plan_files_check (0, inherited, &err) < 0)
        die (1, err.text);
    choose_boot (&conf.boot, conf.attrs);
    conf.tmpdir = getenv ("TMPDIR") ? getenv ("TMPDIR") : "/tmp";
    conf.module_path = module_path (modules);
    conf.command = argv + optind;
    if (candidate_init (&candidate, &conf.boot, &err) < 0)
        die ((int)broker_exit_of (errno), err.text);
    const char *checked = conf.nconfig_files > 0 ? conf.config_files[conf.nconfig_files - 1] : "";
    if (check) {
        prepare_check (&conf, &size);
        candidate = (struct root_candidate){ .is_root = false };
    }
    if (!(conf.process = process_create (&err)))
        die (1, err.text);
    signals.reloads = conf.nconfig_files > 0;
    exit_code = run_candidate (&conf, &signals, opened);
    if (check && exit_code == 0)
        tell_checked (checked, size);
    end (&conf, &signals);
    return exit_code;
}

int main (int argc, char **argv)
{
    struct opened opened = { .count = 0 };
    idt_error_t err;

    if (inherited_set_but (signals_read, &err) < 0)
        die (1, err.text);
    if (zygote_serve (open_modules, &opened) < 0)
        die (2, ZYGOTE_VARIABLE " is set, but names no socket: only idtree start may set it for its brokers; unset it");
    return run (argc, argv, &opened);
}
