/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection_test.c - the broker of a handle ends, and the handle reconnects to it or to another one */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "libidtree/reconnect.h"
#include "libidtree/handle.h"
#include "test/tap.h"
#include "test/test_server.h"

#define UUID_1 "11111111-0000-4000-8000-000000000000"
#define UUID_2 "22222222-0000-4000-8000-000000000000"

static idt_t *open_or_bail (const char *uri, int flags)
{
    idt_error_t error = { .text = "" };
    idt_t *h = idt_open_ex (uri, &(struct idt_open_options){ .flags = flags }, &error);

    if (!h)
        bail_out (error.text);
    return h;
}

static struct test_server *server (const char *instance)
{
    struct test_server *s = test_server_create (0);

    test_server_set_instance (s, instance);
    return s;
}

static void restart (struct test_server *s)
{
    test_server_stop (s);
    test_server_start (s);
}

static const char *both (const struct test_server *a, const struct test_server *b)
{
    static char buf[512];

    snprintf (buf, sizeof (buf), "%s %s", test_server_uri (a), test_server_uri (b));
    return buf;
}

static idt_future_t *ask (idt_t *h, const char *topic)
{
    return idt_rpc (h, topic, "{}", IDT_NODEID_ANY, 0);
}

/* Wait for the response and destroy the future. Returns 0, or the errno of the failure. */
static int result (idt_future_t *f)
{
    int errnum = !f || idt_rpc_get (f, NULL) < 0 ? errno : 0;

    idt_future_destroy (f);
    return errnum;
}

/* --- typed calls ---------------------------------------------------------------------------- */

static void test_typed (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), 0);
    fluid_t a[2] = { 0 }, b[2] = { 0 };
    uint32_t rank = 0;

    ok (idt_fluid_generate (h, 2, a) == 0, "a call for ids succeeds on a new handle");
    restart (s);
    ok (idt_fluid_generate (h, 2, b) == 0 && b[0] > a[1], "a call for ids after a restart of the broker reconnects: %s",
        strerror (errno));
    ok (!idt_lost_error (h), "after a call has reconnected, the handle is connected");
    const char *level = idt_attr_get (h, "size");
    restart (s);
    ok (idt_get_rank (h, &rank) == 0 && rank == 3 && level && strcmp (level, "8") == 0,
        "a call for an attribute reconnects, and values returned earlier stay valid");
    restart (s);
    ok (result (ask (h, "test.echo")) != 0, "idt_rpc () does not reconnect, and fails");
    ok (result (ask (h, "test.echo")) != 0, "a second idt_rpc () on a lost connection fails, too");
    ok (idt_attr_set (h, "log-level", "5", NULL) == 0 && result (ask (h, "test.echo")) == 0,
        "idt_rpc () succeeds after another call has reconnected");
    idt_future_t *f = ask (h, "test.never");
    idt_future_t *g = idt_fluid_generate_async (h, 1);
    (void)result (g);
    restart (s);
    errno = 0;
    ok (idt_future_wait (f, -1) == -1 && errno == ECONNRESET,
        "idt_rpc () fails with ECONNRESET if the connection is lost during the request: %s", idt_future_error (f));
    ok (idt_fluid_generate (h, 1, b) == 0, "after a request was lost, the next call for ids succeeds");
    idt_future_destroy (f);
    idt_close (h);
    test_server_destroy (s);
}

/* The response of one broker has arrived but is not read yet when the next broker, whose generator is behind, is asked.
 */
static void test_not_got (void)
{
    struct test_server *s = server (UUID_1), *other = server (UUID_1);
    idt_t *h = open_or_bail (both (s, other), 0);
    idt_future_t *f = idt_fluid_generate_async (h, 5);
    fluid_t ids[5] = { 0 }, id = 0;

    ok (f && idt_future_wait (f, -1) == 0, "a response with ids arrives before the connection is lost");
    test_server_stop (s);
    ok (idt_fluid_generate (h, 1, &id) == 0 && idt_fluid_generate_get (f, 5, ids) == 0 && id > ids[4],
        "the next broker makes an id above ids that have arrived, even if the caller has not read them");
    idt_future_destroy (f);
    idt_close (h);
    test_server_destroy (s);
    test_server_destroy (other);
}

static void test_once (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_NORECONNECT);
    fluid_t id;

    restart (s);
    ok (idt_fluid_generate (h, 1, &id) < 0, "with IDT_O_NORECONNECT a call for ids after a restart fails");
    ok (idt_fluid_generate (h, 1, &id) < 0, "with IDT_O_NORECONNECT each further call for ids fails");
    idt_close (h);
    test_server_destroy (s);
}

/* --- time limits ---------------------------------------------------------------------------- */

static void test_deadline (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_RECONNECT);
    fluid_t id;

    ok (idt_fluid_generate (h, 1, &id) == 0, "with IDT_O_RECONNECT a call for ids succeeds");
    test_server_stop (s);
    idt_future_t *f = idt_fluid_generate_async (h, 1), *g = ask (h, "test.log");
    ok (f && g, "with IDT_O_RECONNECT requests without a broker are kept for the next broker: %s", strerror (errno));
    ok (idt_future_wait (f, 50) < 0 && errno == ETIMEDOUT,
        "a wait for a request that is kept ends after the caller's timeout: %s", strerror (errno));
    idt_future_destroy (idt_rpc (h, "test.fluid", "a request that would make all ids malformed", IDT_NODEID_ANY, 0));
    test_server_start (s);
    ok (idt_future_wait (f, -1) == 0 && idt_fluid_generate_get (f, 1, &id) == 0,
        "the next broker answers the first kept request");
    ok (idt_future_wait (g, -1) == 0 && idt_future_errnum (g) == 0, "the next broker answers the second kept request");
    idt_future_destroy (f);
    idt_future_destroy (g);
    ok (idt_fluid_generate (h, 1, &id) == 0, "a kept request whose future was destroyed is not sent");
    idt_close (h);
    test_server_destroy (s);
}

/* --- another instance ----------------------------------------------------------------------- */

static void test_other_instance (void)
{
    struct test_server *s = server (UUID_1), *other = server (UUID_2);
    idt_t *h = open_or_bail (test_server_uri (s), 0);
    fluid_t id, last;

    test_server_stop (s);
    test_server_set_instance (s, UUID_2);
    test_server_start (s);
    ok (idt_fluid_generate (h, 1, &id) < 0 && errno == ESTALE,
        "a broker of another instance on the same socket is refused with ESTALE");
    ok (strstr (idt_lost_error (h), UUID_1) && strstr (idt_lost_error (h), UUID_2),
        "the error after a broker of another instance has both UUIDs: %s", idt_lost_error (h));
    test_server_stop (s);
    test_server_set_instance (s, NULL);
    test_server_start (s);
    idt_future_t *f = idt_fluid_generate_async (h, 1);
    ok (f && idt_future_wait (f, 50) < 0 && errno == ETIMEDOUT,
        "a broker that does not know its instance yet is tried again: %s", idt_lost_error (h));
    test_server_stop (s);
    test_server_set_instance (s, UUID_1);
    test_server_start (s);
    ok (f && idt_fluid_generate_get (f, 1, &id) == 0, "the call succeeds when the broker knows its instance");
    idt_future_destroy (f);
    idt_close (h);
    test_server_stop (s);
    test_server_set_instance (s, NULL);
    test_server_start (s);
    h = open_or_bail (test_server_uri (s), 0);
    ok (idt_fluid_generate (h, 1, &last) == 0, "a new handle accepts a broker that does not know its instance");
    test_server_stop (s);
    test_server_set_instance (s, UUID_1);
    test_server_start (s);
    ok (idt_fluid_generate (h, 1, &id) == 0 && id > last,
        "a handle accepts the same broker when that broker has joined an instance");
    idt_close (h);

    h = open_or_bail (both (s, other), 0);
    test_server_stop (s);
    f = idt_fluid_generate_async (h, 1);
    ok (f && idt_future_wait (f, 100) < 0 && errno == ETIMEDOUT,
        "a call skips a broker of another instance in the list: %s", idt_lost_error (h));
    test_server_start (s);
    ok (f && idt_fluid_generate_get (f, 1, &id) == 0 && strcmp (idt_get_uri (h), test_server_uri (s)) == 0,
        "the call succeeds when the broker of the right instance is back");
    idt_future_destroy (f);
    idt_close (h);
    test_server_destroy (s);
    test_server_destroy (other);
}

/* If a broker had not joined an instance when the client connected, the client asks for the instance's UUID after the
 * broker has made ids.
 */
static void test_learned (void)
{
    struct test_server *s = server (NULL);
    idt_t *h = open_or_bail (test_server_uri (s), 0);
    fluid_t id;

    ok (idt_attr_set (h, "instance.uuid", UUID_1, NULL) == 0 && idt_fluid_generate (h, 1, &id) == 0
            && idt_fluid_generate (h, 1, &id) == 0,
        "a broker joins its instance, and makes ids");
    test_server_stop (s);
    test_server_set_instance (s, UUID_2);
    test_server_start (s);
    ok (idt_fluid_generate (h, 1, &id) < 0 && errno == ESTALE,
        "after its broker has joined an instance, a handle refuses a broker of another instance");
    idt_close (h);
    h = open_or_bail (test_server_uri (s), 0);
    idt_close (h);
    test_server_destroy (s);
}

/* --- a list --------------------------------------------------------------------------------- */

static void test_list (void)
{
    struct test_server *a = server (UUID_1), *b = server (UUID_1);
    idt_t *h = open_or_bail (both (a, b), 0);
    fluid_t ids[5000], id;

    ok (idt_fluid_generate (h, 5000, ids) == 0, "the first broker of a list makes ids");
    test_server_stop (a);
    ok (idt_fluid_generate (h, 1, &id) == 0 && strcmp (idt_get_uri (h), test_server_uri (b)) == 0,
        "when the first broker is stopped, the second makes ids");
    ok (id > ids[4999], "the second broker's id is above the ids of the first, although the second has made fewer ids");
    test_server_start (a);
    test_server_stop (b);
    ok (idt_fluid_generate (h, 1, ids) == 0 && ids[0] > id && strcmp (idt_get_uri (h), test_server_uri (a)) == 0,
        "when the second broker is stopped, the first makes ids again");
    idt_close (h);
    test_server_destroy (a);
    test_server_destroy (b);
}

/* --- a reactor ------------------------------------------------------------------------------ */

struct seen {
    int calls, errnum, told, events, lost_events;
    bool stop_at_event;
};

static void answer_cb (idt_future_t *f, void *arg)
{
    struct seen *seen = arg;

    seen->calls++;
    seen->errnum = idt_future_errnum (f);
    idt_reactor_stop (idt_get_reactor (idt_future_handle (f)));
}

static void lost_cb (idt_t *h, int errnum, void *arg)
{
    struct seen *seen = arg;

    seen->told = errnum;
    idt_reactor_stop (idt_get_reactor (h));
}

static void event_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    struct seen *seen = arg;

    if (strcmp (idt_msg_topic (msg), "event.lost") == 0)
        seen->lost_events++;
    else {
        seen->events++;
        idt_reactor_stop (idt_get_reactor (h));
    }
}

static void echo_cb (idt_t *h, const idt_msg_t *msg, void *arg)
{
    (void)idt_respond (h, msg, idt_msg_string (msg));
}

static const struct idt_handler_spec handlers[] = {
    { IDT_MSGTYPE_EVENT, "*", event_cb, 0 },
    { IDT_MSGTYPE_REQUEST, "me.echo", echo_cb, IDT_ROLE_ALL },
    IDT_HANDLERS_END,
};

static void run (idt_t *h)
{
    if (idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_DEFAULT) < 0)
        diag ("the reactor ended: %s", strerror (errno));
}

static void test_reactor (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_RECONNECT);
    struct seen seen = { 0 }, second = { 0 };

    idt_set_lost (h, lost_cb, &seen);
    idt_future_t *f = ask (h, "test.never"), *g = NULL;
    ok (idt_future_then (f, -1, answer_cb, &seen) == 0 && result (idt_fluid_generate_async (h, 1)) == 0,
        "with IDT_O_RECONNECT a request waits for its response");
    restart (s);
    run (h);
    ok (seen.calls == 1 && seen.errnum == ECONNRESET,
        "a request that a broker had received fails with ECONNRESET after a restart: %s", strerror (seen.errnum));
    g = ask (h, "test.echo");
    ok (g && idt_future_then (g, -1, answer_cb, &second) == 0,
        "a request that failed with ECONNRESET may be sent again");
    run (h);
    ok (second.calls == 1 && second.errnum == 0 && seen.calls == 1,
        "the next broker answers a request that is sent again: %s", strerror (second.errnum));
    ok (seen.told == 0, "the lost callback is not called while the handle can reconnect");
    idt_future_destroy (f);
    idt_future_destroy (g);
    f = NULL;
    test_server_stop (s);
    f = ask (h, "test.echo");
    ok (f && idt_future_then (f, 100, answer_cb, &seen) == 0,
        "with IDT_O_RECONNECT a request without a broker is accepted");
    run (h);
    ok (seen.calls == 2 && seen.errnum == ETIMEDOUT, "the timeout of a request without a broker ends the request: %s",
        strerror (seen.errnum));
    idt_future_destroy (f);
    test_server_set_instance (s, UUID_2);
    test_server_start (s);
    f = ask (h, "test.echo");
    second = (struct seen){ 0 };
    idt_future_then (f, -1, answer_cb, &second);
    run (h);
    ok (second.calls == 1 && second.errnum == ESTALE,
        "if the next broker is of another instance, a waiting request fails with ESTALE: %s", idt_future_error (f));
    while (!seen.told)
        idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    ok (seen.told == ESTALE, "the lost callback is called with ESTALE when the broker is of another instance");
    idt_future_destroy (f);
    idt_close (h);
    test_server_destroy (s);
}

/* --- subscriptions, services ---------------------------------------------------------------- */

static void publish (struct test_server *s, const char *topic)
{
    idt_t *h = open_or_bail (test_server_uri (s), 0);

    if (result (idt_event_publish (h, topic, 0, NULL)) != 0)
        bail_out ("publish");
    idt_close (h);
}

/* Whether the handle receives an event with that topic. */
static bool hears (idt_t *h, struct test_server *s, struct seen *seen, const char *topic)
{
    int before = seen->events;

    publish (s, topic);
    if (result (ask (h, "test.echo")) != 0)
        return false;
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT);
    return seen->events > before;
}

static void test_events (int flags)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), flags);
    struct seen seen = { 0 };

    idt_handlers_add (h, handlers, &seen);
    ok (result (idt_event_subscribe (h, "x.")) == 0 && result (idt_event_subscribe (h, "y.")) == 0
            && result (idt_event_unsubscribe (h, "y.")) == 0 && hears (h, s, &seen, "x.1"),
        "flags %d: events of a subscription arrive", flags);
    restart (s);
    ok (flags ? result (ask (h, "test.echo")) == 0 : idt_attr_get (h, "log-level") != NULL,
        "a call for ids reconnects after a restart");
    ok (hears (h, s, &seen, "x.2"), "a subscription is made again after a reconnection: %d events", seen.events);
    ok (seen.lost_events == 1, "after a reconnection exactly one event reports that events may be missing");
    ok (!hears (h, s, &seen, "y.1"), "a subscription that was removed is not made again after a reconnection");
    test_server_stop (s);
    idt_future_t *own = idt_event_publish (h, "x.own", 0, NULL);
    int before = seen.events;
    test_server_start (s);
    int rc = result (own);
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT);
    ok (rc == 0 && seen.events == before + 1,
        "after a reconnection subscriptions are made again before waiting requests are sent");
    test_server_stop (s);
    idt_future_t *f = flags ? ask (h, "test.echo") : idt_event_publish (h, "z", 0, NULL);
    ok (f != NULL && result (idt_event_unsubscribe (h, "x.")) == 0,
        "without a broker the removal of a subscription succeeds immediately");
    test_server_start (s);
    ok (result (f) == 0 && !hears (h, s, &seen, "x.3"),
        "the next broker does not receive a subscription that was removed");
    idt_close (h);
    test_server_destroy (s);
}

/* The broker ends before it answers a subscription: the request fails, and there is no registration. */
static void test_half_made (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_RECONNECT);
    struct seen seen = { 0 };

    idt_handlers_add (h, handlers, &seen);
    test_server_stop (s);
    idt_future_t *f = idt_event_subscribe (h, "x."), *forgotten = idt_event_subscribe (h, "y.");
    idt_future_destroy (forgotten);
    test_server_start (s);
    ok (result (f) == 0 && hears (h, s, &seen, "x.1") && seen.events == 1,
        "a subscription that waits for a broker is made exactly once");
    ok (hears (h, s, &seen, "y.1"), "a subscription that waits for a broker is made even if its future was destroyed");
    idt_close (h);
    test_server_destroy (s);
}

/* Blocks the server's only thread, so that it answers no client until the test continues. */
struct pause {
    sem_t begun, over;
};

static bool pause_plug (void *arg, const idt_msg_t *request, struct test_reply *reply)
{
    struct pause *p = arg;

    if (strcmp (idt_msg_topic (request), "pause") != 0)
        return false;
    sem_post (&p->begun);
    while (sem_wait (&p->over) < 0)
        ;
    return true;
}

static void test_ended_unsent (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_RECONNECT);
    struct seen seen = { 0 };

    idt_handlers_add (h, handlers, &seen);
    test_server_stop (s);
    idt_future_t *f = idt_event_subscribe (h, "x."), *twice = idt_event_subscribe (h, "x.");
    ok (result (idt_event_unsubscribe (h, "x.")) == 0 && result (idt_event_unsubscribe (h, "x.")) == 0,
        "subscriptions that wait for a broker can be removed");
    test_server_start (s);
    int errnum = result (f), another = result (twice);
    ok (errnum == ECANCELED && another == ECANCELED, "the futures of removed subscriptions fail with ECANCELED: %s",
        strerror (errnum));
    ok (!hears (h, s, &seen, "x.1"), "no broker receives a subscription that was removed while it waited");
    idt_close (h);
    test_server_destroy (s);
}

static void test_ended_while_told (void)
{
    struct test_server *s = server (UUID_1);
    struct pause p;
    struct seen seen = { 0 };

    sem_init (&p.begun, 0, 0);
    sem_init (&p.over, 0, 0);
    test_server_plug (s, pause_plug, &p);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_RECONNECT);
    idt_handlers_add (h, handlers, &seen);
    ok (result (idt_event_subscribe (h, "x.")) == 0 && hears (h, s, &seen, "x.1"),
        "events of a subscription arrive before a restart");
    restart (s);
    idt_t *other = open_or_bail (test_server_uri (s), 0);
    idt_future_t *f = ask (other, "pause"), *echo = NULL;
    while (sem_wait (&p.begun) < 0)
        ;
    echo = ask (h, "test.echo");
    ok (echo && idt_future_wait (echo, 5 * RECONNECT_PAUSE_MIN_MS) < 0 && errno == ETIMEDOUT,
        "a subscription is sent to the next broker again, which does not answer it");
    idt_future_destroy (idt_event_unsubscribe (h, "x."));
    sem_post (&p.over);
    ok (result (f) == 0 && result (echo) == 0 && !hears (h, s, &seen, "x.2"),
        "a subscription that is removed while the broker processes it is removed, even if its future was destroyed");
    idt_close (other);
    idt_close (h);
    test_server_destroy (s);
    sem_destroy (&p.begun);
    sem_destroy (&p.over);
}

static void on_alarm (int signum)
{
}

static bool not_again (void *arg)
{
    ++*(int *)arg;
    return false;
}

/* Opening a handle to a broker that does not answer ends when a signal arrives and the interrupt callback returns
 * false. The next broker of the list is not tried.
 */
static void interrupt_opening (const char *uris)
{
    const struct itimerval soon = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
    idt_error_t error = { .text = "" };
    int asked = 0;

    sigaction (SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
    setitimer (ITIMER_REAL, &soon, NULL);
    idt_t *h = idt_open_ex (uris, &(struct idt_open_options){ .timeout_ms = -1, .interrupt = not_again, .arg = &asked },
                            &error);
    int errnum = errno;
    setitimer (ITIMER_REAL, &never, NULL);
    ok (!h && errnum == EINTR && asked == 1,
        "after a signal the interrupt callback is called, and can end idt_open_ex (): %s", error.text);
    idt_close (h);
    asked = 0;
    h = idt_open_ex (uris, &(struct idt_open_options){ .timeout_ms = -1, .interrupt = not_again, .arg = &asked },
                     &error);
    ok (!h && errno == EINTR && asked == 1,
        "without a signal the interrupt callback is called regularly, and can end idt_open_ex ()");
    idt_close (h);
}

/* The first broker of a list is stopped: it accepts connections and does not answer. */
static void test_stopped_first (void)
{
    struct test_server *s = server (UUID_1), *other = server (UUID_1);
    idt_error_t error = { .text = "" };
    struct pause p;

    sem_init (&p.begun, 0, 0);
    sem_init (&p.over, 0, 0);
    test_server_plug (s, pause_plug, &p);
    idt_t *blocked = open_or_bail (test_server_uri (s), 0);
    idt_future_t *f = ask (blocked, "pause");
    while (sem_wait (&p.begun) < 0)
        ;
    idt_t *h = idt_open_ex (both (s, other), &(struct idt_open_options){ .timeout_ms = 4000 }, &error);
    ok (h && strcmp (idt_get_uri (h), test_server_uri (other)) == 0,
        "if the first broker of a list does not answer, the second is reached within the timeout: %s", error.text);
    idt_close (h);
    interrupt_opening (both (s, other));
    h = idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .timeout_ms = 50 }, &error);
    ok (!h && errno == ETIMEDOUT && strstr (error.text, test_server_uri (s)),
        "if a list has one broker, that broker gets the whole timeout: %s", error.text);
    sem_post (&p.over);
    ok (result (f) == 0, "the broker that paused answers its request afterwards");
    h = idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .timeout_ms = -1 }, &error);
    ok (h != NULL, "a caller without a timeout connects to a broker that answers late");
    idt_close (h);
    idt_close (blocked);
    test_server_destroy (s);
    test_server_destroy (other);
    sem_destroy (&p.begun);
    sem_destroy (&p.over);
}

int main (int argc, char *argv[])
{
    test_typed ();
    test_not_got ();
    test_once ();
    test_deadline ();
    test_other_instance ();
    test_learned ();
    test_list ();
    test_reactor ();
    test_events (0);
    test_events (IDT_O_RECONNECT);
    test_half_made ();
    test_ended_unsent ();
    test_ended_while_told ();
    test_stopped_first ();
    return done_testing ();
}
