/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker_group.c - the brokers of this process, from boot to end
 *
 * Boot has three steps: all brokers are made and bind their sockets; one exchange with the other processes; all brokers
 * start. Then the brokers join from the root downwards: if the parent of a broker is in this process, the broker waits
 * until the parent is up, has ended, or is stopped. If thousands of brokers connected at the same time, most of them
 * would time out at a parent that is itself still waiting to join.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/broker.h"
#include "broker/broker_group.h"
#include "broker/conffile.h"
#include "broker/launcher_orders.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

struct hosted_broker {
    struct broker_group *group;
    struct broker *broker; /* NULL: the broker has ended */
    uint32_t rank;
    int exit_code;
    bool shut_down; /* the broker has ended because the instance was shut down */
    bool killed;    /* an order has killed the broker, or it will run again */
    bool again;     /* run the broker again when it has ended */
    bool waits;     /* the broker joins only when its parent in this process is up */
};

struct broker_group {
    struct broker_group_conf conf;
    struct attrs *given; /* copy of the attributes before a broker changed any */
    struct boot *boot;
    struct launcher_orders *orders; /* NULL: no launcher sends orders */
    struct hosted_broker *hosted;   /* in order of rank */
    uint32_t count;
    uint32_t killed; /* number of killed brokers; while above 0, the process continues even without running brokers */
};

/* --- brokers ------------------------------------------------------------------------------------ */

static void tell (struct hosted_broker *h, enum rank_state state, int status)
{
    if (h->group->orders)
        launcher_orders_tell (h->group->orders, h - h->group->hosted, state, status);
}

static int compare_hosted (const void *a, const void *b)
{
    uint32_t x = ((const struct hosted_broker *)a)->rank, y = ((const struct hosted_broker *)b)->rank;

    return x < y ? -1 : x > y;
}

/* Find a rank; NULL: the rank is not in this process. */
static struct hosted_broker *find (const struct broker_group *c, uint32_t rank)
{
    struct hosted_broker key = { .rank = rank };

    return bsearch (&key, c->hosted, c->count, sizeof (key), compare_hosted);
}

static void join (struct hosted_broker *h)
{
    h->waits = false;
    if (h->broker)
        broker_join (h->broker);
}

static void join_children (const struct hosted_broker *h)
{
    const struct topo *topo = h->group->boot->topo;
    uint32_t count = topo_child_count (topo, h->rank);

    for (uint32_t i = 0; i < count; i++) {
        struct hosted_broker *child = find (h->group, topo_child (topo, h->rank, i));

        if (child && child->waits)
            join (child);
    }
}

static void up (void *arg)
{
    struct hosted_broker *h = arg;

    if (h->group->orders)
        tell (h, RANK_UP, 0);
    else
        boot_ready (h->group->boot);
    join_children (h);
}

static void drop (struct hosted_broker *h, int status)
{
    broker_destroy (h->broker);
    h->broker = NULL;
    tell (h, RANK_DOWN, status);
    join_children (h);
}

static void note_killed (struct hosted_broker *h, bool killed)
{
    if (h->killed == killed)
        return;
    assert (killed || h->group->killed > 0);
    h->killed = killed;
    h->group->killed += killed ? 1 : -1;
    process_hold (h->group->conf.process, h->group->killed > 0);
}

static void run_again (struct hosted_broker *h);

static void ended (void *arg)
{
    struct hosted_broker *h = arg;

    h->exit_code = broker_exit_code (h->broker);
    h->shut_down = broker_was_shut_down (h->broker);
    drop (h, h->exit_code << 8);
    if (h->again)
        run_again (h);
}

static json_t *reload (void *arg, idt_error_t *errp)
{
    struct hosted_broker *h = arg;

    return broker_group_reload (h->group, errp);
}

/* Mark the broker as killed, and run it again when it has ended. */
static void restart (void *arg)
{
    struct hosted_broker *h = arg;

    h->again = true;
    note_killed (h, true);
}

static const struct broker_ops broker_ops = { up, ended, reload, restart };

static int make (struct hosted_broker *h, idt_error_t *errp)
{
    const struct broker_group_conf *conf = &h->group->conf;
    struct broker_conf bc = {
        .process = conf->process,
        .boot = h->group->boot,
        .rank = h->rank,
        .attrs = attrs_copy (conf->attrs),
        .tmpdir = conf->tmpdir,
        .module_path = conf->module_path,
        .command = conf->command,
        .files = conf->files,
        .role = h->rank == 0 ? conf->role : NULL,
        .ops = &broker_ops,
        .arg = h,
    };

    if (!bc.attrs)
        return errprintf (errp, "out of memory");
    if ((h->broker = broker_create (&bc, errp)))
        return 0;
    attrs_destroy (bc.attrs);
    return -1;
}

/* --- orders ------------------------------------------------------------------------------------- */

/* Make the broker of a rank again, and start it. The rank counts as killed until its broker is made, because the
 * process would end without any broker.
 */
static void run_again (struct hosted_broker *h)
{
    idt_error_t err;

    assert (!h->broker);
    int rc = make (h, &err) < 0 ? -1 : broker_start (h->broker, &err);

    h->exit_code = rc < 0 ? (int)broker_exit_of (errno) : 0;
    h->again = false;
    note_killed (h, false);
    if (rc == 0) {
        join (h);
        return;
    }
    fprintf (stderr, "idtree-broker: rank %u: %s\n", h->rank, err.text);
    drop (h, h->exit_code << 8);
}

/* Stop or continue a broker. If it is stopped before it is up, its children need not wait for it: the children join now
 * and look for another parent, like brokers that are in other processes.
 */
static void set_stopped (struct hosted_broker *h, bool stopped)
{
    broker_pause (h->broker, stopped);
    tell (h, stopped ? RANK_STOPPED : RANK_GOING, 0);
    if (stopped)
        join_children (h);
}

static void obey (struct hosted_broker *h, enum order order, int signum)
{
    switch (order) {
    case ORDER_RUN:
        break;
    case ORDER_KILL:
        note_killed (h, true);
        drop (h, SIGKILL);
        break;
    case ORDER_STOP:
        set_stopped (h, true);
        break;
    case ORDER_CONT:
        set_stopped (h, false);
        break;
    case ORDER_END:
        broker_stop (h->broker, sigabbrev_np (signum) ? sigabbrev_np (signum) : "a signal");
        break;
    }
}

static void order_cb (void *arg, uint32_t rank, enum order order, int signum)
{
    struct broker_group *c = arg;
    struct hosted_broker *h = find (c, rank);

    if (h && h->broker)
        obey (h, order, signum);
    else if (h && order == ORDER_RUN)
        run_again (h);
}

static int take_orders (struct broker_group *c, idt_error_t *errp)
{
    if (boot_fd (c->boot) < 0)
        return 0;
    c->orders = launcher_orders_create (process_reactor (c->conf.process), c->boot, order_cb, c, errp);
    return c->orders ? 0 : -1;
}

/* --- life --------------------------------------------------------------------------------------- */

static int make_hosted (struct broker_group *c, idt_error_t *errp)
{
    if (!(c->hosted = calloc (c->boot->count, sizeof (c->hosted[0]))))
        return errprintf (errp, "out of memory");
    process_expect (c->conf.process, c->boot->count);
    for (c->count = 0; c->count < c->boot->count; c->count++) {
        struct hosted_broker *h = &c->hosted[c->count];

        h->group = c;
        h->rank = boot_rank (c->boot, c->count);
        if (make (h, errp) < 0)
            return -1;
    }
    return 0;
}

/* Make the brokers and boot. On return 'boot' has the addresses of their parents and children. */
static int boot (struct broker_group *c, idt_error_t *errp)
{
    const char *topology = attr_get (c->conf.attrs, "tbon.topo", NULL);
    double timeout;

    if (!(c->given = attrs_copy (c->conf.attrs)))
        return errprintf (errp, "out of memory");
    if (broker_join_timeout (c->conf.attrs, boot_is_patient (&c->conf.boot), &timeout, errp) < 0)
        return -1;
    c->conf.boot.deadline_ms = timeout > 0. ? clock_ms (CLOCK_MONOTONIC) + (uint64_t)(timeout * 1E3) : 0;
    c->conf.boot.topology = topology ? topology : TOPO_DEFAULT;
    if (!(c->boot = boot_create (&c->conf.boot, errp)) || make_hosted (c, errp) < 0 || boot_exchange (c->boot, errp) < 0
        || take_orders (c, errp) < 0)
        return -1;
    return 0;
}

static int give_up (const idt_error_t *err, idt_error_t *errp)
{
    return errprintf (errp, errno == ETIMEDOUT ? "%s (broker.join-timeout)" : "%s", err->text);
}

int broker_group_start (struct broker_group *c, idt_error_t *errp)
{
    idt_error_t err;

    if (boot (c, &err) < 0)
        return give_up (&err, errp);
    for (uint32_t i = 0; i < c->count; i++)
        if (broker_start (c->hosted[i].broker, errp) < 0)
            return -1;
    for (uint32_t i = 0; i < c->count; i++)
        c->hosted[i].waits = c->hosted[i].rank > 0 && find (c, topo_parent (c->boot->topo, c->hosted[i].rank));
    for (uint32_t i = 0; i < c->count; i++)
        if (!c->hosted[i].waits)
            join (&c->hosted[i]);
    return 0;
}

struct broker_group *broker_group_create (const struct broker_group_conf *conf)
{
    struct broker_group *c = calloc (1, sizeof (*c));

    if (c)
        c->conf = *conf;
    return c;
}

void broker_group_destroy (struct broker_group *c)
{
    int saved_errno = errno;

    if (!c)
        return;
    for (uint32_t i = c->count; i > 0; i--)
        broker_destroy (c->hosted[i - 1].broker);
    launcher_orders_destroy (c->orders);
    free (c->hosted);
    boot_destroy (c->boot);
    attrs_destroy (c->given);
    free (c);
    errno = saved_errno;
}

void broker_group_abort (struct broker_group *c, int exit_code)
{
    if (c->boot)
        boot_abort (c->boot, exit_code);
}

/* If an order has stopped a broker, let it continue first, so that it can end. */
static bool may_stop (struct hosted_broker *h)
{
    h->again = false;
    note_killed (h, false);
    if (h->broker)
        broker_pause (h->broker, false);
    return h->broker != NULL;
}

void broker_group_stop (struct broker_group *c, const char *why)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (may_stop (&c->hosted[i]))
            broker_stop (c->hosted[i].broker, why);
}

void broker_group_leave (struct broker_group *c, enum broker_exit exit, const char *why)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (may_stop (&c->hosted[i]))
            broker_leave (c->hosted[i].broker, exit, why);
}

bool broker_group_was_shut_down (const struct broker_group *c)
{
    return c->count > 0 && c->hosted[0].rank == 0 && c->hosted[0].shut_down;
}

/* Take over the addresses. If the file now assigns a rank of this process to another host, the rank stops here. A
 * stopped rank is not run again, because it would read the same file.
 */
static int reload_boot (struct broker_group *c, struct attrs *fresh, idt_error_t *errp)
{
    if (!boot_knows_all (c->boot) || boot_reload (c->boot, fresh, errp) == 0)
        return 0;
    if (errno != ESTALE)
        return -1;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->hosted[i].broker)
            broker_leave (c->hosted[i].broker, BROKER_EXIT_USAGE, errp->text);
    return errset (ESTALE);
}

/* Check all brokers before any of them changes. */
static int check_reload (const struct broker_group *c, struct attrs *fresh, idt_error_t *errp)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->hosted[i].broker && broker_check_reload (c->hosted[i].broker, fresh, errp) < 0)
            return -1;
    return 0;
}

json_t *broker_group_reload (struct broker_group *c, idt_error_t *errp)
{
    struct conffile_report report = { json_array (), json_array () };
    struct attrs *fresh = conffile_read_again (c->given, c->conf.config_files, c->conf.nconfig_files, errp);

    if (!fresh || check_reload (c, fresh, errp) < 0 || reload_boot (c, fresh, errp) < 0) {
        json_decref (report.changed);
        json_decref (report.later);
        attrs_destroy (fresh);
        return NULL;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (c->hosted[i].broker)
            broker_reload (c->hosted[i].broker, fresh, &report);
    attrs_destroy (fresh);
    return json_pack ("{s:o s:o}", "changed", report.changed, "later", report.later);
}

uint32_t broker_group_status (const struct broker_group *c, struct broker_status *status)
{
    const struct hosted_broker *h = &c->hosted[0];

    if (h->broker)
        broker_status (h->broker, status);
    else
        *status = (struct broker_status){ .state = STATE_EXIT, .rank = h->rank, .size = c->boot->size };
    return c->count;
}

int broker_group_exit_code (const struct broker_group *c)
{
    int code = 0;

    for (uint32_t i = 0; i < c->count && code == 0; i++) {
        code = c->hosted[i].exit_code;
        if (c->hosted[i].rank == 0)
            break;
    }
    return code;
}
