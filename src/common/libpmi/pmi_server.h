/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_server.h - the server side of PMI-1, used by the launcher; no sockets
 *
 * The caller passes in the bytes that ranks sent, in lines or pieces; the server sends through 'send'. A rank may die
 * and start again at any time: the values that it put and its secret stay for the life of the server, and barriers that
 * an earlier life of the rank entered, or that all passed, are open.
 *
 * Reserved keys:
 *   idtree.secret        a text for the requesting rank alone, made once for each rank
 *   PMI_process_mapping  all ranks are on one node
 */
#ifndef PMI_SERVER_H
#define PMI_SERVER_H

#include <stddef.h>

#include <idtree/error.h>

#define PMI_SERVER_KEYS_PER_RANK 64 /* default limit of keys of a rank; further ones are refused */
#define PMI_SERVER_SECRET_KEY "idtree.secret"

struct pmi_server;

struct pmi_server_ops {
    /* Send 'line' (with its newline) to 'rank'. */
    void (*send) (void *arg, int rank, const char *line);
    /* Make the secret of 'rank' in 'buf': no newline, below PMI_VALLEN_MAX. Returns 0 or -1. */
    int (*make_secret) (void *arg, int rank, char *buf, size_t size);
    /* 'rank' has finished with PMI: it has started. */
    void (*finalized) (void *arg, int rank);
    /* 'rank' sent a line that is not PMI. Returns 0, or -1 if the line is unknown. NULL: all such lines are unknown. */
    int (*line) (void *arg, int rank, const char *line);
};

/* Serve ranks 0 ... size - 1.  'kvsname' must be a valid key (pmi_wire.h) and is copied, 'ops' is
 * borrowed.  Returns NULL with errno EINVAL or ENOMEM.
 */
struct pmi_server *pmi_server_create (int size, const char *kvsname, const struct pmi_server_ops *ops, void *arg);
void pmi_server_destroy (struct pmi_server *s); /* NULL is allowed; keeps errno */

/* Set a key of the server. Returns 0, or -1 with errno ENOMEM. */
int pmi_server_set (struct pmi_server *s, const char *key, const char *value);

/* Set how many keys a rank may put. */
void pmi_server_set_keys (struct pmi_server *s, unsigned keys);

/* Process bytes that 'rank' sent. Returns 0, or -1 with errno EPROTO and the reason in 'errp': then close the
 * connection.
 */
int pmi_server_input (struct pmi_server *s, int rank, const char *data, size_t size, idt_error_t *errp);

/* The connection of 'rank' is closed: forget its incomplete line, and that it waits in a barrier. A restarted rank
 * begins with init.
 */
void pmi_server_reset (struct pmi_server *s, int rank);

#endif /* PMI_SERVER_H */
