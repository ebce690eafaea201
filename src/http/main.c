/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* main.c - idtree-http: ids and figures of an instance over HTTP
 *
 * Exit status: 0 stopped by a signal; 1 failed, and a restart may help; 2 wrong options.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#if HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "http/site.h"
#include "libutil/duration.h"
#include "libutil/errprintf.h"
#include "libutil/inherited.h"
#include "libutil/private_dir.h"

#define LISTEN "127.0.0.1:8061"
#define LISTEN_TEXT 160 /* bytes that hold the text of an address */
#define BACKLOG 1024
#define MAX_CONNECTIONS 12000
#define OTHER_FILES 64 /* most open files besides connections */
#define RATE 1000000
#define MAX_ANSWERS 64 /* MiB */

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

struct http_options {
    const char *listen; /* NULL: not given */
    const char *uri;
    const char *token_file;
    const char *tls_cert, *tls_key, *tls_client_ca;
    uint32_t max_connections, rate, max_answers;
    bool show_log;
};

static const struct option longs[] = {
    { "listen", required_argument, NULL, 'l' },
    { "uri", required_argument, NULL, 'u' },
    { "token-file", required_argument, NULL, 't' },
    { "max-connections", required_argument, NULL, 'c' },
    { "rate", required_argument, NULL, 'r' },
    { "max-answers", required_argument, NULL, 'a' },
    { "tls-cert", required_argument, NULL, 'C' },
    { "tls-key", required_argument, NULL, 'K' },
    { "tls-client-ca", required_argument, NULL, 'A' },
    { "show-log", no_argument, NULL, 'L' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'v' },
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: idtree-http [OPTION]...\n"
    "Serve ids and figures of an instance over HTTP.\n"
    "\n"
    "  -l, --listen WHERE       ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH (" LISTEN ")\n"
    "  -u, --uri URI            the broker (default: as for idtree)\n"
    "      --token-file FILE    the first line is the token that all requests must show; needed if other "
    "hosts can connect\n"
    "      --tls-cert FILE, --tls-key FILE   serve TLS with that certificate and its key (PEM)\n"
    "      --tls-client-ca FILE accept clients without a token if one of these signed their certificate\n"
    "      --max-connections N  at the same time (12000)\n"
    "      --rate N             ids a second for all clients together; 0: no limit (1000000)\n"
    "      --max-answers MIB    memory for answers that clients have not read yet (64)\n"
    "      --show-log           show lines of the instance's log to other users of this host, too\n"
    "  -h, --help               show this\n"
    "      --version            show the version\n"
    "\n"
    "GET / (the page for people), POST /v1/ids?n=N&to=FORM, GET /v1/ids/ID, /v1/watermark, /v1/tree,\n"
    "    /v1/events, /v1/openapi.json, /metrics, /healthz, /readyz\n"
    "\n"
    "example: idtree-http & curl -X POST 'localhost:8061/v1/ids?n=3'\n";

static void end (int status, const char *fmt, ...) __attribute__ ((noreturn, format (printf, 2, 3)));

static void end (int status, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    fprintf (stderr, "idtree-http: %s\n", text);
    exit (status);
}

/* Exit with status 0 if all output could be written. If an earlier write failed, its errno is no longer known, so the
 * message has none.
 */
static void done (void) __attribute__ ((noreturn));

static void done (void)
{
    bool failed = ferror (stdout);

    if (fflush (stdout) == EOF)
        end (1, "cannot write: %s", strerror (errno));
    if (failed)
        end (1, "cannot write: not all of it was taken, as of a disk that is full");
    exit (0);
}

static uint32_t read_number (const char *name, const char *s, uint32_t min, uint32_t max)
{
    size_t digits = strspn (s, "0123456789");
    unsigned long n = digits > 0 && digits <= 10 && !s[digits] ? strtoul (s, NULL, 10) : UINT64_MAX;

    if (n < min || n > max)
        end (2, "--%s %.64s: a number from %u to %u is needed", name, s, min, max);
    return (uint32_t)n;
}

static struct http_options read_options (int argc, char **argv)
{
    struct http_options o = { .max_connections = MAX_CONNECTIONS, .rate = RATE, .max_answers = MAX_ANSWERS };
    int c;

    while ((c = getopt_long (argc, argv, "hl:u:", longs, NULL)) != -1)
        switch (c) {
        case 'l':
            o.listen = optarg;
            break;
        case 'u':
            o.uri = optarg;
            break;
        case 't':
            o.token_file = optarg;
            break;
        case 'C':
            o.tls_cert = optarg;
            break;
        case 'K':
            o.tls_key = optarg;
            break;
        case 'A':
            o.tls_client_ca = optarg;
            break;
        case 'c':
            o.max_connections = read_number ("max-connections", optarg, 1, 100000);
            break;
        case 'r':
            o.rate = read_number ("rate", optarg, 0, UINT32_MAX);
            break;
        case 'a':
            o.max_answers = read_number ("max-answers", optarg, 1, 65536);
            break;
        case 'L':
            o.show_log = true;
            break;
        case 'h':
            fputs (help, stdout);
            done ();
        case 'v':
            puts ("idtree-http " PACKAGE_VERSION);
            done ();
        default:
            end (2, "idtree-http --help shows the options");
        }
    if (optind < argc)
        end (2, "'%.64s' is one argument too many: idtree-http --help shows the options", argv[optind]);
    return o;
}

/* --- signals --------------------------------------------------------- */

static int block_signals (void)
{
    sigset_t set;

    sigemptyset (&set);
    sigaddset (&set, SIGTERM);
    sigaddset (&set, SIGINT);
    signal (SIGPIPE, SIG_IGN);
    sigprocmask (SIG_BLOCK, &set, NULL);
    return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void stop_cb (idt_watcher_t *w, int revents, void *arg)
{
    idt_reactor_stop (arg);
}

/* The connection to the broker is lost. The next request reconnects; if that fails, the request reports it. But if the
 * brokers now belong to another instance, this connection can never be used again.
 */
static void lost_cb (idt_t *h, int errnum, void *arg)
{
    bool *replaced = arg;

    *replaced = errnum == ESTALE;
    if (*replaced) {
        fprintf (stderr, "idtree-http: the brokers now belong to another instance: start idtree-http again to serve "
                         "it\n");
        idt_reactor_stop (idt_get_reactor (h));
    }
    else
        fprintf (stderr, "idtree-http: no broker found: %s\n", strerror (errnum));
}

/* --- connections --------------------------------------------------------- */

/* Raise the limit of open files as far as allowed. Returns how many connections fit, and logs this number if it is
 * lower than 'wanted'.
 */
static uint32_t fit_connections (uint32_t wanted)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)wanted + OTHER_FILES;

    if (getrlimit (RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return wanted;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    if (setrlimit (RLIMIT_NOFILE, &limit) < 0 || getrlimit (RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return wanted;
    if (limit.rlim_cur <= OTHER_FILES)
        end (1, "%lu files may be open (ulimit -Hn), and %d are needed, and one for each connection",
             (unsigned long)limit.rlim_cur, OTHER_FILES);
    uint32_t fit = (uint32_t)limit.rlim_cur - OTHER_FILES;
    fprintf (stderr, "idtree-http: %u connections at the same time, not %u: %lu files may be open (ulimit -Hn)\n", fit,
             wanted, (unsigned long)limit.rlim_cur);
    return fit;
}

/* --- the listening socket --------------------------------------------------------- */

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

/* Write the address as people and scripts use it, such as http://127.0.0.1:8061. */
static const char *listen_text (int fd, bool tls, char buf[LISTEN_TEXT])
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

/* The socket file remains when this process ends, and the next process replaces it. */
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

/* Listen at ADDRESS:PORT or [ADDRESS]:PORT (numeric; port 0: any free port), or at unix:PATH. A UNIX socket may be used
 * by the owner only, and replaces a socket that no server listens on. '*loopback': a TCP address that only this host
 * can connect to. '*others': other hosts can connect. Returns the descriptor, or -1 with errno set (EINVAL: 'where' has
 * another form) and 'errp' filled.
 */
static int listen_at (const char *where, bool *loopback, bool *others, idt_error_t *errp)
{
    int fd = strncmp (where, "unix:", 5) == 0 ? listen_unix (where + 5, errp) : listen_tcp (where, errp);

    if (fd >= 0)
        classify (fd, loopback, others);
    return fd;
}

/* Like listen_at (), for a socket that systemd passes. Returns -1 with errno ENOENT if systemd passes no socket. */
static int listen_inherited (bool *loopback, bool *others, idt_error_t *errp)
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

/* --- all of it --------------------------------------------------------- */

static void find_socket (const struct http_options *o, struct server_conf *conf)
{
    struct auth *door = &conf->door;
    bool others;
    idt_error_t error;

    conf->fd = o->listen ? -1 : listen_inherited (&door->loopback, &others, &error);
    if (conf->fd < 0 && (o->listen || errno == ENOENT))
        conf->fd = listen_at (o->listen ? o->listen : LISTEN, &door->loopback, &others, &error);
    if (conf->fd < 0)
        end (errno == EINVAL ? 2 : 1, "%s", error.text);
    if (others && !door->token && !door->tls.authorities)
        end (2, "other hosts can connect to this address: --token-file or --tls-client-ca is needed");
    if (others && !door->tls.certificate)
        fprintf (stderr, "idtree-http: --token-file without TLS: the token is sent unencrypted: use --tls-cert and "
                         "--tls-key, or a proxy that encrypts\n");
}

static int serve (idt_t *h, const struct site_conf *conf, int signals)
{
    idt_error_t error = { "" };
    struct site *s = site_create (h, conf, &error);
    idt_watcher_t *w = idt_fd_watcher_create (idt_get_reactor (h), signals, IDT_POLLIN, stop_cb, idt_get_reactor (h));
    char where[LISTEN_TEXT];
    bool replaced = false;

    if (!s || !w)
        end (1, "%s", error.text[0] ? error.text : strerror (errno));
    idt_watcher_start (w);
    idt_set_lost (h, lost_cb, &replaced);
    printf ("%s\n", listen_text (conf->server.fd, conf->server.door.tls.certificate != NULL, where));
    fflush (stdout);
    int rc = idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    if (rc < 0)
        fprintf (stderr, "idtree-http: %s\n", strerror (errno));
    idt_watcher_destroy (w);
    site_destroy (s);
    return rc < 0 || replaced;
}

int main (int argc, char **argv)
{
    struct http_options o;
    idt_error_t error = { "" };
    char *token = NULL;

    if (inherited_set (&error) < 0)
        end (1, "%s", error.text);
    o = read_options (argc, argv);
    if (o.token_file && !(token = auth_token (o.token_file, &error)))
        end (2, "%s", error.text);
    struct site_conf conf = { .rate = o.rate };
    struct auth *door = &conf.server.door;
    door->token = token;
    conf.server.max_connections = fit_connections (o.max_connections);
    conf.server.max_answers = (size_t)o.max_answers << 20;
    if (tls_load (&door->tls, o.tls_cert, o.tls_key, o.tls_client_ca, &error) < 0)
        end (2, "%s", error.text);
    find_socket (&o, &conf.server);
    /* other users of this host have no access */
    conf.show_log = o.show_log || door->token || door->tls.authorities || !door->loopback;
    int signals = block_signals ();
    idt_t *h = idt_open_ex (o.uri, &(struct idt_open_options){ .flags = IDT_O_RECONNECT }, &error);
    if (!h)
        end (1, "%s", error.text);
    int status = serve (h, &conf, signals);
    idt_close (h);
    close (signals);
    tls_free (&door->tls);
    free (token);
    return status;
}
