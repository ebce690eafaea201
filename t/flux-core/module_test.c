/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_test.c - the module for Flux, as it is built: it is loaded, gets requests, ends in each way, and is loaded
 * again
 *
 * The test plays the broker of Flux (standin.h).  On hosts with Flux, t9010 does the same and more with the real
 * broker.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <idtree/fluid.h>

#include "t/flux-core/standin.h"
#include "test/tap.h"

#define MODULE BUILDDIR "/t/flux-core/.libs/idtree-flux.so"
#define BROKER "00000000-0000-4000-8000-000000000000"
#define CONNECTOR "00000001-0000-4000-8000-000000000000"
#define CLIENT "00000002-0000-4000-8000-000000000000"

struct broker {
    json_t *attrs;
    json_t *config;
    const char *state; /* the answer to state-machine.get */
    flux_t *flux;
    void *dso;
    int (*mod_main) (flux_t *, int, char **);
    pthread_t thread;
    int argc;
    char *argv[4];
    void *result; /* the result of mod_main, and its errno */
    int errnum;
    bool running, ended;
    idt_msg_t *monitor; /* the pending request for all changes of the state */
    idt_msg_t *answer;  /* the last answer of the module */
    char said[1024];    /* the last line that the module logged */
};

/* --- messages -------------------------------------------------------------------------------------------- */

static void respond (struct broker *b, const idt_msg_t *request, int errnum, const char *payload)
{
    idt_msg_t *msg = idt_msg_respond (request, (uint32_t)errnum);

    if (!msg || (payload && idt_msg_set_string (msg, payload) < 0))
        bail_out ("no memory");
    standin_put (b->flux, msg);
    idt_msg_unref (msg);
}

static void replace (idt_msg_t **kept, idt_msg_t *msg)
{
    idt_msg_unref (*kept);
    *kept = msg ? (idt_msg_t *)idt_msg_ref (msg) : NULL;
}

static void note_line (struct broker *b, const idt_msg_t *msg)
{
    json_t *o = json_loads (idt_msg_string (msg), 0, NULL);

    snprintf (b->said, sizeof (b->said), "%s", json_string_value (json_object_get (o, "text")));
    json_decref (o);
    diag ("the module says: %s", b->said);
}

/* Handle a request of the module to its broker. */
static void serve (struct broker *b, idt_msg_t *msg)
{
    const char *topic = idt_msg_topic (msg);
    char state[64];

    if (strcmp (topic, STANDIN_LOG) == 0)
        note_line (b, msg);
    else if (strcmp (topic, "module.status") == 0)
        b->running = true;
    else if (strcmp (topic, "state-machine.monitor") == 0)
        replace (&b->monitor, msg);
    else if (strcmp (topic, "overlay.topology") == 0)
        respond (b, msg, 0, "{\"rank\":0,\"size\":1,\"children\":[]}");
    else if (strcmp (topic, "state-machine.get") == 0) {
        snprintf (state, sizeof (state), "{\"state\":\"%s\"}", b->state);
        respond (b, msg, 0, state);
    }
    else if (strcmp (topic, "service.add") == 0 || strcmp (topic, "event.subscribe") == 0)
        respond (b, msg, 0, NULL);
    else if (!idt_msg_has_flag (msg, IDT_MSGFLAG_NORESPONSE))
        respond (b, msg, ENOSYS, NULL);
}

/* Handle the next message of the module, if one arrives within 'ms'.  Returns whether one arrived. */
static bool take (struct broker *b, int ms)
{
    idt_msg_t *msg = standin_take (b->flux, ms);

    if (msg && idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE)
        replace (&b->answer, msg);
    else if (msg && idt_msg_type (msg) == IDT_MSGTYPE_REQUEST)
        serve (b, msg);
    idt_msg_unref (msg);
    return msg;
}

static void turn (struct broker *b)
{
    take (b, 10);
}

static void ask_as (struct broker *b, uint32_t role, const char *topic, const char *payload)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, topic) < 0 || idt_msg_set_string (msg, payload) < 0
        || idt_msg_route_push (msg, CLIENT) < 0 || idt_msg_route_push (msg, CONNECTOR) < 0
        || idt_msg_route_push (msg, BROKER) < 0)
        bail_out ("no memory");
    idt_msg_set_matchtag (msg, 7);
    idt_msg_set_cred (msg, (struct idt_cred){ .userid = 1000, .rolemask = role });
    replace (&b->answer, NULL);
    standin_put (b->flux, msg);
    idt_msg_unref (msg);
}

/* Send a request, and return the payload of the answer, for json_decref (); NULL: the answer is an error. */
static json_t *ask (struct broker *b, const char *topic, const char *payload)
{
    ask_as (b, IDT_ROLE_OWNER | IDT_ROLE_LOCAL, topic, payload);
    wait_until (b->answer) turn (b);
    const char *text = idt_msg_string (b->answer);
    return idt_msg_errnum (b->answer) == 0 && text ? json_loads (text, 0, NULL) : NULL;
}

/* --- life ------------------------------------------------------------------------------------------------ */

static void *thread_main (void *arg)
{
    struct broker *b = arg;
    int rc = b->mod_main (b->flux, b->argc, b->argv);

    b->errnum = errno;
    return rc < 0 ? b : NULL;
}

static bool has_ended (struct broker *b)
{
    b->ended = b->ended || pthread_tryjoin_np (b->thread, &b->result) == 0;
    return b->ended;
}

/* Load the module.  Returns when the module runs, or when it has ended and all of its messages were handled. */
static void load (struct broker *b, const char *argument)
{
    b->running = b->ended = false;
    b->state = "run";
    b->argc = argument ? 2 : 1;
    b->argv[0] = (char *)"fluid.lease=1s";
    b->argv[1] = (char *)argument;
    b->flux = standin_create ("idtree-flux", b->attrs, b->config);
    if (!(b->dso = dlopen (MODULE, RTLD_NOW | RTLD_LOCAL)))
        bail_out (dlerror ());
    if (!(b->mod_main = (int (*) (flux_t *, int, char **))dlsym (b->dso, "mod_main"))
        || pthread_create (&b->thread, NULL, thread_main, b) != 0)
        bail_out ("the module has no mod_main, or there is no thread");
    wait_until (b->running || has_ended (b)) turn (b);
    while (b->ended && take (b, 0))
        ;
}

/* Wait until the module has ended by itself, and unload it. */
static void unload (struct broker *b)
{
    wait_until (has_ended (b)) turn (b);
    replace (&b->monitor, NULL);
    replace (&b->answer, NULL);
    dlclose (b->dso);
    standin_destroy (b->flux);
}

static void unload_by_request (struct broker *b)
{
    ask_as (b, IDT_ROLE_OWNER | IDT_ROLE_LOCAL, "idtree-flux.shutdown", "{}");
    unload (b);
}

/* --- what is tested ---------------------------------------------------------------------------------------- */

static fluid_t last; /* the highest id that any load of the module gave */

/* The module gives ids that are above all earlier ones. */
static void test_ids (struct broker *b, const char *when)
{
    json_t *o = ask (b, "fluid.generate", "{\"count\":3}");
    const char *text = "";
    json_int_t count = 0;
    fluid_t first = 0;

    ok (o && json_unpack (o, "{s:[[s,I]]}", "runs", &text, &count) == 0 && count == 3
            && fluid_parse (text, strlen (text), &first, NULL) == 0 && first > last,
        "%s the module returns ids, above all ids before", when);
    ok (b->answer && idt_msg_route_count (b->answer) == 3 && strcmp (idt_msg_route_newest (b->answer), BROKER) == 0
            && strcmp (idt_msg_route_oldest (b->answer), CLIENT) == 0 && idt_msg_matchtag (b->answer) == 7,
        "the response of the module goes back the way that the request came");
    last = first + (fluid_t)count - 1;
    json_decref (o);
}

static void test_questions (struct broker *b)
{
    json_t *stats = ask (b, "fluid.stats-get", "{}"), *info = ask (b, "fluid.info", "{}");

    ok (json_integer_value (json_object_get (stats, "ids")) == 3, "the module returns its counters");
    ok (strcmp (json_string_value (json_object_get (info, "state")), "active") == 0, "the module returns its state");
    json_decref (stats);
    json_decref (info);
    ok (!ask (b, "fluid.lease", "{}") && idt_msg_errnum (b->answer) == EPERM,
        "the module refuses requests that are for brokers only");
    ok (!ask (b, "fluid.nosuch", "{}") && idt_msg_errnum (b->answer) == ENOSYS,
        "the module refuses a request of an unknown method");
    ask_as (b, IDT_ROLE_USER | IDT_ROLE_LOCAL, "idtree-flux.shutdown", "{}");
    wait_until (b->answer) turn (b);
    ok (idt_msg_errnum (b->answer) != 0, "the module refuses a guest's request to end it");
    test_ids (b, "after refused requests");
}

static void test_refused (struct broker *b, const char *argument, const char *text)
{
    load (b, argument);
    ok (!b->running && b->result && b->errnum == EINVAL && strstr (b->said, text),
        "the module refuses to start with %s: %s", argument, text);
    unload (b);
}

static void test_life (struct broker *b)
{
    load (b, NULL);
    ok (b->running, "a loaded module reports that it runs");
    test_ids (b, "after the module was loaded");
    test_questions (b);
    unload_by_request (b);
    ok (!b->result, "the module ends when the instance owner requests it");
    test_refused (b, "fluid.leese=1s", "there is no such setting");
    test_refused (b, "fluid.horizon=x", "fluid.horizon");
}

static void test_ends (struct broker *b)
{
    load (b, NULL);
    test_ids (b, "after it was loaded again");
    if (pthread_cancel (b->thread) != 0)
        bail_out ("pthread_cancel");
    ask_as (b, IDT_ROLE_OWNER | IDT_ROLE_LOCAL, "fluid.info", "{}"); /* wakes the module's reactor */
    unload (b);
    ok (b->result == PTHREAD_CANCELED, "the module ends when its thread is canceled");
    load (b, NULL);
    test_ids (b, "after its thread was canceled and it was loaded again,");
    b->state = "finalize";
    wait_until (b->monitor) turn (b);
    respond (b, b->monitor, 0, "{}");
    unload (b);
    ok (!b->result, "the module ends when its broker is about to end");
    load (b, NULL);
    test_ids (b, "after it has ended before its broker and was loaded again,");
    unload_by_request (b);
}

static void test_configuration (struct broker *b)
{
    json_decref (b->config);
    b->config = json_pack ("{s:{s:{s:i}}}", "idtree", "fluid", "max-generators", 3);
    load (b, NULL);
    json_t *info = ask (b, "fluid.info", "{}");
    ok (json_integer_value (json_object_get (info, "max_generators")) == 3,
        "settings of the module may be in Flux's configuration");
    json_decref (info);
    unload_by_request (b);
}

/* Flux's broker calls a function that is named mod_main, with a handle of Flux.  Modules for idtree's broker must not
 * have such a function.
 */
static void test_others (void)
{
    static const char *const names[] = { "fluid", "flake", "compressor", "job-ingest" };
    char path[1024];

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        snprintf (path, sizeof (path), "%s/src/modules/.libs/%s.so", BUILDDIR, names[i]);
        /* RTLD_NODELETE keeps the libraries that the module needs, because ThreadSanitizer fails if a library that it
         * knows is unloaded.
         */
        void *dso = dlopen (path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        ok (dso && dlsym (dso, "idt_mod_main") && !dlsym (dso, "mod_main"),
            "the file %s has no symbol that Flux would call", names[i]);
        if (dso)
            dlclose (dso);
    }
}

int main (void)
{
    char dir[] = "/tmp/idtree-flux.XXXXXX", command[64];
    struct broker b = { 0 };

    if (!mkdtemp (dir))
        bail_out ("no folder");
    b.attrs = json_pack ("{s:s s:s s:s s:s s:s}", "rank", "0", "size", "1", "rundir", dir, "statedir", dir,
                         "broker.uuid", BROKER);
    b.config = json_object ();
    test_life (&b);
    test_ends (&b);
    test_configuration (&b);
    test_others ();
    json_decref (b.attrs);
    json_decref (b.config);
    snprintf (command, sizeof (command), "rm -rf %s", dir);
    if (system (command) != 0)
        bail_out ("the folder stays");
    return done_testing ();
}
