/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* address.c - where the host of an endpoint is */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/libzmqutil/address.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"

#define SCHEME "tcp://"
#define HOST_SIZE 256

/* One question.  It belongs to who asked and to the thread that waits for the answer: the last of them frees it. */
struct lookup {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    unsigned int users;
    bool over;
    int rc;                      /* of getaddrinfo () */
    char host[HOST_SIZE];        /* not changed */
    char found[INET_ADDRSTRLEN]; /* where rc is 0 */
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

static void lookup_unref (struct lookup *l)
{
    unsigned int users;

    pthread_mutex_lock (&l->lock);
    users = --l->users;
    pthread_mutex_unlock (&l->lock);
    if (users > 0)
        return;
    pthread_cond_destroy (&l->answered);
    pthread_mutex_destroy (&l->lock);
    free (l);
}

/* A question cannot be called back: its thread ends it alone. */
static void drop_lookup (struct address *a)
{
    if (a->lookup)
        lookup_unref (a->lookup);
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

static int find (const char *host, char found[INET_ADDRSTRLEN])
{
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
    int rc = getaddrinfo (host, NULL, &hints, &ai);

    if (rc != 0)
        return rc;
    rc = getnameinfo (ai->ai_addr, ai->ai_addrlen, found, INET_ADDRSTRLEN, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo (ai);
    return rc;
}

static void *thread_main (void *arg)
{
    struct lookup *l = arg;
    char found[INET_ADDRSTRLEN] = "";
    int rc = find (l->host, found);

    pthread_mutex_lock (&l->lock);
    memcpy (l->found, found, sizeof (found));
    l->rc = rc;
    l->over = true;
    pthread_cond_signal (&l->answered);
    pthread_mutex_unlock (&l->lock);
    lookup_unref (l);
    return NULL;
}

static struct lookup *lookup_create (const char *host)
{
    struct lookup *l = calloc (1, sizeof (*l));
    pthread_condattr_t attr;

    if (!l)
        return NULL;
    pthread_mutex_init (&l->lock, NULL);
    pthread_condattr_init (&attr);
    pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
    pthread_cond_init (&l->answered, &attr);
    pthread_condattr_destroy (&attr);
    l->users = 1;
    snprintf (l->host, sizeof (l->host), "%s", host);
    return l;
}

/* Not getaddrinfo_a (): its thread is one of libc alone, which ThreadSanitizer does not know, and modules of the name
 * service run in it with a stack of libc's choice. */
static void ask (struct address *a)
{
    struct lookup *l = lookup_create (a->host);

    a->asked_ms = clock_ms (CLOCK_MONOTONIC);
    if (!l)
        return;
    l->users++;
    a->lookup = l;
    if (worker_run_alone (thread_main, l) == 0)
        return;
    errprintf (&a->why, "%s: its address cannot be asked for now: %s", a->host, strerror (errno));
    l->users--;
    drop_lookup (a);
}

/* Take the answer, where it has come. */
static void take_answer (struct address *a)
{
    struct lookup *l = a->lookup;

    if (!l)
        return;
    pthread_mutex_lock (&l->lock);
    bool over = l->over;
    pthread_mutex_unlock (&l->lock);
    if (!over)
        return;
    if (l->rc == 0)
        memcpy (a->found, l->found, sizeof (a->found));
    else
        errprintf (&a->why, "%s: %s", a->host, gai_strerror (l->rc));
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

static void wait_one (struct lookup *l, const struct timespec *until)
{
    int rc = 0;

    pthread_mutex_lock (&l->lock);
    while (!l->over && rc == 0)
        rc = pthread_cond_timedwait (&l->answered, &l->lock, until);
    pthread_mutex_unlock (&l->lock);
}

void address_wait (struct address *const *list, size_t n, int timeout_ms)
{
    uint64_t end_ms = clock_ms (CLOCK_MONOTONIC) + timeout_ms;
    struct timespec until = { .tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000 };

    for (size_t i = 0; i < n; i++)
        if (list[i] && list[i]->lookup)
            wait_one (list[i]->lookup, &until);
}
