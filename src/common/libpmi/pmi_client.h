/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_client.h - a rank's side of PMI-1: exchange business bizcards with the other ranks at boot
 *
 * Blocks: for use before a reactor runs.  A server that has not answered at the deadline is given
 * up with errno ETIMEDOUT.  All
 * calls but create and destroy may also fail with EPROTO (the server said something else than the
 * answer), ECONNRESET (it closed the connection) and what read and write report; 'errp' (may be
 * NULL) then names the request.  After such an error the client can only be destroyed.
 */
#ifndef PMI_CLIENT_H
#define PMI_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <idtree/error.h>

struct pmi_client;

/* Greet the server at 'fd' (of PMI_FD) as 'rank' of 'size' (of PMI_RANK, PMI_SIZE) and ask it for
 * its limits and the name of the key-value space.  The client owns 'fd' from success on, and sets
 * close-on-exec.  'deadline_ms' is that of CLOCK_MONOTONIC; 0: there is none.  Returns NULL with
 * errno set and the reason in 'errp'.
 */
struct pmi_client *pmi_client_create (int fd, int rank, int size, uint64_t deadline_ms, idt_error_t *errp);

/* Another deadline, from now on. */
void pmi_client_set_deadline (struct pmi_client *c, uint64_t deadline_ms);

/* Close the connection.  NULL is fine; keeps errno. */
void pmi_client_destroy (struct pmi_client *c);

/* Name of the key-value space; borrowed, valid as long as the client. */
const char *pmi_client_kvsname (const struct pmi_client *c);

/* Publish 'value' under 'key': others can get it after a barrier.  Returns 0, or -1 with errno set:
 *   EINVAL     the key or the value holds what PMI can't carry, or exceeds the server's limits
 *   EEXIST     the server refused it: somebody put that key before
 */
int pmi_client_put (struct pmi_client *c, const char *key, const char *value, idt_error_t *errp);

/* Wait until every rank has come here.  Returns 0, or -1 with errno set. */
int pmi_client_barrier (struct pmi_client *c, idt_error_t *errp);

/* Copy the value of 'key' to 'buf'.  Returns 0, or -1 with errno set and 'buf' untouched:
 *   EINVAL     the key holds what PMI can't carry, or exceeds the server's limits
 *   ENOENT     the server has no such key
 *   EOVERFLOW  'size' is too small
 */
int pmi_client_get (struct pmi_client *c, const char *key, char *buf, size_t size, idt_error_t *errp);

/* The connection, for what is no PMI: no call but destroy may follow. */
int pmi_client_fd (const struct pmi_client *c);

/* Tell the server that this rank is done with PMI; idtree's launcher takes it as "I am up". */
int pmi_client_finalize (struct pmi_client *c, idt_error_t *errp);

/* Ask the server to end all ranks: a rank that does not come would hold them for ever.  There is no answer. */
void pmi_client_abort (struct pmi_client *c, int exit_code);

#endif /* PMI_CLIENT_H */
