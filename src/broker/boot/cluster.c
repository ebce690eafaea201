/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster.c - the hosts of a configured instance: one broker for each entry of the list. The services of each host
 * start its broker, in any order. config.c boots them.
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
#include "common/libzmqutil/resolver.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define PORT_DEFAULT "8060"

static const char *const names[] = { "cluster.hosts",   "cluster.root",      "cluster.port",
                                     "cluster.address", "cluster.interface", "cluster.certificate" };

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

/* Split the entry of a host. '*port' is unchanged if the entry has none. */
static int read_host (const char *name, char host[HOSTLIST_NAME_MAX + 1], uint64_t *port, idt_error_t *errp)
{
    const char *given = split_host (name, host);
    struct in6_addr number;

    if (given && parse_number (given, 1, 65535, port) < 0)
        return errsetf (errp, EINVAL, "'%s' has no port from 1 to 65535 after its colon", name);
    if (strchr (host, ':') && inet_pton (AF_INET6, host, &number) != 1)
        return errsetf (errp, EINVAL, "'%s' is neither a name with one port nor an IPv6 address", name);
    return 0;
}

static int add_host (const char *name, void *arg, idt_error_t *errp)
{
    char host[HOSTLIST_NAME_MAX + 1];
    struct cluster *c = arg;
    uint64_t port = c->port;
    struct cluster_host *h;

    if (read_host (name, host, &port, errp) < 0)
        return -1;
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

/* --- the candidates of rank 0 -------------------------------------------------------------------- */

/* Add a candidate. All candidates listen at the same port, because others find them as the addresses of one endpoint.
 * The port of rank 0 in cluster.hosts becomes this port.
 */
static int add_root (const char *name, void *arg, idt_error_t *errp)
{
    char host[HOSTLIST_NAME_MAX + 1];
    struct cluster *c = arg;
    uint64_t port = 0;

    if (read_host (name, host, &port, errp) < 0)
        return -1;
    if (c->nroots == CLUSTER_ROOTS_MAX)
        return errsetf (errp, EINVAL, "it may list at most %d hosts", CLUSTER_ROOTS_MAX);
    for (uint32_t i = 0; i < c->nroots; i++)
        if (strcasecmp (c->roots[i], host) == 0)
            return errsetf (errp, EINVAL, "%s is in it twice", host);
    if (port > 0 && c->root_port > 0 && c->root_port != port)
        return errsetf (errp, EINVAL, "all hosts must have the same port: give it once, after the last host");
    if (port > 0)
        c->root_port = port;
    if (!(c->roots[c->nroots] = strdup (host)))
        return errsetf (errp, ENOMEM, "out of memory");
    c->nroots++;
    return 0;
}

/* Check that no candidate has the address of another rank. */
static int check_roots (const struct cluster *c, idt_error_t *errp)
{
    for (uint32_t i = 0; i < c->nroots; i++)
        for (uint32_t rank = 1; rank < c->size; rank++)
            if (c->hosts[rank].port == c->hosts[0].port && strcasecmp (c->hosts[rank].name, c->roots[i]) == 0)
                return errsetf (
                    errp, EINVAL,
                    "%s listens at port %u as rank %u, too: give cluster.root a port of its own, HOSTS:PORT",
                    c->roots[i], c->hosts[0].port, rank);
    return 0;
}

static int read_roots (struct cluster *c, struct attrs *attrs, idt_error_t *errp)
{
    const char *roots = attr_get (attrs, "cluster.root", NULL);
    idt_error_t why;

    if (!roots)
        return 0;
    if (hostlist_expand (roots, add_root, c, &why) < 0)
        return attr_fault (attrs, "cluster.root", errp, "%s", why.text);
    c->hosts[0].port = c->root_port > 0 ? c->root_port : c->port;
    return check_roots (c, &why) == 0 ? 0 : attr_fault (attrs, "cluster.root", errp, "%s", why.text);
}

int cluster_find_root (const struct cluster *c, const char *name, uint32_t *candidate, idt_error_t *errp)
{
    uint32_t n = 0;

    for (uint32_t i = c->nroots; i-- > 0;)
        if (cluster_is_same_name (c->roots[i], name)) {
            *candidate = i;
            n++;
        }
    if (n == 0)
        return errsetf (errp, EINVAL,
                        "this host, %s, is not among the %u of cluster.root, which may be rank 0: add it there, or "
                        "select an entry with --host",
                        name, c->nroots);
    if (n > 1)
        return errsetf (errp, EINVAL, "this host, %s, is several hosts of cluster.root: select one with --host", name);
    return 0;
}

/* --- all attributes ------------------------------------------------------------------------------ */

/* Check the length of all endpoints at the start, before any of them is in use. */
static int check_endpoints (const struct cluster *c, idt_error_t *errp)
{
    char endpoint[CLUSTER_ENDPOINT_SIZE];

    for (uint32_t rank = 0; rank < c->size; rank++)
        if (cluster_endpoint (c, rank, endpoint, sizeof (endpoint)) < 0)
            return errsetf (errp, EINVAL, "cluster.address makes too long a name of %.40s",
                            rank == 0 && c->nroots > 0 ? "all candidates" : c->hosts[rank].name);
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
    if (read_hosts (c, attrs, errp) < 0 || read_roots (c, attrs, errp) < 0)
        return -1;
    return check_endpoints (c, errp);
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
    for (uint32_t i = 0; i < c->nroots; i++)
        free (c->roots[i]);
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

/* Find an address of this host in the list, which may have addresses in place of names. Returns whether there is one.
 */
static bool find_address (const struct cluster *c, cluster_find_f find, uint32_t *found)
{
    struct ifaddrs *list = NULL;
    bool is_found = false;
    char name[RESOLVER_TEXT];

    if (getifaddrs (&list) < 0)
        return false;
    for (const struct ifaddrs *ifa = list; ifa && !is_found; ifa = ifa->ifa_next)
        is_found = resolver_text (ifa->ifa_addr, name) && find (c, name, found, NULL) == 0;
    freeifaddrs (list);
    return is_found;
}

int cluster_find_self (const struct cluster *c, cluster_find_f find, const char *own_host, uint32_t *found,
                       idt_error_t *errp)
{
    char name[256] = "";

    if (own_host)
        return find (c, own_host, found, errp);
    if (gethostname (name, sizeof (name) - 1) < 0)
        return errprintf (errp, "cannot get the name of this host: %s", strerror (errno));
    if (find (c, name, found, errp) == 0 || find_address (c, find, found))
        return 0;
    return errset (EINVAL);
}

int cluster_find_place (const struct cluster *c, const char *own_host, const uint32_t *own_rank, uint32_t *rank,
                        uint32_t *candidate, idt_error_t *errp)
{
    bool only_root = false;

    *candidate = 0;
    if (own_rank && *own_rank >= c->size)
        return errsetf (errp, EINVAL, "--rank %u: cluster.hosts has ranks 0 to %u", *own_rank, c->size - 1);
    if (own_rank)
        *rank = *own_rank;
    else if (cluster_find_self (c, cluster_find, own_host, rank, errp) < 0) {
        if (c->nroots == 0 || cluster_find_self (c, cluster_find_root, own_host, candidate, NULL) < 0)
            return -1;
        only_root = true;
        *rank = 0;
    }
    if (*rank != 0 || c->nroots == 0 || only_root)
        return 0;
    return cluster_find_self (c, cluster_find_root, own_host, candidate, errp);
}

/* --- endpoints ----------------------------------------------------------------------------------- */

/* Append a host to the list of hosts in 'list': an IPv6 address in a list needs brackets. Returns 0, or -1 with errno
 * ENAMETOOLONG.
 */
static int append_host (const struct cluster *c, const char *name, bool more, char *list, size_t size)
{
    const char *mark = strstr (c->address, "%h");
    size_t used = strlen (list);
    bool bare = more && strchr (name, ':');
    assert (mark);
    int n = snprintf (list + used, size - used, "%s%.*s%s%s%s%s", used > 0 ? "," : "", (int)(mark - c->address),
                      c->address, bare ? "[" : "", name, bare ? "]" : "", mark + 2);

    return n >= (int)(size - used) ? errset (ENAMETOOLONG) : 0;
}

int cluster_endpoint (const struct cluster *c, uint32_t rank, char *buf, size_t size)
{
    char host[CLUSTER_ENDPOINT_SIZE] = "", port[8];
    uint32_t nroots = rank == 0 ? c->nroots : 0;
    assert (rank < c->size);
    int rc = nroots == 0 ? append_host (c, c->hosts[rank].name, false, host, sizeof (host)) : 0;

    for (uint32_t i = 0; rc == 0 && i < nroots; i++)
        rc = append_host (c, c->roots[i], nroots > 1, host, sizeof (host));
    snprintf (port, sizeof (port), "%u", c->hosts[rank].port);
    return rc < 0 ? -1 : resolver_endpoint (buf, size, host, port);
}

int cluster_root_endpoint (const struct cluster *c, uint32_t candidate, char *buf, size_t size)
{
    char host[CLUSTER_ENDPOINT_SIZE] = "", port[8];

    assert (candidate < c->nroots);
    snprintf (port, sizeof (port), "%u", c->hosts[0].port);
    if (append_host (c, c->roots[candidate], false, host, sizeof (host)) < 0)
        return -1;
    return resolver_endpoint (buf, size, host, port);
}
