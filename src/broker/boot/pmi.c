/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi.c - brokers started by a launcher that speaks PMI-1 at a file descriptor: idtree start, Hydra, Slurm, Flux
 *
 * The key-value space of idtree's launcher has a name that begins with "idtree-". Only this launcher is asked for two
 * more values:
 *
 *   idtree.instance  "SIZE,PROCESSES": the ranks of PMI are processes; without this value each is one broker
 *   idtree.secret    secret of the process that asks, in Z85, the same in each life
 *
 * This launcher also keeps the bizcards of dead brokers (idtree.bizcard.RANK).
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "broker/boot/method.h"
#include "libpmi/pmi_client.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

struct pmi {
    struct pmi_client *client;
    bool ours; /* the launcher is idtree's */
};

/* Get the number of brokers and of processes. */
static int get_instance (struct pmi *p, struct boot_self *self, idt_error_t *errp)
{
    char text[CARD_TEXT];
    int end = 0;

    if (pmi_client_get (p->client, "idtree.instance", text, sizeof (text), errp) < 0)
        return errno == ENOENT ? 0 : -1;
    if (sscanf (text, "%" SCNu32 ",%" SCNu32 "%n", &self->size, &self->processes, &end) != 2 || text[end]
        || self->processes < self->tasks || self->size < self->processes || self->size > BOOT_SIZE_MAX)
        return errsetf (errp, EPROTO, "the launcher sent a malformed size, '%s'", text);
    return 0;
}

/* Whether all ranks are on one node, because PMI_process_mapping is "(vector,(0,1,N))". */
static bool is_one_host (struct pmi *p)
{
    char text[CARD_TEXT];
    unsigned node, nodes, ranks;
    int end = 0;

    return pmi_client_get (p->client, "PMI_process_mapping", text, sizeof (text), NULL) == 0
           && sscanf (text, "(vector,(%u,%u,%u))%n", &node, &nodes, &ranks, &end) == 3 && end > 0 && !text[end]
           && nodes == 1;
}

static void destroy (void *m)
{
    struct pmi *p = m;
    int saved_errno = errno;

    pmi_client_destroy (p->client);
    free (p);
    errno = saved_errno;
}

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    struct pmi *p = calloc (1, sizeof (*p));

    if (!p)
        return errsetf_null (errp, ENOMEM, "out of memory");
    if (!(p->client = pmi_client_create (conf->pmi_fd, conf->pmi_rank, conf->size, conf->deadline_ms, errp)))
        goto error;
    *self = (struct boot_self){
        .size = conf->size, .processes = conf->size, .tasks = conf->size, .process = conf->pmi_rank
    };
    p->ours = strncmp (pmi_client_kvsname (p->client), "idtree-", 7) == 0;
    self->whole = !p->ours;
    if (p->ours) /* this launcher itself detects processes that do not join in time */
        pmi_client_set_deadline (p->client, 0);
    self->one_host = is_one_host (p);
    if (p->ours && get_instance (p, self, errp) < 0)
        goto error;
    return p;
error:
    destroy (p);
    return NULL;
}

/* Get the secret. When idtree's launcher gets the first request for it, this launcher starts the other processes. */
static int get_secret (void *m, uint8_t secret[ZAP_KEY_SIZE], idt_error_t *errp)
{
    struct pmi *p = m;
    char text[CARD_TEXT];
    int rc = 0;

    if (!p->ours)
        return 0;
    if (pmi_client_get (p->client, "idtree.secret", text, sizeof (text), errp) < 0)
        return -1;
    if (strlen (text) + 1 != BOOT_KEY_TEXT || !zmq_z85_decode (secret, text))
        rc = errsetf (errp, EPROTO, "the launcher sent a malformed secret");
    explicit_bzero (text, sizeof (text));
    return rc;
}

static char *bizcard_name (char buf[64], uint32_t rank)
{
    snprintf (buf, 64, "idtree.bizcard.%u", rank);
    return buf;
}

static int get (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    struct pmi *p = m;
    char text[CARD_TEXT], name[64];

    if (pmi_client_get (p->client, bizcard_name (name, rank), text, sizeof (text), errp) < 0)
        return -1;
    return card_decode (text, rank, card, errp);
}

static int earlier (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    struct pmi *p = m;

    return p->ours ? get (m, rank, card, errp) : errset (ENOENT);
}

static int put (void *m, const struct bizcard *card, idt_error_t *errp)
{
    struct pmi *p = m;
    char text[CARD_TEXT], name[64];

    if (card_encode (text, card, errp) < 0)
        return -1;
    if (pmi_client_put (p->client, bizcard_name (name, card->rank), text, errp) == 0)
        return 0;
    return errno == EEXIST ? errsetf (errp, EEXIST, "the launcher started several brokers as rank %u", card->rank) : -1;
}

static int wait_for_all (void *m, idt_error_t *errp)
{
    struct pmi *p = m;

    return pmi_client_barrier (p->client, errp);
}

static void ready (void *m)
{
    struct pmi *p = m;

    pmi_client_set_deadline (p->client, clock_ms (CLOCK_MONOTONIC) + BOOT_READY_MS);
    pmi_client_finalize (p->client, NULL);
}

/* Abort, unless the launcher is idtree's, which itself detects that this process ends. */
static void end_all (void *m, int exit_code)
{
    struct pmi *p = m;

    if (p->ours)
        return;
    pmi_client_set_deadline (p->client, clock_ms (CLOCK_MONOTONIC) + BOOT_READY_MS);
    pmi_client_abort (p->client, exit_code);
}

static int fd (void *m)
{
    struct pmi *p = m;

    return p->ours ? pmi_client_fd (p->client) : -1;
}

const struct boot_method boot_pmi = {
    .name = "pmi",
    .create = create,
    .destroy = destroy,
    .secret = get_secret,
    .earlier = earlier,
    .put = put,
    .wait = wait_for_all,
    .get = get,
    .ready = ready,
    .abort = end_all,
    .fd = fd,
};
