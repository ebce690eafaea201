/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* crew.c - the brokers of this process, from their boot to their end
 *
 * Booting takes three steps: all are made and have bound; other processes are told and asked, once; all start.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "broker/broker.h"
#include "broker/crew.h"
#include "libutil/errprintf.h"

struct hand {
    struct crew *crew;
    struct broker *broker; /* NULL: it has ended */
    uint32_t rank;
    int exit_code;
};

struct crew {
    struct crew_conf conf;
    struct boot *boot;
    struct hand *hands; /* by rank */
    uint32_t count;
};

/* --- brokers ------------------------------------------------------------------------------------ */

static void up (void *arg)
{
    struct hand *h = arg;

    boot_ready (h->crew->boot);
}

static void ended (void *arg)
{
    struct hand *h = arg;

    h->exit_code = broker_exit_code (h->broker);
    broker_destroy (h->broker);
    h->broker = NULL;
}

static const struct broker_ops broker_ops = { up, ended };

static int make (struct hand *h, idt_error_t *errp)
{
    const struct crew_conf *conf = &h->crew->conf;
    struct broker_conf bc = {
        .process = conf->process,
        .boot = h->crew->boot,
        .rank = h->rank,
        .attrs = attrs_copy (conf->attrs),
        .tmpdir = conf->tmpdir,
        .module_path = conf->module_path,
        .command = conf->command,
        .files = conf->files,
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

/* --- life --------------------------------------------------------------------------------------- */

static int make_hands (struct crew *c, idt_error_t *errp)
{
    if (!(c->hands = calloc (c->boot->count, sizeof (c->hands[0]))))
        return errprintf (errp, "out of memory");
    for (c->count = 0; c->count < c->boot->count; c->count++) {
        struct hand *h = &c->hands[c->count];

        h->crew = c;
        h->rank = boot_rank (c->boot, c->count);
        if (make (h, errp) < 0)
            return -1;
    }
    return 0;
}

static int start (struct crew *c, idt_error_t *errp)
{
    const char *topology = attr_get (c->conf.attrs, "tbon.topo", NULL);

    c->conf.boot.topology = topology ? topology : TOPO_DEFAULT;
    if (!(c->boot = boot_create (&c->conf.boot, errp)) || make_hands (c, errp) < 0 || boot_exchange (c->boot, errp) < 0)
        return -1;
    for (uint32_t i = 0; i < c->count; i++)
        if (broker_start (c->hands[i].broker, errp) < 0)
            return -1;
    return 0;
}

struct crew *crew_create (const struct crew_conf *conf, idt_error_t *errp)
{
    struct crew *c = calloc (1, sizeof (*c));

    if (!c) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    c->conf = *conf;
    if (start (c, errp) == 0)
        return c;
    crew_destroy (c);
    return NULL;
}

void crew_destroy (struct crew *c)
{
    int saved_errno = errno;

    if (!c)
        return;
    for (uint32_t i = c->count; i > 0; i--)
        broker_destroy (c->hands[i - 1].broker);
    free (c->hands);
    boot_destroy (c->boot);
    free (c);
    errno = saved_errno;
}

void crew_stop (struct crew *c, const char *why)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->hands[i].broker)
            broker_stop (c->hands[i].broker, why);
}

int crew_exit_code (const struct crew *c)
{
    int code = 0;

    for (uint32_t i = 0; i < c->count && code == 0; i++) {
        code = c->hands[i].exit_code;
        if (c->hands[i].rank == 0)
            break;
    }
    return code;
}
