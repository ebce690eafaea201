/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_client.h - the client side of PMI-1: a rank exchanges bizcards with the other ranks at boot
 *
 * All calls block: they are for use before a reactor runs. If the server has not answered before the deadline, a call
 * fails with ETIMEDOUT. All calls except create and destroy may also fail with EPROTO (unexpected answer), ECONNRESET
 * (the server closed the connection) and the errors of read and write; 'errp' (may be NULL) then names the request.
 * After such an error the client can only be destroyed.
 */
#ifndef PMI_CLIENT_H
#define PMI_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

struct pmi_client;

/* Connect to the server at 'fd' (of PMI_FD) as 'rank' of 'size' (of PMI_RANK, PMI_SIZE). Ask the server for its limits
 * and for the name of the key-value space. On success the client owns 'fd' and sets close-on-exec. 'deadline_ms' is a
 * time of CLOCK_MONOTONIC; 0: no deadline. Returns NULL with errno set and the reason in 'errp'.
 */
struct pmi_client *pmi_client_create (int fd, int rank, int size, uint64_t deadline_ms, idt_error_t *errp);

/* Change the deadline. */
void pmi_client_set_deadline (struct pmi_client *c, uint64_t deadline_ms);

/* Close the connection. NULL is allowed; keeps errno. */
void pmi_client_destroy (struct pmi_client *c);

/* Name of the key-value space; borrowed, valid as long as the client. */
const char *pmi_client_kvsname (const struct pmi_client *c);

/* Publish 'value' under 'key': other ranks can get it after a barrier. Returns 0, or -1 with errno set:
 *   EINVAL     the key or value contains characters that PMI cannot transmit, or exceeds the server's limits
 *   EEXIST     the server refused it: another rank has put that key
 */
int pmi_client_put (struct pmi_client *c, const char *key, const char *value, idt_error_t *errp);

/* Wait until every rank has entered the barrier. Returns 0, or -1 with errno set. */
int pmi_client_barrier (struct pmi_client *c, idt_error_t *errp);

/* Copy the value of 'key' to 'buf'. Returns 0, or -1 with errno set and 'buf' untouched:
 *   EINVAL     the key contains characters that PMI cannot transmit, or exceeds the server's limits
 *   ENOENT     the server has no such key
 *   EOVERFLOW  'size' is too small
 */
int pmi_client_get (struct pmi_client *c, const char *key, char *buf, size_t size, idt_error_t *errp);

/* The descriptor of the connection, for data other than PMI. After this call only pmi_client_destroy () may be called.
 */
int pmi_client_fd (const struct pmi_client *c);

/* Report to the server that this rank has finished with PMI; idtree's launcher then takes the rank as started. */
int pmi_client_finalize (struct pmi_client *c, idt_error_t *errp);

/* Ask the server to end all ranks, because they would wait forever for a rank that will not start. The server sends no
 * answer.
 */
void pmi_client_abort (struct pmi_client *c, int exit_code);

#endif /* PMI_CLIENT_H */
