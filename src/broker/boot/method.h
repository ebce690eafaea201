/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* method.h - the functions of a boot method, called by boot.c: one table for each way to find the other brokers; and
 * the form of the bizcards that it carries (method.c)
 *
 * A method knows processes and carries bizcards. boot.c decides for all methods which rank is in which process, which
 * ranks must know each other, and how keys are derived. One thread calls the functions in this order:
 *
 *     create, then for the brokers here  secret (once), earlier, put;  then  wait (once), get of others,  ready (once)
 *
 * A configuration, which is known in advance, provides 'earlier' and 'get', and needs no 'put' and 'wait'. Functions
 * that block give up at the deadline of struct boot_conf with errno ETIMEDOUT.
 */
#ifndef BROKER_BOOT_METHOD_H
#define BROKER_BOOT_METHOD_H

#include "broker/boot/boot.h"

/* Time limit for a notification of the launcher; the broker blocks meanwhile. */
#define BOOT_READY_MS 10000

/* Description of this process. */
struct boot_self {
    uint32_t size;      /* brokers of the instance: 1 to BOOT_SIZE_MAX */
    uint32_t processes; /* largest number of processes for struct plan */
    uint32_t tasks;     /* existing processes: the plan must use them all */
    uint32_t process;   /* number of this process, below 'tasks' */
    bool one_host;      /* all are on this host */
    const char *host;   /* name of this host for others, borrowed; NULL: its own name */
    bool whole;         /* see struct boot */
};

struct boot_method {
    const char *name;

    /* NULL with errno set and 'errp' filled. The caller has zeroed 'self'. */
    void *(*create) (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp);
    void (*destroy) (void *m); /* keeps errno; NULL is never passed. NULL: nothing to do */

    /* Get the secret from which the key pairs of the brokers here are derived. If the keys may differ in each life, the
     * function leaves the random bits in 'secret'. Returns 0, or -1 with errno set and 'errp' filled. NULL: the random
     * bits are used.
     */
    int (*secret) (void *m, uint8_t secret[ZAP_KEY_SIZE], idt_error_t *errp);

    /* Get the bizcard that others already have of a broker here, from an earlier life or the configuration. Returns 0,
     * or -1 with errno set: ENOENT: no bizcard. NULL: there never is one.
     */
    int (*earlier) (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp);

    /* Publish a bizcard of a broker here; others can get it after 'wait'. Each returns 0, or -1 with errno set and
     * 'errp' filled. NULL: not necessary.
     */
    int (*put) (void *m, const struct bizcard *card, idt_error_t *errp);
    int (*wait) (void *m, idt_error_t *errp);

    /* Get the published bizcard of a rank, of another process or of this one. Returns 0, or -1 with errno set: ENOENT:
     * none was published. NULL: all ranks are here.
     */
    int (*get) (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp);

    /* Get the endpoint at which a broker here must listen. Returns 0, or -1 with errno set and 'errp' filled. NULL: the
     * broker chooses it (place.h), and uses the one of 'earlier' if there is one.
     */
    int (*listen_at) (void *m, uint32_t rank, char *buf, size_t size, idt_error_t *errp);

    /* Read the addresses again. From then on 'get' returns the new ones, until 'settle' keeps them or restores the old
     * ones. Returns 0, or -1 with errno set and 'errp' filled: then nothing has changed and 'settle' is not called.
     * ESTALE: this process is no longer the host of its rank. A method with these functions knows all ranks in advance.
     * NULL: addresses do not change.
     */
    int (*reload) (void *m, struct attrs *attrs, idt_error_t *errp);
    void (*settle) (void *m, bool keep); /* keeps errno */

    void (*ready) (void *m); /* notify the launcher that the brokers are up; may be NULL */
    /* Make the launcher end all tasks with that exit status; NULL: it detects failures itself. */
    void (*abort) (void *m, int exit_code);
    int (*fd) (void *m); /* see boot_fd (); may be NULL */
};

/* Derive the key pair of 'rank' from a secret, in Z85. Returns 0, or -1 with errno set and 'errp' filled. */
int boot_derive_keys (const uint8_t secret[ZAP_KEY_SIZE], uint32_t rank, char public_key[BOOT_KEY_TEXT],
                      char secret_key[BOOT_KEY_TEXT], idt_error_t *errp);

/* --- bizcards ---------------------------------------------------------------------------------------
 *
 * As text a bizcard is "ENDPOINT,HOST,KEY,TOPOLOGY,SIZE", with the CURVE public key in hex, and "-" for no endpoint. In
 * each field commas, % and bytes that some launchers do not carry are written as %XX. Old brokers do not send SIZE, the
 * size of the instance: then it is 0.
 */

#define CARD_TEXT 1024 /* bytes, the limit of all PMI versions */
#define CARD_HOST 256

/* The name of a host as other hosts see it, from its own 'name' (at most 84 bytes): bytes that are invalid in lists of
 * hosts (RFC 29) or in log lines become %XX, and an empty name becomes localhost.
 */
void card_host (char host[CARD_HOST], const char *name);

/* Fill a card; 'endpoint' NULL: the broker does not listen. Returns 0, or -1 with errno EINVAL: 'public_key' is not
 * Z85.
 */
int card_fill (struct bizcard *card, uint32_t rank, const char *endpoint, const char *host, const char *public_key,
               const char *topology, uint32_t size);

/* Returns 0, or -1 with errno ENAMETOOLONG and 'errp' filled. */
int card_encode (char text[CARD_TEXT], const struct bizcard *card, idt_error_t *errp);

/* Returns 0, or -1 with errno EPROTO and 'errp' filled. */
int card_decode (const char *text, uint32_t rank, struct bizcard *card, idt_error_t *errp);

#endif /* BROKER_BOOT_METHOD_H */
