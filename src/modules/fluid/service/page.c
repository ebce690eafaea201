/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* page.c - a rank gives processes of its host the page by which they make ids themselves */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libmodule/module.h"
#include "libpage/page_client.h"
#include "libutil/clock.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"
#include "modules/fluid/service/service.h"

#define OPTION "fluid.attach"
#define SCHEME "local://"
#define BACKLOG 128

struct page_door {
    struct service *service;
    struct listener sock;
    idt_watcher_t *w;
    bool deaf;            /* 'w' is stopped, because this process had no free descriptor */
    int memory[CALL_FDS]; /* descriptors of the page; -1: not made */
    struct page *page;
    struct page *terms;
};

/* --- the page --------------------------------------------------------------------------------------- */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

static void drop_page (struct page_door *d)
{
    if (d->page)
        munmap (d->page, PAGE_SIZE);
    if (d->terms)
        munmap (d->terms, PAGE_SIZE);
    d->page = d->terms = NULL;
    for (int i = 0; i < CALL_FDS; i++) {
        if (d->memory[i] >= 0)
            close (d->memory[i]);
        d->memory[i] = -1;
    }
}

/* Make memory that no process can shrink, so that the broker cannot get SIGBUS. Returns NULL with errno set. */
static struct page *make_memory (int *memory)
{
    if ((*memory = memfd_create ("idtree-page", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0
        || ftruncate (*memory, PAGE_SIZE) < 0 || fcntl (*memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return NULL;
    void *p = mmap (NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *memory, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Linux before 5.1 has no F_SEAL_FUTURE_WRITE. There the broker gives away a descriptor for reading, and only the
 * instance owner's processes may reopen the file.
 */
static int reopen_to_read (int *memory)
{
    char path[32];

    snprintf (path, sizeof (path), "/proc/self/fd/%d", *memory);
    if (fchmod (*memory, 0400) < 0)
        return -1;
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    close (*memory);
    *memory = fd;
    return 0;
}

/* Make both parts of the page. Afterwards only the present mapping can write the terms, and no process can add a seal.
 */
static int make_memories (struct page_door *d)
{
    int *terms = &d->memory[CALL_TERMS], *word = &d->memory[CALL_WORD];

    if (!(d->terms = make_memory (terms)) || !(d->page = make_memory (word)))
        return -1;
    bool sealed = fcntl (*terms, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
    if (fcntl (*terms, F_ADD_SEALS, F_SEAL_SEAL) < 0 || fcntl (*word, F_ADD_SEALS, F_SEAL_SEAL) < 0)
        return -1;
    return sealed ? 0 : reopen_to_read (terms);
}

static int make_page (struct page_door *d)
{
    struct service *sv = d->service;
    const char *instance = idt_attr_get (sv->h, "instance.uuid");

    if (d->page)
        return 0;
    if (make_memories (d) == 0
        && node_page_open (sv->node, service_now_us (sv), d->page, d->terms, instance ? instance : "") == 0)
        return 0;
    int errnum = errno;
    drop_page (d);
    return errset (errnum);
}

void page_door_publish (struct page_door *d)
{
    if (d->deaf && d->w)
        idt_watcher_start (d->w);
    d->deaf = false;
    if (!d->page)
        return;
    uint64_t monotonic_us = clock_us (CLOCK_MONOTONIC); /* first, so that a delay in between only shortens the time */
    if (!node_page_publish (d->service->node, clock_us (CLOCK_BOOTTIME), monotonic_us))
        drop_page (d);
}

/* --- connections ------------------------------------------------------------------------------------ */

/* Send one message with an errno. If the errno is 0, the message also has the clocks and the descriptors of the page
 * (page_client.h).
 */
static void give (int fd, const int memory[CALL_FDS], int errnum)
{
    const size_t size = CALL_FDS * sizeof (memory[0]);
    union {
        char buf[CMSG_SPACE (CALL_FDS * sizeof (int))];
        struct cmsghdr align;
    } control = { .buf = { 0 } };
    struct call_answer answer = { .errnum = (uint8_t)errnum };
    struct iovec iov = { &answer, sizeof (answer) };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    struct clocks clocks;

    if (errnum == 0 && !clocks_look (&clocks))
        answer.errnum = ETIMEDOUT; /* the process asks again */
    else if (errnum == 0)
        answer.clocks = clocks;
    if (answer.errnum == 0) {
        msg.msg_control = control.buf;
        msg.msg_controllen = sizeof (control.buf);
        struct cmsghdr *c = CMSG_FIRSTHDR (&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN (size);
        memcpy (CMSG_DATA (c), memory, size);
    }
    (void)!sendmsg (fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT); /* a process that has left needs no answer */
}

/* The permissions of the socket decide which users may connect. */
static void accept_cb (idt_watcher_t *w, int revents, void *arg)
{
    struct page_door *d = arg;
    int fd = accept4 (d->sock.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE) { /* the connection stays pending: stop, to avoid a busy loop */
            idt_watcher_stop (w);
            d->deaf = true;
        }
        return;
    }
    int errnum = make_page (d) < 0 ? errno : 0;
    service_set_timer (d->service); /* writes the terms before any process has the page */
    if (errnum == 0 && !d->page)
        errnum = ENOTSUP;
    give (fd, d->memory, errnum);
    close (fd);
}

/* --- the socket ---------------------------------------------------------------------------------------- */

/* Return RUNDIR/local-RANK if that is a socket of this rank only; otherwise NULL. */
static const char *own_path (idt_t *h)
{
    const char *uri = idt_attr_get (h, "local-uri");

    if (!uri || strncmp (uri, SCHEME, strlen (SCHEME)) != 0 || !strrchr (uri, '/') || strchr (strrchr (uri, '/'), '?'))
        return NULL;
    return uri + strlen (SCHEME);
}

/* If 'all' is set, give the socket the group and the permissions of the broker's socket. Otherwise only the instance
 * owner may connect.
 */
static int permit (const struct page_door *d, const char *local, bool all, idt_error_t *errp)
{
    struct stat st;

    if (!all)
        return 0;
    if (stat (local, &st) < 0 || chown (d->sock.path, (uid_t)-1, st.st_gid) < 0
        || chmod (d->sock.path, st.st_mode & 0777) < 0)
        return errprintf (errp, "%s cannot be opened to all users who may use %s: %s", d->sock.path, local,
                          strerror (errno));
    return 0;
}

static int listen_at (struct page_door *d, const char *local, bool all, idt_error_t *errp)
{
    idt_reactor_t *r = idt_get_reactor (d->service->h);
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%.*s/page-%u", (int)(strrchr (local, '/') - local), local,
                  (unsigned)d->service->options.node.rank)
        >= (int)sizeof (((struct sockaddr_un *)0)->sun_path))
        return errsetf (errp, ENAMETOOLONG, "%s: too long for a socket beside it (" OPTION ")", local);
    if (listener_open (&d->sock, path, SOCK_SEQPACKET, BACKLOG, errp) < 0 || permit (d, local, all, errp) < 0)
        return -1;
    if (!(d->w = idt_fd_watcher_create (r, d->sock.fd, IDT_POLLIN, accept_cb, d)))
        return errprintf (errp, "out of memory");
    idt_watcher_start (d->w);
    return 0;
}

/* Read fluid.attach. Returns 1 with '*all' set, 0 if it is off, or -1 with 'errp' filled. */
static int read_option (idt_t *h, bool *all, idt_error_t *errp)
{
    const char *s = idt_attr_define (h, OPTION, "owner");

    if (!s)
        return errprintf (errp, "out of memory");
    *all = strcmp (s, "all") == 0;
    if (*all || strcmp (s, "owner") == 0)
        return 1;
    return module_option_is_off (s) ? 0 : module_option_bad (OPTION, s, "owner, all, or off", errp);
}

int page_door_open (struct service *sv, struct page_door **door, idt_error_t *errp)
{
    const char *local = own_path (sv->h);
    bool all = false;
    int serves = read_option (sv->h, &all, errp);
    idt_error_t why = { "" };

    if (serves <= 0 || !local || sv->options.node.rank >= sv->options.node.max_generators)
        return serves < 0 ? -1 : 0;
    struct page_door *d = calloc (1, sizeof (*d));
    if (!d)
        return errprintf (errp, "out of memory");
    *d = (struct page_door){ .service = sv, .sock = { .fd = -1 }, .memory = { -1, -1 } };
    if (listen_at (d, local, all, &why) < 0) {
        page_door_shut (d);
        page_door_destroy (d);
        return errprintf (errp, "%s", why.text);
    }
    *door = d;
    return 0;
}

void page_door_shut (struct page_door *d)
{
    int saved_errno = errno;

    if (!d || d->sock.fd < 0)
        return;
    idt_watcher_destroy (d->w);
    listener_close (&d->sock);
    d->w = NULL;
    errno = saved_errno;
}

void page_door_destroy (struct page_door *d)
{
    if (!d)
        return;
    page_door_shut (d);
    drop_page (d);
    free (d);
}
