/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* resolver.c - resolve the host of an endpoint to its addresses */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/libzmqutil/resolver.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"

#define SCHEME "tcp://"
#define HOST_SIZE 256
#define NUMBERS_MAX 16 /* maximum number of addresses that are tried */

struct numbers {
    size_t n;
    char text[NUMBERS_MAX][RESOLVER_TEXT];
};

/* One lookup and its result. The worker's thread owns it until the lookup has ended. If the resolver leaves the lookup
 * before that, the thread frees it.
 */
struct lookup {
    struct worker *worker;
    char host[HOST_SIZE];
    struct numbers found;
};

struct resolver {
    char host[HOST_SIZE];          /* the name that 'found' belongs to */
    struct numbers found;          /* empty: not known yet */
    size_t at;                     /* index in 'found' of the address that is returned */
    size_t tried;                  /* number of addresses that failed in this round */
    char endpoint[HOST_SIZE + 32]; /* the endpoint that was returned last */
    idt_error_t why;               /* why the last lookup failed */
    struct lookup *lookup;         /* NULL: no lookup is running */
    uint64_t asked_ms;
};

struct resolver *resolver_create (void)
{
    return calloc (1, sizeof (struct resolver));
}

/* Drop a lookup. It cannot be cancelled, so a lookup that has not ended is left to its thread, which frees it. */
static void drop_lookup (struct resolver *a)
{
    if (a->lookup && worker_leave (a->lookup->worker, 0, free))
        free (a->lookup);
    a->lookup = NULL;
}

void resolver_destroy (struct resolver *a)
{
    if (a) {
        drop_lookup (a);
        free (a);
    }
}

/* --- asking -------------------------------------------------------------------------------------- */

/* Whether the address behind the end of the list is not in the list: names may have an address in common. */
static bool is_new (const struct numbers *found)
{
    for (size_t i = 0; i < found->n; i++)
        if (strcmp (found->text[i], found->text[found->n]) == 0)
            return false;
    return true;
}

/* Add the addresses of a name, which are not yet in the list. Returns 0, or an error of getaddrinfo (). */
static int add (struct numbers *found, const char *name)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
    int rc = getaddrinfo (name, NULL, &hints, &list);

    if (rc != 0)
        return rc;
    for (const struct addrinfo *ai = list; ai && found->n < NUMBERS_MAX; ai = ai->ai_next)
        found->n += resolver_text (ai->ai_addr, found->text[found->n]) && is_new (found);
    freeaddrinfo (list);
    return 0;
}

/* Find the addresses of all names. A name that has none is left out, unless it is the only one. This function runs in a
 * thread of this object. getaddrinfo_a () is not used, because ThreadSanitizer does not know libc's thread, and modules
 * of the name service would run in that thread with libc's stack size.
 */
static int find (void *arg, idt_error_t *errp)
{
    struct lookup *l = arg;
    char names[HOST_SIZE], *save = NULL, *wrong = NULL;
    int rc = 0;

    memcpy (names, l->host, sizeof (names));
    for (char *name = strtok_r (names, ",", &save); name; name = strtok_r (NULL, ",", &save)) {
        size_t len = strlen (name);
        bool brackets = name[0] == '[' && name[len - 1] == ']';

        name[len - brackets] = '\0';
        int error = add (&l->found, name + brackets);
        if (error != 0 && rc == 0) {
            rc = error;
            wrong = name + brackets;
        }
    }
    if (l->found.n > 0)
        return 0;
    if (rc != 0)
        return errsetf (errp, ENOENT, "%s: %s", wrong, gai_strerror (rc));
    return errsetf (errp, ENOENT, "%s: it has no IPv4 or IPv6 address", l->host);
}

static void ask (struct resolver *a)
{
    struct lookup *l = calloc (1, sizeof (*l));

    a->asked_ms = clock_ms (CLOCK_MONOTONIC);
    if (!l)
        return;
    snprintf (l->host, sizeof (l->host), "%s", a->host);
    if (!(l->worker = worker_create (find, l))) {
        errprintf (&a->why, "%s: its address cannot be resolved now: %s", a->host, strerror (errno));
        free (l);
        return;
    }
    worker_begin (l->worker);
    a->lookup = l;
}

/* Take the addresses that a lookup found. If the current address is among them, it stays the current one. */
static void take_numbers (struct resolver *a, const struct numbers *found)
{
    size_t at = 0;

    while (at < found->n && a->found.n > 0 && strcmp (found->text[at], a->found.text[a->at]) != 0)
        at++;
    if (a->found.n == 0 || at == found->n)
        a->at = a->tried = 0;
    else
        a->at = at;
    a->found = *found;
}

/* Take the result of the lookup if it has ended. */
static void take_answer (struct resolver *a)
{
    int rc = a->lookup ? worker_result (a->lookup->worker, &a->why) : 0;

    if (rc == 0)
        return;
    if (rc > 0)
        take_numbers (a, &a->lookup->found);
    drop_lookup (a);
}

/* Switch to another name: forget the addresses of the previous one. */
static void set_host (struct resolver *a, const char *host)
{
    if (strcmp (a->host, host) == 0)
        return;
    drop_lookup (a);
    snprintf (a->host, sizeof (a->host), "%s", host);
    a->found.n = a->at = a->tried = 0;
    a->asked_ms = 0;
}

/* Copy the host of an endpoint to 'host', and set '*port' to the colon behind it. Returns false if the endpoint has no
 * host.
 */
static bool split (const char *endpoint, char host[HOST_SIZE], const char **port)
{
    const char *from = endpoint + strlen (SCHEME);

    if (strncmp (endpoint, SCHEME, strlen (SCHEME)) != 0 || !(*port = strrchr (from, ':')) || *port - from >= HOST_SIZE)
        return false;
    snprintf (host, HOST_SIZE, "%.*s", (int)(*port - from), from);
    return true;
}

static bool has_name (const char *endpoint, char host[HOST_SIZE], const char **port)
{
    struct in6_addr number;

    if (!split (endpoint, host, port))
        return false;
    return strchr (host, ',') || (host[0] != '[' && !resolver_number (endpoint, &number));
}

const char *resolver_resolve (struct resolver *a, const char *endpoint, idt_error_t *errp)
{
    char host[HOST_SIZE];
    const char *port;

    if (!has_name (endpoint, host, &port))
        return endpoint;
    set_host (a, host);
    take_answer (a);
    if (!a->lookup && (a->asked_ms == 0 || clock_ms (CLOCK_MONOTONIC) - a->asked_ms > RESOLVER_FRESH_MS))
        ask (a);
    if (a->found.n == 0) {
        errsetf (errp, EAGAIN, "%s", a->why.text[0] ? a->why.text : "its address is being asked for");
        return NULL;
    }
    resolver_endpoint (a->endpoint, sizeof (a->endpoint), a->found.text[a->at], port + 1);
    return a->endpoint;
}

bool resolver_next (struct resolver *a)
{
    if (a->found.n > 0)
        a->at = (a->at + 1) % a->found.n;
    if (++a->tried < a->found.n)
        return true;
    a->tried = 0;
    return false;
}

size_t resolver_count (const struct resolver *a)
{
    return a->found.n;
}

static void wait_one (const struct lookup *l, uint64_t end_ms)
{
    struct pollfd over = { .fd = worker_fd (l->worker), .events = POLLIN };
    uint64_t now_ms;

    while ((now_ms = clock_ms (CLOCK_MONOTONIC)) < end_ms && poll (&over, 1, (int)(end_ms - now_ms)) != 1)
        ;
}

void resolver_wait (struct resolver *const *list, size_t n, int timeout_ms)
{
    uint64_t end_ms = clock_ms (CLOCK_MONOTONIC) + timeout_ms;

    for (size_t i = 0; i < n; i++)
        if (list[i] && list[i]->lookup)
            wait_one (list[i]->lookup, end_ms);
}

/* --- numbers ------------------------------------------------------------------------------------- */

static void map (const struct in_addr *v4, struct in6_addr *number)
{
    *number = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
    memcpy (&number->s6_addr[12], v4, sizeof (*v4));
}

bool resolver_of (const struct sockaddr *sa, struct in6_addr *number)
{
    struct sockaddr_in6 v6;
    struct sockaddr_in v4;

    if (sa && sa->sa_family == AF_INET6) {
        memcpy (&v6, sa, sizeof (v6));
        *number = v6.sin6_addr;
        return true;
    }
    if (!sa || sa->sa_family != AF_INET)
        return false;
    memcpy (&v4, sa, sizeof (v4));
    map (&v4.sin_addr, number);
    return true;
}

bool resolver_text (const struct sockaddr *sa, char text[RESOLVER_TEXT])
{
    struct in6_addr number;

    if (!resolver_of (sa, &number) || IN6_IS_ADDR_LINKLOCAL (&number))
        return false;
    if (sa->sa_family == AF_INET)
        return inet_ntop (AF_INET, &number.s6_addr[12], text, RESOLVER_TEXT) != NULL;
    return inet_ntop (AF_INET6, &number, text, RESOLVER_TEXT) != NULL;
}

bool resolver_number (const char *endpoint, struct in6_addr *number)
{
    char host[HOST_SIZE];
    struct in_addr v4;
    const char *port;
    size_t len;

    if (!split (endpoint, host, &port))
        return false;
    len = strlen (host);
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        return inet_pton (AF_INET6, host + 1, number) == 1;
    }
    if (inet_pton (AF_INET, host, &v4) != 1)
        return false;
    map (&v4, number);
    return true;
}

int resolver_endpoint (char *buf, size_t size, const char *host, const char *port)
{
    bool bare = strchr (host, ':') && host[0] != '[' && !strchr (host, ',');
    int n = snprintf (buf, size, SCHEME "%s%s%s:%s", bare ? "[" : "", host, bare ? "]" : "", port);

    return n >= 0 && (size_t)n < size ? 0 : errset (ENAMETOOLONG);
}
