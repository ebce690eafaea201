/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.h - finds out which brokers this process hosts, the size of the instance, and the addresses of parents and
 * children
 *
 * Methods (method.h): single (all brokers are in this process), pmi (PMI-1 at a file descriptor, as Hydra, Slurm, Flux
 * and idtree start speak it), pmix (PMIx: Open MPI, PRRTE, Slurm), config (the attributes cluster.* list the hosts).
 * Boot has three steps: boot_create () finds out which ranks this process hosts; boot_tell () takes the endpoint of
 * each; boot_exchange () sends these to the other processes and receives theirs.
 *
 * The launcher of idtree gives the number of brokers and of processes, and plan.h computes which rank is in which
 * process. This launcher keeps bizcards for the life of the instance, and a secret for each process, from which the key
 * pairs of its brokers are derived: a killed broker can return with the same keys. Under other launchers a task is one
 * broker, each life has new keys, and a dead rank does not return.
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
struct launcher_traces;

extern const struct boot_method boot_single, boot_pmi, boot_pmix, boot_config;

#define BOOT_SIZE_MAX 1000000 /* brokers; also the limit of idtree start */
#define BOOT_KEY_TEXT OVERLAY_KEY_TEXT

struct boot_conf {
    const struct boot_method *method; /* borrowed */
    const char *topology;
    uint32_t size;              /* single: brokers; pmi: tasks */
    int pmi_fd;                 /* pmi: connection to the launcher */
    uint32_t pmi_rank;          /* below 'size' */
    const char *pmix_namespace; /* pmix: borrowed */
    uint32_t pmix_rank;
    struct attrs *attrs;      /* config: borrowed */
    const char *own_host;     /* config: name of this host in the list, borrowed; NULL: find it */
    const uint32_t *own_rank; /* config: rank of this host, borrowed; NULL: find the host */
    uint64_t inherited_files; /* plan_files_open (3) at the start of this process */
    uint64_t deadline_ms;     /* CLOCK_MONOTONIC: latest end of the boot; 0: no limit */
};

struct boot {
    uint32_t size;  /* brokers of the instance */
    uint32_t count; /* brokers of this process */
    char host[256];
    bool one_host; /* all are known to run on this host */
    bool whole;    /* no broker is started again: the instance starts complete or fails */
    struct topo *topo;
    struct hostlist *hosts; /* of all ranks; NULL: several hosts, and only rank 0 has the list */
    /* private to boot.c */
    const struct boot_method *method;
    void *m; /* object of the method */
    struct plan *plan;
    uint32_t process; /* number of this process in the plan */
    bool ready;       /* the launcher was notified */
    uint8_t secret[ZAP_KEY_SIZE];
    struct known *own; /* the brokers of this process, by rank */
    struct known *others;
    uint32_t nothers;
};

/* Choose the method from 'asked', the attribute broker.boot ("auto", or the name of a method), the traces of a
 * launcher, and 'attrs', 'own_host' and 'own_rank' of 'conf'. Fills 'method', 'size' and the members of pmi and pmix.
 * 'pmi_fd' is the number in the environment; its descriptor may be closed. Returns 0, or -1 with errno EINVAL and
 * 'errp' filled with what was found and which option helps.
 */
int boot_choose (struct boot_conf *conf, const char *asked, const struct launcher_traces *t, idt_error_t *errp);

/* Whether brokers that boot this way wait for their ancestors without limit, because these are started independently.
 */
bool boot_is_patient (const struct boot_conf *conf);

/* Find out which brokers this process hosts. Owns 'pmi_fd' on success. NULL with errno set and 'errp' filled. */
struct boot *boot_create (const struct boot_conf *conf, idt_error_t *errp);
void boot_destroy (struct boot *b); /* NULL is fine */

uint32_t boot_rank (const struct boot *b, uint32_t i); /* of a broker here; i < count, ascending */
const char *boot_method_name (const struct boot *b);

/* The key pair of a broker here, in Z85. Returns 0, or -1 with errno set and 'errp' filled. */
int boot_keys (const struct boot *b, uint32_t rank, char public_key[BOOT_KEY_TEXT], char secret_key[BOOT_KEY_TEXT],
               idt_error_t *errp);

/* The endpoint at which a broker here must listen. Returns 0, or -1 with errno set and 'errp' filled; ENOENT: the
 * method leaves it open.
 */
int boot_listen_at (const struct boot *b, uint32_t rank, char *buf, size_t size, idt_error_t *errp);

/* The endpoint from an earlier life, by which other processes already know a broker here; NULL: none. */
const char *boot_old_endpoint (const struct boot *b, uint32_t rank);

/* Whether other processes must know this broker: its parent or one of its descendants is there. */
bool boot_is_known (const struct boot *b, uint32_t rank);

/* Set the endpoint of a broker here (NULL: it does not listen). Does nothing if other processes have a bizcard of it
 * from an earlier life. Returns 0, or -1 with errno set and 'errp' filled.
 */
int boot_tell (struct boot *b, uint32_t rank, const char *endpoint, const char *public_key, idt_error_t *errp);

/* Send the endpoints of this process to the others, and receive theirs. Blocks until all processes have called it,
 * unless boot_knows_all ().
 * Returns 0, or -1 with errno set and 'errp' filled.
 */
int boot_exchange (struct boot *b, idt_error_t *errp);

/* The bizcards that a broker here needs, after boot_exchange (): of its ancestors from the parent to the root (borrowed
 * from 'b'; boot_reload () changes them), and of its children in order of rank (the caller frees them). Return NULL
 * with errno ENOMEM and 'errp' filled.
 */
const struct bizcard *boot_ancestors (struct boot *b, uint32_t rank, idt_error_t *errp);
struct bizcard *boot_children (struct boot *b, uint32_t rank, idt_error_t *errp);

/* Whether the addresses of all ranks are known without an exchange. Then boot waits for no process, and a broker waits
 * for its parent if it is started first.
 */
bool boot_knows_all (const struct boot *b);

/* Only if boot_knows_all (): the bizcard of any rank. Returns 0, or -1 with errno set and 'errp' filled. */
int boot_card (const struct boot *b, uint32_t rank, struct bizcard *card, idt_error_t *errp);

/* Take over changed addresses from the attributes. Returns 0, or -1 with errno set and 'errp' filled:
 *   ENOTSUP  the method has no addresses that change
 *   EINVAL   the attributes are invalid, or belong to another instance; nothing has changed
 *   ESTALE   this broker is no longer in them
 */
int boot_reload (struct boot *b, struct attrs *attrs, idt_error_t *errp);

/* The connection to the launcher of idtree, if this process hosts several brokers; else -1. After boot_exchange () it
 * is free for launcher_orders.h.
 */
int boot_fd (const struct boot *b);

/* Notify the launcher that the brokers are up, once. Without that it takes the end of this process for a failure, and
 * kills the others.
 */
void boot_ready (struct boot *b);

/* Before boot_ready (), after the error was reported: make the launcher end all tasks. Otherwise a task that hangs
 * would keep it waiting for ever.
 */
void boot_abort (struct boot *b, int exit_code);

#endif /* BROKER_BOOT_H */
