/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* broker_test.c - a whole broker in a thread of this process; clients use it over its socket
 *
 * Three modules are in t/modules: echo (in a thread of its own), inlined (on the broker's reactor) and sharing (in the
 * shared thread).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <idtree/idtree.h>

#include "broker/boot/boot.h"
#include "broker/broker_group.h"
#include "libutil/errprintf.h"
#include "test/tap.h"

struct run {
    struct process *process;
    struct broker_group *group;
    struct attrs *attrs;
    pthread_t thread;
    int exit_code;
    char dir[64];
    char uri[128];
};

static void *run_main (void *arg)
{
    struct run *run = arg;

    process_run (run->process);
    run->exit_code = broker_group_exit_code (run->group);
    broker_group_destroy (run->group);
    process_destroy (run->process);
    attrs_destroy (run->attrs);
    return NULL;
}

static const char *module_path (char buf[4096])
{
    const char *build = getenv ("IDTREE_BUILDDIR");

    snprintf (buf, 4096, "%s/t/modules/.libs", build ? build : BUILDDIR);
    return buf;
}

static void run_start_many (struct run *run, uint32_t size, const char *inside)
{
    char path[4096];
    struct broker_group_conf conf = {
        .attrs = attrs_create (),
        .boot = { .method = &boot_single, .size = size },
        .tmpdir = "/tmp",
        .module_path = module_path (path),
    };
    idt_error_t err;

    memset (run, 0, sizeof (*run));
    run->attrs = conf.attrs;
    snprintf (run->dir, sizeof (run->dir), "/tmp/broker_test.XXXXXX");
    if (!mkdtemp (run->dir))
        bail_out ("cannot make a folder");
    snprintf (run->uri, sizeof (run->uri), "local://%s/local-0", run->dir);
    attr_give (conf.attrs, "rundir", run->dir, NULL);
    attr_give (conf.attrs, "broker.modules", "", NULL);
    attr_give (conf.attrs, "log-stderr-level", "0", NULL);
    attr_give (conf.attrs, "tbon.topo", "kary:2", NULL);
    attr_give (conf.attrs, "tbon.transport", inside, NULL);
    if (!(conf.process = run->process = process_create (&err)) || !(run->group = broker_group_create (&conf))
        || broker_group_start (run->group, &err) < 0)
        bail_out (err.text);
    if (pthread_create (&run->thread, NULL, run_main, run) != 0)
        bail_out ("cannot make a thread");
}

static void run_start (struct run *run)
{
    run_start_many (run, 1, "memory");
}

static idt_t *open_client (struct run *run)
{
    idt_error_t err;
    idt_t *h = idt_open (run->uri, &err);

    if (!h)
        bail_out (err.text);
    return h;
}

/* Send a request with a JSON payload. Returns the errno of the response; 0: no error. */
static int ask (idt_t *h, const char *topic, const char *payload)
{
    idt_future_t *f = idt_rpc (h, topic, payload, IDT_NODEID_ANY, 0);
    int rc = !f || idt_rpc_get (f, NULL) < 0 ? errno : 0;

    idt_future_destroy (f);
    return rc;
}

static void run_stop (struct run *run, idt_t *h)
{
    ask (h, "shutdown.start", NULL);
    idt_close (h);
    pthread_join (run->thread, NULL);
    rmdir (run->dir);
}

/* Let the module echo send a request. Returns the errno of the response to the module; -1: no response. */
static int module_asks (idt_t *h, const char *topic)
{
    idt_future_t *f = idt_rpc_pack (h, "echo.ask", IDT_NODEID_ANY, 0, "{s:s}", "topic", topic);
    int errnum = -1;

    if (!f || idt_rpc_get_unpack (f, "{s:i}", "errnum", &errnum) < 0)
        errnum = -1;
    idt_future_destroy (f);
    return errnum;
}

/* --- modules ----------------------------------------------------------------------------------------------- */

static void test_load (idt_t *h)
{
    ok (ask (h, "module.load", "{\"path\":\"inlined\",\"args\":[],\"exec\":false}") == 0, "an inline module is loaded");
    ok (ask (h, "module.load", "{\"path\":\"echo\",\"args\":[]}") == 0, "a module in a thread is loaded");
    ok (ask (h, "inlined.echo", "{}") == 0 && ask (h, "echo.echo", "{}") == 0,
        "inline modules and modules in threads answer requests");
    ok (ask (h, "module.load", "{\"path\":\"echo\"}") == EEXIST
            && ask (h, "module.load", "{\"path\":\"inlined\"}") == EEXIST,
        "a module that is already loaded is not loaded a second time");
    ok (ask (h, "module.load", "{\"path\":\"inlined\",\"name\":\"log\"}") == EEXIST,
        "a module is not loaded under the name of another service");
    ok (module_asks (h, "inlined.echo") == 0 && module_asks (h, "attr.list") == 0,
        "a module in a thread may send a request and block until the answer");
    ok (ask (h, "event.replay", "{}") == EPERM && module_asks (h, "event.replay") == EPROTO,
        "a module may send requests that are reserved for brokers and closed to clients");
    ok (ask (h, "echo.nosuch", "{}") == ENOSYS && ask (h, "inlined.nosuch", "{}") == ENOSYS,
        "a request for an unknown method of a module fails with ENOSYS");
    ok (ask (h, "module.remove", "{\"name\":\"inlined\"}") == 0 && ask (h, "module.remove", "{\"name\":\"echo\"}") == 0,
        "inline modules and modules in threads can be removed");
    ok (ask (h, "inlined.echo", "{}") == ENOSYS && ask (h, "echo.echo", "{}") == ENOSYS,
        "a removed module answers no further requests");
}

static int ask_values (idt_t *h, const char *topic, int n)
{
    char *text = malloc ((size_t)n * 3 + 32), *p = text;

    p += sprintf (p, "{\"x\":[");
    for (int i = 0; i < n; i++)
        p += sprintf (p, "[],");
    sprintf (p, "0]}");
    int errnum = ask (h, topic, text);
    free (text);
    return errnum;
}

static void test_long (idt_t *h)
{
    char *text = malloc (3 << 20);

    strcpy (text, "{\"x\":\"");
    memset (text + 6, 'x', 2 << 20);
    strcpy (text + 6 + (2 << 20), "\"}");
    ok (ask (h, "broker.ping", text) == EMSGSIZE && ask (h, "attr.get", text) == EMSGSIZE,
        "a request whose JSON text exceeds broker.max-json fails with EMSGSIZE at the broker itself");
    ask (h, "module.load", "{\"path\":\"inlined\"}");
    ask (h, "module.load", "{\"path\":\"echo\"}");
    ok (ask (h, "inlined.ping", text) == EMSGSIZE,
        "a request whose JSON text exceeds broker.max-json fails with EMSGSIZE at modules on the broker's reactor");
    ok (ask_values (h, "broker.ping", 2000) == 0 && ask_values (h, "broker.ping", 3000) == EMSGSIZE
            && ask_values (h, "inlined.ping", 3000) == EMSGSIZE && ask_values (h, "echo.ping", 100000) == 0,
        "a request with too many JSON values fails with EMSGSIZE at modules on the broker's reactor, because "
        "parsing a value takes as long as parsing many bytes");
    ok (ask (h, "echo.ping", text) == 0, "a module in a thread accepts a JSON text with many values");
    ask (h, "module.remove", "{\"name\":\"inlined\"}");
    ask (h, "module.remove", "{\"name\":\"echo\"}");
    free (text);
}

/* Send more requests to a module than its mailbox holds. The others wait outside the mailbox, so the response to a
 * request of the module itself arrives before them.
 */
static void test_waiting_thread (idt_t *h)
{
    enum { N = 1500 };
    idt_future_t *f[N], *asks;
    int answered = 0, errnum = -1;

    ask (h, "module.load", "{\"path\":\"echo\"}");
    asks = idt_rpc_pack (h, "echo.ask", IDT_NODEID_ANY, 0, "{s:s}", "topic", "attr.list");
    for (int i = 0; i < N; i++)
        f[i] = idt_rpc (h, "echo.echo", "{}", IDT_NODEID_ANY, 0);
    ok (idt_rpc_get_unpack (asks, "{s:i}", "errnum", &errnum) == 0 && errnum == 0,
        "a module that waits for a response in its handler gets the response, no matter how many requests arrive "
        "meanwhile");
    for (int i = 0; i < N; i++) {
        answered += idt_rpc_get (f[i], NULL) == 0;
        idt_future_destroy (f[i]);
    }
    ok (answered == N, "a module that waited in its handler then answers all queued requests (%d)", answered);
    idt_future_destroy (asks);
    ask (h, "module.remove", "{\"name\":\"echo\"}");
}

static void test_bad (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "module.load", "{\"path\":\"inlined\",\"args\":[\"fail\"]}", IDT_NODEID_ANY, 0);

    ok (idt_rpc_get (f, NULL) < 0 && errno == EDOM
            && strcmp (idt_future_error (f), "the argument 'fail' was given") == 0,
        "the error of a module that does not start is reported");
    idt_future_destroy (f);
    ok (ask (h, "module.load", "{\"path\":\"nosuch\"}") == ENOENT,
        "loading a module whose file does not exist fails with ENOENT");
    ok (ask (h, "module.load", "{\"path\":\"/dev/null\"}") == EINVAL,
        "loading a file that is not a module fails with EINVAL");
    ok (ask (h, "module.load", "{\"args\":[]}") == EPROTO
            && ask (h, "module.load", "{\"path\":\"echo\",\"args\":[1]}") == EPROTO
            && ask (h, "module.remove", "{}") == EPROTO && ask (h, "module.load", NULL) == EPROTO,
        "malformed requests to the module service fail with EPROTO");
    ok (ask (h, "module.remove", "{\"name\":\"broker\"}") == ENOENT,
        "the services that are built into the broker cannot be removed");
    ok (ask (h, "inlined.echo", "{}") == ENOSYS, "a module that could not be loaded leaves nothing behind");
}

static int thread_of (idt_t *h, const char *topic)
{
    idt_future_t *f = idt_rpc (h, topic, NULL, IDT_NODEID_ANY, 0);
    int thread = 0;

    if (!f || idt_rpc_get_unpack (f, "{s:i}", "thread", &thread) < 0)
        thread = -1;
    idt_future_destroy (f);
    return thread;
}

static bool attr_is (idt_t *h, const char *name, const char *value)
{
    idt_future_t *f = idt_rpc_pack (h, "one.attr", IDT_NODEID_ANY, 0, "{s:s}", "name", name);
    const char *s = "";
    bool same = f && idt_rpc_get_unpack (f, "{s:s}", "value", &s) == 0 && strcmp (s, value) == 0;

    idt_future_destroy (f);
    return same;
}

/* While one module of the shared thread computes, the other modules in that thread wait, but nothing else waits. */
static void test_computing (struct run *run, idt_t *h)
{
    char path[128];
    idt_future_t *one, *two, *removes;

    snprintf (path, sizeof (path), "%s/enough", run->dir);
    one = idt_rpc_pack (h, "one.work", IDT_NODEID_ANY, 0, "{s:s}", "path", path);
    two = idt_rpc (h, "two.echo", NULL, IDT_NODEID_ANY, 0);
    ok (ask (h, "module.load", "{\"path\":\"inlined\"}") == 0 && ask (h, "inlined.echo", "{}") == 0,
        "the broker answers while a module computes");
    removes = idt_rpc_pack (h, "module.remove", IDT_NODEID_ANY, 0, "{s:s}", "name", "two");
    ask (h, "attr.get", "{\"name\":\"rank\"}");
    ok (!idt_future_is_ready (one) && !idt_future_is_ready (two),
        "other modules of a shared thread do not answer while one of them computes");
    close (open (path, O_CREAT | O_WRONLY, 0600));
    ok (idt_rpc_get (one, NULL) == 0 && idt_rpc_get (two, NULL) == 0 && idt_rpc_get (removes, NULL) == 0,
        "the modules of a shared thread answer after the computing one has finished");
    unlink (path);
    idt_future_destroy (one);
    idt_future_destroy (two);
    idt_future_destroy (removes);
    ask (h, "module.remove", "{\"name\":\"inlined\"}");
}

static void test_sharing (struct run *run, idt_t *h)
{
    idt_future_t *f;
    int thread;

    ok (ask (h, "module.load", "{\"path\":\"sharing\",\"name\":\"one\"}") == 0
            && ask (h, "module.load", "{\"path\":\"sharing\",\"name\":\"two\"}") == 0,
        "modules that request to share a thread are loaded");
    ok ((thread = thread_of (h, "one.thread")) > 0 && thread_of (h, "two.thread") == thread && thread != getpid (),
        "modules that share a thread run in one thread, which is not the broker's");
    ok (ask (h, "module.load", "{\"path\":\"sharing\",\"name\":\"own\",\"args\":[\"--thread\"]}") == 0
            && thread_of (h, "own.thread") != thread,
        "a module that requests a thread of its own gets one");
    ok (ask (h, "one.later", NULL) == 0 && ask (h, "two.later", NULL) == 0,
        "timers of modules in the shared thread fire");
    ok (attr_is (h, "sharing.known", "as defined") && attr_is (h, "rank", "0")
            && ask (h, "one.attr", "{\"name\":\"x\"}") == ENOENT,
        "modules in the shared thread read and define attributes");
    test_computing (run, h);
    f = idt_rpc (h, "one.hold", NULL, IDT_NODEID_ANY, 0);
    ok (ask (h, "one.end", NULL) == 0 && idt_rpc_get (f, NULL) < 0 && errno == ECANCELED,
        "a module that ends by itself answers the requests that it has not answered yet");
    idt_future_destroy (f);
    wait_until (ask (h, "one.echo", NULL) == ENOSYS);
    f = idt_rpc (h, "module.load", "{\"path\":\"sharing\",\"name\":\"bad\",\"args\":[\"fail\"]}", IDT_NODEID_ANY, 0);
    ok (idt_rpc_get (f, NULL) < 0 && errno == EDOM
            && strcmp (idt_future_error (f), "the argument 'fail' was given") == 0,
        "the error of a module in the shared thread that does not start is reported");
    idt_future_destroy (f);
    ok (ask (h, "module.remove", "{\"name\":\"own\"}") == 0, "the remaining modules of the shared thread are removed");
}

static void test_again (idt_t *h, const char *load, const char *remove, const char *topic, const char *what)
{
    int n = 0;

    while (n < 100 && ask (h, "module.load", load) == 0 && ask (h, topic, "{}") == 0
           && ask (h, "module.remove", remove) == 0)
        n++;
    ok (n == 100, "%s is loaded and removed 100 times", what);
}

/* Send requests to a module while it is removed. Each request is answered; the order does not matter. */
static void test_race (idt_t *h, const char *name)
{
    char load[64], remove[64], echo[64], hold[64];
    idt_future_t *f[40];
    int removed = 0, answered = 0;

    snprintf (load, sizeof (load), "{\"path\":\"%s\"}", name);
    snprintf (remove, sizeof (remove), "{\"name\":\"%s\"}", name);
    snprintf (echo, sizeof (echo), "%s.echo", name);
    snprintf (hold, sizeof (hold), "%s.hold", name);
    ask (h, "module.load", load);
    f[0] = idt_rpc (h, hold, "{}", IDT_NODEID_ANY, 0);
    for (int i = 1; i < 40; i++)
        f[i] = i % 4 == 3 ? idt_rpc (h, "module.remove", remove, IDT_NODEID_ANY, 0)
                          : idt_rpc (h, echo, "{}", IDT_NODEID_ANY, 0);
    for (int i = 0; i < 40; i++) {
        int errnum = idt_rpc_get (f[i], NULL) < 0 ? errno : 0;

        if (i > 0 && i % 4 == 3)
            removed += errnum == 0;
        answered += i == 0 ? errnum == ECANCELED : errnum == 0 || errnum == ENOSYS || errnum == ENOENT;
        idt_future_destroy (f[i]);
    }
    ok (removed == 1, "%s: exactly one of 10 concurrent requests to remove a module succeeds", name);
    ok (answered == 40, "%s: each request that is on its way to a module when the module ends is answered", name);
}

static void test_end (idt_t *h)
{
    ask (h, "module.load", "{\"path\":\"echo\"}");
    idt_future_t *f = idt_rpc (h, "echo.hold", "{}", IDT_NODEID_ANY, 0);
    ok (ask (h, "echo.end", "{\"errnum\":0}") == 0 && idt_rpc_get (f, NULL) < 0 && errno == ECANCELED,
        "a module that ends by itself may answer its requests before it ends");
    idt_future_destroy (f);
    wait_until (ask (h, "echo.echo", "{}") != 0);
    ask (h, "module.load", "{\"path\":\"echo\",\"args\":[\"fail\"]}");
    wait_until (ask (h, "echo.echo", "{}") != 0);
    ok (ask (h, "module.remove", "{\"name\":\"echo\"}") != 0, "a module that ends with an error is removed");
}

/* --- the rest ----------------------------------------------------------------------------------------------- */

static void test_followers (struct run *run, idt_t *h)
{
    int followed = 0;

    for (int i = 0; i < 300; i++) {
        idt_t *other = open_client (run);
        idt_future_t *f = idt_rpc (other, "log.dmesg", "{\"follow\":true,\"nobacklog\":true}", IDT_NODEID_ANY,
                                   IDT_RPC_STREAMING);

        idt_log (other, 6, "line %d", i);
        followed += idt_rpc_get (f, NULL) == 0;
        idt_future_destroy (f);
        idt_close (other);
    }
    ok (followed == 300, "300 clients follow the log one after the other, and %d of them succeed", followed);
}

/* Returns why a client is refused; "": the client is accepted and reaches rank 0. */
static const char *refusal (const struct run *run, const char *query, idt_error_t *err)
{
    char uri[200];
    uint32_t rank;
    idt_t *h;

    snprintf (uri, sizeof (uri), "%s%s", run->uri, query);
    err->text[0] = '\0';
    h = idt_open (uri, err);
    if (h && (idt_get_rank (h, &rank) < 0 || rank != 0))
        errprintf (err, "another rank answers");
    idt_close (h);
    return err->text;
}

static void test_uri (struct run *run)
{
    idt_error_t err;

    ok (strcmp (refusal (run, "?rank=0", &err), "") == 0, "the URI of a broker may name the rank");
    ok (strstr (refusal (run, "?rank=5", &err), "no broker of rank 5 runs there"),
        "a URI with a rank that does not exist is "
        "refused: %s",
        err.text);
    ok (strstr (refusal (run, "?rank=x", &err), "?rank=RANK") && strstr (refusal (run, "?rank=", &err), "?rank=RANK"),
        "a URI with a malformed rank is refused: %s", err.text);
}

static int seen;

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    if (idt_msg_seq (msg) == (uint32_t)seen + 1)
        seen++;
    if (seen == 1000)
        idt_reactor_stop (idt_get_reactor (h));
}

static void test_events (struct run *run, idt_t *h)
{
    static const struct idt_handler_spec handlers[] = { { IDT_MSGTYPE_EVENT, "x.*", event_cb, 0 }, IDT_HANDLERS_END };
    idt_t *publisher = open_client (run);
    idt_future_t *f = idt_event_subscribe (h, "x.");

    idt_rpc_get (f, NULL);
    idt_future_destroy (f);
    idt_handlers_add (h, handlers, NULL);
    for (int i = 0; i < 1000; i++)
        idt_future_destroy (idt_event_publish (publisher, "x.y", 0, NULL));
    idt_flush (publisher);
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT);
    ok (seen == 1000, "1000 events arrive in order");
    idt_handlers_remove (h, handlers);
    idt_close (publisher);
}

static void test_service (struct run *run, idt_t *h)
{
    idt_t *server = open_client (run);
    idt_future_t *f = idt_service_add (server, "mine"), *asked;

    ok (idt_rpc_get (f, NULL) == 0, "a client may add a service");
    idt_future_destroy (f);
    ok (ask (h, "service.add", "{\"service\":\"mine\"}") == EEXIST
            && ask (h, "service.remove", "{\"service\":\"mine\"}") == ENOENT
            && ask (h, "service.add", "{\"service\":\"a.b\"}") == EINVAL,
        "a service name belongs to one client, and only that client can remove it");
    asked = idt_rpc (h, "mine.x", NULL, IDT_NODEID_ANY, 0);
    idt_close (server);
    ok (idt_rpc_get (asked, NULL) < 0 && errno == ENOSYS, "when the client of a service disconnects, its pending "
                                                          "requests get ENOSYS");
    idt_future_destroy (asked);
}

static void test_stop (void)
{
    struct run run;
    idt_t *h;
    idt_future_t *f, *g, *s;

    run_start (&run);
    h = open_client (&run);
    ask (h, "module.load", "{\"path\":\"echo\"}");
    ask (h, "module.load", "{\"path\":\"inlined\"}");
    ask (h, "module.load", "{\"path\":\"sharing\"}");
    f = idt_rpc (h, "echo.hold", "{}", IDT_NODEID_ANY, 0);
    g = idt_rpc (h, "inlined.hold", "{}", IDT_NODEID_ANY, 0);
    s = idt_rpc (h, "sharing.hold", "{}", IDT_NODEID_ANY, 0);
    ok (ask (h, "shutdown.start", NULL) == 0, "a broker stops on request, and answers the request");
    ok (idt_rpc_get (f, NULL) < 0 && errno == ECANCELED && idt_rpc_get (g, NULL) < 0 && errno == ECANCELED
            && idt_rpc_get (s, NULL) < 0 && errno == ECANCELED,
        "when a broker stops, its modules answer the requests that they have not answered yet");
    idt_future_destroy (f);
    idt_future_destroy (g);
    idt_future_destroy (s);
    pthread_join (run.thread, NULL);
    ok (run.exit_code == 0, "the exit code of a stopped broker is 0");
    idt_close (h);
    ok (rmdir (run.dir) == 0, "a stopped broker leaves nothing in its rundir");
}

/* --- many in one process ------------------------------------------------------------------------------------ */

#define MANY 15

/* Follow the health of rank 0's subtree until no rank is missing. */
static void wait_for_all (idt_t *h)
{
    idt_future_t *f = idt_rpc (h, "overlay.health", NULL, 0, IDT_RPC_STREAMING);
    const char *status;

    while (idt_rpc_get_unpack (f, "{s:s}", "status", &status) == 0 && strcmp (status, "full") != 0)
        idt_future_reset (f);
    idt_future_destroy (f);
}

static int answers_of_all (idt_t *h)
{
    int n = 0;

    for (uint32_t rank = 0; rank < MANY; rank++) {
        idt_future_t *f = idt_rpc_pack (h, "broker.ping", rank, 0, "{}");

        n += f && idt_rpc_get (f, NULL) == 0;
        idt_future_destroy (f);
    }
    return n;
}

/* Whether all links of a rank are of the kind 'kind'. */
static bool are_by (idt_t *h, uint32_t rank, const char *kind)
{
    idt_future_t *f = idt_rpc (h, "overlay.stats-get", NULL, rank, 0);
    bool good = false;
    json_t *links, *link;
    size_t i;

    if (f && idt_rpc_get_unpack (f, "{s:o}", "links", &links) == 0) {
        good = json_array_size (links) > 0;
        json_array_foreach (links, i, link)
            good = good && strcmp (json_string_value (json_object_get (link, "by")), kind) == 0;
    }
    idt_future_destroy (f);
    return good;
}

static void test_many (const char *inside)
{
    struct run run;
    idt_t *h;

    run_start_many (&run, MANY, inside);
    h = open_client (&run);
    wait_for_all (h);
    ok (answers_of_all (h) == MANY, "%s: %d brokers in one process form a tree", inside, MANY);
    ok (are_by (h, 0, inside) && are_by (h, 1, inside) && are_by (h, MANY - 1, inside),
        "the links between the brokers of a process are of the requested kind");
    ask (h, "shutdown.start", NULL);
    pthread_join (run.thread, NULL);
    ok (run.exit_code == 0, "the brokers of a process stop on request");
    idt_close (h);
    ok (rmdir (run.dir) == 0, "the brokers of a process leave nothing in their rundir");
}

static void test_bad_kind (void)
{
    struct broker_group_conf conf = { .attrs = attrs_create (),
                                      .boot = { .method = &boot_single, .size = 1 },
                                      .tmpdir = "/tmp" };
    struct broker_group *group;
    idt_error_t err;

    conf.process = process_create (&err);
    attr_give (conf.attrs, "tbon.transport", "pipe", NULL);
    group = broker_group_create (&conf);
    ok (group && broker_group_start (group, &err) < 0 && errno == EINVAL
            && strcmp (err.text, "tbon.transport pipe: must be memory, inproc or zmq") == 0,
        "an unknown kind of link is refused: %s", err.text);
    broker_group_destroy (group);
    process_destroy (conf.process);
    attrs_destroy (conf.attrs);
}

int main (void)
{
    struct run run;
    idt_t *h;

    run_start (&run);
    h = open_client (&run);
    test_load (h);
    test_bad (h);
    test_long (h);
    test_waiting_thread (h);
    test_again (h, "{\"path\":\"inlined\"}", "{\"name\":\"inlined\"}", "inlined.echo", "an inline module");
    test_again (h, "{\"path\":\"inlined\",\"args\":[\"--thread\"]}", "{\"name\":\"inlined\"}", "inlined.echo",
                "an inline module run in a thread");
    test_again (h, "{\"path\":\"echo\"}", "{\"name\":\"echo\"}", "echo.echo", "a module in a thread");
    test_again (h, "{\"path\":\"sharing\"}", "{\"name\":\"sharing\"}", "sharing.echo", "a module in the shared thread");
    test_race (h, "inlined");
    test_race (h, "sharing");
    test_sharing (&run, h);
    test_race (h, "echo");
    test_end (h);
    test_followers (&run, h);
    test_events (&run, h);
    test_uri (&run);
    test_service (&run, h);
    run_stop (&run, h);
    test_stop ();
    test_many ("zmq");
    test_many ("inproc");
    test_many ("memory");
    test_bad_kind ();
    return done_testing ();
}
