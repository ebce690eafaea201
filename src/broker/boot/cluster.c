/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster.c - the hosts of a configured instance: one broker for each entry of the list. The services of each host
 * start its broker, in any order.
 *
 * All addresses and keys are known in advance. The attributes give the address of each rank. The key pair of each rank
 * is derived from the secret of the certificate, which is the same on all hosts. So boot waits for no broker, and a
 * broker accepts any of its descendants, even if the descendant's parent has never been up.
 */
#include "config.h"

#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "broker/base/hostlist.h"
#include "broker/boot/cluster.h"
#include "broker/boot/method.h"
#include "common/libzmqutil/curve.h"
#include "common/libzmqutil/resolver.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define PORT_DEFAULT "8060"
#define RESOLVER_MS 1000 /* limit for looking up a name during a reload, which blocks the brokers */

static const char *const names[] = { "cluster.hosts", "cluster.port", "cluster.address", "cluster.interface",
                                     "cluster.certificate" };

bool cluster_is_given (struct attrs *attrs)
{
    return attrs && attr_get (attrs, names[0], NULL) != NULL;
}

int cluster_define (struct attrs *attrs, idt_error_t *errp)
{
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (attr_define (attrs, names[i], NULL, 0, errp) < 0)
            return -1;
    return 0;
}

/* --- reading ------------------------------------------------------------------------------------- */

/* Find the port in the entry of a host: "8060" in "n7:8060" or "[::1]:8060"; NULL if the entry has no port, like "n7",
 * "[::1]" and "::1". The part before the port is copied to 'host', without brackets; an IPv6 address is converted to
 * its canonical form.
 */
static const char *split_host (const char *name, char host[HOSTLIST_NAME_MAX + 1])
{
    const char *colon = strrchr (name, ':'), *close = strrchr (name, ']');
    struct in6_addr number;

    if (colon && (close ? colon < close : strchr (name, ':') != colon))
        colon = NULL;
    snprintf (host, HOSTLIST_NAME_MAX + 1, "%.*s", (int)(colon ? colon - name : HOSTLIST_NAME_MAX), name);
    if (close) {
        memmove (host, host + 1, strlen (host));
        host[strcspn (host, "]")] = '\0';
    }
    if (inet_pton (AF_INET6, host, &number) == 1)
        inet_ntop (AF_INET6, &number, host, HOSTLIST_NAME_MAX + 1);
    return colon ? colon + 1 : NULL;
}

static int add_host (const char *name, void *arg, idt_error_t *errp)
{
    char host[HOSTLIST_NAME_MAX + 1];
    struct cluster *c = arg;
    const char *given = split_host (name, host);
    struct in6_addr number;
    uint64_t port = c->port;
    struct cluster_host *h;

    if (given && parse_number (given, 1, 65535, &port) < 0)
        return errsetf (errp, EINVAL, "'%s' has no port from 1 to 65535 after its colon", name);
    if (strchr (host, ':') && inet_pton (AF_INET6, host, &number) != 1)
        return errsetf (errp, EINVAL, "'%s' is neither a name with one port nor an IPv6 address", name);
    if (c->size == c->room) {
        uint32_t room = c->room > 0 ? 2 * c->room : 64;
        struct cluster_host *hosts = realloc (c->hosts, room * sizeof (hosts[0]));

        if (!hosts)
            return errsetf (errp, ENOMEM, "out of memory");
        c->hosts = hosts;
        c->room = room;
    }
    h = &c->hosts[c->size];
    h->port = port;
    if (!(h->name = strdup (host)))
        return errsetf (errp, ENOMEM, "out of memory");
    c->size++;
    return 0;
}

static int compare_hosts (const void *a, const void *b)
{
    const struct cluster_host *x = *(const struct cluster_host *const *)a, *y = *(const struct cluster_host *const *)b;
    int order = strcasecmp (x->name, y->name);

    return order != 0 ? order : x->port - y->port;
}

/* Check that no two ranks have the same host and port, because one of them could not listen. */
static int check_hosts (const struct cluster *c, idt_error_t *errp)
{
    const struct cluster_host **sorted = malloc (c->size * sizeof (struct cluster_host *));
    int rc = 0;

    if (!sorted)
        return errsetf (errp, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < c->size; i++)
        sorted[i] = &c->hosts[i];
    qsort (sorted, c->size, sizeof (struct cluster_host *), compare_hosts);
    for (uint32_t i = 1; rc == 0 && i < c->size; i++)
        if (compare_hosts (&sorted[i - 1], &sorted[i]) == 0)
            rc = errsetf (errp, EINVAL, "%s is in it twice: give one of them a port of its own, %s:PORT",
                          sorted[i]->name, sorted[i]->name);
    free (sorted);
    return rc;
}

/* Check the length of all endpoints at the start, before any of them is in use. */
static int check_endpoints (const struct cluster *c, idt_error_t *errp)
{
    char endpoint[CLUSTER_ENDPOINT_SIZE];

    for (uint32_t rank = 0; rank < c->size; rank++)
        if (cluster_endpoint (c, rank, endpoint, sizeof (endpoint)) < 0)
            return errsetf (errp, EINVAL, "cluster.address makes too long a name of %.40s", c->hosts[rank].name);
    return 0;
}

static int read_hosts (struct cluster *c, struct attrs *attrs, idt_error_t *errp)
{
    const char *hosts = attr_get (attrs, "cluster.hosts", NULL);
    idt_error_t why;

    if (!hosts) /* a broker runs, so the attribute was set when the broker was started */
        return errsetf (errp, EINVAL, "cluster.hosts is missing: it lists the hosts, one broker each");
    if (hostlist_expand (hosts, add_host, c, &why) == 0 && check_hosts (c, &why) == 0)
        return 0;
    return attr_fault (attrs, "cluster.hosts", errp, "%s", why.text);
}

/* Read an attribute that must not be empty. The caller frees the copy. */
static char *read_text (struct attrs *attrs, const char *name, const char *unless_given, const char *must,
                        idt_error_t *errp)
{
    const char *s = attr_get (attrs, name, NULL);
    char *copy;

    if (!s)
        s = unless_given;
    if (!s || !*s) {
        attr_fault (attrs, name, errp, "%s", must);
        return NULL;
    }
    if (!(copy = strdup (s)))
        errsetf (errp, ENOMEM, "out of memory");
    return copy;
}

static int read_all (struct cluster *c, struct attrs *attrs, idt_error_t *errp)
{
    if (attr_u32 (attrs, "cluster.port", PORT_DEFAULT, 1, 65535, &c->port, errp) < 0
        || !(c->address = read_text (attrs, "cluster.address", CLUSTER_ADDRESS, "must have %h for the name of a host",
                                     errp))
        || !(c->interface = read_text (attrs, "cluster.interface", "*", "must name an interface, or an address", errp))
        || !(c->certificate = read_text (attrs, "cluster.certificate", NULL,
                                         "must name the file that idtree keygen made", errp)))
        return -1;
    if (!strstr (c->address, "%h"))
        return attr_fault (attrs, "cluster.address", errp, "must have %%h, which stands for the name of a host");
    return read_hosts (c, attrs, errp) < 0 ? -1 : check_endpoints (c, errp);
}

struct cluster *cluster_create (struct attrs *attrs, idt_error_t *errp)
{
    struct cluster *c = calloc (1, sizeof (*c));

    if (!c)
        return errsetf_null (errp, ENOMEM, "out of memory");
    if (read_all (c, attrs, errp) == 0)
        return c;
    cluster_destroy (c);
    return NULL;
}

void cluster_destroy (struct cluster *c)
{
    int saved_errno = errno;

    if (!c)
        return;
    for (uint32_t i = 0; i < c->size; i++)
        free (c->hosts[i].name);
    free (c->hosts);
    free (c->address);
    free (c->interface);
    free (c->certificate);
    free (c);
    errno = saved_errno;
}

/* --- the rank of a host -------------------------------------------------------------------------- */

/* node7 and node7.cluster.org are one host; node7.a and node7.b are two. */
static bool is_same_short (const char *a, const char *b)
{
    size_t n = strcspn (a, "."), m = strcspn (b, ".");

    return n == m && strncasecmp (a, b, n) == 0 && (!a[n] || !b[m]);
}

bool cluster_is_same_name (const char *a, const char *b)
{
    return strcasecmp (a, b) == 0 || is_same_short (a, b);
}

static uint32_t count_matches (const struct cluster *c, const char *name, bool exact, uint32_t *rank)
{
    uint32_t n = 0;

    for (uint32_t i = c->size; i-- > 0;)
        if (exact ? strcasecmp (c->hosts[i].name, name) == 0 : is_same_short (c->hosts[i].name, name)) {
            *rank = i;
            n++;
        }
    return n;
}

int cluster_find (const struct cluster *c, const char *name, uint32_t *rank, idt_error_t *errp)
{
    uint32_t found = 0, n = count_matches (c, name, true, &found);

    if (n == 0)
        n = count_matches (c, name, false, &found);
    if (n == 0)
        return errsetf (
            errp, EINVAL,
            "this host, %s, is not among the %u of cluster.hosts: add it in its place, or select an entry with "
            "--host or --rank",
            name, c->size);
    if (n > 1)
        return errsetf (errp, EINVAL,
                        "this host, %s, is %u of cluster.hosts, ranks %u and others: select one with "
                        "--rank",
                        name, n, found);
    *rank = found;
    return 0;
}

int cluster_endpoint (const struct cluster *c, uint32_t rank, char *buf, size_t size)
{
    const struct cluster_host *h = &c->hosts[rank];
    const char *mark = strstr (c->address, "%h");
    char host[CLUSTER_ENDPOINT_SIZE], port[8];
    assert (rank < c->size && mark);
    int n = snprintf (host, sizeof (host), "%.*s%s%s", (int)(mark - c->address), c->address, h->name, mark + 2);

    snprintf (port, sizeof (port), "%u", h->port);
    return n >= (int)sizeof (host) ? errset (ENAMETOOLONG) : resolver_endpoint (buf, size, host, port);
}

/* --- the boot method ------------------------------------------------------------------------------ */

struct config {
    struct cluster *cluster;
    struct cluster *before; /* during a reload, until settle () is called: the cluster before the reload */
    uint32_t rank;          /* the rank of this process */
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

/* Find an address of this host in the list, which may have addresses in place of names. Returns whether there is one.
 */
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
    if (*conf->own_rank >= c->cluster->size)
        return errsetf (errp, EINVAL, "--rank %u: cluster.hosts has ranks 0 to %u", *conf->own_rank,
                        c->cluster->size - 1);
    c->rank = *conf->own_rank;
    return 0;
}

/* Read the certificate. EPERM becomes EINVAL, because a restart does not help: an administrator must repair the file.
 */
static int read_certificate (struct config *c, idt_error_t *errp)
{
    int rc = certificate_read (c->cluster->certificate, c->secret, errp);

    if (rc < 0 && errno == EPERM)
        errno = EINVAL;
    return rc;
}

static void *create (const struct boot_conf *conf, struct boot_self *self, idt_error_t *errp)
{
    struct config *c = calloc (1, sizeof (*c));

    if (!c)
        return errsetf_null (errp, ENOMEM, "out of memory");
    if (!(c->cluster = cluster_create (conf->attrs, errp)) || choose_rank (c, conf, errp) < 0
        || read_certificate (c, errp) < 0) {
        destroy (c);
        return NULL;
    }
    *self = (struct boot_self){
        .size = c->cluster->size,
        .processes = c->cluster->size,
        .tasks = c->cluster->size,
        .process = c->rank,
        .host = c->cluster->hosts[c->rank].name,
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
    if (other->size != c->cluster->size)
        return errsetf (errp, EINVAL,
                        "cluster.hosts has %u hosts, and had %u: the size can change only while the whole instance "
                        "is stopped",
                        other->size, c->cluster->size);
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
