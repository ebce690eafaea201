/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* lifecycle.c - the states of a broker: the actions at the begin of each state, and the events that end it
 *
 * state.c decides which state follows; all events pass through broker_input (). A timer limits the states that wait for
 * other brokers: join, cleanup, shutdown.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "broker/private.h"
#include "libutil/clock.h"

#define READ_TURN_MS 2  /* between two checks whether clients have read all */
#define READ_S 1.       /* how long the end waits for that */
#define WAITS_S 10.     /* until a broker without join timeout reports that it waits */
#define WAITS_ON_S 600. /* between further reports of this kind */

/* --- states ------------------------------------------------------------------------------------------ */

/* Report to the owner, and so to the launcher, that the broker is up. */
static void complete (struct broker *b)
{
    b->complete = true;
    idt_watcher_stop (b->timer);
    b->conf.ops->up (b->conf.arg);
}

static void enter_run (struct broker *b)
{
    overlay_accept (b->overlay, true);
    if (b->rank > 0 || !b->boot->whole)
        complete (b);
    if (b->rank == 0 && b->quorum.warn_s > 0.)
        idt_watcher_start (b->quorum_timer);
    broker_check_complete (b);
}

static void enter_cleanup (struct broker *b)
{
    idt_watcher_stop (b->quorum_timer);
    overlay_accept (b->overlay, false);
    if (b->wrong_instance)
        overlay_dismiss_children (b->overlay, STATE_REFUSED, "its tree belonged to the wrong instance");
    else if (b->alone)
        overlay_dismiss_children (b->overlay, ESHUTDOWN, "the parent stops, and its subtree continues without it");
    else
        overlay_stop_children (b->overlay);
    command_kill (b->command, SIGTERM);
    idt_timer_watcher_reset (b->timer, b->shutdown_timeout * 1E3, 0.);
    idt_watcher_start (b->timer);
    broker_check_alone (b);
}

/* Modules return what they hold before the broker leaves its parent. */
static void enter_shutdown (struct broker *b)
{
    modules_stop (b->modules);
    while (modules_turn (b->modules))
        ;
    overlay_goodbye (b->overlay);
    idt_timer_watcher_reset (b->timer, b->shutdown_timeout * 1E3 / 2, 0.);
    idt_watcher_start (b->timer);
    if (!overlay_has_parent (b->overlay) && !overlay_is_leaving (b->overlay))
        broker_input (b, STATE_LEFT);
}

/* End streams that follow the shutdown, and answer requests whose answers cannot arrive any longer. */
static void tell_waiting (struct broker *b)
{
    upcalls_stop (&b->ups, b->h, "this broker is stopping");
    metrics_service_stop (b->metrics_service);
    msglist_end (b->shutdown_streams, b->h, ENODATA);
    while (modules_turn (b->modules))
        ;
    usock_flush (b->local);
}

/* Clients of Flux stop reading when a connection has ended, and lose messages that came before. So the broker ends when
 * clients have read all output, or after READ_S. No event signals that, so a timer checks.
 */
static void end_when_read (struct broker *b)
{
    if (usock_unread (b->local) && clock_s (CLOCK_MONOTONIC) < b->state_since + READ_S) {
        idt_timer_watcher_reset (b->timer, READ_TURN_MS, 0.);
        idt_watcher_start (b->timer);
        return;
    }
    tell_waiting (b); /* requests that arrived in the meantime */
    idt_watcher_stop (b->timer);
    idt_reactor_stop (member_reactor (b->member));
}

static void enter_exit (struct broker *b)
{
    tell_waiting (b);
    if (b->exit_code == 0)
        b->conf.ops->up (b->conf.arg); /* a stop before the state run is not a failure */
    end_when_read (b);
}

static void move_to (struct broker *b, enum state next)
{
    b->state = next;
    b->state_since = clock_s (CLOCK_MONOTONIC);
    log_printf (b->log, LOG_DEBUG, "broker", "state %s", state_name (b->state));
    switch (b->state) {
    case STATE_RUN:
        enter_run (b);
        break;
    case STATE_CLEANUP:
        enter_cleanup (b);
        break;
    case STATE_SHUTDOWN:
        enter_shutdown (b);
        break;
    case STATE_EXIT:
        enter_exit (b);
        break;
    case STATE_JOIN:
        break;
    }
}

void broker_input (struct broker *b, enum state_input in)
{
    enum state next = state_next (b->state, in);

    if (next != b->state)
        move_to (b, next);
}

void broker_check_alone (struct broker *b)
{
    if (overlay_children_online (b->overlay) == 0 && !b->command)
        broker_input (b, STATE_NO_CHILDREN);
}

void broker_begin_stop (struct broker *b, const char *why)
{
    if (b->state <= STATE_RUN)
        log_printf (b->log, LOG_INFO, "broker", "stops: %s", why);
    broker_input (b, STATE_STOP);
}

/* In a configured instance each broker is started and stopped by itself; only a request stops all.
 *
 * The first call does not count as the second one if the parent's stop came earlier: launchers signal all ranks at the
 * same time.
 */
void broker_stop (struct broker *b, const char *why)
{
    member_wake (b->member);
    if (b->told_to_stop) {
        log_printf (b->log, LOG_WARNING, "broker", "stops immediately: %s", why);
        if (b->state != STATE_EXIT)
            move_to (b, STATE_EXIT);
        return;
    }
    b->told_to_stop = true;
    b->alone = boot_knows_all (b->boot);
    broker_begin_stop (b, why);
}

void broker_leave (struct broker *b, enum broker_exit exit, const char *why)
{
    fprintf (stderr, "idtree-broker: %s\n", why);
    b->exit_code = exit;
    broker_stop (b, why);
}

void broker_check_start (struct broker *b)
{
    if (b->state != STATE_JOIN)
        return;
    if (b->start_error.text[0])
        broker_cannot_start (b, b->start_errnum, "%s", b->start_error.text);
    else if (b->joined && !modules_starting (b->modules))
        broker_input (b, STATE_JOINED);
}

void broker_give_up (struct broker *b, int errnum, const char *why)
{
    fprintf (stderr, "idtree-broker: %s\n", why);
    b->exit_code = broker_exit_of (errnum);
    broker_begin_stop (b, "a failure");
}

void broker_cannot_start (struct broker *b, int errnum, const char *fmt, ...)
{
    char why[1024];
    va_list ap;

    if (b->state > STATE_RUN || b->complete)
        return;
    va_start (ap, fmt);
    vsnprintf (why, sizeof (why), fmt, ap);
    va_end (ap);
    broker_give_up (b, errnum, why);
}

void broker_join_failed (struct broker *b, int errnum)
{
    const char *parent = attr_get (b->attrs, "tbon.parent-endpoint", NULL);

    broker_cannot_start (b, errnum, "rank %u could not join rank %u at %s: %s", b->rank, topo_parent (b->topo, b->rank),
                         parent ? parent : "?",
                         b->refusal[0] ? b->refusal : "it does not answer (broker.join-timeout)");
}

double broker_patience (const struct broker *b)
{
    if (b->join_timeout > 0)
        return b->join_timeout;
    return b->waits ? WAITS_ON_S : WAITS_S;
}

static const char *why_not_joined (struct broker *b, idt_error_t *err)
{
    if (b->refusal[0])
        return b->refusal;
    if (overlay_no_address (b->overlay, err))
        return err->text;
    return "it does not answer: it is not up yet, or has another certificate, or a firewall is between";
}

static void say_waits (struct broker *b, const char *module)
{
    idt_error_t err;

    if (module && b->joined)
        log_printf (b->log, LOG_WARNING, "broker", "module %s is slow to start", module);
    else
        log_printf (b->log, LOG_WARNING, "broker", "rank %u waits for rank %u at %s: %s", b->rank,
                    topo_parent (b->topo, b->rank), attr_get (b->attrs, "tbon.parent-endpoint", NULL),
                    why_not_joined (b, &err));
    b->waits = true;
    idt_timer_watcher_reset (b->timer, broker_patience (b) * 1E3, 0.);
    idt_watcher_start (b->timer);
}

static void join_timeout (struct broker *b)
{
    const char *module = modules_starting (b->modules);
    char missing[256];

    if (b->join_timeout == 0) {
        say_waits (b, module);
        return;
    }
    if (b->state == STATE_RUN) {
        overlay_name_missing (b->overlay, missing, sizeof (missing));
        broker_cannot_start (b, ETIMEDOUT,
                             "an instance of %u brokers is not complete: %s did not join (broker.join-timeout)",
                             b->size, missing);
    }
    else if (b->joined && module)
        broker_cannot_start (b, ETIMEDOUT, "module %s takes too long to start (broker.join-timeout)", module);
    else
        broker_join_failed (b, ETIMEDOUT);
}

void broker_timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct broker *b = arg;

    if (b->state <= STATE_RUN) {
        join_timeout (b);
        return;
    }
    if (b->state == STATE_EXIT) {
        end_when_read (b);
        return;
    }
    log_printf (b->log, LOG_WARNING, "broker", "state %s took too long (broker.shutdown-timeout)",
                state_name (b->state));
    command_kill (b->command, SIGKILL);
    broker_input (b, STATE_TIMEOUT);
}

/* --- the command ------------------------------------------------------------------------------------- */

static void command_ended (int exit_code, void *arg)
{
    struct broker *b = arg;

    b->exit_code = exit_code;
    command_destroy (b->command);
    b->command = NULL;
    if (b->state == STATE_RUN)
        broker_begin_stop (b, "the command has ended");
    else
        broker_check_alone (b);
}

static void start_command (struct broker *b)
{
    char **argv = b->conf.command;
    idt_error_t err;

    if (!argv || !argv[0])
        return;
    b->conf.command = NULL;
    b->command = command_create (member_reactor (b->member), argv, attr_get (b->attrs, "local-uri", NULL),
                                 b->conf.files, command_ended, b, &err);
    if (!b->command) {
        log_printf (b->log, LOG_ERR, "broker", "%s", err.text);
        b->exit_code = errno == ENOENT ? 127 : 126;
        broker_begin_stop (b, "the command could not be run");
    }
}

void broker_check_complete (struct broker *b)
{
    if (b->rank != 0 || b->state != STATE_RUN
        || !quorum_take (&b->quorum, overlay_joined (b->overlay), overlay_is_full (b->overlay)))
        return;
    idt_watcher_stop (b->quorum_timer);
    if (b->quorum.is_given)
        log_printf (b->log, LOG_NOTICE, "broker", "%u of %u ranks have joined: the quorum is reached",
                    overlay_joined (b->overlay), b->size);
    if (!b->complete)
        complete (b);
    start_command (b);
}

void broker_quorum_timer_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct broker *b = arg;
    char missing[512];

    overlay_name_missing (b->overlay, missing, sizeof (missing));
    log_printf (b->log, LOG_WARNING, "broker", "%u of %u ranks have joined, and %u must (broker.quorum): missing %s",
                overlay_joined (b->overlay), b->size, b->quorum.need, missing);
}
