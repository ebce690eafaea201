/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* nemesis.c - carries out a plan against an instance, then heals the instance
 *
 * Steps overlap, so a step may find a broker in a state that another step has caused. The launcher then refuses some
 * requests; refusals are only counted. Brokers and instance are checked twice a second. If the end of a step could not
 * repair something, the next check repairs it.
 *
 *     START --up--> FAULTS --enough--> HEAL --all up, all served--> DRAIN --clients ended--> STOP --> reactor stops
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "die.h"
#include "nemesis_private.h"

#define LOOK_MS 500.
#define LOOK_HEALING_MS 50.

static void say (struct nemesis *n, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

static void say (struct nemesis *n, const char *fmt, ...)
{
    va_list ap;

    if (!n->config.verbose)
        return;
    fprintf (stderr, "# %10" PRIu64 " us: ", client_now_us ());
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fputc ('\n', stderr);
}

static void surprise (struct nemesis *n, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

static void surprise (struct nemesis *n, const char *fmt, ...)
{
    char text[sizeof (n->report.surprise)];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    if (n->report.surprises++ == 0)
        memcpy (n->report.surprise, text, sizeof (text));
    say (n, "surprise: %s", text);
}

/* --- steps ---------------------------------------------------------------------------------- */

static void end_hold (struct hold *h)
{
    struct nemesis *n = h->n;

    LIST_REMOVE (h, entry);
    idt_watcher_destroy (h->w);
    nemesis_end_step (n, &h->step);
    free (h);
}

static void hold_cb (idt_watcher_t *w, int revents, void *arg)
{
    end_hold (arg);
}

static void hold (struct nemesis *n, const struct step *step)
{
    struct hold *h = calloc (1, sizeof (*h));

    if (!h || !(h->w = idt_timer_watcher_create (n->r, step->hold_ms, 0, hold_cb, h)))
        die ("a step");
    h->n = n;
    h->step = *step;
    LIST_INSERT_HEAD (&n->holds, h, entry);
    idt_watcher_start (h->w);
}

static bool is_enough (const struct nemesis *n)
{
    if (n->finish)
        return true;
    if (n->config.steps > 0)
        return n->steps == n->config.steps;
    return client_now_us () - n->report.begun_us >= n->config.duration_us;
}

static void heal (struct nemesis *n)
{
    say (n, "healing");
    n->phase = PHASE_HEAL;
    n->heal_us = client_now_us ();
    n->report.faults_us = n->heal_us - n->report.begun_us;
    idt_watcher_stop (n->step_w);
    while (!LIST_EMPTY (&n->holds))
        end_hold (LIST_FIRST (&n->holds));
    idt_timer_watcher_reset (n->look_w, LOOK_HEALING_MS, LOOK_HEALING_MS);
}

static void plan_step (struct nemesis *n)
{
    if (is_enough (n)) {
        heal (n);
        return;
    }
    plan_next (&n->plan, &n->next);
    idt_timer_watcher_reset (n->step_w, n->next.gap_ms, 0);
    idt_watcher_start (n->step_w);
}

static void step_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct nemesis *n = arg;
    char text[256];

    step_print (&n->next, text, sizeof (text));
    say (n, "%s", text);
    n->steps++;
    n->report.steps[n->next.fault]++;
    nemesis_begin_step (n, &n->next);
    hold (n, &n->next);
    plan_step (n);
}

/* --- looks --------------------------------------------------------------------------------------------------- */

/* Whether this end of a broker was expected. SIGTERM may arrive before a broker that was just started can handle it,
 * and a limit may be set while the broker's program is still being loaded. The shell or the loader then ends with 126
 * or 127.
 */
static bool is_expected (const struct rank *r, const char *state)
{
    return !strcmp (state, "killed by SIGKILL")
           || (r->limited
               && (!strcmp (state, "killed by SIGABRT") || !strcmp (state, "exited with status 126")
                   || !strcmp (state, "exited with status 127")))
           || (r->ends && (!strcmp (state, "exited with status 0") || !strcmp (state, "killed by SIGTERM")));
}

/* Check a broker. Returns true if it is up, or if a request to run it is pending. */
static bool look_at (struct nemesis *n, uint32_t rank, const char *state)
{
    struct rank *r = &n->rank[rank];

    if (!nemesis_is_free (n, rank))
        return false;
    if (!strcmp (state, "up")) {
        nemesis_set_down (n, rank, false);
        return true;
    }
    if (!strcmp (state, "starting"))
        return false;
    if (!strcmp (state, "stopped")) {
        nemesis_cont (n, rank);
        return false;
    }
    say (n, "broker %u: %s", rank, state);
    if (!strcmp (state, "exited with status 1"))
        n->report.gave_up++;
    else if (!is_expected (r, state))
        surprise (n, "broker %u %s", rank, state);
    nemesis_run (n, rank);
    return false;
}

/* Note the pid of a broker. If its process was replaced, set the limits of the broker for the new process. */
static void take_pid (struct nemesis *n, uint32_t rank, const json_t *o)
{
    pid_t pid = (pid_t)json_integer_value (o);

    if (pid != n->rank[rank].pid) {
        n->rank[rank].pid = pid;
        nemesis_set_limits (n, rank);
    }
}

static void drain (struct nemesis *n)
{
    say (n, "draining");
    n->phase = PHASE_DRAIN;
    n->report.done_us = client_now_us ();
    n->ops->drain (n->arg);
}

static void heal_on (struct nemesis *n, bool whole)
{
    if (client_now_us () - n->heal_us > n->config.heal_us) {
        surprise (n, n->was_whole ? "all brokers are up, but not every rank serves" : "not every broker came up");
        instance_crash (n->instance); /* the clients must not wait for an instance that does not come up */
        drain (n);
    }
    else if (whole && n->ops->served (n->arg, !n->was_whole))
        drain (n);
    n->was_whole |= whole;
}

static void status_cb (void *arg, uint32_t unused, const char *error, const char *answer)
{
    struct nemesis *n = arg;
    json_t *o = error ? NULL : json_loads (answer, 0, NULL), *brokers = json_object_get (o, "brokers");
    size_t whole = 0;

    n->looking = false;
    for (size_t i = 0; i < json_array_size (brokers) && i < n->plan.size; i++) {
        take_pid (n, i, json_object_get (json_array_get (brokers, i), "pid"));
        whole += look_at (n, i, json_string_value (json_object_get (json_array_get (brokers, i), "state")));
    }
    json_decref (o);
    if (n->phase == PHASE_HEAL)
        heal_on (n, whole == n->plan.size && nemesis_reap_rogues (n) == 0);
}

static void look_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct nemesis *n = arg;

    if (n->phase == PHASE_DRAIN && n->ops->drained (n->arg)) {
        n->phase = PHASE_STOP;
        instance_stop (n->instance);
        if (!n->process)
            idt_reactor_stop (n->r);
    }
    if (n->phase >= PHASE_DRAIN || n->looking)
        return;
    nemesis_reap_rogues (n);
    nemesis_start_instance (n);
    n->looking = true;
    instance_ask (n->instance, "status", 0, status_cb, n);
}

static void up_cb (void *arg)
{
    struct nemesis *n = arg;

    say (n, "the instance is up");
    nemesis_add_root (n);
    if (n->instance_holds == 0)
        nemesis_set_up (n, true);
    if (n->phase == PHASE_START) {
        n->phase = PHASE_FAULTS;
        n->report.begun_us = client_now_us ();
        n->ops->start (n->arg);
        idt_watcher_start (n->look_w);
        plan_step (n);
    }
}

static void down_cb (void *arg, int status)
{
    struct nemesis *n = arg;
    bool was_up = n->up;

    nemesis_add_root (n);
    say (n, "the instance is down, wait status %#x", (unsigned)status);
    n->process = false;
    nemesis_set_up (n, false);
    if (n->phase == PHASE_STOP || n->phase == PHASE_START) {
        if (n->phase == PHASE_START || (status != 0 && n->report.surprises == 0))
            surprise (n, "idtree start ended with wait status %#x", (unsigned)status);
        idt_reactor_stop (n->r);
    }
    else if (n->phase == PHASE_DRAIN)
        return;
    else if (was_up)
        surprise (n, "the instance ended by itself, with wait status %#x", (unsigned)status);
    else if (n->instance_holds == 0)
        n->report.failed_starts += status != 0;
}

static const struct instance_ops instance_ops = { .up = up_cb, .down = down_cb };

/* --- life ------------------------------------------------------------------------------------------------------ */

struct nemesis *nemesis_create (idt_reactor_t *r, const struct nemesis_config *config,
                                const struct instance_config *instance, struct links *links, struct twin *twin,
                                struct host_page *page, const struct nemesis_ops *ops, void *arg)
{
    struct nemesis *n = calloc (1, sizeof (*n));

    if (!n || !(n->step_w = idt_timer_watcher_create (r, 0, 0, step_cb, n))
        || !(n->look_w = idt_timer_watcher_create (r, LOOK_MS, LOOK_MS, look_cb, n)))
        die ("the nemesis");
    n->r = r;
    n->config = *config;
    n->plan = config->plan;
    n->ops = ops;
    n->arg = arg;
    n->links = links;
    n->twin = twin;
    n->page = page;
    n->instance = instance_create (r, instance, &instance_ops, n);
    LIST_INIT (&n->holds);
    LIST_INIT (&n->rogues);
    nemesis_init_faults (n);
    return n;
}

void nemesis_destroy (struct nemesis *n)
{
    if (!n)
        return;
    nemesis_fini_faults (n);
    instance_destroy (n->instance);
    idt_watcher_destroy (n->step_w);
    idt_watcher_destroy (n->look_w);
    free (n->outages.w);
    free (n->roots.w);
    free (n);
}

void nemesis_begin (struct nemesis *n)
{
    nemesis_start_instance (n);
}

void nemesis_finish (struct nemesis *n)
{
    n->finish = true;
    if (n->phase == PHASE_FAULTS)
        heal (n);
}

const struct nemesis_report *nemesis_report (const struct nemesis *n)
{
    return &n->report;
}

const struct window *nemesis_outages (const struct nemesis *n, size_t *count)
{
    *count = n->outages.n;
    return n->outages.w;
}

const struct window *nemesis_roots (const struct nemesis *n, size_t *count)
{
    *count = n->roots.n;
    return n->roots.w;
}
