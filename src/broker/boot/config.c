/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* config.c - brokers of a configured instance: one on each host, started by the services of that host, in any order
 *
 * All addresses and keys are known in advance. cluster.h gives the address of each rank, and the key pair of each rank
 * is derived from the secret of the certificate, which is the same on all hosts. So boot waits for no broker, and a
 * broker accepts any of its descendants, even if the descendant's parent has never been up.
 */
#include "config.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/boot/card.h"
#include "broker/boot/cluster.h"
#include "broker/boot/method.h"
#include "common/libzmqutil/resolver.h"
#include "common/libzmqutil/curve.h"
#include "libutil/errprintf.h"

#define RESOLVER_MS 1000 /* for the lookup during a reload, which blocks the brokers */

struct config {
    struct cluster *cluster;
    struct cluster *before; /* during a reload, until it is settled */
    uint32_t rank;          /* of this process */
    const char *own_host;   /* borrowed; NULL: the host's name */
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

/* The list may have addresses. Returns whether it has one of this host. */
static bool find_address (const struct cluster *cluster, uint32_t *rank)
{
    struct ifaddrs *list = NULL;
    bool found = false;
    char name[RESOLVER_TEXT];

    if (getifaddrs (&list) < 0)
        return false;
    for (const struct ifaddrs *ifa = list; ifa && !found; ifa = ifa->ifa_next)
        found = resolver_text (ifa->ifa_addr, name) && cluster_find (cluster, name, rank, NULL) == 0;
    freeifaddrs (list);
    return found;
}

/* Find the rank of this host in a list. */
static int find_self (const struct cluster *cluster, const char *own_host, uint32_t *rank, idt_error_t *errp)
{
    char name[256] = "";

    if (own_host)
        return cluster_find (cluster, own_host, rank, errp);
    if (gethostname (name, sizeof (name) - 1) < 0)
        return errprintf (errp, "cannot get the name of this host: %s", strerror (errno));
    if (cluster_find (cluster, name, rank, errp) == 0 || find_address (cluster, rank))
        return 0;
    return errset (EINVAL);
}

static int choose_rank (struct config *c, const struct boot_conf *conf, idt_error_t *errp)
{
    c->own_host = conf->own_host;
    c->was_told = conf->own_rank != NULL;
    if (!c->was_told)
        return find_self (c->cluster, c->own_host, &c->rank, errp);
    if (*conf->own_rank >= cluster_size (c->cluster))
        return errsetf (errp, EINVAL, "--rank %u: cluster.hosts has ranks 0 to %u", *conf->own_rank,
                        cluster_size (c->cluster) - 1);
    c->rank = *conf->own_rank;
    return 0;
}

/* EPERM becomes EINVAL: a restart does not help, a person must repair the file. */
static int read_certificate (struct config *c, idt_error_t *errp)
{
    int rc = certificate_read (cluster_certificate (c->cluster), c->secret, errp);

    if (rc < 0 && errno == EPERM)
        errno = EINVAL;
    return rc;
}

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    struct config *c = calloc (1, sizeof (*c));

    if (!c) {
        errsetf (errp, ENOMEM, "out of memory");
        return NULL;
    }
    if (!(c->cluster = cluster_create (conf->attrs, errp)) || choose_rank (c, conf, errp) < 0
        || read_certificate (c, errp) < 0) {
        destroy (c);
        return NULL;
    }
    *self = (struct boot_self){
        .size = cluster_size (c->cluster),
        .processes = cluster_size (c->cluster),
        .tasks = cluster_size (c->cluster),
        .process = c->rank,
        .host = cluster_host (c->cluster, c->rank),
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
    return card_fill (card, rank, endpoint, cluster_host (c->cluster, rank), public_key, "", cluster_size (c->cluster));
}

static int earlier (void *m, uint32_t rank, struct bizcard *card, idt_error_t *errp)
{
    return get (m, rank, card, errp);
}

/* The address of an interface, preferably of IPv4. A name that is not an interface is taken as an address. */
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

    if (find_interface (cluster_interface (c->cluster), address, errp) < 0)
        return -1;
    snprintf (port, sizeof (port), "%u", cluster_port (c->cluster, rank));
    return resolver_endpoint (buf, size, address, port);
}

/* --- reload -------------------------------------------------------------------------------------- */

static int check_listen (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    if (cluster_port (c->cluster, c->rank) == cluster_port (other, c->rank)
        && strcmp (cluster_interface (c->cluster), cluster_interface (other)) == 0)
        return 0;
    return errsetf (errp, EINVAL,
                    "the address at which this broker listens can change only while the whole instance is stopped "
                    "(cluster.port, cluster.interface)");
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
 * Returns -1 with 'errp' filled if no address is known.
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

/* Check that the entry of this rank still is this host, maybe with another name. The host is found by name as at the
 * start; if that fails, or --rank was given, by address.
 */
static int check_host (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    const char *host = cluster_host (c->cluster, c->rank), *now = cluster_host (other, c->rank);
    char endpoint[CLUSTER_ENDPOINT_SIZE];
    uint32_t rank = c->rank;
    bool same = true;
    idt_error_t why = { "" };

    if (cluster_is_same_name (host, now))
        return 0;
    if (!c->was_told && find_self (other, c->own_host, &rank, NULL) == 0)
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

static int check_same (const struct config *c, const struct cluster *other, idt_error_t *errp)
{
    if (cluster_size (other) != cluster_size (c->cluster))
        return errsetf (errp, EINVAL,
                        "cluster.hosts has %u hosts, and had %u: the size can change only while the whole instance "
                        "is stopped",
                        cluster_size (other), cluster_size (c->cluster));
    return check_host (c, other, errp) < 0 ? -1 : check_listen (c, other, errp);
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
    c->before = c->cluster;
    c->cluster = other;
    return 0;
}

static void settle (void *m, bool keep)
{
    struct config *c = m;

    cluster_destroy (keep ? c->before : c->cluster);
    c->cluster = keep ? c->cluster : c->before;
    c->before = NULL;
}

const struct boot_method boot_config = {
    .name = "config",
    .create = create,
    .destroy = destroy,
    .secret = get_secret,
    .earlier = earlier,
    .get = get,
    .listen_at = listen_at,
    .reload = reload,
    .settle = settle,
};
