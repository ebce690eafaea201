/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pmi_server.h - the launcher's side of PMI-1, without sockets
 *
 * What ranks sent goes in, line by line or in pieces; what is to be sent to them comes out
 * through 'send'.  A rank may die and come back at any time: what it put stays for the life of
 * the server, its secret stays the same, and barriers that were passed without it or by an
 * earlier life of it are open.
 *
 * Reserved keys:
 *   idtree.secret        a text for the asking rank alone, made once for each rank
 *   PMI_process_mapping  all ranks are on one node
 */
#ifndef PMI_SERVER_H
#define PMI_SERVER_H

#include <stddef.h>

#include <idtree/error.h>

#define PMI_SERVER_KEYS_PER_RANK 64 /* a rank that puts more is refused, unless the server was told otherwise */
#define PMI_SERVER_SECRET_KEY "idtree.secret"

struct pmi_server;

struct pmi_server_ops {
    /* Send 'line' (with its newline) to 'rank'. */
    void (*send) (void *arg, int rank, const char *line);
    /* Make the secret of 'rank' in 'buf': no newline, below PMI_VALLEN_MAX.  Returns 0 or -1. */
    int (*make_secret) (void *arg, int rank, char *buf, size_t size);
    /* 'rank' is done with PMI: it is up. */
    void (*finalized) (void *arg, int rank);
    /* 'rank' sent a line that is no PMI.  Returns 0, or -1: it is none of ours either.  NULL: none is. */
    int (*line) (void *arg, int rank, const char *line);
};

/* Serve ranks 0 ... size - 1.  'kvsname' must be a valid key (pmi_wire.h) and is copied, 'ops' is
 * borrowed.  Returns NULL with errno EINVAL or ENOMEM.
 */
struct pmi_server *pmi_server_create (int size, const char *kvsname, const struct pmi_server_ops *ops, void *arg);
void pmi_server_destroy (struct pmi_server *s); /* NULL is fine; keeps errno */

/* What ranks find under a key of the server's own.  Returns 0, or -1 with errno ENOMEM. */
int pmi_server_set (struct pmi_server *s, const char *key, const char *value);

/* How many keys a rank may put. */
void pmi_server_set_keys (struct pmi_server *s, unsigned keys);

/* Take bytes that 'rank' sent.  Returns 0, or -1 with errno EPROTO and the reason in 'errp':
 * close the connection.
 */
int pmi_server_input (struct pmi_server *s, int rank, const char *data, size_t size, idt_error_t *errp);

/* The connection of 'rank' is gone: forget what was half said and that it waits in a barrier.  A
 * new life of the rank begins with init.
 */
void pmi_server_reset (struct pmi_server *s, int rank);

#endif /* PMI_SERVER_H */
