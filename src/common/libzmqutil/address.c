/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* address.c - where the host of an endpoint is */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/libzmqutil/address.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"

#define SCHEME "tcp://"
#define HOST_SIZE 256

/* One question, as long as libc may write to it. */
struct lookup {
    struct gaicb cb;
    struct addrinfo hints;
    char host[HOST_SIZE];
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

/* What cannot be called back is left to the thread that still works on it. */
static void drop_lookup (struct address *a)
{
    struct lookup *l = a->lookup;

    a->lookup = NULL;
    if (!l || gai_cancel (&l->cb) == EAI_NOTCANCELED)
        return;
    if (l->cb.ar_result)
        freeaddrinfo (l->cb.ar_result);
    free (l);
}

void address_destroy (struct address *a)
{
    if (a) {
        drop_lookup (a);
        free (a);
    }
}

/* --- asking -------------------------------------------------------------------------------------- */

static void ask (struct address *a)
{
    struct lookup *l = calloc (1, sizeof (*l));
    struct gaicb *list[] = { l ? &l->cb : NULL };

    a->asked_ms = clock_ms (CLOCK_MONOTONIC);
    if (!l)
        return;
    snprintf (l->host, sizeof (l->host), "%s", a->host);
    l->hints = (struct addrinfo){ .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
    l->cb = (struct gaicb){ .ar_name = l->host, .ar_request = &l->hints };
    if (getaddrinfo_a (GAI_NOWAIT, list, 1, NULL) == 0)
        a->lookup = l;
    else {
        errprintf (&a->why, "%s: its address cannot be asked for now", a->host);
        free (l);
    }
}

/* Take the answer, where it has come. */
static void take_answer (struct address *a)
{
    int rc = a->lookup ? gai_error (&a->lookup->cb) : EAI_INPROGRESS;

    if (rc == EAI_INPROGRESS)
        return;
    if (rc == 0)
        rc = getnameinfo (a->lookup->cb.ar_result->ai_addr, a->lookup->cb.ar_result->ai_addrlen, a->found,
                          sizeof (a->found), NULL, 0, NI_NUMERICHOST);
    if (rc != 0)
        errprintf (&a->why, "%s: %s", a->host, gai_strerror (rc));
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

static void wait_one (struct lookup *l, uint64_t end_ms)
{
    const struct gaicb *list[] = { &l->cb };
    uint64_t now_ms;

    while (gai_error (&l->cb) == EAI_INPROGRESS && (now_ms = clock_ms (CLOCK_MONOTONIC)) < end_ms) {
        uint64_t left_ms = end_ms - now_ms;
        struct timespec left = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };

        gai_suspend (list, 1, &left);
    }
}

void address_wait (struct address *const *list, size_t n, int timeout_ms)
{
    uint64_t end_ms = clock_ms (CLOCK_MONOTONIC) + timeout_ms;

    for (size_t i = 0; i < n; i++)
        if (list[i] && list[i]->lookup)
            wait_one (list[i]->lookup, end_ms);
}
