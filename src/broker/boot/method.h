/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* method.h - the functions of a boot method, which boot.c calls: one table for each way to find the other brokers. Also
 * the form of the bizcards that a method carries (method.c).
 *
 * A method knows processes and carries bizcards. boot.c decides for all methods which rank is in which process, which
 * ranks must know each other, and how keys are derived. A broker "here" is a broker of this process. One thread calls
 * the functions in this order:
 *
 *     create, then for the brokers here  secret (once), earlier, put;  then  wait (once), get of others,  ready (once)
 *
 * In a configured instance everything is known in advance. The method of a configured instance provides 'earlier' and
 * 'get', and needs no 'put' and no 'wait'. Functions that block give up at the deadline of struct boot_conf with errno
 * ETIMEDOUT.
 */
#ifndef BROKER_BOOT_METHOD_H
#define BROKER_BOOT_METHOD_H

#include "broker/boot/boot.h"

/* Time limit for notifying the launcher; the broker is blocked meanwhile. */
#define BOOT_READY_MS 10000

/* The data that 'create' finds out about this process. */
struct boot_self {
    uint32_t size;      /* brokers of the instance: 1 to BOOT_SIZE_MAX */
    uint32_t processes; /* largest number of processes that struct plan may use */
    uint32_t tasks;     /* number of existing processes: the plan must use them all */
    uint32_t process;   /* number of this process, below 'tasks' */
    bool one_host;      /* all processes are on this host */
    const char *host;   /* name by which others know this host, borrowed; NULL: the host's own name */
    bool whole;         /* see struct boot */
};

struct boot_method {
    const char *name;

    /* Make the method's object. NULL with errno set and 'errp' filled. The caller has zeroed 'self'. */
    void *(*create) (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp);
    void (*destroy) (void *m); /* keeps errno; never called with NULL. NULL: nothing to do */

    /* Get the secret from which the key pairs of the brokers here are derived. The caller has filled 'secret' with
     * random bits. If keys may differ in each life, the function leaves these. Returns 0, or -1 with errno set and
     * 'errp' filled. NULL: the random bits are used.
     */
    int (*secret) (void *m, uint8_t secret[ZAP_KEY_SIZE], idt_error_t *errp);

    /* Get the bizcard that other processes already have of a broker here, from an earlier life or from the
     * configuration. Returns 0, or -1 with errno set: ENOENT: there is no such bizcard. NULL: there never is one.
     */
    int (*earlier) (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp);

    /* 'put' publishes the bizcard of a broker here; others can get it after 'wait'. Each returns 0, or -1 with errno
     * set and 'errp' filled. NULL: the method does not need this function.
     */
    int (*put) (void *m, const struct bizcard *card, idt_error_t *errp);
    int (*wait) (void *m, idt_error_t *errp);

    /* Get the published bizcard of a rank, which may be in another process or here. Returns 0, or -1 with errno set:
     * ENOENT: no bizcard was published. NULL: all ranks are here.
     */
    int (*get) (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp);

    /* Get the endpoint at which a broker here must listen. Returns 0, or -1 with errno set and 'errp' filled. NULL: the
     * broker uses the endpoint of 'earlier', or without one chooses it (place.h).
     */
    int (*listen_at) (void *m, uint32_t rank, char *buf, size_t size, idt_error_t *errp);

    /* 'reload' reads the addresses again. From then on 'get' returns the new addresses, until 'settle' either keeps
     * them or restores the old ones. 'reload' returns 0, or -1 with errno set and 'errp' filled: then nothing has
     * changed and 'settle' is not called. ESTALE: this process is no longer the host of its rank. A method with these
     * functions knows all ranks in advance. NULL: addresses do not change.
     */
    int (*reload) (void *m, struct attrs *attrs, idt_error_t *errp);
    void (*settle) (void *m, bool keep); /* keeps errno */

    void (*ready) (void *m); /* notify the launcher that the brokers are up; may be NULL */
    /* Make the launcher end all tasks with 'exit_code'. NULL: the launcher detects failures itself. */
    void (*abort) (void *m, int exit_code);
    int (*fd) (void *m); /* see boot_fd (); may be NULL */
};

/* Derive the key pair of 'rank' from a secret, in Z85. Returns 0, or -1 with errno set and 'errp' filled. */
int boot_derive_keys (const uint8_t secret[ZAP_KEY_SIZE], uint32_t rank, char public_key[BOOT_KEY_TEXT],
                      char secret_key[BOOT_KEY_TEXT], idt_error_t *errp);

/* --- bizcards ---------------------------------------------------------------------------------------
 *
 * As text a bizcard is "ENDPOINT,HOST,KEY,TOPOLOGY,SIZE", with the CURVE public key in hex, and "-" for no endpoint. In
 * each field commas, % and bytes that some launchers do not carry are written as %XX. SIZE is the size of the instance.
 * Old brokers do not send SIZE; the size is then 0.
 */

#define CARD_TEXT 1024 /* bytes, the limit of all PMI versions */
#define CARD_HOST 256

/* Make the name of this host for other hosts from its own 'name' (at most 84 bytes): bytes that are invalid in lists of
 * hosts (RFC 29) or in log lines become %XX, and an empty name becomes localhost.
 */
void card_host (char host[CARD_HOST], const char *name);

/* Fill a card; 'endpoint' NULL: the broker does not listen. Returns 0, or -1 with errno EINVAL if 'public_key' is not
 * Z85.
 */
int card_fill (struct bizcard *card, uint32_t rank, const char *endpoint, const char *host, const char *public_key,
               const char *topology, uint32_t size);

/* Write a card as text. Returns 0, or -1 with errno ENAMETOOLONG and 'errp' filled. */
int card_encode (char text[CARD_TEXT], const struct bizcard *card, idt_error_t *errp);

/* Read a card of 'rank' from text. Returns 0, or -1 with errno EPROTO and 'errp' filled. */
int card_decode (const char *text, uint32_t rank, struct bizcard *card, idt_error_t *errp);

#endif /* BROKER_BOOT_METHOD_H */
