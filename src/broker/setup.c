/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* setup.c - the attributes that describe a broker, and the endpoint at which it listens */
#include "config.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "broker/boot/cluster.h"
#include "broker/private.h"
#include "common/libzmqutil/resolver.h"
#include "libutil/errprintf.h"

static int define_facts (struct broker *b, idt_error_t *errp)
{
    char starttime[32], local_uri[PATH_MAX + 32];
    struct timespec ts;
    const struct {
        const char *name;
        const char *value;
    } facts[] = {
        { "hostname", b->boot->host },
        { "hostlist", "" }, /* made on request (services.c) */
        { "instance-level", "0" },
        { "local-uri", local_uri },
        { "broker.uuid", b->uuid },
        { "broker.starttime", starttime },
        { "broker.boot-method", boot_method_name (b->boot) },
    };

    clock_gettime (CLOCK_REALTIME, &ts);
    snprintf (starttime, sizeof (starttime), "%jd.%03ld", (intmax_t)ts.tv_sec, ts.tv_nsec / 1000000);
    usock_uri (b->local, local_uri, sizeof (local_uri));
    for (size_t i = 0; i < sizeof (facts) / sizeof (facts[0]); i++)
        if (attr_define (b->attrs, facts[i].name, facts[i].value, ATTR_IMMUTABLE, errp) < 0)
            return -1;
    return 0;
}

static int define_numbers (struct broker *b, idt_error_t *errp)
{
    const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {
        { "rank", b->rank },
        { "size", b->size },
        { "security.owner", geteuid () },
        { "broker.pid", getpid () },
        { "tbon.level", topo_level (b->topo, b->rank) },
        { "tbon.maxlevel", topo_maxlevel (b->topo) },
    };
    char text[16];

    for (size_t i = 0; i < sizeof (numbers) / sizeof (numbers[0]); i++) {
        snprintf (text, sizeof (text), "%u", numbers[i].value);
        if (attr_define (b->attrs, numbers[i].name, text, ATTR_IMMUTABLE, errp) < 0)
            return -1;
    }
    return 0;
}

static int define_endpoints (struct broker *b, idt_error_t *errp)
{
    const struct bizcard *ancestors = boot_ancestors (b->boot, b->rank, errp);
    const char *own = broker_announced_endpoint (b);
    int flags = boot_knows_all (b->boot) ? 0 : ATTR_IMMUTABLE; /* the parent may move in a configured instance */

    if (b->rank > 0 && attr_define (b->attrs, "tbon.parent-endpoint", ancestors->endpoint, flags, errp) < 0)
        return -1;
    return own ? attr_update (b->attrs, "tbon.endpoint", own, errp) : 0;
}

int broker_join_timeout (struct attrs *attrs, bool patient, double *seconds, idt_error_t *errp)
{
    return attr_seconds (attrs, "broker.join-timeout", patient ? "0" : "60s", patient ? 0. : 0.1, 86400., seconds,
                         errp);
}

int broker_define_attributes (struct broker *b, idt_error_t *errp)
{
    if (define_facts (b, errp) < 0 || define_numbers (b, errp) < 0 || define_endpoints (b, errp) < 0
        || attr_define (b->attrs, "version", PACKAGE_VERSION, 0, errp) < 0
        || attr_define (b->attrs, "broker.boot", "auto", 0, errp) < 0
        || attr_define (b->attrs, "broker.modules", BROKER_MODULES, 0, errp) < 0
        || attr_define (b->attrs, "module.path", b->conf.module_path, 0, errp) < 0
        || attr_seconds (b->attrs, "broker.shutdown-timeout", "10s", 0., 3600., &b->shutdown_timeout, errp) < 0
        || broker_join_timeout (b->attrs, boot_knows_all (b->boot), &b->join_timeout, errp) < 0
        || quorum_init (&b->quorum, b->attrs, b->size, errp) < 0 || cluster_define (b->attrs, errp) < 0)
        return -1;
    return 0;
}

/* --- where to listen --------------------------------------------------------------------------------- */

static bool usable (const struct ifaddrs *ifa, int family)
{
    return ifa->ifa_addr && ifa->ifa_addr->sa_family == family && (ifa->ifa_flags & IFF_UP)
           && !(ifa->ifa_flags & IFF_LOOPBACK);
}

/* Find an address of that family at which other hosts can reach this host: the address of the first interface that is
 * up.
 */
static bool find_address (const struct ifaddrs *list, int family, char address[RESOLVER_TEXT])
{
    for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next)
        if (usable (ifa, family) && resolver_text (ifa->ifa_addr, address))
            return true;
    return false;
}

/* The port of an endpoint for "all addresses", in the usual notations and in the one of libzmq; NULL: a single address.
 */
static const char *wildcard_port (const char *endpoint)
{
    static const char *const all[] = { "tcp://0.0.0.0:", "tcp://*:", "tcp://[::]:", "tcp://[::ffff:0.0.0.0]:" };

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        if (strncmp (endpoint, all[i], strlen (all[i])) == 0)
            return endpoint + strlen (all[i]);
    return NULL;
}

/* A socket that listens on all IPv4 addresses may not listen on IPv6 addresses. */
static void find_own_address (const struct broker *b, bool any_family, char address[RESOLVER_TEXT])
{
    struct ifaddrs *list = NULL;

    if (b->boot->one_host || getifaddrs (&list) < 0
        || !(find_address (list, AF_INET, address) || (any_family && find_address (list, AF_INET6, address))))
        snprintf (address, RESOLVER_TEXT, "127.0.0.1");
    freeifaddrs (list);
}

const char *broker_announced_endpoint (struct broker *b)
{
    const char *bound = overlay_endpoint (b->overlay), *port = bound ? wildcard_port (bound) : NULL;
    char address[RESOLVER_TEXT];

    if (!port)
        return bound;
    find_own_address (b, !strstr (bound, "0.0.0.0"), address);
    resolver_endpoint (b->announced, sizeof (b->announced), address, port);
    return b->announced;
}

int broker_choose_endpoint (struct broker *b, char *buf, size_t size, idt_error_t *errp)
{
    const char *old = boot_old_endpoint (b->boot, b->rank);
    const char *given = attr_get (b->attrs, "tbon.endpoint", NULL);
    bool prefertcp;
    char address[RESOLVER_TEXT];
    int n;

    if (attr_switch (b->attrs, "tbon.prefertcp", "0", &prefertcp, errp) < 0)
        return -1;
    if (boot_listen_at (b->boot, b->rank, buf, size, errp) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    if (old && given && wildcard_port (given))
        n = snprintf (buf, size, "%.*s%s", (int)(strrchr (given, ':') - given), given, strrchr (old, ':'));
    else if (old || given)
        n = snprintf (buf, size, "%s", old ? old : given);
    else if (b->boot->one_host && !prefertcp)
        n = snprintf (buf, size, "ipc://%s/tbon-%u", b->rundir.path, b->rank);
    else {
        find_own_address (b, true, address);
        n = resolver_endpoint (buf, size, address, "*") < 0 ? (int)size : 0;
    }
    if (n >= (int)size
        || (strncmp (buf, "ipc://", 6) == 0 && n >= (int)sizeof (((struct sockaddr_un *)0)->sun_path) + 6))
        return errsetf (errp, ENAMETOOLONG,
                        "a socket's path may have at most %zu characters, choose a shorter rundir: %s",
                        sizeof (((struct sockaddr_un *)0)->sun_path) - 1, buf);
    if (strncmp (buf, "ipc://", 6) != 0 && strncmp (buf, "tcp://", 6) != 0)
        return errsetf (errp, EINVAL, "tbon.endpoint %s: must begin with tcp:// or ipc://", buf);
    return 0;
}
