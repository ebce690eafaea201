/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* candidate.c - this process as a candidate of rank 0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "broker/boot/cluster.h"
#include "broker/candidate.h"
#include "libutil/errprintf.h"

/* --- the place of this process ------------------------------------------------------------------------ */

static void add_peers (struct root_candidate *c, const struct cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->nroots && c->peers.count < PEERS_MAX; i++)
        if (i != c->number
            && cluster_root_endpoint (cluster, i, c->peers.endpoint[c->peers.count], PEERS_ENDPOINT_SIZE) == 0)
            c->peers.count++;
}

static int find_in_cluster (struct root_candidate *c, const struct boot_conf *boot, idt_error_t *errp)
{
    struct cluster *cluster = cluster_create (boot->attrs, errp);
    uint32_t rank = 0;
    int rc = cluster ? cluster_find_place (cluster, boot->own_host, boot->own_rank, &rank, &c->number, errp) : -1;

    if (rc == 0 && rank == 0) {
        const char *host = cluster->nroots > 0 ? cluster->roots[c->number] : cluster->hosts[0].name;

        c->is_root = true;
        snprintf (c->host, sizeof (c->host), "%s", host);
        add_peers (c, cluster);
    }
    cluster_destroy (cluster);
    return rc;
}

static int find_place (struct root_candidate *c, const struct boot_conf *boot, idt_error_t *errp)
{
    if (boot->method == &boot_config)
        return find_in_cluster (c, boot, errp);
    if (gethostname (c->host, sizeof (c->host) - 1) < 0)
        return errprintf (errp, "cannot get the name of this host: %s", strerror (errno));
    c->is_root = boot->method == &boot_pmi    ? boot->pmi_rank == 0
                 : boot->method == &boot_pmix ? boot->pmix_rank == 0
                                              : true;
    return 0;
}

int candidate_init (struct root_candidate *c, const struct boot_conf *boot, idt_error_t *errp)
{
    int flags;
    const char *journal = attr_look (boot->attrs, "log-stderr-priority", &flags);

    *c = (struct root_candidate){ .journal = journal && strcmp (journal, "1") == 0 };
    if (root_conf_read (&c->root, boot->attrs, errp) < 0)
        return -1;
    if (!c->root.store)
        return 0;
    if (find_place (c, boot, errp) < 0)
        return -1;
    return c->is_root ? root_conf_check_rank0 (&c->root, boot->attrs, errp) : 0;
}

void candidate_fini (struct root_candidate *c)
{
    role_pg_destroy (c->role);
    c->role = NULL;
}

/* --- the role ------------------------------------------------------------------------------------------- */

static void say (void *arg, int level, const char *text)
{
    const struct root_candidate *c = arg;

    if (c->journal)
        fprintf (stderr, "<%d>idtree-broker: %s\n", level, text);
    else
        fprintf (stderr, "idtree-broker: %s\n", text);
}

static bool is_over (const struct root_candidate *c)
{
    return role_pg_refusal (c->role) || role_pg_role (c->role)->state == ROLE_END;
}

/* Log once for whom this process stands by. Under a launcher the other ranks wait for it, and nothing else says why. */
static void tell_leader (struct root_candidate *c)
{
    const struct role_row *row = &role_pg_role (c->role)->row;
    char text[ROLE_HOST_SIZE + 64];

    if (row->word != ROLE_LEADS || strcmp (c->told, row->host) == 0)
        return;
    snprintf (c->told, sizeof (c->told), "%s", row->host);
    snprintf (text, sizeof (text), "stands by; %s leads", row->host);
    say (c, LOG_NOTICE, text);
}

static void changed (void *arg)
{
    struct root_candidate *c = arg;
    char text[ROLE_PG_TEXT];

    if (!c->role)
        return;
    if (c->group && is_over (c) && !c->left) {
        c->left = true;
        broker_group_leave (c->group, BROKER_EXIT_ROLE, role_pg_text (c->role, text));
    }
    else if (!c->group && (is_over (c) || role_pg_role (c->role)->state == ROLE_LEAD))
        idt_reactor_stop (process_reactor (c->process));
    else if (!c->group) {
        tell_leader (c);
        manager_stand_by (c->manager, role_pg_role (c->role)->seen, role_pg_text (c->role, text));
    }
}

static int run_until_over (struct root_candidate *c, bool ends_leading, idt_error_t *errp)
{
    while (!is_over (c) && !(ends_leading && role_pg_role (c->role)->state == ROLE_LEAD))
        if (idt_reactor_run (process_reactor (c->process), IDT_REACTOR_DEFAULT) < 0)
            return errprintf (errp, "cannot wait for the role of rank 0: %s", strerror (errno));
    return 0;
}

int candidate_wait (struct root_candidate *c, struct process *process, struct manager *manager, struct attrs *attrs,
                    idt_error_t *errp)
{
    struct role_pg_conf conf = {
        .reactor = process_reactor (process),
        .root = &c->root,
        .host = c->host,
        .candidate = c->number,
        .peers = &c->peers,
        .changed = changed,
        .say = say,
        .arg = c,
    };
    char text[ROLE_PG_TEXT];
    const char *refusal;

    if (!c->root.store || !c->is_root)
        return 1;
    c->process = process;
    c->manager = manager;
    root_attrs_describe (attrs, conf.attributes);
    if (!(c->role = role_pg_create (&conf, errp)) || run_until_over (c, true, errp) < 0)
        return -1;
    if ((refusal = role_pg_refusal (c->role)))
        return errsetf (errp, errno, "%s", refusal);
    if (role_pg_role (c->role)->state == ROLE_END) {
        bool given = role_pg_role (c->role)->ending == ROLE_END_GIVEN;

        say (c, LOG_NOTICE, given ? "stops: it stood by, and was not rank 0" : role_pg_text (c->role, text));
        return 0;
    }
    manager_lead (manager, role_pg_role (c->role)->row.term);
    snprintf (text, sizeof (text), "%" PRIu64, role_pg_role (c->role)->row.term);
    return attr_give (attrs, "root.term", text, errp) < 0 ? -1 : 1;
}

void candidate_set_group (struct root_candidate *c, struct broker_group *group)
{
    c->group = group;
}

void candidate_stop (struct root_candidate *c)
{
    if (c->role && role_pg_role (c->role)->state != ROLE_LEAD)
        role_pg_end (c->role, ROLE_END_GIVEN);
}

void candidate_release (struct root_candidate *c, bool shut_down)
{
    c->group = NULL;
    if (!c->role || is_over (c))
        return;
    role_pg_end (c->role, shut_down ? ROLE_END_STOPPED : ROLE_END_GIVEN);
    run_until_over (c, false, NULL);
}

bool candidate_runs_command (const struct root_candidate *c)
{
    return !c->role || c->peers.count == 0 || role_pg_role (c->role)->row.term == 1;
}
