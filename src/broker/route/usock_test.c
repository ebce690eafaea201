/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* usock_test.c - clients on real sockets: good clients are served, and a bad client loses only its own connection
 *
 * There is one thread.  The test writes to its ends of the sockets and reads from them, and runs the reactor in
 * between. Service "echo" answers each request with the request's payload; service "null" never answers.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/route/usock.h"
#include "libmsg/stream.h"
#include "test/tap.h"

#define MAX_MESSAGE 131072
#define MAX_QUEUE 1048576
#define MAX_CLIENTS 40

struct server {
    struct usocks *all;
    idt_reactor_t *reactor;
    struct attrs *attrs;
    struct log *log;
    struct topo *topo;
    struct router *router;
    struct usock *local;
    struct peer echo, null;
    uint32_t rank;
    const char *sockets; /* ranks that have their own socket (local.sockets); NULL: 0 */
    bool shares;         /* guests may connect, and pools and timeouts are large */
    char dir[64];
    char path[108];
    int requests, disconnects, gone, events;
    int echo_at;           /* number that the last request to echo has among all requests */
    int full;              /* number of requests that echo still has to refuse with EXFULL */
    struct idt_cred cred;  /* credentials of the last request */
    const idt_msg_t *last; /* the last request to null */
};

/* The linker replaces getsockopt () by the function below (--wrap).  It reports this user as the user that connects; 0:
 * the real user.
 */
static uid_t pretended;

int __real_getsockopt (int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt (int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt (int fd, int level, int name, void *value, socklen_t *size)
{
    int rc = __real_getsockopt (fd, level, name, value, size);

    if (rc == 0 && level == SOL_SOCKET && name == SO_PEERCRED && pretended != 0)
        memcpy ((char *)value + offsetof (struct ucred, uid), &pretended, sizeof (pretended));
    return rc;
}

/* --- the broker's side ------------------------------------------------------------------------------------- */

static int echo_send (void *arg, const idt_msg_t *msg)
{
    struct server *s = arg;
    idt_msg_t *response = idt_msg_respond (msg, 0);
    const void *data;
    size_t size;

    s->cred = idt_msg_cred (msg);
    if (s->full > 0 && !idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE)) {
        s->full--;
        idt_msg_unref (response);
        errno = EXFULL;
        return -1;
    }
    if (idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE)) {
        s->disconnects += strcmp (idt_msg_topic (msg), "echo.disconnect") == 0;
        idt_msg_unref (response);
        return 0;
    }
    if (idt_msg_payload (msg, &data, &size) == 0)
        idt_msg_set_payload (response, data, size);
    router_response_new (s->router, &s->echo, response);
    return 0;
}

static int null_send (void *arg, const idt_msg_t *msg)
{
    struct server *s = arg;

    idt_msg_unref (s->last);
    s->last = idt_msg_copy (msg, true);
    return 0;
}

static void request (void *arg, struct peer *from, idt_msg_t *msg)
{
    struct server *s = arg;

    s->requests++;
    if (strcmp (idt_msg_topic (msg), "echo.x") == 0)
        s->echo_at = s->requests;
    router_request_new (s->router, from, msg);
}

static void message (void *arg, struct peer *from, idt_msg_t *msg)
{
    struct server *s = arg;

    if (idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        request (s, from, msg);
    else if (idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        router_response_new (s->router, from, msg);
    else {
        s->events++;
        idt_msg_unref (msg);
    }
}

static void gone (void *arg, struct peer *p)
{
    ((struct server *)arg)->gone++;
}

static const struct usock_ops ops = { .message = message, .gone = gone };

static void add_service (struct server *s, struct peer *p, const char *name, enum peer_kind kind,
                         int (*send) (void *arg, const idt_msg_t *msg))
{
    *p = (struct peer){ .kind = kind, .send = send, .arg = s };
    snprintf (p->uuid, sizeof (p->uuid), "%-8.8s-0000-4000-8000-000000000000", name);
    if (router_peer_add (s->router, p) < 0 || router_service_add (s->router, name, p) < 0)
        bail_out ("no service");
}

static struct usock *listen_at (struct server *s, const char *path, idt_error_t *err)
{
    struct attrs *attrs = attrs_create ();
    struct usock *l;

    attr_give (attrs, "local.sockets", s->sockets ? s->sockets : "0", NULL);
    attr_give (attrs, "local.max-message", "128k", NULL);
    attr_give (attrs, "local.max-queue", "1M", NULL);
    attr_give (attrs, "local.max-clients", "40", NULL);
    attr_give (attrs, "local.stall-timeout", s->shares ? "1h" : "20ms", NULL);
    attr_give (attrs, "local.frame-time", s->shares ? "1h" : "20ms", NULL);
    attr_give (attrs, "local.input-pool", s->shares ? "1M" : "100k", NULL);
    attr_give (attrs, "local.output-pool", s->shares ? "2M" : "512M", NULL);
    attr_give (attrs, "access.allow-guest-user", s->shares ? "on" : "off", NULL);
    l = usock_create (s->all, s->reactor, path, s->rank, attrs, s->router, s->log, &ops, s, err);
    attrs_destroy (attrs);
    return l;
}

/* Make a broker that uses the given reactor, folder and shared state. */
static void server_make (struct server *s)
{
    idt_error_t err;

    s->attrs = attrs_create ();
    attr_give (s->attrs, "log-stderr-level", "0", NULL);
    s->topo = topo_create ("kary:2", 3, NULL);
    if (!(s->log = log_create (s->attrs, 0, &err)) || !(s->router = router_create (s->rank, s->topo, 100000)))
        bail_out ("no server");
    add_service (s, &s->echo, "echo", PEER_BUILTIN, echo_send);
    add_service (s, &s->null, "null", PEER_MODULE, null_send);
    snprintf (s->path, sizeof (s->path), "%s/local-%u", s->dir, (unsigned)s->rank);
    if (!(s->local = listen_at (s, s->path, &err)))
        bail_out (err.text);
}

static void server_init_as (struct server *s, bool shares)
{
    *s = (struct server){ .shares = shares };
    snprintf (s->dir, sizeof (s->dir), "/tmp/local_test.XXXXXX");
    if (!mkdtemp (s->dir) || !(s->reactor = idt_reactor_create ()) || !(s->all = usocks_create (s->reactor)))
        bail_out ("no server");
    server_make (s);
}

static void server_init (struct server *s)
{
    server_init_as (s, false);
}

/* Make another broker of the same process. */
static void server_beside (struct server *s, const struct server *first, uint32_t rank, const char *sockets)
{
    *s = (struct server){ .all = first->all, .reactor = first->reactor, .rank = rank, .sockets = sockets };
    memcpy (s->dir, first->dir, sizeof (s->dir));
    server_make (s);
}

static void server_unmake (struct server *s)
{
    usock_destroy (s->local);
    router_peer_remove (s->router, &s->echo);
    router_peer_remove (s->router, &s->null);
    router_destroy (s->router);
    topo_destroy (s->topo);
    log_destroy (s->log);
    attrs_destroy (s->attrs);
    idt_msg_unref (s->last);
}

static void server_fini (struct server *s)
{
    server_unmake (s);
    usocks_destroy (s->all);
    idt_reactor_destroy (s->reactor);
    rmdir (s->dir);
}

/* Run the server 'n' times as a broker does: handle input, then write output. */
static void turn (struct server *s, int n)
{
    while (n-- > 0) {
        usock_flush (s->local);
        idt_reactor_run (s->reactor, IDT_REACTOR_NOWAIT);
        usock_turn (s->local);
        usock_flush (s->local);
    }
}

/* The same for a server that needs some time until its next step. */
static void turn_slowly (struct server *s)
{
    poll (NULL, 0, 1);
    turn (s, 1);
}

/* --- the clients' side ------------------------------------------------------------------------------------- */

struct end {
    int fd;
    int welcome; /* the byte that greets the connection; -1: none */
    struct msg_stream *stream;
    bool eof;
    uint32_t errnum; /* errno of the last response */
};

static void end_open (struct end *e, struct server *s)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    unsigned char byte;

    memset (e, 0, sizeof (*e));
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", s->path);
    e->fd = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (e->fd < 0 || connect (e->fd, (struct sockaddr *)&addr, sizeof (addr)) < 0)
        bail_out ("cannot connect");
    turn (s, 2);
    e->welcome = read (e->fd, &byte, 1) == 1 ? byte : -1;
    e->stream = msg_stream_create (e->fd, 1 << 24, 1 << 28);
}

static void end_close (struct end *e, struct server *s)
{
    msg_stream_destroy (e->stream);
    close (e->fd);
    if (s)
        turn (s, 3);
}

static void put (struct end *e, const char *topic, uint32_t tag, size_t size, int flags)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, topic);
    idt_msg_set_matchtag (msg, tag);
    if (flags)
        idt_msg_set_flag (msg, flags);
    idt_msg_route_clear (msg);
    if (size > 0)
        memset (idt_msg_alloc_payload (msg, size), 'x', size);
    if (msg_stream_put (e->stream, msg) < 0)
        bail_out ("cannot write");
    idt_msg_unref (msg);
}

/* Get the matchtag of the next response; 0: no response has arrived, perhaps because the connection has ended. */
static uint32_t get (struct end *e, struct server *s)
{
    idt_msg_t *msg = NULL;
    uint32_t tag;

    for (int i = 0; i < 100 && !e->eof && !(msg = msg_stream_next (e->stream, NULL)); i++) {
        msg_stream_flush (e->stream);
        turn (s, 1);
        if (msg_stream_fill (e->stream, &e->eof) < 0 && errno != EAGAIN)
            e->eof = true;
    }
    if (!msg && !(msg = msg_stream_next (e->stream, NULL)))
        return 0;
    tag = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE ? idt_msg_matchtag (msg) : 0;
    e->errnum = tag ? idt_msg_errnum (msg) : 0;
    idt_msg_unref (msg);
    return tag;
}

/* The same for a response that arrives after some time. */
static uint32_t get_slowly (struct end *e, struct server *s)
{
    uint32_t tag = 0;

    wait_until (e->eof || (tag = get (e, s)) != 0) poll (NULL, 0, 1);
    return tag;
}

static bool is_served (struct end *e, struct server *s)
{
    put (e, "echo.x", 99, 3, 0);
    return get (e, s) == 99;
}

static bool is_closed (struct end *e, struct server *s)
{
    while (!e->eof && get (e, s) != 0)
        ;
    return e->eof;
}

/* --- tests ------------------------------------------------------------------------------------------------- */

/* Send a request that names its user and roles. */
static void put_as (struct end *e, uint32_t tag, uint32_t roles)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, "echo.x");
    idt_msg_set_cred (msg, (struct idt_cred){ 4711, roles });
    idt_msg_set_matchtag (msg, tag);
    idt_msg_route_clear (msg);
    msg_stream_put (e->stream, msg);
    idt_msg_unref (msg);
}

static void test_good (void)
{
    struct server s;
    struct end e;

    server_init (&s);
    end_open (&e, &s);
    ok (e.welcome == 0 && usock_count (s.local) == 1, "a client that connects receives one byte of value 0");
    ok (is_served (&e, &s), "the request of a client is answered");
    ok (s.cred.userid == geteuid () && s.cred.rolemask == (IDT_ROLE_OWNER | IDT_ROLE_LOCAL),
        "a request that names no user gets the user of its connection, with the roles owner and local");
    put_as (&e, 5, IDT_ROLE_USER);
    ok (get (&e, &s) == 5 && s.cred.userid == 4711 && s.cred.rolemask == IDT_ROLE_USER,
        "the instance owner may send a request with the user and role of a guest");
    put_as (&e, 6, IDT_ROLE_OWNER | IDT_ROLE_BROKER);
    ok (get (&e, &s) == 6 && s.cred.rolemask == IDT_ROLE_OWNER,
        "the instance owner may not send a request with role broker");
    put_as (&e, 7, IDT_ROLE_BROKER);
    ok (get (&e, &s) == 7 && s.cred.rolemask == (IDT_ROLE_OWNER | IDT_ROLE_LOCAL),
        "a request that has only the role broker gets user and roles of its connection");
    end_close (&e, &s);
    ok (s.gone == 1 && s.disconnects == 1 && usock_count (s.local) == 0,
        "when a client disconnects, the service that the client used gets one disconnect");
    server_fini (&s);
    ok (access (s.path, F_OK) < 0, "the socket is removed when its server is destroyed");
}

/* Write the bytes of a frame that contains a request. */
static size_t make_frame (unsigned char *buf, size_t size, uint32_t tag)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);
    uint32_t magic = 0xffee0012, length;
    ssize_t n;

    idt_msg_set_topic (msg, "echo.x");
    idt_msg_set_matchtag (msg, tag);
    idt_msg_set_string (msg, "{}");
    idt_msg_route_clear (msg);
    n = idt_msg_encode (msg, buf + 8, size - 8);
    length = htonl (n);
    memcpy (buf, &magic, 4);
    memcpy (buf + 4, &length, 4);
    idt_msg_unref (msg);
    return n + 8;
}

static void test_pieces (void)
{
    unsigned char frame[256];
    size_t size = make_frame (frame, sizeof (frame), 7);
    struct server s;
    struct end e;
    bool early = false;

    server_init (&s);
    end_open (&e, &s);
    for (size_t i = 0; i < size; i++) {
        early = early || s.requests > 0;
        if (write (e.fd, frame + i, 1) != 1)
            break;
        turn (&s, 1);
    }
    ok (!early && get (&e, &s) == 7 && s.requests == 1, "a request that arrives byte by byte is read as one request");
    for (uint32_t tag = 1; tag <= 1000; tag++)
        put (&e, "echo.x", tag, 10, 0);
    uint32_t tag = 1;
    while (tag <= 1000 && get (&e, &s) == tag)
        tag++;
    ok (tag == 1001, "1000 requests sent together are answered in order");
    for (size_t n = 1; n < size; n++) {
        struct end half;

        end_open (&half, &s);
        if (write (half.fd, frame, n) != (ssize_t)n)
            break;
        end_close (&half, &s);
    }
    ok (usock_count (s.local) == 1 && s.requests == 1001 && is_served (&e, &s),
        "clients that disconnect in the middle of a frame leave nothing behind");
    end_close (&e, &s);
    server_fini (&s);
}

static void test_fairness (void)
{
    struct server s;
    struct end greedy, modest;
    int before;

    server_init (&s);
    end_open (&greedy, &s);
    end_open (&modest, &s);
    for (uint32_t tag = 1; tag <= 3000; tag++)
        put (&greedy, "null.x", tag % 2 ? tag : 0, 0, 0); /* a request with matchtag 0 has a response, too (RFC 6) */
    msg_stream_flush (greedy.stream);
    put (&modest, "echo.x", 1, 0, 0);
    msg_stream_flush (modest.stream);
    turn (&s, 2);
    before = s.requests;
    ok (before < 600 && get (&modest, &s) == 1,
        "a client with many requests does not delay another client's first request (%d were read before)", before);
    wait_until (s.requests == 1024 + 1) turn_slowly (&s);
    ok (s.requests == 1024 + 1, "a client that has local.max-unanswered unanswered requests is not read");
    ok (is_served (&modest, &s),
        "while a client with local.max-unanswered requests is not read, other clients are served");
    wait_until (s.requests == 3002) turn_slowly (&s);
    ok (s.requests == 3002,
        "a client that was not read for too many unanswered requests is read again after local.stall-timeout "
        "without a response");
    end_close (&greedy, &s);
    ok (router_stats (s.router).pending == 0, "the end of a client leaves none of its requests pending");
    end_close (&modest, &s);
    server_fini (&s);
}

/* An idle client sends a request while the requests of many other clients wait. */
static void test_newcomer (void)
{
    struct server s;
    struct end crowd[10], modest;
    int before;

    server_init (&s);
    end_open (&modest, &s);
    for (int i = 0; i < 10; i++) {
        end_open (&crowd[i], &s);
        for (uint32_t tag = 1; tag <= 300; tag++)
            put (&crowd[i], "null.x", tag, 0, 0);
        msg_stream_flush (crowd[i].stream);
    }
    wait_until (s.requests >= 160) turn (&s, 1);
    before = s.requests;
    put (&modest, "echo.x", 1, 0, 0);
    msg_stream_flush (modest.stream);
    turn (&s, 1);
    ok (before < 3000 && s.echo_at > before && s.echo_at <= before + 17,
        "an idle client that sends a request is served before the next turns of clients whose requests wait: after "
        "%d requests of others",
        s.echo_at - before - 1);
    for (int i = 0; i < 10; i++)
        end_close (&crowd[i], &s);
    end_close (&modest, &s);
    server_fini (&s);
}

static void send_one (struct end *e, const char *topic)
{
    put (e, topic, 1, 0, 0);
    msg_stream_flush (e->stream);
}

#define CROWD 3 /* so few clients that one turn usually serves all of them */

/* Each client of the crowd sends one request.  Returns whether one turn has served all.  Only if one turn has served
 * all are all in the round.
 */
static bool crowd_is_served (struct server *s, struct end *crowd)
{
    int before = s->requests;

    for (int i = 0; i < CROWD; i++)
        send_one (&crowd[i], "null.x");
    idt_reactor_run (s->reactor, IDT_REACTOR_NOWAIT);
    usock_turn (s->local);
    if (s->requests == before + CROWD) {
        idt_reactor_run (s->reactor, IDT_REACTOR_NOWAIT); /* the server has read all that the crowd has sent */
        return true;
    }
    wait_until (s->requests == before + CROWD) turn (s, 1);
    turn (s, CROWD);
    return false;
}

/* An idle client sends a request beside clients that send one request at a time.  A client that was just served is in
 * the round.  The idle client may be the first or the last one that the reactor handles, so there is one of each.
 */
static void test_newcomers_again (void)
{
    struct server s;
    struct end e[CROWD + 2];
    int before;

    server_init (&s);
    for (int i = 0; i < CROWD + 2; i++)
        end_open (&e[i], &s);
    turn (&s, CROWD + 2);
    wait_until (crowd_is_served (&s, &e[1]));
    before = s.requests;
    for (int i = 0; i < CROWD + 2; i++)
        send_one (&e[i], i % (CROWD + 1) == 0 ? "echo.x" : "null.x");
    wait_until (s.requests == before + CROWD + 2) turn (&s, 1);
    ok (s.echo_at == before + 2,
        "a request of an idle client is served before the requests of clients that are in the round: after %d of them",
        s.echo_at - before - 2);
    for (int i = 0; i < CROWD + 2; i++)
        end_close (&e[i], &s);
    server_fini (&s);
}

static void test_garbage (void)
{
    unsigned char frame[256], bad[256];
    size_t size = make_frame (frame, sizeof (frame), 7);
    struct server s;
    struct end good, e;
    unsigned seed = 1;
    int closed = 0, answered = 0;
    static const struct {
        const char *what;
        size_t at;
        unsigned char byte;
    } damages[] = {
        { "the frame's magic", 0, 0x55 },
        { "a length above the limit", 4, 0xff },
        { "a length of 2 GiB", 4, 0x7f },
    };

    server_init (&s);
    end_open (&good, &s);
    for (size_t i = 0; i < sizeof (damages) / sizeof (damages[0]); i++) {
        end_open (&e, &s);
        memcpy (bad, frame, size);
        bad[damages[i].at] = damages[i].byte;
        ok (write (e.fd, bad, size) == (ssize_t)size && is_closed (&e, &s),
            "a connection is closed if its frame is damaged: %s", damages[i].what);
        end_close (&e, &s);
    }
    for (int i = 0; i < 8; i++) { /* the last 20 bytes are the header: magic, version, type */
        static const unsigned char types[] = { 0, 3, 5, 7, 8, 15, 16, 255 };

        end_open (&e, &s);
        memcpy (bad, frame, size);
        bad[size - 18] = types[i];
        closed += write (e.fd, bad, size) == (ssize_t)size && is_closed (&e, &s);
        end_close (&e, &s);
    }
    ok (closed == 8, "a message of a type that clients may not send ends the connection");
    closed = 0;
    for (int i = 0; i < 500; i++) {
        end_open (&e, &s);
        memcpy (bad, frame, size);
        for (int k = rand_r (&seed) % 3; k >= 0; k--)
            bad[rand_r (&seed) % size] = rand_r (&seed);
        if (write (e.fd, bad, size) != (ssize_t)size)
            break;
        answered += get (&e, &s) != 0;
        closed += e.eof;
        end_close (&e, &s);
    }
    ok (usock_count (s.local) == 1 && closed > 50, "of 500 damaged frames %d were answered, %d ended their connection",
        answered, closed);
    ok (is_served (&good, &s), "damaged frames of one client do not end the connection of another client");
    end_close (&good, &s);
    server_fini (&s);
}

static void test_size (void)
{
    struct server s;
    struct end e;

    server_init (&s);
    end_open (&e, &s);
    put (&e, "echo.x", 1, MAX_MESSAGE - 100, 0);
    ok (get (&e, &s) == 1, "a message up to local.max-message is accepted");
    put (&e, "echo.x", 2, MAX_MESSAGE, 0);
    ok (is_closed (&e, &s), "a message larger than local.max-message ends the connection");
    end_close (&e, &s);
    server_fini (&s);
}

static void test_deaf (void)
{
    struct server s;
    struct end deaf, good;
    size_t written = 0;

    server_init (&s);
    end_open (&deaf, &s);
    end_open (&good, &s);
    wait_until (s.gone > 0)
    {
        if (msg_stream_queued (deaf.stream) < 100000) {
            put (&deaf, "echo.x", 1, 50000, 0);
            written += 50000;
        }
        msg_stream_flush (deaf.stream);
        turn_slowly (&s);
    }
    ok (s.gone == 1 && written > MAX_QUEUE, "a client that never reads is disconnected (after %zu KB)", written / 1000);
    ok (is_served (&good, &s) && usock_count (s.local) == 1,
        "while one client does not read its responses, other clients are served");
    end_close (&deaf, NULL);
    end_close (&good, &s);
    server_fini (&s);
}

/* More output waits for a client than local.max-queue allows, but the client reads all the time. */
static void test_slow_reader (void)
{
    struct server s;
    struct end e;
    int got = 0;

    server_init (&s);
    end_open (&e, &s);
    for (uint32_t tag = 1; tag <= 200; tag++)
        put (&e, "echo.x", tag, 50000, 0);
    while (got < 200 && get (&e, &s) == (uint32_t)got + 1)
        got++;
    ok (got == 200 && s.gone == 0,
        "a client that reads its responses is never disconnected, however many it has requested (%d)", got);
    end_close (&e, &s);
    server_fini (&s);
}

/* An event is queued after the responses.  If it does not fit, it cannot be replaced by an error. */
static void test_no_room (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    struct server s;
    struct end e;
    int n = 0;

    server_init (&s);
    end_open (&e, &s);
    put (&e, "null.x", 1, 0, 0);
    msg_stream_flush (e.stream);
    wait_until (s.requests == 1) turn_slowly (&s);
    struct peer *client = router_peer (s.router, idt_msg_route_oldest (s.last));
    idt_msg_t *answer = idt_msg_respond (s.last, 0);
    memset (idt_msg_alloc_payload (answer, 2 * MAX_QUEUE), 'x', 2 * MAX_QUEUE);
    router_response_new (s.router, &s.null, answer);
    ok (get (&e, &s) == 1 && e.errnum == ENOBUFS && s.gone == 0,
        "a response that does not fit into a client's queue is replaced by an error");
    idt_msg_set_topic (msg, "a");
    memset (idt_msg_alloc_payload (msg, 100000), 'x', 100000);
    while (n < 100 && client->send (client->arg, msg) == 0)
        n++;
    turn (&s, 3);
    ok (n == 10 && s.gone == 1, "a client whose events do not fit into its queue is disconnected");
    idt_msg_unref (msg);
    end_close (&e, &s);
    server_fini (&s);
}

/* --- pauses ------------------------------------------------------------------------------------------------ */

/* A service has no room for a request.  The broker sends the request to the service again, and it is answered in the
 * end.
 */
/* The router cannot make a response.  So the requester's connection ends, after the current calls have returned. */
static void test_hung_up (void)
{
    struct server s;
    struct end a, b;

    server_init (&s);
    end_open (&a, &s);
    end_open (&b, &s);
    put (&a, "null.x", 1, 0, 0);
    ok (get (&a, &s) == 0 && !a.eof && s.last, "a client waits for a response");
    struct peer *requester = router_peer (s.router, idt_msg_route_newest (s.last));
    requester->hang_up (requester->arg);
    ok (router_peer (s.router, requester->uuid) == requester,
        "a client whose connection the broker closes still exists until the closing call returns");
    ok (is_closed (&a, &s) && is_served (&b, &s),
        "when the broker closes the connection of one client, other clients stay connected");
    end_close (&a, &s);
    end_close (&b, &s);
    server_fini (&s);
}

static void test_busy (void)
{
    struct server s;
    struct end e;

    server_init (&s);
    end_open (&e, &s);
    s.full = 3;
    for (uint32_t tag = 1; tag <= 5; tag++)
        put (&e, "echo.x", tag, 0, 0);
    msg_stream_flush (e.stream);
    wait_until (s.full == 0) turn_slowly (&s);
    for (uint32_t tag = 1; tag <= 5; tag++)
        if (get_slowly (&e, &s) != tag || e.errnum != 0)
            s.full++;
    ok (s.full == 0, "a request that a service with a full queue refused is sent again, in order");
    s.full = 1000000;
    put (&e, "echo.x", 7, 0, 0);
    msg_stream_flush (e.stream);
    wait_until (router_stats (s.router).failed > 0) turn_slowly (&s);
    ok (get_slowly (&e, &s) == 7 && e.errnum == EAGAIN,
        "a request to a service whose queue stays full fails with EAGAIN");
    end_close (&e, &s);
    server_fini (&s);
}

static void put_frame_header (struct end *e, uint32_t size)
{
    uint32_t header[2] = { UINT32_C (0xffee0012), htonl (size) };

    if (write (e->fd, header, sizeof (header)) != sizeof (header))
        bail_out ("cannot write");
}

static void test_dribble (void)
{
    struct server s;
    struct end slow, e;

    server_init (&s);
    end_open (&slow, &s);
    end_open (&e, &s);
    put_frame_header (&slow, MAX_MESSAGE);
    turn (&s, 3);
    put (&e, "echo.x", 1, 100000, 0);
    ok (get (&e, &s) == 0 && s.requests == 0,
        "a long message waits while another client's message uses the space of local.input-pool");
    wait_until (s.gone == 1) turn_slowly (&s);
    ok (s.gone == 1 && get_slowly (&e, &s) == 1,
        "a client whose long message arrives too slowly is disconnected, and the waiting message is read");
    end_close (&slow, NULL);
    end_close (&e, &s);
    server_fini (&s);
}

static void open_as (struct end *e, struct server *s, uid_t user)
{
    pretended = user;
    end_open (e, s);
    pretended = 0;
}

/* Whether the server now reads a long message from a new connection of this user. */
static bool is_read (struct server *s, struct end *e, uid_t user)
{
    open_as (e, s, user);
    put (e, "echo.x", 1, 100000, 0);
    return get (e, s) == 1;
}

/* Of the pool of 1 MiB, all guests together have half, and one guest as much as is then free of this half.  So a guest
 * can send two messages of 128 KiB, but not three.
 */
static void test_input_of_users (void)
{
    struct server s;
    struct end first, second, third, other, owner;

    server_init_as (&s, true);
    open_as (&first, &s, 4711);
    open_as (&second, &s, 4711);
    put_frame_header (&first, MAX_MESSAGE);
    put_frame_header (&second, MAX_MESSAGE);
    turn (&s, 3);
    ok (!is_read (&s, &third, 4711), "a guest gets no further space of local.input-pool on another connection");
    ok (is_read (&s, &other, 4712), "while one guest uses its share of local.input-pool, another guest has space");
    ok (is_read (&s, &owner, 0), "while a guest uses its share of local.input-pool, the owner has space");
    end_close (&first, &s);
    ok (get_slowly (&third, &s) == 1, "a guest that waited for space of local.input-pool is read when space is free");
    end_close (&second, &s);
    end_close (&third, &s);
    end_close (&other, &s);
    end_close (&owner, &s);
    server_fini (&s);
}

/* Request nine responses of 100,000 bytes and read none of them. */
static void ask_much (struct server *s, struct end *e)
{
    int before = s->requests;

    open_as (e, s, 4711);
    for (uint32_t tag = 1; tag <= 9; tag++)
        put (e, "echo.x", tag, 100000, 0);
    wait_until (s->requests == before + 9)
    {
        msg_stream_flush (e->stream);
        turn (s, 1);
    }
}

/* Of the pool of 2 MiB, all guests together have half.  Unread output of one guest on two connections is added. */
static void test_output_of_users (void)
{
    struct server s;
    struct end first, second, other;
    int refused = 0;

    server_init_as (&s, true);
    ask_much (&s, &first);
    ask_much (&s, &second);
    for (uint32_t tag = 1; tag <= 9; tag++)
        refused += get_slowly (&second, &s) == tag && second.errnum == ENOBUFS;
    ok (refused > 0, "a guest gets no further space of local.output-pool on another connection: %d responses refused",
        refused);
    ok (is_read (&s, &other, 4712) && other.errnum == 0,
        "while one guest uses its share of local.output-pool, another guest gets a response");
    end_close (&first, &s);
    end_close (&second, &s);
    end_close (&other, &s);
    server_fini (&s);
}

static void test_many (void)
{
    struct server s;
    struct end ends[MAX_CLIENTS], e;
    int welcome = 0, served = 0;

    server_init (&s);
    for (int i = 0; i < MAX_CLIENTS; i++) {
        end_open (&ends[i], &s);
        welcome += ends[i].welcome == 0;
    }
    end_open (&e, &s);
    ok (welcome == MAX_CLIENTS && e.welcome == EMFILE && is_closed (&e, &s),
        "a client above local.max-clients is refused with EMFILE");
    end_close (&e, &s);
    for (int i = 0; i < MAX_CLIENTS; i++)
        served += is_served (&ends[i], &s);
    ok (served == MAX_CLIENTS, "when a client was refused with EMFILE, the connected clients are served");
    end_close (&ends[0], &s);
    end_open (&ends[0], &s);
    ok (is_served (&ends[0], &s), "when one of local.max-clients clients disconnects, another client may connect");
    for (int i = 0; i < MAX_CLIENTS; i++)
        end_close (&ends[i], &s);
    ok (usock_count (s.local) == 0, "the end of each of local.max-clients connections is noticed");
    server_fini (&s);
}

/* If the process may open few files, clients do not get all of these. */
static void test_few_files (void)
{
    struct rlimit old, low;
    struct server s;
    struct end ends[MAX_CLIENTS];
    int welcome = 0;

    getrlimit (RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 60;
    setrlimit (RLIMIT_NOFILE, &low);
    server_init (&s);
    setrlimit (RLIMIT_NOFILE, &old);
    for (int i = 0; i < MAX_CLIENTS; i++) {
        end_open (&ends[i], &s);
        welcome += ends[i].welcome == 0;
    }
    ok (welcome == 30 && ends[30].welcome == EMFILE, "if the process may open 60 files, clients get half of them (%d)",
        welcome);
    ok (is_served (&ends[29], &s), "the last client that gets one of few files is served");
    for (int i = 0; i < MAX_CLIENTS; i++)
        end_close (&ends[i], &s);
    server_fini (&s);
}

/* The process has no free descriptor.  A client that connects is refused, and does not wait; otherwise its pending
 * connection would wake the broker all the time.
 */
static void test_descriptors (void)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    struct rlimit old, low;
    struct server s;
    struct end good, e;
    int fds[MAX_CLIENTS + 30], n = 0, taken = 0;
    unsigned char byte = 0;

    server_init (&s);
    end_open (&good, &s);
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", s.path);
    for (size_t i = 0; i < sizeof (fds) / sizeof (fds[0]); i++)
        fds[i] = socket (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    getrlimit (RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = fds[sizeof (fds) / sizeof (fds[0]) - 1] + 1;
    setrlimit (RLIMIT_NOFILE, &low);
    for (; n < MAX_CLIENTS + 30 && byte == 0; n++) {
        if (connect (fds[n], (struct sockaddr *)&addr, sizeof (addr)) < 0)
            bail_out ("cannot connect");
        turn (&s, 3);
        byte = EIO;
        if (read (fds[n], &byte, 1) == 1 && byte == 0)
            taken++;
    }
    ok (taken == 31, "when no descriptor is free, clients get the descriptors reserved for them (%d)", taken);
    ok (byte == EMFILE, "when no descriptor is free or reserved, the next client is refused with EMFILE");
    ok (is_served (&good, &s), "when no descriptor is free, connected clients are served");
    setrlimit (RLIMIT_NOFILE, &old);
    for (size_t i = 0; i < sizeof (fds) / sizeof (fds[0]); i++)
        close (fds[i]);
    turn (&s, 3);
    end_open (&e, &s);
    ok (is_served (&e, &s), "when descriptors are free again, a new client is accepted");
    end_close (&e, &s);
    end_close (&good, &s);
    server_fini (&s);
}

static void test_path (void)
{
    struct server s;
    struct usock *l;
    idt_error_t err;
    char path[300], file[128];
    struct stat st;

    server_init (&s);
    struct usocks *all = s.all;
    if (!(s.all = usocks_create (s.reactor))) /* a second object, as another process has one */
        bail_out ("no sockets");
    ok (!listen_at (&s, s.path, &err) && errno == EADDRINUSE && strstr (err.text, "another broker"),
        "a socket that another process serves is not taken over");
    turn (&s, 2);
    snprintf (path, sizeof (path), "%s/%0200d", s.dir, 0);
    ok (!listen_at (&s, path, &err) && errno == ENAMETOOLONG && strstr (err.text, "shorter rundir"),
        "a path too long for a socket is refused with a message");
    snprintf (file, sizeof (file), "%s/file", s.dir);
    close (open (file, O_CREAT | O_WRONLY, 0600));
    ok (!listen_at (&s, file, &err) && stat (file, &st) == 0 && S_ISREG (st.st_mode),
        "a file that is not a socket is not replaced");
    unlink (file);
    int fd = socket (AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s/left", s.dir);
    bind (fd, (struct sockaddr *)&addr, sizeof (addr));
    close (fd);
    l = listen_at (&s, addr.sun_path, &err);
    ok (l != NULL, "a socket that no process serves is replaced");
    usock_destroy (l);
    usocks_destroy (s.all);
    s.all = all;
    server_fini (&s);
}

static void test_ending (void)
{
    struct server s;
    struct end e, other;

    server_init (&s);
    end_open (&e, &s);
    end_open (&other, &s);
    put (&e, "null.x", 1, 0, 0);
    put (&e, "echo.x", 2, 100, 0);
    msg_stream_flush (e.stream);
    idt_reactor_run (s.reactor, IDT_REACTOR_NOWAIT);
    usock_turn (s.local);
    usock_destroy (s.local);
    s.local = NULL;
    msg_stream_fill (e.stream, &e.eof);
    idt_msg_t *msg = msg_stream_next (e.stream, NULL);
    ok (msg && idt_msg_matchtag (msg) == 2 && s.gone == 2,
        "when a server is destroyed, responses that wait are written");
    ok (msg_stream_fill (e.stream, &e.eof) <= 0 && e.eof,
        "when the last responses of a destroyed server are written, the connection ends");
    idt_msg_unref (msg);
    end_close (&e, NULL);
    end_close (&other, NULL);
    server_fini (&s);
}

static void test_unread (void)
{
    struct server s;
    struct end e, other;

    server_init (&s);
    end_open (&e, &s);
    end_open (&other, &s);
    ok (is_served (&e, &s) && !usock_unread (s.local), "a client that has read everything leaves nothing unread");
    put (&e, "echo.x", 1, 100, 0);
    msg_stream_flush (e.stream);
    wait_until (usock_unread (s.local)) turn (&s, 1);
    ok (is_served (&other, &s) && usock_unread (s.local),
        "a response that one client has not read is unread even while other clients read theirs");
    ok (get (&e, &s) == 1 && !usock_unread (s.local), "a response is no longer unread when its client has read it");
    end_close (&e, &s);
    end_close (&other, &s);
    ok (!usock_unread (s.local), "without clients no response is unread");
    server_fini (&s);
}

/* If a client that serves requests disconnects, its requesters get an error. */
static void test_service (void)
{
    struct server s;
    struct end service, e;
    idt_msg_t *msg;

    server_init (&s);
    end_open (&service, &s);
    put (&service, "echo.x", 1, 0, 0);
    get (&service, &s);
    end_open (&e, &s);
    put (&e, "none.x", 2, 0, 0);
    ok (get (&e, &s) == 2, "a request for an unknown service gets an error");
    msg = idt_msg_create (IDT_MSGTYPE_RESPONSE);
    idt_msg_set_matchtag (msg, 3);
    idt_msg_set_topic (msg, "null.x");
    idt_msg_route_clear (msg);
    msg_stream_put (service.stream, msg);
    idt_msg_unref (msg);
    msg = idt_msg_create (IDT_MSGTYPE_EVENT);
    idt_msg_set_topic (msg, "a.b");
    idt_msg_route_clear (msg);
    msg_stream_put (service.stream, msg);
    idt_msg_unref (msg);
    ok (is_served (&service, &s) && s.events == 1,
        "a response that belongs to no request is dropped, and an event is passed on");
    end_close (&service, &s);
    end_close (&e, &s);
    server_fini (&s);
}

/* --- ranks of a process ------------------------------------------------------------------------------------ */

static void choose (struct end *e, uint32_t type, uint32_t rank)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_CONTROL);

    idt_msg_set_control (msg, type, rank);
    msg_stream_put (e->stream, msg);
    msg_stream_flush (e->stream);
    idt_msg_unref (msg);
}

/* The status of the rank that the client named; -1: no response arrives. */
static int chosen (struct end *e, struct server *s)
{
    idt_msg_t *msg = NULL;
    int status = -1;

    for (int i = 0; i < 100 && !e->eof && !msg; i++) {
        turn (s, 1);
        if (msg_stream_fill (e->stream, &e->eof) < 0 && errno != EAGAIN)
            e->eof = true;
        msg = msg_stream_next (e->stream, NULL);
    }
    if (msg && idt_msg_type (msg) == IDT_MSGTYPE_CONTROL && idt_msg_control_type (msg) == MSG_CONTROL_RANK)
        status = (int)idt_msg_control_status (msg);
    idt_msg_unref (msg);
    return status;
}

static int open_files (void)
{
    int n = 0;

    for (int fd = 0; fd < 1000; fd++)
        n += fcntl (fd, F_GETFD) >= 0;
    return n;
}

static void test_ranks (void)
{
    struct server s, one, two;
    struct end plain, e, f;
    struct stat st;
    char uri[200];
    int files;

    server_init (&s);
    files = open_files ();
    server_beside (&one, &s, 1, "");
    ok (stat (one.path, &st) < 0 && open_files () == files, "a rank without a socket of its own needs no descriptor");
    usock_uri (one.local, uri, sizeof (uri));
    ok (strncmp (uri, "local://", 8) == 0 && strncmp (uri + 8, s.path, strlen (s.path)) == 0
            && strcmp (uri + 8 + strlen (s.path), "?rank=1") == 0,
        "a rank without a socket of its own is reached at the first rank's socket: %s", uri);
    server_beside (&two, &s, 2, "0,2-7");
    usock_uri (two.local, uri, sizeof (uri));
    ok (stat (two.path, &st) == 0 && strcmp (uri + 8, two.path) == 0,
        "a rank named in local.sockets has its own socket: %s", uri);

    end_open (&plain, &s);
    end_open (&e, &s);
    choose (&e, MSG_CONTROL_RANK, 1);
    ok (chosen (&e, &s) == 0 && usock_count (one.local) == 1, "a client may name the rank that it wants to reach");
    turn (&s, 2);
    ok (usock_count (s.local) == 0 && s.gone == 0, "a client that named its rank belongs to that rank only");
    put (&e, "echo.x", 5, 10, 0);
    msg_stream_flush (e.stream);
    turn (&s, 2);
    ok (s.requests == 0 && get (&e, &one) == 5 && one.requests == 1,
        "the rank that a client named answers the client's requests");
    ok (is_served (&plain, &s) && s.requests == 1, "a client that names no rank belongs to the rank of the socket");
    choose (&plain, MSG_CONTROL_RANK, 1);
    ok (is_closed (&plain, &s), "a client that names a rank after its first request is disconnected");
    choose (&e, MSG_CONTROL_RANK, 0);
    ok (is_closed (&e, &one) && usock_count (one.local) == 0, "a client that names a rank twice is disconnected");
    end_close (&plain, &s);
    end_close (&e, &s);

    end_open (&e, &s);
    choose (&e, MSG_CONTROL_RANK, 0);
    ok (chosen (&e, &s) == 0 && is_served (&e, &s), "a client may name the rank that owns the socket");
    end_open (&f, &s);
    choose (&f, MSG_CONTROL_RANK, 7);
    ok (chosen (&f, &s) == EHOSTUNREACH && is_closed (&f, &s),
        "a client that names an unknown rank gets an error, and its connection is closed");
    end_close (&f, &s);
    end_open (&f, &s);
    choose (&f, 1, 1);
    ok (is_closed (&f, &s), "a client that sends a control message of an unknown type is disconnected");
    end_close (&f, &s);
    end_close (&e, &s);
    server_unmake (&two);
    server_unmake (&one);
    server_fini (&s);
}

/* A rank without a socket of its own has its own limit of clients. */
static void test_full_rank (void)
{
    struct server s, one;
    struct end ends[MAX_CLIENTS + 1];
    int bad = 0;

    server_init (&s);
    server_beside (&one, &s, 1, "");
    for (int i = 0; i < MAX_CLIENTS + 1; i++) {
        end_open (&ends[i], &s);
        choose (&ends[i], MSG_CONTROL_RANK, 1);
        bad += chosen (&ends[i], &s) != (i < MAX_CLIENTS ? 0 : EMFILE);
        turn (&s, 1);
    }
    ok (bad == 0 && usock_count (one.local) == MAX_CLIENTS && usock_count (s.local) == 0,
        "a rank without a socket of its own accepts clients up to local.max-clients");
    for (int i = 0; i < MAX_CLIENTS + 1; i++)
        end_close (&ends[i], NULL);
    server_unmake (&one);
    server_fini (&s);
}

/* If a rank has as many clients as it may have, other ranks are still reached at its socket. */
static void test_full_first (void)
{
    struct server s, one;
    struct end ends[MAX_CLIENTS], e;
    int served = 0;

    server_init (&s);
    server_beside (&one, &s, 1, "");
    for (int i = 0; i < MAX_CLIENTS; i++) {
        end_open (&ends[i], &s);
        served += is_served (&ends[i], &s);
    }
    ok (served == MAX_CLIENTS && usock_count (s.local) == MAX_CLIENTS,
        "the rank of a socket accepts clients up to local.max-clients");
    end_open (&e, &s);
    choose (&e, MSG_CONTROL_RANK, 1);
    ok (e.welcome == 0 && chosen (&e, &s) == 0 && is_served (&e, &one),
        "a socket whose rank has local.max-clients clients still accepts clients of another rank");
    end_close (&e, &one);
    end_open (&e, &s);
    put (&e, "echo.x", 1, 0, 0);
    ok (get (&e, &s) == 1 && e.errnum == EMFILE && is_closed (&e, &s),
        "a client above local.max-clients gets EMFILE, and its connection is closed");
    end_close (&e, &s);
    end_open (&e, &s);
    put (&e, "echo.x", 1, 100000, 0);
    ok (get (&e, &s) == 0 && is_closed (&e, &s),
        "a client above local.max-clients that begins with a long message is disconnected without EMFILE");
    end_close (&e, &s);
    for (int i = 0; i < MAX_CLIENTS; i++)
        end_close (&ends[i], &s);
    server_unmake (&one);
    server_fini (&s);
}

/* Silent connections belong to no rank.  A connection that begins with a long message belongs to the rank of the
 * socket.
 */
static void test_callers (void)
{
    struct server s, one;
    struct end silent, gone, garbage, e;
    int files;

    server_init (&s);
    server_beside (&one, &s, 1, "");
    files = open_files ();
    end_open (&silent, &s);
    end_open (&gone, &s);
    end_open (&garbage, &s);
    ok (usock_count (s.local) == 0 && usock_count (one.local) == 0,
        "a connection that has sent nothing belongs to no rank");
    end_close (&gone, &s);
    if (write (garbage.fd, "nonsense", 8) != 8)
        bail_out ("no garbage");
    ok (is_closed (&garbage, &s), "a connection whose first bytes are no frame is closed, before it belongs to a rank");
    end_close (&garbage, &s);
    end_open (&e, &s);
    put (&e, "echo.x", 1, 100000, 0);
    put (&e, "echo.x", 2, 100000, 0);
    ok (get (&e, &s) == 1 && get (&e, &s) == 2,
        "long messages at the beginning of a connection are read by the rank of the socket");
    end_close (&e, &s);
    ok (is_served (&silent, &s), "a silent client is served when it sends a request");
    end_close (&silent, &s);
    end_open (&silent, &s);
    turn (&s, 2);
    server_unmake (&one);
    usock_destroy (s.local);
    s.local = NULL;
    ok (poll (&(struct pollfd){ .fd = silent.fd, .events = POLLIN }, 1, 0) == 1,
        "when the last rank of a process ends, silent connections are closed");
    end_close (&silent, NULL);
    ok (open_files () < files, "connections that belonged to no rank leave no descriptor open");
    server_fini (&s);
}

/* Keep a log line that is about clients. */
static bool take_line (const char *line, void *arg)
{
    if (strstr (line, "a client is "))
        snprintf (arg, 200, "%s", strstr (line, "a client is "));
    return true;
}

static bool is_open (const struct end *e)
{
    return poll (&(struct pollfd){ .fd = e->fd, .events = POLLIN }, 1, 0) == 0;
}

/* At the socket of a rank, as many connections as the rank may have clients send nothing or only part of a message. */
static void test_many_callers (void)
{
    struct server s, one;
    struct end ends[MAX_CLIENTS], more, again;
    char line[200] = "";
    int open = 0;

    server_init (&s);
    log_set_forward (s.log, take_line, line);
    server_beside (&one, &s, 1, "1");
    for (int i = 0; i < MAX_CLIENTS; i++) {
        end_open (&ends[i], &s);
        if (i < 2 && write (ends[i].fd, "\x12", 1) != 1)
            bail_out ("no byte");
    }
    turn (&s, 1);
    for (int i = 0; i < MAX_CLIENTS; i++)
        open += is_open (&ends[i]);
    end_open (&more, &one);
    ok (open == MAX_CLIENTS && is_open (&ends[2]) && is_served (&more, &one),
        "local.max-clients silent connections at a socket do not keep clients from another rank's socket");
    end_close (&more, &one);
    end_open (&more, &s);
    ok (more.welcome == 0 && is_closed (&ends[2], &s) && is_open (&ends[0]) && is_open (&ends[3]),
        "above local.max-clients silent connections the oldest one is closed");
    ok (!strcmp (line,
                 "a client is disconnected before it named a rank: 40 such clients are connected (local.max-clients)"),
        "the log of a closed silent connection names local.max-clients: %s", line);
    ok (is_served (&more, &s), "the connection in place of a closed silent one is served");
    put (&ends[3], "echo.x", 1, 0, 0);
    msg_stream_flush (ends[3].stream);
    end_open (&again, &s);
    ok (is_open (&ends[4]) && get (&ends[3], &s) == 1,
        "a connection that has just sent a request is no longer silent, and is not closed");
    end_close (&again, &s);
    end_close (&more, &s);
    for (int i = 0; i < MAX_CLIENTS; i++)
        end_close (&ends[i], &s);
    server_unmake (&one);
    server_fini (&s);
}

/* All connections that have named no rank have sent part of a message.  For a further connection the oldest one is
 * closed.
 */
static void test_begun_callers (void)
{
    struct server s, one;
    struct end ends[MAX_CLIENTS], e;

    server_init (&s);
    server_beside (&one, &s, 1, "");
    for (int i = 0; i < MAX_CLIENTS; i++) {
        end_open (&ends[i], &s);
        if (write (ends[i].fd, "\x12", 1) != 1)
            bail_out ("no byte");
    }
    turn (&s, 1);
    end_open (&e, &s);
    ok (is_closed (&ends[0], &s) && is_open (&ends[1]) && is_served (&e, &s),
        "if all connections without a rank have sent part of a message, the oldest is closed for a further one");
    end_close (&e, &s);
    for (int i = 0; i < MAX_CLIENTS; i++)
        end_close (&ends[i], &s);
    server_unmake (&one);
    server_fini (&s);
}

/* If the process may open 60 files, clients get 30 of these, and silent connections 15. */
static void test_callers_and_files (void)
{
    struct rlimit few, before;
    struct server s, one;
    struct end ends[16];
    char line[200] = "";

    if (getrlimit (RLIMIT_NOFILE, &before) < 0)
        bail_out ("no limit");
    few = (struct rlimit){ 60, before.rlim_max };
    if (setrlimit (RLIMIT_NOFILE, &few) < 0)
        bail_out ("no limit");
    server_init (&s);
    server_beside (&one, &s, 1, "");
    log_set_forward (s.log, take_line, line);
    setrlimit (RLIMIT_NOFILE, &before);
    for (int i = 0; i < 15; i++)
        end_open (&ends[i], &s);
    ok (is_open (&ends[0]), "half of the connections that the open files of the process allow may be silent");
    end_open (&ends[15], &s);
    ok (is_closed (&ends[0], &s) && is_open (&ends[1]) && is_served (&ends[15], &s),
        "if half of the connections are silent, the oldest one is closed for a further one");
    ok (strstr (line, "15 such clients are connected (ulimit -n)") != NULL,
        "the log of a silent connection closed for too few files names ulimit -n: %s", line);
    for (int i = 0; i < 16; i++)
        end_close (&ends[i], &s);
    server_unmake (&one);
    server_fini (&s);
}

/* The first rank is run again, after its socket was closed, or while another rank uses its socket. */
static void test_first_again (void)
{
    struct server s, one, two;
    struct end e;
    char path[108], uri[200];

    server_init (&s);
    server_beside (&one, &s, 1, "1");
    memcpy (path, s.path, sizeof (path));
    usock_destroy (s.local);
    if (!(s.local = listen_at (&s, path, NULL)))
        bail_out ("it does not listen again");
    end_open (&e, &s);
    ok (is_served (&e, &s),
        "if the other ranks have sockets of their own, the first rank has its socket back when it starts again");
    end_close (&e, &s);
    server_unmake (&one);
    usock_destroy (s.local);
    s.local = NULL;
    ok (access (path, F_OK) < 0, "the socket of the first rank is removed when no rank uses it");
    server_beside (&two, &s, 2, "");
    usock_uri (two.local, uri, sizeof (uri));
    memcpy (two.path, path, sizeof (path));
    end_open (&e, &two);
    choose (&e, MSG_CONTROL_RANK, 2);
    ok (strstr (uri, "local-0?rank=2") && chosen (&e, &two) == 0 && is_served (&e, &two),
        "a rank without a socket of its own that starts after the first rank has ended is reached at the first "
        "rank's socket: %s",
        uri);
    end_close (&e, &two);
    s.sockets = "";
    if (!(s.local = listen_at (&s, path, NULL)))
        bail_out ("it does not listen again");
    end_open (&e, &s);
    ok (is_served (&e, &s),
        "the first rank is reached at its socket when it starts after a rank that uses that socket");
    end_close (&e, &s);
    server_unmake (&two);
    server_fini (&s);
}

/* A rank ends, and another rank without a socket of its own is still reached at its socket. */
static void test_inherited (void)
{
    struct server s, one;
    struct end e, before;
    char path[108], uri[200];

    server_init (&s);
    server_beside (&one, &s, 1, "");
    end_open (&before, &s);
    choose (&before, MSG_CONTROL_RANK, 1);
    chosen (&before, &s);
    snprintf (path, sizeof (path), "%s", s.path);
    usock_destroy (s.local);
    s.local = NULL;
    ok (is_served (&before, &one), "a client of another rank stays connected when the rank of the socket ends");
    snprintf (one.path, sizeof (one.path), "%s", path);
    end_open (&e, &one);
    choose (&e, MSG_CONTROL_RANK, 1);
    ok (chosen (&e, &one) == 0 && is_served (&e, &one),
        "at the socket of a rank that has ended, another rank is still reached");
    usock_uri (one.local, uri, sizeof (uri));
    ok (strstr (uri, "local-0?rank=1") != NULL,
        "a rank is reached under the same URI after the rank of the socket has ended: %s", uri);
    end_close (&e, &one);
    end_open (&e, &one);
    put (&e, "echo.x", 1, 0, 0);
    ok (get (&e, &one) == 1 && e.errnum == EHOSTDOWN && is_closed (&e, &one),
        "a client that names no rank gets EHOSTDOWN at the socket of a rank that has ended");
    end_close (&e, &one);
    end_close (&before, &one);
    if (!(s.local = listen_at (&s, path, NULL)))
        bail_out ("it does not listen again");
    end_open (&e, &s);
    ok (is_served (&e, &s), "a rank that starts again is reached at its socket");
    end_close (&e, &s);
    end_open (&e, &s);
    choose (&e, MSG_CONTROL_RANK, 1);
    ok (chosen (&e, &s) == 0 && is_served (&e, &one),
        "at the socket of a rank that started again, another rank is still reached");
    end_close (&e, &one);
    usock_destroy (s.local);
    s.local = NULL;
    server_unmake (&one);
    ok (access (path, F_OK) < 0, "a socket whose rank was started again is removed when no rank uses it");
    server_fini (&s);
}

int main (void)
{
    test_good ();
    test_pieces ();
    test_fairness ();
    test_newcomer ();
    test_newcomers_again ();
    test_garbage ();
    test_size ();
    test_deaf ();
    test_slow_reader ();
    test_no_room ();
    test_hung_up ();
    test_busy ();
    test_dribble ();
    test_input_of_users ();
    test_output_of_users ();
    test_many ();
    test_few_files ();
    test_descriptors ();
    test_path ();
    test_ending ();
    test_unread ();
    test_service ();
    test_ranks ();
    test_full_rank ();
    test_full_first ();
    test_callers ();
    test_many_callers ();
    test_begun_callers ();
    test_callers_and_files ();
    test_first_again ();
    test_inherited ();
    return done_testing ();
}
