/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_server.h - the server side of PMI-1, used by the launcher; no sockets
 *
 * The caller passes in the bytes that ranks sent, in lines or pieces. The server sends through 'send'. A rank may die
 * and start again at any time. The values that it put and its secret stay for the life of the server. A barrier that
 * has opened stays open, so a restarted rank passes it without waiting. A rank that dies while it waits in a barrier no
 * longer counts as waiting.
 *
 * Reserved keys:
 *   idtree.secret        a text for the requesting rank alone, made once for each rank
 *   PMI_process_mapping  says that all ranks are on one node
 */
#ifndef PMI_SERVER_H
#define PMI_SERVER_H

#include <stddef.h>

#include <idtree/error.h>

#define PMI_SERVER_KEYS_PER_RANK 64 /* default limit of keys that a rank puts; further keys are refused */
#define PMI_SERVER_SECRET_KEY "idtree.secret"

struct pmi_server;

struct pmi_server_ops {
    /* Send 'line' (with its newline) to 'rank'. */
    void (*send) (void *arg, int rank, const char *line);
    /* Make the secret of 'rank' in 'buf', as text without a newline, shorter than PMI_VALLEN_MAX. Returns 0 or -1. */
    int (*make_secret) (void *arg, int rank, char *buf, size_t size);
    /* Report that 'rank' has finished with PMI, which means that it has started. */
    void (*finalized) (void *arg, int rank);
    /* Pass on a line of 'rank' that is not a command of PMI. Returns 0, or -1 if this function does not know the line
     * either. NULL: every such line is an error.
     */
    int (*line) (void *arg, int rank, const char *line);
};

/* Serve ranks 0 ... size - 1.  'kvsname' must be a valid key (pmi_wire.h) and is copied, 'ops' is
 * borrowed.  Returns NULL with errno EINVAL or ENOMEM.
 */
struct pmi_server *pmi_server_create (int size, const char *kvsname, const struct pmi_server_ops *ops, void *arg);
void pmi_server_destroy (struct pmi_server *s); /* NULL is allowed; keeps errno */

/* Set a value under 'key' that the server itself provides. Returns 0, or -1 with errno ENOMEM. */
int pmi_server_set (struct pmi_server *s, const char *key, const char *value);

/* Set how many keys a rank may put. */
void pmi_server_set_keys (struct pmi_server *s, unsigned keys);

/* Process bytes that 'rank' sent. Returns 0, or -1 with errno EPROTO and the reason in 'errp': the caller must then
 * close the connection.
 */
int pmi_server_input (struct pmi_server *s, int rank, const char *data, size_t size, idt_error_t *errp);

/* The connection of 'rank' is closed: forget its incomplete line, and the barriers that it entered. If the rank starts
 * again, it begins with the command init.
 */
void pmi_server_reset (struct pmi_server *s, int rank);

#endif /* PMI_SERVER_H */
