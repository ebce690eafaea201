/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* peers.c - looks, in a thread, whether another candidate of rank 0 accepts connections */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/root/peers.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/worker.h"

#define SCHEME "tcp://"
#define LOOK_MS 1000 /* for all peers */
#define SOCKETS_MAX 16

/* A look. The worker's thread owns it while it runs. */
struct peers_look {
    struct peer_list list;
    bool one_serves;
};

struct peers {
    struct peers_look *look;
    struct worker *worker;
};

/* Begin to connect to each address of a peer. */
static int begin_peer (const char *endpoint, struct pollfd *sockets, int n)
{
    char host[PEERS_ENDPOINT_SIZE], *port;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;

    snprintf (host, sizeof (host), "%s", endpoint + strlen (SCHEME));
    if (!(port = strrchr (host, ':')))
        return n;
    *port++ = '\0';
    if (host[0] == '[') {
        host[strcspn (host, "]")] = '\0';
        memmove (host, host + 1, strlen (host));
    }
    if (getaddrinfo (host, port, &hints, &list) != 0)
        return n;
    for (const struct addrinfo *ai = list; ai && n < SOCKETS_MAX; ai = ai->ai_next) {
        int fd = socket (ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd >= 0 && (connect (fd, ai->ai_addr, ai->ai_addrlen) == 0 || errno == EINPROGRESS))
            sockets[n++] = (struct pollfd){ .fd = fd, .events = POLLOUT };
        else if (fd >= 0)
            close (fd);
    }
    freeaddrinfo (list);
    return n;
}

static bool is_connected (int fd)
{
    socklen_t size = sizeof (int);
    int error = 0;

    return getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

/* Wait until one socket is connected, all have failed, or the time is over. */
static bool await_one (struct pollfd *sockets, int n)
{
    uint64_t end_ms = clock_ms (CLOCK_MONOTONIC) + LOOK_MS, now_ms;
    int left = n;

    while (left > 0 && (now_ms = clock_ms (CLOCK_MONOTONIC)) < end_ms) {
        if (poll (sockets, (nfds_t)n, (int)(end_ms - now_ms)) <= 0)
            continue;
        for (int i = 0; i < n; i++) {
            if (sockets[i].fd < 0 || sockets[i].revents == 0)
                continue;
            if (is_connected (sockets[i].fd))
                return true;
            close (sockets[i].fd);
            sockets[i].fd = -1;
            left--;
        }
    }
    return false;
}

static int run_look (void *arg, idt_error_t *errp)
{
    struct pollfd sockets[SOCKETS_MAX];
    struct peers_look *l = arg;
    int n = 0;

    for (uint32_t i = 0; i < l->list.count; i++)
        n = begin_peer (l->list.endpoint[i], sockets, n);
    l->one_serves = await_one (sockets, n);
    for (int i = 0; i < n; i++)
        if (sockets[i].fd >= 0)
            close (sockets[i].fd);
    return 0;
}

struct peers *peers_create (const struct peer_list *list)
{
    struct peers *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    if ((p->look = calloc (1, sizeof (*p->look))) && (p->worker = worker_create (run_look, p->look))) {
        p->look->list = *list;
        return p;
    }
    peers_destroy (p);
    return NULL;
}

void peers_destroy (struct peers *p)
{
    int saved_errno = errno;

    if (!p)
        return;
    if (!p->worker || worker_leave (p->worker, 0, free))
        free (p->look);
    free (p);
    errno = saved_errno;
}

void peers_begin (struct peers *p)
{
    worker_begin (p->worker);
}

int peers_fd (const struct peers *p)
{
    return worker_fd (p->worker);
}

bool peers_result (struct peers *p, bool *one_serves)
{
    int rc = worker_result (p->worker, NULL);

    if (rc == 0)
        return false;
    *one_serves = rc > 0 && p->look->one_serves;
    return true;
}
