/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.h - who am I, how many are we, where are my parent and my children?
 *
 * Methods: single (a tree of one), pmi (PMI-1 at a file descriptor, as Hydra, Slurm, Flux and idtree start speak it).
 * Under pmi each rank puts its bizcard at idtree.bizcard.RANK: "ENDPOINT,HOST,KEY", the CURVE public key in hex.  idtree's own
 * launcher keeps a rank's bizcard and key pair for the life of the instance, so that a rank which was killed can come back
 * under the same; under another one each broker makes a key pair of its own, and a dead rank stays dead.
 */
#ifndef BROKER_BOOT_H
#define BROKER_BOOT_H

#include "broker/overlay/overlay.h"
#include "broker/base/topology.h"

struct boot;

struct boot_conf {
    int pmi_fd; /* -1: single */
    uint32_t rank;
    uint32_t size;
    const char *host;
};

/* Find out who we are.  Owns 'pmi_fd' from success on.  NULL with errno set and 'errp' filled. */
struct boot *boot_create (const struct boot_conf *conf, idt_error_t *errp);
void boot_destroy (struct boot *b);

const char *boot_method (const struct boot *b); /* "single", "pmi" */
const char *boot_public_key (const struct boot *b);
const char *boot_secret_key (const struct boot *b);

/* The endpoint that we had in an earlier life; NULL: this is the first. */
const char *boot_old_endpoint (const struct boot *b);

/* Whether all ranks run on this host, as far as is known. */
bool boot_one_host (const struct boot *b);

/* Tell the others where we listen ('endpoint', NULL: nowhere), learn where they do.  Blocks until all have come
 * here.  Returns 0, or -1 with errno set and 'errp' filled.
 */
int boot_exchange (struct boot *b, const struct topo *topo, const char *endpoint, idt_error_t *errp);

/* The parent, its parent, ..., the root; in '*count' how many. */
const struct bizcard *boot_ancestors (const struct boot *b, uint32_t *count);
const struct bizcard *boot_children (const struct boot *b); /* in order of rank */
const char *boot_hostlist (const struct boot *b);           /* host of each rank, joined by commas */

/* Tell the launcher that we are up, once: or it takes our end for a failure, and kills the others. */
void boot_ready (struct boot *b);

#endif /* BROKER_BOOT_H */
