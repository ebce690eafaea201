/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* pg_proxy.c - for tests: a thread between libpq and a PostgreSQL server, which loses statements and answers
 *
 * The first packet of a client begins the session. Each later packet is a statement, because libpq sends the messages
 * of a statement together. The server sends the first byte of a short answer after the statement is done.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test/pg_proxy.h"

#define SOCKET_NAME ".s.PGSQL.5432"
#define CONNS_MAX 16
#define PACKET_MAX 65536
#define FAULTS_MAX 4

struct conn {
    int client; /* -1: not in use, or a statement is held */
    int server;
    bool begun; /* the first packet was forwarded */
    bool lose;  /* the next answer is lost */
    char *held; /* a statement that arrives late */
    size_t held_size;
};

struct fault {
    enum pg_fault fault;
    const char *text; /* a part of the statement; "": any */
};

struct pg_proxy {
    char dir[64];
    struct sockaddr_un server;
    int listener;
    int wake;
    pthread_t thread;
    pthread_mutex_t lock; /* of all members below */
    struct conn conns[CONNS_MAX];
    struct fault faults[FAULTS_MAX]; /* in the order in which they happen */
    int nfaults;
    bool over;
};

static void fatal (const char *what)
{
    perror (what);
    exit (99);
}

static void conn_end (struct conn *c)
{
    if (c->client >= 0)
        close (c->client);
    if (c->server >= 0)
        close (c->server);
    free (c->held);
    *c = (struct conn){ .client = -1, .server = -1 };
}

static bool send_all (int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send (fd, data, size, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static void accept_conn (struct pg_proxy *p)
{
    int client = accept (p->listener, NULL, NULL);

    for (int i = 0; client >= 0 && i < CONNS_MAX; i++) {
        struct conn *c = &p->conns[i];

        if (c->client >= 0 || c->held)
            continue;
        c->client = client;
        c->server = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect (c->server, (struct sockaddr *)&p->server, sizeof (p->server)) < 0)
            conn_end (c);
        return;
    }
    if (client >= 0)
        close (client);
}

static void hold (struct conn *c, const char *data, size_t size)
{
    close (c->client);
    c->client = -1;
    if (!(c->held = malloc (size)))
        fatal ("malloc");
    memcpy (c->held, data, size);
    c->held_size = size;
}

/* The fault of what a client sent. The first packet and the end of a session are no statements. */
static enum pg_fault take_fault (struct pg_proxy *p, struct conn *c, const char *data, size_t size)
{
    struct fault first = p->faults[0];
    bool is_statement = c->begun && data[0] != 'X';

    c->begun = true;
    if (!is_statement || p->nfaults == 0 || !memmem (data, size, first.text, strlen (first.text)))
        return PG_FAULT_NONE;
    memmove (p->faults, p->faults + 1, sizeof (p->faults[0]) * (size_t)--p->nfaults);
    return first.fault;
}

static void from_client (struct pg_proxy *p, struct conn *c)
{
    char data[PACKET_MAX];
    ssize_t n = recv (c->client, data, sizeof (data), 0);
    enum pg_fault fault;

    if (n <= 0 || (fault = take_fault (p, c, data, (size_t)n)) == PG_FAULT_QUERY)
        conn_end (c);
    else if (fault == PG_FAULT_LATE)
        hold (c, data, (size_t)n);
    else {
        c->lose = fault == PG_FAULT_ANSWER;
        if (!send_all (c->server, data, (size_t)n))
            conn_end (c);
    }
}

static void from_server (struct conn *c)
{
    char data[PACKET_MAX];
    ssize_t n = recv (c->server, data, sizeof (data), 0);

    if (n <= 0 || c->lose || !send_all (c->client, data, (size_t)n))
        conn_end (c);
}

static void watch (struct pg_proxy *p, struct pollfd *fds)
{
    fds[0] = (struct pollfd){ .fd = p->wake, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
    for (int i = 0; i < CONNS_MAX; i++) {
        const struct conn *c = &p->conns[i];

        fds[2 + 2 * i] = (struct pollfd){ .fd = c->client, .events = POLLIN };
        fds[3 + 2 * i] = (struct pollfd){ .fd = c->client >= 0 ? c->server : -1, .events = POLLIN };
    }
}

static void handle (struct pg_proxy *p, const struct pollfd *fds)
{
    for (int i = 0; i < CONNS_MAX; i++) {
        if (fds[2 + 2 * i].revents && p->conns[i].client >= 0)
            from_client (p, &p->conns[i]);
        else if (fds[3 + 2 * i].revents && p->conns[i].client >= 0)
            from_server (&p->conns[i]);
    }
    if (fds[1].revents)
        accept_conn (p);
}

static void *proxy_main (void *arg)
{
    struct pg_proxy *p = arg;
    struct pollfd fds[2 + 2 * CONNS_MAX];

    pthread_mutex_lock (&p->lock);
    while (!p->over) {
        watch (p, fds);
        pthread_mutex_unlock (&p->lock);
        poll (fds, 2 + 2 * CONNS_MAX, -1);
        pthread_mutex_lock (&p->lock);
        handle (p, fds);
    }
    pthread_mutex_unlock (&p->lock);
    return NULL;
}

/* --- what tests call ------------------------------------------------------------------------------------------- */

const char *pg_proxy_host (const struct pg_proxy *p)
{
    return p->dir;
}

void pg_proxy_fault (struct pg_proxy *p, enum pg_fault fault)
{
    pthread_mutex_lock (&p->lock);
    p->faults[0] = (struct fault){ fault, "" };
    p->nfaults = fault != PG_FAULT_NONE;
    pthread_mutex_unlock (&p->lock);
}

void pg_proxy_fault_then (struct pg_proxy *p, enum pg_fault fault, const char *text)
{
    pthread_mutex_lock (&p->lock);
    assert (p->nfaults < FAULTS_MAX);
    p->faults[p->nfaults++] = (struct fault){ fault, text };
    pthread_mutex_unlock (&p->lock);
}

bool pg_proxy_is_armed (struct pg_proxy *p)
{
    pthread_mutex_lock (&p->lock);
    bool armed = p->nfaults > 0;
    pthread_mutex_unlock (&p->lock);
    return armed;
}

int pg_proxy_deliver (struct pg_proxy *p)
{
    char answer[PACKET_MAX];
    int count = 0;

    pthread_mutex_lock (&p->lock);
    for (int i = 0; i < CONNS_MAX; i++) {
        struct conn *c = &p->conns[i];

        if (!c->held)
            continue;
        if (!send_all (c->server, c->held, c->held_size) || recv (c->server, answer, sizeof (answer), 0) <= 0)
            fprintf (stderr, "pg_proxy: the server ended the connection of a late statement\n");
        conn_end (c);
        count++;
    }
    pthread_mutex_unlock (&p->lock);
    return count;
}

static void listen_at (struct pg_proxy *p)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    strcpy (p->dir, "/tmp/idtree-pgproxy-XXXXXX");
    if (!mkdtemp (p->dir))
        fatal ("mkdtemp");
    snprintf (a.sun_path, sizeof (a.sun_path), "%s/" SOCKET_NAME, p->dir);
    p->listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind (p->listener, (struct sockaddr *)&a, sizeof (a)) < 0 || listen (p->listener, CONNS_MAX) < 0)
        fatal (a.sun_path);
}

struct pg_proxy *pg_proxy_start (const char *server)
{
    struct pg_proxy *p = calloc (1, sizeof (*p));

    if (!p)
        fatal ("calloc");
    p->server.sun_family = AF_UNIX;
    if (snprintf (p->server.sun_path, sizeof (p->server.sun_path), "%s/" SOCKET_NAME, server)
        >= (int)sizeof (p->server.sun_path))
        fatal (server);
    for (int i = 0; i < CONNS_MAX; i++)
        p->conns[i] = (struct conn){ .client = -1, .server = -1 };
    pthread_mutex_init (&p->lock, NULL);
    listen_at (p);
    if ((p->wake = eventfd (0, EFD_CLOEXEC)) < 0 || pthread_create (&p->thread, NULL, proxy_main, p) != 0)
        fatal ("a thread");
    return p;
}

void pg_proxy_stop (struct pg_proxy *p)
{
    char path[128];

    pthread_mutex_lock (&p->lock);
    p->over = true;
    pthread_mutex_unlock (&p->lock);
    eventfd_write (p->wake, 1);
    pthread_join (p->thread, NULL);
    for (int i = 0; i < CONNS_MAX; i++)
        conn_end (&p->conns[i]);
    snprintf (path, sizeof (path), "%s/" SOCKET_NAME, p->dir);
    unlink (path);
    rmdir (p->dir);
    close (p->listener);
    close (p->wake);
    pthread_mutex_destroy (&p->lock);
    free (p);
}
