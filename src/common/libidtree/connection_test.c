/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* connection_test.c - a broker ends under a handle, and it or another one is there again */
#include "config.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "libidtree/connect/redial.h"
#include "libidtree/private.h"
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

/* An answer, or errno; ends the future. */
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

    ok (idt_fluid_generate (h, 2, a) == 0, "ids are got");
    restart (s);
    ok (idt_fluid_generate (h, 2, b) == 0 && b[0] > a[1], "a call that finds the broker restarted gets its ids: %s",
        strerror (errno));
    ok (!idt_lost_error (h), "there is a connection");
    const char *level = idt_attr_get (h, "size");
    restart (s);
    ok (idt_get_rank (h, &rank) == 0 && rank == 3 && level && strcmp (level, "8") == 0,
        "so does one for an attribute, and what was lent stays");
    restart (s);
    ok (result (ask (h, "test.echo")) != 0, "a request whose meaning the library does not know fails");
    ok (result (ask (h, "test.echo")) != 0, "and again");
    ok (idt_attr_set (h, "log-level", "5", NULL) == 0 && result (ask (h, "test.echo")) == 0,
        "until another call connected anew");
    idt_future_t *f = ask (h, "test.never");
    idt_future_t *g = idt_fluid_generate_async (h, 1);
    (void)result (g);
    restart (s);
    errno = 0;
    ok (idt_future_wait (f, -1) == -1 && errno == ECONNRESET, "what is under way fails with ECONNRESET: %s",
        idt_future_error (f));
    ok (idt_fluid_generate (h, 1, b) == 0, "once");
    idt_future_destroy (f);
    idt_close (h);
    test_server_destroy (s);
}

/* What one broker answered is not got yet when another is asked, whose generator is behind. */
static void test_not_got (void)
{
    struct test_server *s = server (UUID_1), *other = server (UUID_1);
    idt_t *h = open_or_bail (both (s, other), 0);
    idt_future_t *f = idt_fluid_generate_async (h, 5);
    fluid_t ids[5] = { 0 }, id = 0;

    ok (f && idt_future_wait (f, -1) == 0, "ids are there");
    test_server_stop (s);
    ok (idt_fluid_generate (h, 1, &id) == 0 && idt_fluid_generate_get (f, 5, ids) == 0 && id > ids[4],
        "the next broker makes one above them, though nobody had got them");
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
    ok (idt_fluid_generate (h, 1, &id) < 0, "IDT_O_NORECONNECT: a call fails");
    ok (idt_fluid_generate (h, 1, &id) < 0, "and the next one");
    idt_close (h);
    test_server_destroy (s);
}

/* --- time limits ---------------------------------------------------------------------------- */

static void test_deadline (void)
{
    struct test_server *s = server (UUID_1);
    idt_t *h = open_or_bail (test_server_uri (s), IDT_O_RECONNECT);
    fluid_t id;

    ok (idt_fluid_generate (h, 1, &id) == 0, "IDT_O_RECONNECT: ids are got");
    test_server_stop (s);
    idt_future_t *f = idt_fluid_generate_async (h, 1), *g = ask (h, "test.log");
    ok (f && g, "what is asked for without a broker waits for one: %s", strerror (errno));
    ok (idt_future_wait (f, 50) < 0 && errno == ETIMEDOUT, "for as long as one wants to: %s", strerror (errno));
    idt_future_destroy (idt_rpc (h, "test.fluid", "what makes all ids be malformed", IDT_NODEID_ANY, 0));
    test_server_start (s);
    ok (idt_future_wait (f, -1) == 0 && idt_fluid_generate_get (f, 1, &id) == 0, "and is answered when there is one");
    ok (idt_future_wait (g, -1) == 0 && idt_future_errnum (g) == 0, "all of it");
    idt_future_destroy (f);
    idt_future_destroy (g);
    ok (idt_fluid_generate (h, 1, &id) == 0, "but for what nobody waited for any more");
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
    ok (idt_fluid_generate (h, 1, &id) < 0 && errno == ESTALE, "another instance at the same place is refused");
    ok (strstr (idt_lost_error (h), UUID_1) && strstr (idt_lost_error (h), UUID_2), "%s", idt_lost_error (h));
    test_server_stop (s);
    test_server_set_instance (s, NULL);
    test_server_start (s);
    idt_future_t *f = idt_fluid_generate_async (h, 1);
    ok (f && idt_future_wait (f, 50) < 0 && errno == ETIMEDOUT, "one that does not know is waited for: %s",
        idt_lost_error (h));
    test_server_stop (s);
    test_server_set_instance (s, UUID_1);
    test_server_start (s);
    ok (f && idt_fluid_generate_get (f, 1, &id) == 0, "until it does");
    idt_future_destroy (f);
    idt_close (h);
    test_server_stop (s);
    test_server_set_instance (s, NULL);
    test_server_start (s);
    h = open_or_bail (test_server_uri (s), 0);
    ok (idt_fluid_generate (h, 1, &last) == 0, "one that did not know before");
    test_server_stop (s);
    test_server_set_instance (s, UUID_1);
    test_server_start (s);
    ok (idt_fluid_generate (h, 1, &id) == 0 && id > last, "may learn it");
    idt_close (h);

    h = open_or_bail (both (s, other), 0);
    test_server_stop (s);
    f = idt_fluid_generate_async (h, 1);
    ok (f && idt_future_wait (f, 100) < 0 && errno == ETIMEDOUT, "one of the list that is another's is passed over: %s",
        idt_lost_error (h));
    test_server_start (s);
    ok (f && idt_fluid_generate_get (f, 1, &id) == 0 && strcmp (idt_get_uri (h), test_server_uri (s)) == 0,
        "until ours is there again");
    idt_future_destroy (f);
    idt_close (h);
    test_server_destroy (s);
    test_server_destroy (other);
}

/* A broker that had not joined when it was connected to is asked again when it has made ids. */
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
    ok (idt_fluid_generate (h, 1, &id) < 0 && errno == ESTALE, "from then on no other will do");
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

    ok (idt_fluid_generate (h, 5000, ids) == 0, "ids come from the first of a list");
    test_server_stop (a);
    ok (idt_fluid_generate (h, 1, &id) == 0 && strcmp (idt_get_uri (h), test_server_uri (b)) == 0,
        "when that is gone, from the next");
    ok (id > ids[4999], "and above, though it had made fewer");
    test_server_start (a);
    test_server_stop (b);
    ok (idt_fluid_generate (h, 1, ids) == 0 && ids[0] > id && strcmp (idt_get_uri (h), test_server_uri (a)) == 0,
        "and then from the first again");
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
        "a request waits for its answer");
    restart (s);
    run (h);
    ok (seen.calls == 1 && seen.errnum == ECONNRESET, "it ends with ECONNRESET: %s", strerror (seen.errnum));
    g = ask (h, "test.echo");
    ok (g && idt_future_then (g, -1, answer_cb, &second) == 0, "asked again");
    run (h);
    ok (second.calls == 1 && second.errnum == 0 && seen.calls == 1, "it is answered: %s", strerror (second.errnum));
    ok (seen.told == 0, "of the loss nobody else is told");
    idt_future_destroy (f);
    idt_future_destroy (g);
    f = NULL;
    test_server_stop (s);
    f = ask (h, "test.echo");
    ok (f && idt_future_then (f, 100, answer_cb, &seen) == 0, "without a broker");
    run (h);
    ok (seen.calls == 2 && seen.errnum == ETIMEDOUT, "a time limit holds: %s", strerror (seen.errnum));
    idt_future_destroy (f);
    test_server_set_instance (s, UUID_2);
    test_server_start (s);
    f = ask (h, "test.echo");
    second = (struct seen){ 0 };
    idt_future_then (f, -1, answer_cb, &second);
    run (h);
    ok (second.calls == 1 && second.errnum == ESTALE, "another instance ends what waits: %s", idt_future_error (f));
    while (!seen.told)
        idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_ONCE);
    ok (seen.told == ESTALE, "and the loss is told");
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

/* Whether events with that topic come. */
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
        "flags %d: events come", flags);
    restart (s);
    ok (flags ? result (ask (h, "test.echo")) == 0 : idt_attr_get (h, "log-level") != NULL,
        "another call connects anew");
    ok (hears (h, s, &seen, "x.2"), "a subscription lasts: %d events", seen.events);
    ok (seen.lost_events == 1, "that some may be missing is told once");
    ok (!hears (h, s, &seen, "y.1"), "one that ended does not");
    test_server_stop (s);
    idt_future_t *own = idt_event_publish (h, "x.own", 0, NULL);
    int before = seen.events;
    test_server_start (s);
    int rc = result (own);
    idt_reactor_run (idt_get_reactor (h), IDT_REACTOR_NOWAIT);
    ok (rc == 0 && seen.events == before + 1, "a subscription is said again before what waits");
    test_server_stop (s);
    idt_future_t *f = flags ? ask (h, "test.echo") : idt_event_publish (h, "z", 0, NULL);
    ok (f != NULL && result (idt_event_unsubscribe (h, "x.")) == 0, "without a broker one ends at once");
    test_server_start (s);
    ok (result (f) == 0 && !hears (h, s, &seen, "x.3"), "and stays so");
    idt_close (h);
    test_server_destroy (s);
}

/* The broker ends while the answer to a subscription is awaited: it fails, and is none. */
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
    ok (result (f) == 0 && hears (h, s, &seen, "x.1") && seen.events == 1, "one that waited for a broker is made once");
    ok (hears (h, s, &seen, "y.1"), "also where nobody waits for the answer");
    idt_close (h);
    test_server_destroy (s);
}

/* Lets the server's one thread wait, so that it says nothing to anybody, until the test goes on. */
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
        "subscriptions that wait for a broker are ended");
    test_server_start (s);
    int errnum = result (f), another = result (twice);
    ok (errnum == ECANCELED && another == ECANCELED, "their futures end with ECANCELED: %s", strerror (errnum));
    ok (!hears (h, s, &seen, "x.1"), "and no broker is asked for them");
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
    ok (result (idt_event_subscribe (h, "x.")) == 0 && hears (h, s, &seen, "x.1"), "events come");
    restart (s);
    idt_t *other = open_or_bail (test_server_uri (s), 0);
    idt_future_t *f = ask (other, "pause"), *echo = NULL;
    while (sem_wait (&p.begun) < 0)
        ;
    echo = ask (h, "test.echo");
    ok (echo && idt_future_wait (echo, 5 * REDIAL_PAUSE_MIN_MS) < 0 && errno == ETIMEDOUT,
        "the next broker is told of the subscription, and says nothing");
    idt_future_destroy (idt_event_unsubscribe (h, "x."));
    sem_post (&p.over);
    ok (result (f) == 0 && result (echo) == 0 && !hears (h, s, &seen, "x.2"),
        "a subscription that ends while a broker is told of it stays so, though nobody waits for that");
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

/* One that says nothing is not waited for when a signal came, and who opens the handle says so; nor is the next one. */
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
    ok (!h && errnum == EINTR && asked == 1, "opening is interrupted when that is wanted: %s", error.text);
    idt_close (h);
    asked = 0;
    h = idt_open_ex (uris, &(struct idt_open_options){ .timeout_ms = -1, .interrupt = not_again, .arg = &asked },
                     &error);
    ok (!h && errno == EINTR && asked == 1, "without a signal, too");
    idt_close (h);
}

/* The first of a list is stopped: it takes connections and says nothing. */
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
    ok (h && strcmp (idt_get_uri (h), test_server_uri (other)) == 0, "the second of a list is reached in time: %s",
        error.text);
    idt_close (h);
    interrupt_opening (both (s, other));
    h = idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .timeout_ms = 50 }, &error);
    ok (!h && errno == ETIMEDOUT && strstr (error.text, test_server_uri (s)), "one alone has all of it: %s",
        error.text);
    sem_post (&p.over);
    ok (result (f) == 0, "it goes on");
    h = idt_open_ex (test_server_uri (s), &(struct idt_open_options){ .timeout_ms = -1 }, &error);
    ok (h != NULL, "and is there for who has no limit");
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
