/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* address.c - where the host of an endpoint is */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/libzmqutil/address.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"

#define SCHEME "tcp://"
#define HOST_SIZE 256

/* One question, and its answer: a worker's, until it is over or left. */
struct lookup {
    struct worker *worker;
    char host[HOST_SIZE];
    char found[INET_ADDRSTRLEN];
};

struct address {
    char host[HOST_SIZE];          /* that 'found' is about */
    char found[INET_ADDRSTRLEN];   /* "": not known yet */
    char endpoint[HOST_SIZE + 32]; /* that was returned last */
    idt_error_t why;               /* the last answer was none */
    struct lookup *lookup;         /* NULL: nothing is asked */
    uint64_t asked_ms;
};

struct address *address_create (void)
{
    return calloc (1, sizeof (struct address));
}

/* A question cannot be called back: where it is not over its thread ends it alone. */
static void drop_lookup (struct address *a)
{
    if (a->lookup && worker_leave (a->lookup->worker, 0, free))
        free (a->lookup);
    a->lookup = NULL;
}

void address_destroy (struct address *a)
{
    if (a) {
        drop_lookup (a);
        free (a);
    }
}

/* --- asking -------------------------------------------------------------------------------------- */

/* In a thread of ours, not by getaddrinfo_a (): its thread is one of libc alone, which ThreadSanitizer does not
 * know, and modules of the name service run in it with a stack of libc's choice.
 */
static int find (void *arg, idt_error_t *errp)
{
    struct lookup *l = arg;
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
    int rc = getaddrinfo (l->host, NULL, &hints, &ai);

    if (rc == 0) {
        rc = getnameinfo (ai->ai_addr, ai->ai_addrlen, l->found, sizeof (l->found), NULL, 0, NI_NUMERICHOST);
        freeaddrinfo (ai);
    }
    return rc == 0 ? 0 : errsetf (errp, ENOENT, "%s: %s", l->host, gai_strerror (rc));
}

static void ask (struct address *a)
{
    struct lookup *l = calloc (1, sizeof (*l));

    a->asked_ms = clock_ms (CLOCK_MONOTONIC);
    if (!l)
        return;
    snprintf (l->host, sizeof (l->host), "%s", a->host);
    if (!(l->worker = worker_create (find, l))) {
        errprintf (&a->why, "%s: its address cannot be asked for now: %s", a->host, strerror (errno));
        free (l);
        return;
    }
    worker_begin (l->worker);
    a->lookup = l;
}

/* Take the answer, where it has come. */
static void take_answer (struct address *a)
{
    int rc = a->lookup ? worker_result (a->lookup->worker, &a->why) : 0;

    if (rc == 0)
        return;
    if (rc > 0)
        memcpy (a->found, a->lookup->found, sizeof (a->found));
    drop_lookup (a);
}

/* The name of an endpoint is another one than before: what is known is about that one. */
static void set_host (struct address *a, const char *host)
{
    if (strcmp (a->host, host) == 0)
        return;
    drop_lookup (a);
    snprintf (a->host, sizeof (a->host), "%s", host);
    a->found[0] = '\0';
    a->asked_ms = 0;
}

/* Whether an endpoint has a name, which is copied to 'host', and behind it a colon at '*port'. */
static bool has_name (const char *endpoint, char host[HOST_SIZE], const char **port)
{
    const char *from = endpoint + strlen (SCHEME);
    struct in_addr number;

    if (strncmp (endpoint, SCHEME, strlen (SCHEME)) != 0 || !(*port = strrchr (from, ':')) || *port - from >= HOST_SIZE)
        return false;
    snprintf (host, HOST_SIZE, "%.*s", (int)(*port - from), from);
    return host[0] != '[' && inet_pton (AF_INET, host, &number) != 1;
}

const char *address_resolve (struct address *a, const char *endpoint, idt_error_t *errp)
{
    char host[HOST_SIZE];
    const char *port;

    if (!has_name (endpoint, host, &port))
        return endpoint;
    set_host (a, host);
    take_answer (a);
    if (!a->lookup && (a->asked_ms == 0 || clock_ms (CLOCK_MONOTONIC) - a->asked_ms > ADDRESS_FRESH_MS))
        ask (a);
    if (!a->found[0]) {
        errsetf (errp, EAGAIN, "%s", a->why.text[0] ? a->why.text : "its address is being asked for");
        return NULL;
    }
    snprintf (a->endpoint, sizeof (a->endpoint), SCHEME "%s%s", a->found, port);
    return a->endpoint;
}

static void wait_one (const struct lookup *l, uint64_t end_ms)
{
    struct pollfd over = { .fd = worker_fd (l->worker), .events = POLLIN };
    uint64_t now_ms;

    while ((now_ms = clock_ms (CLOCK_MONOTONIC)) < end_ms && poll (&over, 1, (int)(end_ms - now_ms)) != 1)
        ;
}

void address_wait (struct address *const *list, size_t n, int timeout_ms)
{
    uint64_t end_ms = clock_ms (CLOCK_MONOTONIC) + timeout_ms;

    for (size_t i = 0; i < n; i++)
        if (list[i] && list[i]->lookup)
            wait_one (list[i]->lookup, end_ms);
}
