/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* place.c - where a broker listens: the folder of its sockets, and the endpoint for its children */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/place.h"
#include "common/libzmqutil/resolver.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

#define PATH_SIZE sizeof (((struct sockaddr_un *)0)->sun_path)

/* --- the folder ---------------------------------------------------------------------------------------------- */

static int make_private (struct place *p, const char *tmpdir, idt_error_t *errp)
{
    if (asprintf (&p->rundir, "%s/idtree-XXXXXX", tmpdir) < 0) {
        p->rundir = NULL;
        return errprintf (errp, "out of memory");
    }
    if (!mkdtemp (p->rundir))
        return errprintf (errp, "cannot make a folder in %s: %s", tmpdir, strerror (errno));
    p->ours = true;
    return 0;
}

static int use (struct place *p, const char *path, idt_error_t *errp)
{
    if (mkdir (path, 0700) < 0 && errno != EEXIST)
        return errprintf (errp, "rundir %s: %s", path, strerror (errno));
    if (private_dir_check ("rundir", path, PRIVATE_DIR_STRICT, errp) < 0)
        return -1;
    if (!(p->rundir = realpath (path, NULL)))
        return errprintf (errp, "rundir %s: %s", path, strerror (errno));
    return 0;
}

/* Add the permissions that users who may connect need, to enter the folder. */
static int permit (const struct place *p, mode_t mode, idt_error_t *errp)
{
    struct stat st;

    if (stat (p->rundir, &st) < 0
        || ((st.st_mode & mode) != mode && chmod (p->rundir, (st.st_mode & 07777) | mode) < 0))
        return errprintf (errp, "rundir %s: %s", p->rundir, strerror (errno));
    return 0;
}

int place_init (struct place *p, const char *rundir, const char *tmpdir, mode_t mode, idt_error_t *errp)
{
    *p = (struct place){ 0 };
    if ((rundir ? use (p, rundir, errp) : make_private (p, tmpdir, errp)) < 0)
        return -1;
    return permit (p, mode, errp);
}

static int remove_one (const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove (path);
    return 0;
}

void place_fini (struct place *p)
{
    if (p->ours)
        nftw (p->rundir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free (p->rundir);
}

/* --- the endpoint -------------------------------------------------------------------------------------------- */

static bool usable (const struct ifaddrs *ifa, int family)
{
    return ifa->ifa_addr && ifa->ifa_addr->sa_family == family && (ifa->ifa_flags & IFF_UP)
           && !(ifa->ifa_flags & IFF_LOOPBACK);
}

/* Find an address of 'family' at which other hosts can reach this host: an address of the first interface that is up
 * and is not the loopback.
 */
static bool find_address (const struct ifaddrs *list, int family, char address[RESOLVER_TEXT])
{
    for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next)
        if (usable (ifa, family) && resolver_text (ifa->ifa_addr, address))
            return true;
    return false;
}

/* The port of an endpoint that means all addresses of the host, in the usual notations and in the notation of libzmq.
 * NULL: the endpoint has a single address.
 */
static const char *wildcard_port (const char *endpoint)
{
    static const char *const all[] = { "tcp://0.0.0.0:", "tcp://*:", "tcp://[::]:", "tcp://[::ffff:0.0.0.0]:" };

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        if (strncmp (endpoint, all[i], strlen (all[i])) == 0)
            return endpoint + strlen (all[i]);
    return NULL;
}

/* Find an address of this host. 'any_family' is false for a socket that listens on all IPv4 addresses, because it may
 * not listen on IPv6 addresses.
 */
static void find_own_address (const struct boot *boot, bool any_family, char address[RESOLVER_TEXT])
{
    struct ifaddrs *list = NULL;

    if (boot->one_host || getifaddrs (&list) < 0
        || !(find_address (list, AF_INET, address) || (any_family && find_address (list, AF_INET6, address))))
        snprintf (address, RESOLVER_TEXT, "127.0.0.1");
    freeifaddrs (list);
}

void place_announce (const struct boot *boot, const char *bound, char *buf, size_t size)
{
    const char *port = wildcard_port (bound);
    char address[RESOLVER_TEXT];

    if (!port) {
        snprintf (buf, size, "%s", bound);
        return;
    }
    find_own_address (boot, !strstr (bound, "0.0.0.0"), address);
    resolver_endpoint (buf, size, address, port);
}

int place_choose (const struct place *p, const struct boot *boot, uint32_t rank, struct attrs *attrs, char *buf,
                  size_t size, idt_error_t *errp)
{
    const char *old = boot_old_endpoint (boot, rank);
    const char *given = attr_get (attrs, "tbon.endpoint", NULL);
    bool prefertcp;
    char address[RESOLVER_TEXT];
    int n;

    if (attr_switch (attrs, "tbon.prefertcp", "0", &prefertcp, errp) < 0)
        return -1;
    if (boot_listen_at (boot, rank, buf, size, errp) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    if (old && given && wildcard_port (given))
        n = snprintf (buf, size, "%.*s%s", (int)(strrchr (given, ':') - given), given, strrchr (old, ':'));
    else if (old || given)
        n = snprintf (buf, size, "%s", old ? old : given);
    else if (boot->one_host && !prefertcp)
        n = snprintf (buf, size, "ipc://%s/tbon-%u", p->rundir, rank);
    else {
        find_own_address (boot, true, address);
        n = resolver_endpoint (buf, size, address, "*") < 0 ? (int)size : 0;
    }
    if (n >= (int)size || (strncmp (buf, "ipc://", 6) == 0 && n >= (int)PATH_SIZE + 6))
        return errsetf (errp, ENAMETOOLONG,
                        "a socket's path may have at most %zu characters, choose a shorter rundir: %s", PATH_SIZE - 1,
                        buf);
    if (strncmp (buf, "ipc://", 6) != 0 && strncmp (buf, "tcp://", 6) != 0)
        return errsetf (errp, EINVAL, "tbon.endpoint %s: must begin with tcp:// or ipc://", buf);
    return 0;
}
