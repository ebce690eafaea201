/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.c - finds out which brokers this process hosts, the size of the instance, and the addresses of parents and
 * children
 *
 * 'own' has the brokers of this process. 'others' has the brokers of other processes that a broker here must know. Both
 * are in order of rank.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/base/plan.h"
#include "broker/boot/boot.h"
#include "broker/boot/cluster.h"
#include "broker/boot/method.h"
#include "broker/boot/traces.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define NO_CLUSTER "cluster.hosts is missing: give --config a file that lists the hosts of an instance"
#define ALONE "pass --standalone to be an instance of one"

struct known {
    struct bizcard card;     /* endpoint "": not known yet */
    struct bizcard *lineage; /* from this rank up to the root, the ancestors of its children; NULL: not made yet */
};

/* --- methods without an exchange --------------------------------------------------------------------- */

/* All brokers are in this process. */
static void *create_single (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    *self = (struct boot_self){ .size = conf->size, .processes = 1, .tasks = 1, .one_host = true };
    return (void *)&boot_single; /* the method has no data, but NULL would mean an error */
}

const struct boot_method boot_single = { .name = "single", .create = create_single };

#ifndef HAVE_PMIX
static void *create_none (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    return errsetf_null (errp, ENOSYS,
                         "a launcher that speaks PMIx started this, but this broker was built without PMIx "
                         "(configure --with-pmix)");
}

const struct boot_method boot_pmix = { .name = "pmix", .create = create_none };
#endif

/* --- the choice of a method --------------------------------------------------------------------------- */

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

/* A list of hosts in a file has precedence over a launcher. A launcher with a connection has precedence over a launcher
 * that only left traces, so that idtree start works in any allocation. Without a list or a connection a broker runs
 * alone, but only if the environment shows no other tasks.
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

/* --- ranks -------------------------------------------------------------------------------------------- */

static bool is_here (const struct boot *b, uint32_t rank)
{
    return plan_process (b->plan, rank) == b->process;
}

static int out_of_memory (idt_error_t *errp)
{
    return errsetf (errp, ENOMEM, "out of memory");
}

static int compare_known (const void *a, const void *b)
{
    uint32_t x = ((const struct known *)a)->card.rank, y = ((const struct known *)b)->card.rank;

    return x < y ? -1 : x > y;
}

/* Find a rank of this process, or a rank that boot_exchange () got. */
static struct known *find (const struct boot *b, uint32_t rank)
{
    struct known key = { .card.rank = rank }, *found;

    found = is_here (b, rank) ? bsearch (&key, b->own, b->count, sizeof (key), compare_known)
                              : bsearch (&key, b->others, b->nothers, sizeof (key), compare_known);
    assert (found);
    return found;
}

/* Check that another rank was started with the same size and topology, because with another tree a rank would look for
 * its parent at the wrong rank. Brokers of old versions send no size.
 */
static int check_tree (const struct boot *b, uint32_t rank, const struct bizcard *other, idt_error_t *errp)
{
    if (other->size > 0 && other->size != b->size)
        return errsetf (errp, EINVAL, "rank %u was started as one of %u brokers, but rank %u as one of %u", rank,
                        b->size, other->rank, other->size);
    if (!other->topology[0] || strcmp (other->topology, b->topo->name) == 0)
        return 0;
    return errsetf (errp, EINVAL, "rank %u has the topology %s, but rank %u began with %s: all must have the same",
                    rank, b->topo->name, other->rank, other->topology);
}

/* --- keys ---------------------------------------------------------------------------------------------- */

int boot_keys (const struct boot *b, uint32_t rank, char public_key[BOOT_KEY_TEXT], char secret_key[BOOT_KEY_TEXT],
               idt_error_t *errp)
{
    return boot_derive_keys (b->secret, rank, public_key, secret_key, errp);
}

/* Make the secret for keys: the secret of the method, or random bits, which are valid for this life only. */
static int make_secret (struct boot *b, idt_error_t *errp)
{
    if (getrandom (b->secret, sizeof (b->secret), 0) != sizeof (b->secret))
        return errprintf (errp, "cannot read random bytes: %s", strerror (errno));
    return b->method->secret ? b->method->secret (b->m, b->secret, errp) : 0;
}

/* --- this process -------------------------------------------------------------------------------------- */

/* Get the bizcards that other processes already have of brokers here. Only for ranks that other processes know: the
 * bizcards of other ranks may change.
 */
static int get_earlier (struct boot *b, idt_error_t *errp)
{
    for (uint32_t i = 0; b->method->earlier && i < b->count; i++) {
        struct bizcard *card = &b->own[i].card;

        if (!plan_is_known (b->plan, card->rank))
            continue;
        if (b->method->earlier (b->m, card->rank, card, errp) == 0) {
            if (check_tree (b, card->rank, card, errp) < 0)
                return -1;
        }
        else if (errno != ENOENT)
            return -1;
    }
    return 0;
}

static int make_plan (struct boot *b, const char *topology, const struct boot_self *self, idt_error_t *errp)
{
    if (!(b->topo = topo_create (topology, b->size, errp))
        || !(b->plan = plan_create (b->size, self->processes, b->topo, errp)))
        return -1;
    if (plan_processes (b->plan) != self->tasks)
        return errsetf (errp, EPROTO, "the launcher has %" PRIu32 " processes, where %" PRIu32 " brokers need %" PRIu32,
                        self->tasks, b->size, plan_processes (b->plan));
    b->count = plan_count (b->plan, b->process);
    if (!(b->own = calloc (b->count, sizeof (b->own[0]))))
        return out_of_memory (errp);
    for (uint32_t i = 0; i < b->count; i++)
        b->own[i].card.rank = plan_rank (b->plan, b->process, i);
    return 0;
}

/* The number of children that are in other processes. */
static uint64_t count_outside (const struct boot *b)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < b->count; i++)
        for (uint32_t j = 0; j < topo_child_count (b->topo, b->own[i].card.rank); j++)
            n += plan_process (b->plan, topo_child (b->topo, b->own[i].card.rank, j)) != b->process;
    return n;
}

static int start (struct boot *b, const struct boot_conf *conf, idt_error_t *errp)
{
    struct boot_self self = { 0 };
    char name[HOST_NAME_MAX + 2] = ""; /* HOST_NAME_MAX bytes and a NUL: the system may leave out the NUL */

    if (gethostname (name, sizeof (name) - 1) < 0)
        return errprintf (errp, "cannot get the name of this host: %s", strerror (errno));
    card_host (b->host, name);
    if (!(b->m = b->method->create (conf, &self, errp)))
        return -1;
    b->size = self.size;
    b->process = self.process;
    b->one_host = self.one_host;
    if (self.host)
        snprintf (b->host, sizeof (b->host), "%s", self.host);
    b->whole = self.whole;
    if (make_plan (b, conf->topology, &self, errp) < 0
        || plan_files_check (count_outside (b), conf->inherited_files, errp) < 0 || make_secret (b, errp) < 0)
        return -1;
    return get_earlier (b, errp);
}

bool boot_is_patient (const struct boot_conf *conf)
{
    return conf->method->reload != NULL;
}

struct boot *boot_create (const struct boot_conf *conf, idt_error_t *errp)
{
    struct boot *b = calloc (1, sizeof (*b));

    if (!b)
        return errsetf_null (errp, ENOMEM, "out of memory");
    b->method = conf->method;
    if (start (b, conf, errp) == 0)
        return b;
    boot_destroy (b);
    return NULL;
}

static void free_known (struct known *list, uint32_t count)
{
    for (uint32_t i = 0; list && i < count; i++)
        free (list[i].lineage);
    free (list);
}

void boot_destroy (struct boot *b)
{
    int saved_errno = errno;

    if (!b)
        return;
    if (b->m && b->method->destroy)
        b->method->destroy (b->m);
    explicit_bzero (b->secret, sizeof (b->secret));
    free_known (b->own, b->count);
    free_known (b->others, b->nothers);
    hostlist_destroy (b->hosts);
    plan_destroy (b->plan);
    topo_destroy (b->topo);
    free (b);
    errno = saved_errno;
}

uint32_t boot_rank (const struct boot *b, uint32_t i)
{
    assert (i < b->count);
    return b->own[i].card.rank;
}

const char *boot_method_name (const struct boot *b)
{
    return b->method->name;
}

int boot_listen_at (const struct boot *b, uint32_t rank, char *buf, size_t size, idt_error_t *errp)
{
    return b->method->listen_at ? b->method->listen_at (b->m, rank, buf, size, errp) : errset (ENOENT);
}

const char *boot_old_endpoint (const struct boot *b, uint32_t rank)
{
    const char *old = find (b, rank)->card.endpoint;

    return old[0] && strcmp (old, "-") != 0 ? old : NULL;
}

/* --- the other processes ----------------------------------------------------------------------------- */

bool boot_is_known (const struct boot *b, uint32_t rank)
{
    return plan_is_known (b->plan, rank);
}

int boot_tell (struct boot *b, uint32_t rank, const char *endpoint, const char *public_key, idt_error_t *errp)
{
    struct bizcard *card = &find (b, rank)->card;

    assert (is_here (b, rank));
    if (card->endpoint[0]) /* other processes already have this bizcard */
        return 0;
    if (card_fill (card, rank, endpoint, b->host, public_key, b->topo->name, b->size) < 0)
        return errprintf (errp, "malformed public key");
    return b->method->put && plan_is_known (b->plan, rank) ? b->method->put (b->m, card, errp) : 0;
}

/* Ranks of other processes that brokers here must know. A rank may be in the list several times. */
struct wanted_hosts {
    uint32_t *rank; /* NULL: the ranks are only counted */
    uint32_t count;
};

static void want (const struct boot *b, struct wanted_hosts *w, uint32_t rank)
{
    if (is_here (b, rank))
        return;
    if (w->rank)
        w->rank[w->count] = rank;
    w->count++;
}

/* Add the children and the ancestors of 'rank'. If the parent is here, the ancestors are left out, because the parent
 * has added them.
 */
static void want_family (const struct boot *b, struct wanted_hosts *w, uint32_t rank)
{
    uint32_t children = plan_is_known (b->plan, rank) ? topo_child_count (b->topo, rank) : 0;

    for (uint32_t i = 0; i < children; i++)
        want (b, w, topo_child (b->topo, rank, i));
    if (rank == 0 || is_here (b, topo_parent (b->topo, rank)))
        return;
    while ((rank = topo_parent (b->topo, rank)) != TOPO_NONE)
        want (b, w, rank);
}

static void want_all (const struct boot *b, struct wanted_hosts *w)
{
    w->count = 0;
    for (uint32_t i = 0; i < b->count; i++)
        want_family (b, w, b->own[i].card.rank);
}

static int compare_ranks (const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Get the bizcard of a rank that all brokers must have published by now. If there is no bizcard, the launcher did not
 * start the rank, or started the broker as another rank.
 */
static int get_card (const struct boot *b, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    if (b->method->get (b->m, rank, card, errp) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    return errsetf (errp, ENOENT, "there is no rank %u of %u: the launcher did not start it, or as another rank", rank,
                    b->size);
}

/* Check for two brokers that were started as the same rank. If the launcher accepted both, other processes may have got
 * the other broker's bizcard.
 */
static int check_own (const struct boot *b, idt_error_t *errp)
{
    const struct bizcard *own = &b->own[0].card;
    struct bizcard told;

    if (!b->whole || b->size == 1)
        return 0;
    if (get_card (b, own->rank, &told, errp) < 0)
        return -1;
    if (memcmp (told.key, own->key, sizeof (own->key)) == 0)
        return 0;
    return errsetf (errp, EEXIST, "the launcher started several brokers as rank %u", own->rank);
}

static int get_wanted (struct boot *b, const struct wanted_hosts *w, idt_error_t *errp)
{
    qsort (w->rank, w->count, sizeof (w->rank[0]), compare_ranks);
    for (uint32_t i = 0; i < w->count; i++) {
        if (i > 0 && w->rank[i] == w->rank[i - 1])
            continue;
        if (get_card (b, w->rank[i], &b->others[b->nothers].card, errp) < 0)
            return -1;
        b->nothers++;
    }
    return 0;
}

static int get_others (struct boot *b, idt_error_t *errp)
{
    struct wanted_hosts w = { 0 };
    int rc;

    want_all (b, &w);
    if (w.count == 0)
        return 0;
    w.rank = calloc (w.count, sizeof (w.rank[0]));
    b->others = calloc (w.count, sizeof (b->others[0]));
    if (w.rank && b->others) {
        want_all (b, &w);
        rc = get_wanted (b, &w, errp);
    }
    else
        rc = out_of_memory (errp);
    free (w.rank);
    return rc;
}

static int check_root (const struct boot *b, idt_error_t *errp)
{
    return is_here (b, 0) ? 0 : check_tree (b, b->own[0].card.rank, &find (b, 0)->card, errp);
}

/* List the host of each rank. If all brokers are on one host, the list is the name of this host repeated. Otherwise the
 * list needs the bizcards of all ranks, so only rank 0's process makes it. If all did, the launcher would get size x
 * size requests.
 */
static int list_hosts (const struct boot *b, const char *own, struct hostlist **hosts, idt_error_t *errp)
{
    struct bizcard card;

    if (!b->one_host && b->process > 0)
        return 0;
    if (!(*hosts = hostlist_create ()) || hostlist_append (*hosts, own, b->one_host ? b->size : 1) < 0)
        return out_of_memory (errp);
    for (uint32_t rank = 1; !b->one_host && rank < b->size; rank++) {
        if (get_card (b, rank, &card, errp) < 0)
            return -1;
        if (hostlist_append (*hosts, card.host, 1) < 0)
            return out_of_memory (errp);
    }
    return 0;
}

int boot_exchange (struct boot *b, idt_error_t *errp)
{
    if (b->method->wait && b->method->wait (b->m, errp) < 0)
        return -1;
    assert (!b->others);
    if (check_own (b, errp) < 0 || get_others (b, errp) < 0 || check_root (b, errp) < 0)
        return -1;
    return list_hosts (b, b->host, &b->hosts, errp);
}

/* --- families ------------------------------------------------------------------------------------- */

/* Fill the lineage of a rank from the bizcards of ranks here and of the others. */
static void fill_lineage (const struct boot *b, struct known *k)
{
    uint32_t rank = k->card.rank;

    for (uint32_t i = 0; rank != TOPO_NONE; i++, rank = topo_parent (b->topo, rank))
        k->lineage[i] = find (b, rank)->card;
}

const struct bizcard *boot_ancestors (struct boot *b, uint32_t rank, idt_error_t *errp)
{
    static const struct bizcard none;
    struct known *parent;

    assert (is_here (b, rank));
    if (rank == 0)
        return &none;
    parent = find (b, topo_parent (b->topo, rank));
    if (!parent->lineage) {
        uint32_t count = topo_level (b->topo, parent->card.rank) + 1;

        if (!(parent->lineage = calloc (count, sizeof (parent->lineage[0]))))
            out_of_memory (errp);
        else
            fill_lineage (b, parent);
    }
    return parent->lineage;
}

struct bizcard *boot_children (struct boot *b, uint32_t rank, idt_error_t *errp)
{
    uint32_t count = topo_child_count (b->topo, rank);
    struct bizcard *cards = calloc (count + 1, sizeof (cards[0]));

    if (!cards)
        out_of_memory (errp);
    for (uint32_t i = 0; cards && i < count; i++)
        cards[i] = find (b, topo_child (b->topo, rank, i))->card;
    return cards;
}

/* --- reload ----------------------------------------------------------------------------------------- */

bool boot_knows_all (const struct boot *b)
{
    return b->method->reload != NULL;
}

int boot_card (const struct boot *b, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    return b->method->get (b->m, rank, card, errp);
}

/* Get the current bizcards of all ranks in a list. The caller frees them. NULL with errno set and 'errp' filled. */
static struct bizcard *get_again (const struct boot *b, const struct known *list, uint32_t count, idt_error_t *errp)
{
    struct bizcard *fresh = calloc (count + 1, sizeof (fresh[0]));

    if (!fresh)
        out_of_memory (errp);
    for (uint32_t i = 0; fresh && i < count; i++)
        if (boot_card (b, list[i].card.rank, &fresh[i], errp) < 0) {
            free (fresh);
            return NULL;
        }
    return fresh;
}

static void take_over (struct known *list, const struct bizcard *fresh, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert (list[i].card.rank == fresh[i].rank);
        list[i].card = fresh[i];
    }
}

/* Fill the existing lineages again, at the same address, because brokers here borrow them. */
static void fill_lineages (const struct boot *b, struct known *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].lineage)
            fill_lineage (b, &list[i]);
}

/* Take over the new bizcards. Memory is allocated before the first change, so that a failure changes nothing. */
static int renew (struct boot *b, idt_error_t *errp)
{
    struct bizcard *own = get_again (b, b->own, b->count, errp);
    struct bizcard *others = own ? get_again (b, b->others, b->nothers, errp) : NULL;
    struct hostlist *hosts = NULL;
    int rc = others ? list_hosts (b, own[0].host, &hosts, errp) : -1;

    if (rc == 0) {
        struct hostlist *old = b->hosts;

        take_over (b->own, own, b->count);
        take_over (b->others, others, b->nothers);
        fill_lineages (b, b->own, b->count);
        fill_lineages (b, b->others, b->nothers);
        snprintf (b->host, sizeof (b->host), "%s", own[0].host);
        b->hosts = hosts;
        hosts = old;
    }
    hostlist_destroy (hosts);
    free (own);
    free (others);
    return rc;
}

int boot_reload (struct boot *b, struct attrs *attrs, idt_error_t *errp)
{
    int rc;

    if (!b->method->reload)
        return errsetf (errp, ENOTSUP, "the hosts of brokers that a launcher started do not change");
    if (b->method->reload (b->m, attrs, errp) < 0)
        return -1;
    rc = renew (b, errp);
    b->method->settle (b->m, rc == 0);
    return rc;
}

/* --- the launcher ----------------------------------------------------------------------------------- */

int boot_fd (const struct boot *b)
{
    return b->count > 1 && b->method->fd ? b->method->fd (b->m) : -1;
}

void boot_ready (struct boot *b)
{
    if (b->method->ready && !b->ready)
        b->method->ready (b->m);
    b->ready = true;
}

void boot_abort (struct boot *b, int exit_code)
{
    if (b->method->abort && !b->ready)
        b->method->abort (b->m, exit_code);
}
