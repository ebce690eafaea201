/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* call.c - how a client gets the page from its broker */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "libpage/call.h"
#include "libpage/inside.h"
#include "libutil/errprintf.h"

#define SCHEME "local://"
#define OWN "local-"

union control { /* aligned as cmsg (3) requires */
    char buf[CMSG_SPACE (CALL_FDS * sizeof (int))];
    struct cmsghdr align;
};

/* --- the address of the socket ------------------------------------------------------------------------ */

/* Find the socket that serves the page of a broker whose local socket, or a link to it, is at 'path'. */
static int find_address (const char *path, struct sockaddr_un *addr)
{
    const char *slash = strrchr (path, '/'), *name;
    char target[64];

    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (!slash || strchr (slash, '?'))
        return errset (ENOTSUP);
    name = slash + 1;
    ssize_t n = readlink (path, target, sizeof (target) - 1); /* "local" is a link to a "local-RANK" */
    if (n > 0) {
        target[n] = '\0';
        name = target;
    }
    if (strncmp (name, OWN, strlen (OWN)) != 0 || strchr (name, '/')
        || snprintf (addr->sun_path, sizeof (addr->sun_path), "%.*spage-%s", (int)(slash + 1 - path), path,
                     name + strlen (OWN))
               >= (int)sizeof (addr->sun_path))
        return errset (ENOTSUP);
    return 0;
}

/* Read an environment variable. An empty one counts as unset. */
static const char *variable (const char *name)
{
    const char *s = getenv (name);

    return s && *s ? s : NULL;
}

bool call_is_told (void)
{
    return variable ("IDTREE_URI") || variable ("FLUX_URI");
}

const char *call_default_uri (void)
{
    const char *uri = variable ("IDTREE_URI");

    if (!uri)
        uri = variable ("FLUX_URI");
    return uri ? uri : CALL_DEFAULT_URI;
}

/* --- request and answer ------------------------------------------------------------------- */

int page_call (const char *uri)
{
    struct sockaddr_un addr;

    if (strncmp (uri, SCHEME, strlen (SCHEME)) != 0 || find_address (uri + strlen (SCHEME), &addr) < 0)
        return errset (ENOTSUP);
    int fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0) {
        int errnum = errno == EAGAIN ? ECONNREFUSED : errno; /* EAGAIN: the broker's queue of connections is full */
        close (fd);
        return errset (errnum);
    }
    return fd;
}

/* Map the page, if its size is sealed, so that an access cannot raise SIGBUS. Returns NULL with errno set. */
static struct page *map_one (int fd, int prot)
{
    int seals = fcntl (fd, F_GET_SEALS);
    struct stat st;

    if (fstat (fd, &st) < 0 || st.st_size < (off_t)PAGE_SIZE || seals < 0 || !(seals & F_SEAL_SHRINK))
        return errset_null (EPROTO);
    void *page = mmap (NULL, PAGE_SIZE, prot, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static bool is_page (const idt_page_t *p)
{
    return p->terms->magic == PAGE_MAGIC && p->terms->version == PAGE_VERSION && p->generator <= FLUID_GENERATOR_MAX;
}

static idt_page_t *map (const int fd[CALL_FDS])
{
    idt_page_t *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    if (!(p->terms = map_one (fd[CALL_TERMS], PROT_READ))
        || !(p->page = map_one (fd[CALL_WORD], PROT_READ | PROT_WRITE))) {
        idt_page_close (p);
        return NULL;
    }
    p->generator = p->terms->generator;
    p->epoch_ms = p->terms->epoch_ms;
    memcpy (p->instance, p->terms->instance, sizeof (p->instance) - 1);
    if (is_page (p))
        return p;
    idt_page_close (p);
    return errset_null (EPROTO);
}

static void close_all (int fd[CALL_FDS])
{
    for (int i = 0; i < CALL_FDS; i++)
        if (fd[i] >= 0)
            close (fd[i]);
}

/* Take the descriptors of a message into 'fd', with -1 for a missing one. Returns whether all arrived. */
static bool take_descriptors (struct msghdr *msg, int fd[CALL_FDS])
{
    struct cmsghdr *c = CMSG_FIRSTHDR (msg);
    size_t most = CALL_FDS * sizeof (int), size = 0;

    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        size = c->cmsg_len - CMSG_LEN (0);
    if (size > 0)
        memcpy (fd, CMSG_DATA (c), size < most ? size : most);
    return size == most;
}

/* Read the answer. Returns 0 with its descriptors in 'fd', or -1 with errno set. */
static int receive (int from, struct call_answer *answer, int fd[CALL_FDS])
{
    struct iovec iov = { answer, sizeof (*answer) };
    union control control;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf, .msg_controllen = sizeof (control.buf)
    };
    ssize_t n = recvmsg (from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return -1;
    if (n == 0)
        return errset (ECONNREFUSED); /* the broker closed the connection */
    bool whole = take_descriptors (&msg, fd) && n == sizeof (*answer);
    if (answer->errnum == 0 && whole)
        return 0;
    close_all (fd);
    return errset (answer->errnum != 0 ? answer->errnum : EPROTO);
}

/* Whether the broker reads the same clocks as this process. Otherwise the times in the page are meaningless here. */
static bool has_our_clocks (const struct call_answer *answer)
{
    struct clocks here, there = answer->clocks;

    return clocks_look (&here) && clocks_same (&here, &there);
}

idt_page_t *page_answer (int fd)
{
    struct call_answer answer = { .errnum = 0 };
    int got[CALL_FDS] = { -1, -1 }, rc = receive (fd, &answer, got), errnum = errno;

    if (rc < 0 && (errnum == EAGAIN || errnum == EWOULDBLOCK || errnum == EINTR))
        return errset_null (EAGAIN);
    close (fd);
    if (rc < 0)
        return errset_null (errnum);
    idt_page_t *p = has_our_clocks (&answer) ? map (got) : errset_null (ENOTSUP);
    errnum = errno;
    close_all (got);
    errno = errnum;
    return p;
}

static int64_t now_ms (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Like poll (), but continues after a signal with the rest of the timeout. */
static int await (int fd, int timeout_ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    int64_t end_ms = now_ms () + timeout_ms, left_ms = timeout_ms;
    int n;

    while ((n = poll (&pfd, 1, (int)left_ms)) < 0 && errno == EINTR)
        if (timeout_ms >= 0 && (left_ms = end_ms - now_ms ()) < 0)
            left_ms = 0;
    return n;
}

idt_page_t *idt_page_open (const char *uri, int timeout_ms)
{
    int fd = page_call (uri ? uri : call_default_uri ());
    idt_page_t *p;

    if (fd < 0)
        return NULL;
    int n = await (fd, timeout_ms);
    if (n > 0 && ((p = page_answer (fd)) || errno != EAGAIN))
        return p;
    int errnum = n < 0 ? errno : ETIMEDOUT;
    close (fd);
    return errset_null (errnum);
}

void idt_page_close (idt_page_t *page)
{
    int saved_errno = errno;

    if (!page)
        return;
    if (page->page)
        munmap (page->page, PAGE_SIZE);
    if (page->terms)
        munmap (page->terms, PAGE_SIZE);
    free (page);
    errno = saved_errno;
}
