/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher_ctl.c - the requests of idtree startctl to the launcher: get the states of brokers, and change one */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "cmd/launch/launcher_private.h"
#include "libutil/errprintf.h"

static json_t *status_cb (void *arg)
{
    struct launcher *l = arg;
    json_t *brokers = json_array ();
    char state[64];

    for (int rank = 0; rank < l->procs.size; rank++) {
        pid_t pid = procs_pid (&l->procs, rank);

        procs_state (&l->procs, rank, state, sizeof (state));
        json_array_append_new (brokers, json_pack ("{s:i s:o s:s}", "rank", rank, "pid",
                                                   pid ? json_integer (pid) : json_null (), "state", state));
    }
    return json_pack ("{s:o}", "brokers", brokers);
}

/* --- verbs ------------------------------------------------------------------------------------ */

static const struct verb {
    const char *name;
    int signum; /* 0: no signal, the broker is started */
} verbs[] = { { "kill", SIGKILL }, { "stop", SIGSTOP }, { "cont", SIGCONT }, { "run", 0 } };

static const struct verb *find_verb (const char *name)
{
    for (size_t i = 0; i < sizeof (verbs) / sizeof (verbs[0]); i++)
        if (strcmp (verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* A kill may use another signal. */
static int signal_of (const struct verb *v, const struct control_request *req)
{
    return v->signum == SIGKILL && req->signum > 0 && req->signum < NSIG ? req->signum : v->signum;
}

/* Whether a verb is done for a rank that has a process.  For a rank without one only a kill is done. */
static bool is_done (const struct verb *v, const struct launcher *l, int rank)
{
    switch (v->signum) {
    case SIGSTOP:
        return procs_is_stopped (&l->procs, rank);
    case SIGCONT:
        return !procs_is_stopped (&l->procs, rank);
    case SIGKILL:
        return false;
    default:
        return l->procs.rank[rank].state == PROC_UP;
    }
}

/* --- requests --------------------------------------------------------------------------------- */

static enum control_result failed (idt_error_t *errp, const char *fmt, int rank)
{
    errprintf (errp, fmt, rank);
    return CONTROL_FAILED;
}

/* The command for one rank of a process with several that replaces a signal. */
static const char *order_of (int signum)
{
    switch (signum) {
    case SIGKILL:
        return "kill";
    case SIGSTOP:
        return "stop";
    case SIGCONT:
        return "cont";
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
        return "end";
    default:
        return NULL;
    }
}

/* Fail if the process of a rank does not take commands: a client that sent one would wait forever. */
static enum control_result check_listens (const struct launcher *l, int rank, idt_error_t *errp)
{
    const struct launched_process *p = &l->procs.process[procs_process (&l->procs, rank)];

    if (p->listens)
        return CONTROL_DONE;
    return failed (errp,
                   p->pmi_fd < 0 ? "broker %d: its process no longer takes commands"
                                 : "broker %d: its process is starting",
                   rank);
}

static enum control_result give_order (struct launcher *l, int rank, int signum, idt_error_t *errp)
{
    const char *order = order_of (signum);

    if (l->procs.rank[rank].state == PROC_DOWN)
        return failed (errp, "broker %d is not running", rank);
    if (!order)
        return failed (errp, "broker %d shares its process with others: it takes KILL, TERM, INT, HUP, STOP and CONT",
                       rank);
    if (check_listens (l, rank, errp) < 0)
        return CONTROL_FAILED;
    if (signum != SIGSTOP && signum != SIGCONT)
        l->procs.rank[rank].sent = signum;
    launcher_order (l, rank, order, signum);
    return CONTROL_WAIT;
}

static enum control_result send_signal (struct launcher *l, int rank, int signum, idt_error_t *errp)
{
    if (!procs_is_alone (&l->procs, rank))
        return give_order (l, rank, signum, errp);
    if (procs_kill (&l->procs, procs_process (&l->procs, rank), signum) < 0)
        return failed (errp, "broker %d is not running", rank);
    return CONTROL_WAIT;
}

/* If the process of the rank has ended, all ranks that it hosts run again. */
static enum control_result run (struct launcher *l, int rank, idt_error_t *errp)
{
    int process = procs_process (&l->procs, rank);

    if (l->procs.rank[rank].state != PROC_DOWN)
        return failed (errp, "broker %d is running", rank);
    if (l->procs.process[process].pid == 0)
        return launcher_start_process (l, process, errp) < 0 ? CONTROL_FAILED : CONTROL_WAIT;
    if (check_listens (l, rank, errp) < 0)
        return CONTROL_FAILED;
    procs_set_starting (&l->procs, rank);
    launcher_order (l, rank, "run", 0);
    return CONTROL_WAIT;
}

static enum control_result begin_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    struct launcher *l = arg;
    const struct verb *v = find_verb (req->verb);

    if (req->rank < 0 || req->rank >= l->procs.size) {
        errprintf (errp, "there is no rank %d: the instance has ranks 0 to %d", req->rank, l->procs.size - 1);
        return CONTROL_FAILED;
    }
    if (l->phase == PHASE_STOP)
        return failed (errp, "rank %d: the instance is stopping", req->rank);
    if (!v)
        return failed (errp, "rank %d: no such verb", req->rank);
    return v->signum ? send_signal (l, req->rank, signal_of (v, req), errp) : run (l, req->rank, errp);
}

static enum control_result check_cb (void *arg, const struct control_request *req, idt_error_t *errp)
{
    struct launcher *l = arg;
    const struct launched_rank *p = &l->procs.rank[req->rank];
    const struct verb *v = find_verb (req->verb);
    char end[64];

    if (p->state != PROC_DOWN)
        return is_done (v, l, req->rank) ? CONTROL_DONE : CONTROL_WAIT;
    if (v->signum == SIGKILL)
        return CONTROL_DONE;
    errprintf (errp, "broker %d %s", req->rank, procs_end (p->status, end, sizeof (end)));
    return CONTROL_FAILED;
}

const struct control_ops launcher_control_ops = {
    .status = status_cb,
    .begin = begin_cb,
    .check = check_cb,
};
