/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* method.h - what boot.c asks of a way to find the other brokers: one table of functions for each
 *
 * A method knows processes and carries bizcards.  Which rank is in which process, who must know whom, and keys are
 * boot.c's, and the same for all.  It is asked in this order, by one thread:
 *
 *     create, then for the brokers here  secret (once), earlier, put;  then  wait (once), get of others,  ready (once)
 *
 * What is known before anybody was asked (a configuration) comes from 'earlier' and 'get'; then there is nothing to
 * put, and nobody to wait for.  Whoever may block gives up at the deadline of struct boot_conf with errno ETIMEDOUT.
 */
#ifndef BROKER_BOOT_METHOD_H
#define BROKER_BOOT_METHOD_H

#include "broker/boot/boot.h"

/* How long a launcher may take to hear how we are: the broker stands still meanwhile. */
#define BOOT_READY_MS 10000

/* Who this process is. */
struct boot_self {
    uint32_t size;      /* brokers of the instance: 1 to BOOT_SIZE_MAX */
    uint32_t processes; /* in how many they are at most: struct plan knows who is where */
    uint32_t tasks;     /* processes that there are: the plan must need them all */
    uint32_t process;   /* which of them this one is: below 'tasks' */
    bool one_host;      /* all are on this host */
    const char *host;   /* what others call this one, borrowed; NULL: its own name */
    bool whole;         /* see struct boot */
};

struct boot_method {
    const char *name;

    /* NULL with errno set and 'errp' filled.  'self' is zeroed before. */
    void *(*create) (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp);
    void (*destroy) (void *m); /* keeps errno; NULL is never passed */

    /* From which the key pairs of the brokers here follow, where they must be the same in each life: else it leaves the
     * random bits that are there.  Returns 0, or -1 with errno set and 'errp' filled.  NULL: they need not be the same.
     */
    int (*secret) (void *m, uint8_t secret[ZAP_KEY_SIZE], idt_error_t *errp);

    /* The bizcard that others have of a broker here before it tells one: that of an earlier life, or of the
     * configuration.  Returns 0, or -1 with errno set: ENOENT where there is none.  NULL: there never is one.
     */
    int (*earlier) (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp);

    /* Tell others a bizcard of one here; they can get it after 'wait'.  Each returns 0, or -1 with errno set and 'errp'
     * filled.  NULL: nobody needs to be told, or waited for.
     */
    int (*put) (void *m, const struct bizcard *card, idt_error_t *errp);
    int (*wait) (void *m, idt_error_t *errp);

    /* The bizcard of a rank elsewhere.  Returns 0, or -1 with errno set: ENOENT: nobody told one.  NULL: all are here.
     */
    int (*get) (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp);

    /* Where a broker here is to listen, where that is not what 'earlier' tells others.  Returns 0, or -1 with errno set
     * and 'errp' filled.  NULL: it is.
     */
    int (*listen_at) (void *m, uint32_t rank, char *buf, size_t size, idt_error_t *errp);

    /* Read what others may have changed meanwhile: from now on 'get' tells that, until 'settle' keeps it, or goes back to
     * what was before.  Returns 0, or -1 with errno set and 'errp' filled, nothing changed, and nothing to be settled: ESTALE:
     * this process is no more who it was.  A method that has them knows all ranks before anybody was asked.  NULL: nothing
     * ever changes.
     */
    int (*reload) (void *m, struct attrs *attrs, idt_error_t *errp);
    void (*settle) (void *m, bool keep); /* keeps errno */

    void (*ready) (void *m); /* tell the launcher that we are up; NULL: there is none */
    /* Ask the launcher to end all, with that exit status; NULL: it sees by itself that one has failed. */
    void (*abort) (void *m, int exit_code);
    int (*fd) (void *m); /* see boot_fd (); NULL: there is none */
};

extern const struct boot_method boot_single, boot_pmi, boot_pmix, boot_config;

/* The key pair that rank 'rank' has under a secret, in Z85.  Returns 0, or -1 with errno set and 'errp' filled. */
int boot_derive_keys (const uint8_t secret[ZAP_KEY_SIZE], uint32_t rank, char public_key[BOOT_KEY_TEXT],
                      char secret_key[BOOT_KEY_TEXT], idt_error_t *errp);

#endif /* BROKER_BOOT_METHOD_H */
