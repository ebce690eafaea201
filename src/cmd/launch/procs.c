/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* procs.c - the processes of an instance and the brokers in them; the requests of idtree startctl */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/boot/traces.h"
#include "broker/boot/zygote.h"
#include "cmd/launch/procs.h"
#include "libutil/errprintf.h"
#include "libutil/inherited.h"

/* --- start ------------------------------------------------------------------------------------ */

#define NPMI 3         /* number of variables that differ between processes */
#define ZYGOTE_LEAST 2 /* up to this number, processes are started without a zygote */

static size_t length (char *const *list)
{
    size_t n = 0;

    while (list[n])
        n++;
    return n;
}

/* Allocate the environment of brokers: space for the variables of PMI, then the variables of this process, without
 * variables that another launcher set for it.
 */
static char **make_env (void)
{
    char **env = calloc (NPMI + length (environ) + 1, sizeof (env[0]));

    for (size_t i = 0, n = NPMI; env && environ[i]; i++)
        if (!traces_name_task (environ[i]))
            env[n++] = environ[i];
    return env;
}

static char **make_argv (const char *const *args)
{
    size_t n = length ((char *const *)args);
    char **argv = calloc (n + 2, sizeof (argv[0]));

    if (argv) {
        argv[0] = "idtree-broker";
        memcpy (argv + 1, args, n * sizeof (argv[0]));
    }
    return argv;
}

/* Execute a broker, or a zygote of brokers.  'fd' is its connection to the launcher.  After vfork () this memory is the
 * launcher's, and must not change until execve ().
 */
static void exec_broker (const struct procs *procs, int fd, pid_t launcher)
{
    static const int none[] = { 0 }, of_brokers[] = BROKER_SIGNALS;

    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (getppid () != launcher)
        _exit (1);
    setpgid (0, 0);
    int null = open ("/dev/null", O_RDONLY);
    dup2 (null, STDIN_FILENO);
    dup2 (STDERR_FILENO, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close (null);
    fcntl (fd, F_SETFD, 0);
    /* If one of these signals arrives before the broker handles it, the signal stays pending, and does not end the
     * broker.
     */
    inherited_pass_signals_but (procs->script ? none : of_brokers);
    execve (procs->path, procs->argv, procs->env);
    dprintf (STDERR_FILENO, "idtree start: cannot run %s: %s\n", procs->path, strerror (errno));
    _exit (127);
}

/* Start a process.  Its own variables 'var' come before the shared ones.  vfork () is used, because copying the
 * launcher's page tables for each process would take longer than the rest of the start.
 */
static pid_t spawn (struct procs *procs, char var[NPMI][32], int fd)
{
    pid_t launcher = getpid (), pid;

    for (int i = 0; i < NPMI; i++)
        procs->env[i] = var[i];
    pid = vfork ();
    if (pid == 0)
        exec_broker (procs, fd, launcher);
    return pid;
}

static pid_t spawn_broker (struct procs *procs, int process, int pmi_fd)
{
    char var[NPMI][32];

    snprintf (var[0], sizeof (var[0]), "PMI_FD=%d", pmi_fd);
    snprintf (var[1], sizeof (var[1]), "PMI_RANK=%d", process);
    snprintf (var[2], sizeof (var[2]), "PMI_SIZE=%d", procs->count);
    return spawn (procs, var, pmi_fd);
}

/* Whether the executable is a script.  A zygote cannot replace a script, because the script may act differently for
 * each rank before it becomes a broker.
 */
static bool is_script (const char *path)
{
    char mark[2] = "";
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    bool script = fd >= 0 && read (fd, mark, sizeof (mark)) == sizeof (mark) && memcmp (mark, "#!", sizeof (mark)) == 0;

    if (fd >= 0)
        close (fd);
    return script;
}

void procs_open_zygote (struct procs *procs)
{
    char var[NPMI][32] = { "", "PMI_RANK=", "PMI_SIZE=" };
    int fds[2];

    if (procs->count <= ZYGOTE_LEAST || procs->script
        || socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return;
    snprintf (var[0], sizeof (var[0]), ZYGOTE_VARIABLE "=%d", fds[1]);
    if ((procs->zygote = spawn (procs, var, fds[1])) > 0)
        procs->zygote_fd = fds[0];
    else
        close (fds[0]);
    close (fds[1]);
}

void procs_close_zygote (struct procs *procs)
{
    if (procs->zygote_fd < 0)
        return;
    close (procs->zygote_fd);
    procs->zygote_fd = -1;
    while (waitpid (procs->zygote, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Make a process, by the zygote if there is one.  If the zygote does not answer, it is killed. */
static pid_t make_process (struct procs *procs, int process, int pmi_fd)
{
    struct zygote_order order = { .parent = getpid (), .rank = process, .size = procs->count };
    pid_t pid;

    if (procs->zygote_fd >= 0) {
        if ((pid = zygote_ask (procs->zygote_fd, &order, pmi_fd)) > 0)
            return pid;
        kill (procs->zygote, SIGKILL);
        procs_close_zygote (procs);
    }
    return spawn_broker (procs, process, pmi_fd);
}

int procs_init (struct procs *procs, const struct plan *plan, int size, const char *path, const char *const *args)
{
    int count = plan_processes (plan);

    memset (procs, 0, sizeof (*procs));
    procs->zygote_fd = -1;
    procs->rank = calloc (size, sizeof (procs->rank[0]));
    procs->process = calloc (count, sizeof (procs->process[0]));
    procs->argv = make_argv (args);
    procs->env = make_env ();
    if (!procs->rank || !procs->process || !procs->argv || !procs->env)
        return -1;
    procs->plan = plan;
    procs->size = size;
    procs->count = count;
    procs->path = path;
    procs->script = is_script (path);
    for (int i = 0; i < size; i++)
        procs->rank[i].status = -1;
    for (int i = 0; i < count; i++)
        procs->process[i].pmi_fd = -1;
    return 0;
}

void procs_fini (struct procs *procs)
{
    procs_close_zygote (procs);
    for (int i = 0; i < procs->count; i++)
        procs_close_pmi (procs, i);
    free (procs->argv);
    free (procs->env);
    free (procs->rank);
    free (procs->process);
}

int procs_start (struct procs *procs, int process, idt_error_t *errp)
{
    struct launched_process *p = &procs->process[process];
    int fds[2], first = plan_rank (procs->plan, process, 0);

    assert (p->pid == 0 && p->pmi_fd < 0);
    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return errprintf (errp, "broker %d: cannot make a socket: %s", first, strerror (errno));
    pid_t pid = make_process (procs, process, fds[1]);
    int saved_errno = errno;
    close (fds[1]);
    if (pid < 0) {
        close (fds[0]);
        errno = saved_errno;
        return errprintf (errp, "broker %d: cannot make a process: %s", first, strerror (errno));
    }
    fcntl (fds[0], F_SETFL, O_NONBLOCK);
    *p = (struct launched_process){ .pid = pid, .pmi_fd = fds[0] };
    procs->alive++;
    for (uint32_t i = 0; i < plan_count (procs->plan, process); i++)
        procs_set_starting (procs, plan_rank (procs->plan, process, i));
    return 0;
}

/* --- change ----------------------------------------------------------------------------------- */

int procs_process (const struct procs *procs, int rank)
{
    return plan_process (procs->plan, rank);
}

pid_t procs_pid (const struct procs *procs, int rank)
{
    return procs->rank[rank].state == PROC_DOWN ? 0 : procs->process[procs_process (procs, rank)].pid;
}

static bool procs_is_stopped (const struct procs *procs, int rank)
{
    return procs->rank[rank].stopped || procs->process[procs_process (procs, rank)].stopped;
}

bool procs_is_alone (const struct procs *procs, int rank)
{
    return plan_count (procs->plan, procs_process (procs, rank)) == 1;
}

void procs_set_starting (struct procs *procs, int rank)
{
    struct launched_rank *r = &procs->rank[rank];

    r->state = PROC_STARTING;
    r->stopped = false;
    r->sent = 0;
}

void procs_set_up (struct procs *procs, int rank)
{
    if (procs->rank[rank].state == PROC_STARTING) {
        procs->rank[rank].state = PROC_UP;
        procs->up++;
        assert (procs->up <= procs->size);
    }
}

void procs_set_down (struct procs *procs, int rank, int status)
{
    struct launched_rank *r = &procs->rank[rank];

    if (r->state == PROC_DOWN)
        return;
    if (r->state == PROC_UP)
        procs->up--;
    assert (procs->up >= 0);
    r->state = PROC_DOWN;
    r->stopped = false;
    r->status = status;
}

void procs_close_pmi (struct procs *procs, int process)
{
    struct launched_process *p = &procs->process[process];

    if (p->pmi_fd >= 0)
        close (p->pmi_fd);
    p->pmi_fd = -1;
    p->listens = false;
}

int procs_kill (struct procs *procs, int process, int sig)
{
    struct launched_process *p = &procs->process[process];

    if (p->pid == 0)
        return errset (ESRCH);
    if (sig != SIGSTOP && sig != SIGCONT)
        p->sent = sig;
    return kill (p->pid, sig);
}

void procs_kill_all (struct procs *procs, int sig)
{
    for (int i = 0; i < procs->count; i++)
        procs_kill (procs, i, sig);
}

void procs_cont_all (struct procs *procs)
{
    for (int i = 0; i < procs->count; i++)
        if (procs->process[i].stopped)
            procs_kill (procs, i, SIGCONT);
}

/* A process has ended.  A signal that was sent to the process counts as sent to each of its ranks. */
static void set_ended (struct procs *procs, int process, int status)
{
    struct launched_process *p = &procs->process[process];

    assert (procs->alive > 0 && p->pid > 0);
    procs->alive--;
    p->pid = 0;
    p->stopped = false;
    p->status = status;
    p->lost = 0;
    for (uint32_t i = 0; i < plan_count (procs->plan, process); i++) {
        struct launched_rank *r = &procs->rank[plan_rank (procs->plan, process, i)];

        if (r->state == PROC_DOWN)
            continue;
        p->lost++;
        if (p->sent)
            r->sent = p->sent;
        procs_set_down (procs, plan_rank (procs->plan, process, i), status);
    }
}

static int find (const struct procs *procs, pid_t pid)
{
    assert (pid > 0); /* a process that is down has the pid 0 */
    for (int i = 0; i < procs->count; i++)
        if (procs->process[i].pid == pid)
            return i;
    return -1;
}

int procs_changed (struct procs *procs, pid_t pid, int status)
{
    int process = find (procs, pid);

    if (process < 0)
        return -1;
    if (WIFSTOPPED (status) || WIFCONTINUED (status))
        procs->process[process].stopped = WIFSTOPPED (status);
    else
        set_ended (procs, process, status);
    return process;
}

bool procs_ended_well (const struct procs *procs, int rank)
{
    const struct launched_rank *r = &procs->rank[rank];

    return r->status == 0 || (WIFSIGNALED (r->status) && WTERMSIG (r->status) == r->sent);
}

/* --- text ------------------------------------------------------------------------------------- */

const char *procs_end (int status, char *buf, size_t size)
{
    const char *name;

    if (!WIFSIGNALED (status))
        snprintf (buf, size, "exited with status %d", WEXITSTATUS (status));
    else if ((name = sigabbrev_np (WTERMSIG (status))))
        snprintf (buf, size, "was killed by SIG%s", name);
    else
        snprintf (buf, size, "was killed by signal %d", WTERMSIG (status));
    return buf;
}

/* Write the state of a rank into 'buf': "up", "stopped", "killed by SIGSEGV", ...  Returns 'buf'. */
static const char *procs_state (const struct procs *procs, int rank, char *buf, size_t size)
{
    const struct launched_rank *p = &procs->rank[rank];
    char end[64];

    if (procs_is_stopped (procs, rank))
        snprintf (buf, size, "stopped");
    else if (p->state != PROC_DOWN)
        snprintf (buf, size, "%s", p->state == PROC_UP ? "up" : "starting");
    else if (p->status == -1)
        snprintf (buf, size, "not started");
    else {
        procs_end (p->status, end, sizeof (end));
        snprintf (buf, size, "%s", !strncmp (end, "was ", 4) ? end + 4 : end);
    }
    return buf;
}

/* --- requests of idtree startctl -------------------------------------------------------------- */

static json_t *status_cb (void *arg)
{
    struct procs *procs = arg;
    json_t *brokers = json_array ();
    char state[64];

    for (int rank = 0; rank < procs->size; rank++) {
        pid_t pid = procs_pid (procs, rank);

        procs_state (procs, rank, state, sizeof (state));
        json_array_append_new (brokers, json_pack ("{s:i s:o s:s}", "rank", rank, "pid",
                                                   pid ? json_integer (pid) : json_null (), "state", state));
    }
    return json_pack ("{s:o}", "brokers", brokers);
}

static const struct verb {
    const char *name;
    int signum; /* 0: no signal, but a start of the broker */
} verbs[] = { { "kill", SIGKILL }, { "stop", SIGSTOP }, { "cont", SIGCONT }, { "run", 0 } };

static const struct verb *find_verb (const char *name)
{
    for (size_t i = 0; i < sizeof (verbs) / sizeof (verbs[0]); i++)
        if (strcmp (verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* Return the signal of a verb.  A kill may have another signal than SIGKILL. */
static int signal_of (const struct verb *v, const struct control_request *req)
{
    return v->signum == SIGKILL && req->signum > 0 && req->signum < NSIG ? req->signum : v->signum;
}

/* Whether a verb is done for a rank that is not down.  check_cb () handles ranks that are down: only a kill is then
 * done.
 */
static bool is_done (const struct verb *v, const struct procs *procs, int rank)
{
    switch (v->signum) {
    case SIGSTOP:
        return procs_is_stopped (procs, rank);
    case SIGCONT:
        return !procs_is_stopped (procs, rank);
    case SIGKILL:
        return false;
    default:
        return procs->rank[rank].state == PROC_UP;
    }
}

static enum control_result failed (idt_error_t *errp, const char *fmt, int rank)
{
    errprintf (errp, fmt, rank);
    return CONTROL_FAILED;
}

/* Return the command that replaces a signal if a process hosts several ranks.  NULL: the signal has no such command. */
static const char *order_of (int signum)
{
    for (size_t i = 0; i < sizeof (verbs) / sizeof (verbs[0]); i++)
        if (verbs[i].signum == signum)
            return verbs[i].name;
    return signum == SIGTERM || signum == SIGINT || signum == SIGHUP ? "end" : NULL;
}

/* Fail if the process of the rank does not take commands, because the client would wait forever. */
static enum control_result check_listens (const struct procs *procs, int rank, idt_error_t *errp)
{
    const struct launched_process *p = &procs->process[procs_process (procs, rank)];

    if (p->listens)
        return CONTROL_DONE;
    return failed (errp,
                   p->pmi_fd < 0 ? "broker %d: its process no longer takes commands"
                                 : "broker %d: its process is starting",
                   rank);
}

static enum control_result give_order (struct procs *procs, int rank, int signum, idt_error_t *errp)
{
    const char *order = order_of (signum);

    assert (signum > 0);
    if (procs->rank[rank].state == PROC_DOWN)
        return failed (errp, "broker %d is not running", rank);
    if (!order)
        return failed (errp, "broker %d shares its process with others: it takes KILL, TERM, INT, HUP, STOP and CONT",
                       rank);
    if (check_listens (procs, rank, errp) < 0)
        return CONTROL_FAILED;
    if (signum != SIGSTOP && signum != SIGCONT)
        procs->rank[rank].sent = signum;
    procs->ops->order (procs->arg, rank, order, signum);
    return CONTROL_WAIT;
}

static enum control_result send_signal (struct procs *procs, int rank, int signum, idt_error_t *errp)
{
    if (!procs_is_alone (procs, rank))
        return give_order (procs, rank, signum, errp);
    if (procs_kill (procs, procs_process (procs, rank), signum) < 0)
        return failed (errp, "broker %d is not running", rank);
    return CONTROL_WAIT;
}

/* Start a rank.  If its process has ended, all ranks that the process hosts are started. */
static enum control_result start (struct procs *procs, int rank, idt_error_t *errp)
{
    int process = procs_process (procs, rank);

    if (procs->rank[rank].state != PROC_DOWN)
        return failed (errp, "broker %d is running", rank);
    if (procs->process[process].pid == 0)
        return procs->ops->start (procs->arg, process, errp) < 0 ? CONTROL_FAILED : CONTROL_WAIT;
    if (check_listens (procs, rank, errp) < 0)
        return CONTROL_FAILED;
    procs_set_starting (procs, rank);
    procs->ops->order (procs->arg, rank, "run", 0);
    return CONTROL_WAIT;
}

static enum control_result begin_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    struct procs *procs = arg;
    const struct verb *v = find_verb (req->verb);

    if (req->rank < 0 || req->rank >= procs->size) {
        errprintf (errp, "there is no rank %d: the instance has ranks 0 to %d", req->rank, procs->size - 1);
        return CONTROL_FAILED;
    }
    if (procs->stopping)
        return failed (errp, "rank %d: the instance is stopping", req->rank);
    if (!v)
        return failed (errp, "rank %d: no such verb", req->rank);
    return v->signum ? send_signal (procs, req->rank, signal_of (v, req), errp) : start (procs, req->rank, errp);
}

static enum control_result check_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    struct procs *procs = arg;
    const struct launched_rank *p = &procs->rank[req->rank];
    const struct verb *v = find_verb (req->verb);
    char end[64];

    if (p->state != PROC_DOWN)
        return is_done (v, procs, req->rank) ? CONTROL_DONE : CONTROL_WAIT;
    if (v->signum == SIGKILL)
        return CONTROL_DONE;
    errprintf (errp, "broker %d %s", req->rank, procs_end (p->status, end, sizeof (end)));
    return CONTROL_FAILED;
}

const struct control_ops procs_control_ops = {
    .status = status_cb,
    .begin = begin_cb,
    .check = check_cb,
};
