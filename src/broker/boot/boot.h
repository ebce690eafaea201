/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.h - who are the brokers of this process, how many are there in all, where are their parents and children?
 *
 * Methods (method.h): single (all brokers are in this process), pmi (PMI-1 at a file descriptor, as Hydra, Slurm, Flux
 * and idtree start speak it), pmix (PMIx: Open MPI, PRRTE, Slurm), config (the attributes cluster.* list the hosts).
 * Three steps: boot_create () tells whom this process hosts; boot_tell () takes where each of them
 * listens; and boot_exchange () tells that to other processes, and learns theirs.
 *
 * Under other launchers a task is a broker.  Ours says how many brokers there are in how many processes; plan.h says
 * which are in which.  Our launcher keeps bizcards, and a secret for each process from which the key pairs of its
 * brokers follow, for the life of the instance: what was killed can come back under the same.  Under others each life
 * has keys of its own, and a dead rank stays dead.
 */
#ifndef BROKER_BOOT_H
#define BROKER_BOOT_H

#include "broker/base/attr.h"
#include "broker/base/hostlist.h"
#include "broker/base/plan.h"
#include "broker/base/topology.h"
#include "broker/overlay/overlay.h"

struct boot_method;
struct known;

#define BOOT_SIZE_MAX 1000000 /* brokers, as our launcher starts at most */
#define BOOT_KEY_TEXT OVERLAY_KEY_TEXT

struct boot_conf {
    const struct boot_method *method; /* borrowed */
    const char *topology;
    uint32_t size;              /* single: brokers; pmi: tasks */
    int pmi_fd;                 /* pmi: of the launcher */
    uint32_t pmi_rank;          /* below 'size' */
    const char *pmix_namespace; /* pmix: borrowed */
    uint32_t pmix_rank;
    struct attrs *attrs;      /* config: borrowed */
    const char *own_host;     /* config: which of the hosts this is, borrowed; NULL: look */
    const uint32_t *own_rank; /* config: which rank, borrowed; NULL: look for the host */
    uint64_t inherited_files; /* of this process: files_open () at its start */
    uint64_t deadline_ms;     /* of CLOCK_MONOTONIC: until then all must be known; 0: as long as it takes */
};

struct boot {
    uint32_t size;  /* brokers of the instance */
    uint32_t count; /* of them here */
    char host[256];
    bool one_host; /* all run on this host, as far as is known */
    bool whole;    /* nobody starts a broker again: the instance begins with all of them, or not at all */
    struct topo *topo;
    struct hostlist *hosts; /* of all ranks; NULL: they run on several hosts, and rank 0 knows */
    /* boot.c's */
    const struct boot_method *method;
    void *m; /* the method's */
    struct plan *plan;
    uint32_t process; /* which of the plan this is */
    bool ready;       /* the launcher was told */
    uint8_t secret[ZAP_KEY_SIZE];
    struct known *own; /* the brokers here, by rank */
    struct known *others;
    uint32_t nothers;
};

/* Whether a broker that boots so waits for those above it as long as it takes: they are started by others. */
bool boot_is_patient (const struct boot_conf *conf);

/* Find out who we are.  Owns 'pmi_fd' from success on.  NULL with errno set and 'errp' filled. */
struct boot *boot_create (const struct boot_conf *conf, idt_error_t *errp);
void boot_destroy (struct boot *b); /* NULL is fine */

uint32_t boot_rank (const struct boot *b, uint32_t i); /* of those here; i < count, ascending */
const char *boot_method_name (const struct boot *b);

/* The key pair of a broker here, in Z85.  Returns 0, or -1 with errno set and 'errp' filled. */
int boot_keys (const struct boot *b, uint32_t rank, char public_key[BOOT_KEY_TEXT], char secret_key[BOOT_KEY_TEXT],
               idt_error_t *errp);

/* Where a broker here is to listen.  Returns 0, or -1 with errno set and 'errp' filled; ENOENT: the method does not
 * say.
 */
int boot_listen_at (const struct boot *b, uint32_t rank, char *buf, size_t size, idt_error_t *errp);

/* The endpoint under which others know a broker here already: of an earlier life; NULL: none. */
const char *boot_old_endpoint (const struct boot *b, uint32_t rank);

/* Whether brokers of other processes may have to connect to one that is here. */
bool boot_is_known (const struct boot *b, uint32_t rank);

/* A broker here listens at 'endpoint' (NULL: nowhere).  Returns 0, or -1 with errno set and 'errp' filled. */
int boot_tell (struct boot *b, uint32_t rank, const char *endpoint, const char *public_key, idt_error_t *errp);

/* Tell other processes where those here listen, learn where theirs do.  Blocks until all have come here.  Returns 0, or
 * -1 with errno set and 'errp' filled.
 */
int boot_exchange (struct boot *b, idt_error_t *errp);

/* Whom a broker here must know, after boot_exchange (): its parent, the parent's parent, ..., the root (borrowed, as
 * long as 'b' lives; boot_reload () changes it), and its children in order of rank (to be freed).  Return NULL with
 * errno ENOMEM and 'errp' filled.
 */
const struct bizcard *boot_ancestors (struct boot *b, uint32_t rank, idt_error_t *errp);
struct bizcard *boot_children (struct boot *b, uint32_t rank, idt_error_t *errp);

/* Whether all ranks are known before anybody was asked.  Then nobody is waited for: who comes first waits for the
 * others.
 */
bool boot_knows_all (const struct boot *b);

/* Where that is so: the bizcard of any rank.  Returns 0, or -1 with errno set and 'errp' filled. */
int boot_card (const struct boot *b, uint32_t rank, struct bizcard *card, idt_error_t *errp);

/* Take over what has changed in the attributes: where others are.  Returns 0, or -1 with errno set and 'errp' filled:
 *   ENOTSUP  the method has nothing that changes
 *   EINVAL   the attributes are wrong, or are another instance's; nothing is changed
 *   ESTALE   this broker is no more in them
 */
int boot_reload (struct boot *b, struct attrs *attrs, idt_error_t *errp);

/* Our launcher's connection, where this process hosts several brokers; -1: it is no such launcher, or process.  After
 * boot_exchange () it is free for what orders.h says.
 */
int boot_fd (const struct boot *b);

/* Tell the launcher that we are up, once: or it takes our end for a failure, and kills the others. */
void boot_ready (struct boot *b);

/* Before that: have the launcher end all, when we have said why.  Else one that is stuck would hold it for ever. */
void boot_abort (struct boot *b, int exit_code);

#endif /* BROKER_BOOT_H */
