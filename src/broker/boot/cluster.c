/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* cluster.c - the hosts of a configured instance */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "broker/base/hostlist.h"
#include "broker/boot/cluster.h"
#include "common/libzmqutil/resolver.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"

#define PORT_DEFAULT "8060"

struct cluster_host {
    char *name;
    uint16_t port;
};

struct cluster {
    struct cluster_host *hosts; /* by rank */
    uint32_t size, room;
    uint32_t port;
    char *address;
    char *interface;
    char *certificate;
};

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

/* The start of the port in "n7:8060" or "[::1]:8060"; NULL: no port, as in "n7", "[::1]" and "::1". The name before it
 * is copied to 'host', without brackets; an IPv6 address is converted to its canonical form.
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

/* Two ranks may not have the same host and port: one of them could not listen. */
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

    if (!hosts) /* it was set when this broker started */
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

    if (!c) {
        errsetf (errp, ENOMEM, "out of memory");
        return NULL;
    }
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

uint32_t cluster_size (const struct cluster *c)
{
    return c->size;
}

const char *cluster_host (const struct cluster *c, uint32_t rank)
{
    return c->hosts[rank].name;
}

const char *cluster_certificate (const struct cluster *c)
{
    return c->certificate;
}

uint16_t cluster_port (const struct cluster *c, uint32_t rank)
{
    return c->hosts[rank].port;
}

const char *cluster_interface (const struct cluster *c)
{
    return c->interface;
}

int cluster_endpoint (const struct cluster *c, uint32_t rank, char *buf, size_t size)
{
    const struct cluster_host *h = &c->hosts[rank];
    const char *mark = strstr (c->address, "%h");
    char host[CLUSTER_ENDPOINT_SIZE], port[8];
    int n = snprintf (host, sizeof (host), "%.*s%s%s", (int)(mark - c->address), c->address, h->name, mark + 2);

    snprintf (port, sizeof (port), "%u", h->port);
    return n >= (int)sizeof (host) ? errset (ENAMETOOLONG) : resolver_endpoint (buf, size, host, port);
}
