/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.h - who am I, how many are we, where are my parent and my children?
 *
 * Methods: single (a tree of one), pmi (PMI-1 at a file descriptor, as Hydra, Slurm, Flux and idtree start speak it).
 * Under pmi each rank puts its bizcard at idtree.bizcard.RANK: "ENDPOINT,HOST,KEY,TOPOLOGY", the CURVE public key in hex.  idtree's own
 * launcher keeps a rank's bizcard and key pair for the life of the instance, so that a rank which was killed can come back
 * under the same; under another one each broker makes a key pair of its own, and a dead rank stays dead.
 */
#ifndef BROKER_BOOT_H
#define BROKER_BOOT_H

#include "broker/base/hostlist.h"
#include "broker/base/topology.h"
#include "broker/overlay/overlay.h"

struct pmi_client;

struct boot {
    uint32_t rank;
    uint32_t size;
    const char *host;
    bool one_host; /* all ranks run on this host, as far as is known */
    char public_key[OVERLAY_KEY_TEXT];
    char secret_key[OVERLAY_KEY_TEXT];
    /* after boot_exchange () */
    struct bizcard *ancestors; /* the parent, its parent, ..., the root */
    uint32_t nancestors;
    struct bizcard *children; /* in order of rank */
    struct hostlist *hosts;   /* of all ranks; NULL: they run on several hosts, and rank 0 knows */
    /* boot.c's */
    struct pmi_client *pmi; /* NULL: single */
    bool ready;             /* the launcher was told */
    bool ours;              /* idtree's own launcher is at the other end */
    struct bizcard old;     /* our bizcard of an earlier life; without an endpoint: this is the first */
};

/* Find out who we are.  Owns 'pmi_fd' (-1: single) from success on; 'host' is borrowed.  NULL with errno set and 'errp'
 * filled.
 */
struct boot *boot_create (int pmi_fd, uint32_t rank, uint32_t size, const char *host, idt_error_t *errp);
void boot_destroy (struct boot *b);

/* The endpoint that we had in an earlier life; NULL: this is the first. */
const char *boot_old_endpoint (const struct boot *b);

/* Tell the others where we listen ('endpoint', NULL: nowhere), learn where they do.  Blocks until all have come
 * here.  Returns 0, or -1 with errno set and 'errp' filled.
 */
int boot_exchange (struct boot *b, const struct topo *topo, const char *endpoint, idt_error_t *errp);

/* Tell the launcher that we are up, once: or it takes our end for a failure, and kills the others. */
void boot_ready (struct boot *b);

#endif /* BROKER_BOOT_H */
