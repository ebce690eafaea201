/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* module_test.c - answers, requests to other services and options of a module; the test plays the broker */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libidtree/transport.h"
#include "libmodule/module.h"
#include "test/tap.h"

/* --- the broker ------------------------------------------------------------------------------------- */

struct broker {
    idt_t *h;
    const idt_msg_t *answer;  /* the module's last answer */
    const idt_msg_t *request; /* the module's last request */
    int answers;
    int lines;              /* logged */
    int fail;               /* how many of the next messages cannot be sent */
    const char *attrs[9];   /* attributes that are set: name, value, ..., NULL */
    const char *defined[2]; /* name and value of the last idt_attr_define () */
};

static int broker_send (void *impl, const idt_msg_t *msg)
{
    struct broker *b = impl;
    bool is_answer = idt_msg_type (msg) == IDT_MSGTYPE_RESPONSE;
    const idt_msg_t **last = is_answer ? &b->answer : &b->request;

    if (b->fail > 0) {
        b->fail--;
        errno = EMSGSIZE;
        return -1;
    }
    b->answers += is_answer;
    idt_msg_unref (*last);
    *last = idt_msg_ref (msg);
    return 0;
}

static const char *broker_attr_get (void *impl, const char *name)
{
    struct broker *b = impl;

    for (const char *const *a = b->attrs; *a; a += 2)
        if (strcmp (a[0], name) == 0)
            return a[1];
    errno = ENOENT;
    return NULL;
}

static const char *broker_attr_define (void *impl, const char *name, const char *value)
{
    struct broker *b = impl;
    const char *given = broker_attr_get (impl, name);

    b->defined[0] = name;
    return b->defined[1] = given ? given : value;
}

static void broker_log (void *impl, int level, const char *name, const char *text)
{
    struct broker *b = impl;

    b->lines++;
}

static void broker_destroy (void *impl)
{
    struct broker *b = impl;

    idt_msg_unref (b->answer);
    idt_msg_unref (b->request);
}

static const struct idt_transport transport = {
    .send = broker_send,
    .attr_get = broker_attr_get,
    .attr_define = broker_attr_define,
    .log = broker_log,
    .destroy = broker_destroy,
};

static void begin (struct broker *b)
{
    *b = (struct broker){ 0 };
    if (!(b->h = idt_handle_create (&transport, b)) || !idt_get_reactor (b->h))
        bail_out ("no memory");
}

static idt_msg_t *request_create (void)
{
    idt_msg_t *msg = idt_msg_create (IDT_MSGTYPE_REQUEST);

    if (!msg || idt_msg_set_topic (msg, "test.ask") < 0)
        bail_out ("no memory");
    idt_msg_set_matchtag (msg, 7);
    return msg;
}

static void check_clients (void)
{
    static const char one[] = "11111111-0000-4000-8000-000000000000", other[] = "22222222-0000-4000-8000-000000000000";
    idt_msg_t *msg = request_create (), *end = request_create ();

    ok (!module_same_client (msg, end), "a request without a route belongs to no client");
    if (idt_msg_route_push (msg, one) < 0 || idt_msg_route_push (msg, other) < 0 || idt_msg_route_push (end, one) < 0)
        bail_out ("no memory");
    ok (module_same_client (msg, end), "the client of a request is its first sender");
    idt_msg_route_drop_oldest (msg);
    ok (!module_same_client (msg, end), "requests with different first senders are of different clients");
    idt_msg_unref (msg);
    idt_msg_unref (end);
}

static bool answered (const struct broker *b, int errnum, const char *text)
{
    const char *s = b->answer ? idt_msg_string (b->answer) : NULL;

    return b->answer && idt_msg_errnum (b->answer) == (uint32_t)errnum && idt_msg_matchtag (b->answer) == 7
           && (text ? s && strcmp (s, text) == 0 : !s);
}

/* --- answers ---------------------------------------------------------------------------------------- */

static void check_answers (void)
{
    struct broker b;
    const void *data;
    size_t size;

    begin (&b);
    idt_msg_t *msg = request_create ();
    module_respond (b.h, msg, "{\"a\":1}");
    ok (answered (&b, 0, "{\"a\":1}"), "a response may be a text");
    module_respond (b.h, msg, NULL);
    ok (answered (&b, 0, NULL), "a response may be empty");
    module_respond_raw (b.h, msg, "\1\2", 2);
    ok (idt_msg_payload (b.answer, &data, &size) == 0 && size == 2 && memcmp (data, "\1\2", 2) == 0,
        "a response may be bytes");
    module_respond_object (b.h, msg, json_pack ("{s:i}", "b", 2));
    ok (answered (&b, 0, "{\"b\":2}"), "a JSON object is sent as a text");
    module_respond_error (b.h, msg, EBUSY, "not now");
    ok (answered (&b, EBUSY, "not now"), "an error response has a text");
    module_respond_new (b.h, msg, NULL);
    ok (answered (&b, ENOMEM, NULL) && b.answers == 6,
        "if the text of a response could not be allocated, the requester gets ENOMEM");
    module_respond_object (b.h, msg, NULL);
    ok (answered (&b, ENOMEM, NULL) && b.answers == 7,
        "if the JSON object of a response could not be allocated, the requester gets ENOMEM");
    ok (b.lines == 0, "nothing is logged for a response that could not be allocated");
    b.fail = 2;
    module_respond (b.h, msg, "{}");
    ok (b.lines == 1, "a response that cannot be sent is logged");
    idt_msg_unref (msg);
    idt_close (b.h);
}

/* --- requests to other services --------------------------------------------------------------------- */

static int heard, heard_errnum;

static void heard_cb (idt_future_t *f, void *arg)
{
    struct upcall *up = arg;

    heard++;
    heard_errnum = idt_future_errnum (f);
    *(bool *)up->owner = up->f == f;
    upcall_destroy (up);
}

static idt_future_t *ask (struct broker *b)
{
    return idt_rpc (b->h, "other.method", NULL, IDT_NODEID_ANY, 0);
}

static void check_upcalls (void)
{
    struct upcalls ups = { .spare = { 0 } };
    struct broker b;
    bool own = false;

    begin (&b);
    ok (upcall_create (&ups, ask (&b), -1, heard_cb, &own) && !LIST_EMPTY (&ups.calls),
        "a request to the parent is kept in the list of upcalls");
    idt_msg_t *answer = idt_msg_respond (b.request, EBUSY);
    idt_handle_dispatch (b.h, answer);
    ok (heard == 1 && heard_errnum == EBUSY && own && LIST_EMPTY (&ups.calls),
        "an upcall is kept until its response was passed to the callback");
    if (!upcall_create (&ups, ask (&b), 1, heard_cb, &own))
        bail_out ("upcall");
    while (heard < 2 && idt_reactor_run (idt_get_reactor (b.h), IDT_REACTOR_ONCE) == 0)
        ;
    ok (heard == 2 && heard_errnum == ETIMEDOUT && LIST_EMPTY (&ups.calls),
        "an upcall is kept until its timeout was passed to the callback");
    b.fail = 1;
    ok (!upcall_create (&ups, ask (&b), -1, heard_cb, &own) && errno == EMSGSIZE && LIST_EMPTY (&ups.calls),
        "an upcall that could not be sent is not kept, and errno is set");
    upcalls_stop (&ups, b.h, NULL);
    idt_msg_unref (answer);
    idt_close (b.h);
}

static void check_stop (void)
{
    struct upcalls ups = { .spare = { 0 } };
    struct broker b;
    bool own;

    begin (&b);
    heard = 0;
    idt_msg_t *msg = request_create ();
    struct upcall *up = upcall_create (&ups, ask (&b), -1, heard_cb, &own);
    up->msg = idt_msg_ref (msg);
    if (!upcall_create (&ups, ask (&b), -1, heard_cb, &own))
        bail_out ("upcall");
    upcalls_stop (&ups, b.h, "the module is stopping");
    ok (LIST_EMPTY (&ups.calls) && heard == 0, "after upcalls_stop () no callback is called");
    ok (b.answers == 1 && answered (&b, EHOSTUNREACH, "the module is stopping"),
        "after upcalls_stop () the requests that depend on upcalls are answered");
    upcall_destroy (NULL);
    idt_msg_unref (msg);
    idt_close (b.h);
}

/* --- options ---------------------------------------------------------------------------------------- */

static bool refuses_number (struct broker *b, const char *value, const char *text)
{
    uint32_t n = 77;
    idt_error_t error;

    b->attrs[0] = "test.max";
    b->attrs[1] = value;
    errno = 0;
    return module_option_number (b->h, "test.max", "5", 2, 10, &n, &error) < 0 && errno == EINVAL && n == 77
           && strcmp (error.text, text) == 0;
}

static void check_numbers (void)
{
    struct broker b;
    idt_error_t error;
    uint32_t n = 77;

    begin (&b);
    ok (module_option_number (b.h, "test.max", "5", 2, 10, &n, &error) == 0 && n == 5
            && strcmp (b.defined[0], "test.max") == 0 && strcmp (b.defined[1], "5") == 0,
        "an attribute that is not set is defined with the default of the module");
    n = 77;
    ok (module_option_number (b.h, "test.max", NULL, 2, 10, &n, &error) == 0 && n == 77,
        "an attribute of a module without a default is not changed");
    ok (refuses_number (&b, "1", "test.max=1: must be a number from 2 to 10"),
        "a number of an attribute below the minimum is refused");
    ok (refuses_number (&b, "11", "test.max=11: must be a number from 2 to 10"),
        "a number of an attribute above the maximum is refused");
    ok (refuses_number (&b, "x", "test.max=x: must be a number from 2 to 10"),
        "an attribute that must be a number is refused if it is not");
    b.attrs[1] = "10";
    ok (module_option_number (b.h, "test.max", "5", 2, 10, &n, &error) == 0 && n == 10
            && module_option_number (b.h, "test.max", NULL, 2, 10, &n, &error) == 0 && n == 10,
        "a number of an attribute may be the minimum or the maximum");
    idt_close (b.h);
}

static bool reads_time (struct broker *b, const char *value, uint64_t expect_ms)
{
    idt_error_t error = { "" };
    uint64_t ms = 77;

    b->attrs[0] = "test.time";
    b->attrs[1] = value;
    if (module_option_duration (b->h, "test.time", "1s", 100, 5000, "100ms to 5s", &ms, &error) == 0)
        return ms == expect_ms;
    return expect_ms == 0 && errno == EINVAL && strstr (error.text, ": must be 100ms to 5s");
}

static void check_durations (void)
{
    struct broker b;

    begin (&b);
    ok (reads_time (&b, "100ms", 100) && reads_time (&b, "5s", 5000),
        "a time of an attribute within its bounds is read");
    ok (reads_time (&b, "99ms", 0) && reads_time (&b, "5001ms", 0) && reads_time (&b, "soon", 0),
        "a time of an attribute that is malformed or outside its bounds is refused");
    b.attrs[0] = NULL;
    uint64_t ms = 0;
    ok (module_option_duration (b.h, "test.time", "1s", 100, 5000, "100ms to 5s", &ms, NULL) == 0 && ms == 1000,
        "an attribute for a time that is not set has its default");
    idt_close (b.h);
}

static bool has_place (const struct broker *b, const char *dir)
{
    struct module_place place;

    return module_option_place (b->h, "toys", &place, NULL) == 0 && !place.store && strcmp (place.dir, dir) == 0;
}

static bool has_no_place (const struct broker *b, const char *text)
{
    struct module_place place;
    idt_error_t error;

    return module_option_place (b->h, "toys", &place, &error) < 0 && errno == EINVAL && strcmp (error.text, text) == 0;
}

static void check_folder (void)
{
    struct broker b;

    begin (&b);
    ok (has_no_place (&b, "rank 0 needs a folder to keep toys in: set statedir"),
        "a module on rank 0 without a statedir and rundir is refused");
    b.attrs[0] = "rundir";
    b.attrs[1] = "/run/x";
    ok (has_place (&b, "/run/x"), "a module uses rundir if statedir is not set");
    b.attrs[2] = "statedir";
    b.attrs[3] = "/var/x";
    ok (has_place (&b, "/var/x"), "a module prefers statedir to rundir");
    b.attrs[3] = "";
    ok (has_no_place (&b, "rank 0 needs a folder to keep toys in: set statedir"),
        "a folder with an empty name counts as not set");
    idt_close (b.h);
}

static void check_store (void)
{
    struct module_place place;
    struct broker b;

    begin (&b);
    b.attrs[0] = "root.store";
    b.attrs[1] = "service=x";
    ok (has_no_place (&b, "rank 0 cannot keep toys in root.store: root.term= is not a term"),
        "a module does not use root.store if its broker does not have the role");
    b.attrs[2] = "root.term";
    b.attrs[3] = "7";
    ok (has_no_place (&b, "rank 0 cannot keep toys in root.store: the instance is not known"),
        "a module does not use root.store if the instance is not known");
    b.attrs[4] = "instance.uuid";
    b.attrs[5] = "u";
    ok (module_option_place (b.h, "toys", &place, NULL) == 0 && !place.dir && strcmp (place.store, "service=x") == 0
            && place.term == 7 && !place.trust && strcmp (place.uuid, "u") == 0,
        "a module uses root.store with the term of its broker");
    b.attrs[6] = "root.store-sync";
    b.attrs[7] = "trust";
    ok (module_option_place (b.h, "toys", &place, NULL) == 0 && place.trust, "root.store-sync=trust is read");
    ok (strcmp (module_option_root_timeout (b.h), "15s") == 0, "with root.store requests wait longer for rank 0");
    b.attrs[1] = "";
    ok (strcmp (module_option_root_timeout (b.h), "5s") == 0, "without a store requests wait for 5 s");
    ok (has_no_place (&b, "rank 0 needs a folder to keep toys in: set statedir"),
        "a store with an empty name counts as not set");
    idt_close (b.h);
}

int main (void)
{
    check_answers ();
    check_clients ();
    check_upcalls ();
    check_stop ();
    check_numbers ();
    check_durations ();
    check_folder ();
    check_store ();
    return done_testing ();
}
