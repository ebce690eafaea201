/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_test.c - modules in a thread, behind two mailboxes, and inline: both respond alike
 *
 * The test is the broker: it puts requests in, and takes out the messages that the module sends.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <syslog.h>

#include "libidtree/handle.h"
#include "broker/module/mailbox.h"
#include "test/tap.h"

/* --- two transports ------------------------------------------------------------------------- */

struct link {
    struct mailbox *in;  /* to the module */
    struct mailbox *out; /* to the test */
    char log[256];
    char started[256]; /* how it reported its start: errno, text */
    bool attached;
};

static int link_send (void *impl, const idt_msg_t *msg)
{
    struct link *link = impl;

    if (mailbox_push_new (link->out, idt_msg_ref (msg), true) == 0)
        return 0;
    idt_msg_unref (msg);
    return -1;
}

static const idt_msg_t *link_recv (void *impl)
{
    struct link *link = impl;

    return mailbox_pop (link->in);
}

static int link_pollfd (void *impl)
{
    struct link *link = impl;

    return mailbox_pollfd (link->in);
}

static const char *link_attr_get (void *impl, const char *name)
{
    if (strcmp (name, "rank") == 0)
        return "5";
    errno = ENOENT;
    return NULL;
}

static int link_overlay_attach (void *impl, const struct idt_overlay_ops *ops, void *arg)
{
    struct link *link = impl;

    if (link->attached) {
        errno = EEXIST;
        return -1;
    }
    link->attached = true;
    return 0;
}

static void link_log (void *impl, int level, const char *name, const char *text)
{
    struct link *link = impl;

    snprintf (link->log, sizeof (link->log), "%d %s %s", level, name, text);
}

static void link_destroy (void *impl)
{
}

static int link_started (void *impl, int errnum, const char *text)
{
    struct link *link = impl;

    snprintf (link->started, sizeof (link->started), "%d %s", errnum, text);
    return 0;
}

static const struct idt_transport threaded = {
    .send = link_send,
    .recv = link_recv,
    .pollfd = link_pollfd,
    .attr_get = link_attr_get,
    .started = link_started,
    .destroy = link_destroy,
};

static const struct idt_transport hosted = {
    .send = link_send,
    .attr_get = link_attr_get,
    .overlay_attach = link_overlay_attach,
    .log = link_log,
    .destroy = link_destroy,
};

static struct link link_create (void)
{
    struct link link = {
        .in = mailbox_create (1000, idt_msg_unref),
        .out = mailbox_create (1000, idt_msg_unref),
    };

    if (!link.in || !link.out)
        bail_out ("mailbox_create");
    return link;
}

static void link_fini (struct link *link)
{
    mailbox_destroy (link->in);
    mailbox_destroy (link->out);
}

/* --- a module ------------------------------------------------------------------------------- */

struct ctx {
    idt_t *h;
    int count;
    idt_future_t *f;        /* the module's own request in progress */
    const idt_msg_t *asker; /* the request that waits for its response */
};

static void count_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ctx *ctx = arg;

    (void)idt_respond_pack (h, msg, "{s:i}", "count", ++ctx->count);
}

static void forwarded_cb (idt_future_t *f, void *arg)
{
    struct ctx *ctx = arg;
    const char *s = NULL;

    if (idt_rpc_get (f, &s) == 0)
        (void)idt_respond (ctx->h, ctx->asker, s);
    else
        (void)idt_respond_error (ctx->h, ctx->asker, errno, NULL);
    idt_msg_unref (ctx->asker);
    ctx->asker = NULL;
    ctx->f = NULL;
    idt_future_destroy (f);
}

/* Send a request to another service, and respond when its response arrives. */
static void forward_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ctx *ctx = arg;

    ctx->asker = idt_msg_ref (msg);
    ctx->f = idt_rpc (h, "other.ask", idt_msg_string (msg), IDT_NODEID_UPSTREAM, 0);
    if (!ctx->f || idt_future_then (ctx->f, -1, forwarded_cb, ctx) < 0)
        bail_out ("forward");
}

/* A wait with timeout 0: it always fails inline. */
static void wait_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    idt_future_t *f = idt_rpc (h, "other.ask", NULL, IDT_NODEID_ANY, 0);
    int rc = idt_future_wait (f, 0);

    (void)idt_respond_error (h, msg, rc < 0 ? errno : EINVAL, NULL);
    idt_future_destroy (f);
}

/* A future that is ready before it has a callback: the reactor calls the callback later. */
static void later_done_cb (idt_future_t *f, void *arg)
{
    struct ctx *ctx = arg;

    ctx->count += 100;
    idt_future_destroy (f);
}

static void later_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct ctx *ctx = arg;
    idt_future_t *f = idt_rpc (h, "other.tell", NULL, IDT_NODEID_ANY, IDT_RPC_NORESPONSE);

    if (!f || idt_future_then (f, -1, later_done_cb, ctx) < 0)
        bail_out ("later");
    (void)idt_respond_pack (h, msg, "{s:i}", "count", ctx->count);
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_REQUEST, "mod.count", count_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "mod.forward", forward_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "mod.wait", wait_cb, IDT_ROLE_ALL },
    { IDT_MSGTYPE_REQUEST, "mod.later", later_cb, IDT_ROLE_ALL },
    IDT_HANDLERS_END,
};

static int init (idt_t *h, int argc, char **argv, void **ctxp, idt_error_t *errp)
{
    struct ctx *ctx;

    if (argc > 0) {
        snprintf (errp->text, sizeof (errp->text), "unknown option %s", argv[0]);
        errno = EINVAL;
        return -1;
    }
    if (!(ctx = calloc (1, sizeof (*ctx))))
        return -1;
    ctx->h = h;
    if (idt_handlers_add (h, handlers, ctx) < 0) {
        free (ctx);
        return -1;
    }
    *ctxp = ctx;
    return 0;
}

static void fini (idt_t *h, void *arg)
{
    struct ctx *ctx = arg;

    if (ctx->asker)
        (void)idt_respond_error (h, ctx->asker, ESHUTDOWN, NULL);
    idt_msg_unref (ctx->asker);
    idt_future_destroy (ctx->f);
    idt_handlers_remove (h, handlers);
    free (ctx);
}

IDT_MODULE ("mod", init, fini)

/* --- the broker's side ---------------------------------------------------------------------- */

struct host {
    struct link link;
    idt_t *h;
    bool inlined;
    idt_reactor_t *r;
    void *ctx;
    pthread_t thread;
    int rc; /* of idt_mod_main */
    int errnum;
    int argc;
};

static char *options[] = { "--nosuch", NULL };

static void *module_thread (void *arg)
{
    struct host *host = arg;

    host->rc = idt_mod_main (host->h, host->argc, options);
    host->errnum = errno;
    return NULL;
}

static void host_start (struct host *host, bool inlined)
{
    idt_error_t error = { .text = "" };

    *host = (struct host){ .inlined = inlined, .link = link_create () };
    host->h = idt_handle_create (inlined ? &hosted : &threaded, &host->link);
    if (!host->h || idt_handle_set_module (host->h, "mod") < 0)
        bail_out ("idt_handle_create");
    if (inlined)
        idt_handle_set_max_json (host->h, 1000);
    if (inlined) {
        host->r = idt_reactor_create ();
        if (idt_set_reactor (host->h, host->r) < 0 || idt_module.init (host->h, 0, NULL, &host->ctx, &error) < 0)
            bail_out ("init");
    }
    else if (pthread_create (&host->thread, NULL, module_thread, host) != 0)
        bail_out ("pthread_create");
}

static void host_stop (struct host *host)
{
    if (host->inlined)
        idt_module.fini (host->h, host->ctx);
    else {
        mailbox_close (host->link.in);
        pthread_join (host->thread, NULL);
    }
    idt_close (host->h);
    idt_reactor_destroy (host->r);
}

static void put (struct host *host, idt_msg_t *msg)
{
    if (!host->inlined) {
        if (mailbox_push_new (host->link.in, msg, true) < 0)
            bail_out ("mailbox_push_new");
        return;
    }
    idt_handle_dispatch (host->h, msg);
    idt_msg_unref (msg);
}

/* The next message that the module sends. */
static const idt_msg_t *take (struct host *host)
{
    struct pollfd pfd = { .fd = mailbox_pollfd (host->link.out), .events = POLLIN };
    const idt_msg_t *msg;

    if (host->inlined) {
        idt_reactor_run (host->r, IDT_REACTOR_NOWAIT);
        return mailbox_pop (host->link.out);
    }
    wait_until ((msg = mailbox_pop (host->link.out)) || errno == EPIPE) poll (&pfd, 1, TAP_WAIT_S * 1000);
    return msg;
}

static void ask_with (struct host *host, const char *topic, const char *payload, uint32_t rolemask, int flags)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    idt_msg_set_topic (msg, topic);
    idt_msg_set_string (msg, payload);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1000, .rolemask = rolemask });
    idt_msg_set_matchtag (msg, 99);
    if (flags)
        idt_msg_set_flag (msg, flags);
    idt_msg_route_push (msg, "98f3bf69-0000-4000-8000-000000000000");
    idt_msg_route_push (msg, "ae4a1b51-0000-4000-8000-000000000000");
    idt_msg_route_push (msg, "7bd090de-0000-4000-8000-000000000000");
    put (host, msg);
}

static void ask (struct host *host, const char *topic, const char *payload, uint32_t rolemask)
{
    ask_with (host, topic, payload, rolemask, 0);
}

/* Whether the module responds with error 'errnum' and a payload that begins with 'text' (NULL: no payload). */
static bool answers (struct host *host, int errnum, const char *text)
{
    const idt_msg_t *msg = take (host);
    const char *s = msg ? idt_msg_string (msg) : NULL;
    bool good = msg && idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE && (int)idt_msg_errnum (msg) == errnum
                && idt_msg_matchtag (msg) == 99 && idt_msg_route_count (msg) == 3
                && (text ? s && strncmp (s, text, strlen (text)) == 0 : !s);

    if (!good)
        diag ("response %d '%s'", msg ? (int)idt_msg_errnum (msg) : -1, s ? s : "-");
    idt_msg_unref (msg);
    return good;
}

/* --- tests ---------------------------------------------------------------------------------- */

static void test_builtins (struct host *host)
{
    const uint32_t owner = IDT_ROLE_OWNER, user = IDT_ROLE_USER;

    ask (host, "mod.ping", "{\"seq\":1,\"pad\":\"x\"}", user);
    ok (answers (host, 0,
                 "{\"seq\":1,\"pad\":\"x\",\"route\":\"98f3bf69!ae4a1b51!7bd090de\","
                 "\"userid\":1000,\"rolemask\":2,\"rank\":5}"),
        "ping returns the request's object, with the route (oldest hop first), the user and the rank");
    ask (host, "mod.ping", "{\"rank\":\"mine\"} ", user);
    ok (answers (host, 0, "{\"rank\":5,\"route\":"),
        "the members of a ping response replace members of the same name in the request");
    ask (host, "mod.ping", " { } ", user);
    ok (answers (host, 0, " {  \"route\":"), "an empty object in a ping is returned with the members of the response");
    ask (host, "mod.ping", NULL, user);
    ok (answers (host, EPROTO, "message has no payload"), "a ping without an object fails with EPROTO");
    ask (host, "mod.stats-get", NULL, user);
    ok (answers (host, 0, "{}"), "stats-get of a module returns an object");
    ask_with (host, "mod.stats-get", NULL, user, IDT_MSGFLAG_STREAMING);
    const idt_msg_t *msg = take (host);
    ok (msg && !idt_msg_has_flag (msg, IDT_MSGFLAG_STREAMING),
        "a method with a single response never marks that response as part of a stream");
    idt_msg_unref (msg);
    char *text = malloc (2000);
    snprintf (text, 2000, "{\"x\":\"%01900d\"}", 0);
    ask (host, "mod.ping", text, user);
    ok (host->inlined ? answers (host, EMSGSIZE, "a JSON text of 1909 bytes is too long for ping: the limit is 1000")
                      : answers (host, 0, "{\"x\":"),
        "an inline module refuses a long JSON text before it is parsed; a module in a thread accepts such a text");
    free (text);
    ask (host, "mod.stats-clear", NULL, user);
    ok (answers (host, EPERM, "mod.stats-clear is for the owner"), "a guest may not send stats-clear");
    ask (host, "mod.stats-clear", NULL, owner);
    ok (answers (host, 0, NULL), "the instance owner may send stats-clear");
    ask (host, "mod.rusage", NULL, user);
    ok (answers (host, 0, "{\"utime\":"), "rusage of a module returns numbers");
    ask (host, "mod.disconnect", NULL, user);
    ask (host, "mod.nosuch", NULL, user);
    ok (answers (host, ENOSYS, "Unknown service method 'mod.nosuch'"),
        "disconnect of a module gets no response; an unknown method fails with ENOSYS");
    ask (host, "model.ping", "{}", user);
    ok (answers (host, ENOSYS, "Unknown service method 'model.ping'"), "ping of another service fails with ENOSYS");
}

static void test_requests (struct host *host)
{
    ask (host, "mod.count", NULL, IDT_ROLE_USER);
    ok (answers (host, 0, "{\"count\":1}"), "a handler of a module responds");
    ask (host, "mod.forward", "{\"x\":1}", IDT_ROLE_USER);
    const idt_msg_t *request = take (host);
    ok (request && idt_msg_type (request) == IDT_MSGTYPE_REQUEST && strcmp (idt_msg_topic (request), "other.ask") == 0
            && idt_msg_has_flag (request, IDT_MSGFLAG_UPSTREAM) && idt_msg_nodeid (request) == 5,
        "a request of a module to UPSTREAM has that flag and the module's own rank");
    idt_msg_t *response = idt_msg_respond (request, 0);
    idt_msg_set_string (response, "{\"y\":2}");
    put (host, response);
    ok (answers (host, 0, "{\"y\":2}"), "the response to a module's request calls the callback of the future");
    response = idt_msg_respond (request, 0);
    put (host, response);
    ask (host, "mod.count", NULL, IDT_ROLE_USER);
    ok (answers (host, 0, "{\"count\":2}"), "a second response to a module's request is dropped");
    idt_msg_unref (request);

    ask (host, "mod.wait", NULL, IDT_ROLE_USER);
    idt_msg_unref (take (host));
    ok (answers (host, host->inlined ? EDEADLK : ETIMEDOUT, NULL), "waiting for a future in a callback of a module: %s",
        host->inlined ? "EDEADLK" : "possible");
    ask (host, "mod.later", NULL, IDT_ROLE_USER);
    idt_msg_unref (take (host));
    ok (answers (host, 0, "{\"count\":2}"), "idt_future_then does not call the callback");
    ask (host, "mod.count", NULL, IDT_ROLE_USER);
    ok (answers (host, 0, "{\"count\":103}"),
        "the reactor calls the callback of a future that was ready at idt_future_then");
}

static void test_module (bool inlined)
{
    struct host host;

    diag ("a module %s", inlined ? "inline" : "in a thread");
    host_start (&host, inlined);
    test_builtins (&host);
    test_requests (&host);
    ask (&host, "mod.forward", NULL, IDT_ROLE_USER);
    idt_msg_unref (take (&host));
    host_stop (&host);
    const idt_msg_t *msg = mailbox_pop (host.link.out);
    ok (msg && idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE && (int)idt_msg_errnum (msg) == (inlined ? ESHUTDOWN : EPIPE),
        "a request that waits at the end of its module gets a response");
    idt_msg_unref (msg);
    ok (!mailbox_pop (host.link.out), "a request that waits at the end of its module gets only one response");
    if (!inlined)
        ok (host.rc == 0 && strcmp (host.link.started, "0 ") == 0,
            "the module reports that it started, and idt_mod_main returns 0 when the mailbox is closed");
    link_fini (&host.link);
}

static void test_inline (void)
{
    struct link link = link_create ();
    idt_t *h = idt_handle_create (&hosted, &link);
    uint32_t rank = 0;

    idt_handle_set_module (h, "mod");
    errno = 77;
    idt_log (h, LOG_ERR, "bad %d", 1);
    ok (errno == 77 && strcmp (link.log, "3 mod bad 1") == 0,
        "a module whose transport has a log function logs through that function");
    ok (idt_get_rank (h, &rank) == 0 && rank == 5, "a module in a thread reads attributes without a message");
    ok (!idt_attr_get (h, "nosuch") && errno == ENOENT, "reading an unknown attribute in a module fails with ENOENT");
    ok (idt_overlay_attach (h, NULL, NULL) == 0, "a module attaches to the overlay");
    ok (idt_overlay_attach (h, NULL, NULL) < 0 && errno == EEXIST,
        "a second module that attaches to the overlay fails with EEXIST");
    idt_close (h);
    link_fini (&link);
}

static void test_init_fails (void)
{
    struct host host = { .link = link_create (), .argc = 1 };

    host.h = idt_handle_create (&threaded, &host.link);
    idt_handle_set_module (host.h, "mod");
    module_thread (&host);
    ok (host.rc < 0 && host.errnum == EINVAL, "idt_mod_main fails with the errno of init");
    ok (atoi (host.link.started) == EINVAL && strstr (host.link.started, " unknown option --nosuch"),
        "idt_mod_main reports why init failed");
    idt_close (host.h);
    link_fini (&host.link);
}

int main (int argc, char *argv[])
{
    test_module (false);
    test_module (true);
    test_inline ();
    test_init_fails ();
    int ended = 0;
    for (int i = 0; i < 100; i++) {
        struct host host;
        host_start (&host, i % 2);
        host_stop (&host);
        ended += host.rc == 0;
        link_fini (&host.link);
    }
    ok (ended == 100, "loading and unloading a module 100 times leaves nothing behind");
    return done_testing ();
}
