/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* listen.c - open the listening socket, and read the token */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#if HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "http/server/listen.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/private_dir.h"

#define BACKLOG 1024

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

/* --- whom it is for --------------------------------------------------------- */

static void classify (int fd, bool *loopback, bool *others)
{
    union address a;
    socklen_t len = sizeof (a);

    memset (&a, 0, sizeof (a));
    *loopback = false;
    *others = true;
    if (getsockname (fd, &a.any, &len) < 0)
        return;
    if (a.any.sa_family == AF_INET)
        *loopback = ntohl (a.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    else if (a.any.sa_family == AF_INET6)
        *loopback = IN6_IS_ADDR_LOOPBACK (&a.in6.sin6_addr);
    *others = !*loopback && a.any.sa_family != AF_UNIX;
}

const char *listen_text (int fd, bool tls, char buf[LISTEN_TEXT])
{
    union address a;
    socklen_t len = sizeof (a);
    char host[64], port[16];

    memset (&a, 0, sizeof (a));
    if (getsockname (fd, &a.any, &len) < 0)
        snprintf (buf, LISTEN_TEXT, "?");
    else if (a.any.sa_family == AF_UNIX)
        snprintf (buf, LISTEN_TEXT, "unix:%.*s", (int)sizeof (a.un.sun_path), a.un.sun_path);
    else if (getnameinfo (&a.any, len, host, sizeof (host), port, sizeof (port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf (buf, LISTEN_TEXT, "?");
    else
        snprintf (buf, LISTEN_TEXT, a.any.sa_family == AF_INET6 ? "http%s://[%s]:%s" : "http%s://%s:%s", tls ? "s" : "",
                  host, port);
    return buf;
}

/* --- sockets --------------------------------------------------------- */

static int open_socket (const struct sockaddr *a, socklen_t len)
{
    int fd = socket (a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    if (fd < 0)
        return -1;
    (void)setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof (on));
    if (bind (fd, a, len) < 0 || listen (fd, BACKLOG) < 0) {
        int saved_errno = errno;

        close (fd);
        return errset (saved_errno);
    }
    return fd;
}

/* The socket file remains when this process ends: the next one replaces it. */
static int listen_unix (const char *path, idt_error_t *errp)
{
    struct listener l;
    idt_error_t why;

    if (listener_open (&l, path, SOCK_STREAM, BACKLOG, &why) == 0) {
        free (l.path);
        return l.fd;
    }
    if (errno == ENAMETOOLONG)
        errno = EINVAL;
    return errprintf (errp, "cannot listen at unix:%s", why.text);
}

/* Split "[::1]:80" or "127.0.0.1:80" into its two parts. Returns false if 'where' has another form. */
static bool split (const char *where, char host[64], const char **port)
{
    bool brackets = *where == '[';
    const char *from = where + brackets, *end = brackets ? strchr (from, ']') : strchr (from, ':');
    size_t len = end ? (size_t)(end - from) : 0;
    uint64_t number;

    if (len == 0 || len >= 64 || (brackets && end[1] != ':'))
        return false;
    memcpy (host, from, len);
    host[len] = '\0';
    *port = end + brackets + 1;
    return parse_number (*port, 0, UINT16_MAX, &number) == 0;
}

static int listen_tcp (const char *where, idt_error_t *errp)
{
    const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                    .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    char host[64];
    const char *port;

    if (!split (where, host, &port) || getaddrinfo (host, port, &hints, &list) != 0)
        return errsetf (
            errp, EINVAL,
            "--listen %s: ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH is needed; the address must be numeric, and the "
            "port at most 65535",
            where);
    int fd = open_socket (list->ai_addr, list->ai_addrlen);
    if (fd < 0)
        errprintf (errp, "cannot listen at %s: %s", where, strerror (errno));
    freeaddrinfo (list);
    return fd;
}

int listen_at (const char *where, bool *loopback, bool *others, idt_error_t *errp)
{
    int fd = strncmp (where, "unix:", 5) == 0 ? listen_unix (where + 5, errp) : listen_tcp (where, errp);

    if (fd >= 0)
        classify (fd, loopback, others);
    return fd;
}

int listen_inherited (bool *loopback, bool *others, idt_error_t *errp)
{
#if HAVE_LIBSYSTEMD
    int n = sd_listen_fds (1);

    if (n > 1)
        return errsetf (errp, EINVAL, "%d sockets were inherited, but only one can be served", n);
    if (n == 1 && sd_is_socket (SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
        return errsetf (
            errp, EINVAL,
            "the inherited socket is not a listening stream socket: ListenStream= is needed, and Accept=no");
    if (n == 1) {
        classify (SD_LISTEN_FDS_START, loopback, others);
        (void)fcntl (SD_LISTEN_FDS_START, F_SETFL, O_NONBLOCK);
        return SD_LISTEN_FDS_START;
    }
#endif
    return errsetf (errp, ENOENT, "no socket was inherited");
}

/* --- the token --------------------------------------------------------- */

static char *check_token (const char *path, char *token, idt_error_t *errp)
{
    token[strcspn (token, "\r\n")] = '\0';
    if (strlen (token) >= LISTEN_MIN_TOKEN && strlen (token) <= LISTEN_MAX_TOKEN
        && token[strspn (token, "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUV"
                                "WXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~")]
               == '\0')
        return strdup (token);
    errsetf (errp, EINVAL, "%s: the first line must be a token of %d to %d printable characters", path,
             LISTEN_MIN_TOKEN, LISTEN_MAX_TOKEN);
    return NULL;
}

char *listen_token (const char *path, idt_error_t *errp)
{
    FILE *f = fopen (path, "re");
    char line[LISTEN_MAX_TOKEN + 2] = "", *token = NULL;
    struct stat st;

    if (!f || fstat (fileno (f), &st) < 0)
        errprintf (errp, "%s: %s", path, strerror (errno));
    else if (st.st_mode & 0077)
        errsetf (errp, EPERM, "%s: other users may read it: chmod 600", path);
    else if (!fgets (line, sizeof (line), f))
        ferror (f) ? errprintf (errp, "%s: %s", path, strerror (errno))
                   : errsetf (errp, EINVAL, "%s: it is empty", path);
    else
        token = check_token (path, line, errp);
    if (f)
        fclose (f);
    explicit_bzero (line, sizeof (line));
    return token;
}
