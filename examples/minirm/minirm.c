/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* minirm.c - a small resource manager: jobs from ingest.watch run on the ranks with free slots, in order of their ids
 *
 *   minirm --agent [SLOTS]   on each rank that runs jobs: up to SLOTS commands at a time (1)
 *   minirm                   once, anywhere in the instance: the manager
 *
 * A job is acknowledged when it and all earlier jobs have finished, and the events job.start and job.finish are
 * published. Until then the instance keeps the job, and a restarted manager gets it again. So each job runs at least
 * once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "minirm.h"

#define WINDOW 1024  /* most jobs that the manager holds at a time */
#define TRIES 3      /* if so many ranks are lost while they run a job, it is not run again */
#define TICK_MS 1000 /* ms between repetitions of failed requests */

enum state { WAITING, RUNNING, ENDED, TELLING, TOLD };

struct job {
    TAILQ_ENTRY (job) link;
    struct manager *m;
    enum state state;
    char id[FLUID_TEXT_MAX];
    json_t *command; /* NULL: the jobspec has no command that minirm can run */
    uint32_t rank;
    int tries;
    int status;    /* exit code, or 128 + number of a signal; -1: the command did not run */
    char why[256]; /* why the job has this status */
};

struct rank {
    int slots, running;
};

struct manager {
    idt_t *h;
    uint32_t size;
    struct rank *ranks;
    TAILQ_HEAD (jobs, job) jobs; /* all jobs that were received and not acknowledged, in order of id */
    int njobs;
    idt_future_t *watch;
    json_int_t number;  /* number of the present watch */
    struct job *acking; /* jobs up to this one are being acknowledged; NULL: none */
};

void complain (const char *what, const char *why)
{
    fprintf (stderr, "minirm: %s: %s\n", what, why);
}

bool is_owners (const idt_msg_t *event)
{
    return idt_msg_cred (event).rolemask & IDT_ROLE_OWNER;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static idt_future_t *publish (const struct job *job, const char *topic)
{
    json_t *o = json_pack ("{s:s s:I}", "id", job->id, "rank", (json_int_t)job->rank);

    if (job->state != RUNNING)
        json_object_set_new (o, "status", json_integer (job->status));
    if (job->why[0])
        json_object_set_new (o, "error", json_string (job->why));
    char *s = json_dumps (o, JSON_COMPACT);
    idt_future_t *f = idt_event_publish (job->m->h, topic, 0, s);
    free (s);
    json_decref (o);
    return f;
}

/* --- acknowledgements: the finished jobs at the front of the list, one request at a time ------------ */

static void acknowledge (struct manager *m);

static void forget_first (struct manager *m)
{
    struct job *job = TAILQ_FIRST (&m->jobs);

    TAILQ_REMOVE (&m->jobs, job, link);
    m->njobs--;
    json_decref (job->command);
    free (job);
}

static void acked_cb (idt_future_t *f, void *arg)
{
    struct manager *m = arg;
    struct job *last = m->acking;
    bool good = idt_rpc_get (f, NULL) == 0;

    if (!good)
        complain ("ingest.ack", idt_future_error (f));
    idt_future_destroy (f);
    m->acking = NULL;
    if (!good)
        return; /* the timer tries again */
    while (TAILQ_FIRST (&m->jobs) != last)
        forget_first (m);
    forget_first (m);
    acknowledge (m);
}

static void acknowledge (struct manager *m)
{
    struct job *job, *last = NULL;

    for (job = TAILQ_FIRST (&m->jobs); job && job->state == TOLD; job = TAILQ_NEXT (job, link))
        last = job;
    if (!last || m->acking || !m->watch)
        return;
    idt_future_t *f = idt_rpc_pack (m->h, "ingest.ack", IDT_NODEID_ANY, 0, "{s:s s:I}", "id", last->id, "watch",
                                    m->number);
    if (f && idt_future_then (f, -1, acked_cb, m) == 0)
        m->acking = last;
    else
        idt_future_destroy (f);
}

/* --- the end of a job -------------------------------------------------------------------------------------------- */

/* The event about the end of a job was published. Only now the job may be acknowledged, because the instance forgets
 * acknowledged jobs.
 */
static void told_cb (idt_future_t *f, void *arg)
{
    struct job *job = arg;

    job->state = idt_rpc_get (f, NULL) == 0 ? TOLD : ENDED;
    if (job->state == ENDED)
        complain ("job.finish", idt_future_error (f)); /* the timer tries again */
    idt_future_destroy (f);
    acknowledge (job->m);
}

static void tell (struct job *job)
{
    idt_future_t *f = publish (job, "job.finish");

    job->state = TELLING;
    if (f && idt_future_then (f, -1, told_cb, job) == 0)
        return;
    job->state = ENDED;
    idt_future_destroy (f);
}

static void end (struct job *job, int status, const char *why)
{
    job->state = ENDED;
    job->status = status;
    snprintf (job->why, sizeof (job->why), "%s", why);
    tell (job);
}

/* --- a job runs -------------------------------------------------------------------------------------------------- */

static void start_jobs (struct manager *m);

/* A job could not run, because the rank is lost (EHOSTUNREACH), its agent is lost (ENOSYS), or the rank has no free
 * slot (EAGAIN). This need not be the fault of the job, so another rank may run it. But if several ranks were lost
 * while they ran the job, the job may be the cause.
 */
static void lost (struct job *job, int errnum, const char *why)
{
    struct rank *rank = &job->m->ranks[job->rank];

    rank->slots = errnum == EAGAIN ? rank->running : 0; /* until the agent of the rank reports its slots again */
    job->state = WAITING;
    if (errnum != EAGAIN && ++job->tries == TRIES)
        end (job, -1, why);
}

static void ran_cb (idt_future_t *f, void *arg)
{
    struct job *job = arg;
    struct manager *m = job->m;
    int status, errnum;

    m->ranks[job->rank].running--;
    if (idt_rpc_get_unpack (f, "{s:i}", "status", &status) == 0)
        end (job, status, "");
    else if ((errnum = errno) == EHOSTUNREACH || errnum == ENOSYS || errnum == EAGAIN)
        lost (job, errnum, idt_future_error (f));
    else
        end (job, -1, idt_future_error (f));
    idt_future_destroy (f);
    start_jobs (m);
}

static void start (struct job *job, uint32_t rank)
{
    idt_future_t *f = idt_rpc_pack (job->m->h, "minirm-exec.run", rank, 0, "{s:s s:O}", "id", job->id, "command",
                                    job->command);

    if (!f || idt_future_then (f, -1, ran_cb, job) < 0) {
        idt_future_destroy (f);
        return;
    }
    job->state = RUNNING;
    job->rank = rank;
    job->m->ranks[rank].running++;
    idt_future_destroy (publish (job, "job.start"));
}

/* Return the rank with the most free slots. If no rank has a free slot, return the number of ranks. */
static uint32_t find_room (const struct manager *m)
{
    uint32_t best = m->size;
    int most = 0;

    for (uint32_t r = 0; r < m->size; r++)
        if (m->ranks[r].slots - m->ranks[r].running > most) {
            most = m->ranks[r].slots - m->ranks[r].running;
            best = r;
        }
    return best;
}

static void start_jobs (struct manager *m)
{
    struct job *job;
    uint32_t rank;

    TAILQ_FOREACH (job, &m->jobs, link) {
        if (job->state != WAITING)
            continue;
        if ((rank = find_room (m)) == m->size)
            return;
        start (job, rank);
    }
}

static void agent_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct manager *m = arg;
    json_t *o;
    int rank, slots;

    if (!is_owners (msg) || idt_msg_unpack (msg, &o, NULL, "{s:i s:i}", "rank", &rank, "slots", &slots) < 0)
        return;
    json_decref (o);
    if (rank >= 0 && (uint32_t)rank < m->size)
        m->ranks[rank].slots = slots;
    start_jobs (m);
}

/* --- jobs come --------------------------------------------------------------------------------------------------- */

/* Take a job. minirm runs one command of its own user, in one slot. It ignores resources, environments and times. */
static void take_job (struct manager *m, json_t *o)
{
    struct job *job = calloc (1, sizeof (*job));
    const char *id = "";
    json_int_t userid = -1;

    if (!job) {
        complain ("out of memory", "start minirm again");
        exit (1);
    }
    json_unpack (o, "{s:s s:I s:{s:[{s:O}]}}", "id", &id, "userid", &userid, "jobspec", "tasks", "command",
                 &job->command);
    snprintf (job->id, sizeof (job->id), "%s", id);
    job->m = m;
    TAILQ_INSERT_TAIL (&m->jobs, job, link);
    m->njobs++;
    if (!job->command)
        end (job, -1, "the job has no tasks[0].command");
    else if (userid != getuid ())
        end (job, -1, "minirm runs only jobs of the user that it runs as");
}

static void jobs_cb (idt_future_t *f, void *arg)
{
    struct manager *m = arg;
    json_t *jobs, *o;
    size_t i;

    if (idt_rpc_get_unpack (f, "{s:I s:o}", "watch", &m->number, "jobs", &jobs) < 0) {
        complain ("ingest.watch", idt_future_error (f));
        idt_future_destroy (f);
        m->watch = NULL; /* the timer begins to watch again */
        return;
    }
    json_array_foreach (jobs, i, o)
        take_job (m, o);
    idt_future_reset (f);
    start_jobs (m);
    acknowledge (m);
}

/* Watch the jobs after the last one that is held. If the manager holds no job, watch the jobs after the acknowledged
 * ones.
 */
static void watch (struct manager *m)
{
    struct job *last = TAILQ_LAST (&m->jobs, jobs);
    int window = m->njobs < WINDOW ? WINDOW - m->njobs : 1;

    m->number = 0;
    m->watch = idt_rpc_pack (m->h, "ingest.watch", IDT_NODEID_ANY, IDT_RPC_STREAMING, "{s:i s:s*}", "window", window,
                             "after", last ? last->id : NULL);
    if (m->watch && idt_future_then (m->watch, -1, jobs_cb, m) == 0)
        return;
    idt_future_destroy (m->watch);
    m->watch = NULL;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void tick_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct manager *m = arg;
    struct job *job;
    bool waiting = false;

    if (!m->watch)
        watch (m);
    TAILQ_FOREACH (job, &m->jobs, link) {
        waiting = waiting || job->state == WAITING;
        if (job->state == ENDED)
            tell (job);
    }
    if (waiting) /* agents that seemed to be lost or full report their slots again */
        idt_future_destroy (idt_event_publish (m->h, "minirm.hello", 0, NULL));
    acknowledge (m);
    start_jobs (m);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "minirm.agent", agent_cb, 0 },
    IDT_HANDLERS_END,
};

static int manager_main (idt_t *h)
{
    struct manager m = { .h = h };
    idt_watcher_t *tick = idt_timer_watcher_create (idt_get_reactor (h), 0, TICK_MS, tick_cb, &m);

    TAILQ_INIT (&m.jobs);
    if (idt_get_size (h, &m.size) == 0 && (m.ranks = calloc (m.size, sizeof (*m.ranks))) && tick
        && idt_handlers_add (h, handlers, &m) == 0) {
        idt_future_destroy (idt_event_subscribe (h, "minirm.agent"));
        idt_future_destroy (idt_event_publish (h, "minirm.hello", 0, NULL));
        idt_watcher_start (tick);
        idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    }
    complain ("cannot continue", strerror (errno));
    return 1; /* jobs stay in the instance: the next manager gets the unacknowledged ones */
}

int main (int argc, char **argv)
{
    bool agent = argc > 1 && strcmp (argv[1], "--agent") == 0;
    int slots = argc > 2 ? atoi (argv[2]) : 1;
    idt_error_t error;
    idt_t *h;

    if (argc > 3 || (argc > 1 && !agent) || slots < 1 || slots > MAX_SLOTS) {
        fprintf (stderr, "usage: minirm | minirm --agent [SLOTS], SLOTS from 1 to %d\n", MAX_SLOTS);
        return 2;
    }
    if (!(h = idt_open (NULL, &error))) {
        complain ("cannot connect", error.text);
        return 1;
    }
    if (!agent)
        return manager_main (h);
    int rc = agent_main (h, slots);
    idt_close (h);
    return rc;
}
