/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* config.c - the boot method of a configured instance (cluster.h)
 *
 * All addresses and keys are known in advance. The attributes give the address of each rank. The key pair of each rank
 * is derived from the secret of the certificate, which is the same on all hosts. So boot waits for no broker, and a
 * broker accepts any of its descendants, even if the descendant's parent has never been up. All candidates of rank 0
 * (cluster.root) have the same key pair.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/boot/cluster.h"
#include "broker/boot/method.h"
#include "common/libzmqutil/curve.h"
#include "common/libzmqutil/resolver.h"
#include "libutil/errprintf.h"

#define RESOLVER_MS 1000 /* limit for looking up a name during a reload, which blocks the brokers */

struct config {
    struct cluster *cluster;
    struct cluster *before; /* during a reload, until settle () is called: the cluster before the reload */
    uint32_t rank;          /* the rank of this process */
    uint32_t candidate;     /* rank 0: the position of this host in cluster.root */
    const char *own_host;   /* borrowed; NULL: use the host's own name */
    bool was_told;          /* the rank was given with --rank */
    uint8_t secret[ZAP_KEY_SIZE];
};

static void destroy (void *m)
{
    struct config *c = m;
    int saved_errno = errno;

    cluster_destroy (c->cluster);
    cluster_destroy (c->before);
    explicit_bzero (c->secret, sizeof (c->secret));
    free (c);
    errno = saved_errno;
}

/* --- this host ----------------------------------------------------------------------------------- */

/* Read the certificate. EPERM becomes EINVAL, because a restart does not help: an administrator must repair the file.
 */
static int read_certificate (struct config *c, idt_error_t *errp)
{
    int rc = certificate_read (c->cluster->certificate, c->secret, errp);

    if (rc < 0 && errno == EPERM)
        errno = EINVAL;
    return rc;
}

static const char *own_name (const struct config *c)
{
    return c->rank == 0 && c->cluster->nroots > 0 ? c->cluster->roots[c->candidate] : c->cluster->hosts[c->rank].name;
}

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    struct config *c = calloc (1, sizeof (*c));

    if (!c)
        return errsetf_null (errp, ENOMEM, "out of memory");
    c->own_host = conf->own_host;
    c->was_told = conf->own_rank != NULL;
    if (!(c->cluster = cluster_create (conf->attrs, errp))
        || cluster_find_place (c->cluster, conf->own_host, conf->own_rank, &c->rank, &c->candidate, errp) < 0
        || read_certificate (c, errp) < 0) {
        destroy (c);
        return NULL;
    }
    *self = (struct boot_self){
        .size = c->cluster->size,
        .processes = c->cluster->size,
        .tasks = c->cluster->size,
        .process = c->rank,
        .host = own_name (c),
    };
    return c;
}

static int get_secret (void *m, uint8_t secret[ZAP_KEY_SIZE], idt_error_t *errp)
{
    const struct config *c = m;

    memcpy (secret, c->secret, ZAP_KEY_SIZE);
    return 0;
}

/* --- the other hosts ----------------------------------------------------------------------------- */

static int get (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    const struct config *c = m;
    char public_key[BOOT_KEY_TEXT], secret_key[BOOT_KEY_TEXT], endpoint[CLUSTER_ENDPOINT_SIZE];
    int rc = boot_derive_keys (c->secret, rank, public_key, secret_key, errp);

    explicit_bzero (secret_key, sizeof (secret_key));
    if (rc < 0)
        return -1;
    cluster_endpoint (c->cluster, rank, endpoint, sizeof (endpoint));
    return card_fill (card, rank, endpoint, c->cluster->hosts[rank].name, public_key, "", c->cluster->size);
}

/* Get the address of an interface, preferably an IPv4 address. If there is no interface 'name', 'name' is the address.
 */
static int find_interface (const char *name, char address[RESOLVER_TEXT], idt_error_t *errp)
{
    struct ifaddrs *list = NULL;
    bool exists = false, found = false;
    char text[RESOLVER_TEXT];

    if (getifaddrs (&list) < 0)
        return errprintf (errp, "cannot list the network interfaces: %s", strerror (errno));
    for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
        if (strcmp (ifa->ifa_name, name) != 0)
            continue;
        exists = true;
        if (!resolver_text (ifa->ifa_addr, text) || (found && (strchr (text, ':') || !strchr (address, ':'))))
            continue;
        found = true;
        snprintf (address, RESOLVER_TEXT, "%s", text);
    }
    freeifaddrs (list);
    if (exists && !found)
        return errsetf (errp, EADDRNOTAVAIL, "cluster.interface=%s: it has no address (yet)", name);
    if (!found)
        snprintf (address, RESOLVER_TEXT, "%s", name);
    return 0;
}

static int listen_at (void *m, uint32_t rank, char *buf, size_t size, idt_error_t *errp)
{
    const struct config *c = m;
    char address[RESOLVER_TEXT], port[8];

    if (find_interface (c->cluster->interface, address, errp) < 0)
        return -1;
    snprintf (port, sizeof (port), "%u", c->cluster->hosts[rank].port);
    return resolver_endpoint (buf, size, address, port);
}

/* --- reload -------------------------------------------------------------------------------------- */

static int check_listen (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    if (c->cluster->hosts[c->rank].port == other->hosts[c->rank].port
        && strcmp (c->cluster->interface, other->interface) == 0)
        return 0;
    return errsetf (errp, EINVAL,
                    "the address at which this broker listens can change only while the whole instance is stopped "
                    "(cluster.port, cluster.root, cluster.interface)");
}

/* All addresses of 127/8 belong to this host, although the loopback interface lists only one. */
static bool is_loopback (const struct in6_addr *number)
{
    return IN6_IS_ADDR_LOOPBACK (number) || (IN6_IS_ADDR_V4MAPPED (number) && number->s6_addr[12] == IN_LOOPBACKNET);
}

/* Whether the numeric address in an endpoint belongs to this host. */
static int is_own_address (const char *endpoint, bool *own, idt_error_t *errp)
{
    struct ifaddrs *list = NULL;
    struct in6_addr number = in6addr_any, here;

    *own = resolver_number (endpoint, &number) && is_loopback (&number);
    if (*own)
        return 0;
    if (getifaddrs (&list) < 0)
        return errprintf (errp, "cannot list the network interfaces: %s", strerror (errno));
    for (const struct ifaddrs *ifa = list; ifa && !*own; ifa = ifa->ifa_next)
        *own = resolver_of (ifa->ifa_addr, &here) && memcmp (&here, &number, sizeof (here)) == 0;
    freeifaddrs (list);
    return 0;
}

/* Whether one of the addresses of an endpoint belongs to this host. Waits at most RESOLVER_MS for a name server.
 * Returns 0, or -1 with 'errp' filled if no address is known.
 */
static int is_here (const char *endpoint, bool *here, idt_error_t *errp)
{
    struct resolver *a = resolver_create ();
    const char *found;
    int rc;

    if (!a)
        return errprintf (errp, "out of memory");
    if (!resolver_resolve (a, endpoint, errp))
        resolver_wait (&a, 1, RESOLVER_MS);
    do {
        found = resolver_resolve (a, endpoint, errp);
        rc = found ? is_own_address (found, here, errp) : -1;
    } while (rc == 0 && !*here && resolver_next (a));
    resolver_destroy (a);
    return rc;
}

/* Check that the entry of this rank in 'other' still is this host, perhaps with another name. This host is looked for
 * by its name, like at the start. If that fails, or --rank was given, the address of the entry is compared with the
 * addresses of this host.
 */
static int check_host (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    const char *host = c->cluster->hosts[c->rank].name, *now = other->hosts[c->rank].name;
    char endpoint[CLUSTER_ENDPOINT_SIZE];
    uint32_t rank = c->rank;
    bool same = true;
    idt_error_t why = { "" };

    if (cluster_is_same_name (host, now))
        return 0;
    if (!c->was_told && cluster_find_self (other, cluster_find, c->own_host, &rank, NULL) == 0)
        same = rank == c->rank;
    else {
        cluster_endpoint (other, c->rank, endpoint, sizeof (endpoint));
        if (is_here (endpoint, &same, &why) < 0)
            return errsetf (errp, EINVAL,
                            "rank %u is now %s, and was %s: cannot find out whether that is this host: "
                            "%s",
                            c->rank, now, host, why.text);
    }
    return same ? 0 : errsetf (errp, ESTALE, "rank %u is now %s, and no longer %s", c->rank, now, host);
}

/* Check that this host still is a candidate of rank 0. Another candidate may have been replaced. */
static int check_candidate (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    const char *host = c->cluster->roots[c->candidate];
    uint32_t candidate;

    for (uint32_t i = 0; i < other->nroots; i++)
        if (cluster_is_same_name (other->roots[i], host))
            return 0;
    if (cluster_find_self (other, cluster_find_root, c->own_host, &candidate, NULL) == 0)
        return 0;
    return errsetf (errp, ESTALE, "cluster.root no longer lists this host, %s", host);
}

static int check_place (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    if ((c->cluster->nroots > 0) != (other->nroots > 0))
        return errsetf (errp, EINVAL, "cluster.root can be added or removed only while the whole instance is stopped");
    return c->rank == 0 && c->cluster->nroots > 0 ? check_candidate (c, other, errp) : check_host (c, other, errp);
}

static int check_same (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    if (other->size != c->cluster->size)
        return errsetf (errp, EINVAL,
                        "cluster.hosts has %u hosts, and had %u: the size can change only while the whole instance "
                        "is stopped",
                        other->size, c->cluster->size);
    return check_place (c, other, errp) < 0 ? -1 : check_listen (c, other, errp);
}

static int reload (void *m, struct attrs *attrs, idt_error_t *errp)
{
    struct config *c = m;
    struct cluster *other = cluster_create (attrs, errp);

    if (!other)
        return -1;
    if (check_same (c, other, errp) < 0) {
        cluster_destroy (other);
        return -1;
    }
    assert (!c->before);
    c->before = c->cluster;
    c->cluster = other;
    return 0;
}

static void settle (void *m, bool keep)
{
    struct config *c = m;

    assert (c->before);
    cluster_destroy (keep ? c->before : c->cluster);
    c->cluster = keep ? c->cluster : c->before;
    c->before = NULL;
}

const struct boot_method boot_config = {
    .name = "config",
    .create = create,
    .destroy = destroy,
    .secret = get_secret,
    .earlier = get,
    .get = get,
    .listen_at = listen_at,
    .reload = reload,
    .settle = settle,
};
