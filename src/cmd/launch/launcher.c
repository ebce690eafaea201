/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher.c - an instance of brokers in processes on this host
 *
 * Phases, each entered at most one time and in this order; BOOT and RUN may be left out:
 *   BOOT   The process of rank 0 is started alone, so that only this process reports a wrong option.
 *          When it requests its secret, the other processes are started.  If a broker ends now, the start fails.
 *   RUN    All brokers have reported that they are up (by PMI finalize, or by idtree's own command). The command
 *          runs.  A broker that ends is reported and not restarted.
 *   QUIT   A signal came, and the command was requested to end.
 *   STOP   The command has ended.  Rank 0 is requested to stop the instance.  After a timeout all brokers are requested
 *          to end; after another timeout they are killed.  The reactor ends when no process is left.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/boot/traces.h"
#include "cmd/base/out.h"
#include "cmd/launch/launcher.h"
#include "cmd/launch/procs.h"
#include "libpmi/pmi_server.h"
#include "libpmi/pmi_wire.h"
#include "libreaper/reaper.h"
#include "libutil/errprintf.h"
#include "libutil/inherited.h"
#include "libutil/minmax.h"

#define COMMAND_GRACE_MS 5000 /* ms until a command that was requested to end is killed */
#define ORPHAN_GRACE_MS 500   /* ms until brokers that outlive rank 0 get a signal */

enum phase {
    PHASE_BOOT,
    PHASE_RUN,
    PHASE_QUIT,
    PHASE_STOP,
};

enum stop_step {
    STOP_ROOT,
    STOP_ALL,
    STOP_KILL,
};

struct pmi_link {
    struct launcher *l;
    idt_watcher_t *w;
};

struct launcher {
    const struct launcher_config *config;
    enum phase phase;
    enum stop_step step;
    bool first_is_sound; /* rank 0 has read its options, and found none wrong */
    bool boot_failed;    /* a failure was reported, and has caused all later ends */
    int status;          /* the launcher's exit status */
    pid_t command;
    struct procs procs;
    struct pmi_link *links; /* one link for each process */
    struct pmi_server *pmi;
    struct control *control;
    idt_reactor_t *r;
    int signal_fd;
    idt_watcher_t *signal_w;
    idt_watcher_t *timer;
};

static void say (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

static void say (const char *fmt, ...)
{
    va_list ap;

    out_error ("idtree start: ");
    va_start (ap, fmt);
    out_vprint (stderr, fmt, ap);
    va_end (ap);
    out_error ("\n");
}

static void set_timer (struct launcher *l, double ms)
{
    idt_timer_watcher_reset (l->timer, ms, 0);
    idt_watcher_start (l->timer);
}

/* --- progress -------------------------------------------------------------------------------- */

static void show_progress (struct launcher *l)
{
    if (l->config->progress)
        out_error ("\ridtree start: %d/%d brokers are up", l->procs.up, l->procs.size);
}

static void clear_progress (struct launcher *l)
{
    if (l->config->progress)
        out_error ("\r\033[K");
}

/* --- stop ------------------------------------------------------------------------------------- */

static void end_if_done (struct launcher *l)
{
    if (l->phase == PHASE_STOP && l->procs.alive == 0)
        idt_reactor_stop (l->r);
}

static void take_step (struct launcher *l)
{
    if (l->step == STOP_KILL)
        procs_kill_all (&l->procs, SIGKILL);
    else
        procs_cont_all (&l->procs);
    if (l->step == STOP_ROOT && l->procs.rank[0].state == PROC_DOWN)
        l->step = STOP_ALL;
    if (l->step == STOP_ROOT)
        procs_kill (&l->procs, 0, SIGTERM);
    if (l->step == STOP_ALL)
        procs_kill_all (&l->procs, SIGTERM);
    set_timer (l, l->config->stop_timeout_ms);
}

static void next_step (struct launcher *l)
{
    if (l->step == STOP_KILL)
        return;
    l->step++;
    if (l->step == STOP_KILL)
        say ("%d %s did not end within %g s and are killed", l->procs.alive,
             l->procs.count == l->procs.size ? "brokers" : "of the processes", l->config->stop_timeout_ms / 1e3);
    take_step (l);
}

/* Stop the instance.  In phase BOOT brokers are killed, because a broker that is not up cannot stop in order. */
static void stop (struct launcher *l)
{
    if (l->phase == PHASE_STOP)
        return;
    if (l->phase == PHASE_BOOT)
        clear_progress (l);
    l->step = l->phase == PHASE_BOOT ? STOP_KILL : STOP_ROOT;
    l->phase = PHASE_STOP;
    l->procs.stopping = true;
    take_step (l);
    end_if_done (l);
}

/* --- command ---------------------------------------------------------------------------------- */

/* If idtree start itself is a task of another launcher, the command must not appear to be this task. */
static void forget_task (void)
{
    size_t kept = 0;

    for (size_t i = 0; environ[i]; i++)
        if (!traces_name_task (environ[i]))
            environ[kept++] = environ[i];
    environ[kept] = NULL;
}

static void exec_command (struct launcher *l, pid_t launcher, pid_t group)
{
    char uri[256];
    struct rlimit files;

    prctl (PR_SET_PDEATHSIG, SIGTERM);
    if (getppid () != launcher)
        _exit (1);
    setpgid (0, group);
    inherited_pass_signals ();
    snprintf (uri, sizeof (uri), "local://%s/local-0", l->config->dir);
    forget_task ();
    setenv ("IDTREE_URI", uri, 1);
    if (!l->config->keep_flux_uri)
        setenv ("FLUX_URI", uri, 1);
    if (l->config->path)
        setenv ("PATH", l->config->path, 1);
    if (l->config->files > 0 && getrlimit (RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = l->config->files; /* undo the launcher's higher limit, which some programs cannot handle */
        setrlimit (RLIMIT_NOFILE, &files);
    }
    execvp (l->config->command[0], (char **)l->config->command);
    say ("cannot run %s: %s", l->config->command[0], strerror (errno));
    _exit (errno == ENOENT ? 127 : 126);
}

/* Run the command in the reaper's process group.  The user's shell started the reaper, so the command has the terminal.
 */
static void run_command (struct launcher *l)
{
    pid_t launcher = getpid (), group = getpgid (getppid ());
    pid_t pid = fork ();

    if (pid == 0)
        exec_command (l, launcher, group);
    if (pid < 0) {
        say ("cannot run %s: %s", l->config->command[0], strerror (errno));
        l->status = 1;
        stop (l);
        return;
    }
    l->command = pid;
}

static void command_ended (struct launcher *l, int status)
{
    l->command = 0;
    if (l->phase == PHASE_RUN)
        l->status = WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status);
    stop (l);
}

/* Request the command to end.  An interactive shell ignores SIGTERM, so it gets SIGHUP. */
static void quit (struct launcher *l)
{
    assert (l->phase == PHASE_RUN && l->command > 0);
    l->phase = PHASE_QUIT;
    kill (l->command, l->config->interactive ? SIGHUP : SIGTERM);
    kill (l->command, SIGCONT);
    set_timer (l, COMMAND_GRACE_MS);
}

/* --- boot ------------------------------------------------------------------------------------- */

static void fail_boot (struct launcher *l, int status, const char *why)
{
    clear_progress (l);
    say ("%s", why);
    l->boot_failed = true;
    l->status = status;
    stop (l);
}

static void pmi_cb (idt_watcher_t *w, int revents, void *arg);

static int start_process (void *arg, int process, idt_error_t *errp)
{
    struct launcher *l = arg;
    struct pmi_link *link = &l->links[process];

    pmi_server_reset (l->pmi, process);
    if (procs_start (&l->procs, process, errp) < 0)
        return -1;
    assert (!link->w);
    if (!(link->w = idt_fd_watcher_create (l->r, l->procs.process[process].pmi_fd, IDT_POLLIN, pmi_cb, link))) {
        procs_kill (&l->procs, process, SIGKILL);
        return errprintf (errp, "process %d: out of memory", process);
    }
    idt_watcher_start (link->w);
    return 0;
}

static void start_others (struct launcher *l)
{
    idt_error_t error;

    procs_open_zygote (&l->procs);
    for (int process = 1; process < l->procs.count && l->phase == PHASE_BOOT; process++)
        if (start_process (l, process, &error) < 0)
            fail_boot (l, 1, error.text);
    procs_close_zygote (&l->procs);
}

/* --- ranks ------------------------------------------------------------------------------------ */

static void rank_up (struct launcher *l, int rank)
{
    procs_set_up (&l->procs, rank);
    if (l->phase == PHASE_BOOT) {
        show_progress (l);
        set_timer (l, l->config->start_timeout_ms);
        if (l->procs.up == l->procs.size) {
            clear_progress (l);
            idt_watcher_stop (l->timer);
            l->phase = PHASE_RUN;
            run_command (l);
        }
    }
}

/* Report that the process or broker 'who' has ended with 'status'.  'well': it ended as expected. */
static void report_end (struct launcher *l, const char *who, int status, bool well)
{
    char end[64], why[256];

    procs_end (status, end, sizeof (end));
    if (l->phase == PHASE_BOOT) {
        snprintf (why, sizeof (why), "%s %s before the instance was up", who, end);
        fail_boot (l, WIFEXITED (status) && WEXITSTATUS (status) == 2 ? 2 : 1, why);
    }
    else if (!well && !l->boot_failed)
        say ("%s %s", who, end);
    if (l->phase == PHASE_STOP && l->step == STOP_ROOT && l->procs.rank[0].state == PROC_DOWN)
        set_timer (l, ORPHAN_GRACE_MS);
}

static void rank_ended (struct launcher *l, int rank, pid_t pid)
{
    char who[64];

    snprintf (who, sizeof (who), "broker %d (pid %d)", rank, (int)pid);
    report_end (l, who, l->procs.rank[rank].status, procs_ended_well (&l->procs, rank));
}

/* --- PMI -------------------------------------------------------------------------------------- */

static void close_link (struct launcher *l, int process)
{
    idt_watcher_destroy (l->links[process].w);
    l->links[process].w = NULL;
    procs_close_pmi (&l->procs, process);
}

static void pmi_send_cb (void *arg, int process, const char *line)
{
    struct launcher *l = arg;
    int fd = l->procs.process[process].pmi_fd;
    size_t len = strlen (line);

    /* The socket's buffer has space for an answer, or for the commands of as many clients as are served.  If send ()
     * fails, the process has ended, which the launcher reports when it reaps the process.
     */
    if (fd >= 0 && send (fd, line, len, MSG_NOSIGNAL) != (ssize_t)len)
        shutdown (fd, SHUT_RDWR);
}

/* Make 32 random bytes in Z85.  A process makes the key pairs of its brokers from these. */
static int make_secret_cb (void *arg, int rank, char *buf, size_t size)
{
    struct launcher *l = arg;
    uint8_t secret[32];
    char text[41];

    if (getrandom (secret, sizeof (secret), 0) != sizeof (secret))
        return -1;
    snprintf (buf, size, "%s", zmq_z85_encode (text, secret, sizeof (secret)));
    explicit_bzero (secret, sizeof (secret));
    explicit_bzero (text, sizeof (text));
    l->first_is_sound = true;
    return 0;
}

/* A process that hosts one rank has called PMI finalize, which reports that its rank is up. */
static void finalized_cb (void *arg, int process)
{
    struct launcher *l = arg;
    int rank = plan_rank (l->config->plan, process, 0);

    if (procs_is_alone (&l->procs, rank))
        rank_up (l, rank);
    control_notify (l->control);
}

static void rank_changed (struct launcher *l, int rank, const char *state, int status)
{
    pid_t pid = procs_pid (&l->procs, rank);

    if (!strcmp (state, "up"))
        rank_up (l, rank);
    else if (!strcmp (state, "stopped") || !strcmp (state, "going"))
        l->procs.rank[rank].stopped = !strcmp (state, "stopped");
    else if (pid > 0) {
        procs_set_down (&l->procs, rank, status);
        rank_ended (l, rank, pid);
    }
}

/* A process that hosts several ranks reports the state of a rank in a line. */
static int line_cb (void *arg, int process, const char *line)
{
    struct launcher *l = arg;
    char state[16];
    int rank, status = 0;

    if (pmi_is (line, "idtree_ready")) {
        l->procs.process[process].listens = true;
        return 0;
    }
    if (!pmi_is (line, "idtree_rank") || pmi_word_int (line, "rank", &rank) < 0
        || pmi_word (line, "state", state, sizeof (state)) < 0 || rank < 0 || rank >= l->procs.size
        || procs_process (&l->procs, rank) != process)
        return -1;
    pmi_word_int (line, "status", &status);
    rank_changed (l, rank, state, status);
    control_notify (l->control);
    return 0;
}

static void order_cb (void *arg, int rank, const char *order, int signum)
{
    struct launcher *l = arg;
    char line[128];

    snprintf (line, sizeof (line), "cmd=idtree_order rank=%d order=%s signal=%d\n", rank, order, signum);
    pmi_send_cb (l, procs_process (&l->procs, rank), line);
}

static const struct procs_ops procs_ops = { .start = start_process, .order = order_cb };

static const struct pmi_server_ops pmi_ops = {
    .send = pmi_send_cb,
    .make_secret = make_secret_cb,
    .finalized = finalized_cb,
    .line = line_cb,
};

static void pmi_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct pmi_link *link = arg;
    struct launcher *l = link->l;
    int process = link - l->links;
    char buf[4096];
    idt_error_t error;

    ssize_t n = read (l->procs.process[process].pmi_fd, buf, sizeof (buf));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close_link (l, process);
        return;
    }
    if (pmi_server_input (l->pmi, process, buf, n, &error) < 0) {
        say ("%s", error.text);
        close_link (l, process);
    }
    if (l->phase == PHASE_BOOT && l->first_is_sound && l->procs.alive == 1)
        start_others (l);
}

/* --- signals and ends ------------------------------------------------------------------------- */

/* Report the end of a process with the ranks that ended now; ranks that had ended earlier were reported one by one. */
static void process_ended (struct launcher *l, int process, pid_t pid)
{
    const struct launched_process *p = &l->procs.process[process];
    int first = plan_rank (l->config->plan, process, 0);
    char who[128];

    close_link (l, process);
    pmi_server_reset (l->pmi, process);
    if (procs_is_alone (&l->procs, first))
        rank_ended (l, first, pid);
    else if (p->lost > 0 || l->phase == PHASE_BOOT) {
        snprintf (who, sizeof (who), "the process (pid %d) of %d brokers, rank %d the first of them,", (int)pid,
                  (int)plan_count (l->config->plan, process), first);
        report_end (l, who, p->status, p->status == 0 || (WIFSIGNALED (p->status) && WTERMSIG (p->status) == p->sent));
    }
}

static void child_changed (struct launcher *l, pid_t pid, int status)
{
    int process;

    if (pid == l->command) {
        if (WIFEXITED (status) || WIFSIGNALED (status))
            command_ended (l, status);
    }
    else if ((process = procs_changed (&l->procs, pid, status)) >= 0) {
        if (l->procs.process[process].pid == 0)
            process_ended (l, process, pid);
        else if (l->phase == PHASE_STOP)
            procs_cont_all (&l->procs);
        control_notify (l->control);
    }
}

static void reap (struct launcher *l)
{
    int status;
    pid_t pid;

    while ((pid = waitpid (-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0)
        child_changed (l, pid, status);
    end_if_done (l);
}

/* The first signal requests the command to end, or stops the instance if no command runs.  A later signal kills the
 * command, or in phase STOP the brokers.
 */
static void end_signal (struct launcher *l, int sig)
{
    if (l->phase == PHASE_STOP) {
        if (l->step != STOP_KILL) {
            l->step = STOP_KILL;
            take_step (l);
        }
        return;
    }
    if (l->phase == PHASE_QUIT) {
        kill (l->command, SIGKILL);
        return;
    }
    l->status = 128 + sig;
    if (l->phase == PHASE_RUN)
        quit (l);
    else
        stop (l);
}

static void signal_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct launcher *l = arg;
    struct signalfd_siginfo info;

    if (read (l->signal_fd, &info, sizeof (info)) != sizeof (info))
        return;
    if (info.ssi_signo == SIGCHLD)
        reap (l);
    else
        end_signal (l, info.ssi_signo);
}

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct launcher *l = arg;
    char why[128];

    switch (l->phase) {
    case PHASE_BOOT:
        snprintf (why, sizeof (why), "%d/%d brokers are up, and no other came up for %g s", l->procs.up, l->procs.size,
                  l->config->start_timeout_ms / 1e3);
        fail_boot (l, 1, why);
        break;
    case PHASE_QUIT:
        kill (l->command, SIGKILL);
        break;
    case PHASE_STOP:
        next_step (l);
        break;
    case PHASE_RUN:
        break;
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static int watch_signals (struct launcher *l)
{
    sigset_t set;

    reaper_signals (&set);
    signal (SIGPIPE, SIG_IGN);
    signal (SIGTTOU, SIG_IGN); /* this process writes to the terminal, but is not in its foreground group */
    if ((l->signal_fd = signalfd (-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)) < 0
        || !(l->signal_w = idt_fd_watcher_create (l->r, l->signal_fd, IDT_POLLIN, signal_cb, l)))
        return -1;
    idt_watcher_start (l->signal_w);
    return 0;
}

static struct pmi_server *make_pmi (struct launcher *l)
{
    uint64_t n;
    char name[32];

    if (getrandom (&n, sizeof (n), 0) != sizeof (n))
        return NULL;
    snprintf (name, sizeof (name), "idtree-%016llx", (unsigned long long)n);
    return pmi_server_create (l->procs.count, name, &pmi_ops, l);
}

/* Send each process the parameters of the plan, from which all processes make the same plan. */
static int put_plan (struct launcher *l)
{
    char text[32];
    uint32_t most = 0;

    if (l->procs.count == l->procs.size)
        return 0;
    for (int i = 0; i < l->procs.count; i++)
        most = max_u64 (most, plan_count (l->config->plan, i));
    pmi_server_set_keys (l->pmi, PMI_SERVER_KEYS_PER_RANK + most);
    snprintf (text, sizeof (text), "%d,%u", l->config->size, l->config->processes);
    return pmi_server_set (l->pmi, "idtree.instance", text);
}

static int init (struct launcher *l, const struct launcher_config *config, idt_error_t *errp)
{
    l->config = config;
    l->signal_fd = -1;
    if (procs_init (&l->procs, config->plan, config->size, config->broker, config->args) < 0
        || !(l->links = calloc (l->procs.count, sizeof (l->links[0]))) || !(l->r = idt_reactor_create ())
        || !(l->pmi = make_pmi (l)) || put_plan (l) < 0 || watch_signals (l) < 0
        || !(l->timer = idt_timer_watcher_create (l->r, config->start_timeout_ms, 0, timer_cb, l)))
        return errprintf (errp, "%s", strerror (errno));
    for (int i = 0; i < l->procs.count; i++)
        l->links[i].l = l;
    l->procs.ops = &procs_ops;
    l->procs.arg = l;
    if (!(l->control = control_create (l->r, config->dir, &procs_control_ops, &l->procs, errp)))
        return -1;
    return 0;
}

static void fini (struct launcher *l)
{
    control_destroy (l->control);
    for (int i = 0; l->links && i < l->procs.count; i++)
        idt_watcher_destroy (l->links[i].w);
    free (l->links);
    idt_watcher_destroy (l->timer);
    idt_watcher_destroy (l->signal_w);
    if (l->signal_fd >= 0)
        close (l->signal_fd);
    pmi_server_destroy (l->pmi);
    procs_fini (&l->procs);
    idt_reactor_destroy (l->r);
}

int launcher_run (const struct launcher_config *config)
{
    struct launcher l = { .phase = PHASE_BOOT };
    idt_error_t error;

    if (init (&l, config, &error) < 0 || start_process (&l, 0, &error) < 0) {
        say ("%s", error.text);
        l.status = 1;
    }
    else {
        show_progress (&l);
        idt_watcher_start (l.timer);
        idt_reactor_run (l.r, IDT_REACTOR_DEFAULT);
    }
    fini (&l);
    return l.status;
}
