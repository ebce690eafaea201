/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.h - finds out which brokers this process hosts, the size of the instance, and the addresses of parents and
 * children
 *
 * The methods (method.h) are single (all brokers are in this process), pmi (PMI-1 at a file descriptor, as Hydra,
 * Slurm, Flux and idtree start speak it), pmix (PMIx: Open MPI, PRRTE, Slurm), and config (the attributes cluster.*
 * list the hosts). Boot has three steps: boot_create () finds out which ranks this process hosts; boot_tell () takes
 * the endpoint of each of these; boot_exchange () sends the endpoints to the other processes and receives theirs. A
 * broker "here" is a broker of this process.
 *
 * The launcher of idtree gives the number of brokers and of processes, and plan.h computes which rank is in which
 * process. This launcher keeps bizcards for the life of the instance. The launcher also keeps a secret for each
 * process, from which the key pairs of the process's brokers are derived, so a killed broker can return with the same
 * keys. Under other launchers a task is one broker, each life has new keys, and a dead rank does not return.
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

#define BOOT_SIZE_MAX 1000000 /* largest number of brokers; also the limit of idtree start */
#define BOOT_KEY_TEXT OVERLAY_KEY_TEXT

struct boot_conf {
    const struct boot_method *method; /* borrowed */
    const char *topology;
    uint32_t size;              /* single: number of brokers; pmi: number of tasks */
    int pmi_fd;                 /* pmi: connection to the launcher */
    uint32_t pmi_rank;          /* below 'size' */
    const char *pmix_namespace; /* pmix: borrowed */
    uint32_t pmix_rank;
    struct attrs *attrs;      /* config: borrowed */
    const char *own_host;     /* config: name by which cluster.hosts lists this host, borrowed; NULL: find it */
    const uint32_t *own_rank; /* config: rank of this host, borrowed; NULL: find the host */
    uint64_t inherited_files; /* plan_files_open (3) when this process started */
    uint64_t deadline_ms;     /* CLOCK_MONOTONIC time by which the boot must end; 0: no limit */
};

struct boot {
    uint32_t size;  /* number of brokers of the instance */
    uint32_t count; /* number of brokers of this process */
    char host[256];
    bool one_host; /* all brokers are known to run on this host */
    bool whole;    /* the launcher restarts no broker, so the instance starts complete or fails */
    struct topo *topo;
    struct hostlist *hosts; /* the host of each rank; NULL: there are several hosts, and only rank 0 has the list */
    /* for boot.c only */
    const struct boot_method *method;
    void *m; /* the method's object */
    struct plan *plan;
    uint32_t process; /* number of this process in the plan */
    bool ready;       /* the launcher was notified */
    uint8_t secret[ZAP_KEY_SIZE];
    struct known *own; /* the brokers of this process, by rank */
    struct known *others;
    uint32_t nothers;
};

/* Choose the method from 'asked', the value of the attribute broker.boot ("auto", or the name of a method), the traces
 * of a launcher, and the members 'attrs', 'own_host' and 'own_rank' of 'conf'. Fills 'method', 'size' and the members
 * for pmi and pmix. 'pmi_fd' is the number in the environment; its descriptor may be closed. Returns 0, or -1 with
 * errno EINVAL and 'errp' filled with what was found and which option helps.
 */
int boot_choose (struct boot_conf *conf, const char *asked, const struct launcher_traces *t, idt_error_t *errp);

/* Whether brokers are started independently with this method, so that a broker waits for its ancestors without limit.
 */
bool boot_is_patient (const struct boot_conf *conf);

/* Find out which brokers this process hosts. On success the new object owns 'pmi_fd'. NULL with errno set and 'errp'
 * filled.
 */
struct boot *boot_create (const struct boot_conf *conf, idt_error_t *errp);
void boot_destroy (struct boot *b); /* NULL is fine */

uint32_t boot_rank (const struct boot *b, uint32_t i); /* of a broker here; 'i' < count, ascending */
const char *boot_method_name (const struct boot *b);

/* Get the key pair of a broker here, in Z85. Returns 0, or -1 with errno set and 'errp' filled. */
int boot_keys (const struct boot *b, uint32_t rank, char public_key[BOOT_KEY_TEXT], char secret_key[BOOT_KEY_TEXT],
               idt_error_t *errp);

/* Get the endpoint at which a broker here must listen. Returns 0, or -1 with errno set and 'errp' filled; ENOENT: the
 * broker chooses the endpoint.
 */
int boot_listen_at (const struct boot *b, uint32_t rank, char *buf, size_t size, idt_error_t *errp);

/* The endpoint at which other processes expect a broker here, because they have its bizcard from an earlier life or
 * from the configuration. NULL: other processes have none.
 */
const char *boot_old_endpoint (const struct boot *b, uint32_t rank);

/* Whether other processes must know this broker, because its parent or one of its descendants is in another process. */
bool boot_is_known (const struct boot *b, uint32_t rank);

/* Set the endpoint of a broker here (NULL: it does not listen). Does nothing if other processes already have a bizcard
 * of the broker, from an earlier life or from the configuration. Returns 0, or -1 with errno set and 'errp' filled.
 */
int boot_tell (struct boot *b, uint32_t rank, const char *endpoint, const char *public_key, idt_error_t *errp);

/* Send the endpoints of this process to the other processes, and receive theirs. Unless boot_knows_all (), this blocks
 * until all processes have called it.
 *
 * Returns 0, or -1 with errno set and 'errp' filled.
 */
int boot_exchange (struct boot *b, idt_error_t *errp);

/* After boot_exchange (): the bizcards that a broker here needs. boot_ancestors () returns the bizcards of its
 * ancestors, from the parent to the root (borrowed from 'b'; boot_reload () changes them). boot_children () returns the
 * bizcards of its children in order of rank (the caller frees them). Both return NULL with errno ENOMEM and 'errp'
 * filled.
 */
const struct bizcard *boot_ancestors (struct boot *b, uint32_t rank, idt_error_t *errp);
struct bizcard *boot_children (struct boot *b, uint32_t rank, idt_error_t *errp);

/* Whether the addresses of all ranks are known without an exchange. Then boot waits for no process, and a broker that
 * is started before its parent waits for the parent.
 */
bool boot_knows_all (const struct boot *b);

/* Get the bizcard of any rank; only allowed if boot_knows_all (). Returns 0, or -1 with errno set and 'errp' filled. */
int boot_card (const struct boot *b, uint32_t rank, struct bizcard *card, idt_error_t *errp);

/* Take over changed addresses from the attributes. Returns 0, or -1 with errno set and 'errp' filled:
 *   ENOTSUP  the method has no addresses that change
 *   EINVAL   the attributes are invalid, or belong to another instance; nothing has changed
 *   ESTALE   this broker is no longer in the attributes
 */
int boot_reload (struct boot *b, struct attrs *attrs, idt_error_t *errp);

/* The connection to the launcher of idtree, if this process hosts several brokers; else -1. After boot_exchange () only
 * launcher_orders.h uses this connection.
 */
int boot_fd (const struct boot *b);

/* Notify the launcher that the brokers are up; only the first call has an effect. If this process ends without having
 * notified it, the launcher considers that a failure, and kills the other processes.
 */
void boot_ready (struct boot *b);

/* Make the launcher end all tasks. Has an effect only before boot_ready (). Call this after the error was reported.
 * Without this call the launcher would wait forever for a task that hangs.
 */
void boot_abort (struct boot *b, int exit_code);

#endif /* BROKER_BOOT_H */
