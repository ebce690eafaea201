/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* test_server.h - a broker for the tests of libidtree: a thread that answers on a UNIX socket
 *
 * It answers attr.get and attr.set, event.subscribe, event.publish, fluid.block, and service
 * "test":
 *   test.echo     the payload
 *   test.error    errnum and text of {"errnum":i,"text":s}
 *   test.stream   {"n":i}: n answers {"i":0}, {"i":1}, ..., then ENODATA
 *   test.never    nothing
 *   test.hold     nothing until test.release, which lets all go, newest first, and is answered last
 *   test.batch    {"n":i}: event test.0, answer to the newest held request, event test.1, ... n times each;
 *                 then its own answer
 *   test.event    {"n":i}: events test.0, test.1, ...; then an answer
 *   test.request  {"topic":s,"payload":s?,"rolemask":i,"flags":i,"type":i}: sends that to the client; answers
 *                 with errnum and payload of the client's answer (NORESPONSE, events: at once)
 *   test.answer   {"size":i}: an answer of that many bytes
 *   test.fluid    how fluid.block is answered from now on: a payload of bytes, none: as it should be
 *   test.refuse   {"n":i,"errnum":i}: so many requests for fluid.block are answered with that error; 0: not at all
 *   test.log      the line that log.append brought last
 *   test.count    {"count":i} requests so far
 *   test.close    ends the connection, test.garbage after bytes that are no message
 *
 * All other requests go to what the test plugs in.
 */
#ifndef LIBIDTREE_TEST_SERVER_H
#define LIBIDTREE_TEST_SERVER_H

#include <idtree/msg.h>

struct test_server;

/* How a request is answered. */
struct test_reply {
    char *event_topic; /* published before the answer; NULL: none.  For free () */
    char *event;
    int errnum;
    char *text;  /* NULL: none; for free () */
    bool silent; /* no answer */
    bool close;  /* end the connection instead */
};

/* Called in the server's thread.  Returns false for what it does not know. */
typedef bool (*test_plug_f) (void *arg, const idt_msg_t *request, struct test_reply *reply);

/* Start a server that greets clients with a byte: 0, or an errno.  Exits the test on failure. */
struct test_server *test_server_create (unsigned char welcome);

/* Answer with 'plug' what the server does not know.  Before the first connection. */
void test_server_plug (struct test_server *s, test_plug_f plug, void *arg);

/* Which instance it says that it belongs to (attribute instance.uuid, copied); NULL: it does not know.  While it is
 * stopped, or before the first connection.  attr.set does it, too.
 */
void test_server_set_instance (struct test_server *s, const char *uuid);

/* End it as a broker does that is killed: connections are closed, its socket stays and nobody listens.  Then run it
 * anew, as another broker at the same place; ids go on above those before.
 */
void test_server_stop (struct test_server *s);
void test_server_start (struct test_server *s);

/* Stop it: connections are closed. */
void test_server_destroy (struct test_server *s);

const char *test_server_uri (const struct test_server *s);

#endif /* LIBIDTREE_TEST_SERVER_H */
