/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lifecycle.c - the states of a broker, as a table; the actions at the begin of each state; the events that end a state
 *
 * state_next () decides which state follows. All events pass through input (), except a second order to stop, which
 * leads to state exit directly. So a broker never returns to an earlier state. A timer limits the states in which the
 * broker waits for other brokers: join, cleanup, shutdown.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "broker/boot/boot.h"
#include "broker/broker.h"
#include "broker/command.h"
#include "broker/lifecycle.h"
#include "broker/module/module.h"
#include "broker/overlay/overlay.h"
#include "broker/route/usock.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define READ_TURN_MS 2     /* between two checks whether clients have read all output */
#define READ_S 1.          /* largest time that an ending broker waits for clients to read */
#define WAITS_S 10.        /* until a broker without a join timeout first logs that it waits */
#define WAITS_ON_S 600.    /* between further log lines that it waits */
#define REFUSED_S 10.      /* between the first two log lines of a refused broker; doubled each time */
#define REFUSED_MAX_S 600. /* longest time between two log lines of a refused broker */

/* --- which state follows ------------------------------------------------------------------------------------- */

static const struct {
    enum state from;
    enum state_input input;
    enum state to;
} transitions[] = {
    { STATE_JOIN, STATE_JOINED, STATE_RUN },          { STATE_JOIN, STATE_STOP, STATE_CLEANUP },
    { STATE_RUN, STATE_STOP, STATE_CLEANUP },         { STATE_CLEANUP, STATE_NO_CHILDREN, STATE_SHUTDOWN },
    { STATE_CLEANUP, STATE_TIMEOUT, STATE_SHUTDOWN }, { STATE_SHUTDOWN, STATE_LEFT, STATE_EXIT },
    { STATE_SHUTDOWN, STATE_TIMEOUT, STATE_EXIT },
};

enum state state_next (enum state state, enum state_input input)
{
    for (size_t i = 0; i < sizeof (transitions) / sizeof (transitions[0]); i++)
        if (transitions[i].from == state && transitions[i].input == input)
            return transitions[i].to;
    return state;
}

const char *state_name (enum state state)
{
    static const char *names[] = { "join", "run", "cleanup", "shutdown", "exit" };

    return names[state];
}

enum broker_exit broker_exit_of (int errnum)
{
    return errnum == EINVAL || errnum == ENAMETOOLONG ? BROKER_EXIT_USAGE
           : errnum == ENOTRECOVERABLE                ? BROKER_EXIT_STATE
                                                      : BROKER_EXIT_FAILED;
}

/* --- reports ------------------------------------------------------------------------------------------------- */

/* Seconds after which a broker that is not up gives up, or logs what it waits for. */
static double patience (const struct lifecycle *l)
{
    if (l->join_timeout > 0)
        return l->join_timeout;
    return l->waits ? WAITS_ON_S : WAITS_S;
}

static void set_timer (struct lifecycle *l, double ms)
{
    idt_timer_watcher_reset (l->timer, ms, 0.);
    idt_watcher_start (l->timer);
}

static const char *why_not_joined (struct lifecycle *l, idt_error_t *err)
{
    if (l->refusal[0])
        return l->refusal;
    if (overlay_no_address (l->conf.overlay, err))
        return err->text;
    return "it does not answer: it is not up yet, or has another certificate, or a firewall is between";
}

static void say_waits (struct lifecycle *l, const char *module)
{
    idt_error_t err;

    if (module && l->joined)
        log_printf (l->conf.log, LOG_WARNING, "broker", "module %s is slow to start", module);
    else
        log_printf (l->conf.log, LOG_WARNING, "broker", "rank %u waits for rank %u at %s: %s", l->conf.broker->rank,
                    topo_parent (l->conf.broker->boot->topo, l->conf.broker->rank),
                    attr_get (l->conf.broker->attrs, "tbon.parent-endpoint", NULL), why_not_joined (l, &err));
    l->waits = true;
    set_timer (l, patience (l) * 1E3);
}

/* A refused broker tries again without end, at first several times a second, at one or several ancestors. The time
 * between two log lines about this doubles each time, up to REFUSED_MAX_S.
 */
static void log_refused (struct lifecycle *l)
{
    double now = clock_s (CLOCK_MONOTONIC), longer = l->refusal_pause * 2;
    bool joining = l->state == STATE_JOIN;

    if (l->refusal_pause > 0. && now < l->refusal_due)
        return;
    l->refusal_pause = longer < REFUSED_S ? REFUSED_S : longer < REFUSED_MAX_S ? longer : REFUSED_MAX_S;
    l->refusal_due = now + l->refusal_pause;
    log_printf (l->conf.log, joining ? LOG_NOTICE : LOG_WARNING, "overlay",
                "the parent does not accept this broker%s: %s", joining ? " yet" : "", l->refusal);
}

/* --- the states ---------------------------------------------------------------------------------------------- */

static void input (struct lifecycle *l, enum state_input in);

/* Report to the owner that the broker is up. The owner reports this to the launcher. */
static void complete (struct lifecycle *l)
{
    l->complete = true;
    idt_watcher_stop (l->timer);
    l->conf.broker->ops->up (l->conf.broker->arg);
}

void lifecycle_child (struct lifecycle *l)
{
    if (overlay_children_online (l->conf.overlay) == 0 && !l->command)
        input (l, STATE_NO_CHILDREN);
}

void lifecycle_begin_stop (struct lifecycle *l, const char *why)
{
    if (l->state <= STATE_RUN)
        log_printf (l->conf.log, LOG_INFO, "broker", "stops: %s", why);
    input (l, STATE_STOP);
}

void lifecycle_shut_down (struct lifecycle *l, const char *why)
{
    l->shut_down |= l->state <= STATE_RUN;
    lifecycle_begin_stop (l, why);
}

static void command_ended (int exit_code, void *arg)
{
    struct lifecycle *l = arg;

    l->exit_code = exit_code;
    command_destroy (l->command);
    l->command = NULL;
    if (l->state == STATE_RUN)
        lifecycle_shut_down (l, "the command has ended");
    else
        lifecycle_child (l);
}

static void start_command (struct lifecycle *l)
{
    char **argv = l->conf.broker->command;
    idt_error_t err;

    assert (!l->command);
    if (!argv || !argv[0])
        return;
    l->command = command_create (l->conf.reactor, argv, attr_get (l->conf.broker->attrs, "local-uri", NULL),
                                 l->conf.broker->files, command_ended, l, &err);
    if (!l->command) {
        log_printf (l->conf.log, LOG_ERR, "broker", "%s", err.text);
        l->exit_code = errno == ENOENT ? 127 : 126;
        lifecycle_begin_stop (l, "the command could not be run");
    }
}

/* When the quorum is reached, start rank 0's command, once. If the launcher starts all ranks together and restarts
 * none, rank 0 is not up before its quorum is reached, and gives up after broker.join-timeout.
 */
static void check_complete (struct lifecycle *l)
{
    if (l->conf.broker->rank != 0 || l->state != STATE_RUN
        || !quorum_take (&l->quorum, overlay_joined (l->conf.overlay), overlay_is_full (l->conf.overlay)))
        return;
    idt_watcher_stop (l->quorum_timer);
    if (l->quorum.is_given)
        log_printf (l->conf.log, LOG_NOTICE, "broker", "%u of %u ranks have joined: the quorum is reached",
                    overlay_joined (l->conf.overlay), l->conf.broker->boot->size);
    if (!l->complete)
        complete (l);
    start_command (l);
}

static void enter_run (struct lifecycle *l)
{
    overlay_accept (l->conf.overlay, true);
    if (l->conf.broker->rank > 0 || !l->conf.broker->boot->whole)
        complete (l);
    if (l->conf.broker->rank == 0 && l->quorum.warn_s > 0.)
        idt_watcher_start (l->quorum_timer);
    check_complete (l);
}

#define CLEANUP_TURNS 64 /* modules still run, and may send without end */

/* The timer is set before anything that may enter the next state, which sets the timer again. Responses that are under
 * way, such as the one to the request that stops this broker, leave before the children do.
 */
static void enter_cleanup (struct lifecycle *l)
{
    set_timer (l, l->shutdown_timeout * 1E3);
    idt_watcher_stop (l->quorum_timer);
    overlay_accept (l->conf.overlay, false);
    for (int i = 0; i < CLEANUP_TURNS && modules_turn (l->conf.modules); i++)
        ;
    if (l->wrong_instance)
        overlay_dismiss_children (l->conf.overlay, STATE_REFUSED, "its tree belonged to the wrong instance");
    else if (l->alone)
        overlay_dismiss_children (l->conf.overlay, ESHUTDOWN, "the parent stops, and its subtree continues without it");
    else
        overlay_stop_children (l->conf.overlay);
    command_kill (l->command, SIGTERM);
    lifecycle_child (l);
}

/* Stop the modules before the broker leaves its parent, so that they can return what they hold. */
static void enter_shutdown (struct lifecycle *l)
{
    modules_stop (l->conf.modules);
    while (modules_turn (l->conf.modules))
        ;
    set_timer (l, l->shutdown_timeout * 1E3 / 2);
    overlay_goodbye (l->conf.overlay);
    if (!overlay_has_parent (l->conf.overlay) && !overlay_is_leaving (l->conf.overlay))
        input (l, STATE_LEFT);
}

/* Answer the requests that wait, before the connections of clients end. */
static void tell_waiting (struct lifecycle *l)
{
    l->conf.ending (l->conf.arg);
    while (modules_turn (l->conf.modules))
        ;
    usock_flush (l->conf.local);
}

/* When a connection has ended, clients of Flux stop reading, and lose messages that they have not read. So the broker
 * ends when clients have read all output, or after READ_S. No event signals that clients have read, so a timer checks.
 */
static void end_when_read (struct lifecycle *l)
{
    if (usock_unread (l->conf.local) && clock_s (CLOCK_MONOTONIC) < l->since + READ_S) {
        set_timer (l, READ_TURN_MS);
        return;
    }
    tell_waiting (l); /* for requests that have arrived in the meantime */
    idt_watcher_stop (l->timer);
    idt_reactor_stop (l->conf.reactor);
}

static void enter_exit (struct lifecycle *l)
{
    tell_waiting (l);
    if (l->exit_code == 0)
        l->conf.broker->ops->up (l->conf.broker->arg); /* so that a stop before state run does not count as a failure */
    end_when_read (l);
}

static void move_to (struct lifecycle *l, enum state next)
{
    static void (*const enter[]) (struct lifecycle *) = {
        [STATE_RUN] = enter_run,
        [STATE_CLEANUP] = enter_cleanup,
        [STATE_SHUTDOWN] = enter_shutdown,
        [STATE_EXIT] = enter_exit,
    };

    assert (next > l->state);
    l->state = next;
    l->since = clock_s (CLOCK_MONOTONIC);
    log_printf (l->conf.log, LOG_DEBUG, "broker", "state %s", state_name (next));
    enter[next](l);
}

static void input (struct lifecycle *l, enum state_input in)
{
    enum state next = state_next (l->state, in);

    if (next != l->state)
        move_to (l, next);
}

/* --- a start that fails -------------------------------------------------------------------------------------- */

/* Print 'why' on stderr, stop, and exit with the code for 'errnum'. */
static void give_up (struct lifecycle *l, int errnum, const char *why)
{
    fprintf (stderr, "idtree-broker: %s\n", why);
    l->exit_code = broker_exit_of (errnum);
    lifecycle_begin_stop (l, "a failure");
}

/* Print a text on stderr and stop, unless the broker is already up or stopping. */
__attribute__ ((format (printf, 3, 4))) static void cannot_start (struct lifecycle *l, int errnum, const char *fmt, ...)
{
    char why[1024];
    va_list ap;

    if (l->state > STATE_RUN || l->complete)
        return;
    va_start (ap, fmt);
    vsnprintf (why, sizeof (why), fmt, ap);
    va_end (ap);
    give_up (l, errnum, why);
}

/* The parent has refused the broker, or has not answered. */
static void join_failed (struct lifecycle *l, int errnum)
{
    const char *parent = attr_get (l->conf.broker->attrs, "tbon.parent-endpoint", NULL);

    cannot_start (l, errnum, "rank %u could not join rank %u at %s: %s", l->conf.broker->rank,
                  topo_parent (l->conf.broker->boot->topo, l->conf.broker->rank), parent ? parent : "?",
                  l->refusal[0] ? l->refusal : "it does not answer (broker.join-timeout)");
}

static void join_timeout (struct lifecycle *l)
{
    const char *module = modules_starting (l->conf.modules);
    char missing[256];

    if (l->join_timeout == 0) {
        say_waits (l, module);
        return;
    }
    if (l->state == STATE_RUN) {
        overlay_name_missing (l->conf.overlay, missing, sizeof (missing));
        cannot_start (l, ETIMEDOUT, "an instance of %u brokers is not complete: %s did not join (broker.join-timeout)",
                      l->conf.broker->boot->size, missing);
    }
    else if (l->joined && module)
        cannot_start (l, ETIMEDOUT, "module %s takes too long to start (broker.join-timeout)", module);
    else
        join_failed (l, ETIMEDOUT);
}

void lifecycle_fail (struct lifecycle *l, int errnum, const char *text)
{
    l->start_errnum = errnum;
    errprintf (&l->start_error, "%s", text);
}

/* --- timers -------------------------------------------------------------------------------------------------- */

static void timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct lifecycle *l = arg;

    if (l->state <= STATE_RUN) {
        join_timeout (l);
        return;
    }
    if (l->state == STATE_EXIT) {
        end_when_read (l);
        return;
    }
    log_printf (l->conf.log, LOG_WARNING, "broker", "state %s took too long (broker.shutdown-timeout)",
                state_name (l->state));
    command_kill (l->command, SIGKILL);
    input (l, STATE_TIMEOUT);
}

static void quorum_timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct lifecycle *l = arg;
    char missing[512];

    overlay_name_missing (l->conf.overlay, missing, sizeof (missing));
    log_printf (l->conf.log, LOG_WARNING, "broker",
                "%u of %u ranks have joined, and %u must (broker.quorum): missing %s", overlay_joined (l->conf.overlay),
                l->conf.broker->boot->size, l->quorum.need, missing);
}

/* --- what the overlay reports -------------------------------------------------------------------------------- */

void lifecycle_parent (struct lifecycle *l, bool up)
{
    l->joined = up;
    if (up)
        l->refusal_pause = 0.;
    else
        input (l, STATE_LEFT);
}

/* EADDRINUSE (another broker serves this rank) and ESHUTDOWN (the parent stops) are temporary, so the broker keeps
 * trying. All other reasons are permanent, so a broker in state join gives up.
 */
void lifecycle_refused (struct lifecycle *l, int errnum, const char *text)
{
    snprintf (l->refusal, sizeof (l->refusal), "%s", text);
    if (l->state == STATE_JOIN && errnum != EADDRINUSE && errnum != ESHUTDOWN)
        join_failed (l, errnum == STATE_REFUSED ? errnum : ETIMEDOUT);
    else
        log_refused (l);
}

void lifecycle_intruder (struct lifecycle *l, const char *text)
{
    assert (l->conf.broker->rank == 0);
    if (l->state > STATE_RUN)
        return;
    log_printf (l->conf.log, LOG_CRIT, "overlay", "a tree of another instance is connecting to this rank 0: %s", text);
    l->wrong_instance = boot_knows_all (l->conf.broker->boot);
    give_up (l, STATE_REFUSED, text);
}

/* The leases of this broker, and all that it knows of its instance, are invalid and are dropped. The owner then makes
 * the broker again. The new broker waits for the right rank 0, as if its host was started before rank 0.
 */
void lifecycle_wrong_instance (struct lifecycle *l, const char *text)
{
    assert (l->conf.broker->rank > 0);
    if (l->state > STATE_RUN)
        return;
    log_printf (l->conf.log, LOG_WARNING, "overlay", "starts again and waits for rank 0: %s", text);
    l->wrong_instance = true;
    if (l->conf.broker->ops->restart)
        l->conf.broker->ops->restart (l->conf.broker->arg);
    lifecycle_begin_stop (l, "a parent of the wrong instance");
}

/* --- orders -------------------------------------------------------------------------------------------------- */

/* In a configured instance each broker is started and stopped on its own, so a stop affects this broker only. Only the
 * request shutdown.start stops all brokers.
 *
 * Launchers signal all ranks at the same time, so the parent's order to stop may arrive before the first call. In this
 * case the first call does not stop the broker immediately, as a second call would.
 */
void lifecycle_stop (struct lifecycle *l, const char *why)
{
    if (l->told_to_stop) {
        log_printf (l->conf.log, LOG_WARNING, "broker", "stops immediately: %s", why);
        if (l->state != STATE_EXIT)
            move_to (l, STATE_EXIT);
        return;
    }
    l->told_to_stop = true;
    l->alone = boot_knows_all (l->conf.broker->boot);
    lifecycle_begin_stop (l, why);
}

void lifecycle_leave (struct lifecycle *l, enum broker_exit exit, const char *why)
{
    fprintf (stderr, "idtree-broker: %s\n", why);
    l->exit_code = exit;
    lifecycle_stop (l, why);
}

/* In state join: enter state run when the parent has accepted the broker and all modules run. Give up if a module has
 * failed.
 */
static void check_start (struct lifecycle *l)
{
    if (l->state != STATE_JOIN)
        return;
    if (l->start_error.text[0])
        cannot_start (l, l->start_errnum, "%s", l->start_error.text);
    else if (l->joined && !modules_starting (l->conf.modules))
        input (l, STATE_JOINED);
}

void lifecycle_turn (struct lifecycle *l)
{
    check_start (l);
    check_complete (l);
}

void lifecycle_join (struct lifecycle *l)
{
    assert (l->timer);
    if (l->state != STATE_JOIN)
        return;
    idt_watcher_start (l->timer);
    if (l->conf.broker->rank == 0) {
        l->joined = true;
        check_start (l);
    }
    else
        overlay_connect (l->conf.overlay);
}

/* --- life ---------------------------------------------------------------------------------------------------- */

int broker_join_timeout (struct attrs *attrs, bool patient, double *seconds, idt_error_t *errp)
{
    return attr_seconds (attrs, "broker.join-timeout", patient ? "0" : "60s", patient ? 0. : 0.1, 86400., seconds,
                         errp);
}

int lifecycle_init (struct lifecycle *l, const struct lifecycle_conf *conf, idt_error_t *errp)
{
    assert (l->state == STATE_JOIN && !l->timer);
    l->conf = *conf;
    if (attr_seconds (conf->broker->attrs, "broker.shutdown-timeout", "10s", 0., 3600., &l->shutdown_timeout, errp) < 0
        || broker_join_timeout (conf->broker->attrs, boot_knows_all (conf->broker->boot), &l->join_timeout, errp) < 0
        || quorum_init (&l->quorum, conf->broker->attrs, conf->broker->boot->size, errp) < 0)
        return -1;
    l->timer = idt_timer_watcher_create (conf->reactor, patience (l) * 1E3, 0., timer_cb, l);
    l->quorum_timer = idt_timer_watcher_create (conf->reactor, l->quorum.warn_s * 1E3, l->quorum.warn_s * 1E3,
                                                quorum_timer_cb, l);
    return l->timer && l->quorum_timer ? 0 : errprintf (errp, "out of memory");
}

void lifecycle_fini (struct lifecycle *l)
{
    command_destroy (l->command);
    idt_watcher_destroy (l->timer);
    idt_watcher_destroy (l->quorum_timer);
}
