/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* test_server.h - a broker for the tests of libidtree: a thread that answers on a UNIX socket
 *
 * It answers attr.get and attr.set, event.subscribe, event.publish, fluid.block, and the service "test":
 *   test.echo     answers with the payload
 *   test.error    answers with errnum and text of {"errnum":i,"text":s}
 *   test.stream   {"n":i}: answers {"i":0}, {"i":1}, ..., n times, then ENODATA
 *   test.never    is not answered
 *   test.hold     is answered at test.release, which answers all held requests, newest first, then itself
 *   test.batch    {"n":i}: event test.0, answer to the newest held request, event test.1, ... n times each;
 *                 then its own answer
 *   test.event    {"n":i}: events test.0, test.1, ... test.n-1; then an answer
 *   test.request  {"topic":s,"payload":s?,"rolemask":i,"flags":i,"type":i}: sends this message to the client; answers
 *                 with errnum and payload of the client's answer (for NORESPONSE and events immediately)
 *   test.answer   {"size":i}: an answer of that many bytes
 *   test.fluid    sets the answer to fluid.block to the payload; without a payload, answers are correct again
 *   test.refuse   {"n":i,"errnum":i}: the next n requests for fluid.block get that error; errnum 0: no answer
 *   test.log      answers with the line of the last log.append
 *   test.count    {"count":i}: the number of requests so far
 *   test.close    closes the connection
 *   test.garbage  sends bytes that are not a message, then closes the connection
 *
 * All other requests are passed to the test's function.
 */
#ifndef LIBIDTREE_TEST_SERVER_H
#define LIBIDTREE_TEST_SERVER_H

#include <idtree/handle.h>

struct test_server;

/* How to answer a request. */
struct test_reply {
    char *event_topic; /* published before the answer, or NULL; freed by the server */
    char *event;
    int errnum;
    char *text;  /* may be NULL; freed by the server */
    bool silent; /* do not answer the request */
    bool close;  /* close the connection instead of answering */
};

/* Called in the server's thread. Returns false if it does not handle the request. */
typedef bool (*test_plug_f) (void *arg, const idt_msg_t *request, struct test_reply *reply);

/* Start a server that sends each client a first byte: 0, or an errno. Ends the test program on failure. */
struct test_server *test_server_create (unsigned char welcome);

/* Let 'plug' answer the requests that the server does not handle. Call this before the first connection. */
void test_server_plug (struct test_server *s, test_plug_f plug, void *arg);

/* Set the attribute instance.uuid (copied; NULL: unset). Call this before the first connection, or while the server is
 * stopped. attr.set sets the attribute, too.
 */
void test_server_set_instance (struct test_server *s, const char *uuid);

/* test_server_stop () ends the server like a broker that is killed: connections are closed, and the socket file stays,
 * but nothing listens on it. test_server_start () starts the server again, like another broker at the same place; its
 * ids are above all earlier ones.
 */
void test_server_stop (struct test_server *s);
void test_server_start (struct test_server *s);

/* Close all connections, and end the server. */
void test_server_destroy (struct test_server *s);

const char *test_server_uri (const struct test_server *s);

/* Return a handle that is connected to the server. Ends the test program on failure. */
idt_t *test_server_open (const struct test_server *s);

#endif /* LIBIDTREE_TEST_SERVER_H */
