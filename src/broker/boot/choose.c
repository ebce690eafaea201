/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* choose.c - the method by which this process finds the other brokers */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "broker/boot/choose.h"
#include "broker/boot/cluster.h"
#include "broker/boot/method.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define NO_CLUSTER "cluster.hosts is missing: give --config a file that lists the hosts of an instance"
#define ALONE "pass --standalone to be an instance of one"

static int choose_single (struct boot_conf *conf)
{
    conf->method = &boot_single;
    conf->size = 1;
    return 0;
}

static int read_number (const char *name, const char *s, uint64_t min, uint64_t max, uint64_t *n, idt_error_t *errp)
{
    if (!s)
        return errsetf (errp, EINVAL, "PMI_FD is set but %s is not: the launcher does not speak PMI-1; " ALONE, name);
    if (parse_number (s, min, max, n) < 0)
        return errsetf (errp, EINVAL, "%s=%s: must be a number from %ju to %ju", name, s, (uintmax_t)min,
                        (uintmax_t)max);
    return 0;
}

static int choose_pmi (struct boot_conf *conf, const struct launcher_traces *t, idt_error_t *errp)
{
    uint64_t fd, size, rank;

    if (!t->pmi_fd)
        return errsetf (errp, EINVAL, "broker.boot=pmi: PMI_FD is not set: no launcher that speaks PMI-1 started this");
    if (read_number ("PMI_FD", t->pmi_fd, 0, INT_MAX, &fd, errp) < 0
        || read_number ("PMI_SIZE", t->pmi_size, 1, BOOT_SIZE_MAX, &size, errp) < 0
        || read_number ("PMI_RANK", t->pmi_rank, 0, size - 1, &rank, errp) < 0)
        return -1;
    conf->method = &boot_pmi;
    conf->pmi_fd = fd;
    conf->size = size;
    conf->pmi_rank = rank;
    return 0;
}

static int choose_config (struct boot_conf *conf, idt_error_t *errp)
{
    if (!cluster_is_given (conf->attrs))
        return errsetf (errp, EINVAL, NO_CLUSTER);
    conf->method = &boot_config;
    return 0;
}

static int choose_pmix (struct boot_conf *conf, const struct launcher_traces *t, idt_error_t *errp)
{
    uint64_t rank;

    if (!t->pmix_namespace || !t->pmix_rank)
        return errsetf (errp, EINVAL, "broker.boot=pmix: %s is not set: no launcher that speaks PMIx started this",
                        t->pmix_namespace ? "PMIX_RANK" : "PMIX_NAMESPACE");
    if (read_number ("PMIX_RANK", t->pmix_rank, 0, BOOT_SIZE_MAX - 1, &rank, errp) < 0)
        return -1;
    conf->method = &boot_pmix;
    conf->pmix_namespace = t->pmix_namespace;
    conf->pmix_rank = rank;
    return 0;
}

/* A list of hosts in a file has precedence over traces of a launcher. A launcher with a connection has precedence over
 * one that only left traces, so that idtree start works in any allocation. Without a connection a broker runs alone
 * only if the environment shows that there are no others.
 */
static int choose_best (struct boot_conf *conf, const struct launcher_traces *t, idt_error_t *errp)
{
    if (cluster_is_given (conf->attrs))
        return choose_config (conf, errp);
    if (conf->own_host || conf->own_rank)
        return errsetf (errp, EINVAL, NO_CLUSTER "; --host and --rank select one of them");
    if (t->pmi_fd)
        return choose_pmi (conf, t, errp);
    if (t->pmix_namespace && t->pmix_rank && !t->one)
        return choose_pmix (conf, t, errp);
    if (t->many)
        return errsetf (
            errp, EINVAL,
            "%s: a launcher started several brokers, but gave this one no way to the others: start them by %s, "
            "or " ALONE,
            t->many, t->cure);
    if (t->task && !t->one)
        return errsetf (errp, EINVAL,
                        "%s: a launcher started this broker, and maybe others, but gave it no way to them: start them "
                        "by %s, or " ALONE,
                        t->task, t->task_cure);
    return choose_single (conf);
}

int boot_choose (struct boot_conf *conf, const char *asked, const struct launcher_traces *t, idt_error_t *errp)
{
    if (strcmp (asked, "auto") == 0)
        return choose_best (conf, t, errp);
    if (strcmp (asked, boot_single.name) == 0)
        return choose_single (conf);
    if (strcmp (asked, boot_pmi.name) == 0)
        return choose_pmi (conf, t, errp);
    if (strcmp (asked, boot_pmix.name) == 0)
        return choose_pmix (conf, t, errp);
    if (strcmp (asked, boot_config.name) == 0)
        return choose_config (conf, errp);
    return errsetf (errp, EINVAL, "broker.boot=%s: must be auto, single, pmi, pmix or config", asked);
}
