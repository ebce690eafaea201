/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* boot.c - who am I, how many are we, where are my parent and my children? */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "broker/boot.h"
#include "libpmi/pmi_client.h"
#include "libutil/errprintf.h"

#define BIZCARD_TEXT 1024 /* bytes of a bizcard at most: what every PMI carries */

/* --- bizcards ------------------------------------------------------------------------------------------ */

static void encode_bizcard (char text[BIZCARD_TEXT], const struct bizcard *bizcard)
{
    int n = snprintf (text, BIZCARD_TEXT, "%s,%s,", bizcard->endpoint, bizcard->host);

    for (int i = 0; i < ZAP_KEY_SIZE; i++)
        n += snprintf (text + n, BIZCARD_TEXT - n, "%02x", bizcard->key[i]);
    snprintf (text + n, BIZCARD_TEXT - n, ",%s", bizcard->topology);
}

static int decode_hex (const char *s, uint8_t *key, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned byte;

        if (strspn (s + 2 * i, "0123456789abcdef") < 2 || sscanf (s + 2 * i, "%2x", &byte) != 1)
            return -1;
        key[i] = byte;
    }
    return s[2 * size] ? -1 : 0;
}

/* Names are told in lists (RFC 29), and in JSON. */
static bool is_host (const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr ("[],", *p))
            return false;
    return true;
}

static int decode_bizcard (const char *text, struct bizcard *bizcard)
{
    char key[2 * ZAP_KEY_SIZE + 2];

    memset (bizcard, 0, sizeof (*bizcard));
    if (sscanf (text, "%255[^,],%255[^,],%65[^,],%31[^,]", bizcard->endpoint, bizcard->host, key, bizcard->topology)
            != 4
        || decode_hex (key, bizcard->key, ZAP_KEY_SIZE) < 0 || !is_host (bizcard->host))
        return errset (EPROTO);
    return 0;
}

static char *bizcard_name (char buf[64], uint32_t rank)
{
    snprintf (buf, 64, "idtree.bizcard.%u", rank);
    return buf;
}

static int get_bizcard (struct boot *b, uint32_t rank, struct bizcard *bizcard, idt_error_t *errp)
{
    char text[BIZCARD_TEXT], name[64];

    if (pmi_client_get (b->pmi, bizcard_name (name, rank), text, sizeof (text), errp) < 0)
        return -1;
    if (decode_bizcard (text, bizcard) < 0)
        return errprintf (errp, "rank %u: malformed bizcard '%s'", rank, text);
    bizcard->rank = rank;
    return 0;
}

/* --- who am I ------------------------------------------------------------------------------------------ */

/* Our launcher keeps the pair: "PUBLIC,SECRET" in Z85. */
static int get_kept_keys (struct boot *b, idt_error_t *errp)
{
    char text[BIZCARD_TEXT];

    if (pmi_client_get (b->pmi, "idtree.secret", text, sizeof (text), errp) < 0)
        return -1;
    if (sscanf (text, "%40[^,],%40s", b->public_key, b->secret_key) != 2 || strlen (b->public_key) != 40
        || strlen (b->secret_key) != 40)
        return errsetf (errp, EPROTO, "the launcher gave a malformed key pair");
    return 0;
}

static int get_keys (struct boot *b, idt_error_t *errp)
{
    if (b->ours)
        return get_kept_keys (b, errp);
    if (zmq_curve_keypair (b->public_key, b->secret_key) < 0)
        return errprintf (errp, "cannot make a key pair: libzmq was built without CURVE");
    return 0;
}

static int get_old_bizcard (struct boot *b, idt_error_t *errp)
{
    if (!b->ours || get_bizcard (b, b->rank, &b->old, errp) == 0)
        return 0;
    return errno == ENOENT ? 0 : -1;
}

/* PMI_process_mapping: "(vector,(0,1,N))" says that all ranks are on one node. */
static void get_mapping (struct boot *b)
{
    char text[BIZCARD_TEXT];
    unsigned node, nodes, ranks;
    int end = 0;

    if (pmi_client_get (b->pmi, "PMI_process_mapping", text, sizeof (text), NULL) < 0)
        return;
    if (sscanf (text, "(vector,(%u,%u,%u))%n", &node, &nodes, &ranks, &end) == 3 && end > 0 && !text[end])
        b->one_host = nodes == 1;
}

static int start_pmi (struct boot *b, int fd, idt_error_t *errp)
{
    if (!(b->pmi = pmi_client_create (fd, b->rank, b->size, errp)))
        return -1;
    b->ours = strncmp (pmi_client_kvsname (b->pmi), "idtree-", 7) == 0;
    get_mapping (b);
    return get_old_bizcard (b, errp);
}

struct boot *boot_create (int pmi_fd, uint32_t rank, uint32_t size, const char *host, idt_error_t *errp)
{
    struct boot *b = calloc (1, sizeof (*b));

    if (!b) {
        errprintf (errp, "out of memory");
        return NULL;
    }
    b->rank = rank;
    b->size = size;
    b->host = host;
    b->one_host = pmi_fd < 0;
    if ((pmi_fd >= 0 && start_pmi (b, pmi_fd, errp) < 0) || get_keys (b, errp) < 0) {
        boot_destroy (b);
        return NULL;
    }
    return b;
}

void boot_destroy (struct boot *b)
{
    int saved_errno = errno;

    if (!b)
        return;
    pmi_client_destroy (b->pmi);
    memset (b->secret_key, 0, sizeof (b->secret_key));
    free (b->ancestors);
    free (b->children);
    hostlist_destroy (b->hosts);
    free (b);
    errno = saved_errno;
}

const char *boot_old_endpoint (const struct boot *b)
{
    return b->old.endpoint[0] && strcmp (b->old.endpoint, "-") != 0 ? b->old.endpoint : NULL;
}

/* --- where are the others ---------------------------------------------------------------------------- */

static int put_bizcard (struct boot *b, const struct topo *topo, const char *endpoint, idt_error_t *errp)
{
    struct bizcard bizcard = { .endpoint = "-" };
    char text[BIZCARD_TEXT], name[64];

    if (b->old.endpoint[0]) /* the launcher has it */
        return 0;
    if (endpoint)
        snprintf (bizcard.endpoint, sizeof (bizcard.endpoint), "%s", endpoint);
    snprintf (bizcard.host, sizeof (bizcard.host), "%s", b->host);
    snprintf (bizcard.topology, sizeof (bizcard.topology), "%s", topo->name);
    if (!zmq_z85_decode (bizcard.key, b->public_key))
        return errsetf (errp, EINVAL, "malformed public key");
    encode_bizcard (text, &bizcard);
    return pmi_client_put (b->pmi, bizcard_name (name, b->rank), text, errp);
}

/* With another tree than the rest a rank would look for its parent where there is none. */
static int check_topology (const struct boot *b, const struct topo *topo, const struct bizcard *other,
                           idt_error_t *errp)
{
    if (strcmp (other->topology, topo->name) == 0)
        return 0;
    return errsetf (errp, EINVAL, "rank %u has the topology %s, but rank %u began with %s: all must have the same",
                    b->rank, topo->name, other->rank, other->topology);
}

static int get_bizcards (struct boot *b, const struct topo *topo, idt_error_t *errp)
{
    uint32_t nchildren = topo_child_count (topo, b->rank), rank = b->rank;

    b->nancestors = topo_level (topo, b->rank);
    b->ancestors = calloc (b->nancestors + 1, sizeof (b->ancestors[0]));
    b->children = calloc (nchildren + 1, sizeof (b->children[0]));
    if (!b->ancestors || !b->children)
        return errprintf (errp, "out of memory");
    for (uint32_t i = 0; i < b->nancestors; i++) {
        rank = topo_parent (topo, rank);
        if (get_bizcard (b, rank, &b->ancestors[i], errp) < 0)
            return -1;
    }
    if (b->nancestors > 0 && check_topology (b, topo, &b->ancestors[b->nancestors - 1], errp) < 0)
        return -1;
    for (uint32_t i = 0; i < nchildren; i++)
        if (get_bizcard (b, topo_child (topo, b->rank, i), &b->children[i], errp) < 0)
            return -1;
    return 0;
}

/* On one host the list is our own name over and over.  Else it takes everybody's bizcard: for rank 0 alone, or the launcher
 * would be asked size x size times.
 */
static int list_hosts (struct boot *b, idt_error_t *errp)
{
    struct bizcard bizcard;

    if (!b->one_host && b->rank > 0)
        return 0;
    if (!(b->hosts = hostlist_create ()) || hostlist_append (b->hosts, b->host, b->one_host ? b->size : 1) < 0)
        return errprintf (errp, "out of memory");
    for (uint32_t rank = 1; !b->one_host && rank < b->size; rank++) {
        if (get_bizcard (b, rank, &bizcard, errp) < 0)
            return -1;
        if (hostlist_append (b->hosts, bizcard.host, 1) < 0)
            return errprintf (errp, "out of memory");
    }
    return 0;
}

int boot_exchange (struct boot *b, const struct topo *topo, const char *endpoint, idt_error_t *errp)
{
    if (b->old.endpoint[0] && check_topology (b, topo, &b->old, errp) < 0)
        return -1;
    if (b->pmi
        && (put_bizcard (b, topo, endpoint, errp) < 0 || pmi_client_barrier (b->pmi, errp) < 0
            || get_bizcards (b, topo, errp) < 0))
        return -1;
    return list_hosts (b, errp);
}

void boot_ready (struct boot *b)
{
    if (b->pmi && !b->ready)
        pmi_client_finalize (b->pmi, NULL);
    b->ready = true;
}
